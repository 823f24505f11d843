"""A real Prometheus that scrapes an appliance and evaluates our alert rules.

with Prometheus.watching(appliance.metrics_url, folder, rules) as prometheus:
    prometheus.until_firing("RubricaRoleDown", role="signing")
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from tests.support.patience import CALL_S
from tests.support.processes.scratch import free_port

_LONGEST_S: Final = 180.0
_LOOK_AGAIN_S: Final = 0.2


class Prometheus:
    """A running server.

    Args:
        port: that it answers at.
    """

    def __init__(self, port: int) -> None:
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=CALL_S
        )

    @classmethod
    @contextmanager
    def watching(cls, url: str, folder: Path, rules: Path) -> Iterator["Prometheus"]:
        """Start one that asks for figures every second, as the job `rubrica`.

        Args:
            url: of the figures.
            folder: of its own.
            rules: evaluated every second.
        """
        port, at = free_port(), urlsplit(url)
        job = {
            "job_name": "rubrica",
            "metrics_path": at.path,
            "static_configs": [{"targets": [at.netloc]}],
        }
        told = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [job],
        }
        file = folder / "prometheus.yml"
        file.write_text(json.dumps(told))  # JSON is YAML.
        with (folder / "prometheus.log").open("wb") as log:
            process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={file}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        try:
            running = cls(port)
            try:
                yield running
            finally:
                running.close()
        finally:
            process.terminate()
            process.wait(30)

    def close(self) -> None:
        """Close the connection to it."""
        self._client.close()

    def values(self, query: str) -> list[dict[str, str]]:
        """The labels of what a query finds; nothing while it starts."""
        try:
            answer = self._client.get("/api/v1/query", params={"query": query})
        except httpx.TransportError:
            return []
        if answer.status_code != httpx.codes.OK:
            return []
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return [one["metric"] for one in found]

    def firing(self) -> set[str]:
        """Names of the alerts that fire now."""
        found = self.values('ALERTS{alertstate="firing"}')
        return {one["alertname"] for one in found}

    def until(self, query: str) -> list[dict[str, str]]:
        """Wait until a query finds something."""
        deadline = time.monotonic() + _LONGEST_S
        while not (found := self.values(query)):
            assert time.monotonic() < deadline, (query, self.firing())
            time.sleep(_LOOK_AGAIN_S)
        return found

    def until_firing(self, alert: str, **labels: str) -> None:
        """Wait until an alert fires, with these labels."""
        more = "".join(f',{name}="{value}"' for name, value in labels.items())
        self.until(f'ALERTS{{alertname="{alert}",alertstate="firing"{more}}}')

    def until_quiet(self, *but: str) -> None:
        """Wait until none fires.

        Args:
            but: alerts that may.
        """
        others = f',alertname!~"{"|".join(but)}"' if but else ""
        self.until(f'absent(ALERTS{{alertstate="firing"{others}}}) and on () up == 1')

    def until_silent(self, alert: str) -> None:
        """Wait until one does not fire."""
        firing = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
        self.until(f"absent({firing}) and on () up == 1")

"""`packaging/known-holes`, by the real clients, against lists on this machine."""

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

_SCRIPT: Final = Path(__file__).resolve().parents[3] / "packaging/known-holes"
_TEMPFAIL: Final = 75
_BULK: Final = "/-/npm/v1/security/advisories/bulk"

# An environment is made each time, from the registries.
pytestmark = pytest.mark.long


class _Lists(BaseHTTPRequestHandler):
    """OSV's list and npm's, with holes in what is named, or with none to be had."""

    holes = False
    away = False

    def do_POST(self) -> None:
        """`POST /v1/query` (OSV) and npm's advisories."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            content = gzip.decompress(content)
        body = json.loads(content)
        if self.away:
            self.send_error(405)
        elif self.path == _BULK:
            self._answer(self._npm() if self.holes else {})
        else:
            name = body["package"]["name"]
            found = self.holes and name.lower() == "pillow"
            self._answer({"vulns": [_osv()]} if found else {})

    def _npm(self) -> dict[str, object]:
        advisory = {
            "id": 1,
            "url": "https://advisories.example/1",
            "title": "Runs what a font says",
            "severity": "high",
            "vulnerable_versions": "<999.0.0",
        }
        return {"pdfjs-dist": [advisory]}

    def _answer(self, told: object) -> None:
        content = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _osv() -> dict[str, object]:
    return {
        "id": "PYSEC-0000-1",
        "aliases": ["CVE-0000-1"],
        "summary": "Reads beyond an image",
        "affected": [
            {
                "package": {"name": "pillow", "ecosystem": "PyPI"},
                "ranges": [
                    {
                        "type": "ECOSYSTEM",
                        "events": [{"introduced": "0"}, {"fixed": "999.0.0"}],
                    }
                ],
            }
        ],
    }


@contextmanager
def _lists(*, holes: bool = False, away: bool = False) -> Iterator[str]:
    """Serve both; the address."""
    kind = type("Lists", (_Lists,), {"holes": holes, "away": away})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _look(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    osv = ["--vulnerability-service", "osv", "--osv-url", f"{url}/v1/query"]
    cache = ["--cache-dir", str(folder / "python")]
    return subprocess.run(
        [str(_SCRIPT), *osv, *cache],
        env={
            **os.environ,
            "npm_config_registry": url,
            "npm_config_cache": str(folder / "npm"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_known(tmp_path: Path) -> None:
    """Both lists were asked, and name nothing."""
    with _lists() as url:
        done = _look(url, tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "no hole is known\n"
    assert done.stderr == ""


def test_known_holes_are_named(tmp_path: Path) -> None:
    """Each with its names and where it is mended."""
    with _lists(holes=True) as url:
        done = _look(url, tmp_path)

    python, browser = done.stdout.splitlines()
    assert done.returncode == 1
    assert python.startswith("pillow ")
    assert python.endswith(": PYSEC-0000-1 CVE-0000-1; mended in 999.0.0")
    assert browser.startswith("pdfjs-dist: Runs what a font says ")
    assert "high" in browser


def test_lists_that_cannot_be_had_are_told(tmp_path: Path) -> None:
    """Not taken for lists that name nothing."""
    with _lists(away=True) as url:
        done = _look(url, tmp_path)

    python, browser = done.stderr.splitlines()
    assert done.returncode == _TEMPFAIL
    assert done.stdout == ""
    assert python.startswith("not known: pip-audit: ")
    assert browser.startswith("not known: npm audit: ")

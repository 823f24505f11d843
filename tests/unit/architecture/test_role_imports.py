"""What each role has in memory: what it runs, and no library of another's work."""

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

PDF = frozenset({"pyhanko", "pikepdf", "pypdfium2", "PIL", "lxml"})
HSM = frozenset({"pkcs11", "hsm_config"})
DATABASE = frozenset({"sqlalchemy", "redis", "arq"})
PAGES = frozenset({"quart", "jinja2", "hypercorn"})
NOBODY = frozenset({"fontTools", "alembic"})
"""What only a child of the start needs, or a command."""
LACKS = {
    "api": PDF | HSM | NOBODY | {"aiohttp", "worker"},
    "embed": PDF | HSM | NOBODY | {"aiohttp", "worker", "segno"},
    "admin": PDF | HSM | NOBODY | {"aiohttp", "worker"},
    "metrics": PDF | HSM | DATABASE | NOBODY | {"aiohttp", "worker"},
    "signing": PAGES | NOBODY | {"pikepdf", "pypdfium2", "PIL", "babel"},
    "chores": PAGES | NOBODY | {"pikepdf", "pypdfium2", "PIL", "babel"},
    "sandbox": PAGES | HSM | DATABASE | NOBODY | {"babel"},
}
LIST = """
import json, sys
from importlib import import_module
import_module(sys.argv[1])
print(json.dumps(sorted(sys.modules)))
"""

LIST_LATER = """
import json, sys
from admin_ui import app, preload as console
from appliance.database.engines import load_driver
from appliance.system.late_imports import FACES, WORKERS, load_late
from appliance.settings import Settings
from appliance.web import preload as faces
from worker import preload as workers
settings = Settings.model_validate(json.loads(sys.argv[1]))
faces.prepare_faces(settings)
console.prepare_console(settings)
workers.prepare_modules(settings)
before = set(sys.modules)
from worker.sandbox import prewarm
for late in (FACES, WORKERS, prewarm.LATE):
    load_late(late)
load_driver(settings)
list(app.page_blueprints())
print(json.dumps(sorted(set(sys.modules) - before)))
"""
TOKEN = {"label": "x", "pin_file": "pin"}
SECRETS = ("pepper_file", "data_key_file", "lookup_key_file")


def test_each_role_is_named() -> None:
    """A new role says here what it does without."""
    assert {point.name for point in entry_points(group="rubrica.roles")} == set(LACKS)


@pytest.mark.parametrize("role", LACKS)
def test_role_loads_nothing_of_anothers_work(role: str) -> None:
    """In a process of its own, as `rubrica serve` and `rubrica worker` are."""
    (point,) = entry_points(group="rubrica.roles", name=role)
    loaded = listed(LIST, point.module)
    assert point.module in loaded
    assert not loaded & LACKS[role]


@pytest.mark.parametrize("url", ["sqlite", "postgresql://localhost/rubrica"])
def test_what_roles_import_as_they_start_is_there_before_the_fork(url: str) -> None:
    """Of `rubrica up`: each would make pages of its own of it."""
    settings = {
        "data_dir": ".",
        "run_dir": ".",
        "hsm": {"firma": TOKEN, "pki": TOKEN},
        "secrets": dict.fromkeys(SECRETS, "secret"),
        "database": {"url": url},
    }
    assert listed(LIST_LATER, json.dumps(settings)) == set()


def listed(program: str, argument: str) -> set[str]:
    """The modules that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, argument],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(done.stdout))

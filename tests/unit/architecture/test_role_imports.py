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
NOBODY = frozenset({"fontTools", "alembic", "babel.messages"})
"""What only a child of the start needs, or a command."""
LACKS = {
    "api": PDF | HSM | NOBODY | {"aiohttp", "babel", "worker"},
    "embed": PDF | HSM | NOBODY | {"aiohttp", "babel", "worker", "segno"},
    "admin": PDF | HSM | NOBODY | {"aiohttp", "worker"},
    "metrics": PDF | HSM | DATABASE | NOBODY | {"aiohttp", "babel", "worker"},
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


def test_each_role_is_named() -> None:
    """A new role says here what it does without."""
    assert {point.name for point in entry_points(group="rubrica.roles")} == set(LACKS)


@pytest.mark.parametrize("role", LACKS)
def test_role_loads_nothing_of_anothers_work(role: str) -> None:
    """In a process of its own, as `rubrica serve` and `rubrica worker` are."""
    (point,) = entry_points(group="rubrica.roles", name=role)
    listed = subprocess.run(
        [sys.executable, "-c", LIST, point.module],
        check=True,
        capture_output=True,
        text=True,
    )
    loaded = set(json.loads(listed.stdout))
    assert point.module in loaded
    assert not loaded & LACKS[role]

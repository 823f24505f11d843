"""What an upgrade asks the installed version of HSM and database, before it.

Source: packaging/preflight_at_work.py; docs/running.md, "Upgrades and removal".
"""

import runpy
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.settings import SettingsError, load_settings

_PROGRAM: Final = Path(__file__).resolve().parents[2] / "packaging/preflight_at_work.py"
_SETTINGS: Final = """\
data_dir = "data"
run_dir = "run"
{more}

[hsm.firma]
label = "firma ñ"
pin_file = "firma.pin"
{in_firma}

[hsm.pki]
label = "pki"
pin_file = "pki.pin"

[secrets]
pepper_file = "pepper"
data_key_file = "data"
lookup_key_file = "lookup"

[[hsm.replicas]]
label = "second"
pin_file = "second.pin"
{in_replica}
"""


@pytest.fixture(scope="module")
def looks() -> dict[str, Any]:
    """What the program defines."""
    return runpy.run_path(str(_PROGRAM))


def _written(path: Path, **more: str) -> Path:
    path.write_text(
        _SETTINGS.format(**{"more": "", "in_firma": "", "in_replica": ""} | more)
    )
    return path


def test_settings_of_the_next_version_are_read_without_its_keys(
    looks: dict[str, Any], tmp_path: Path
) -> None:
    """At any depth; the rest is as it was, and the copy is gone afterwards."""
    new = {
        "more": 'next_name = "x"\nafter = [{ a = 1 }, { b = 2.5 }]',
        "in_firma": "next_key = true",
        "in_replica": 'next_key = "y"',
    }
    path = _written(tmp_path / "settings.toml", **new)
    path.chmod(0o640)
    with pytest.raises(SettingsError):
        load_settings(path)

    with looks["readable"](path) as copy:
        read = load_settings(copy)
        assert stat.S_IMODE(copy.stat().st_mode) == 0o640
        assert copy != path

    assert read == load_settings(_written(path))
    assert read.hsm.firma.label == "firma ñ"
    assert [each.name for each in tmp_path.iterdir()] == ["settings.toml"]


def test_settings_that_are_known_are_read_where_they_are(
    looks: dict[str, Any], tmp_path: Path
) -> None:
    """Those with a fault too: the installed version says what it is."""
    path = _written(tmp_path / "settings.toml", more="trial = 7")

    with looks["readable"](path) as same:
        assert same == path

    table = tomllib.loads(path.read_text())
    assert looks["take_out_unknown"](table) is False
    assert table == tomllib.loads(path.read_text())


@pytest.mark.parametrize(
    ("found", "migrates", "refused"),
    [
        ("0001", False, True),
        ("None", False, True),
        ("0002", False, False),
        ("0010", False, False),
        ("0001", True, False),
        ("None", True, False),
    ],
)
def test_host_that_does_not_migrate_waits_for_the_one_that_does(
    looks: dict[str, Any], found: str, migrates: bool, refused: bool
) -> None:
    """Its roles would say NOT_MIGRATED until then."""
    lacks = list(looks["lacks_of_tables"](found, "0002", is_migrated_here=migrates))

    assert bool(lacks) is refused
    if refused:
        assert lacks[0].what.startswith("tables of version 0002: those of the")
        assert "first" in lacks[0].remedy


def test_each_bad_line_of_the_hsm_is_told(looks: dict[str, Any]) -> None:
    """Or what was said in place of a table."""
    bad = "BAD   CA      rubrica-ocsp is not there\nBAD   PIN pki  wrong\n"
    table = f"ok    module  x\n{bad}"

    told = [lack.what.partition(": ")[2] for lack in looks["lacks_by_report"](table)]
    (other,) = looks["lacks_by_report"]("first\nhsm.module: is not there\n")

    assert told == ["CA rubrica-ocsp is not there", "PIN pki wrong"]
    assert other.what.endswith(": hsm.module: is not there")

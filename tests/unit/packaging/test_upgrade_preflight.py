"""What an upgrade asks the installed version of HSM and database, before it.

Source: packaging/preflight_at_work.py; docs/running.md, "Upgrades and removal".
"""

import runpy
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.settings import SettingsError, load_settings
from tests.support.hosts.debian_packages import ROOT, has_release, release

_PROGRAM: Final = Path(__file__).resolve().parents[3] / "packaging/preflight_at_work.py"
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


_WITH_ITS_MODULES: Final = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
found = runpy.run_path(sys.argv[2])
import appliance
print(appliance.__file__)
sys.argv[1] = "nowhere.toml"
exec(found["_TABLES"])
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


def _releases() -> list[str]:
    text = (ROOT / "packaging/releases.toml").read_text("utf-8")
    return [each["version"] for each in tomllib.loads(text)["release"]]


@pytest.mark.parametrize("version", _releases())
def test_installed_release_has_what_is_imported_of_it(
    version: str, tmp_path: Path
) -> None:
    """By that release's modules it gets as far as the settings, which are not there."""
    if not has_release(version):
        pytest.skip(f"no commit of release {version}: this clone has no history")
    tree = release(tmp_path, version)
    command = [sys.executable, "-c", _WITH_ITS_MODULES, str(tree), str(_PROGRAM)]

    done = subprocess.run(
        command, cwd=tmp_path, check=False, capture_output=True, text=True
    )

    assert done.stdout == f"{tree}/appliance/__init__.py\n", done.stderr
    assert done.stderr.strip().startswith("nowhere.toml: "), done.stderr

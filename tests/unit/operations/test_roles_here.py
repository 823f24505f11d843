"""Which roles are of this host, by what systemd says of their units.

systemctl is played: it tells a property of a unit that a file of the test has.
"""

from pathlib import Path
from typing import Final

import pytest

from appliance.operations.installation_checks import look_at_settings, look_at_units
from appliance.operations.setup_answers import Answers, settings_text
from appliance.operations.systemd_units import left_out, signing_workers
from appliance.settings import Settings, load_settings
from tests.unit.operations.test_setup_answers import GIVEN

_SCRIPT: Final = """\
#!/bin/sh
case "$1" in
show) cat "{folder}/$4.${{3#--property=}}" ;;
list-*) cat "{folder}/$1" ;;
esac 2>/dev/null
exit 0
"""
_WORKERS: Final = "rubrica-signing@*.service"
_ROLES: Final = ("api", "embed", "admin", "chores", "metrics", "migrate", "sandbox")


class Systemd:
    """What it says; every unit runs.

    Args:
        folder: of the test.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        program = folder / "systemctl"
        program.write_text(_SCRIPT.format(folder=folder))
        program.chmod(0o755)
        for role in (*_ROLES, "signing@1", "signing@2"):
            self.say(f"rubrica-{role}.service", "LoadState", "loaded")
            self.say(f"rubrica-{role}.service", "ActiveState", "active")
        self.load("signing@1", "signing@2")

    def say(self, unit: str, name: str, value: str) -> None:
        """Have a unit's property be something."""
        (self._folder / f"{unit}.{name}").write_text(f"{value}\n")

    def load(self, *workers: str) -> None:
        """Have it know these of the workers."""
        rows = "".join(f"rubrica-{each}.service loaded x y Z\n" for each in workers)
        (self._folder / "list-units").write_text(rows)
        self.say(_WORKERS, "ActiveState", "active" if workers else "")

    def enable(self, *workers: str) -> None:
        """Have these of the workers start with the machine."""
        rows = "".join(f"rubrica-{each}.service enabled enabled\n" for each in workers)
        (self._folder / "list-unit-files").write_text(
            f"rubrica-signing@.service disabled enabled\n{rows}"
        )

    def mask(self, *units: str) -> None:
        """Have them be masked, and stopped."""
        for unit in units:
            self.say(f"rubrica-{unit}.service", "LoadState", "masked")
            self.say(f"rubrica-{unit}.service", "ActiveState", "inactive")


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """A machine with all roles."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Systemd(tmp_path)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of an installation."""
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(Answers.of(GIVEN)))
    return load_settings(path)


def test_host_with_all_roles_leaves_none_out(
    systemd: Systemd, settings: Settings
) -> None:
    """And all is well there, until one stops."""
    assert left_out() == []
    assert list(look_at_units(settings)) == []

    systemd.say("rubrica-chores.service", "ActiveState", "failed")
    (found,) = look_at_units(settings)
    assert found.what == "rubrica-chores.service is failed"


@pytest.mark.parametrize("worker", ["signing@1", "signing@2", "signing@3"])
def test_stopped_worker_is_named(
    systemd: Systemd, settings: Settings, worker: str
) -> None:
    """One that was stopped and unloaded, too: it is enabled, or of rubrica.target."""
    systemd.enable("signing@3")
    systemd.say("rubrica-signing@3.service", "ActiveState", "active")
    systemd.load(*({"signing@1", "signing@2", "signing@3"} - {worker}))
    systemd.say(f"rubrica-{worker}.service", "ActiveState", "inactive")

    (found,) = look_at_units(settings)

    assert found.what == f"rubrica-{worker}.service is inactive"
    assert f"systemctl start rubrica-{worker}.service" in found.remedy


def test_masked_roles_are_not_of_this_host(
    systemd: Systemd, settings: Settings
) -> None:
    """They are not amiss, the table's keeper among them."""
    systemd.mask("chores", "migrate", "signing@1", "signing@2")
    systemd.load()

    assert left_out() == ["chores", "migrate", "signing"]
    assert list(look_at_units(settings)) == []


@pytest.mark.parametrize("loaded", ["signing@2", "signing@3"])
def test_host_with_one_worker_has_that_role(
    systemd: Systemd, settings: Settings, loaded: str
) -> None:
    """And is told where that one does not run."""
    systemd.mask("signing@1", *(["signing@2"] if loaded == "signing@3" else []))
    systemd.load("signing@1", loaded)
    systemd.say(f"rubrica-{loaded}.service", "ActiveState", "inactive")

    assert left_out() == []
    assert signing_workers() == [f"rubrica-{loaded}.service"]
    (found,) = look_at_units(settings)
    assert found.what == f"rubrica-{loaded}.service is inactive"


def test_what_runs_or_listens_of_others_is_amiss(
    systemd: Systemd, settings: Settings
) -> None:
    """It was masked and not stopped."""
    systemd.mask("embed", "signing@1", "signing@2")
    systemd.say("rubrica-embed.service", "ActiveState", "active")
    systemd.say("rubrica-embed.socket", "ActiveState", "active")

    told = [found.what for found in look_at_units(settings)]

    assert told == [
        "rubrica-embed.service is masked and runs",
        "rubrica-embed.socket listens for a role that is masked",
        "rubrica-signing@*.service is masked and runs",
    ]


def test_settings_are_looked_at_for_roles_of_this_host(
    systemd: Systemd, tmp_path: Path
) -> None:
    """By whom each is asked; those that are left out are asked nothing."""
    (tmp_path / "systemd-run").write_text(
        '#!/bin/sh\nfor word; do role=$word; done\necho "asked $role" >&2\nexit 1\n'
    )
    (tmp_path / "systemd-run").chmod(0o755)
    systemd.mask("api", "embed", "admin", "migrate")

    told = [found.what for found in look_at_settings()]

    assert told == ["signing: asked signing", "chores: asked chores"]

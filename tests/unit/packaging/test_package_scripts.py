"""What the package asks for before it is unpacked, of files and units of a host.

Source: packaging/debian/preinst.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).resolve().parents[3]
_PACKAGING: Final = _ROOT / "packaging"
_FRONTS: Final = ("api", "embed", "admin")
_WORKERS: Final = ("signing@1", "signing@2")
_SECRETS: Final = ("pepper", "data-key", "document-key", "lookup-key")
_DOCUMENTS: Final = "/var/lib/rubrica/documents"

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg") is None, reason="dpkg is Debian's (package dpkg)"
)


def _script() -> str:
    """The script as the package has it, with no settings or room to ask for."""
    filled = {
        "VERSION": "0.3.0",
        "OLDEST": "0.2.0",
        "SIZE": "1",
        "TABLES": "0001",
        "SETTINGS": "",
        "CREDENTIALS": _lines("LoadCredential"),
        "FOLDERS": _lines("ReadWritePaths", "BindReadOnlyPaths", "WorkingDirectory")
        + " api=/srv/next",
        "MADE": "/var/lib/rubrica/new",
        "REQUIRED": _lines("Requires"),
        "UNITS": "rubrica-api.service rubrica-api.socket rubrica-signing@.service",
        "PREFLIGHT": (_PACKAGING / "preflight.py").read_text("utf-8"),
        "AT_WORK": "",
    }
    text = (_PACKAGING / "debian" / "preinst").read_text("utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda found: filled[found[1]], text)


def _lines(*keys: str) -> str:
    """What the units say of some keys, as packaging/build-deb asks for it."""
    command = [str(_PACKAGING / "unit-lines"), *keys]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return " ".join(done.stdout.split())


class Host:
    """A machine's files, in a folder.

    Args:
        root: of them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.units = root / "etc/systemd/system"
        self.secrets = root / "etc/rubrica/secrets"
        self.settings = root / "etc/rubrica/settings.toml"
        self.units.mkdir(parents=True)
        self.secrets.mkdir(parents=True)
        self.settings.touch()
        self.make("/srv/next")
        self.make(_DOCUMENTS)

    def make(self, folder: str) -> Path:
        """A folder of its own."""
        made = self.root / folder.removeprefix("/")
        made.mkdir(parents=True)
        return made

    def mask(self, *units: str) -> None:
        """As systemctl does."""
        for unit in units:
            name = unit if "." in unit else f"{unit}.service"
            (self.units / f"rubrica-{name}").symlink_to("/dev/null")

    def enable(self, worker: str) -> None:
        """As systemctl does."""
        wants = self.units / "rubrica.target.wants"
        wants.mkdir(exist_ok=True)
        unit = "/usr/lib/systemd/system/rubrica-signing@.service"
        (wants / f"rubrica-{worker}.service").symlink_to(unit)

    def drop_in(self, role: str, *lines: str) -> None:
        """As `systemctl edit` does."""
        folder = self.units / f"rubrica-{role}.service.d"
        folder.mkdir(exist_ok=True)
        text = "".join(f"{line}\n" for line in ("[Service]", *lines))
        (folder / "own.conf").write_text(text)

    def fill(self) -> None:
        """Have all secrets there."""
        for name in _SECRETS:
            (self.secrets / name).touch()

    def refusals(self, before: str = "0.2.0") -> list[str]:
        """What an upgrade is refused for, a line each; none if it goes on.

        Args:
            before: the version that is installed.
        """
        done = subprocess.run(
            ["sh", "-c", _script(), "preinst", "upgrade", before],
            env={**os.environ, "DPKG_ROOT": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stderr.splitlines()
        found = [line for line in lines if line.startswith("rubrica: lacks ")]
        remedies = [line for line in lines if re.match(r" +-> \S", line)]
        assert len(remedies) == len(found), done.stderr
        assert (done.returncode, "nothing was changed" in done.stderr) == (
            (1, True) if found else (0, False)
        ), done.stderr
        return [line.removeprefix("rubrica: lacks ") for line in found]

    def lacks(self) -> set[str]:
        """Names of the secrets that an upgrade is refused for, each told once."""
        found = self.refusals()
        assert all(line.startswith("the file ") for line in found), found
        names = [line.rpartition("/")[2] for line in found]
        assert len(names) == len(set(names)), found
        return set(names)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """One with settings and no secret."""
    return Host(tmp_path)


@pytest.fixture
def whole(host: Host) -> Host:
    """One that lacks nothing."""
    host.fill()
    assert host.refusals() == []
    return host


def test_host_with_all_roles_needs_every_secret(host: Host) -> None:
    """Each is named once, however many units it is for."""
    assert host.lacks() == {*_SECRETS}


def test_host_with_workers_alone_needs_their_key(host: Host) -> None:
    """And what chores open addresses with; none that only fronts need."""
    host.mask(*_FRONTS)

    assert host.lacks() == {"data-key", "document-key"}
    for name in ("data-key", "document-key"):
        (host.secrets / name).touch()
    assert host.lacks() == set()


def test_host_with_the_sandbox_alone_needs_none(host: Host) -> None:
    """Whether workers are masked one by one or all at once."""
    host.mask(*_FRONTS, *_WORKERS, "chores")

    assert host.lacks() == set()


def test_unit_of_all_workers_may_be_masked(host: Host) -> None:
    """By what they are made from."""
    host.mask(*_FRONTS, "signing@", "chores")

    assert host.lacks() == set()


@pytest.mark.parametrize("masked", [("signing@1",), _WORKERS])
def test_one_worker_that_is_left_needs_its_key(
    host: Host, masked: tuple[str, ...]
) -> None:
    """The second one, or a third that was enabled."""
    host.mask(*_FRONTS, "chores", *masked)
    if masked == _WORKERS:
        host.enable("signing@3")

    assert host.lacks() == {"document-key"}


def test_secret_that_a_drop_in_hands_over_is_not_asked_for(host: Host) -> None:
    """Its file is elsewhere, and systemd's to find."""
    host.mask("chores", *_WORKERS, "embed", "api")
    place = "/etc/credstore.encrypted/data-key"
    host.drop_in("admin", f"LoadCredentialEncrypted=data-key:{place}")

    assert host.lacks() == {"document-key", "lookup-key"}


@pytest.mark.parametrize(
    ("before", "refused"), [("0.1.9", True), ("0.2.0~dev0", True), ("0.2.0", False)]
)
def test_release_that_comes_before_is_asked_for(
    whole: Host, before: str, refused: bool
) -> None:
    """One that is too old, by the order of Debian's versions."""
    wanted = [f"release 0.2.0 installed first, after {before}"] if refused else []

    assert whole.refusals(before) == wanted


def test_folder_that_the_installed_version_made_is_asked_for(whole: Host) -> None:
    """One that is not mounted; none below /run."""
    conf = whole.make("/usr/lib/tmpfiles.d") / "rubrica.conf"
    conf.write_text(
        f"# Type Path\nd {_DOCUMENTS} 2770 root rubrica -\n"
        "d /var/lib/rubrica/pki 2750 root rubrica -\nd /run/rubrica 3770 root root -\n"
    )

    (found,) = whole.refusals()

    assert found.startswith("the folder /var/lib/rubrica/pki ")
    whole.make("/var/lib/rubrica/pki")
    assert whole.refusals() == []


def test_folder_that_a_new_unit_names_is_asked_for(whole: Host) -> None:
    """Unless its role is of another host, or a drop-in takes its folders back."""
    (whole.root / "srv/next").rmdir()

    (found,) = whole.refusals()

    assert found.startswith("the folder /srv/next (rubrica-api.service ")
    whole.drop_in("api", "ReadWritePaths=", "ReadWritePaths=/run/rubrica -/srv/none")
    assert whole.refusals() == []
    (whole.units / "rubrica-api.service.d/own.conf").unlink()
    whole.mask("api")
    assert whole.refusals() == []


def test_folder_of_documents_elsewhere_is_asked_for(whole: Host) -> None:
    """Of the settings and of a drop-in, once."""
    whole.settings.write_text('[documents]\npath = "/srv/documents"\n')
    whole.drop_in("chores", "ReadWritePaths=/srv/documents")

    (found,) = whole.refusals()

    assert found.startswith("the folder /srv/documents ")
    whole.make("/srv/documents")
    assert whole.refusals() == []


def test_folder_of_backups_is_no_roles(whole: Host) -> None:
    """It may be mounted for a backup alone."""
    whole.drop_in("backup", "ReadWritePaths=/backup", "Requires=usb.mount")

    assert whole.refusals() == []


@pytest.mark.parametrize("unit", ["rubrica-api.service", "rubrica-signing@1.service"])
def test_unit_of_ones_own_is_refused(whole: Host, unit: str) -> None:
    """It hides the new version's, and with it what that hands to the role."""
    own = whole.units / unit
    own.write_text("[Service]\nExecStart=/bin/true\n")

    (found,) = whole.refusals()

    assert found.startswith(f"this version's {unit}, which {own} hides")
    own.unlink()
    packaged = whole.make("/usr/lib/systemd/system") / unit
    packaged.write_text("[Service]\nExecStart=/bin/true\n")
    own.symlink_to(packaged)
    assert whole.refusals() == []


def test_socket_that_is_masked_is_refused(whole: Host) -> None:
    """Where its role is of this host, which could not start again."""
    whole.mask("embed.socket")

    (found,) = whole.refusals()

    assert found.startswith("the unit rubrica-embed.socket, which rubrica-embed.")
    assert found.endswith(": it is masked")
    whole.mask("embed")
    assert whole.refusals() == []


def test_unit_that_a_drop_in_requires_may_not_be_masked(whole: Host) -> None:
    """Another package's, such as an HSM's daemon."""
    (whole.units / "hsmd.service").symlink_to("/dev/null")
    whole.drop_in("signing@", "Requires=hsmd.service")

    (found,) = whole.refusals()

    assert "hsmd.service" in found
    assert "rubrica-signing@.service" in found


def test_machine_that_was_not_set_up_lacks_release_and_room_alone(host: Host) -> None:
    """No role runs there, so nothing else is asked for."""
    host.settings.unlink()

    assert host.refusals() == []
    assert host.refusals("0.1.0") == ["release 0.2.0 installed first, after 0.1.0"]


def test_settings_that_cannot_be_read_are_told(whole: Host) -> None:
    """In a line."""
    whole.settings.write_text("data_dir = \n")

    (found,) = whole.refusals()

    assert found.startswith("settings that can be read: ")


_PINS: Final = """\
[hsm]
firma = {{ label = "hsm/a", pin_file = "/etc/rubrica/hsm/firma.pin" }}
pki = {{ label = "pki", pin_source = "prompt", pin_file = "/etc/rubrica/hsm/x/y.pin" }}
{more}
"""


@pytest.fixture
def closing(whole: Host) -> Host:
    """One whose PINs become root's own, and whose folder has nothing else."""
    whole.make("/etc/rubrica/hsm")
    whole.settings.write_text(_PINS.format(more='profile = "softhsm2"'))
    for name in ("firma.pin", "firma-so.pin"):
        (whole.root / "etc/rubrica/hsm" / name).touch()
    assert whole.refusals() == []
    return whole


@pytest.mark.parametrize(
    ("more", "key", "path"),
    [
        ('softhsm_conf = "/etc/rubrica/hsm/c.conf"', "softhsm_conf", "hsm/c.conf"),
        ('profile = "hsm/luna.toml"', "profile", "hsm/luna.toml"),
        ('module = "/etc/rubrica/x/../hsm/p11.so"', "module", "hsm/p11.so"),
        ('module = "/opt/maker/p11.so"', "module", "/opt/maker/p11.so"),
        (
            (
                '[[hsm.replicas]]\npin_file = "/etc/rubrica/hsm/b.pin"\n'
                'config = "/etc/rubrica/hsm/b.conf"'
            ),
            "replicas.0.config",
            "hsm/b.conf",
        ),
        ('[trust]\nfiles = ["hsm/a.pem"]', None, "hsm/a.pem"),
        (
            '[[hsm.replicas]]\npin_file = "/etc/rubrica/hsm/b/b.pin"',
            "replicas.0.pin_file",
            "hsm/b/b.pin",
        ),
    ],
)
def test_folder_that_is_closed_may_hold_pins_alone(
    closing: Host, more: str, key: str | None, path: str
) -> None:
    """What workers read by themselves moves out first, by a link too."""
    closing.make("/opt")
    (closing.root / "opt/maker").symlink_to(closing.root / "etc/rubrica/hsm")
    closing.settings.write_text(_PINS.format(more=more))

    (found,) = closing.refusals()

    assert found.startswith("/etc/rubrica/hsm with PINs alone")
    named = f"hsm.{key}" if key else "trust.files.0"
    assert f"{path} ({named} in the settings)" in found
    closing.settings.write_text(
        _PINS.format(more='softhsm_conf = "/etc/rubrica/hsm-client/c.conf"')
    )
    assert closing.refusals() == []


def test_drop_in_that_names_the_folder_that_is_closed_is_refused(closing: Host) -> None:
    """Of the workers: a library's configuration. systemd itself reads there on."""
    closing.drop_in("signing@", "Environment=CONF=/etc/rubrica/hsm")

    (found,) = closing.refusals()

    assert "Environment=CONF=/etc/rubrica/hsm (a drop-in of" in found
    closing.drop_in(
        "signing@",
        "Environment=CONF=/etc/rubrica/hsm-client",
        "LoadCredential=firma.pin:/etc/rubrica/hsm/firma.pin",
    )
    assert closing.refusals() == []


@pytest.mark.parametrize("name", ["firma.pin", "firma-so.pin"])
def test_pin_that_is_a_link_is_refused(closing: Host, name: str) -> None:
    """Before anything is unpacked: systemd would read anything."""
    pin = closing.root / "etc/rubrica/hsm" / name
    pin.unlink()
    pin.symlink_to("/etc/shadow")

    (found,) = closing.refusals()

    assert (
        found == f"a file /etc/rubrica/hsm/{name} that is no link (hsm.firma.pin_file)"
    )


def test_folder_of_pins_that_is_a_link_is_refused(closing: Host) -> None:
    """In a line, whatever lies in it."""
    folder = closing.root / "etc/rubrica/hsm"
    folder.rename(closing.root / "srv/pins")
    folder.symlink_to(closing.root / "srv/pins")

    assert closing.refusals() == ["a folder /etc/rubrica/hsm: it is a link"]


def test_pin_with_a_name_that_a_unit_reads_otherwise_is_refused(closing: Host) -> None:
    """`%` begins a specifier there."""
    text = closing.settings.read_text().replace("firma.pin", "50%.pin")
    closing.settings.write_text(text)

    (found,) = closing.refusals()

    assert found.startswith("a name of /etc/rubrica/hsm/50%.pin (hsm.firma.pin_file)")


_KNOWS: Final = """\
#!/bin/sh
[ "$*" = "database check --knows 0001" ] || exit 9
{says}
exit {status}
"""
"""What is installed, as far as a way back asks it."""


@pytest.mark.parametrize(
    ("status", "says", "refused", "told"),
    [
        (0, "echo tables of version 0003, which it may use", False, ""),
        (1, "echo database: its tables are of version 0003", True, "of version 0003"),
        # What broke says nothing on its output, and neither does a database's absence.
        (1, "echo Traceback >&2", False, "nobody could look"),
        (75, "echo away >&2", False, "nobody could look"),
        (78, "", False, "nobody could look"),
    ],
)
def test_way_back_asks_whether_the_tables_may_be_used(
    host: Host, status: int, says: str, refused: bool, told: str
) -> None:
    """The installed version is asked, by its command; what keeps it refuses nothing."""
    commands = host.make("/commands")
    (commands / "rubrica").write_text(_KNOWS.format(says=says, status=status))
    (commands / "rubrica").chmod(0o755)
    # As on a machine that runs, with nothing of ours but the settings.
    script = _script().replace("/etc/rubrica", str(host.settings.parent))
    script = script.replace("/run/systemd/system", str(host.units))
    path = f"{commands}:{os.environ['PATH']}"

    done = subprocess.run(
        ["sh", "-c", script, "preinst", "upgrade", "0.4.0"],
        env={**os.environ, "PATH": path, "DPKG_ROOT": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, "nothing was changed" in done.stderr) == (
        (1, True) if refused else (0, False)
    ), done.stderr
    assert told in done.stderr
    assert bool(done.stderr) is bool(told)


def test_package_is_built_into_a_folder_that_is_there(tmp_path: Path) -> None:
    """Another one is a sentence, and nothing was begun."""
    absent = tmp_path / "absent"

    done = subprocess.run(
        [str(_PACKAGING / "build-deb"), str(absent)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr == (
        f"packaging/build-deb: {absent}: there is no such folder; make it first\n"
    )


def test_purge_takes_our_drop_in_away(tmp_path: Path) -> None:
    """It names PINs; a drop-in of the operator's beside it stays, as keys do."""
    text = (_PACKAGING / "debian" / "postrm").read_text("utf-8")
    for place in ("/etc/", "/var/", "/run/"):
        text = re.sub(rf"(?<![\w/]){place}", f"{tmp_path}{place}", text)
    folder = tmp_path / "etc/systemd/system/rubrica-signing@.service.d"
    for made in (folder, tmp_path / "etc/rubrica", tmp_path / "var/lib/rubrica"):
        made.mkdir(parents=True)
    (folder / "pins.conf").write_text("[Service]\n")
    (folder / "own.conf").write_text("[Service]\n")

    def purged() -> str:
        return subprocess.run(
            ["sh", "-c", text, "postrm", "purge"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    said = purged()

    assert [path.name for path in folder.iterdir()] == ["own.conf"]
    assert f"kept: {tmp_path}/etc/rubrica (settings, keys, PINs)" in said
    assert f"kept: {tmp_path}/var/lib/rubrica (certificates of the CA, " in said
    (folder / "own.conf").unlink()
    purged()
    assert not folder.exists()

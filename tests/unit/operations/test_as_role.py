"""Which user runs a command, and what they get for it."""

import argparse
import os
import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from appliance.cli import EX_CONFIG, SETTINGS_VARIABLE, command_parser, main
from appliance.cli.as_role import (
    ROLES,
    credentials_of,
    missing_credentials,
    pins_command,
    role_of,
    so_pins,
    unit_options,
    unit_text,
    ways_of,
    with_settings,
)
from appliance.cli.as_role import main as as_role
from tests.support.appliance.manual import blocks

_ROOT = Path(__file__).resolve().parents[3]
_NOBODY = 65534


def _commands() -> set[str]:
    """Every command that there is."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for point in entry_points(group="rubrica.commands"):
        point.load()(commands)
    return set(commands.choices)


def test_every_command_is_somebodys() -> None:
    """None runs as root because nobody thought of it; no word is none."""
    assert {words[0] for words in ROLES} == _commands()


def test_every_command_stands_in_the_man_page() -> None:
    """packaging/rubrica.8 names each, and none that is not there."""
    page = (_ROOT / "packaging" / "rubrica.8").read_text("utf-8").replace("\\-", "-")
    named = re.findall(r"^\.BR? (.*)$", page, re.MULTILINE)
    words = {
        word.strip('", ') for line in named for word in re.findall(r'"[^"]+"|\S+', line)
    }

    assert {word.split()[0] for word in words if word} >= _commands()


def test_every_role_has_a_user_and_a_unit() -> None:
    """The user is made by sysusers.conf, and runs that role's unit."""
    made = (_ROOT / "systemd" / "sysusers.conf").read_text("utf-8")
    units = {path.stem.rstrip("@") for path in (_ROOT / "systemd").glob("*.service")}

    for role in filter(None, ROLES.values()):
        assert re.search(rf"^u +rubrica-{role} ", made, re.MULTILINE)
        assert f"rubrica-{role}" in units


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("hsm init", "signing"),
        ("--settings /etc/rubrica/settings.toml hsm check", "signing"),
        ("--settings=x timestamps try", "chores"),
        ("-- hsm check", "signing"),
        ("timestamps list", "migrate"),
        ("secrets rotate data", "migrate"),
        ("hsm pins", None),
        ("serve api", "api"),
        ("check-config --role api", None),
        ("--version", None),
        ("", None),
        ("nothing such", None),
    ],
)
def test_role_of_a_command(line: str, role: str | None) -> None:
    """By its first words, whatever options stand before them."""
    assert role_of(line.split()) == role


@pytest.mark.parametrize(
    ("line", "given", "added"),
    [
        ("hsm check", {}, True),
        ("migrate --wait 5", {}, True),
        ("check-config", {}, True),
        ("--settings other.toml hsm check", {}, False),
        ("--settings=other.toml hsm check", {}, False),
        ("hsm check", {"RUBRICA_SETTINGS": "other.toml"}, False),
        ("up", {}, False),
        ("demo sign --out x", {}, False),
        ("--version", {}, False),
    ],
)
def test_root_takes_no_settings_of_the_folder_it_stands_in(
    line: str, given: dict[str, str], added: bool
) -> None:
    """Anybody may have put them there, with a module to load."""
    words = line.split()
    usual = ["--settings", "/etc/rubrica/settings.toml"]

    assert with_settings(words, given) == ([*usual, *words] if added else words)


def test_folder_that_a_role_may_not_look_into_has_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`su` leaves a role in the folder of root: the installation's count there."""
    monkeypatch.delenv(SETTINGS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    command_parser()  # all is loaded as who may read it
    tmp_path.chmod(0)
    own = os.geteuid()
    os.seteuid(_NOBODY if own == 0 else own)
    try:
        settings = command_parser().get_default("settings")
    finally:
        os.seteuid(own)
        tmp_path.chmod(0o700)

    assert settings == Path("/etc/rubrica/settings.toml")


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("hsm init", "hsm pins --make"),
        ("--settings x hsm init --ask-pin", "--settings x hsm pins --make --ask-pin"),
        ("hsm join", "hsm pins --make"),
        ("hsm init --help", ""),
        ("hsm check", ""),
        ("hsm", ""),
        ("init folder", ""),
    ],
)
def test_root_makes_pins_before_tokens_are_made(line: str, before: str) -> None:
    """With the same settings; before no other command, nor for its help."""
    assert pins_command(line.split()) == before.split()


def test_so_pins_are_handed_over_from_roots_own_folder_alone(tmp_path: Path) -> None:
    """Whose folder it is could have systemd read any file as root."""
    for name in ("firma.pin", "firma-so.pin", "pki-so.pin"):
        (tmp_path / name).write_text("1234\n")
    (tmp_path / "other-so.pin").symlink_to("/etc/shadow")
    lines = [
        f"LoadCredential={name}:{tmp_path / name}"
        for name in ("firma-so.pin", "pki-so.pin")
    ]

    assert so_pins(tmp_path / "none") == []
    assert so_pins(tmp_path) == (lines if tmp_path.stat().st_uid == 0 else [])
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12345)
        assert so_pins(tmp_path) == []


@pytest.mark.parametrize("status", [0, 78])
def test_tokens_are_made_with_pins_that_root_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """Where there are none, and why, nothing else is run."""
    program = tmp_path / "rubrica"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/ran\nexit {status}\n')
    (tmp_path / "systemctl").write_text("#!/bin/sh\n")
    for path in (program, tmp_path / "systemctl"):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "rubrica-as-role"), "hsm", "init"])
    ran: list[str] = []
    monkeypatch.setattr("os.execvp", lambda _, words: ran.extend(words))

    if status:
        with pytest.raises(SystemExit) as caught:
            as_role()
        assert caught.value.code == status
    else:
        as_role()

    told = (tmp_path / "ran").read_text().splitlines()
    assert told == ["--settings /etc/rubrica/settings.toml hsm pins --make"]
    assert ran[-2:] == ([] if status else ["hsm", "init"])


def test_credentials_of_a_unit_and_its_drop_ins() -> None:
    """A line without a value takes back those before it."""
    unit = """\
# /etc/systemd/system/rubrica-api.service
[Service]
User=rubrica-api
LoadCredential=pepper:/etc/rubrica/secrets/pepper
LoadCredential=data-key:/etc/rubrica/secrets/data-key

# /etc/systemd/system/rubrica-api.service.d/override.conf
[Service]
LoadCredential=
LoadCredentialEncrypted=pepper:/etc/credstore.encrypted/pepper
LoadCredential=database:/etc/rubrica/secrets/database-api
"""

    assert credentials_of(unit) == [
        "LoadCredentialEncrypted=pepper:/etc/credstore.encrypted/pepper",
        "LoadCredential=database:/etc/rubrica/secrets/database-api",
    ]


def test_files_that_no_role_can_be_handed_are_named(tmp_path: Path) -> None:
    """Those with a path of their own that nothing stands in for."""
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.write_text("x")
    unit = f"""\
[Service]
LoadCredential=taken-back:/nowhere
LoadCredential=
LoadCredential=one:{there}
LoadCredential=two:{gone}
LoadCredentialEncrypted=three:{gone}.cred
LoadCredential=of-the-store
LoadCredential=usual:/nowhere
SetCredential=usual:x
"""

    assert missing_credentials(unit) == [str(gone), f"{gone}.cred"]


def test_command_of_a_role_names_the_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Systemd would say nothing, and end it by 243."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.argv", [str(tmp_path / "rubrica-as-role"), "hsm", "check"])
    unit = "[Service]\nLoadCredential=firma.pin:/nowhere/firma.pin\n"
    monkeypatch.setattr("appliance.cli.as_role.unit_text", lambda _role: unit)

    def refusal() -> str:
        with pytest.raises(SystemExit) as caught:
            as_role()
        assert caught.value.code == 78
        return capsys.readouterr().err

    settings = tmp_path / "settings.toml"
    monkeypatch.setattr("appliance.cli.as_role._SETTINGS", str(settings))
    assert refusal().startswith(f"{settings}: is not there; run `rubrica setup`")
    settings.write_text("")
    said = refusal()
    assert said.startswith("/nowhere/firma.pin is not there")
    assert "backup of the secrets" in said


def test_ways_of_a_unit_and_its_drop_ins() -> None:
    """One line an address, as systemd-run takes them; an empty one takes back."""
    unit = """\
# /usr/lib/systemd/system/rubrica-chores.service
[Service]
# add IPAddressAllow= lines in a drop-in
IPAddressDeny=any
IPAddressAllow=localhost

# /etc/systemd/system/rubrica-chores.service.d/override.conf
[Service]
IPAddressAllow=
IPAddressAllow = 192.0.2.10 192.0.2.53
IPAddressAllow=2001:db8::/32
"""

    assert ways_of(unit) == [
        "IPAddressDeny=any",
        "IPAddressAllow=192.0.2.10",
        "IPAddressAllow=192.0.2.53",
        "IPAddressAllow=2001:db8::/32",
    ]


def test_lines_that_go_on_in_the_next() -> None:
    """As systemd reads them; comments between are none of them."""
    unit = """\
[Service]
# one of ours \\
IPAddressAllow=192.0.2.1 \\
; and one more
# IPAddressAllow=192.0.2.9
    192.0.2.2\\

LoadCredential=pepper:\\
/etc/rubrica/secrets/pepper
IPAddressDeny=any \\
# /etc/systemd/system/rubrica-chores.service.d/override.conf
[Service]
IPAddressAllow=192.0.2.3
"""

    assert ways_of(unit) == [
        "IPAddressAllow=192.0.2.1",
        "IPAddressAllow=192.0.2.2",
        "IPAddressDeny=any",
        "IPAddressAllow=192.0.2.3",
    ]
    assert credentials_of(unit) == [
        "LoadCredential=pepper: /etc/rubrica/secrets/pepper"
    ]


def test_option_that_is_cut_short_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its value would pass for the command, and that for nobody's."""
    with pytest.raises(SystemExit):
        main(["--setting", "/nowhere", "check-ports"])

    assert "--setting" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "held"),
    [("hsm check", True), ("documents check", True), ("ready --wait 5", False)],
)
def test_command_reaches_what_its_unit_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, held: bool
) -> None:
    """But where it asks a face of this machine, which may listen anywhere."""
    told = tmp_path / "systemctl"
    told.write_text(f"#!/bin/sh\ncat '{_ROOT}/systemd/rubrica-migrate.service'\n")
    told.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.argv", ["rubrica", *line.split()])
    # The files of an installation, which is not here.
    monkeypatch.setattr("appliance.cli.as_role.missing_credentials", lambda _: [])
    ran: list[str] = []
    monkeypatch.setattr("os.execvp", lambda _, words: ran.extend(words))

    as_role()

    ways = {"--property=IPAddressDeny=any", "--property=IPAddressAllow=localhost"}
    assert ran[-len(line.split()) :] == line.split()
    assert ways.intersection(ran) == (ways if held else set())


@pytest.mark.parametrize(
    ("line", "masked", "user"),
    [
        ("database check --knows 0001", ("migrate",), "rubrica-api"),
        ("database check", ("migrate", "api", "embed", "admin"), "rubrica-chores"),
        ("database check", (), "rubrica-migrate"),
        ("database roles", ("migrate",), "rubrica-migrate"),
    ],
)
def test_tables_are_asked_for_by_a_role_that_is_of_this_host(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    masked: tuple[str, ...],
    user: str,
) -> None:
    """Where nothing is migrated there need be no password of who does it elsewhere."""
    patterns = "|".join(f"rubrica-{role}.service" for role in masked) or "none"
    told = tmp_path / "systemctl"
    told.write_text(
        "#!/bin/sh\n"
        f"case $2 in {patterns}) echo '# Unit '$2' is masked.';;\n"
        f"*) cat {_ROOT}/systemd/$2;; esac\n"
    )
    told.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.argv", ["rubrica", *line.split()])
    # The files of an installation, which is not here.
    monkeypatch.setattr("appliance.cli.as_role.missing_credentials", lambda _: [])
    ran: list[str] = []
    monkeypatch.setattr("os.execvp", lambda _, words: ran.extend(words))

    as_role()

    assert f"--property=User={user}" in ran


def test_first_worker_that_is_masked_leaves_the_others_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What instances are made from has the same lines."""
    unit = _ROOT / "systemd" / "rubrica-signing@.service"
    told = tmp_path / "systemctl"
    told.write_text(
        "#!/bin/sh\n"
        "case $2 in\n"
        "  *@1.*) echo '# Unit rubrica-signing@1.service is masked.';;\n"
        f"  *) cat '{unit}';;\n"
        "esac\n"
    )
    told.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    held = unit_options("signing", terminal=False)
    free = unit_options("signing", terminal=False, held=False)

    ways = ["--property=IPAddressDeny=any", "--property=IPAddressAllow=localhost"]
    assert held == [*free, *ways]
    assert any(each.startswith("--property=LoadCredential=") for each in free)


@pytest.mark.parametrize(
    ("command", "groups"),
    [("status", "rubrica rubrica-metrics"), ("documents check", "rubrica")],
)
def test_command_that_reads_figures_has_the_group_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, groups: str
) -> None:
    """Roles' figures are for that group alone; no other command has it."""
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\necho '[Service]'\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("sys.argv", ["rubrica", *command.split()])
    executed: list[str] = []
    monkeypatch.setattr("os.execvp", lambda _, words: executed.extend(words))

    as_role()

    assert f"--property=SupplementaryGroups={groups}" in executed


@pytest.mark.parametrize(
    ("line", "user", "refused"),
    [
        ("integrator list", 0, True),
        ("hsm init", 0, True),
        ("serve api", 0, True),
        ("check-config", 0, False),
        ("integrator list", 1000, False),
    ],
)
def test_root_makes_nothing_in_production(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    user: int,
    refused: bool,
) -> None:
    """No role could read it: the user whose work it is is named."""
    settings = tmp_path / "settings.toml"
    settings.write_text(_settings_of_the_manual())
    monkeypatch.setattr("os.geteuid", lambda: user)

    status = main(["--settings", str(settings), *line.split()])

    told = capsys.readouterr().err
    assert (status == EX_CONFIG and "rubrica-as-role" in told) is refused


def _settings_of_the_manual() -> str:
    """The settings file of docs/installing.md: PROD."""
    given = blocks("First installation, with systemd")
    return next(block.text for block in given if block.language == "toml")


def test_roles_are_told_in_the_manual() -> None:
    """The table of docs/running.md is this one."""
    manual = (_ROOT / "docs" / "running.md").read_text("utf-8")
    rows = re.findall(r"^\| `rubrica-(\w+)` \| (.*) \|$", manual, re.MULTILINE)
    told = {
        tuple(words.split()): role
        for role, all_words in rows
        for words in re.findall(r"`([\w -]+)`", all_words)
    }

    assert told == {words: role for words, role in ROLES.items() if role is not None}


def test_drop_in_that_was_removed_hides_none_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemctl(1) shows no further than one that it has yet to miss."""
    reloaded = tmp_path / "reloaded"
    told = tmp_path / "systemctl"
    told.write_text(
        "#!/bin/sh\n"
        f"[ $1 = daemon-reload ] && exec touch {reloaded}\n"
        "echo '[Service]'\n"
        f"[ -e {reloaded} ] || exit 1\n"
        "echo LoadCredential=firma.pin:/etc/rubrica/hsm/firma.pin\n"
    )
    told.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert credentials_of(unit_text("signing")) == [
        "LoadCredential=firma.pin:/etc/rubrica/hsm/firma.pin"
    ]

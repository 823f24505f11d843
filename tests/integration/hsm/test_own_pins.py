"""PINs that are root's own: taken from a role, made for a new token, told where open.

Source: docs/hsm.md, "PINs".
"""

import os
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.cli import main
from appliance.operations.doctor.pin_checks import look_at_pins
from appliance.settings import Settings, SettingsError
from hsm_config.provisioning.own_pins import OwnPins
from tests.support.hsm.pin_folder import ROLE, PinFolder, owned

_CLOSED: Final = (0, 0, "0o700")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="who is not root can make nothing root's own"
)


@pytest.fixture
def pin_folder(tmp_path: Path) -> PinFolder:
    """Of an installation of 0.1.0: the folder is the workers' user's."""
    place = PinFolder(tmp_path)
    place.folder.mkdir(mode=0o700)
    os.chown(place.folder, ROLE, ROLE)
    return place


def _prepared(pin_folder: PinFolder, settings: Settings) -> None:
    """The HSM has its keys: the root's certificate is there."""
    settings.root_file.parent.mkdir(parents=True, exist_ok=True)
    settings.root_file.write_text("a certificate")
    assert settings.root_file.is_relative_to(pin_folder.root)


def test_pins_of_a_role_become_roots_own(pin_folder: PinFolder) -> None:
    """Folder and files; the drop-in names each PIN and no SO PIN."""
    pin_folder.put("firma.pin", "firma-so.pin", "pki.pin", "firma-b.pin")
    settings = pin_folder.settings("firma-b")
    _prepared(pin_folder, settings)

    told = pin_folder.pins(settings).take()

    assert owned(pin_folder.folder) == _CLOSED
    assert {owned(path) for path in pin_folder.folder.iterdir()} == {(0, 0, "0o600")}
    assert pin_folder.handed() == [
        pin_folder.line(f"{name}.pin") for name in ("firma", "pki", "firma-b")
    ]
    assert owned(pin_folder.drop_in) == (0, 0, "0o644")
    assert len([line for line in told if line.startswith("taken ")]) == 5


def test_role_may_read_and_not_write_when_systemd_reads_the_drop_in(
    pin_folder: PinFolder,
) -> None:
    """A worker that starts just then has its PIN, and chooses no file for root."""
    pin_folder.put("firma.pin", "pki.pin")

    pin_folder.pins(pin_folder.settings()).take()

    lines = [pin_folder.line("firma.pin"), pin_folder.line("pki.pin")]
    assert pin_folder.reloads == [[*lines, "0", str(ROLE), "0o710"]]


def test_second_time_changes_nothing(pin_folder: PinFolder) -> None:
    """No file is written, systemd reads nothing again, nothing is told."""
    pin_folder.put("firma.pin", "pki.pin")
    pins = pin_folder.pins(pin_folder.settings())
    pins.take()
    before = pin_folder.drop_in.stat().st_mtime_ns

    assert pins.take(make=True) == []
    assert pins.take() == []
    assert pin_folder.drop_in.stat().st_mtime_ns == before
    assert len(pin_folder.reloads) == 1


@pytest.mark.parametrize("owner", [0, ROLE])
def test_reload_that_failed_is_made_up_for(pin_folder: PinFolder, owner: int) -> None:
    """By the next run, whoever's PINs are by then: the drop-in is the same."""
    os.chown(pin_folder.folder, owner, owner)
    pin_folder.put("firma.pin", "pki.pin", owner=owner)
    pin_folder.is_refused = True
    pins = pin_folder.pins(pin_folder.settings())

    with pytest.raises(SettingsError, match="daemon-reload"):
        pins.take()
    failed = (pin_folder.handed(), list(pin_folder.reloads), owned(pin_folder.folder))
    pins.take()

    lines = [pin_folder.line("firma.pin"), pin_folder.line("pki.pin")]
    assert failed == (lines, [], (0, owner, "0o710"))
    assert pin_folder.reloads == [[*lines, "0", str(owner), "0o710"]]
    assert owned(pin_folder.folder) == _CLOSED
    assert pins.take() == []
    assert len(pin_folder.reloads) == 1


def test_reload_comes_before_a_file_is_closed_by_hand(pin_folder: PinFolder) -> None:
    """Whoever closed the folder: a PIN that is a role's yet may be in no unit read."""
    pin_folder.put("firma.pin", "pki.pin")
    pins = pin_folder.pins(pin_folder.settings())
    pins.take()
    os.chown(pin_folder.folder / "pki.pin", ROLE, ROLE)

    pins.take()

    assert len(pin_folder.reloads) == 2


def test_no_systemd_is_told_where_none_runs(
    pin_folder: PinFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container, or an image that is made; where one runs, it has to answer."""
    pin_folder.put("firma.pin", "pki.pin")
    programs, runs = tmp_path / "bin", tmp_path / "run"
    programs.mkdir()
    (programs / "systemctl").write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setattr("hsm_config.provisioning.own_pins._SYSTEMD", runs)
    pins = OwnPins(
        pin_folder.settings(), folder=pin_folder.folder, drop_in=pin_folder.drop_in
    )

    runs.mkdir()
    with pytest.raises(SettingsError, match="broken"):
        pins.take()
    runs.rmdir()
    pins.take()

    assert owned(pin_folder.folder) == _CLOSED
    assert pin_folder.handed() == [
        pin_folder.line("firma.pin"),
        pin_folder.line("pki.pin"),
    ]


def test_missing_pins_are_made_for_new_tokens_alone(pin_folder: PinFolder) -> None:
    """Root's own from their first byte on, and only where it is asked for."""
    pins = pin_folder.pins(pin_folder.settings())

    nothing = pins.take()
    made = pins.take(make=True)

    assert not [line for line in nothing if line.startswith("made ")]
    assert len([line for line in made if line.startswith("made ")]) == 5
    names = {path.name for path in pin_folder.folder.iterdir()}
    assert names == {"firma.pin", "firma-so.pin", "pki.pin", "pki-so.pin"}
    assert {owned(path) for path in pin_folder.folder.iterdir()} == {(0, 0, "0o600")}
    assert pin_folder.handed() == [
        pin_folder.line("firma.pin"),
        pin_folder.line("pki.pin"),
    ]


def test_lost_pin_is_not_made_anew(pin_folder: PinFolder) -> None:
    """No other opens the token: its name and the remedy are told."""
    settings = pin_folder.settings()
    _prepared(pin_folder, settings)
    pin_folder.put("firma.pin")

    with pytest.raises(SettingsError, match=r"pki\.pin.*bring it back from a backup"):
        pin_folder.pins(settings).take(make=True)

    assert {path.name for path in pin_folder.folder.iterdir()} == {"firma.pin"}


def test_member_that_joins_gets_a_pin_and_loses_it_for_good(
    pin_folder: PinFolder,
) -> None:
    """The HSM has its keys by then; what was handed over is made no second time."""
    pin_folder.put("firma.pin", "pki.pin")
    settings = pin_folder.settings("firma-b")
    _prepared(pin_folder, settings)
    pins = pin_folder.pins(settings)

    pins.take(make=True)

    assert pin_folder.line("firma-b.pin") in pin_folder.handed()
    (pin_folder.folder / "firma-b.pin").unlink()
    with pytest.raises(SettingsError, match=r"firma-b\.pin"):
        pins.take(make=True)


def test_pin_that_is_away_is_still_handed_over_once_it_is_back(
    pin_folder: PinFolder,
) -> None:
    """Until then systemd says which file is missing."""
    pin_folder.put("firma.pin", "pki.pin")
    pins = pin_folder.pins(pin_folder.settings())
    pins.take()
    (pin_folder.folder / "pki.pin").rename(pin_folder.root / "pki.pin")

    pins.take()

    assert pin_folder.handed() == [
        pin_folder.line("firma.pin"),
        pin_folder.line("pki.pin"),
    ]


def test_killed_between_so_pin_and_pin_goes_on(pin_folder: PinFolder) -> None:
    """What was made stays, what was not is made."""
    pin_folder.put("firma-so.pin")

    pin_folder.pins(pin_folder.settings()).take(make=True)

    assert (pin_folder.folder / "firma-so.pin").read_text() == "1234\n"
    assert (pin_folder.folder / "firma.pin").exists()


def test_pins_that_are_asked_for_are_not_made(pin_folder: PinFolder) -> None:
    """`hsm init --ask-pin`: the SO PINs alone."""
    pin_folder.pins(pin_folder.settings()).take(make=True, asked=True)

    names = {path.name for path in pin_folder.folder.iterdir()}
    assert names == {"firma-so.pin", "pki-so.pin"}
    assert not pin_folder.drop_in.exists()


def test_pins_of_another_makes_tokens_are_their_owners_to_bring(
    pin_folder: PinFolder,
) -> None:
    """None is made; which one is missing is told."""
    pin_folder.put("firma.pin", owner=0)

    with pytest.raises(SettingsError, match=r"hsm\.pki\.pin_file.*HSM's owner"):
        pin_folder.pins(pin_folder.settings(profile="luna")).take(make=True)

    assert {path.name for path in pin_folder.folder.iterdir()} == {"firma.pin"}


def test_link_is_not_followed(pin_folder: PinFolder) -> None:
    """Whose folder it was could have had root hand over any file."""
    secret = pin_folder.root / "shadow"
    secret.write_text("root's\n")
    secret.chmod(0o640)
    pin_folder.put("pki.pin")
    (pin_folder.folder / "firma.pin").symlink_to(secret)

    with pytest.raises(SettingsError, match=r"firma\.pin: is a link"):
        pin_folder.pins(pin_folder.settings()).take()

    assert not pin_folder.drop_in.exists()
    assert owned(secret) == (0, 0, "0o640")
    assert owned(pin_folder.folder) == (ROLE, ROLE, "0o700")


def test_folder_that_is_a_link_is_not_followed(pin_folder: PinFolder) -> None:
    """Nor is a link to nowhere taken for a folder that is not there."""
    there = pin_folder.folder.rename(pin_folder.root / "there")
    pin_folder.folder.symlink_to(there)

    for _ in range(2):
        with pytest.raises(SettingsError, match=r"/hsm: is a link"):
            pin_folder.pins(pin_folder.settings()).take()
        there = there.rename(pin_folder.root / "away")

    assert owned(pin_folder.root / "away") == (ROLE, ROLE, "0o700")


@pytest.mark.parametrize(
    "key", ["softhsm_conf", "module", "profile", "firma.pin_file", "replicas.0.config"]
)
@pytest.mark.parametrize("way", ["plain", "dots", "link"])
def test_folder_with_what_workers_read_is_not_closed(
    pin_folder: PinFolder, key: str, way: str
) -> None:
    """It is told by its key, and everything is the workers' user's as before."""
    pin_folder.put("firma.pin", "pki.pin", "firma-b.pin")
    (pin_folder.folder / "below").mkdir()
    pin_folder.put("below/luna.toml")
    (pin_folder.root / "luna").symlink_to(pin_folder.folder / "below")
    path = {
        "plain": f"{pin_folder.folder}/below/luna.toml",
        "dots": f"{pin_folder.root}/none/../hsm/below/luna.toml",
        "link": f"{pin_folder.root}/luna/luna.toml",
    }[way]
    settings = pin_folder.settings("firma-b", hsm=_with(pin_folder, key, path))

    with pytest.raises(SettingsError, match=rf"luna\.toml \(hsm\.{key}\) is no PIN"):
        pin_folder.pins(settings).take()

    assert owned(pin_folder.folder) == (ROLE, ROLE, "0o700")
    names = ("firma.pin", "below/luna.toml")
    theirs = {owned(pin_folder.folder / name) for name in names}
    assert theirs == {(ROLE, ROLE, "0o600")}
    assert not pin_folder.drop_in.exists()


def _with(pin_folder: PinFolder, key: str, path: str) -> dict[str, Any]:
    """A path under a key of `[hsm]`."""
    if key == "firma.pin_file":
        return {"firma": {"label": "firma", "pin_file": path}}
    if key == "replicas.0.config":
        file = str(pin_folder.folder / "firma-b.pin")
        return {"replicas": [{"label": "firma-b", "pin_file": file, "config": path}]}
    return {key: path}


def test_folder_that_a_drop_in_has_workers_look_into_is_not_closed(
    pin_folder: PinFolder,
) -> None:
    """A library's configuration; what systemd reads is in nobody's way."""
    pin_folder.put("firma.pin", "pki.pin")
    own = pin_folder.root / "rubrica-signing@.service.d" / "own.conf"
    own.parent.mkdir()
    line = f"Environment=CONF={pin_folder.folder}"
    own.write_text(f"[Service]\n# {line}\n{line}\n")

    with pytest.raises(SettingsError, match=r"CONF=.*/own\.conf\) is no PIN"):
        pin_folder.pins(pin_folder.settings()).take()

    assert owned(pin_folder.folder) == (ROLE, ROLE, "0o700")
    own.write_text(
        f"[Service]\n{line}-client\nLoadCredential=a:{pin_folder.folder}/a\n"
    )
    pin_folder.pins(pin_folder.settings()).take()
    assert owned(pin_folder.folder) == _CLOSED


def test_name_alone_of_a_pin_from_elsewhere_is_no_file(pin_folder: PinFolder) -> None:
    """A credential's, wherever the settings say that it lies."""
    pin_folder.put("pki.pin")
    named = str(pin_folder.folder / "below" / "firma.pin")
    firma = {"label": "firma", "pin_file": named, "pin_source": "credential"}

    pin_folder.pins(pin_folder.settings(hsm={"firma": firma})).take()

    assert owned(pin_folder.folder) == _CLOSED


@pytest.mark.parametrize("name", ["a b.pin", "50%.pin", "a:b.pin", "ñ.pin", "a\n.pin"])
def test_pin_with_a_name_that_a_unit_reads_otherwise_is_refused(
    pin_folder: PinFolder, name: str
) -> None:
    """Before anything is closed."""
    pin_folder.put(name)

    with pytest.raises(SettingsError, match="no file of such a name"):
        pin_folder.pins(
            pin_folder.settings(pin_file=str(pin_folder.folder / name))
        ).take()

    assert owned(pin_folder.folder) == (ROLE, ROLE, "0o700")


def test_lines_of_another_hsm_stay(pin_folder: PinFolder) -> None:
    """`hsm move` needs both HSMs' PINs; those whose file is gone go."""
    pin_folder.put("firma.pin", "pki.pin", "old.pin")
    pin_folder.drop_in.parent.mkdir()
    lines = [pin_folder.line("old.pin"), pin_folder.line("gone.pin")]
    pin_folder.drop_in.write_text("\n".join(["[Service]", *lines]))

    pin_folder.pins(pin_folder.settings()).take()

    assert pin_folder.handed() == [
        pin_folder.line(name) for name in ("firma.pin", "pki.pin", "old.pin")
    ]


def test_pin_elsewhere_is_left_and_told(pin_folder: PinFolder) -> None:
    """Its folder may be anybody's; the worker reads it by itself as ever."""
    other = pin_folder.root / "elsewhere.pin"
    other.write_text("1234\n")
    os.chown(other, ROLE, ROLE)
    settings = pin_folder.settings(pin_file=str(other))

    told = pin_folder.pins(settings).take()

    assert owned(other)[0] == ROLE
    assert not pin_folder.drop_in.exists()
    assert told[-1].startswith(f"left  {other}: ")


@pytest.mark.parametrize("source", ["credential", "prompt"])
def test_pin_from_elsewhere_is_handed_over_by_no_line(
    pin_folder: PinFolder, source: str
) -> None:
    """What the operator's own drop-in encrypts, or nobody keeps."""
    pin_folder.put("firma.pin", "pki.pin")
    pin_folder.pins(pin_folder.settings()).take()

    pin_folder.pins(pin_folder.settings(pin_source=source)).take(make=True)

    assert pin_folder.handed() == []


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `systemctl cat` tells of the workers' unit."""
    programs = tmp_path / "bin"
    programs.mkdir()
    text = programs / "unit"
    text.write_text("[Service]\n")
    (programs / "systemctl").write_text(f"#!/bin/sh\ncat {text}\n")
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return text


def test_doctor_tells_where_a_pin_lies_open(pin_folder: PinFolder, unit: Path) -> None:
    """Each file, with the command that closes it; then that none is handed over."""
    pin_folder.put("firma.pin", "firma-so.pin", "pki.pin")
    settings = pin_folder.settings()

    before = list(look_at_pins(settings, pin_folder.folder))
    pin_folder.pins(settings).take()
    unhanded = list(look_at_pins(settings, pin_folder.folder))
    unit.write_text(pin_folder.drop_in.read_text())
    after = list(look_at_pins(settings, pin_folder.folder))

    names = ("firma.pin", "firma-so.pin", "pki.pin")
    told = [each.what for each in before]
    assert [
        f"{pin_folder.folder / name}: others than root" in what
        for name, what in zip(names, told, strict=True)
    ] == [True] * 3
    assert {each.remedy for each in [*before, *unhanded]} == {"rubrica hsm pins"}
    assert ["no worker is handed it" in each.what for each in unhanded] == [True] * 2
    assert after == []


def test_command_says_whether_there_are_pins(
    pin_folder: PinFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of none that are there it does not say whose they are."""
    settings = pin_folder.settings()
    monkeypatch.setattr("hsm_config.cli.load_settings", lambda _: settings)
    monkeypatch.setattr("hsm_config.cli.os.geteuid", lambda: 0)
    monkeypatch.setattr(OwnPins, "take", lambda *_, **__: [])
    words = ["--settings", str(tmp_path / "none"), "hsm", "pins"]

    assert main(words) == 0
    assert capsys.readouterr().out == (
        "Nothing to do: no PIN is there yet; `rubrica hsm init` makes them.\n"
    )
    pin_folder.put("firma.pin")
    assert main(words) == 0
    assert "PINs that are there are root's own" in capsys.readouterr().out


def test_doctor_tells_of_a_pin_that_is_gone(pin_folder: PinFolder, unit: Path) -> None:
    """Its file, though the unit names it; and where it comes back from."""
    pin_folder.put("firma.pin", "pki.pin")
    settings = pin_folder.settings()
    pin_folder.pins(settings).take()
    unit.write_text(pin_folder.drop_in.read_text())
    settings.hsm.firma.pin_file.unlink()

    (found,) = look_at_pins(settings, pin_folder.folder)

    assert found.what.startswith(f"{settings.hsm.firma.pin_file}: is not there")
    assert "backup of the secrets" in found.remedy


def test_doctor_tells_of_a_pin_elsewhere(pin_folder: PinFolder, unit: Path) -> None:
    """Where it is to be moved, and what the settings are to say then."""
    assert unit.exists()
    other = pin_folder.root / "elsewhere.pin"
    other.write_text("1234\n")
    other.chmod(0o640)

    found = list(
        look_at_pins(pin_folder.settings(pin_file=str(other)), pin_folder.folder)
    )

    assert "0640 root root" in found[0].what
    place_of = [each.remedy.split("; ")[0] for each in found]
    assert place_of == [
        f"mv -n {other} {pin_folder.folder / name}"
        for name in ("elsewhere.pin", "elsewhere-2.pin")
    ]
    assert f"hsm.firma.pin_file = {pin_folder.folder}/elsewhere.pin" in found[0].remedy
    assert "1234" not in repr(found)


@pytest.mark.parametrize("taken", ["firma.pin", "firma-so.pin", "a link"])
def test_pin_elsewhere_is_moved_onto_no_other(
    pin_folder: PinFolder, unit: Path, taken: str
) -> None:
    """A name that is taken, or whose SO PIN's is, is not told for another token."""
    unit.write_text("[Service]\nLoadCredential=firma.pin:/etc/rubrica/hsm/firma.pin\n")
    if taken == "a link":
        (pin_folder.folder / "firma.pin").symlink_to("/nowhere")
    else:
        pin_folder.put(taken)
    other = pin_folder.root / "hsm-new" / "firma.pin"
    other.parent.mkdir()
    for path in (other, other.with_name("firma-so.pin")):
        path.write_text("1234\n")
        path.chmod(0o600)
        os.chown(path, ROLE, ROLE)
    settings = pin_folder.settings("firma-b", pin_file=str(other))

    found = [each.remedy for each in look_at_pins(settings, pin_folder.folder)]
    told = pin_folder.pins(settings).take()

    moved = [remedy.split("; ")[0] for remedy in found]
    assert moved[:2] == [
        f"mv -n {other} {pin_folder.folder}/firma-2.pin",
        f"mv -n {other.with_name('firma-so.pin')} {pin_folder.folder}/firma-2-so.pin",
    ]
    assert len(set(moved)) == 6
    assert f"move it to {pin_folder.folder}/firma-2.pin" in told[-3]
    # Root's by now, it is handed over no more than before.
    os.chown(other.parent, 0, 0)
    os.chown(other, 0, 0)
    handed = [each.what for each in look_at_pins(settings, pin_folder.folder)]
    assert f"{other}: is root's own, and no worker is handed it" in handed

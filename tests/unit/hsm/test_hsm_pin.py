"""PIN files, and when a PIN must not even be tried."""

import errno
import stat
from pathlib import Path

import pkcs11
import pytest

from appliance.domain.vocab import Environment
from appliance.settings import SettingsError, TokenSettings
from hsm_config.pkcs11.module import login_refusal
from hsm_config.pkcs11.pin import (
    Pin,
    is_given,
    make_pin,
    obtain_pin,
    read_pin,
    write_new,
)

FLAG = pkcs11.TokenFlag


def _file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "firma.pin"
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("content", [b"12 34", b"12 34\n", b"12 34\r\n"])
def test_line_end_is_no_part_of_a_pin(tmp_path: Path, content: bytes) -> None:
    """Editors add it; blanks inside are kept."""
    pin = read_pin(_file(tmp_path, content), Environment.PROD)

    assert pin.value == "12 34"


@pytest.mark.parametrize("content", [b"", b"\n", b"1234\n5678\n", b"\xff\xfe12"])
def test_file_without_one_line_is_refused(tmp_path: Path, content: bytes) -> None:
    """Empty, several lines, not text: the error quotes nothing of it."""
    with pytest.raises(SettingsError) as caught:
        read_pin(_file(tmp_path, content), Environment.PROD)

    assert "1234" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_pin_file_open_to_others_is_refused_in_production(
    tmp_path: Path, mode: int
) -> None:
    """The remedy stands in the error."""
    with pytest.raises(SettingsError, match="mode 0600"):
        read_pin(_file(tmp_path, b"1234", mode), Environment.PROD)


def test_pin_file_open_to_others_is_warned_about_elsewhere(tmp_path: Path) -> None:
    """A trial goes on."""
    with pytest.warns(UserWarning, match="mode 0600"):
        pin = read_pin(_file(tmp_path, b"1234", 0o644), Environment.PREPROD)

    assert pin.value == "1234"


def test_systemd_credential_may_show_a_group_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask of its ACL looks like one; the world's bits are still refused."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))

    assert read_pin(_file(tmp_path, b"1234", 0o440), Environment.PROD).value == "1234"
    with pytest.raises(SettingsError):
        read_pin(_file(tmp_path, b"1234", 0o444), Environment.PROD)


def test_pin_does_not_show_itself() -> None:
    """Neither repr nor str nor a container's repr."""
    pin = Pin("1234")

    assert "1234" not in f"{pin!r} {pin} {[pin]}"


def test_made_pin_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    """Random, of the length asked for, 0600, and never overwritten."""
    path = tmp_path / "secrets" / "firma.pin"

    pin = make_pin(path, 32)

    assert len(pin.value) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_pin(path, Environment.PROD) == pin
    with pytest.raises(SettingsError, match="cannot be written"):
        make_pin(path, 32)
    assert read_pin(path, Environment.PROD) == pin


def test_write_new_leaves_no_temporary_file(tmp_path: Path) -> None:
    """Also where the file exists already."""
    path = tmp_path / "a"
    write_new(path, b"1", 0o644)

    with pytest.raises(FileExistsError):
        write_new(path, b"2", 0o644)

    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"1"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (FLAG.USER_PIN_INITIALIZED | FLAG.USER_PIN_LOCKED, "locked"),
        (FLAG.USER_PIN_INITIALIZED | FLAG.USER_PIN_FINAL_TRY, "one try"),
        (FLAG.TOKEN_INITIALIZED, "no user PIN"),
    ],
)
def test_pin_is_not_tried_where_that_could_lock_it(
    flags: pkcs11.TokenFlag, said: str
) -> None:
    """A program does not use up a token's last try."""
    assert said in str(login_refusal(flags))


def test_pin_is_tried_on_a_healthy_token() -> None:
    """A low count alone does not stop it."""
    flags = FLAG.USER_PIN_INITIALIZED | FLAG.USER_PIN_COUNT_LOW

    assert login_refusal(flags) is None


def _token(source: str, folder: Path) -> TokenSettings:
    return TokenSettings.model_validate(
        {"label": "firma-1", "pin_source": source, "pin_file": folder / "firma.pin"}
    )


def test_systemd_credential_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the name of `pin_file` counts; without systemd the remedy is named."""
    token = _token("credential", Path("/nowhere"))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    _file(tmp_path, b"1234", 0o440)

    assert obtain_pin(token, Environment.PROD).value == "1234"
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(SettingsError, match="--ask-pin"):
        obtain_pin(token, Environment.PROD)


def test_pin_that_systemd_hands_over_is_read_in_its_files_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every other secret is; a file without one is read itself."""
    own, handed = tmp_path / "own", tmp_path / "handed"
    own.mkdir()
    handed.mkdir()
    _file(own, b"of the file")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(handed))
    monkeypatch.setattr("hsm_config.pkcs11.pin.PIN_FOLDER", own)
    token = _token("file", own)

    before = obtain_pin(token, Environment.PROD)
    _file(handed, b"handed over", 0o440)
    after = obtain_pin(token, Environment.PROD)

    assert (before.value, after.value) == ("of the file", "handed over")
    assert is_given(own / "firma.pin")
    (own / "firma.pin").unlink()
    assert is_given(own / "firma.pin")
    assert not is_given(own / "pki.pin")


def test_pin_of_another_folder_is_not_the_one_that_systemd_hands_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another HSM's file may have the same name: it is read, or missed, itself."""
    handed, another = tmp_path / "handed", tmp_path / "hsm-new"
    handed.mkdir()
    another.mkdir()
    _file(handed, b"of the first HSM", 0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(handed))
    token = _token("file", another)

    assert not is_given(token.pin_file)
    with pytest.raises(SettingsError, match=r"hsm-new/firma\.pin: .*is not there"):
        obtain_pin(token, Environment.PROD)
    _file(another, b"of the other")
    assert obtain_pin(token, Environment.PROD).value == "of the other"


def test_pin_in_a_closed_folder_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may well be there: it is not said to be missing."""

    def refuse(_: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)

    with pytest.raises(SettingsError, match="rubrica hsm pins"):
        is_given(Path("/etc/rubrica/hsm/firma.pin"))


def test_pin_in_the_environment_is_refused_in_production(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere it is taken, by the token's label."""
    token = _token("environment", tmp_path)
    monkeypatch.setenv("RUBRICA_PIN_FIRMA_1", "1234")

    assert obtain_pin(token, Environment.PREPROD).value == "1234"
    with pytest.raises(SettingsError, match="PROD takes no PIN") as caught:
        obtain_pin(token, Environment.PROD)
    assert "1234" not in str(caught.value)
    monkeypatch.delenv("RUBRICA_PIN_FIRMA_1")
    with pytest.raises(SettingsError, match="RUBRICA_PIN_FIRMA_1 is not set"):
        obtain_pin(token, Environment.PREPROD)


def test_pin_is_asked_for_where_somebody_can_answer(tmp_path: Path) -> None:
    """A worker cannot ask; an empty answer is none."""
    token = _token("prompt", tmp_path)

    assert obtain_pin(token, Environment.PROD, lambda _: "1234").value == "1234"
    with pytest.raises(SettingsError, match="nobody is here"):
        obtain_pin(token, Environment.PROD)
    with pytest.raises(SettingsError, match="no PIN was entered"):
        obtain_pin(token, Environment.PROD, lambda _: "")

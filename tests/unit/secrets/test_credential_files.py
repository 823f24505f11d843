"""Secrets that systemd hands to a service: read in the place of their files."""

from pathlib import Path

import pytest

from appliance.database.password_files import read_password
from appliance.secrets.key_files import KeyFile, read_key_ring
from appliance.settings import SettingsError

_ONE, _TWO = "11" * 32, "22" * 32


def _credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    folder = tmp_path / "credentials"
    folder.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
    (folder / name).write_text(text)
    # As systemd shows the mask of the ACL by which its service may read it.
    (folder / name).chmod(0o440)


def test_credential_is_read_in_its_files_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service cannot read root's own file, and need not."""
    _credential(tmp_path, monkeypatch, "data-key", _TWO)
    named = Path("/etc/rubrica/secrets/data-key")

    assert read_key_ring(named).keys[1] == bytes.fromhex(_TWO)
    assert KeyFile(named).ring().keys[1] == bytes.fromhex(_TWO)


def test_password_is_read_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a database or of Redis."""
    _credential(tmp_path, monkeypatch, "database", "s3creta\n")

    assert read_password(Path("/etc/rubrica/secrets/database")) == "s3creta"


def test_file_without_a_credential_is_read_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And must still be its owner's alone."""
    _credential(tmp_path, monkeypatch, "pepper", _TWO)
    own = tmp_path / "data-key"
    own.write_text(_ONE)
    own.chmod(0o440)

    with pytest.raises(SettingsError, match="others may read it"):
        read_key_ring(own)
    own.chmod(0o400)
    assert read_key_ring(own).keys[1] == bytes.fromhex(_ONE)


def test_credential_open_to_all_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no credential of systemd's does not pass for one."""
    _credential(tmp_path, monkeypatch, "data-key", _ONE)
    (tmp_path / "credentials" / "data-key").chmod(0o444)

    with pytest.raises(SettingsError, match="others may read it"):
        read_key_ring(tmp_path / "data-key")

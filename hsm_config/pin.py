"""PINs: read from files, never shown, made where `rubrica hsm init` may.

A PIN lives in a `Pin` alone, whose repr hides it, so that it reaches no log,
no traceback and no error by accident.
"""

import os
import secrets
import stat
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from appliance.domain.vocab import Environment
from appliance.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Pin:
    """A PIN that does not show itself."""

    value: str = field(repr=False)


def read_pin(path: Path, environment: Environment) -> Pin:
    """Read a PIN file: one line, without its line end.

    Args:
        path: the file.
        environment: in PROD a file that others may read is refused; elsewhere
            it is warned about.

    Returns:
        The PIN.

    Raises:
        SettingsError: not there, empty, not text, or open to others in PROD.
    """
    try:
        mode = path.stat().st_mode
        value = path.read_text("utf-8").rstrip("\r\n")
    except OSError as exc:
        msg = f"{path}: the PIN file cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except UnicodeDecodeError:
        # The cause is left out: it quotes the bytes that it could not read.
        msg = f"{path}: the PIN file is not UTF-8 text"
        raise SettingsError(msg) from None
    if not value or "\n" in value:
        msg = f"{path}: the PIN file must hold one line, the PIN"
        raise SettingsError(msg)
    if mode & _bits_too_open(path):
        msg = f"{path}: others may read the PIN file; make it mode 0600"
        if environment is Environment.PROD:
            raise SettingsError(msg)
        warnings.warn(msg, stacklevel=2)
    return Pin(value)


def make_pin(path: Path, chars: int) -> Pin:
    """Make a PIN of hexadecimal digits and keep it in a new 0600 file.

    Args:
        path: the file, which must not exist.
        chars: its length.

    Returns:
        The PIN, which is on the disk for good when this returns.

    Raises:
        SettingsError: the file exists or cannot be written.
    """
    value = secrets.token_hex((chars + 1) // 2)[:chars]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(path, f"{value}\n".encode(), 0o600)
    except OSError as exc:
        msg = f"{path}: the PIN file cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc
    return Pin(value)


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that must not exist, wholly or not at all.

    A run that is killed half-way leaves a temporary file and no `path`.

    Args:
        path: the file.
        content: its bytes.
        mode: its mode, whatever the umask.

    Raises:
        OSError: it exists already, or the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, never replaces what is there.
        os.link(temporary, path)
    finally:
        temporary.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _bits_too_open(path: Path) -> int:
    """Mode bits that a PIN file must not have.

    systemd hands a credential to a service through an ACL, whose mask shows as
    the group's read bit; the folder itself is closed to all others.
    """
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if credentials and path.resolve().is_relative_to(Path(credentials).resolve()):
        return stat.S_IRWXO
    return stat.S_IRWXG | stat.S_IRWXO

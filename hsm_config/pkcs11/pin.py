"""PINs: read where the settings say, never shown, made where `rubrica hsm init` may.

A PIN lives in a `Pin` alone, whose repr hides it, so that it reaches no log,
no traceback and no error by accident.
"""

import os
import re
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from appliance.domain.vocab import Environment
from appliance.secrets.credential_files import bits_too_open, credentials, given_file
from appliance.secrets.pin_places import PIN_FOLDER
from appliance.settings import SettingsError, TokenSettings

AskPin: TypeAlias = Callable[[str], str]
"""Shows a prompt and returns what was entered, unseen."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A PIN that does not show itself."""

    value: str = field(repr=False)


def obtain_pin(
    token: TokenSettings, environment: Environment, ask: AskPin | None = None
) -> Pin:
    """Have a token's PIN from where the settings say that it is.

    Args:
        token: the token.
        environment: PROD takes no PIN from the environment, which children
            inherit and `/proc` shows.
        ask: asks an operator; None where nobody is there to answer.

    Returns:
        The PIN.

    Raises:
        SettingsError: it is not there, or must not be taken from there.
    """
    if token.pin_source == "prompt":
        return _asked(token, ask)
    if token.pin_source == "environment":
        return _from_environment(token, environment)
    return read_pin(pin_path(token), environment)


def pin_path(token: TokenSettings) -> Path:
    """The file with a token's PIN: its own, or a systemd credential.

    Raises:
        SettingsError: a credential is wanted and systemd gives none.
    """
    if token.pin_source != "credential":
        return given_pin(token.pin_file)
    folder = credentials()
    if folder is None:
        msg = f"token {token.label}: no systemd credentials here; try --ask-pin"
        raise SettingsError(msg)
    return folder / token.pin_file.name


def given_pin(path: Path) -> Path:
    """Where a PIN is to be read: from its credential, if it has one.

    Another HSM's PIN may have the same name in another folder, and no credential says
    which file it is of: it counts for those alone that `rubrica hsm pins` hands over.

    Args:
        path: the file that the settings name.
    """
    return given_file(path) if path.parent == PIN_FOLDER else path


def pin_whence(token: TokenSettings) -> str:
    """Where a token's PIN comes from, for people."""
    return {
        "file": str(token.pin_file),
        "credential": f"systemd credential {token.pin_file.name}",
        "environment": f"environment variable {_variable(token)}",
        "prompt": "the terminal",
    }[token.pin_source]


def _asked(token: TokenSettings, ask: AskPin | None) -> Pin:
    if ask is None:
        msg = f"token {token.label}: nobody is here to be asked for the PIN"
        raise SettingsError(msg)
    value = ask(f"PIN of token {token.label}: ")
    if not value:
        msg = f"token {token.label}: no PIN was entered"
        raise SettingsError(msg)
    return Pin(value)


def _from_environment(token: TokenSettings, environment: Environment) -> Pin:
    name = _variable(token)
    if environment is Environment.PROD:
        msg = f"token {token.label}: PROD takes no PIN from the environment ({name})"
        raise SettingsError(msg)
    value = os.environ.get(name)
    if not value:
        msg = f"token {token.label}: {name} is not set"
        raise SettingsError(msg)
    return Pin(value)


def _variable(token: TokenSettings) -> str:
    """Name of a token's variable: other characters than ASCII's become `_`."""
    label = re.sub(r"[^A-Z0-9]", "_", token.label.upper())
    return f"RUBRICA_PIN_{label}"


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
    except FileNotFoundError as exc:
        msg = f"{path}: the PIN file is not there"
        raise SettingsError(msg) from exc
    except PermissionError as exc:
        # In a folder that is closed to it, nobody is told whether there is a file.
        told = f"{exc.strerror}: it is root's own, or not there"
        msg = f"{path}: the PIN file cannot be read ({told})"
        raise SettingsError(msg) from exc
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
    if mode & bits_too_open(path):
        msg = f"{path}: others may read the PIN file; make it mode 0600"
        if environment is Environment.PROD:
            raise SettingsError(msg)
        warnings.warn(msg, stacklevel=2)
    return Pin(value)


def is_given(path: Path) -> bool:
    """Whether a PIN file is there, or its systemd credential.

    Args:
        path: the file that the settings name.

    Raises:
        SettingsError: it lies where this user may not look.
    """
    try:
        return given_pin(path).exists()
    except PermissionError as exc:
        msg = (
            f"{path}: lies where this user may not look, and systemd does not hand it "
            "over; as root: rubrica hsm pins"
        )
        raise SettingsError(msg) from exc


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
    temporary = _written(path, content, mode)
    try:
        # A link, unlike a rename, never replaces what is there.
        os.link(temporary, path)
    finally:
        temporary.unlink()
    _sync_folder(path)


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Put a file in the place of another, wholly or not at all.

    Args:
        path: the file.
        content: its bytes.
        mode: its mode, whatever the umask.

    Raises:
        OSError: the disk refuses.
    """
    temporary = _written(path, content, mode)
    try:
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path)


def _written(path: Path, content: bytes, mode: int) -> Path:
    """A temporary file beside another, on the disk with all of its content."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink()
        raise
    return temporary


def _sync_folder(path: Path) -> None:
    """Have the entry of a file survive a loss of power."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

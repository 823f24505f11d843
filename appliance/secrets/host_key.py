"""A signing host's own key (Ed25519): a file of one host, and of no backup.

The private half is `{data_dir}/host/host-key.pem`, mode 0600, of the signing workers'
user. It is in no database and no HSM: whoever has those has not the host. Fronts pin
the public half by `rubrica hsm admit`. A lost key is replaced by a new one, and that
one is admitted: nothing is sealed to this key, so nothing is lost with it.

Source: RFC 8032; RFC 8410 (PKCS#8, SubjectPublicKeyInfo); RFC 7468 (PEM).
"""

import hashlib
import os
import secrets
import stat
from base64 import b64encode
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from appliance.settings import SettingsError
from appliance.system.durable_files import sync_folder

_OTHERS: Final = 0o077
_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_GROUP: Final = 4
"""Hexadecimal digits of a fingerprint between two blanks."""


class HostKey:
    """The private half of a host's key, which does not show itself."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private

    @property
    def public(self) -> bytes:
        """The public half, 32 bytes."""
        return self._private.public_key().public_bytes_raw()

    def sign(self, statement: bytes) -> bytes:
        """Return the Ed25519 signature of a statement, 64 bytes."""
        return self._private.sign(statement)


def read_host_key(path: Path) -> HostKey | None:
    """Read a host's key; None where there is none.

    Args:
        path: `settings.host_key_file`.

    Raises:
        SettingsError: the file is another user's, open to others, or no Ed25519 key.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(file.fileno())
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as exc:
        msg = f"{path}: the host's key cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
        # A key that another role made, or may read, is not this host's alone.
        msg = (
            f"{path}: must be of the user who runs the signing workers, mode 0600; "
            "move it away and run `rubrica hsm host-key`, which makes another one"
        )
        raise SettingsError(msg)
    try:
        private = load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        # The cause is left out: it may quote what it could not read.
        msg = f"{path}: is no Ed25519 private key in PEM; move it away"
        raise SettingsError(msg)
    return HostKey(private)


def make_host_key(path: Path) -> tuple[HostKey, bool]:
    """Read a host's key, and make it first where there is none.

    Args:
        path: `settings.host_key_file`.

    Returns:
        The key, and whether it was made.

    Raises:
        SettingsError: as `read_host_key`; or the file cannot be written.
    """
    if (known := read_host_key(path)) is not None:
        return known, False
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        _refuse_open(path.parent)
        made = _write_new(path, pem)
    except OSError as exc:
        msg = f"{path}: the host's key cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc
    if not made:  # Another process was first: that key counts.
        return make_host_key(path)
    return HostKey(private), True


def _refuse_open(folder: Path) -> None:
    """Refuse a folder that others may enter, or that is another user's.

    Raises:
        SettingsError: it is.
    """
    found = folder.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.geteuid()
        or found.st_mode & _OTHERS
    ):
        msg = f"{folder}: must be a folder of this user alone, mode 0700"
        raise SettingsError(msg)


def _write_new(path: Path, content: bytes) -> bool:
    """Write a file that must not exist, whole or not at all; False where it exists."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(temporary, flags, _FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, unlike a rename, never replaces what is there.
            os.link(temporary, path)
        except FileExistsError:
            return False
    finally:
        temporary.unlink()
    sync_folder(path.parent)
    return True


def key_text(public: bytes) -> str:
    """Return a public key as people type it: Base64 of its SubjectPublicKeyInfo.

    Args:
        public: 32 bytes.
    """
    return b64encode(_spki(public)).decode("ascii")


def fingerprint(public: bytes) -> str:
    """Return the SHA-256 of a key's SubjectPublicKeyInfo, in groups of four digits.

    Args:
        public: 32 bytes.
    """
    digits = hashlib.sha256(_spki(public)).hexdigest()
    groups = (digits[at : at + _GROUP] for at in range(0, len(digits), _GROUP))
    return " ".join(groups)


def _spki(public: bytes) -> bytes:
    key = Ed25519PublicKey.from_public_bytes(public)
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

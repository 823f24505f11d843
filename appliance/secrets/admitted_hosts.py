"""The signing hosts that this machine's fronts admit, from a file that operators write.

    hosts = AdmittedHosts(settings.signing_hosts_file)
    hosts.signed("signing-a", statement, signature)

One line a host: its name, a blank, and Base64 of its key's SubjectPublicKeyInfo
(Ed25519). `rubrica hsm admit` writes it. No row of the database adds a host here.

Source: RFC 8032; RFC 8410.
"""

import errno
import os
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from appliance.secrets.host_key import key_text
from appliance.settings import SettingsError
from appliance.system.durable_files import held, write_durably
from appliance.system.pinned_files import PinnedFile, Version

_NAME: Final = re.compile(r"[^\s/#][^\s/]{0,254}")
"""Name of a host, as gethostname(2) gives it: no blank, and no `/` as in slots."""
_HEAD: Final = """\
# Signing hosts that the fronts of this machine admit, by their own keys.
# Written by `rubrica hsm admit`.
"""
_MODE: Final = 0o644
_FOLDER_MODE: Final = 0o755


class AdmittedHosts:
    """Host keys from the file, read again whenever the file is another.

    Args:
        path: of the file; no host is admitted while it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._file = PinnedFile(path)
        self._read_at: Version | None = None
        self._keys: Mapping[str, Ed25519PublicKey] = {}
        self._is_whole = True

    def key_of(self, host: str) -> bytes | None:
        """Return a host's public key, 32 bytes; None if the host is not admitted."""
        key = self._pinned().get(host)
        return None if key is None else key.public_bytes_raw()

    def signed(self, host: str, statement: bytes, signature: bytes) -> bool:
        """Return whether an admitted host signed a statement.

        Args:
            host: its name.
            statement: what was signed.
            signature: Ed25519.
        """
        key = self._pinned().get(host)
        if key is None:
            return False
        try:
            key.verify(signature, statement)
        except InvalidSignature:
            return False
        return True

    @property
    def version(self) -> object:
        """Another value once the file is another."""
        self._pinned()
        return self._read_at, self._is_whole

    @property
    def is_whole(self) -> bool:
        """False where the file is there and does not say, or not wholly, who it is.

        A host of a line that cannot be read may be admitted all the same.
        """
        self._pinned()
        return self._is_whole

    def _pinned(self) -> Mapping[str, Ed25519PublicKey]:
        try:
            version = self._file.version()
            if version != self._read_at:
                text = self._file.path.read_text("utf-8")
                self._keys, self._is_whole = _parse(text), _is_whole(text)
                self._read_at = version
                if not self._is_whole:
                    self._file.refused(errno.EINVAL)
        except FileNotFoundError:
            self._keys, self._read_at, self._is_whole = {}, None, True
        except (OSError, UnicodeDecodeError) as exc:
            self._file.refused(getattr(exc, "errno", None) or errno.EINVAL)
            self._keys, self._read_at, self._is_whole = {}, None, False
        return self._keys


def listed(path: Path) -> dict[str, bytes]:
    """Return the admitted hosts, each with its public key of 32 bytes.

    Raises:
        SettingsError: the file cannot be read.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        msg = f"{path}: cannot be read ({getattr(exc, 'strerror', 'no UTF-8')})"
        raise SettingsError(msg) from exc
    return {name: key.public_bytes_raw() for name, key in _parse(text).items()}


def admit(path: Path, host: str, public: bytes) -> bytes | None:
    """Admit a host by a key, in the place of the one that it had.

    Other names of the same key go: a host that is renamed has one name.

    Args:
        path: of the file.
        host: its name.
        public: 32 bytes.

    Returns:
        The key that it had, if any.

    Raises:
        SettingsError: no host has such a name, or the file cannot be written.
    """
    if _NAME.fullmatch(host) is None:
        msg = f"{host!r}: is no name of a host"
        raise SettingsError(msg)
    try:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        with held(path.parent, alone=True):
            before = listed(path)
            after = {name: key for name, key in before.items() if key != public}
            after[host] = public
            if after != before:
                _write(path, after)
    except OSError as exc:
        msg = f"{path}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc
    return before.get(host)


def remove(path: Path, host: str) -> bool:
    """Admit a host no longer; return whether it was admitted.

    Raises:
        SettingsError: the file cannot be written.
    """
    try:
        with held(path.parent, alone=True):
            hosts = listed(path)
            if hosts.pop(host, None) is None:
                return False
            _write(path, hosts)
    except OSError as exc:
        msg = f"{path}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc
    return True


def parse_key(text: str) -> bytes:
    """Return the public key, 32 bytes, that an operator typed.

    Args:
        text: Base64 of a SubjectPublicKeyInfo.

    Raises:
        SettingsError: it is none of an Ed25519 key.
    """
    key = _key(text)
    if key is None:
        msg = f"{text!r}: is no key of a host; on that host: rubrica hsm host-key"
        raise SettingsError(msg)
    return key.public_bytes_raw()


def _write(path: Path, hosts: Mapping[str, bytes]) -> None:
    lines = [f"{name} {key_text(public)}\n" for name, public in sorted(hosts.items())]
    content = (_HEAD + "".join(lines)).encode()
    # Every role reads it, whatever the umask of who admits.
    write_durably(path, [content], lambda handle: os.fchmod(handle, _MODE))


def _parse(text: str) -> dict[str, Ed25519PublicKey]:
    """Return the hosts of a file; a line that is none admits none."""
    hosts: dict[str, Ed25519PublicKey] = {}
    for line in text.splitlines():
        name, _, typed = line.strip().partition(" ")
        if _NAME.fullmatch(name) and (key := _key(typed.strip())) is not None:
            hosts[name] = key
    return hosts


def _is_whole(text: str) -> bool:
    """Return whether each line is a host, a comment or blank, and there is one."""
    lines = [line.strip() for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith("#")]
    return bool(lines) and all(_parse(line) for line in said)


def _key(text: str) -> Ed25519PublicKey | None:
    try:
        key = load_der_public_key(b64decode(text, validate=True))
    except (Base64Error, ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None

"""Resident keys that this host makes, until a credential may have them.

A key on the token is destroyed because the host that made it knows that it came to
nothing. No row of the record says so: whoever writes there could have a person's key
destroyed, for good. So a key that is being made has a file in the host's folder in
memory. The file goes before the key's credential is committed, and from then on no
program of ours destroys that key. What a killed try leaves is a key with a file.

Its CKA_ID is random: no row decides which key it is.
"""

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.hsm_keys import KeyReference, TokenRole
from appliance.domain.signing.hsm_tasks import TaskClaim
from worker.signing.activation_keys import NEW_KEY, ActivationFolder

_log = structlog.get_logger(__name__)
_CKA_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that is being made for a task."""

    cka_id: bytes
    task: str
    person: str

    @property
    def reference(self) -> KeyReference:
        """Token and CKA_ID."""
        return KeyReference(TokenRole.FIRMA, self.cka_id)


class NewKeys:
    """The keys that this host is making, a file each.

    Args:
        folder: of the host's activation keys, in memory.
        clock: the time.
    """

    def __init__(self, folder: ActivationFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def begin(self, claim: TaskClaim) -> NewKey:
        """Choose a CKA_ID, and note that its key is about to be made.

        Args:
            claim: of the task that asks for a key.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder.
        """
        key = NewKey(
            secrets.token_bytes(_CKA_ID_BYTES), claim.id, str(claim.input["person"])
        )
        made = int(self._clock.now().timestamp())
        noted = {"task": key.task, "person": key.person, "made": made}
        name, new = _name(key.cka_id), f".{key.cka_id.hex()}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        with self._folder.locked() as folder:
            handle = os.open(new, flags, 0o600, dir_fd=folder)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(noted, file)
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        return key

    def keep(self, key: NewKey) -> None:
        """Have nobody destroy a key any more; call it before its credential is there.

        Args:
            key: that was tried and certified.

        Raises:
            HsmUnavailableError: another worker took it for left, and destroyed it.
            ApplianceError: `STORE_UNAVAILABLE`: the folder.
        """
        if not self._forget(key):
            msg = f"key {key.cka_id.hex()} was taken for one that was left"
            raise HsmUnavailableError(msg)

    def destroyed(self, key: NewKey) -> None:
        """Forget a key that is gone.

        Args:
            key: which.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder.
        """
        self._forget(key)

    def left(self, age: timedelta) -> list[NewKey]:
        """Return the keys whose making began so long ago that nobody is at it.

        Args:
            age: time since it began.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the folder.
        """
        before = self._clock.now() - age
        with self._folder.locked() as folder:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (of a descriptor)
            found = [
                _read(folder, name, before) for name in names if name.endswith(NEW_KEY)
            ]
        return [key for key in found if key is not None]

    def _forget(self, key: NewKey) -> bool:
        with self._folder.locked() as folder, suppress(FileNotFoundError):
            os.unlink(_name(key.cka_id), dir_fd=folder)
            return True
        return False


def _name(cka_id: bytes) -> str:
    return f"{cka_id.hex()}{NEW_KEY}"


def _read(folder: int, name: str, before: datetime) -> NewKey | None:
    """Read a file; None for a key that was begun later, and for no such file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=folder)
    with os.fdopen(handle, encoding="utf-8") as file:
        try:
            noted = json.load(file)
            cka_id = bytes.fromhex(name.removesuffix(NEW_KEY))
            if not noted["made"] <= before.timestamp() or not cka_id:
                return None
            return NewKey(cka_id, str(noted["task"]), str(noted["person"]))
        except (ValueError, KeyError, TypeError):
            _log.warning("new_key.unreadable", name=name)
            return None

"""Versions of stored values, so that no edit silently undoes another one.

    seen = await edits.read(Subject.INTEGRATOR, "acme")
    ...
    with demanding(Precondition(Subject.INTEGRATOR, "acme", ("name",), version)):
        await integrators.change(...)

A version is made of a hash of each value that a form or an answer shows. It is computed
from the rows whenever it is needed and stored nowhere: a writer that knows nothing of
versions (a command, another role, an earlier release) changes it all the same, which a
counter would miss. A value that was changed and changed back has its version again; the
edit then starts from what its author saw.

`Database.write` checks the precondition at the start of the transaction of the change,
after the rows were locked. Locks are those that the use cases take, in their order, so
that two changes cannot wait for each other.

Source: RFC 9110, 13.1.1; decisions "concurrency of edits".
"""

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.console.edit_subjects import Subject, Values
from appliance.domain.errors import ChangedMeanwhileError
from appliance.record.edit_version_store import EditStore
from appliance.record.unit_of_work import Database, Transaction

_DIGEST_BYTES: Final = 9
"""Of the hash of one value: 12 characters of Base64."""
_UNSHOWN: Final = frozenset({"password", "totp", "certificate", "link"})
"""Values that count and are never shown: secrets, and what says nothing to people."""


_HELD_BY_USE_CASE: Final = frozenset({Subject.PROCESS})
"""Subjects whose use case locks rows in an order of its own and demands after that."""


def version_of(values: Values, names: Iterable[str] | None = None) -> str:
    """Return the version of some values, as a form carries it.

    Args:
        values: of one subject.
        names: those that count; None: all of them.
    """
    return ".".join(_digest(values.get(name)) for name in (names or values))


def tag_of(version: str) -> str:
    """Return the hash of a version, as an `ETag` carries it.

    Args:
        version: as `version_of` made it.
    """
    return hashlib.sha256(version.encode()).hexdigest()


def _digest(value: object) -> str:
    text = json.dumps(value, default=_plain, ensure_ascii=True, sort_keys=True)
    short = hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]
    return urlsafe_b64encode(short).decode()


def _plain(value: object) -> object:
    """Write what JSON does not know: times to the microsecond, bytes in hex.

    Raises:
        TypeError: a column of another type, which is a fault of this module.
    """
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    msg = f"no stored value: {type(value).__name__}"
    raise TypeError(msg)


@dataclass
class Precondition:
    """The version that a change was made from."""

    subject: Subject
    key: str
    names: tuple[str, ...]
    """Values that the version is made of."""
    seen: str
    """The version as a form brought it, or its hash as `If-Match` did."""
    stands: Callable[[Values], bool] = field(default=lambda _: False)
    """Return whether what is stored now is what the change would store. Then nothing
    is lost, and a form that was sent twice is answered as once."""
    owner: str | None = None
    """Integrator whose the rows must be; None: of any. Others' are as absent."""
    is_met: bool = False
    """Checked by a transaction that was committed: the next one is a later step."""

    @property
    def is_held_by_use_case(self) -> bool:
        """True if the use case locks first and calls `unit_of_work.demand` itself."""
        return self.subject in _HELD_BY_USE_CASE

    async def check(self, transaction: Transaction, *, lock: bool = True) -> None:
        """Refuse a change that was not made from what is stored.

        Args:
            transaction: of the change.
            lock: keep the rows from others until it ends.

        Raises:
            ChangedMeanwhileError: with the values that are stored now.
        """
        edits = EditStore(transaction, self.owner)
        if lock:
            await edits.lock(self.subject, self.key)
        values = await edits.values(self.subject, self.key)
        if not values:
            # The use case says what is absent, in its own words.
            return
        version = version_of(values, self.names)
        if self.seen not in {version, tag_of(version)} and not self.stands(values):
            raise ChangedMeanwhileError(
                shown(values, self.names), self._changed(values), version
            )

    def _changed(self, values: Values) -> tuple[str, ...]:
        """Names of the values that are not those of the version; all if it is none."""
        digests = self.seen.split(".")
        if len(digests) != len(self.names):
            return self.names
        return tuple(
            name
            for name, digest in zip(self.names, digests, strict=True)
            if digest != _digest(values.get(name))
        )


def shown(values: Values, names: Sequence[str]) -> Values:
    """Return those of some values that people may see."""
    return {name: values.get(name) for name in names if name not in _UNSHOWN}


class EditVersions:
    """Reads what edits start from.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def read(
        self, *wanted: tuple[Subject, str], owner: str | None = None
    ) -> list[Values]:
        """Return the stored values of subjects, each by its key.

        Read them before what is shown: a change between the two then makes a version
        that is too old, which is refused, and never one that is too new.
        """
        async with self._store.read() as transaction:
            edits = EditStore(transaction, owner)
            return [await edits.values(subject, key) for subject, key in wanted]

    async def check(self, precondition: Precondition) -> None:
        """Check a precondition early, before anything is asked for the change.

        Raises:
            ChangedMeanwhileError: it does not hold now.
        """
        async with self._store.read() as transaction:
            await precondition.check(transaction, lock=False)

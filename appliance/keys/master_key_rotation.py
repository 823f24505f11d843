"""What is recorded while users' keys move from one master key to another.

Each row says which version wraps it: what is left to do is what the rows say, so
that a run may be killed anywhere. A worker that read a row before it moved signs
by the old version, which is there until it is retired. Source: design §4.
"""

from collections.abc import Collection, Sequence
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.ids import CredentialId
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyNeeds,
    MasterWrapped,
    WrapMethod,
)
from appliance.domain.vocab import EventKind
from appliance.keys.master_key_store import MasterKeyStore
from appliance.record.unit_of_work import Database

_BATCH: Final = 250
_ACTOR: Final = "operator"


class MasterKeyRotation:
    """The record's side of a rotation.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def counts(self) -> dict[int, int]:
        """How many keys there are under each version of the master key.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            return await MasterKeyStore(transaction).counts()

    async def batch(
        self, version: int, method: WrapMethod | None, after: CredentialId | None
    ) -> list[MasterWrapped]:
        """Some of the keys that another version wraps, or another method.

        Args:
            version: the one that all shall be under.
            method: by which it shall wrap them, if it matters.
            after: the last credential of the batch before.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            return await MasterKeyStore(transaction).otherwise(
                version, method, after, _BATCH
            )

    async def store(self, moved: list[tuple[MasterWrapped, MasterWrapped]]) -> int:
        """Record keys under another version, all of them or none.

        Args:
            moved: each as it was and as it is.

        Returns:
            How many were recorded; others changed meanwhile.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.write() as transaction:
            done = [
                await MasterKeyStore(transaction).rewrapped(old, new)
                for old, new in moved
            ]
        return sum(done)

    async def left_behind(
        self, methods: Collection[WrapMethod], algorithms: Collection[KeyAlgorithm]
    ) -> list[KeyNeeds]:
        """Keys in force that another HSM could not use; they are issued anew.

        Args:
            methods: by which it opens wrapped private keys.
            algorithms: of which it takes keys.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            needs = await MasterKeyStore(transaction).needs()
        return [
            need
            for need in needs
            if need.algorithm not in algorithms or need.method_k not in methods
        ]

    async def created(self, version: int) -> None:
        """Say that a version came into use."""
        await self._say(EventKind.MASTER_CREATED, version)

    async def applied(self, version: int, keys: int) -> None:
        """Say that keys were brought to a version."""
        await self._say(EventKind.MASTER_APPLIED, version, {"keys": keys})

    async def retired(self, version: int) -> None:
        """Say that a version was destroyed."""
        await self._say(EventKind.MASTER_RETIRED, version)

    async def joining(self, tokens: Sequence[str]) -> None:
        """Say, before they hold anything, which tokens are to become members.

        Args:
            tokens: their labels.
        """
        detail: dict[str, object] = {"tokens": list(tokens)}
        async with self._store.write() as transaction:
            transaction.audit.add(
                AuditEvent(EventKind.MEMBER_JOINING, _ACTOR, detail=detail)
            )

    async def resident(self) -> list[KeyNeeds]:
        """Keys in force that are on one token alone.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            return [
                one
                for one in await MasterKeyStore(transaction).needs()
                if one.is_resident
            ]

    async def needed(self, version: int) -> tuple[int, int]:
        """What speaks against the end of a version.

        Returns:
            How many keys are under it, and how many keys are just being made,
            which may come to be.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            keys = (await MasterKeyStore(transaction).counts()).get(version, 0)
            return keys, await MasterKeyStore(transaction).in_the_making(
                self._clock.now()
            )

    async def _say(
        self, kind: EventKind, version: int, more: dict[str, object] | None = None
    ) -> None:
        detail: dict[str, object] = {"version": version, **(more or {})}
        async with self._store.write() as transaction:
            transaction.audit.add(AuditEvent(kind, _ACTOR, detail=detail))

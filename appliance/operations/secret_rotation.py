"""Bringing the record to another version of a secret key, while all goes on.

The operator's commands do it (`rubrica secrets`); it may be killed at any point
and begun again: each value says by which version it was made, and what is left
to do is what the values say.

Source: design §4, the table of secrets.
"""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.keys.versioned_secrets import KeyRing, SealedColumn
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind, SecretName
from appliance.identity.login import email_index
from appliance.record.secret_version_store import SecretVersionStore
from appliance.record.unit_of_work import Database, Transaction

_BATCH: Final = 500
_ACTOR: Final = "operator"

SessionSteps = Callable[[int], None]
"""Told how many values were done, since it was told before."""


class SecretRotation:
    """The use cases of replacing a secret key.

    Args:
        store: the record.
        sealers: by key, with every version of it that is known: of the data key
            and of the document key.
        lookup: with every version of the lookup key that is known.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        sealers: Mapping[SecretName, Sealer],
        lookup: LookupIndex,
        clock: Clock,
    ) -> None:
        self._store = store
        self._sealers = sealers
        self._lookup = lookup
        self._clock = clock

    async def used(self, name: SecretName, ring: KeyRing) -> dict[int, dict[str, int]]:
        """What still needs each version of a key.

        Args:
            name: of the key.
            ring: its versions.

        Returns:
            By version, how many values there are, by what they are.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            if name in self._sealers:
                return await _sealed(transaction, name, ring)
            if name is SecretName.LOOKUP:
                now = self._clock.now()
                return {
                    version: await SecretVersionStore(transaction).indexes(version, now)
                    for version in ring.versions
                }
            found = await SecretVersionStore(transaction).passwords()
        return {
            version: {"signing_secret": found.get(version, 0)}
            for version in {*ring.versions, *found}
        }

    async def recorded(self, kind: EventKind, name: SecretName, version: int) -> None:
        """Say in the audit what was done to a key.

        Args:
            kind: `SECRET_ROTATED` or `SECRET_RETIRED`.
            name: of the key.
            version: that came into use, or has gone.
        """
        async with self._store.write() as transaction:
            transaction.audit.add(_event(kind, name, version))

    async def reseal(
        self, name: SecretName, version: int, progress: SessionSteps
    ) -> int:
        """Seal anew what another version of a key sealed.

        Args:
            name: of the key, the data key or the document key.
            version: the present one.
            progress: see there.

        Returns:
            How many values were.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also for a value whose version is
                not in the key file any more.
        """
        done = 0
        async with self._store.read() as transaction:
            columns = SecretVersionStore(transaction).sealed_columns(name)
        for column in columns:
            # What was sealed meanwhile, by who had not noticed yet, is left for
            # one more pass.
            while count := await self._reseal_column(column, version, progress):
                done += count
        await self._finished(name, version, done)
        return done

    async def _reseal_column(
        self, column: SealedColumn, version: int, progress: SessionSteps
    ) -> int:
        """One pass over a column, a transaction a batch; how many there were."""
        place = {"table": column.table, "column": column.column}
        sealer = self._sealers[column.secret]
        after, done = "", 0
        while True:
            async with self._store.write() as transaction:
                found = await SecretVersionStore(transaction).sealed_otherwise(
                    column, version, after, _BATCH
                )
                for value in found:
                    secret = sealer.open(value.sealed, row=value.row, **place)
                    new = sealer.seal(secret, row=value.row, **place)
                    await SecretVersionStore(transaction).reseal(column, value, new)
            if not found:
                return done
            after = found[-1].row
            done += len(found)
            progress(len(found))

    async def reindex(self, version: int, progress: SessionSteps) -> int:
        """Have every address found by the present lookup key.

        Other indexes cannot be made anew, for nobody here knows what they are of:
        an API key's changes when it is used, all others expire by themselves.

        Args:
            version: the present one.
            progress: see there.

        Returns:
            How many addresses were.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        done = 0
        while count := await self._reindex_all(version, progress):
            done += count
        await self._finished(SecretName.LOOKUP, version, done)
        return done

    async def _reindex_all(self, version: int, progress: SessionSteps) -> int:
        """One pass over the addresses; how many there were."""
        after, done = "", 0
        while True:
            async with self._store.write() as transaction:
                found = await SecretVersionStore(transaction).emails_otherwise(
                    version, after, _BATCH
                )
                for email in found:
                    address = (
                        self._sealers[SecretName.DATA]
                        .open(
                            email.sealed,
                            table="person",
                            row=email.person,
                            column="email_sealed",
                        )
                        .decode()
                    )
                    index = email_index(self._lookup, address)
                    await SecretVersionStore(transaction).reindex(email, index)
            if not found:
                return done
            after = found[-1].person
            done += len(found)
            progress(len(found))

    async def _finished(self, name: SecretName, version: int, values: int) -> None:
        async with self._store.write() as transaction:
            transaction.audit.add(
                _event(EventKind.SECRET_APPLIED, name, version, values)
            )


async def _sealed(
    transaction: Transaction, name: SecretName, ring: KeyRing
) -> dict[int, dict[str, int]]:
    """How many values each version of a key sealed, by column."""
    counted: dict[int, dict[str, int]] = {version: {} for version in ring.versions}
    for column in SecretVersionStore(transaction).sealed_columns(name):
        for version, count in (
            await SecretVersionStore(transaction).sealed(column)
        ).items():
            named = f"{column.table}.{column.column}"
            counted.setdefault(version, {})[named] = count
    return counted


def _event(
    kind: EventKind, name: SecretName, version: int, values: int | None = None
) -> AuditEvent:
    detail: dict[str, object] = {"secret": name.value, "version": version}
    if values is not None:
        detail["values"] = values
    return AuditEvent(kind, _ACTOR, detail=detail)

"""What operators do to all documents, or to all of one integrator's."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, DocumentsAwayError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import BlobMaintenance
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database

SessionSteps = Callable[[int], None]
"""Told how many documents were looked at, since it was told before."""
_ALL: Final = timedelta(days=1)
"""From now, so that no clock that is a little off hides a file."""


class Retention:
    """The use cases around documents as files.

    Args:
        store: the record.
        documents: the files.
        keys: theirs.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobMaintenance,
        keys: IntegratorDocumentKeys,
        clock: Clock,
    ) -> None:
        self._store = store
        self._documents = documents
        self._keys = keys
        self._clock = clock

    async def count(self) -> int:
        """How many documents there are.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        until = self._clock.now() + _ALL
        return sum([len(names) async for _, names in self._documents.older(until)])

    async def encrypt(self, progress: SessionSteps) -> tuple[int, list[str]]:
        """Encrypt what was stored before documents were; begun again, it goes on.

        Args:
            progress: see there.

        Returns:
            How many were encrypted, and those (`integrator/sha256`) that could not
            be: gone, or not what they are named by.

        Raises:
            ApplianceError: `STORAGE_FULL`.
            DocumentsAwayError: all of them are away.
        """
        done, failed = 0, []
        async for integrator, names in self._documents.older(self._clock.now() + _ALL):
            for sha256 in names:
                try:
                    done += await self._documents.encrypt(integrator, sha256)
                except DocumentsAwayError:
                    raise
                except ApplianceError as exc:
                    if exc.code is ErrorCode.STORAGE_FULL:
                        raise
                    failed.append(f"{integrator}/{sha256}")
                progress(1)
        return done, failed

    async def shred(self, code: str) -> bool:
        """Forget the key of an integrator's documents: none opens ever again.

        Args:
            code: of the integrator.

        Returns:
            Whether there was one.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            integrator = await PersonStore(transaction).integrator(code)
        if integrator is None:
            raise ApplianceError(ErrorCode.INTEGRATOR_NOT_FOUND)
        return await self._keys.shred(IntegratorId(integrator.id))

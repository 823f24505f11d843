"""The keys that documents are encrypted with: one for each integrator.

A key is made when its integrator's first document comes in, stands sealed under
the installation's document key, and is read anew for each document: what was
removed opens nothing from that moment on, in no process.

Source: design §4, the table of secrets.
"""

import secrets
from typing import Final

from appliance.documents.document_store import (
    KEY_COLUMN,
    KEY_TABLE,
    DocumentKeyStore,
)
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import Sealer
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database

_KEY_BYTES: Final = 32


class IntegratorDocumentKeys:
    """The port `DocumentKeys`, and the use case of forgetting one.

    Args:
        store: the record.
        sealer: with the document key; None for a role that opens no document.
        clock: the time.
    """

    def __init__(self, store: Database, sealer: Sealer | None, clock: Clock) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key, 32 bytes; None when there is none.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            sealed = await DocumentKeyStore(transaction).get(integrator)
        if sealed is None:
            return None
        if self._sealer is None:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        return self._sealer.open(
            sealed, table=KEY_TABLE, row=integrator, column=KEY_COLUMN
        )

    async def make(self, integrator: IntegratorId) -> bytes:
        """Make an integrator's key; where there is one by now, that is it.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if self._sealer is None:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        key = secrets.token_bytes(_KEY_BYTES)
        sealed = self._sealer.seal(
            key, table=KEY_TABLE, row=integrator, column=KEY_COLUMN
        )
        async with self._store.write() as transaction:
            now = self._clock.now()
            made = await DocumentKeyStore(transaction).add(integrator, sealed, now)
            if made:
                transaction.audit.add(
                    AuditEvent(
                        EventKind.DOCUMENT_KEY_CREATED, "system", integrator=integrator
                    )
                )
        if made:
            return key
        # Of two that make one at once the second takes the first one's.
        known = await self.get(integrator)
        return await self.make(integrator) if known is None else known

    async def shred(self, integrator: IntegratorId) -> bool:
        """Forget a key for good, and with it every document under it.

        Returns:
            Whether there was one.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        async with self._store.write() as transaction:
            removed = await DocumentKeyStore(transaction).remove(integrator)
            if removed:
                transaction.audit.add(
                    AuditEvent(
                        EventKind.DOCUMENT_KEY_DESTROYED,
                        "operator",
                        integrator=integrator,
                    )
                )
            return removed

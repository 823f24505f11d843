"""Download links: a 256-bit secret that opens one signed document for a while."""

import secrets
from collections.abc import Collection
from datetime import timedelta
from typing import Final

from appliance.documents.download_link_store import DownloadLinkStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.ids import RequestId
from appliance.domain.ports import LookupIndex
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database

_PURPOSE: Final = "download-link"
_KEY_BYTES: Final = 32
_KEY_LENGTH: Final = 43
"""Of the secret in unpadded base64url."""


class DownloadLinks:
    """Makes and opens download links.

    Args:
        store: where links are kept, by a keyed hash of their secret.
        lookup: makes that hash.
        clock: the time.
        ttl_s: lifetime of a link, in seconds (`signing.link_ttl_s`).
    """

    def __init__(
        self, store: Database, lookup: LookupIndex, clock: Clock, ttl_s: int
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._ttl = timedelta(seconds=ttl_s)

    async def mint(self, request: RequestId, actor: str = "system") -> str:
        """Make a link to the signed document of a request.

        Args:
            request: a signed request that the actor may see.
            actor: for the audit.

        Returns:
            `clave`: 43 characters, shown once and kept only as a hash.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.

        Source: decisions "documentoFirmado".
        """
        return (await self.mint_all((request,), actor))[request]

    async def mint_all(
        self, requests: Collection[RequestId], actor: str
    ) -> dict[RequestId, str]:
        """Make a link for each of several requests, in one transaction.

        Args:
            requests: signed ones that the actor may see, none twice.
            actor: for the audit.

        Returns:
            `clave` by request, as of `mint`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not requests:
            return {}
        claves = {request: secrets.token_urlsafe(_KEY_BYTES) for request in requests}
        indexes = {
            self._lookup.index(_PURPOSE, clave): request
            for request, clave in claves.items()
        }
        async with self._store.write() as transaction:
            await DownloadLinkStore(transaction).add(
                indexes, self._clock.now() + self._ttl
            )
            for request in requests:
                transaction.audit.add(
                    AuditEvent(EventKind.LINK_CREATED, actor, request=request)
                )
        return claves

    async def open(self, clave: str, request: RequestId) -> bool:
        """Tell whether a link leads to the document of this request, still.

        Args:
            clave: as it came, of any form.
            request: that of the address.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if len(clave) != _KEY_LENGTH or not clave.isascii():
            return False
        indexes = self._lookup.indexes(_PURPOSE, clave)
        async with self._store.read() as transaction:
            return await DownloadLinkStore(transaction).opens(
                indexes, request, self._clock.now()
            )

"""Links by which somebody without a token downloads a signed document, in SQL."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, delete, insert, literal, select

from appliance.database.tables import download_link
from appliance.domain.ids import RequestId
from appliance.record.unit_of_work import Store


class DownloadLinkStore(Store):
    """Download links."""

    async def add(self, links: Mapping[str, RequestId], until: datetime) -> None:
        """Record links, one or more: the HMAC of each secret and its request."""
        await self._connection.execute(
            insert(download_link),
            [
                {"key_index": key_index, "request": request, "until": until}
                for key_index, request in links.items()
            ],
        )

    async def opens(
        self, indexes: Sequence[str], request: RequestId, at: datetime
    ) -> bool:
        """Whether a link leads to a request's document at a time."""
        found = await self._connection.execute(
            select(literal(1)).where(
                and_(
                    download_link.c.key_index.in_(indexes),
                    download_link.c.request == request,
                    download_link.c.until > at,
                )
            )
        )
        return found.one_or_none() is not None

    async def sweep(self, before: datetime) -> int:
        """Forget links that ended before that; how many there were."""
        result = await self._connection.execute(
            delete(download_link).where(download_link.c.until < before)
        )
        return int(result.rowcount)

"""The installation's mark on a bucket of documents, looked at now and then.

The folder's mark is looked at before each document, by one `stat`. Here a look is a
request, so what was found is believed for some seconds. What a look is for is there
all the same: another bucket stands in its place only when somebody made it so, and a
store that is away is known by the first request that fails.

Source: docs/storage.md "In an S3-compatible store".
"""

import asyncio
import time
from typing import Final

import structlog

from appliance.documents.document_files import named_document
from appliance.documents.local.folder_mark import (
    FILE,
    MOST_BYTES,
    WantedMark,
    read_mark,
)
from appliance.documents.s3.bucket import Bucket
from appliance.domain.errors import DocumentsAwayError
from appliance.record.unit_of_work import Database
from appliance.settings import DocumentSettings, SettingsError

_log = structlog.get_logger(__name__)
LOOK_S: Final = 2.0
"""Longest that a look may take; readiness waits no longer than 3 s."""
RIGHT_S: Final = 5.0
"""How long a mark that was found right is believed."""
AWAY_S: Final = 1.0
"""How long one that was not is."""


class BucketMark:
    """What a bucket must be marked with, and whether it is.

    Args:
        store: the record.
        settings: of the bucket.
    """

    def __init__(self, store: Database, settings: DocumentSettings) -> None:
        self._wanted = WantedMark(store)
        # A client of its own: its time-outs are shorter.
        self._bucket = Bucket(settings, timeout_s=LOOK_S)
        self._look: asyncio.Task[bool] | None = None
        self._until = 0.0
        self._is_right = True
        self._reason = ""

    async def check(self) -> None:
        """Refuse a bucket that is not ours; at most one request each `RIGHT_S`.

        Raises:
            DocumentsAwayError: it is not, or does not answer.
            ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`: the record is away.
        """
        wanted = await self._wanted.get()
        if wanted is None:
            return
        if self._look is None or (
            self._look.done() and time.monotonic() >= self._until
        ):
            self._look = asyncio.create_task(self._looked(wanted))
        # Who leaves does not end it for the others.
        if not await asyncio.shield(self._look):
            raise DocumentsAwayError(self._reason)

    def doubt(self) -> None:
        """Have the next check look anew: a request has failed."""
        self._until = 0.0

    async def _looked(self, wanted: str) -> bool:
        reason = f"{self._bucket.url}: is marked as another installation's, or not"
        try:
            found = await asyncio.to_thread(mark_of, self._bucket)
        except DocumentsAwayError as exc:
            found, reason = None, exc.reason
        is_right = found == wanted
        self._reason = "" if is_right else reason
        if is_right != self._is_right:
            log = _log.info if is_right else _log.error
            log(
                "documents.bucket",
                right=is_right,
                bucket=self._bucket.url,
                reason=self._reason,
            )
        self._is_right = is_right
        self._until = time.monotonic() + (RIGHT_S if is_right else AWAY_S)
        return is_right


class MarkedBucket:
    """A bucket that may be marked; see `mark_place`.

    Args:
        bucket: that is there.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.name = f"documents.url: {bucket.url}"
        self._bucket = bucket

    def mark(self) -> str | None:
        """What it is marked with; None: with nothing.

        Raises:
            DocumentsAwayError: the store does not answer, or refuses.
        """
        return mark_of(self._bucket)

    def is_ours(self, names: list[str]) -> bool:
        """Whether it holds one of the record's documents, or neither has any."""
        if names:
            return any(self._bucket.look(name) is not None for name in names)
        return not any(
            named_document(each.name) for page in self._bucket.pages() for each in page
        )

    def write(self, mark: str) -> None:
        """Mark it; where it bears the mark, it stays as it is.

        Raises:
            SettingsError: somebody else has marked it meanwhile.
            ApplianceError: `STORAGE_FULL`.
            DocumentsAwayError: the store does not answer, or refuses.
        """
        if self._bucket.create(FILE, f"{mark}\n".encode()) or self.mark() == mark:
            return
        msg = f"{self.name} was marked by another installation just now"
        raise SettingsError(msg)


def mark_of(bucket: Bucket) -> str | None:
    """What a bucket is marked with; None: with nothing.

    Raises:
        DocumentsAwayError: the store does not answer, or refuses.
    """
    found = bucket.read(FILE, 0, MOST_BYTES)
    return found and read_mark(bytes(found[1]))

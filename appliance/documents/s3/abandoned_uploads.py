"""Uploads in parts that nobody finished: a writer was killed in the midst of one.

They take room and are in no list of objects. obstore has no request for them.

Source: Amazon S3 API Reference, "ListMultipartUploads", "AbortMultipartUpload".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.etree import ElementTree as ET

from appliance.documents.s3.signed_requests import BucketRequests, RefusedError, parsed
from appliance.settings import DocumentSettings

_GONE: Final = 404


@dataclass(frozen=True, slots=True)
class Upload:
    """One that was begun."""

    key: str
    """The object's name in the bucket, prefix included."""
    id: str
    begun: datetime


class UnfinishedUploads:
    """Those of a bucket, below the prefix of the settings.

    Args:
        settings: with a `url`.
        timeout_s: of each step of a request, in seconds.

    Raises:
        SettingsError: a file of the key cannot be used.
    """

    def __init__(self, settings: DocumentSettings, timeout_s: float) -> None:
        self._requests = BucketRequests(settings, timeout_s)

    def abandon(
        self, before: datetime, is_ours: Callable[[str], bool] = lambda _: True
    ) -> int:
        """Remove those that were begun before then; how many.

        Args:
            before: then.
            is_ours: whether it may be removed, by its object's key in the bucket.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        count = 0
        for upload in list(self._all()):
            if upload.begun < before and is_ours(upload.key):
                self._ask("DELETE", upload.key, {"uploadId": upload.id})
                count += 1
        return count

    def _all(self) -> Iterator[Upload]:
        """All of them, by some requests.

        Raises:
            OSError: the store does not answer, refuses, or answers what is no list.
        """
        query = {"uploads": "", "prefix": self._requests.prefix}
        while True:
            found = parsed(self._ask("GET", "", query))
            yield from (_upload(each) for each in found.findall("{*}Upload"))
            if found.findtext("{*}IsTruncated") != "true":
                return
            further = query | {
                "key-marker": found.findtext("{*}NextKeyMarker") or "",
                "upload-id-marker": found.findtext("{*}NextUploadIdMarker") or "",
            }
            if further == query:
                msg = "gives one page of its uploads again and again"
                raise OSError(msg)
            query = further

    def _ask(self, method: str, key: str, query: dict[str, str]) -> bytes:
        """One request; what it answers.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        try:
            return self._requests.ask(method, key, query).content
        except RefusedError as exc:
            # Who else sweeps may have removed it already.
            if method == "DELETE" and exc.status == _GONE:
                return b""
            raise

    def signed(self, method: str, target: str, at: datetime) -> dict[str, str]:
        """The headers of a request without a body; see `BucketRequests.signed`."""
        return self._requests.signed(method, target, at)


def _upload(found: ET.Element) -> Upload:
    """One of a list.

    Raises:
        OSError: it is none.
    """
    try:
        begun = datetime.fromisoformat(found.findtext("{*}Initiated") or "")
    except ValueError as exc:
        msg = f"answered what is no list ({exc})"
        raise OSError(msg) from exc
    return Upload(
        found.findtext("{*}Key") or "",
        found.findtext("{*}UploadId") or "",
        begun if begun.tzinfo else begun.replace(tzinfo=UTC),
    )

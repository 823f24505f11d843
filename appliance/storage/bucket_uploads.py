"""Uploads in parts that nobody finished: a writer was killed in the midst of one.

They take room and are in no list of objects. obstore has no request for them, so the
two that there are for it are signed here.

Source: Amazon S3 API Reference, "ListMultipartUploads", "AbortMultipartUpload";
"Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)".
"""

import hashlib
import hmac
import http.client
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from appliance.settings import DocumentSettings
from appliance.storage.bucket_access import read_access

_SERVICE: Final = "s3"
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_MOST_BYTES: Final = 4_194_304
"""Of an answer; a thousand uploads take less."""
_UNRESERVED: Final = "-_.~"
_WELL: Final = (200, 204)
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
        self._access = read_access(settings)
        self._is_virtual = settings.address_style == "virtual"
        self._region = settings.region
        self._address = urlsplit(settings.address)
        self._timeout_s = timeout_s
        self._tls = ssl.create_default_context()
        if settings.root_certificate_file is not None:
            self._tls.load_verify_locations(settings.root_certificate_file)

    def abandon(self, before: datetime) -> int:
        """Remove those that were begun before then; how many.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        count = 0
        for upload in list(self._all()):
            if upload.begun < before:
                self._ask("DELETE", upload.key, {"uploadId": upload.id})
                count += 1
        return count

    def _all(self) -> Iterator[Upload]:
        """All of them, by some requests."""
        query = {
            "uploads": "",
            "prefix": f"{self._access.prefix}/" if self._access.prefix else "",
        }
        while True:
            found = _read(self._ask("GET", "", query))
            yield from (_upload(each) for each in found.findall("{*}Upload"))
            if found.findtext("{*}IsTruncated") != "true":
                return
            query["key-marker"] = found.findtext("{*}NextKeyMarker") or ""
            query["upload-id-marker"] = found.findtext("{*}NextUploadIdMarker") or ""

    def _ask(self, method: str, key: str, query: dict[str, str]) -> bytes:
        """One request; what it answers.

        Raises:
            OSError: the store does not answer, or refuses.
        """
        path = f"/{key}" if self._is_virtual else f"/{self._access.bucket}/{key}"
        target = f"{quote(path, safe='/' + _UNRESERVED)}?{_canonical(query)}"
        headers = self.signed(method, target, datetime.now(UTC))
        connection = self._connect()
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            content = answer.read(_MOST_BYTES)
        except http.client.HTTPException as exc:
            raise OSError(repr(exc)) from exc
        finally:
            connection.close()
        # Who else sweeps may have removed it already.
        is_gone = method == "DELETE" and answer.status == _GONE
        if answer.status not in _WELL and not is_gone:
            msg = f"{method} {path}: {answer.status} {content.decode(errors='replace')}"
            raise OSError(msg)
        return content

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(
            host, port, timeout=self._timeout_s, context=self._tls
        )

    def signed(self, method: str, target: str, at: datetime) -> dict[str, str]:
        """The headers of a request without a body.

        Args:
            method: of it.
            target: path and query, encoded, the query's parts in order.
            at: the time that it is sent at.
        """
        stamp = at.strftime("%Y%m%dT%H%M%SZ")
        headers = {
            "host": self._address.netloc,
            "x-amz-content-sha256": _EMPTY,
            "x-amz-date": stamp,
        }
        names = ";".join(headers)
        path, _, query = target.partition("?")
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{_EMPTY}"
        scope = f"{stamp[:8]}/{self._region}/{_SERVICE}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        key = f"AWS4{self._access.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{digest}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        authorization = (
            f"{_ALGORITHM} Credential={self._access.key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return {**headers, "authorization": authorization}


def _read(answer: bytes) -> ET.Element:
    """What a store answers.

    Raises:
        OSError: it is no XML.
    """
    try:
        return ET.fromstring(answer)  # noqa: S314 (of our store; expat bounds entities)
    except ET.ParseError as exc:
        raise OSError(repr(exc)) from exc


def _upload(found: ET.Element) -> Upload:
    begun = datetime.fromisoformat(found.findtext("{*}Initiated") or "")
    return Upload(
        found.findtext("{*}Key") or "", found.findtext("{*}UploadId") or "", begun
    )


def _canonical(query: dict[str, str]) -> str:
    """A query as it is signed: encoded, in the order of its names."""
    return "&".join(
        f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}"
        for name, value in sorted(query.items())
    )

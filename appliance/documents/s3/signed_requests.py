"""Single requests of a bucket, signed here: those that obstore has not.

    requests = BucketRequests(settings, timeout_s=10)
    answer = requests.ask("HEAD", requests.key("a.pdf"))

No thread is begun, and nothing is tried a second time.

Source: Amazon S3 API Reference, "Authenticating Requests: Using the Authorization
Header (AWS Signature Version 4)", "Error responses".
"""

import contextlib
import hashlib
import hmac
import http.client
import io
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

from appliance.documents.s3.credentials import read_access
from appliance.settings import DocumentSettings

_SERVICE: Final = "s3"
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_MOST_BYTES: Final = 4_194_304
"""Of an answer that is not said to be longer; a thousand names take less."""
_UNRESERVED: Final = "-_.~"
_WELL: Final = (200, 204, 206)
_BLOCK_BYTES: Final = 262_144
_TIMED_BYTES: Final = 5_242_880
"""What a link must carry in the time of one request. Source: docs/settings.md."""
_TOO_LITTLE: Final = "timed out: the link carries too little"
_CODE: Final = re.compile(rb"<Code>(\w{1,60})</Code>")
_TRY_AGAIN: Final = frozenset({408, 425, 429})
_SERVERS_FAULT: Final = 500
_NEVER: Final = 501
"""It does not know what is asked for."""
Body = bytes | bytearray | memoryview


class RefusedError(OSError):
    """A store answered that it does not."""

    def __init__(self, told: str, status: int, code: str) -> None:
        super().__init__(told)
        self.status = status
        """Of HTTP."""
        self.code = code
        """S3's word for it; empty where it has none."""

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be answered later."""
        passes = self.status >= _SERVERS_FAULT and self.status != _NEVER
        return passes or self.status in _TRY_AGAIN


@dataclass(frozen=True, slots=True)
class Answer:
    """What a store answered."""

    status: int
    headers: Mapping[str, str]
    """By names in small letters."""
    content: bytes


class BucketRequests:
    """Requests of a bucket, below the prefix of the settings.

    Args:
        settings: with a `url`.
        timeout_s: of each step of a request, and of each 5 MiB that it moves, in
            seconds.

    Raises:
        SettingsError: a file of the key cannot be used.
    """

    def __init__(self, settings: DocumentSettings, timeout_s: float) -> None:
        self._access = read_access(settings)
        self._is_virtual = settings.address_style == "virtual"
        self._region = settings.region
        self._address = urlsplit(settings.address)
        self._timeout_s = timeout_s
        self._connect_s = min(settings.connect_timeout_s, timeout_s)
        self._tls = ssl.create_default_context()
        if settings.root_certificate_file is not None:
            self._tls.load_verify_locations(settings.root_certificate_file)

    @property
    def prefix(self) -> str:
        """What all keys begin with: empty, or with a `/` at its end."""
        return f"{self._access.prefix}/" if self._access.prefix else ""

    def key(self, name: str) -> str:
        """The key of an object.

        Args:
            name: below the prefix.
        """
        return self.prefix + name

    def ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        body: Body = b"",
        more: Mapping[str, str] | None = None,
        most_bytes: int = _MOST_BYTES,
        more_s: float = 0.0,
    ) -> Answer:
        """Send one request; what is answered.

        Args:
            method: of it.
            key: of the object, prefix included; empty: the bucket itself.
            query: its parts, not encoded.
            body: what is sent.
            more: headers, by names in small letters.
            most_bytes: that are read of the answer.
            more_s: that the store may take beside, in seconds, while it says something.

        Raises:
            RefusedError: the store says no.
            OSError: it does not answer, or not in time.
        """
        path = f"/{key}" if self._is_virtual else f"/{self._access.bucket}/{key}"
        target = f"{quote(path, safe='/' + _UNRESERVED)}?{canonical(query or {})}"
        headers = self.signed(method, target.rstrip("?"), datetime.now(UTC), body, more)
        until = time.monotonic() + more_s + self._time_for(max(len(body), most_bytes))
        answer = self._answered(
            (method, target.rstrip("?")), headers, body, most_bytes, until
        )
        if answer.status not in _WELL:
            raise _refused(f"{method} {path}", answer)
        return answer

    def _time_for(self, size: int) -> float:
        """How long a request may take that moves so many bytes, in seconds."""
        return self._timeout_s * math.ceil(1 + size / _TIMED_BYTES)

    def _answered(
        self,
        what: tuple[str, str],
        headers: Mapping[str, str],
        body: Body,
        most_bytes: int,
        until: float,
    ) -> Answer:
        connection = None
        try:
            connection = self._connect()
            timed: Any = partial(_timed_response, until=until, step_s=self._timeout_s)
            connection.response_class = timed
            connection.connect()
            connection.sock.settimeout(self._timeout_s)
            length = {"content-length": str(len(body))} if body else {}
            # Who says no in its midst may close before all of it came.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    *what,
                    body=_blocks(memoryview(body), until) if body else None,
                    headers={**headers, **length},
                )
            answer = connection.getresponse()
            # How a refusal is worded is for a store to say, however short we ask.
            most_bytes = most_bytes if answer.status in _WELL else _MOST_BYTES
            content = _read(answer, most_bytes)
        except http.client.HTTPException as exc:
            raise OSError(repr(exc)) from exc
        finally:
            if connection is not None:
                connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, content)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._connect_s)
        return http.client.HTTPSConnection(
            host, port, timeout=self._connect_s, context=self._tls
        )

    def signed(
        self,
        method: str,
        target: str,
        at: datetime,
        body: Body = b"",
        more: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The headers of a request.

        Args:
            method: of it.
            target: path and query, encoded, the query's parts in order.
            at: the time that it is sent at.
            body: what is sent.
            more: headers beside, by names in small letters, which are signed as well.
        """
        stamp = at.strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest() if body else _EMPTY
        headers = {
            "host": self._address.netloc,
            "x-amz-content-sha256": digest,
            "x-amz-date": stamp,
            **(more or {}),
        }
        headers = dict(sorted(headers.items()))
        names = ";".join(headers)
        path, _, query = target.partition("?")
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        asked = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
        scope = f"{stamp[:8]}/{self._region}/{_SERVICE}/aws4_request"
        key = f"AWS4{self._access.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        hashed = hashlib.sha256(asked.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashed}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        authorization = (
            f"{_ALGORITHM} Credential={self._access.key_id}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return {**headers, "authorization": authorization}


def _blocks(body: memoryview, until: float) -> Iterator[memoryview]:
    """What is sent, some at a time, each of which has the time of a step.

    Raises:
        TimeoutError: the link carries too little.
    """
    for at in range(0, len(body), _BLOCK_BYTES):
        if time.monotonic() > until:
            raise TimeoutError(_TOO_LITTLE)
        yield body[at : at + _BLOCK_BYTES]


class _TimedReader(io.RawIOBase):
    """What a socket receives, until a moment: not a byte now and then for ever."""

    def __init__(self, connected: socket.socket, until: float, step_s: float) -> None:
        self._socket = connected
        # It keeps the socket, which http.client closes once the head has come.
        self._received = connected.makefile("rb", buffering=0)
        self._until = until
        self._step_s = step_s

    def readable(self) -> bool:
        """It is read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Some of it.

        Raises:
            TimeoutError: the moment is past, or a step took too long.
        """
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(_TOO_LITTLE)
        self._socket.settimeout(min(left_s, self._step_s))
        return self._received.readinto(buffer)

    def close(self) -> None:
        """Let the socket go."""
        self._received.close()
        super().close()


class _TimedSocket:
    """What an answer is read from."""

    def __init__(self, reader: _TimedReader) -> None:
        self._reader = reader

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The only one."""
        return io.BufferedReader(self._reader)


def _timed_response(
    connected: socket.socket, *, until: float, step_s: float, **more: Any
) -> http.client.HTTPResponse:
    """An answer whose head and body are there by a moment, or not at all."""
    timed: Any = _TimedSocket(_TimedReader(connected, until, step_s))
    return http.client.HTTPResponse(timed, **more)


def _read(answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """What is answered, of so many bytes at most.

    Raises:
        OSError: it is longer, ends before its end, or takes too long.
        http.client.HTTPException: the same.
    """
    parts, left = [], most_bytes
    while left > 0 and (part := answer.read(min(left, _BLOCK_BYTES))):
        parts.append(part)
        left -= len(part)
    if answer.length:
        msg = f"answered less, or more, than it said: {answer.length} bytes are left"
        raise OSError(msg)
    return b"".join(parts)


def _refused(asked: str, answer: Answer) -> RefusedError:
    found = _CODE.search(answer.content)
    code = found[1].decode() if found else ""
    told = f"{asked}: {answer.status}{f' ({code})' if code else ''}"
    return RefusedError(told, answer.status, code)


def parsed(content: bytes) -> ET.Element:
    """The XML that a store answered.

    Raises:
        OSError: it is none, whatever a parser makes of it.
    """
    try:
        return ET.fromstring(content)  # noqa: S314 (of our store; expat bounds entities)
    except (ET.ParseError, LookupError, ValueError) as exc:
        # The latter two: it says that it is in a character set that nobody knows.
        msg = f"answered what is no list ({exc})"
        raise OSError(msg) from exc


def canonical(query: Mapping[str, str]) -> str:
    """A query as it is signed: encoded, in the order of its names."""
    return "&".join(
        f"{quote(name, safe=_UNRESERVED)}={quote(value, safe=_UNRESERVED)}"
        for name, value in sorted(query.items())
    )

"""What is sent, what comes of it, and whether it is sent again: without any I/O.

A conversation yields what is to be done and is sent what came of it; two short loops,
one of them asynchronous, do it (`client.py`).
"""

import hashlib
import json
import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import httpx

from rubrica_client.calls import Call, Route, Source, pdf_name
from rubrica_client.errors import (
    ApiError,
    ConnectionFailedError,
    IntegrityError,
    error_for,
)

_READS: Final = ("GET", "HEAD")
_AGAIN: Final = (429, 503)
_FIRST_WAIT_S: Final = 0.5
_LOOK_S: Final = 2.0
"""Time between two looks at a state that will pass, where no answer says it."""
_PDF: Final = "application/pdf"
_MANY: Final = 200
"""Elements of a page, the most that there may be."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """How a client talks."""

    base_url: str
    api_key: str = field(repr=False)
    language: str
    attempts: int
    """Of a call, the first one included."""
    longest_wait_s: float
    """Longest that a call waits to be repeated; what asks for more is an error."""


@dataclass(frozen=True, slots=True)
class Send:
    """To be sent."""

    method: str
    url: str
    request: dict[str, Any] = field(repr=False)
    """What else httpx is given."""
    sink: IO[bytes] | None = None
    """Where the body of an answer that is no error goes."""


@dataclass(frozen=True, slots=True)
class Wait:
    """To be waited for, in seconds."""

    seconds: float


Outcome = httpx.Response | httpx.TransportError | None
Conversation = Generator[Send | Wait, Outcome, T]


def converse(options: Options, route: Route, call: Call[T]) -> Conversation[T]:
    """Make a call.

    Args:
        options: of the client.
        route: method and address.
        call: what is asked for.

    Raises:
        ApiError: the answer says what is wrong.
        ConnectionFailedError: there is none.
        IntegrityError: a document came otherwise than told.
    """
    answer = yield from _ask(options, route, call)
    left_s = call.longest_s
    while call.passing is not None and answer.json()["estado"] == call.passing:
        wait_s = _retry_after_s(answer) or _LOOK_S
        if wait_s > left_s:
            break
        left_s -= wait_s
        yield Wait(wait_s)
        answer = yield from _ask(options, route, call)
    return _read(answer, call)


def converse_pages(
    options: Options, route: Route, call: Call[T]
) -> Generator[Send | Wait | list[T], Outcome, None]:
    """Make a call for each page, and yield its elements.

    Args:
        options: of the client.
        route: method and address.
        call: for the first page.

    Raises:
        ApiError: an answer says what is wrong.
        ConnectionFailedError: there is none.
    """
    query = {"limite": _MANY, **{k: v for k, v in call.query.items() if v is not None}}
    while True:
        page: Call[Any] = Call(*call.at, query=query)
        answer = yield from _ask(options, route, page)
        told = answer.json()
        yield told if call.member is None else told[call.member]
        following = answer.links.get("next", {}).get("url")
        if following is None:
            return
        # Its parameters alone: a key is sent to no address that an answer names.
        query = dict(httpx.URL(following).params)


def _ask(
    options: Options, route: Route, call: Call[Any]
) -> Generator[Send | Wait, Outcome, httpx.Response]:
    """Ask until there is an answer, or no use in asking again.

    Raises:
        ApiError: the answer says what is wrong.
        ConnectionFailedError: there is none.
    """
    left = options.attempts
    for usual_s in _waits():
        left -= 1
        outcome = yield from _attempt(options, route, call)
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return outcome
        wait_s = _wait_s(outcome, route, call, usual_s)
        if left <= 0 or wait_s is None or wait_s > options.longest_wait_s:
            break
        yield Wait(wait_s)
    if call.save_to is not None:
        _partial(call.save_to).unlink(missing_ok=True)
    error = _error(outcome)
    raise error


def _attempt(
    options: Options, route: Route, call: Call[Any]
) -> Generator[Send | Wait, Outcome, httpx.Response | httpx.TransportError]:
    headers = {
        "X-Api-Key": options.api_key,
        "Accept-Language": options.language,
    }
    if call.idempotency_key is not None:
        headers["Idempotency-Key"] = call.idempotency_key
    request: dict[str, Any] = {
        "headers": headers,
        "params": {k: v for k, v in call.query.items() if v is not None},
    }
    url = options.base_url + route.filled(call.at)
    with ExitStack() as opened:
        sink = None
        if call.upload is not None:
            parts: dict[str, Any] = {
                name: (_file_name(source), _opened(source, opened), _PDF)
                for name, source in call.upload.parts.items()
            }
            if call.upload.options is not None:
                told = json.dumps(call.upload.options)
                parts["options"] = (None, told, "application/json")
            request["files"] = parts
        elif call.body is not None:
            request["json"] = call.body
        if call.save_to is not None:
            sink = opened.enter_context(_partial(call.save_to).open("wb"))
        outcome = yield Send(route.method, url, request, sink)
    if outcome is None:
        raise TypeError("a conversation is sent what came of it")
    return outcome


def _file_name(source: Source) -> str:
    """What a document is called where nothing else says so."""
    name = pdf_name(source)
    return "documento.pdf" if name is None else name


def _opened(source: Source, until: ExitStack) -> "bytes | IO[bytes] | _LateFile":
    """A document from its beginning, at each attempt."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, Path):
        return until.enter_context(closing(_LateFile(source)))
    source.seek(0)
    return source


class _LateFile:
    """A file that is open only while it is read: a batch may have a thousand.

    What httpx asks of a file of a multipart body, and no more.

    Args:
        path: of a file that is there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = path.stat().st_size
        self._at = 0
        self._file: IO[bytes] | None = None

    def tell(self) -> int:
        """How far it was read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go on from there at the next read."""
        self.close()
        self._at = offset + (self._size if whence == os.SEEK_END else 0)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """What comes next; at the end nothing, and the file is closed."""
        if self._file is None:
            self._file = self._path.open("rb")
            self._file.seek(self._at)
        piece = self._file.read(size)
        self._at += len(piece)
        if not piece:
            self.close()
        return piece

    def close(self) -> None:
        """Close what is open of it."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _partial(path: Path) -> Path:
    """Where a file is written to until it is whole."""
    return path.with_name(f"{path.name}.part")


def _waits() -> Iterator[float]:
    """Seconds between attempts where no answer says them: twice as long each time."""
    longest = _FIRST_WAIT_S
    while True:
        # Between half of it and all of it: who failed together comes back apart.
        yield longest * (500 + secrets.randbelow(500)) / 1000
        longest *= 2


def _wait_s(
    outcome: Outcome, route: Route, call: Call[Any], usual_s: float
) -> float | None:
    """How long to wait before the call is repeated, in seconds; None: it is not."""
    if isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout):
        # Nothing was sent.
        return usual_s
    if route.method not in _READS and call.idempotency_key is None:
        return None
    if not isinstance(outcome, httpx.Response):
        return usual_s
    if outcome.status_code not in _AGAIN:
        return None
    told_s = _retry_after_s(outcome)
    return usual_s if told_s is None else told_s


def _retry_after_s(answer: httpx.Response) -> float | None:
    written = answer.headers.get("Retry-After", "")
    return float(written) if written.isascii() and written.isdigit() else None


def _error(outcome: Outcome) -> ApiError | ConnectionFailedError:
    if not isinstance(outcome, httpx.Response):
        made = ConnectionFailedError(f"{type(outcome).__name__}: {outcome}")
        made.__cause__ = outcome
        return made
    try:
        told = outcome.json()
    except ValueError:
        told = {}
    problem = told if isinstance(told, dict) else {}
    return error_for(outcome.status_code, problem, _retry_after_s(outcome))


def _read(answer: httpx.Response, call: Call[T]) -> T:
    """What an answer has, of the type that the call says.

    Raises:
        IntegrityError: a document came otherwise than told.
    """
    told: Any
    if call.save_to is not None:
        partial = _partial(call.save_to)
        try:
            _demand_whole(answer, _sha256_of(partial))
            told = partial.replace(call.save_to)
        finally:
            partial.unlink(missing_ok=True)
    elif answer.headers.get("Content-Type", "").startswith(_PDF):
        _demand_whole(answer, hashlib.sha256(answer.content).hexdigest())
        told = answer.content
    else:
        told = answer.json() if answer.content else None
    result: T = told
    return result


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _demand_whole(answer: httpx.Response, sha256: str) -> None:
    """Compare a document with its ETag, which is its SHA-256.

    Raises:
        IntegrityError: it is another one.
    """
    told = answer.headers.get("ETag", "").strip('"')
    if told and told != sha256:
        raise IntegrityError(f"the document is {sha256}, and was told to be {told}")

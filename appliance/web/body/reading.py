"""Bodies as they arrive, whole: bytes, one JSON object, or a document.

A body is taken up to a size and a time, and counts among the bytes that a process
holds at once, from its first byte until its request is answered. Who asks holds at
most a part of the whole, so that one cannot take all of it; what goes beyond is
refused at once, before it is read.

Source: decisions "size of bodies", "Limits".
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from quart import Request, current_app, g, request
from werkzeug.http import parse_options_header

from appliance.admission.work_owner import STRANGERS, WORK_OWNER
from appliance.domain import strict_json
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.requests.request import Signer
from appliance.metrics import metrics
from appliance.system.sealed_memory import SealedMemory
from appliance.web import auth
from appliance.web.body.arriving_document import ArrivingDocument
from appliance.web.responses import PDF, SLOWEST
from appliance.web.server.client_address import client_address
from appliance.web.server.exchange import ArrivingBody

ANYONE: Final = "anyone"
"""All who have not said who they are, together."""
KNOWN: Final = "known"
"""Those of them whose address is known (`appliance.admission.known_addresses`)."""
PARTY_PART: Final = 4
"""One person, session or administrator holds a quarter at most, or one body."""
GROUP_PART: Final = 2
"""One integrator, or all callers of either kind who have not said who they are."""
ADDRESS_PART: Final = 16
"""One address of unknown callers."""
PUBLIC_JSON: Final = 16_384
"""Largest JSON body of who has not said who they are, in bytes."""
MULTIPART: Final = "multipart/form-data"
_JSON: Final = "application/json"
_JSON_COPIES: Final = 4
"""How often a document in JSON is held while it is read: the body, its text, the
member, and what that decodes to."""
_MARK: Final = "__document__"
_MANY: Final = "__documents__"
_STRUCTURE: Final = (b",", b":", b"[", b"{", b"\\")
"""Characters by which JSON takes its time, whatever stands between them."""
_STRUCTURE_MOST: Final = 50_000
_View = TypeVar("_View")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a body is taken, and for how long."""

    json: int
    """Largest JSON body, in bytes."""
    document: int
    """Largest document in a multipart body, in bytes."""
    timeout_s: float
    """Longest that nothing of a body may come, in seconds."""
    bodies: int = 0
    """Bytes of all bodies that a process holds."""

    @property
    def multipart(self) -> int:
        """Largest multipart body, in bytes: a document, its options, its frame."""
        return self.document + 2 * self.json

    @property
    def documents(self) -> int:
        """Largest multipart body of many: all that one integrator may hold."""
        return max(self.multipart, self.bodies // GROUP_PART)


class BoundedRequest(Request):
    """A request whose body stays with its sender until it is read."""

    body_class = ArrivingBody


class Budget:
    """The bytes of bodies that one process holds, and everybody's share of them.

    Args:
        total: bytes of all bodies.
        largest: of one body, which always finds room where nothing is held.
    """

    def __init__(self, total: int, largest: int) -> None:
        self._total = max(total, largest)
        self._largest = largest
        self._held: Counter[str] = Counter()
        self._sum = 0
        metrics.watch_pool("body_bytes", self, Budget.state)

    def state(self) -> metrics.PoolState:
        """How many bytes there are, and how many are held."""
        return metrics.PoolState(self._total, self._sum)

    @property
    def held(self) -> int:
        """Bytes that are held now."""
        return self._sum

    def take(self, holders: Mapping[str, int], size: int) -> None:
        """Take bytes, or give them back.

        Args:
            holders: who holds them, each with the part of the whole that is theirs
                (4 is a quarter).
            size: bytes; negative ones are given back.

        Raises:
            ApplianceError: `OVERLOADED` when there is no room for them.
        """
        if size > 0 and (
            self._sum + size > self._total
            or any(
                self._held[name] + size > max(self._total // part, self._largest)
                for name, part in holders.items()
            )
        ):
            metrics.count_refused("body_bytes", "full")
            raise ApplianceError(ErrorCode.OVERLOADED)
        self._sum += size
        for name in holders:
            self._held[name] += size
            if not self._held[name]:
                del self._held[name]


@dataclass(slots=True)
class Held:
    """What one request holds of its process's bytes."""

    budget: Budget
    holders: Mapping[str, int]
    """As `Budget.take` has them."""
    size: int = 0

    def grow(self, size: int) -> None:
        """Hold that many bytes from now on, or as many as before if more.

        Args:
            size: of the body so far, or of all of it where that is known.

        Raises:
            ApplianceError: `OVERLOADED`.
        """
        if size > self.size:
            self.budget.take(self.holders, size - self.size)
            self.size = size

    def release(self) -> None:
        """Hold nothing any more."""
        self.budget.take(self.holders, -self.size)
        self.size = 0


def brings_document(view: _View) -> _View:
    """Mark a view whose body may be as large as a document.

    Args:
        view: the view; a route decorator goes above this mark.
    """
    setattr(view, _MARK, True)
    return view


def brings_documents(view: _View) -> _View:
    """Mark a view whose multipart body may have many of them.

    Args:
        view: the view; a route decorator goes above this mark.
    """
    setattr(view, _MANY, True)
    return brings_document(view)


def is_multipart() -> bool:
    """Tell whether the present request's body is multipart/form-data."""
    return request.mimetype == MULTIPART


async def read_object() -> dict[str, object]:
    """Read the present request's body, which must be one JSON object.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `BODY_NOT_OBJECT`, `JSON_INVALID`, `BAD_HEADER`.

    Source: decisions "errors", "Limits".
    """
    check_type(_JSON)
    raw = b"".join([chunk async for chunk in chunks(json_limit())])
    return strict_json.parse_object(raw)


async def read_document_object() -> dict[str, object]:
    """Read the present request's body: one JSON object with a document in Base64.

    It is held several times while it is read, and counts as often; so it may be a
    quarter of what a document may be in a body of parts.

    Raises:
        ApplianceError: those of `read_object`.
    """
    check_type(_JSON)
    limit = multipart_limit() // _JSON_COPIES
    declared = request.content_length or 0
    if declared <= limit:
        _held().grow(_JSON_COPIES * declared)
    raw = b"".join([chunk async for chunk in chunks(limit)])
    _held().grow(_JSON_COPIES * len(raw))
    # Base64 has none of these, and what stands beside it few: millions of them would
    # keep everybody else waiting while they are read.
    if sum(map(raw.count, _STRUCTURE)) > _STRUCTURE_MOST:
        raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
    return strict_json.parse_object(raw)


async def read_document(*types: str) -> SealedMemory:
    """Read the present request's body, which must be a PDF and nothing else.

    Args:
        types: media types besides `application/pdf` that it may come under.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`,
            `BODY_TIMEOUT`, `OVERLOADED`.
    """
    check_type(PDF, *types)
    limit = face_limits().document
    document = ArrivingDocument(limit)
    try:
        async for chunk in chunks(min(limit, multipart_limit())):
            document.write(chunk)
    except ApplianceError as exc:
        if exc.code is not ErrorCode.BODY_TOO_LARGE:
            raise
        raise ApplianceError(
            ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": limit}
        ) from exc
    return document.whole()


async def read_bytes(expected: Collection[str], limit: int) -> bytes:
    """Read the present request's body, whatever bytes it holds.

    Args:
        expected: media types that it may have.
        limit: most that is taken, in bytes.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    check_type(*expected)
    return b"".join([c async for c in chunks(limit)])


async def discard(limit: int) -> None:
    """Take the present request's body and forget it, whatever it is.

    Args:
        limit: most that is taken, in bytes.

    Raises:
        ApplianceError: `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    async for _ in chunks(limit, keep=False):
        pass


def check_type(*expected: str) -> None:
    """Refuse a body of another type, charset or coding before reading it.

    Args:
        expected: media types.

    Raises:
        ApplianceError: `CONTENT_TYPE`.
    """
    media_type, params = parse_options_header(request.headers.get("Content-Type"))
    charset = params.get("charset", "utf-8").lower()
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if (
        media_type.lower() not in expected
        or charset not in {"utf-8", "utf8"}
        or coding not in {"", "identity"}
    ):
        raise ApplianceError(ErrorCode.CONTENT_TYPE, extras={"allowed": [*expected]})


async def chunks(limit: int, *, keep: bool = True) -> AsyncIterator[bytes]:
    """The present request's body as it arrives, up to a size and a time.

    It may take `web.body_timeout_s`, and longer by what came at 64 KiB a second: a
    body that stops, or that comes slower, is not waited for.

    Args:
        limit: in bytes.
        keep: whether somebody holds what came: it counts in the process's budget.

    Raises:
        ApplianceError: `BODY_TOO_LARGE`, `BODY_TIMEOUT`, `OVERLOADED`.
    """
    declared = request.content_length or 0
    if declared > limit:
        raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
    held = _held()
    if keep:
        held.grow(declared)
    taken = 0
    until = asyncio.get_running_loop().time() + face_limits().timeout_s
    body = aiter(request.body)
    while True:
        try:
            async with asyncio.timeout_at(until + taken / SLOWEST):
                chunk = await anext(body, None)
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.BODY_TIMEOUT) from exc
        if chunk is None:
            return
        taken += len(chunk)
        g.body_taken = taken
        if taken > limit:
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
        if keep:
            held.grow(taken)
        yield chunk


def taken() -> int:
    """How many bytes of the present body were read."""
    read: int = g.get("body_taken", 0)
    return read


def multipart_limit() -> int:
    """Most that the present view takes of documents and their options, in bytes."""
    limits = face_limits()
    view = current_app.view_functions.get(request.endpoint or "")
    if request.method != "POST" or not getattr(view, _MARK, False):
        return json_limit()
    # JSON has one document or a few small ones, and is held several times.
    has_many = getattr(view, _MANY, False) and is_multipart()
    return limits.documents if has_many else limits.multipart


def json_limit() -> int:
    """Most that the present view takes where it does not say more, in bytes."""
    view = current_app.view_functions.get(request.endpoint or "")
    limit = face_limits().json
    return min(limit, PUBLIC_JSON) if auth.is_public(view) else limit


def face_limits() -> Limits:
    """What the present face takes of a body."""
    limits: Limits = current_app.extensions["rubrica.limits"]
    return limits


def hold_as(holders: Mapping[str, int]) -> None:
    """Say who asks, once that is known: the present body counts as theirs.

    Args:
        holders: as `Budget.take` has them.
    """
    g.body_holders = holders


def _held() -> Held:
    """What the present request holds of its process's bytes."""
    known: Held | None = g.get("body_held")
    if known is None:
        holders: Mapping[str, int] | None = g.get("body_holders")
        signer: Signer | None = g.get("signer")
        if not holders and signer is not None:
            holders = {f"person {signer.person}": PARTY_PART}
        elif not holders:
            group = ANYONE if WORK_OWNER.get().group == STRANGERS else KNOWN
            holders = {f"address {client_address()}": ADDRESS_PART, group: GROUP_PART}
        budget: Budget = current_app.extensions["rubrica.budget"]
        g.body_held = known = Held(budget, holders)
    return known


def release() -> None:
    """Hold nothing of the present request any more."""
    known: Held | None = g.get("body_held")
    if known is not None:
        known.release()

"""Fakes at our own ports, for tests that are about something else."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import FindingKind, Inspection, PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    ActivationId,
    BatchId,
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
    TaskId,
    UpkeepWorkId,
)
from appliance.domain.ports import DocumentStream
from appliance.domain.requests.request import (
    Preview,
    RequestView,
    SignCommand,
    SignedDocumentView,
    SignedVersion,
    Signer,
    SignOutcome,
    refuse_unsigned,
)
from appliance.domain.requests.signing_batch import BatchItem, BatchOutcome, SignBatch
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState
from appliance.keys.health import SharedHealth
from appliance.keys.hsm_tasks import HsmTasks
from appliance.signing.requests import Requests
from appliance.signing.sign import Signing
from appliance.signing.sign_batch import BatchSigning

NOON = datetime(2026, 5, 25, 12, 0, 0, tzinfo=UTC)


class AlwaysServed:
    """An HSM that nobody took over; see `worker.hsm.generation_check`."""

    was = True

    async def look(self) -> bool:
        """It may be used."""
        return self.was

    async def demand(self) -> None:
        """It may be used."""


class MovingClock:
    """A clock that stands until it is moved."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def now(self) -> datetime:
        """The time it was set to."""
        return self.at

    def forward(self, seconds: float) -> None:
        """Move it."""
        self.at += timedelta(seconds=seconds)


PDF = b"%PDF-1.7\n%fake\n%%EOF\n"
SIGNED_PDF = PDF + b"%signed\n%%EOF\n"
SHA256 = "ab" * 32
SIGNED_SHA256 = "cd" * 32
PNG = b"\x89PNG\r\n\x1a\nfake"


def request_view(
    number: int, person: str, state: RequestState = RequestState.PENDING
) -> RequestView:
    """A request with two pages and one finding."""
    page = PageBox(0, 0, 595.28, 841.89, 0)
    return RequestView(
        id=RequestId(number),
        person=PersonId(person),
        integrator=IntegratorId("00000000-0000-4000-8000-000000000001"),
        integrator_name="Demo",
        document_name="Señal «uno».pdf",
        state=state,
        reason="",
        sha256=SHA256,
        inspection=Inspection(
            size_bytes=len(PDF),
            pages=(page, replace(page, rotate=90)),
            findings=(FindingKind.JAVASCRIPT,),
            signatures=0,
            docmdp=None,
        ),
        created=NOON,
        expires=None,
        params_sha256=None,
        activation=None,
        process=ProcessId("00000000-0000-4000-8000-00000000000a"),
        seq=0,
    )


def stream_of(content: bytes) -> DocumentStream:
    """Bytes as the store of documents streams them."""

    async def part(start: int, end: int) -> AsyncIterator[bytes]:
        yield content[start:end]

    return DocumentStream(len(content), part(0, len(content)), part)


class FixedDocumentKeys:
    """One key for each integrator, made of its id; all there from the start."""

    def __init__(self) -> None:
        self.shredded: set[IntegratorId] = set()

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key."""
        return None if integrator in self.shredded else await self.make(integrator)

    async def make(self, integrator: IntegratorId) -> bytes:
        """An integrator's key."""
        return hashlib.sha256(integrator.encode()).digest()


class FakeRequests(Requests):
    """Requests of people, held in memory."""

    def __init__(self) -> None:
        self.views: list[RequestView] = []
        self.failure: Exception | None = None
        self.previewed: list[GivenParameters] = []
        self.reasons: list[str] = []

    async def list_for(
        self,
        person: PersonId,
        states: Collection[RequestState],
        limit: int | None = None,
        before: RequestId | None = None,
    ) -> list[RequestView]:
        """Newest first."""
        if self.failure is not None:
            raise self.failure
        views = [
            view
            for view in sorted(self.views, key=lambda view: -view.id)
            if view.person == person
            and view.state in states
            and (before is None or view.id < before)
        ]
        return views[:limit]

    async def get(self, person: PersonId, request: RequestId) -> RequestView:
        """One of a person's."""
        for view in self.views:
            if view.id == request and view.person == person:
                return view
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)

    async def message(self, view: RequestView) -> str | None:
        """None was written."""
        del view
        return None

    async def versions(self, view: RequestView) -> list[SignedVersion]:
        """Two of each that is signed."""
        if view.state is not RequestState.SIGNED:
            return []
        return [
            SignedVersion(view.id, 1, "B-B", SIGNED_SHA256, len(SIGNED_PDF), NOON),
            SignedVersion(view.id, 2, "B-LT", "ef" * 32, 9000, NOON),
        ]

    async def original(
        self, person: PersonId, request: RequestId, *, goes_on: bool = False
    ) -> tuple[RequestView, DocumentStream]:
        """Always the same PDF."""
        del goes_on
        return await self.get(person, request), stream_of(PDF)

    async def preview(
        self, person: PersonId, request: RequestId, given: GivenParameters
    ) -> Preview:
        """A stamp at a fixed place."""
        view = await self.get(person, request)
        self.previewed.append(given)
        params = given.params
        layout = StampLayout(
            page=params.page,
            lines=("Firmado",),
            font_name=params.font_name,
            font_style=params.font_style,
            font_size_pt=12.0,
            color=(0.0, 0.0, 0.0),
            text_x=6.0,
            text_y=6.0,
            x=10.0,
            y=20.5,
            width=120.0,
            height=26.4,
            rect=(10.0, 795.0, 130.0, 821.4),
            rotate=0,
        )
        terms = SignatureTerms.of(params, view.inspection)
        return Preview(layout if params.visible else None, params.page, terms, PNG)

    async def reject(
        self, signer: Signer, request: RequestId, reason: str
    ) -> RequestView:
        """Remember the reason."""
        view = await self.get(signer.person, request)
        self.reasons.append(reason)
        return replace(view, state=RequestState.REJECTED, reason=reason)

    async def signed(
        self, person: PersonId | None, request: RequestId, sha256: str | None = None
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """Every request in state `firmada` has a document, of one version."""
        for view in self.views:
            if view.id == request and person in (None, view.person):
                if view.state is not RequestState.SIGNED:
                    refuse_unsigned(view, NOON)
                if sha256 not in {None, signed_view(request).sha256}:
                    raise ApplianceError(ErrorCode.NOT_FOUND)
                return signed_view(request), stream_of(SIGNED_PDF)
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)


def signed_view(request: RequestId) -> SignedDocumentView:
    """The signed document of a request."""
    return SignedDocumentView(
        request=request,
        integrator=IntegratorId("00000000-0000-4000-8000-000000000001"),
        file_name="Señal «uno».pdf",
        sha256=SIGNED_SHA256,
        size_bytes=len(SIGNED_PDF),
        level="B-B",
    )


class FakeSigning(Signing):
    """Signs at once, or does what it is told."""

    def __init__(self) -> None:
        self.commands: list[SignCommand] = []
        self.sent: list[str | None] = []
        self.failure: Exception | None = None
        self.slow = False

    async def sign(
        self,
        command: SignCommand,
        signer: Signer,
        sent: str | None = None,
        waits: Callable[[], object] = lambda: None,
    ) -> SignOutcome:
        """Remember the command."""
        del signer, waits
        self.commands.append(command)
        self.sent.append(sent)
        if self.failure is not None:
            raise self.failure
        made = None if self.slow else signed_view(command.request)
        return SignOutcome(command.request, made)


class FakeBatchSigning(BatchSigning):
    """Signs what it is given, but what it was told to refuse or to leave open."""

    def __init__(self) -> None:
        self.batches: list[SignBatch] = []
        self.refused: dict[RequestId, ApplianceError] = {}
        self.open: set[RequestId] = set()

    async def sign(
        self,
        batch: SignBatch,
        signer: Signer,
        waits: Callable[[], object] = lambda: None,
    ) -> BatchOutcome:
        """Remember the command."""
        del waits
        self.batches.append(batch)
        return self._outcome(batch.id_for(signer.person, {}), batch)

    async def progress(self, person: PersonId, batch: BatchId) -> BatchOutcome:
        """As `sign` would tell now."""
        for asked in self.batches:
            if asked.id_for(person, {}) == batch:
                return self._outcome(batch, asked)
        raise ApplianceError(ErrorCode.LOTE_NOT_FOUND)

    def _outcome(self, batch: BatchId, asked: SignBatch) -> BatchOutcome:
        return BatchOutcome(batch, tuple(self._item(each) for each in asked.requests))

    def _item(self, request: RequestId) -> BatchItem:
        if request in self.refused:
            return BatchItem(request, problem=self.refused[request])
        is_open = request in self.open
        return BatchItem(request, None if is_open else signed_view(request))


class FakeTasks(HsmTasks):
    """HSM tasks that are done at once, or end as they are told."""

    def __init__(self) -> None:
        self.failure: ApplianceError | None = None

    async def wait(self, task: TaskId, timeout_s: float) -> dict[str, object]:
        """Its output."""
        del task, timeout_s
        if self.failure is not None:
            raise self.failure
        return {}


class FakeHealth(SharedHealth):
    """Says what it is told to say."""

    def __init__(self) -> None:
        self.checks = {"database": "ok"}

    async def ready(self) -> dict[str, str]:
        """Each part with `ok` or a reason."""
        return self.checks


class FakeWorkNotifier:
    """Remembers what it was told; wakes nobody."""

    def __init__(self) -> None:
        self.notified: list[ActivationId] = []
        self._heard = asyncio.Event()

    async def notify(
        self, work: ActivationId | TaskId | RequestBatchId | UpkeepWorkId
    ) -> None:
        """Remember it."""
        self.notified.append(ActivationId(work))
        self._heard.set()

    async def heard(self, times: int) -> None:
        """Wait until it was told that often."""
        while len(self.notified) < times:
            self._heard.clear()
            await self._heard.wait()


class FakeSubscription:
    """Waits in vain, or for no time at all.

    Args:
        event: of the news.
        notifier: that keeps how long each wait was to last, and who waits.
    """

    def __init__(
        self, event: asyncio.Event, notifier: "FakeCompletionNotifier"
    ) -> None:
        self._event = event
        self._notifier = notifier

    async def wait(self, timeout_s: float) -> bool:
        """Wait for `publish` or the time-out."""
        self._notifier.pauses.append(timeout_s)
        with contextlib.suppress(TimeoutError), self._notifier.counting():
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        told = self._event.is_set()
        self._event.clear()
        return told


class FakeCompletionNotifier:
    """News within this process, or none of it.

    Args:
        deaf: lose every news, as a Redis that is away does.
    """

    def __init__(self, *, deaf: bool = False) -> None:
        self.deaf = deaf
        self.published: list[ActivationId] = []
        self.subscribed: list[ActivationId] = []
        self.pauses: list[float] = []
        """How long each wait was to last at most, in seconds."""
        self._waiting = 0
        self._one_more = asyncio.Event()
        self._events: dict[ActivationId, list[asyncio.Event]] = {}

    @asynccontextmanager
    async def subscribe(
        self, *activations: ActivationId
    ) -> AsyncIterator[FakeSubscription]:
        """Listen from now on."""
        self.subscribed += activations
        event = asyncio.Event()
        for activation in activations:
            self._events.setdefault(activation, []).append(event)
        try:
            yield FakeSubscription(event, self)
        finally:
            for activation in activations:
                self._events[activation].remove(event)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count one more who waits, for the time of the block."""
        self._waiting += 1
        self._one_more.set()
        try:
            yield
        finally:
            self._waiting -= 1

    async def awaited(self, subscribers: int = 1) -> None:
        """Wait until so many subscribers wait at the same time."""
        while self._waiting < subscribers:
            self._one_more.clear()
            await self._one_more.wait()

    async def publish(self, activation: ActivationId) -> None:
        """Wake whoever subscribed to it."""
        self.published.append(activation)
        if not self.deaf:
            for event in self._events.get(activation, []):
                event.set()

    async def run(self) -> None:
        """Nobody else tells anything."""


async def error_code(call: Awaitable[object]) -> ErrorCode | None:
    """How a call is refused; None when it is not."""
    try:
        await call
    except ApplianceError as exc:
        return exc.code
    return None

"""Give signed documents back to requests that no longer know of them.

After a restore, what was signed since the backup waits to be signed again, while its
signed document may have survived in the store, where no row names it. It begins with
the bytes of the document that was to be signed (PDF clause 7.5.6: a signature is an
incremental update), opens with its integrator's key alone, and carries one further
signature, by the request's signer. So it is known whose it is, and nobody signs twice.

Source: docs/backup.md "What was signed after the dump".
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.documents.verification import SignatureReport, VerificationReport
from appliance.domain.errors import ApplianceError, DocumentsAwayError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.people.identity import cuil_of
from appliance.domain.ports import BlobMaintenance
from appliance.domain.requests.levels import SignatureProfile, Upkeep, reaches
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.vocab import EventKind, RequestState, SignatureLevel
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from appliance.signing.signing_order import SigningOrder

_ALL: Final = timedelta(days=1)
"""From now, so that no clock that is a little off hides a file."""
_PAGE: Final = 500
_STARTXREF: Final = re.compile(rb"startxref\s+(\d{1,10})\b")
_TAIL_BYTES: Final = 4_096
"""Of a document, in which readers look for where its cross-references begin."""
_OPEN: Final = frozenset({RequestState.PENDING, RequestState.IN_PROGRESS})
Verify = Callable[[bytes], Awaitable[VerificationReport]]


@dataclass(frozen=True, slots=True)
class Found:
    """A file of the store that the record did not name."""

    integrator: IntegratorId
    sha256: str
    request: RequestId | None
    """Whose signed document it is now; None: nothing was done."""
    why: str = ""
    """Why nothing was: an error's code, or nothing where no request fits."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A file that is a request's signed document."""

    view: RequestView
    sha256: str
    size_bytes: int
    signature: SignatureReport


class DocumentRecovery:
    """Looks through what no row names.

    Args:
        store: the record.
        documents: the files.
        verify: checks a file's signatures by the roots that are trusted here.
        turns: gives the turn to who signs next.
        profile: of the installation.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobMaintenance,
        verify: Verify,
        turns: SigningOrder,
        profile: SignatureProfile,
        clock: Clock,
    ) -> None:
        self._store = store
        self._documents = documents
        self._verify = verify
        self._turns = turns
        self._profile = profile
        self._clock = clock

    async def run(self) -> list[Found]:
        """Give back what can be; begun again, it finds what is left.

        Returns:
            Each file that was not named, by integrator.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `SANDBOX_UNAVAILABLE`.
        """
        found: list[Found] = []
        left = await self._unnamed()
        # What one signer made is what the next one signs: until none is given back.
        while True:
            done, left = await self._round(left)
            found += [each for each in done if each.request is not None]
            if not any(each.request is not None for each in done):
                return sorted(found + done, key=lambda each: each.integrator)
            while await self._turns.give_on():
                pass

    async def _unnamed(self) -> dict[IntegratorId, list[str]]:
        """Files that no row names, by integrator."""
        unnamed: dict[IntegratorId, list[str]] = defaultdict(list)
        until = self._clock.now() + _ALL
        async for integrator, names in self._documents.older(until):
            async with self._store.read() as transaction:
                named = await DocumentStore(transaction).named(integrator, names)
            unnamed[integrator] += [each for each in names if each not in named]
        return unnamed

    async def _round(
        self, unnamed: dict[IntegratorId, list[str]]
    ) -> tuple[list[Found], dict[IntegratorId, list[str]]]:
        """Look at each file once: what came of it, and those that are left."""
        waiting = await self._waiting()
        done: list[Found] = []
        left: dict[IntegratorId, list[str]] = {}
        for integrator, names in unnamed.items():
            views = waiting.get(integrator, [])
            matches: list[_Match] = []
            for sha256 in names:
                try:
                    matches += await self._matches(integrator, sha256, views)
                except ApplianceError as exc:
                    _refuse_outage(exc)
                    done.append(Found(integrator, sha256, None, exc.code.value))
            given = await self._give_back(matches)
            done += [Found(integrator, each, given.get(each)) for each in names]
            left[integrator] = [each for each in names if each not in given]
        return _once(done), left

    async def _waiting(self) -> dict[IntegratorId, list[RequestView]]:
        """Requests that may have been signed, oldest first."""
        waiting: dict[IntegratorId, list[RequestView]] = defaultdict(list)
        after = RequestId(0)
        while True:
            async with self._store.read() as transaction:
                page = await RequestStore(transaction).unfinished(after, _PAGE)
            for view in page:
                if view.state in _OPEN:
                    waiting[view.integrator].append(view)
            if len(page) < _PAGE:
                return waiting
            after = page[-1].id

    async def _matches(
        self, integrator: IntegratorId, sha256: str, views: Sequence[RequestView]
    ) -> list[_Match]:
        """The requests whose signed document a file may be.

        Raises:
            ApplianceError: it cannot be read, or its signatures cannot be checked.
        """
        pdf = await self._documents.get(integrator, sha256)
        begun = begins_with(pdf, views)
        if not begun:
            return []
        report = await self._verify(pdf)
        if not report.signatures:
            return []
        newest = report.signatures[-1]
        return [
            _Match(view, sha256, len(pdf), newest)
            for view in begun
            if len(report.signatures) == view.inspection.signatures + 1
            and newest.valid
            # What was changed before it was signed is another document.
            and newest.follows == _last_xref(pdf, view.inspection.size_bytes)
            and await self._is_signer(view, newest)
        ]

    async def _is_signer(self, view: RequestView, signature: SignatureReport) -> bool:
        """Whether a signature is by the person of a request."""
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(view.person)
        return person is not None and cuil_of(signature.signer_serial) == person.cuil

    async def _give_back(self, matches: list[_Match]) -> dict[str, RequestId]:
        """Give each request its first version, which is the shortest; by SHA-256."""
        given: dict[str, RequestId] = {}
        # What was appended to it later begins with it, and is made again.
        for match in sorted(matches, key=lambda match: match.size_bytes):
            is_taken = match.sha256 in given or match.view.id in given.values()
            if not is_taken and await self._record(match):
                given[match.sha256] = match.view.id
        return given

    async def _record(self, match: _Match) -> bool:
        """Have a request be signed by what was found; False where it is settled."""
        async with self._store.write() as transaction:
            view = await RequestStore(transaction).get(match.view.id, lock=True)
            level = match.signature.level or SignatureLevel.B_B.value
            if view is None or not await RequestStore(transaction).recovered(
                view.id, level
            ):
                return False
            await self._publish(transaction, match, level)
        return True

    async def _publish(
        self, transaction: Transaction, match: _Match, level: str
    ) -> None:
        view = match.view
        document = SignedDocumentView(
            request=view.id,
            integrator=view.integrator,
            file_name=view.document_name,
            sha256=match.sha256,
            size_bytes=match.size_bytes,
            level=level,
        )
        await DocumentStore(transaction).sealed(
            view.id, document, self._made(match.signature)
        )
        if (upkeep := self._upkeep(view, level)) is not None:
            await LevelMaintenanceStore(transaction).add(
                view.id, view.integrator, upkeep, self._clock.now()
            )
        transaction.audit.add(
            AuditEvent(
                EventKind.REQUEST_SIGNED,
                "operator",
                integrator=view.integrator,
                request=view.id,
                detail={"sha256": match.sha256, "level": level, "recovered": True},
            )
        )

    def _made(self, signature: SignatureReport) -> datetime:
        """When a document was signed, as far as it proves or says it."""
        told = signature.timestamp or signature.signed_at
        return self._clock.now() if told is None else datetime.fromisoformat(told)

    def _upkeep(self, view: RequestView, level: str) -> Upkeep | None:
        """What a document still needs; how far it got since is not known."""
        profile = self._profile.narrowed(view.wishes)
        is_reached = reaches(SignatureLevel(level), profile.level)
        if is_reached and profile.level is not SignatureLevel.B_LTA:
            return None
        upkeep = Upkeep(profile.level, self._clock.now(), profile.tsa)
        return replace(upkeep, outside=profile.has_outside_tsa)


def begins_with(pdf: bytes, views: Sequence[RequestView]) -> list[RequestView]:
    """The requests whose document a longer file begins with; in one pass over it.

    Args:
        pdf: the file.
        views: of requests, in any order.
    """
    sizes = {view.inspection.size_bytes for view in views}
    digest, at, begun = hashlib.sha256(), 0, set[str]()
    whole = memoryview(pdf)
    for size in sorted(size for size in sizes if size < len(pdf)):
        digest.update(whole[at:size])
        at = size
        begun.add(digest.hexdigest())
    return [view for view in views if view.sha256 in begun]


def _last_xref(pdf: bytes, size: int) -> int | None:
    """Where the cross-references of a file's first bytes begin; None: nowhere told."""
    told = _STARTXREF.findall(pdf, max(0, size - _TAIL_BYTES), size)
    return int(told[-1]) if told else None


def _refuse_outage(exc: ApplianceError) -> None:
    """Go on after what is wrong with one file alone.

    Raises:
        ApplianceError: sandbox or documents are away, which is wrong with none.
    """
    is_away = isinstance(exc, DocumentsAwayError)
    if is_away or exc.code is ErrorCode.SANDBOX_UNAVAILABLE:
        raise exc


def _once(found: list[Found]) -> list[Found]:
    """One word of each file: the first, which says most."""
    told: dict[str, Found] = {}
    for each in found:
        told.setdefault(each.sha256, each)
    return list(told.values())

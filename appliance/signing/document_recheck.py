"""Verification of the signed documents that are kept, again and in one go.

A verifier that has learned of a kind of forgery finds what an earlier one let pass: a
document that was signed here, changed by somebody, and signed here once more. Nothing
is written.

Source: docs/documents.md "Checking what was signed before"; SECURITY.md "Advisories".
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.documents.document_store import DocumentKeyStore
from appliance.domain.documents.verification import (
    Answer,
    Check,
    CheckCode,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.errors import (
    ApplianceError,
    DocumentAlteredError,
    DocumentMissingError,
    DocumentRefusedError,
    DocumentsAwayError,
    ErrorCode,
)
from appliance.domain.ids import RequestId
from appliance.domain.ports import BlobStore
from appliance.domain.requests.kept_documents import KeptDocument, Selection
from appliance.pki.signer_revocations import is_ours
from appliance.record.unit_of_work import Database
from appliance.signing.recheck_store import RecheckStore

Verify = Callable[[bytes], Awaitable[VerificationReport]]
_PAGE: Final = 100
_OUTAGES: Final = 3
"""Documents in a row that an outage kept from being checked, before it is given up."""
_AWAY: Final = frozenset({ErrorCode.SANDBOX_UNAVAILABLE, ErrorCode.OVERLOADED})
_OUR_FIELD: Final = re.compile(r"Firma-[0-9]+")
"""Name of a signature field that the appliance adds."""
_WHOLE: Final = frozenset({"integrity", "coverage", "changes"})
"""Questions on whether a signature is whole; trust and time are others."""


class Outcome(StrEnum):
    """Result for one document."""

    WHOLE = "whole"
    BROKEN = "broken"
    """A signature made here is no longer whole, or is not there."""
    UNCHECKED = "unchecked"
    """Whether they are whole could not be checked."""
    MISSING = "missing"
    """The store does not have the document."""
    ALTERED = "altered"
    """The stored file does not have the SHA-256 of the record."""
    SHREDDED = "shredded"
    """The key of its integrator's documents was destroyed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Answer other than *yes* to one question on a signature."""

    signature: str
    """Name of its field; empty: unknown."""
    signer: str
    """Common name; empty: unknown."""
    question: str
    """`integrity`, `coverage`, `changes`; `ending` of the file's end, and `presence`
    where a signature is not there."""
    code: CheckCode
    reason: str
    """English words."""


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A document, and what became of its signatures."""

    document: KeptDocument
    outcome: Outcome
    faults: tuple[Fault, ...] = ()
    why: str = ""
    """Error code, of a document that could not be verified."""


class OutageError(Exception):
    """Sandbox or documents stay away; the rest was not looked at.

    Args:
        at: request of the first document that was not checked.
    """

    def __init__(self, at: RequestId) -> None:
        super().__init__(at)
        self.at = at


class DocumentRecheck:
    """Verifies kept documents, newest request first.

    Args:
        store: the database.
        documents: the files.
        verify: verifies a file by the roots that are trusted here.
    """

    def __init__(self, store: Database, documents: BlobStore, verify: Verify) -> None:
        self._store = store
        self._documents = documents
        self._verify = verify

    async def count(self, selection: Selection) -> int:
        """Number of documents of a selection."""
        async with self._store.read() as transaction:
            return await RecheckStore(transaction).count(selection)

    async def run(self, selection: Selection) -> AsyncIterator[Rechecked]:
        """Verify each document of a selection; one is held in memory at a time.

        Raises:
            OutageError: several in a row could not be checked for an outage.
            ApplianceError: `STORE_UNAVAILABLE`: the database is away.
        """
        before, outages = selection.before, 0
        first_missed: RequestId | None = None
        while True:
            async with self._store.read() as transaction:
                page = await RecheckStore(transaction).page(selection, before, _PAGE)
            for kept in page:
                checked, is_outage = await self._look(kept)
                yield checked
                if not is_outage:
                    outages, first_missed = 0, None
                    continue
                outages, first_missed = outages + 1, first_missed or kept.request
                if outages >= _OUTAGES:
                    raise OutageError(first_missed)
            if len(page) < _PAGE:
                return
            before = page[-1].request

    async def _look(self, kept: KeptDocument) -> tuple[Rechecked, bool]:
        """Verify one document, and return whether an outage kept it from that.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the database is away.
        """
        try:
            pdf = await self._documents.get(kept.integrator, kept.sha256)
        except DocumentMissingError:
            return Rechecked(kept, Outcome.MISSING), False
        except DocumentAlteredError:
            is_gone = not await self._has_key(kept)
            outcome = Outcome.SHREDDED if is_gone else Outcome.ALTERED
            return Rechecked(kept, outcome), False
        except ApplianceError as exc:
            why = exc.code.value
            is_away = isinstance(exc, DocumentsAwayError)
            return Rechecked(kept, Outcome.UNCHECKED, why=why), is_away
        try:
            report = await self._verify(pdf)
        except DocumentRefusedError as exc:
            return Rechecked(kept, Outcome.UNCHECKED, why=exc.code.value), False
        except ApplianceError as exc:
            if exc.code not in _AWAY:
                raise
            return Rechecked(kept, Outcome.UNCHECKED, why=exc.code.value), True
        return await self._judged(kept, report), False

    async def _has_key(self, kept: KeptDocument) -> bool:
        async with self._store.read() as transaction:
            key = await DocumentKeyStore(transaction).get(kept.integrator)
        return key is not None

    async def _judged(
        self, kept: KeptDocument, report: VerificationReport
    ) -> Rechecked:
        """Sort the answers on signatures that were made here."""
        async with self._store.read() as transaction:
            known = {
                at
                for at, each in enumerate(report.signatures)
                if await is_ours(transaction, each)
            }
        found = faults_of(report, kept.signatures, known)
        for answer, outcome in (
            (Answer.NO, Outcome.BROKEN),
            (Answer.UNCHECKED, Outcome.UNCHECKED),
        ):
            faults = tuple(fault for fault, given in found if given is answer)
            if faults:
                return Rechecked(kept, outcome, faults)
        return Rechecked(kept, Outcome.WHOLE)


def faults_of(
    report: VerificationReport, ours: int, known: Collection[int] = ()
) -> list[tuple[Fault, Answer]]:
    """Answers other than *yes* on the signatures of a document that were made here.

    Those are the newest ones, of which the process says how many there are, and any
    other with a field of ours or a certificate that is known here.

    Args:
        report: on the document.
        ours: signatures that the requests of its process have put into it.
        known: places in the report of signatures with a certificate known here.
    """
    people = [
        (at, each) for at, each in enumerate(report.signatures) if not each.is_timestamp
    ]
    found: list[tuple[Fault, Answer]] = []
    for place, (at, signature) in enumerate(people):
        if (
            place >= len(people) - ours
            or at in known
            or _OUR_FIELD.fullmatch(signature.field)
        ):
            found += _faults(signature)
    if len(people) < ours:
        reason = f"{ours} signatures were made here, and the file has {len(people)}"
        fault = Fault("", "", "presence", CheckCode.FORMAT_FAILURE, reason)
        found.append((fault, Answer.NO))
    if report.ending.answer is not Answer.YES:
        found.append((_fault(None, "ending", report.ending), report.ending.answer))
    return found


def _faults(signature: SignatureReport) -> Sequence[tuple[Fault, Answer]]:
    return [
        (_fault(signature, question, check), check.answer)
        for question, check in signature.checks()
        if question in _WHOLE and check.answer is not Answer.YES
    ]


def _fault(signature: SignatureReport | None, question: str, check: Check) -> Fault:
    field = "" if signature is None else signature.field
    signer = "" if signature is None else signature.signer
    return Fault(field, signer, question, check.code, check.reason)

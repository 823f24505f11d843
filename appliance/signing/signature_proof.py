"""Proof of a published signature: the file that is kept has it, and it verifies.

Rows say which file a signature is in; who writes rows can say anything. So the file is
read, its signatures are verified by the sandbox, and the one that is asked for is found
in it: by its verification code, which stands in the alternate name of the signature's
field as part of the address in the QR code, or else by the field's name, which tells
the request's number. Both are among the signed bytes. Whose it is tells the
certificate, under roots of this machine's files.

Outcomes are kept in memory by the file's SHA-256, never in the record: whoever could
write one there would need no file.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from appliance.domain.appearance.details import CODE_CHARACTERS, CODE_LENGTH
from appliance.domain.clock import Clock
from appliance.domain.documents.verification import (
    Answer,
    SignatureReport,
    VerificationReport,
    worst,
)
from appliance.domain.errors import ApplianceError, DocumentRefusedError
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.people.identity import cuil_of
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.ports import BlobStore, PdfInspector
from appliance.domain.requests.request import SignedVersion
from appliance.domain.sandbox import says_nothing
from appliance.pki.signer_revocations import SignerRevocations
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.pki.validation.signer_roots import SignerRoots
from appliance.pki.validation.trust_anchors import Trust
from appliance.record.unit_of_work import Database

_log = structlog.get_logger(__name__)
_KEPT: Final = timedelta(hours=1)
"""Time for which an outcome holds; revocations are asked each time."""
_KEPT_MOST: Final = 512
"""Outcomes of files that one process keeps."""
_IN_PROGRESS_MOST: Final = 8
"""Files that one process examines or has wait for that."""
_AT_ONCE: Final = 2
_WAIT_S: Final = 12.0
"""Longest wait of a caller; the examination goes on."""
_ADDRESS: Final = re.compile(
    rf"/(?P<code>[{CODE_CHARACTERS}]{{{CODE_LENGTH}}})(?![{CODE_CHARACTERS}])"
)


@dataclass(frozen=True, slots=True)
class SignaturePlace:
    """A signature that the record names, and the file that it is to be in."""

    code: str
    request: RequestId
    cuil: str
    """Of the person who signed, as the record has it."""
    field: str | None
    """Full name of the document's own field; None: a new one."""
    integrator: IntegratorId
    versions: tuple[SignedVersion, ...]
    """Files that hold it, newest first; one at least."""


@dataclass(frozen=True, slots=True)
class SignatureProof:
    """Whether a file has a valid signature."""

    answer: Answer
    report: SignatureReport | None = None
    """The signature, where it was found."""
    is_code_in_document: bool = False
    earlier: frozenset[str] = frozenset()
    """SHA-256 of earlier versions that the file begins with, hex."""


_UNCHECKED: Final = SignatureProof(Answer.UNCHECKED)


@dataclass(frozen=True, slots=True)
class _Examined:
    """What the sandbox says of a file."""

    report: VerificationReport | None
    """None: it is no PDF that can be read, or the sandbox came to no answer."""
    is_conclusive: bool
    """False if nothing is known of the file."""
    earlier: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Roots:
    """Trust by which a file is verified."""

    signers: tuple[bytes, ...]
    timestamps: tuple[bytes, ...]

    @property
    def fingerprint(self) -> str:
        parts = (*self.signers, b"/", *self.timestamps)
        return hashlib.sha256(b"".join(map(_hashed, parts))).hexdigest()


_Key = tuple[str, str, tuple[tuple[str, int], ...]]


class SignatureProofs:
    """Verifies signatures in the files that are kept.

    Args:
        store: the record.
        documents: the files.
        inspector: the sandbox.
        signers: roots for signers, which no row adds to.
        trust: roots for timestamps.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        inspector: PdfInspector,
        signers: SignerRoots,
        trust: Trust,
        clock: Clock,
    ) -> None:
        self._documents = documents
        self._inspector = inspector
        self._signers = signers
        self._trust = trust
        self._clock = clock
        self._revocations = SignerRevocations(store)
        self._tsas = TsaCertificates(store, clock)
        self._kept: OrderedDict[_Key, tuple[datetime, _Examined]] = OrderedDict()
        self._running: dict[_Key, asyncio.Task[_Examined | None]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def prove(
        self, place: SignaturePlace, admit: Callable[[], bool]
    ) -> SignatureProof:
        """Look for a signature in its file, and verify it.

        Args:
            place: where it is to be.
            admit: asked before the sandbox is: whether the caller may have a file
                examined now.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`: of the record.
        """
        examined = await self._examined(place, admit)
        if examined is None or not examined.is_conclusive:
            return _UNCHECKED
        if examined.report is None:
            return SignatureProof(Answer.NO)
        if not _continues_first(examined.earlier, place):
            return SignatureProof(Answer.NO)
        found = _located(examined.report, place)
        if found is None:
            # A revision that cannot be read may hide it.
            is_whole = examined.report.ending.answer is not Answer.UNCHECKED
            return SignatureProof(Answer.NO) if is_whole else _UNCHECKED
        applied = await self._revocations.apply(
            VerificationReport((found,), examined.report.ending)
        )
        (signature,) = applied.signatures
        answers = [signature.verdict, examined.report.ending.answer]
        if cuil_of(signature.signer_serial) is None:
            # Valid or not, it is nobody's that the record could name.
            answers.append(Answer.UNCHECKED)
        return SignatureProof(
            worst(answers),
            signature,
            _named_code(signature) == place.code,
            examined.earlier,
        )

    async def _examined(
        self, place: SignaturePlace, admit: Callable[[], bool]
    ) -> _Examined | None:
        """Return what is known of a file, or have it examined; None: not now."""
        roots = _Roots(
            await self._signers.read(),
            tuple(await self._trust.roots(AnchorPurpose.TIMESTAMPS)),
        )
        newest, *before = place.versions
        sizes = tuple((each.sha256, each.size_bytes) for each in before)
        key = newest.sha256, roots.fingerprint, sizes
        known = self._kept.get(key)
        if known is not None and self._clock.now() < known[0]:
            self._kept.move_to_end(key)
            return known[1]
        running = self._running.get(key)
        if running is None:
            if len(self._running) >= _IN_PROGRESS_MOST or not admit():
                return None
            running = asyncio.create_task(self._examine(key, place.integrator, roots))
            self._running[key] = running
            running.add_done_callback(lambda _: self._running.pop(key, None))
        done, _ = await asyncio.wait({running}, timeout=_WAIT_S)
        return running.result() if done else None

    async def _examine(
        self, key: _Key, integrator: IntegratorId, roots: _Roots
    ) -> _Examined | None:
        """Verify a file and keep the outcome; None where a part is away."""
        sha256, _, sizes = key
        try:
            async with self._places:
                pdf = await self._documents.get(integrator, sha256)
                earlier = await asyncio.to_thread(_begun_with, pdf, sizes)
                examined = await self._verified(pdf, earlier, roots)
        except ApplianceError as exc:
            _log.warning("verification.unchecked", code=exc.code.value, sha256=sha256)
            return None
        self._kept[key] = self._clock.now() + _KEPT, examined
        while len(self._kept) > _KEPT_MOST:
            self._kept.popitem(last=False)
        return examined

    async def _verified(
        self, pdf: bytes, earlier: frozenset[str], roots: _Roots
    ) -> _Examined:
        """Have the sandbox verify a file.

        Raises:
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`.
        """
        try:
            report = await self._inspector.verify(
                pdf, roots.signers, roots.timestamps, await self._tsas.revoked()
            )
        except DocumentRefusedError as refusal:
            return _Examined(None, not says_nothing(refusal), earlier)
        return _Examined(report, is_conclusive=True, earlier=earlier)


def _hashed(part: bytes) -> bytes:
    return hashlib.sha256(part).digest()


def _begun_with(pdf: bytes, sizes: Sequence[tuple[str, int]]) -> frozenset[str]:
    """Return the SHA-256 of those earlier versions that a file begins with.

    Args:
        pdf: the file.
        sizes: of the versions, beside the SHA-256 that each is to have.
    """
    digest, at, whole = hashlib.sha256(), 0, memoryview(pdf)
    found = set()
    for sha256, size in sorted(sizes, key=lambda each: each[1]):
        if not at <= size < len(pdf):
            continue
        digest.update(whole[at:size])
        at = size
        if digest.hexdigest() == sha256:
            found.add(sha256)
    return frozenset(found)


def _continues_first(earlier: frozenset[str], place: SignaturePlace) -> bool:
    """Return whether a file begins with the first version of the request's document.

    Whatever is published later only appends. A file of other bytes is not what was
    signed, whoever signed that.

    Args:
        earlier: versions that the file begins with.
        place: of the signature; a file that is the first version begins with none.
    """
    return all(
        version.sha256 in earlier
        for version in place.versions[1:]
        if (version.request, version.number) == (place.request, 1)
    )


def _named_code(signature: SignatureReport) -> str | None:
    """Return the verification code that a signature's field names; None: none."""
    named = [each["code"] for each in _ADDRESS.finditer(signature.alternate)]
    return named[-1] if named else None


def _located(
    report: VerificationReport, place: SignaturePlace
) -> SignatureReport | None:
    """Return the signature that is asked for; None: the file has none of it."""
    own = [
        each
        for each in report.signatures
        if not each.is_timestamp
        # Of a signature that is broken nobody is known to have made it.
        and cuil_of(each.signer_serial) in {place.cuil, None}
    ]
    for each in own:
        if _named_code(each) == place.code:
            return each
    for each in own:
        # A code in the document is that of its own signature.
        if _named_code(each) is None and _is_field_of(each.field, place):
            return each
    return None


def _is_field_of(field: str, place: SignaturePlace) -> bool:
    """Return whether a field's name is that of a request's signature."""
    if place.field is not None:
        return field == place.field
    return re.fullmatch(rf"Firma-{place.request}(-\d{{1,6}})?", field) is not None

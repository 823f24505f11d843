"""Verdict on the signatures of one PDF: seven questions on each, three answers.

*No* needs proof. A question that could not be answered, for whatever reason, is
*unchecked* and says why; the two are never exchanged for one another.

Source: ETSI EN 319 102-1, 5.1.3 (three statuses); decisions "verification".
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final


class Answer(StrEnum):
    """Answer to one question about a signature."""

    YES = "yes"
    NO = "no"
    UNCHECKED = "unchecked"
    """It could not be checked."""


class CheckCode(StrEnum):
    """Cause of an answer other than *yes*.

    Capital names that EN 319 102-1 has are used in its sense (5.1.3, table 5).
    """

    NONE = ""
    # Bytes intact.
    HASH_FAILURE = "HASH_FAILURE"
    """The signed bytes were changed."""
    SIG_CRYPTO_FAILURE = "SIG_CRYPTO_FAILURE"
    """The signature value does not match the certificate's key."""
    FORMAT_FAILURE = "FORMAT_FAILURE"
    """The signature lacks a part, or a part has no valid form."""
    SIGNATURE_UNREADABLE = "SIGNATURE_UNREADABLE"
    """A part of the signature could not be read here."""
    ALGORITHM_UNSUPPORTED = "ALGORITHM_UNSUPPORTED"
    # Who.
    NO_SIGNING_CERTIFICATE_FOUND = "NO_SIGNING_CERTIFICATE_FOUND"
    SIG_CONSTRAINTS_FAILURE = "SIG_CONSTRAINTS_FAILURE"
    """The certificate is not one for signing documents."""
    # Trust.
    NO_CERTIFICATE_CHAIN_FOUND = "NO_CERTIFICATE_CHAIN_FOUND"
    """No chain leads to a trusted root."""
    CHAIN_CONSTRAINTS_FAILURE = "CHAIN_CONSTRAINTS_FAILURE"
    CERTIFICATE_CHAIN_GENERAL_FAILURE = "CERTIFICATE_CHAIN_GENERAL_FAILURE"
    OUT_OF_BOUNDS_NO_POE = "OUT_OF_BOUNDS_NO_POE"
    """The certificate has expired, and no timestamp proves that the signature is
    older."""
    NOT_YET_VALID = "NOT_YET_VALID"
    """A timestamp proves that the certificate was not valid yet."""
    CRYPTO_CONSTRAINTS_FAILURE = "CRYPTO_CONSTRAINTS_FAILURE"
    """An algorithm that is too weak."""
    # Revocation.
    REVOKED = "REVOKED"
    """Revoked before the time that is proven, or claimed, for the signature."""
    REVOKED_LATER = "REVOKED_LATER"
    """Revoked after the time that is proven for the signature: it stays valid."""
    REVOKED_NO_POE = "REVOKED_NO_POE"
    """Revoked, and no timestamp proves that the signature is older."""
    TRY_LATER = "TRY_LATER"
    """No revocation data for the certificate."""
    # Time.
    NO_POE = "NO_POE"
    """No trusted timestamp: the signing time is a claim of the signer."""
    TIMESTAMP_INVALID = "TIMESTAMP_INVALID"
    """A timestamp of the signature does not stamp it."""
    # Coverage.
    COVERAGE = "COVERAGE"
    """The signature does not cover its whole revision."""
    PDF_AMBIGUOUS = "PDF_AMBIGUOUS"
    """Two conforming readers can read different objects."""
    # Later changes.
    CHANGED = "CHANGED"
    """The document was changed after the signature."""
    LOOKS_DIFFERENT = "LOOKS_DIFFERENT"
    """A page looks different from what was signed."""
    APPENDED = "APPENDED"
    """Bytes follow the last revision."""
    NOT_EXAMINED = "NOT_EXAMINED"
    """The examination was not finished, or is not possible here."""


REASON_CHARS: Final = 300
"""Longest reason, in characters."""
ALTERNATE_CHARS: Final = 300
"""Longest part of an alternate name: an address at its end fits."""


@dataclass(frozen=True, slots=True)
class Check:
    """Answer to one question, with its cause."""

    answer: Answer
    code: CheckCode = CheckCode.NONE
    reason: str = ""
    """English words for people, at most `REASON_CHARS`; for *yes* mostly empty."""


YES: Final = Check(Answer.YES)


def refuted(code: CheckCode, reason: str) -> Check:
    """A *no*, with the proof in words."""
    return Check(Answer.NO, code, reason[:REASON_CHARS])


def unchecked(code: CheckCode, reason: str) -> Check:
    """A *could not be checked*, with the obstacle in words."""
    return Check(Answer.UNCHECKED, code, reason[:REASON_CHARS])


def revoked(
    *,
    at: datetime | None,
    proven: datetime | None,
    claimed: datetime | None,
    reason: str,
) -> Check:
    """Answer for a certificate that is revoked.

    Args:
        at: time of revocation, aware; None: unknown.
        proven: time at which the signature is proven to exist; None: there is none.
        claimed: the signer's own word; None: there is none.
        reason: CRLReason in words; empty: none is given.

    Source: ETSI EN 319 102-1, 5.2.7 and 5.6.2.2: a revocation after the proof of
    existence does not count.
    """
    when = "" if at is None else f" at {at:%Y-%m-%d %H:%M:%S} UTC"
    why = f" ({reason})" if reason else ""
    words = f"the certificate was revoked{when}{why}"
    if at is not None and proven is not None and proven < at:
        words += ", after the time that is proven"
        return Check(Answer.YES, CheckCode.REVOKED_LATER, words)
    if proven is not None or (at and claimed and claimed.tzinfo and claimed >= at):
        return refuted(CheckCode.REVOKED, f"{words}, before the signature was made")
    return unchecked(
        CheckCode.REVOKED_NO_POE,
        f"{words}, and no trusted timestamp proves that the signature is older",
    )


def worst(answers: Iterable[Answer]) -> Answer:
    """The most serious answer: *no* before *unchecked* before *yes*."""
    found = set(answers)
    if Answer.NO in found:
        return Answer.NO
    return Answer.UNCHECKED if Answer.UNCHECKED in found else Answer.YES


_LENIENT: Final = {CheckCode.TRY_LATER, CheckCode.NO_POE}
"""Causes that leave a verdict as it is."""


@dataclass(frozen=True, slots=True)
class FilledField:
    """A form field that was filled in after a signature, as its rules permit."""

    name: str
    """Fully qualified."""
    before: str
    """Earlier value as text, at most 200 characters; empty: none. Of a longer one the
    part from where the two begin to differ, with `…` where something is left out."""
    after: str
    """Value now, likewise."""
    shown: str = ""
    """Text that the page shows there, if it is another one; at most 200 characters."""


@dataclass(frozen=True, slots=True)
class SignatureReport:
    """One signature of a PDF, as the verifier found it."""

    field: str
    """Fully qualified name of its field; empty: unknown."""
    integrity: Check
    """The signed bytes are unchanged and the signature value is right."""
    identity: Check
    """The signer's certificate can be read and is one for signing documents."""
    trust: Check
    """The chain ends at a trusted root."""
    revocation: Check
    """No certificate of the chain was revoked when the signature was made; a later
    revocation is a *yes* with a reason."""
    time: Check
    """A trusted timestamp proves when the signature existed."""
    coverage: Check
    """It covers the whole revision that it was made in, which has one reading."""
    changes: Check
    """Nothing that it forbids follows: only validation data, timestamps, further
    signatures, and what its rules permit."""
    signer: str = ""
    """Subject common name of the signing certificate; empty: unknown."""
    signer_serial: str = ""
    """Subject serialNumber (`CUIL …`), or empty."""
    signed_at: str | None = None
    """Claimed signing time, ISO 8601, or None."""
    docmdp: int | None = None
    """P of a certification signature: 1, 2 or 3."""
    level: str = ""
    """`B-B` … `B-LTA`, as trusted timestamps and the file's own data prove; empty:
    it could not be checked."""
    timestamp: str | None = None
    """The oldest trusted timestamp, ISO 8601, or None."""
    tsa: str = ""
    """Subject of the TSA that made it."""
    void: str = ""
    """Reason why a timestamp of it does not count although it is right: the TSA's
    certificate was revoked since. Empty: there is no such timestamp."""
    follows: int = 0
    """Byte offset of the cross-references of the revision that it was made upon;
    0: none, or unknown."""
    filled: tuple[FilledField, ...] = ()
    """Form fields filled in since, where that is permitted."""
    certificates: tuple[str, ...] = ()
    """SHA-256 of the signing certificate, hex, and of each other encoding of it that
    its issuer's signature fits as well; empty: unknown."""
    serial: str = ""
    """Serial number of the signing certificate, lower-case hexadecimal."""
    is_timestamp: bool = False
    """A document timestamp that is broken, and no signature of a person."""
    alternate: str = ""
    """Last characters of the alternate name of its field (`/TU`), at most
    `ALTERNATE_CHARS`; empty: it has none."""

    def checks(self) -> Iterator[tuple[str, Check]]:
        """Each question by its name, in the order in which people read them."""
        yield "integrity", self.integrity
        yield "identity", self.identity
        yield "trust", self.trust
        yield "revocation", self.revocation
        yield "time", self.time
        yield "coverage", self.coverage
        yield "changes", self.changes

    @property
    def verdict(self) -> Answer:
        """The signature as a whole.

        A *no* to any question is a *no*. Revocation data or a timestamp that is
        missing is stated and lowers nothing: a B-B signature has neither.
        """
        return worst(each.answer for each in self._deciding())

    def _deciding(self) -> Iterator[Check]:
        """The checks that count for the verdict."""
        return (each for _, each in self.checks() if each.code not in _LENIENT)

    @property
    def valid(self) -> bool:
        """True if the verdict is *yes*."""
        return self.verdict is Answer.YES

    @property
    def reason(self) -> str:
        """The first cause of a verdict other than *yes*; empty if it is *yes*."""
        verdict = self.verdict
        if verdict is Answer.YES:
            return ""
        return next(each.reason for each in self._deciding() if each.answer is verdict)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Verdict of `rubrica verify` on one file."""

    signatures: tuple[SignatureReport, ...]
    """In the order they were made; broken document timestamps after them."""
    ending: Check
    """The last revision ends the file."""
    text_covered: Answer = Answer.NO
    """A later mark or filled field hides or changes text that was signed before it, so
    that a reader no longer shows what the first signers saw. A mark may do that."""
    covered_pages: tuple[int, ...] = ()
    """1-based pages on which it does."""
    pages_compared: int = 0
    """Pages whose pictures were compared between signed revisions and the file."""
    pages_changed: int = 0
    """Pages whose objects were changed after a signature."""
    unproven: tuple[str, ...] = ()
    """Subjects of those who made the document timestamps that are whole and prove
    nothing here; empty where a name cannot be read."""

    @property
    def verdict(self) -> Answer:
        """The file as a whole; *no* for a file without a signature."""
        if not self.signatures:
            return Answer.NO
        return worst([self.ending.answer, *(s.verdict for s in self.signatures)])

    @property
    def valid(self) -> bool:
        """True if there is a signature and the verdict is *yes*."""
        return self.verdict is Answer.YES

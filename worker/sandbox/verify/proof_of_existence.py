"""What a file's timestamps prove, by trusted roots and the file's own data alone.

Each is checked for its own time, and its TSA's certificate must last to the time at
which it is known to have existed: of the newest that is now, of the one before it
the time that the newest proves, and so on back. Runs in a confined job only.

Source: ETSI EN 319 102-1, 5.6.3.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final, Self, TypeVar

from asn1crypto import cms, crl, ocsp, x509
from pyhanko.pdf_utils.decode_limits import DecodePurpose
from pyhanko.pdf_utils.generic import (
    DictionaryObject,
    PdfObject,
    Reference,
    StreamObject,
)
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.ades.report import AdESIndeterminate, AdESSubIndic
from pyhanko.sign.validation import (
    DocumentTimestampStatus,
    EmbeddedPdfSignature,
    SignatureCoverageLevel,
    async_validate_pdf_timestamp,
)
from pyhanko.sign.validation.generic_cms import (
    cms_basic_validation,
    collect_timing_info,
    extract_tst_data_iter,
)
from pyhanko.sign.validation.settings import KeyUsageConstraints
from pyhanko.sign.validation.status import (
    RevocationDetails,
    TimestampSignatureStatus,
)
from pyhanko_certvalidator import ValidationContext
from pyhanko_certvalidator.path import ValidationPath
from pyhanko_certvalidator.policy_decl import (
    CertRevTrustPolicy,
    FreshnessReqType,
    RevocationCheckingPolicy,
    RevocationCheckingRule,
)
from pyhanko_certvalidator.revinfo.archival import (
    CRLContainer,
    OCSPContainer,
    process_legacy_crl_input,
    process_legacy_ocsp_input,
)

from appliance.domain.clock import SystemClock
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.vocab import SignatureLevel
from worker.sandbox.inspect.pdf_objects import (
    Key,
    entry,
    key_of,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.certificate_twins import names_one_algorithm
from worker.sandbox.verify.issuers import (
    CERTIFICATES_MAX,
    Issuers,
    KeyKindValidator,
    is_readable,
)
from worker.sandbox.verify.revisions import Revisions
from worker.sandbox.verify.revocations import Revocations
from worker.sandbox.verify.revoked_timestamps import RevokedTsas
from worker.sandbox.verify.signature_checks import has_one_signer
from worker.sandbox.verify.signer_certificates import text

_Entry = TypeVar("_Entry")
_Status = TypeVar("_Status")
_TEXT_CHARS: Final = 200
_NONE: Final = (None, 1)
"""Values of /Predictor that are none."""
_PARTS: Final = "/Certs", "/OCSPs", "/CRLs"
"""Parts of a DSS. Source: ISO 32000-2, table 261."""
_ANY_AGE: Final = timedelta(days=200 * 365)
# Usages are for `signer_certificates`. pyHanko refuses a certificate without key usage,
# which restricts nothing (RFC 5280, 4.2.1.3), and says no chain was found.
_USAGE: Final = KeyUsageConstraints()
_CLOCK_SKEW: Final = timedelta(hours=1)
"""Most that a TSA's clock may be ahead of this machine's, or of a later TSA's."""
_LATER_TRIED: Final = 4
"""Times of later OCSP answers at which a chain is validated."""
_CHAINS_TRIED: Final = 4
"""Most chains around revoked authorities that are tried of one certificate."""


@dataclass(frozen=True, slots=True)
class ProofOfExistence:
    """A trusted timestamp."""

    at: datetime
    tsa: str
    """Subject of its certificate, for people."""
    revision: int
    """Of the document timestamp, or of the signature that carries it."""


class StampState(Enum):
    """The timestamp that a signature carries itself."""

    NONE = auto()
    UNTRUSTED = auto()
    """Right, and its TSA is not trusted here, or proves nothing any more."""
    TRUSTED = auto()
    WRONG = auto()
    """It stamps something else, or its own signature is wrong."""


@dataclass(frozen=True, slots=True)
class ChainStatus:
    """Result of validating the chain of a signer's certificate."""

    certificate: x509.Certificate
    problem: AdESSubIndic | None
    """None: the chain ends at a trusted root."""
    path: ValidationPath | None
    """The chain that was found, also where it breaks a rule."""
    revocation: RevocationDetails | None


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of validating one signature."""

    status: ChainStatus
    proof: ProofOfExistence | None
    level: SignatureLevel
    is_unrevoked: bool
    """Revocation data covers each certificate of the chain, and revokes none."""
    stamp: StampState
    has_unread_data: bool
    """The file has validation data that cannot be read."""
    void: str
    """Why a timestamp of it does not count, though it is right; empty: none."""


class ProofsOfExistence:
    """What is known of times in one file.

    Args:
        reader: the open file.
        stamps: its document timestamps, oldest first.
        roots: trusted for signers.
        stamp_roots: trusted for timestamps.
        revoked: TSAs whose certificates are known to be revoked.
    """

    def __init__(
        self,
        reader: PdfFileReader,
        stamps: Sequence[EmbeddedPdfSignature],
        roots: list[x509.Certificate],
        stamp_roots: list[x509.Certificate],
        revoked: Sequence[RevokedTsa] = (),
    ) -> None:
        self._revoked = RevokedTsas(revoked)
        self._void: list[tuple[int, str]] = []
        self._roots = roots
        self._stamp_roots = stamp_roots
        self._data = _validation_data(reader)
        self._issuers = Issuers()
        if self._data is not None:
            self._issuers.register_multiple(self._data.certificates)
        data = self._data or _ValidationData()
        self._revocations = Revocations(
            data.ocsps, data.crls, self._issuers, _policy(is_demanding=False)
        )
        self._stamped = [each.signed_revision for each in stamps]
        self._stamps: list[ProofOfExistence] = []
        self.unproven: tuple[str, ...] = ()
        """Who made the stamps that prove nothing, oldest first; as they say."""
        for stamp in reversed(stamps):
            proof = self._of_stamp(stamp, self._known_at(stamp.signed_revision))
            if proof is not None:
                self._stamps.insert(0, proof)
            else:
                self.unproven = (_stated_name(stamp), *self.unproven)

    def check(self, signature: EmbeddedPdfSignature) -> Checked:
        """A signature's status at the time that is proven for it, and its level.

        Args:
            signature: any of the file.

        Raises:
            Exception: of any kind, for a signature that cannot be read.
        """
        stamp, proof = self._of_signature(signature)
        moment = None if proof is None else proof.at
        status, is_unrevoked = self._judged(signature, moment)
        void = [
            words for revision, words in self._void
            if revision >= signature.signed_revision
        ]  # fmt: skip
        return Checked(
            status=status,
            proof=proof,
            level=self._level(signature, proof, is_unrevoked=is_unrevoked),
            is_unrevoked=is_unrevoked,
            stamp=stamp,
            has_unread_data=self._data is not None and not self._data.is_whole,
            void=void[0] if void else "",
        )

    def _level(
        self,
        signature: EmbeddedPdfSignature,
        proof: ProofOfExistence | None,
        *,
        is_unrevoked: bool,
    ) -> SignatureLevel:
        """The level that a signature proves."""
        if proof is None:
            return SignatureLevel.B_B
        if self._data is None or not is_unrevoked:
            return SignatureLevel.B_T
        later = [
            each for each in self._stamps if each.revision > signature.signed_revision
        ]
        # A stamp that stands for the signature's own is not one over its data.
        own = sum(each.at == proof.at for each in later)
        return SignatureLevel.B_LTA if len(later) > own else SignatureLevel.B_LT

    def _known_at(self, revision: int) -> datetime | None:
        """The oldest proof of a revision; None when there is none: it is known now."""
        return next((p.at for p in self._stamps if p.revision > revision), None)

    def _of_stamp(
        self, stamp: EmbeddedPdfSignature, moment: datetime | None
    ) -> ProofOfExistence | None:
        try:
            at = _time_of(stamp.signed_data)
            status, told = self._around_revoked(
                lambda: self._stamp_status(stamp, at),
                lambda status: (status.validation_path, status.trusted),
                (at, moment or SystemClock().now()),
            )
            if not (status.intact and status.valid):
                return None
            if self._is_void(status, moment, told, stamp.signed_revision):
                return None
            if not status.trusted or _has_ended(status.signing_cert, moment):
                return None
            if _is_ahead(status.timestamp, moment):
                return None
            tsa = _name(status.signing_cert)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (a forged one raises anything, proves nothing)
            return None
        return ProofOfExistence(status.timestamp, tsa, stamp.signed_revision)

    def _of_signature(
        self, signature: EmbeddedPdfSignature
    ) -> tuple[StampState, ProofOfExistence | None]:
        """Its own timestamp, and the oldest trusted one: that, or a document's."""
        known = self._known_at(signature.signed_revision)
        later = next(
            (p for p in self._stamps if p.revision > signature.signed_revision), None
        )
        try:
            token = next(
                extract_tst_data_iter(signature.signer_info, signed=False), None
            )
            if token is None:
                return self._without_own(signature, later), later
            if not (
                has_one_signer(token)
                and all(
                    names_one_algorithm(each.chosen) for each in token["certificates"]
                )
            ):
                return StampState.UNTRUSTED, later
            at = _time_of(token)
            own, told = self._around_revoked(
                lambda: self._own_stamp(signature, at),
                lambda status: (
                    (None, False)
                    if status is None
                    else (status.validation_path, status.trusted)
                ),
                (at, known or SystemClock().now()),
            )
            if own is None or not (own.intact and own.valid):
                return StampState.WRONG, later
            if (
                self._is_void(own, known, told, signature.signed_revision)
                or not own.trusted
                or _has_ended(own.signing_cert, known)
                or _is_ahead(own.timestamp, known)
            ):
                return StampState.UNTRUSTED, later
            tsa = _name(own.signing_cert)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (a forged one raises anything, proves nothing)
            return StampState.WRONG, later
        proof = ProofOfExistence(own.timestamp, tsa, signature.signed_revision)
        return StampState.TRUSTED, proof

    def _without_own(
        self, signature: EmbeddedPdfSignature, later: ProofOfExistence | None
    ) -> StampState:
        """State of a signature that only document timestamps may stamp."""
        has_later = any(each > signature.signed_revision for each in self._stamped)
        is_untrusted = later is None and has_later
        return StampState.UNTRUSTED if is_untrusted else StampState.NONE

    def _is_void(
        self,
        status: TimestampSignatureStatus,
        known: datetime | None,
        told: Iterable[RevocationDetails],
        revision: int,
    ) -> bool:
        """Whether a revocation voids a timestamp; noted in words.

        Args:
            status: at its own time.
            known: when it is known to have existed; None: now.
            told: revocations of its chain, by the file's own data.
            revision: where it stands.
        """
        why = self._revoked.why_void(status.signing_cert, status.timestamp, known, told)
        if why:
            at, tsa = status.timestamp, _name(status.signing_cert)
            self._void.append((revision, f"{tsa}, {at:%Y-%m-%d %H:%M:%S} UTC: {why}"))
        return bool(why)

    def _stamp_status(
        self, stamp: EmbeddedPdfSignature, moment: datetime
    ) -> DocumentTimestampStatus:
        context = self._context(self._stamp_roots, moment)
        return asyncio.run(async_validate_pdf_timestamp(stamp, context, skip_diff=True))

    def _own_stamp(
        self, signature: EmbeddedPdfSignature, moment: datetime
    ) -> TimestampSignatureStatus | None:
        """Status of the timestamp that a signature carries."""
        context = self._context(self._stamp_roots, moment)
        found = asyncio.run(
            collect_timing_info(
                signature.signer_info, context, signature.compute_digest
            )
        )
        status: TimestampSignatureStatus | None = found.get("timestamp_validity")
        return status

    def _judged(
        self, signature: EmbeddedPdfSignature, moment: datetime | None
    ) -> tuple[ChainStatus, bool]:
        """The status of a signer's chain, and whether data say that all of it is good.

        A revocation counts whatever other data say. Missing data say nothing of the
        chain.
        """

        def validated() -> tuple[ChainStatus, bool]:
            status = self._status(signature, moment)
            is_good = (
                status.problem is None
                and status.path is not None
                and self._was_good(signature, status.path, moment)
            )
            return status, is_good

        (status, is_good), told = self._around_revoked(
            validated,
            lambda judged: (judged[0].path, judged[0].problem is None),
            (moment or SystemClock().now(),),
            until=moment,
        )
        if not told:
            return status, is_good
        details = min(told, key=lambda each: each.revocation_date)
        revoked = (
            AdESIndeterminate.REVOKED_CA_NO_POE
            if details.ca_revoked
            else AdESIndeterminate.REVOKED_NO_POE
        )
        problem = status.problem or revoked
        return replace(status, problem=problem, revocation=details), False

    def _was_good(
        self,
        signature: EmbeddedPdfSignature,
        path: ValidationPath,
        moment: datetime | None,
    ) -> bool:
        """Return whether data of some time say that all of a chain is good.

        Who answers later may have got the certificate for it later. What is good then
        was good before.
        """
        if self._data is None:
            return False
        told = self._revocations.entitled(path)
        data = _ValidationData(
            ocsps=[each for each in told if isinstance(each, OCSPContainer)],
            crls=[each for each in told if isinstance(each, CRLContainer)],
        )
        times = {
            at for at in map(_told_at, data.ocsps) if at and moment and at > moment
        }
        return any(
            self._status(signature, at, data).problem is None
            for at in (moment, *sorted(times)[:_LATER_TRIED])
        )

    def _around_revoked(
        self,
        validate: Callable[[], _Status],
        look: Callable[[_Status], tuple[ValidationPath | None, bool]],
        times: Sequence[datetime],
        *,
        until: datetime | None = None,
    ) -> tuple[_Status, list[RevocationDetails]]:
        """Validate by a chain that no data revoke, if there is one.

        Args:
            validate: without a demand for revocation data.
            look: at a status: the chain that was found, and whether it is trusted.
            times: see `Revocations.of_path`.
            until: revocations from then on do not count; None: all count.

        Returns:
            The status, and the revocations of its chain.
        """
        first: tuple[_Status, list[RevocationDetails]] | None = None
        barred: set[bytes] = set()
        for _ in range(_CHAINS_TRIED):
            with self._issuers.without(barred):
                status = validate()
            path, is_trusted = look(status)
            if first is not None and not (path and is_trusted):
                break
            found = [
                each
                for each in (self._revocations.of_path(path, times) if path else ())
                if until is None or each.details.revocation_date <= until
            ]
            told = [each.details for each in found]
            if not told:
                return status, told
            first = first or (status, told)
            if not all(each.ca_revoked for each in told):
                break
            barred |= {each.certificate.sha256 for each in found}
        return first or (status, [])

    def _status(
        self,
        signature: EmbeddedPdfSignature,
        moment: datetime | None,
        data: "_ValidationData | None" = None,
    ) -> ChainStatus:
        """Validate the signer's chain; timestamps and later changes are left out."""
        found = asyncio.run(
            cms_basic_validation(
                signature.signed_data,
                raw_digest=signature.compute_digest(),
                validation_context=self._context(self._roots, moment, data),
                key_usage_settings=_USAGE,
            )
        )
        return ChainStatus(
            certificate=found["signing_cert"],
            problem=found["trust_problem_indic"],
            path=found["validation_path"],
            revocation=found["revocation_details"],
        )

    def _context(
        self,
        roots: list[x509.Certificate],
        moment: datetime | None,
        data: "_ValidationData | None" = None,
    ) -> ValidationContext:
        """Roots, the file's certificates, and nothing fetched.

        Args:
            roots: which are trusted.
            moment: at which the chain has to be valid; None: now.
            data: that have to show that each certificate of the chain was good; those
                that were out of date do not. None: nothing is asked of that.

        Source: RFC 5280, 6.3.3; EN 319 102-1, 5.2.5.
        """
        told = (data or _ValidationData()).current_at(moment or SystemClock().now())
        return ValidationContext(
            trust_roots=roots,
            allow_fetching=False,
            moment=moment,
            certificate_registry=self._issuers,
            signature_validator=KeyKindValidator(),
            ocsps=told.ocsps,
            crls=told.crls,
            revinfo_policy=_policy(is_demanding=data is not None),
        )


def is_whole_stamp(stamp: EmbeddedPdfSignature | None) -> bool:
    """Whether a document timestamp stamps the whole revision that it stands in.

    Whose it is does not matter here.

    Args:
        stamp: itself; None where it cannot be read.
    """
    if stamp is None:
        return False
    try:
        context = ValidationContext(
            trust_roots=[stamp.signer_cert], allow_fetching=False
        )
        status = asyncio.run(
            async_validate_pdf_timestamp(stamp, context, skip_diff=True)
        )
        covers = stamp.evaluate_signature_coverage()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return False
    return (
        status.intact
        and status.valid
        and covers >= SignatureCoverageLevel.ENTIRE_REVISION
    )


def _told_at(answer: OCSPContainer) -> datetime | None:
    """Return when an OCSP answer was made."""
    basic = answer.extract_basic_ocsp_response()
    if basic is None:
        return None
    at: datetime = basic["tbs_response_data"]["produced_at"].native
    return at


def _policy(*, is_demanding: bool) -> CertRevTrustPolicy:
    """Return what pyHanko asks of a chain; revocations are asked by `Revocations`.

    Args:
        is_demanding: data have to show that each certificate is good.
    """
    rule = (
        RevocationCheckingRule.CRL_OR_OCSP_REQUIRED
        if is_demanding
        else RevocationCheckingRule.NO_CHECK
    )
    # The file's own data is the youngest there is, however old it has become.
    return CertRevTrustPolicy(
        RevocationCheckingPolicy(rule, rule),
        freshness=_ANY_AGE,
        freshness_req_type=FreshnessReqType.MAX_DIFF_REVOCATION_VALIDATION,
    )


@dataclass(frozen=True, slots=True)
class _ValidationData:
    """Contents of a DSS, parsed once for all signatures of the file."""

    certificates: list[x509.Certificate] = field(default_factory=list)
    ocsps: list[OCSPContainer] = field(default_factory=list)
    crls: list[CRLContainer] = field(default_factory=list)
    is_whole: bool = True
    """All entries could be read."""

    def current_at(self, moment: datetime) -> Self:
        """Return the data without what was out of date at a time."""
        return replace(
            self,
            ocsps=[each for each in self.ocsps if _is_current(each, moment)],
            crls=[each for each in self.crls if _is_current(each, moment)],
        )


def _is_current(data: OCSPContainer | CRLContainer, moment: datetime) -> bool:
    """Return whether revocation data were current at a time, or issued after it."""
    if isinstance(data, CRLContainer):
        dates = data.crl_data["tbs_cert_list"]
    else:
        dates = data.extract_single_response()
    if dates is None:
        return False
    last = dates["next_update"].native or dates["this_update"].native
    until: datetime = max(last, dates["this_update"].native)
    return moment <= until + _CLOCK_SKEW


def _validation_data(reader: PdfFileReader) -> _ValidationData | None:
    """Read the DSS of all revisions, entry by entry. None: there is no DSS.

    Entries that cannot be read are left out: anybody can append such entries.
    """
    try:
        streams = _StoredEntries(Revisions(reader)).streams()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (forged cross-references raise anything)
        return None
    if streams is None:
        return None
    certificates, has_all = _load(
        _certificate, DecodePurpose.CERTIFICATE, streams["/Certs"]
    )
    # As containers, or each context would parse all of them again.
    ocsps, has_all_ocsps = _load(_ocsps, DecodePurpose.OCSP_RESPONSE, streams["/OCSPs"])
    crls, has_all_crls = _load(_crls, DecodePurpose.CRL, streams["/CRLs"])
    return _ValidationData(
        certificates=certificates,
        ocsps=ocsps,
        crls=crls,
        is_whole=has_all and has_all_ocsps and has_all_crls,
    )


class _StoredEntries:
    """Entries that the DSS ever had, in any revision.

    PAdES lets entries be removed. Without the CRL that revokes its certificate a
    signature would be valid again, so that what was there once counts. Each version of
    an object is read once, whichever revisions show it.

    Args:
        revisions: of the open file.
    """

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions
        self._seen: set[tuple[str, Key]] = set()

    def streams(self) -> dict[str, list[StreamObject]] | None:
        """Return the streams of each part, the oldest first; None: there is no DSS."""
        found: dict[str, list[StreamObject]] = {part: [] for part in _PARTS}
        count = self._revisions.count
        roots = [self._revisions.trailer(each).get("/Root") for each in range(count)]
        stores = [
            store
            for root in roots
            for catalog in self._versions("/Root", root)
            for store in self._versions_of_entry(catalog, "/DSS")
            if isinstance(store, DictionaryObject)
        ]
        for store in stores:
            for part, streams in found.items():
                for listed in self._versions_of_entry(store, part):
                    for raw in raw_items(listed):
                        streams += [
                            each
                            for each in self._versions(f"{part} entry", raw)
                            if isinstance(each, StreamObject)
                        ]
        return found if stores else None

    def _versions_of_entry(self, holder: object, key: str) -> Iterator[PdfObject]:
        if isinstance(holder, DictionaryObject) and key in holder:
            yield from self._versions(key, holder.raw_get(key))

    def _versions(self, role: str, raw: object) -> Iterator[PdfObject]:
        """Yield a direct object, or each version of an object that is referred to.

        Args:
            role: of the object; in each of them it is read once.
            raw: the object, or a reference to it.
        """
        key = key_of(raw)
        if key is None:
            if isinstance(raw, PdfObject):
                yield raw
            return
        if (role, key) in self._seen:
            return
        self._seen.add((role, key))
        for revision in self._revisions.changes(key):
            view = self._revisions.view(revision)
            try:
                yield view.get_object(Reference(*key, pdf=view))
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001, S112 (a forged object proves nothing)
                continue
            finally:
                self._revisions.forget(revision)


def _load(
    parse: Callable[[bytes], list[_Entry]],
    purpose: DecodePurpose,
    streams: Iterable[StreamObject],
) -> tuple[list[_Entry], bool]:
    """Parse streams of a DSS, equal ones once, and say whether all could be read.

    Of too many the oldest ones are read: others may be appended by anybody.
    """
    found: dict[bytes, list[_Entry]] = {}
    is_whole = True
    for stream in streams:
        if len(found) >= CERTIFICATES_MAX or _has_predictor(stream):
            is_whole = False
            continue
        try:
            data = stream.read_data(purpose)
            if data not in found:
                found[data] = parse(data)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (an entry that proves nothing)
            is_whole = False
    return [each for entries in found.values() for each in entries], is_whole


def _has_predictor(stream: StreamObject) -> bool:
    """Return whether the rows of a stream have PNG's filters.

    No program writes validation data so. A kilobyte of such rows in the file costs half
    a second.
    """
    parameters = entry(stream, "/DecodeParms")
    listed = [resolve(each) for each in raw_items(parameters)]
    return any(
        number(entry(each, "/Predictor")) not in _NONE for each in [parameters, *listed]
    )


# asn1crypto parses what is asked for alone. What every validation asks for is asked for
# here, or one entry would fail them all.


def _certificate(der: bytes) -> list[x509.Certificate]:
    certificate = x509.Certificate.load(der)
    if not is_readable(certificate):
        raise ValueError(certificate.sha256)
    return [certificate]


def _ocsps(der: bytes) -> list[OCSPContainer]:
    found = process_legacy_ocsp_input([ocsp.OCSPResponse.load(der)])
    _demand_usable(found)
    ValidationContext(trust_roots=[], allow_fetching=False, ocsps=found)
    return found


def _crls(der: bytes) -> list[CRLContainer]:
    found = process_legacy_crl_input([crl.CertificateList.load(der)])
    _demand_usable(found)
    ValidationContext(trust_roots=[], allow_fetching=False, crls=found)
    return found


def _demand_usable(found: Iterable[OCSPContainer | CRLContainer]) -> None:
    """Read the dates of revocation data.

    Raises:
        ValueError: they cannot be read.
    """
    for each in found:
        _is_current(each, SystemClock().now())


def _time_of(token: cms.SignedData) -> datetime:
    """What a timestamp says, as yet unchecked. Source: RFC 3161, 2.4.2."""
    info = token["encap_content_info"]["content"].parsed
    at: datetime = info["gen_time"].native
    return at


def _has_ended(certificate: x509.Certificate, known: datetime | None) -> bool:
    """Whether a TSA's time was over when its timestamp is known to have existed."""
    return bool(certificate.not_valid_after < (known or SystemClock().now()))


def _is_ahead(at: datetime, known: datetime | None) -> bool:
    """Return whether a timestamp is later than the time at which it is known to exist.

    Args:
        at: what it says.
        known: what a later trusted timestamp says; None: now.
    """
    return at > (known or SystemClock().now()) + _CLOCK_SKEW


def _stated_name(stamp: EmbeddedPdfSignature) -> str:
    """Return the subject of a stamp's certificate; empty: it cannot be read."""
    try:
        return _name(stamp.signer_cert)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return ""


def _name(certificate: x509.Certificate) -> str:
    """What people call a subject: its common name, and its organization."""
    subject = certificate.subject
    known = (
        text(subject.native.get(each)) for each in ("common_name", "organization_name")
    )
    return (", ".join(filter(None, known)) or subject.human_friendly)[:_TEXT_CHARS]

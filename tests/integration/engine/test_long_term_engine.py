"""Timestamps, validation data and document timestamps, made by our own engine."""

import datetime as dt
import hashlib
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from asn1crypto import crl, ocsp, x509
from pyhanko.sign.validation.dss import DocumentSecurityStore

from appliance.domain.clock import SystemClock
from appliance.domain.documents.verification import Answer, CheckCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from appliance.domain.requests.levels import ValidationData
from tests.support.documents.field_pdfs import check_box_without_state
from tests.support.documents.long_term_validators import (
    lt_failures,
    lta_failures,
    openssl_accepts,
)
from tests.support.documents.pdf_samples import make_pdf, make_plan
from tests.support.documents.software_signer import SoftwareSigner, make_signer
from tests.support.documents.validators import pdfsig, read_pdf
from tests.support.factories.fakes import MovingClock
from tests.support.pki.long_term_pki import LongTermPki, SoftwareTsa
from worker.pades import (
    SignatureCheckError,
    SignatureMethod,
    Validated,
    add_dss,
    check,
    check_end,
    check_timestamp,
    fill_timestamp,
    prepare,
    prepare_timestamp,
)
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.verify.verify import verify

ROOM = 8192
SHA256 = DigestAlgorithm.SHA256
YEAR = dt.timedelta(days=365)
HOUR = dt.timedelta(hours=1)


def now() -> dt.datetime:
    """The machine's time, which pyHanko takes for the end of all, in whole seconds."""
    return SystemClock().now().replace(microsecond=0)


@pytest.fixture
def clock() -> MovingClock:
    """A clock that the test moves, a little behind the machine's."""
    return MovingClock(now() - dt.timedelta(hours=1))


@pytest.fixture
def pki(clock: MovingClock) -> LongTermPki:
    """CA, OCSP, CRLs."""
    return LongTermPki(clock)


def b_t(
    original: bytes,
    signer: SoftwareSigner,
    tsa: SoftwareTsa,
    fonts: StampFonts,
    method: SignatureMethod | None = None,
    field: str = "Firma-7",
) -> tuple[bytes, bytes]:
    """The file signed with a timestamp, and the signature's Contents."""
    plan = make_plan(signer, method=method)
    plan = replace(plan, token_bytes=ROOM, signed_at=tsa.clock.now(), field_name=field)
    prepared = prepare(original, plan, fonts)
    value = signer.value(prepared.digest, plan.method)
    digest = plan.method.digest
    token = tsa.token(hashlib.new(digest.value, value).digest(), digest)
    increment = signer.filled(prepared, plan, value, token)
    checked = check(original, increment, plan.certificate)
    assert checked.token is not None
    assert checked.token.at == tsa.clock.now()
    return original + increment, checked.contents


def b_lt(pdf: bytes, *validated: Validated) -> bytes:
    """The file with validation data."""
    increment = add_dss(pdf, validated)
    check_end(pdf, increment)
    return pdf + increment


def stamped(pdf: bytes, tsa: SoftwareTsa) -> tuple[bytes, bytes]:
    """The file with a document timestamp, and that one's Contents."""
    prepared = prepare_timestamp(pdf, SHA256, ROOM)
    increment = fill_timestamp(prepared, tsa.token(prepared.imprint, SHA256))
    return pdf + increment, check_timestamp(pdf, increment).contents


def renewed(
    pdf: bytes, pki: LongTermPki, tsa: SoftwareTsa, newest: bytes, former: bytes
) -> tuple[bytes, bytes]:
    """The file with data of its newest timestamp, stamped anew.

    Args:
        pdf: the file.
        pki: what answers for certificates.
        tsa: what stamps now.
        newest: Contents of what was stamped last.
        former: the certificate of the TSA that did.
    """
    pdf = b_lt(pdf, Validated(newest, pki.evidence(former)))
    pdf, contents = stamped(pdf, tsa)
    data = pki.evidence(tsa.certificate)
    return b_lt(pdf, Validated(contents, data)), contents


def evidence(
    pki: LongTermPki, signer: SoftwareSigner, tsa: SoftwareTsa
) -> ValidationData:
    """What a signature with a timestamp needs."""
    own = pki.evidence(signer.certificate)
    return own.with_more(pki.evidence(tsa.certificate))


@pytest.mark.parametrize("scheme", [SignatureScheme.RSA_PKCS1, SignatureScheme.RSA_PSS])
@pytest.mark.parametrize("digest", list(DigestAlgorithm))
def test_signature_carries_a_timestamp_over_its_value(
    scheme: SignatureScheme,
    digest: DigestAlgorithm,
    pki: LongTermPki,
    fonts: StampFonts,
) -> None:
    """With each digest and both RSA schemes; valid for pyHanko and pdfsig."""
    signer, tsa = pki.signer(), pki.tsa()

    pdf, contents = b_t(make_pdf(), signer, tsa, fonts, SignatureMethod(scheme, digest))
    pdf = b_lt(pdf, Validated(contents, evidence(pki, signer, tsa)))

    assert lt_failures(pdf, pki.chain[-1], pki.clock.now()) == []
    assert [one.valid for one in pdfsig(pdf)] == [True]


def test_check_refuses_the_timestamp_of_another_signature(
    pki: LongTermPki, fonts: StampFonts
) -> None:
    """The imprint has to be over this very value."""
    signer, tsa = pki.signer(), pki.tsa()
    original, plan = make_pdf(), make_plan(signer)
    other = tsa.token(bytes(32), SHA256)
    plan = replace(plan, token_bytes=ROOM)
    prepared = prepare(original, plan, fonts)
    value = signer.value(prepared.digest)
    increment = signer.filled(prepared, plan, value, other)

    with pytest.raises(SignatureCheckError, match="another signature"):
        check(original, increment, plan.certificate)


def test_store_holds_the_same_as_pyhankos(pki: LongTermPki, fonts: StampFonts) -> None:
    """The same streams, the same arrays, the same entry but for its name."""
    signer, tsa = pki.signer(), pki.tsa()
    pdf, contents = b_t(make_pdf(), signer, tsa, fonts)
    data = evidence(pki, signer, tsa)

    ours = read_pdf(b_lt(pdf, Validated(contents, data)))

    out = io.BytesIO(pdf)
    DocumentSecurityStore.add_dss(
        out,
        contents,
        certs=[x509.Certificate.load(each) for each in data.certificates],
        ocsps=[ocsp.OCSPResponse.load(each) for each in data.ocsps],
        crls=[crl.CertificateList.load(each) for each in data.crls],
    )
    theirs = read_pdf(out.getvalue())
    for key in ("/Certs", "/OCSPs", "/CRLs"):
        assert {each.get_object().data for each in ours.root["/DSS"][key]} == {
            each.get_object().data for each in theirs.root["/DSS"][key]
        }
    assert set(ours.root["/DSS"]) == set(theirs.root["/DSS"])
    (name,) = ours.root["/DSS"]["/VRI"]
    assert (
        name == "/" + hashlib.sha1(contents, usedforsecurity=False).hexdigest().upper()
    )
    (their_name,) = theirs.root["/DSS"]["/VRI"]
    entry = ours.root["/DSS"]["/VRI"][name]
    assert set(entry) == set(theirs.root["/DSS"]["/VRI"][their_name])


def test_store_keeps_each_piece_once(pki: LongTermPki, fonts: StampFonts) -> None:
    """Of two signatures under one CA, and nothing at all when nothing is new."""
    signer, tsa = pki.signer(), pki.tsa()
    data = evidence(pki, signer, tsa)
    pdf, first = b_t(make_pdf(), signer, tsa, fonts)
    pdf = b_lt(pdf, Validated(first, data))
    pdf, second = b_t(pdf, signer, tsa, fonts)

    pdf = b_lt(pdf, Validated(second, data))

    store = read_pdf(pdf).root["/DSS"]
    assert len(store["/VRI"]) == 2
    assert len(store["/Certs"]) == len(data.certificates)
    assert len(store["/OCSPs"]) == len(data.ocsps)
    assert add_dss(pdf, [Validated(second, data)]) == b""


def test_three_signatures_and_a_document_timestamp_are_valid(
    fonts: StampFonts, tmp_path: Path
) -> None:
    """For pyHanko, for pdfsig and, the timestamp, for OpenSSL."""
    clock = MovingClock(now() - 2.5 * YEAR)
    pki = LongTermPki(clock)
    tsa, pdf = pki.tsa(), make_pdf()
    for _ in range(3):
        signer = pki.signer()
        pdf, contents = b_t(pdf, signer, tsa, fonts)
        clock.forward(60)
        pdf = b_lt(pdf, Validated(contents, evidence(pki, signer, tsa)))
    pdf, newest = stamped(pdf, tsa)
    # Their certificates have ended by then; the TSA's has not.
    clock.at = now() - HOUR
    pdf, _ = renewed(pdf, pki, tsa, newest, tsa.certificate)

    assert lta_failures(pdf, pki.chain[-1], now()) == []
    assert sum(one.valid for one in pdfsig(pdf)) == 3
    assert (
        openssl_accepts(pdf, tmp_path, pki.chain, clock.now())
        == ["Verification: OK"] * 2
    )


def test_signature_outlives_ten_certificates_of_the_tsa(fonts: StampFonts) -> None:
    """Thirty years, each timestamp covered by the next before its TSA ends."""
    # They end today: see `now`.
    life = 3 * YEAR
    start = now() - 10 * life - HOUR
    clock = MovingClock(start)
    pki = LongTermPki(clock)
    signer, tsa = pki.signer(), pki.tsa(days=life.days + 30)
    pdf, contents = b_t(make_pdf(), signer, tsa, fonts)
    clock.forward(60)
    pdf = b_lt(pdf, Validated(contents, evidence(pki, signer, tsa)))
    pdf, newest = stamped(pdf, tsa)
    for number in range(1, 11):
        clock.at = start + number * life
        published, former = pdf, tsa
        tsa = pki.tsa(days=life.days + 30)
        pdf, newest = renewed(pdf, pki, tsa, newest, former.certificate)
        assert pdf.startswith(published)

    assert lta_failures(pdf, pki.chain[-1], now()) == []


def test_document_timestamp_refuses_other_bytes(pki: LongTermPki) -> None:
    """A token over something else is not let out."""
    pdf = make_pdf()
    prepared = prepare_timestamp(pdf, SHA256, ROOM)
    increment = fill_timestamp(prepared, pki.tsa().token(bytes(32), SHA256))

    with pytest.raises(SignatureCheckError, match="other bytes"):
        check_timestamp(pdf, increment)


def test_roots_of_signers_and_of_timestamps_are_told_apart(
    pki: LongTermPki, fonts: StampFonts
) -> None:
    """A TSA outside proves its time, and its root makes nobody a signer."""
    signer = make_signer()
    pdf, _ = b_t(make_pdf(), signer, pki.tsa(), fonts)
    own, of_tsa = signer.chain[-1], pki.chain[-1]

    (both,) = verify(pdf, [own], [own, of_tsa]).signatures
    (unproven,) = verify(pdf, [own], [own]).signatures
    (stranger,) = verify(pdf, [of_tsa], [own, of_tsa]).signatures

    assert (both.valid, both.level) == (True, "B-T")
    assert both.timestamp is not None
    assert (unproven.valid, unproven.level, unproven.timestamp) == (True, "B-B", None)
    assert stranger.trust.answer is Answer.UNCHECKED


@pytest.mark.parametrize("original", [make_pdf, check_box_without_state])
def test_verification_names_level_and_timestamp(
    original: Callable[[], bytes], fonts: StampFonts
) -> None:
    """By the roots and the file alone, also when the signer's certificate has ended.

    A form that pyHanko's own rules fail on once something follows is no exception.
    """
    clock = MovingClock(now() - 2.5 * YEAR)
    pki = LongTermPki(clock)
    signer, tsa = pki.signer(), pki.tsa()
    at = clock.now()
    b_t_only, contents = b_t(original(), signer, tsa, fonts)
    clock.forward(60)
    data = pki.evidence(signer.certificate).with_more(pki.evidence(tsa.certificate))
    lt = b_lt(b_t_only, Validated(contents, data))
    lta, _ = stamped(lt, tsa)

    told = [verify(pdf, [pki.chain[-1]]).signatures[0] for pdf in (b_t_only, lt, lta)]

    assert [one.level for one in told] == ["B-T", "B-LT", "B-LTA"]
    assert {one.timestamp for one in told} == {at.isoformat()}
    assert all(one.valid and "TSA" in one.tsa for one in told)
    other = verify(lta, [make_signer().chain[-1]]).signatures[0]
    assert (other.level, other.timestamp, other.valid) == ("B-B", None, False)


def test_data_of_another_signer_harms_no_signature(fonts: StampFonts) -> None:
    """A store may have answers for the other signers of the file alone."""
    pki = LongTermPki(MovingClock(now()))
    first, second, tsa = pki.signer(), pki.signer(), pki.tsa()
    pdf, _ = b_t(make_pdf(), first, tsa, fonts)
    pdf, contents = b_t(pdf, second, tsa, fonts, field="Firma-8")
    data = pki.evidence(second.certificate)
    pdf = b_lt(pdf, Validated(contents, data))

    one, two = verify(pdf, [pki.chain[-1]]).signatures

    assert (one.valid, two.valid) == (True, True)
    assert one.revocation.code is CheckCode.TRY_LATER
    assert (one.level, two.level) == ("B-T", "B-LT")

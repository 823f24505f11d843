"""Revocations that a file's own data prove, beside other data that hide them.

Each CRL and each OCSP answer counts by itself: neither a good answer nor data that
nobody's key signed hide a revocation, and the latter make none.

Source: RFC 5280, 6.3; RFC 6960, 3.2; ETSI EN 319 102-1, 5.2.6.
"""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import pytest
from asn1crypto import core
from asn1crypto import ocsp as asn1_ocsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.documents.verification import Answer, SignatureReport
from appliance.domain.requests.levels import ValidationData
from tests.support.documents.contract_pdf import contract
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import Makers
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.pki.outside_ca import der, named, rsa_key, usage
from worker.pades import Validated, add_dss
from worker.sandbox.verify.verify import verify

DAY: Final = dt.timedelta(days=1)
URL: Final = x509.UniformResourceIdentifier("http://ca.invalid/crl")


def first(pdf: bytes, do: Makers) -> SignatureReport:
    """Report on the first signature."""
    return verify(pdf, [do.root]).signatures[0]


def with_data(pdf: bytes, data: ValidationData) -> bytes:
    """Append data to the DSS."""
    values = SignedFile(pdf).signature_contents()
    return pdf + add_dss(pdf, [Validated(each, data) for each in values])


def told(
    do: Makers, certificate: bytes, days: float, *, revoked: bool, by_crl: bool
) -> ValidationData:
    """Make revocation data that the PKI gave on a certificate some days ago.

    Args:
        do: the PKI's.
        certificate: it.
        days: since then.
        revoked: whether it was revoked right then.
        by_crl: by a CRL, not by an OCSP answer.
    """
    before, known = do.pki.clock.at, set(do.pki.revoked)
    do.pki.clock.at = before - days * DAY
    do.pki.revoked = {do.pki.serial(certificate)} if revoked else set()
    make = do.pki.tsa_evidence if by_crl else do.pki.evidence
    data = make(certificate)
    do.pki.clock.at, do.pki.revoked = before, known
    return data


def crl(
    do: Makers,
    name: x509.Name,
    key: rsa.RSAPrivateKey,
    serials: Sequence[int] = (),
    days: float = 10,
    *extensions: tuple[x509.ExtensionType, bool],
) -> bytes:
    """A CRL that revokes serial numbers at its own time, some days ago."""
    at = do.pki.clock.now().replace(microsecond=0) - days * DAY
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(name)
        .last_update(at)
        .next_update(at + 30 * DAY)
    )
    for serial in serials:
        builder = builder.add_revoked_certificate(
            x509.RevokedCertificateBuilder()
            .serial_number(serial)
            .revocation_date(at)
            .build()
        )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize("days", [10, 2])
@pytest.mark.parametrize("good_by_crl", [False, True])
def test_good_answer_hides_no_revocation_of_the_signer(
    days: int, *, good_by_crl: bool
) -> None:
    """An older good OCSP answer, and a newer CRL that has dropped the entry."""
    do = Makers.now()
    ours = do.signer.certificate
    revoked = with_data(
        do.signed(contract()), told(do, ours, days, revoked=True, by_crl=True)
    )
    assert first(revoked, do).revocation.answer is Answer.NO
    since = 1 if good_by_crl else 20

    report = first(
        with_data(revoked, told(do, ours, since, revoked=False, by_crl=good_by_crl)), do
    )

    assert report.revocation.answer is Answer.NO
    assert report.trust.answer is Answer.YES
    assert report.verdict is Answer.NO


@pytest.mark.parametrize("by_document", [False, True])
def test_good_answer_hides_no_revocation_of_a_tsa(*, by_document: bool) -> None:
    """The timestamp is a signature's own, or a document's."""
    do = Makers.now()
    if by_document:
        stamped = do.timestamped(do.signed(contract()))
    else:
        stamped = do.signed(contract(), timestamp=True)
    ours = do.tsa.certificate
    assert first(stamped, do).time.answer is Answer.YES
    revoked = with_data(stamped, told(do, ours, 10, revoked=True, by_crl=True))

    report = first(
        with_data(revoked, told(do, ours, 20, revoked=False, by_crl=False)), do
    )

    assert report.time.answer is Answer.UNCHECKED
    assert report.timestamp is None
    assert report.level == "B-B"


def authority(
    do: Makers,
    name: x509.Name,
    key: rsa.RSAPrivateKey,
    issuer: x509.Name,
    by: rsa.RSAPrivateKey,
) -> x509.Certificate:
    """An authority's certificate with an address of CRLs."""
    now = do.pki.clock.now()
    point = x509.DistributionPoint([URL], None, None, None)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + 3650 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage("key_cert_sign", "crl_sign"), critical=True)
        .add_extension(x509.CRLDistributionPoints([point]), critical=False)
        .sign(by, hashes.SHA256())
    )


def long_chain() -> tuple[
    Makers, x509.Certificate, x509.Certificate, rsa.RSAPrivateKey
]:
    """Root, two authorities, signer. Returns both authorities, and the upper's key."""
    do = Makers.now()
    pki, key = do.pki, rsa_key("middle")
    upper = authority(do, named("CA media"), key, pki.root_name, pki.root_key)
    lower = authority(do, pki.ca_name, pki.ca_key, upper.subject, key)
    chain = der(lower), der(upper), der(pki.root)
    signer = SoftwareSigner(do.signer.key, do.signer.certificate, chain)
    return replace(do, signer=signer), upper, lower, key


def test_junk_hides_no_revocation_of_an_authority() -> None:
    """A CRL in the root's name, by another key, beside one that revokes below it."""
    do, upper, lower, key = long_chain()
    certificates = der(lower), der(upper)
    lists = crl(do, upper.subject, key, [lower.serial_number])
    revoked = with_data(
        do.signed(contract()), ValidationData(certificates=certificates, crls=(lists,))
    )
    assert first(revoked, do).revocation.answer is Answer.NO
    junk = crl(do, do.pki.root_name, key)

    report = first(
        with_data(revoked, ValidationData(certificates=certificates, crls=(junk,))), do
    )

    assert report.revocation.answer is Answer.NO
    assert report.verdict is Answer.NO


def test_chain_around_a_revoked_authority_counts() -> None:
    """The root certified the authority's key, too."""
    do, upper, lower, key = long_chain()
    lists = crl(do, upper.subject, key, [lower.serial_number])
    chain = ValidationData(certificates=(der(lower), der(upper)), crls=(lists,))
    revoked = with_data(do.signed(contract()), chain)
    assert first(revoked, do).revocation.answer is Answer.NO

    report = first(
        with_data(revoked, ValidationData(certificates=(der(do.pki.ca),))), do
    )

    assert report.revocation.answer is Answer.UNCHECKED
    assert report.trust.answer is Answer.YES


def _forged_crl(do: Makers, serial: int) -> ValidationData:
    return ValidationData(crls=(crl(do, do.pki.ca_name, rsa_key("other"), [serial]),))


def _forged_answer(do: Makers, serial: int) -> ValidationData:
    del serial
    ours, key = x509.load_der_x509_certificate(do.signer.certificate), rsa_key("other")
    namesake = authority(do, do.pki.ca_name, key, do.pki.ca_name, key)
    return ValidationData(ocsps=(answer(do, ours, namesake, key),))


def _crl_by_the_signer(do: Makers, serial: int) -> ValidationData:
    key = do.signer.key
    assert isinstance(key, rsa.RSAPrivateKey)
    return ValidationData(crls=(crl(do, named("Ana Núñez"), key, [serial]),))


def _answer_by_the_signer(do: Makers, serial: int) -> ValidationData:
    del serial
    key = do.signer.key
    assert isinstance(key, rsa.RSAPrivateKey)
    ours = x509.load_der_x509_certificate(do.signer.certificate)
    return ValidationData(ocsps=(answer(do, ours, ours, key),))


@pytest.mark.parametrize(
    "forge", [_forged_crl, _forged_answer, _crl_by_the_signer, _answer_by_the_signer]
)
def test_revocation_by_nobody_entitled_lowers_nothing(
    forge: Callable[[Makers, int], ValidationData],
) -> None:
    """It has the signer's serial number, and the signature of another key."""
    do = Makers.now()
    pdf = do.with_dss(do.signed(contract(), timestamp=True))
    before = first(pdf, do)
    assert before.level == "B-LT"
    serial = do.pki.serial(do.signer.certificate)

    assert first(with_data(pdf, forge(do, serial)), do) == before


@pytest.mark.parametrize("by_crl", [False, True])
def test_later_revocation_lowers_nothing(*, by_crl: bool) -> None:
    """The time that is proven is before it."""
    do = Makers.now()
    pdf = do.with_dss(do.signed(contract(), timestamp=True))
    before = first(pdf, do)
    assert before.level == "B-LT"
    later = told(do, do.signer.certificate, -0.01, revoked=True, by_crl=by_crl)

    assert first(with_data(pdf, later), do) == before


def answer(
    do: Makers, leaf: x509.Certificate, responder: x509.Certificate,
    key: rsa.RSAPrivateKey,
) -> bytes:  # fmt: skip
    """An OCSP answer of ten days ago that revokes, and has no certificates."""
    at = do.pki.clock.now().replace(microsecond=0) - 10 * DAY
    return (
        ocsp.OCSPResponseBuilder()
        .add_response(
            cert=leaf, issuer=do.pki.ca, algorithm=hashes.SHA256(),
            cert_status=ocsp.OCSPCertStatus.REVOKED, this_update=at,
            next_update=at + DAY, revocation_time=at, revocation_reason=None,
        )
        .responder_id(ocsp.OCSPResponderEncoding.NAME, responder)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )  # fmt: skip


def test_namesake_hides_no_answer_of_an_authority() -> None:
    """A responder's name means the first certificate alone to pyHanko."""
    do = Makers.now()
    leaf = x509.load_der_x509_certificate(do.signer.certificate)
    other = rsa_key("other")
    namesake = authority(do, do.pki.ca_name, other, do.pki.ca_name, other)
    junk = ValidationData(certificates=(der(namesake),))
    real = ValidationData(
        certificates=do.pki.chain, ocsps=(answer(do, leaf, do.pki.ca, do.pki.ca_key),)
    )
    pdf = with_data(do.signed(contract()), junk)

    assert first(with_data(pdf, real), do).revocation.answer is Answer.NO


@pytest.mark.parametrize("by_delta", [False, True])
def test_crl_with_a_delta_revokes_by_itself(*, by_delta: bool) -> None:
    """Without its delta, and beside a delta that another key signed."""
    do = Makers.now()
    name, key, other = do.pki.ca_name, do.pki.ca_key, rsa_key("other")
    serials = [do.pki.serial(do.signer.certificate)]
    point = x509.DistributionPoint([URL], None, None, None)
    complete = x509.FreshestCRL([point]), False
    delta = x509.DeltaCRLIndicator(1), True
    lists = (
        crl(do, name, key, [] if by_delta else serials, 10, complete),
        crl(do, name, other, [], 1, delta),
        *([crl(do, name, key, serials, 9, delta)] if by_delta else []),
    )
    data = ValidationData(certificates=do.pki.chain, crls=lists)

    report = first(with_data(do.signed(contract()), data), do)

    assert report.revocation.answer is Answer.NO


def _renewed(do: Makers) -> x509.Certificate:
    """Another certificate of the signer's CA, with its name and key."""
    return authority(do, do.pki.ca_name, do.pki.ca_key, do.pki.ca_name, do.pki.ca_key)


def test_answer_by_an_authority_with_two_certificates_counts() -> None:
    """It has one of them in it, and the chain goes through the other."""
    do = Makers.now()
    leaf = x509.load_der_x509_certificate(do.signer.certificate)
    at = do.pki.clock.now().replace(microsecond=0) - 10 * DAY
    embedded = (
        ocsp.OCSPResponseBuilder()
        .add_response(
            cert=leaf, issuer=do.pki.ca, algorithm=hashes.SHA256(),
            cert_status=ocsp.OCSPCertStatus.REVOKED, this_update=at,
            next_update=at + DAY, revocation_time=at, revocation_reason=None,
        )
        .responder_id(ocsp.OCSPResponderEncoding.HASH, _renewed(do))
        .certificates([_renewed(do)])
        .sign(do.pki.ca_key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )  # fmt: skip
    data = ValidationData(certificates=do.pki.chain, ocsps=(embedded,))

    assert (
        first(with_data(do.signed(contract()), data), do).revocation.answer is Answer.NO
    )


@pytest.mark.parametrize(
    "extension",
    [
        x509.IssuingDistributionPoint(
            full_name=[x509.UniformResourceIdentifier("http://other.invalid/crl")],
            relative_name=None,
            only_contains_user_certs=False,
            only_contains_ca_certs=False,
            only_some_reasons=None,
            indirect_crl=False,
            only_contains_attribute_certs=False,
        ),
        x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0"),
    ],
)
def test_list_of_any_scope_revokes_what_it_has(extension: x509.ExtensionType) -> None:
    """Its scope says of which certificates it would tell that they are good."""
    do = Makers.now()
    serials = [do.pki.serial(do.signer.certificate)]
    listed = crl(do, do.pki.ca_name, do.pki.ca_key, serials, 10, (extension, True))
    data = ValidationData(certificates=do.pki.chain, crls=(listed,))

    assert (
        first(with_data(do.signed(contract()), data), do).revocation.answer is Answer.NO
    )


def test_list_of_other_certificates_revokes_none() -> None:
    """Attribute certificates are numbered by themselves."""
    do = Makers.now()
    scope = x509.IssuingDistributionPoint(
        full_name=None,
        relative_name=None,
        only_contains_user_certs=False,
        only_contains_ca_certs=False,
        only_some_reasons=None,
        indirect_crl=False,
        only_contains_attribute_certs=True,
    )
    serials = [do.pki.serial(do.signer.certificate)]
    listed = crl(do, do.pki.ca_name, do.pki.ca_key, serials, 10, (scope, True))
    data = ValidationData(certificates=do.pki.chain, crls=(listed,))

    assert first(with_data(do.signed(contract()), data), do).verdict is Answer.YES


def responder(
    do: Makers, key: rsa.RSAPrivateKey, start: dt.datetime, end: dt.datetime
) -> x509.Certificate:
    """A responder's certificate, of the signer's CA."""
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING])
    return (
        x509.CertificateBuilder()
        .subject_name(named("OCSP"))
        .issuer_name(do.pki.ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(usage("digital_signature"), critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(x509.OCSPNoCheck(), critical=False)
        .sign(do.pki.ca_key, hashes.SHA256())
    )


def told_by(
    do: Makers,
    key: rsa.RSAPrivateKey,
    certificate: x509.Certificate,
    at: dt.datetime,
    *,
    produced: dt.datetime,
    revoked: bool,
) -> bytes:
    """An OCSP answer on the signer, with its responder's certificate."""
    status = ocsp.OCSPCertStatus
    made = (
        ocsp.OCSPResponseBuilder()
        .add_response(
            cert=x509.load_der_x509_certificate(do.signer.certificate),
            issuer=do.pki.ca,
            algorithm=hashes.SHA256(),
            cert_status=status.REVOKED if revoked else status.GOOD,
            this_update=at,
            next_update=at + DAY,
            revocation_time=at if revoked else None,
            revocation_reason=None,
        )
        .responder_id(ocsp.OCSPResponderEncoding.HASH, certificate)
        .certificates([certificate])
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    # The builder has no time of production but now.
    answer = asn1_ocsp.OCSPResponse.load(made)
    basic = answer["response_bytes"]["response"].parsed
    basic["tbs_response_data"]["produced_at"] = produced
    content = basic["tbs_response_data"].dump(force=True)
    basic["signature"] = key.sign(content, padding.PKCS1v15(), hashes.SHA256())
    whole = core.ParsableOctetString(basic.dump(force=True))
    answer["response_bytes"]["response"] = whole
    written: bytes = answer.dump(force=True)
    return written


def test_responder_may_be_younger_than_what_it_tells() -> None:
    """It reads CRLs, tells of their time, and its certificate has expired since."""
    do = Makers.now()
    now, key = do.pki.clock.now().replace(microsecond=0), rsa_key("responder")
    certificate = responder(do, key, now - 9 * DAY, now - DAY)
    told = told_by(
        do, key, certificate, now - 10 * DAY, produced=now - 8 * DAY, revoked=True
    )
    data = ValidationData(certificates=do.pki.chain, ocsps=(told,))

    assert (
        first(with_data(do.signed(contract()), data), do).revocation.answer is Answer.NO
    )


@pytest.mark.parametrize("starts", [-60, 20])
def test_responder_may_be_younger_than_the_signature(starts: int) -> None:
    """Minutes from the timestamp to the responder's certificate."""
    do = Makers.now()
    minute, key = dt.timedelta(minutes=1), rsa_key("responder")
    at = do.pki.clock.now().replace(microsecond=0)
    pdf = do.signed(contract(), timestamp=True)
    certificate = responder(do, key, at + starts * minute, at + DAY)
    later = at + 30 * minute
    answer = told_by(do, key, certificate, later, produced=later, revoked=False)
    do.pki.clock.at = later
    own = do.pki.tsa_evidence(do.tsa.certificate)
    data = replace(own, ocsps=(*own.ocsps, answer))

    report = first(with_data(pdf, data), do)

    assert report.revocation.answer is Answer.YES, report.revocation
    assert report.level == "B-LT"


@pytest.mark.parametrize("revoked", [True, False])
def test_another_subscriber_tells_nothing(*, revoked: bool) -> None:
    """Without key usage pyHanko takes any person's certificate for an indirect CRL."""
    do = Makers.now()
    key, now = rsa_key("other"), do.pki.clock.now()
    person = (
        x509.CertificateBuilder()
        .subject_name(named("Otra"))
        .issuer_name(do.pki.ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 20 * DAY)
        .not_valid_after(now + 20 * DAY)
        .sign(do.pki.ca_key, hashes.SHA256())
    )
    scope = x509.IssuingDistributionPoint(
        full_name=None,
        relative_name=None,
        only_contains_user_certs=False,
        only_contains_ca_certs=False,
        only_some_reasons=None,
        indirect_crl=True,
        only_contains_attribute_certs=False,
    )
    serials = [do.pki.serial(do.signer.certificate)] if revoked else []
    listed = crl(do, person.subject, key, serials, 0, (scope, True))
    data = ValidationData(certificates=(*do.pki.chain, der(person)), crls=(listed,))

    report = first(with_data(do.signed(contract()), data), do)

    assert report.revocation.answer is Answer.UNCHECKED, report.revocation
    assert report.verdict is Answer.YES


def test_lists_of_nobody_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forged CRLs beside forged certificates of one name: each is looked at once."""
    do = Makers.now()
    key, forger = rsa_key("other"), named("X")
    serials = [do.pki.serial(do.signer.certificate)]
    count = 40
    lists = tuple(crl(do, forger, key, serials, n + 1) for n in range(count))
    certificates = tuple(
        der(authority(do, forger, key, named("Y"), key)) for _ in range(count)
    )
    pdf = with_data(
        do.signed(contract()), ValidationData(certificates=certificates, crls=lists)
    )
    compared = 0
    compare = asn1_x509.Name.__eq__

    def counted(one: asn1_x509.Name, other: object) -> bool:
        nonlocal compared
        compared += 1
        return bool(compare(one, other))

    monkeypatch.setattr(asn1_x509.Name, "__eq__", counted)

    assert first(pdf, do).verdict is Answer.YES
    assert compared < 10 * count

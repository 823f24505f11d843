"""The internal CA on a real SoftHSM: keys, certificates, refusals."""

import hashlib
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from appliance.domain.errors import (
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    HsmRefusedError,
    KeyNotFoundError,
)
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    SignatureScheme,
    TokenRole,
)
from appliance.domain.pki.certificates import POLICIES
from appliance.domain.vocab import Environment, VouchedBy
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.provisioning.ca_certificates import read_ca, read_root
from hsm_config.provisioning.init import provision
from tests.support.hsm.hsm_installation import HsmInstallation, verify
from worker.hsm.session import HsmSession
from worker.pki.certificate_authority import Authority, CertificateSubject
from worker.pki.certificate_profiles import DOCUMENT_SIGNING
from worker.pki.certificate_signing import IssuedCertificate

REF = KeyReference(TokenRole.FIRMA, b"\x01credential")
ANA = CertificateSubject("Ana Muñoz Peña", "20267565393", VouchedBy.DEMO)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """A trial after `hsm init`."""
    return HsmInstallation.ready(tmp_path_factory.mktemp("trial"))


@pytest.fixture
async def session(installation: HsmInstallation) -> AsyncIterator[HsmSession]:
    """Its open session."""
    async with installation.session() as opened:
        yield opened


@pytest.fixture
async def authority(installation: HsmInstallation, session: HsmSession) -> Authority:
    """Its CA; nobody has a key yet."""
    await session.destroy(REF)
    settings = installation.settings
    return Authority(session, read_ca(settings), settings)


@pytest.fixture
async def issued(authority: Authority) -> IssuedCertificate:
    """Ana's certificate."""
    return await authority.enrol(REF, KeyAlgorithm.RSA_2048, ANA, datetime.now(tz=UTC))


def _read(issued: IssuedCertificate) -> x509.Certificate:
    return x509.load_der_x509_certificate(issued.certificate)


def _openssl(*words: str | Path) -> None:
    """Run openssl; it must end well."""
    result = subprocess.run(
        ["openssl", *words], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


async def test_openssl_verifies_the_chain(
    installation: HsmInstallation, issued: IssuedCertificate, tmp_path: Path
) -> None:
    """By RFC 5280 to the letter."""
    signer = tmp_path / "signer.pem"
    signer.write_bytes(_read(issued).public_bytes(serialization.Encoding.PEM))
    options = ("-x509_strict", "-policy_check", "-purpose", "smimesign")

    settings = installation.settings
    trusted = ("-CAfile", settings.root_file, "-untrusted", settings.ca_file)
    _openssl("verify", *options, *trusted, signer)


async def test_pyca_finds_the_ca_as_issuer(
    installation: HsmInstallation, issued: IssuedCertificate
) -> None:
    """What comes with it leads to the root, which does not come with it."""
    (issuer,) = (x509.load_der_x509_certificate(one) for one in issued.chain)

    _read(issued).verify_directly_issued_by(issuer)
    issuer.verify_directly_issued_by(read_root(installation.settings))


async def test_certified_key_signs(
    session: HsmSession, issued: IssuedCertificate
) -> None:
    """What the HSM signs verifies with the certificate's key."""
    digest = hashlib.sha256(b"a document").digest()

    held = ResidentKey(REF.cka_id, await session.public_key(REF))
    signature = await session.sign(held, digest, SignatureScheme.RSA_PKCS1)

    key = _read(issued).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    verify(key, signature, digest)


async def test_subject_names_the_person(issued: IssuedCertificate) -> None:
    """C=AR, CN=name, serialNumber=`CUIL` and the digits as a PrintableString."""
    subject = _read(issued).subject
    parsed = asn1.Certificate.load(issued.certificate).subject
    serial = [
        pair[0] for pair in parsed.chosen if pair[0]["type"].native == "serial_number"
    ]

    assert {one.oid: one.value for one in subject} == {
        NameOID.COUNTRY_NAME: "AR",
        NameOID.COMMON_NAME: "Ana Muñoz Peña",
        NameOID.SERIAL_NUMBER: "CUIL 20267565393",
    }
    assert serial[0]["value"].chosen.tag == 19


async def test_usages_are_those_of_a_signer(issued: IssuedCertificate) -> None:
    """It signs documents and certifies nothing."""
    extensions = _read(issued).extensions
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    basic = extensions.get_extension_for_class(x509.BasicConstraints)
    extended = extensions.get_extension_for_class(x509.ExtendedKeyUsage)

    assert usage.critical
    assert usage.value.digital_signature
    assert usage.value.content_commitment
    assert not usage.value.key_cert_sign
    assert basic.critical
    assert not basic.value.ca
    assert set(extended.value) == {
        DOCUMENT_SIGNING,
        ExtendedKeyUsageOID.EMAIL_PROTECTION,
    }


async def test_key_identifiers_chain(
    installation: HsmInstallation, issued: IssuedCertificate
) -> None:
    """The authority's identifier is the CA's own."""
    ca = read_ca(installation.settings).extensions
    own = ca.get_extension_for_class(x509.SubjectKeyIdentifier).value
    authority = _read(issued).extensions.get_extension_for_class(
        x509.AuthorityKeyIdentifier
    )

    assert authority.value.key_identifier == own.digest


@pytest.mark.parametrize("vouched_by", list(VouchedBy))
async def test_policy_says_how_the_person_was_vouched(
    session: HsmSession, authority: Authority, vouched_by: VouchedBy
) -> None:
    """One policy OID for each way."""
    await authority.enrol(REF, KeyAlgorithm.RSA_2048, ANA, datetime.now(tz=UTC))
    subject = CertificateSubject(ANA.name, ANA.cuil, vouched_by)

    issued = await authority.issue(
        subject, await session.public_key(REF), datetime.now(tz=UTC)
    )

    policies = _read(issued).extensions.get_extension_for_class(
        x509.CertificatePolicies
    )
    (policy,) = policies.value
    assert policy.policy_identifier.dotted_string == POLICIES[vouched_by]


async def test_dates_and_serial_are_those_reported(
    authority: Authority, session: HsmSession, issued: IssuedCertificate
) -> None:
    """Two years, five minutes back (the CA is younger here), 128 random bits."""
    now = datetime.now(tz=UTC) + timedelta(days=30)

    later = await authority.issue(ANA, await session.public_key(REF), now)

    certificate = _read(later)
    assert later.not_before == now.replace(microsecond=0) - timedelta(minutes=5)
    assert later.not_after - later.not_before == timedelta(days=730)
    assert certificate.not_valid_before_utc == later.not_before
    assert certificate.not_valid_after_utc == later.not_after
    assert certificate.serial_number == later.serial != issued.serial
    assert 0 < later.serial < 2**128


async def test_certificate_never_outlives_its_ca(
    installation: HsmInstallation, authority: Authority, session: HsmSession
) -> None:
    """Near the CA's end it is cut; past it nothing is issued."""
    end = read_ca(installation.settings).not_valid_after_utc
    await authority.enrol(REF, KeyAlgorithm.RSA_2048, ANA, datetime.now(tz=UTC))
    spki = await session.public_key(REF)

    issued = await authority.issue(ANA, spki, end - timedelta(days=10))

    assert issued.not_after == end
    with pytest.raises(HsmRefusedError):
        await authority.issue(ANA, spki, end)


async def test_what_has_a_cka_id_is_not_replaced(
    authority: Authority, session: HsmSession, issued: IssuedCertificate
) -> None:
    """It may be somebody's key: it stays, and no other is made."""
    with pytest.raises(HsmRefusedError):
        await authority.enrol(REF, KeyAlgorithm.RSA_2048, ANA, datetime.now(tz=UTC))

    key = load_spki(await session.public_key(REF))
    assert key == _read(issued).public_key()
    await session.self_test(REF)


@pytest.mark.parametrize(
    "subject",
    [
        CertificateSubject("Ana", "20267565392", VouchedBy.DEMO),
        CertificateSubject(" ", "20267565393", VouchedBy.DEMO),
        CertificateSubject("A" * 65, "20267565393", VouchedBy.DEMO),
        CertificateSubject("Ana\u202eanA", "20267565393", VouchedBy.DEMO),
    ],
)
async def test_bad_subject_is_refused_before_a_key_is_made(
    authority: Authority, session: HsmSession, subject: CertificateSubject
) -> None:
    """Wrong CUIL, no name, too long a name, a name that reads otherwise."""
    await session.destroy(REF)

    with pytest.raises(FieldInvalidError):
        await authority.enrol(REF, KeyAlgorithm.RSA_2048, subject, datetime.now(tz=UTC))

    with pytest.raises(KeyNotFoundError):
        await session.public_key(REF)


def _spki(curve: ec.EllipticCurve) -> bytes:
    """A public key on a curve."""
    return (
        ec.generate_private_key(curve)
        .public_key()
        .public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1()])
async def test_key_on_a_curve_is_certified(
    authority: Authority, curve: ec.EllipticCurve
) -> None:
    """P-256 and P-384, by the CA's RSA key."""
    spki = _spki(curve)

    certificate = _read(await authority.issue(ANA, spki, datetime.now(tz=UTC)))

    assert certificate.public_key() == serialization.load_der_public_key(spki)


async def test_key_of_another_kind_is_refused(authority: Authority) -> None:
    """Only kinds that the HSM makes are certified."""
    for key in (_spki(ec.SECP521R1()), b"no key"):
        with pytest.raises(HsmRefusedError):
            await authority.issue(ANA, key, datetime.now(tz=UTC))


async def test_addresses_of_status_stand_in_the_certificate(
    authority: Authority, issued: IssuedCertificate
) -> None:
    """OCSP, issuer and CRL, under the public address."""
    extensions = _read(issued).extensions
    access = extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
    points = extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    above = authority.certificate.extensions
    above_points = above.get_extension_for_class(x509.CRLDistributionPoints).value

    base = "http://127.0.0.1:8080/pki/"
    assert {one.access_method._name: one.access_location.value for one in access} == {
        "OCSP": f"{base}ocsp",
        "caIssuers": f"{base}ca.cer",
    }
    (point,) = points
    assert [name.value for name in point.full_name or ()] == [f"{base}ca.crl"]
    (point,) = above_points
    assert [name.value for name in point.full_name or ()] == [f"{base}root.crl"]


async def test_responder_may_answer_for_the_ca(authority: Authority) -> None:
    """OCSP signing and nothing else, for 90 days, never asked about itself."""
    now = datetime.now(tz=UTC)

    certificate = _read(issued := await authority.certify_responder(now))

    extensions = certificate.extensions
    usages = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.OCSP_SIGNING]
    assert x509.OCSPNoCheck() in [one.value for one in extensions]
    assert "OCSP DEMO SIN VALIDEZ prueba" in certificate.subject.rfc4514_string()
    assert timedelta(days=89) < issued.not_after - now <= timedelta(days=90)
    certificate.verify_directly_issued_by(authority.certificate)


async def test_ca_certificate_of_another_key_issues_nothing(
    installation: HsmInstallation, session: HsmSession, tmp_path: Path
) -> None:
    """A swapped CA certificate is found out, and no key is left."""
    ca, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    made = ("-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", ca)
    _openssl("req", *made, "-subj", "/CN=DEMO SIN VALIDEZ", "-days", "900")
    swapped = x509.load_pem_x509_certificate(ca.read_bytes())

    with pytest.raises(HsmRefusedError, match="not of the CA's key"):
        await Authority(session, swapped, installation.settings).enrol(
            REF,
            KeyAlgorithm.RSA_2048,
            ANA,
            datetime.now(tz=UTC) + timedelta(minutes=10),
        )

    with pytest.raises(KeyNotFoundError):
        await session.public_key(REF)


async def test_who_was_made_up_is_certified_in_preprod_alone(tmp_path: Path) -> None:
    """By a policy of its own; in PROD no key is left either."""
    real = HsmInstallation(tmp_path, trial=False)
    provision(real.settings)
    made_up = CertificateSubject(ANA.name, ANA.cuil, VouchedBy.TEST)
    in_prod = real.settings.model_copy(update={"environment": Environment.PROD})
    async with real.session() as session:
        now = datetime.now(tz=UTC)
        prod = Authority(session, read_ca(real.settings), in_prod)
        with pytest.raises(ApplianceError) as caught:
            await prod.enrol(REF, KeyAlgorithm.RSA_2048, made_up, now)
        with pytest.raises(KeyNotFoundError):
            await session.public_key(REF)
        preprod = Authority(session, read_ca(real.settings), real.settings)
        issued = _read(await preprod.enrol(REF, KeyAlgorithm.RSA_2048, made_up, now))

    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE
    policies = issued.extensions.get_extension_for_class(x509.CertificatePolicies)
    (policy,) = policies.value
    assert policy.policy_identifier.dotted_string == POLICIES[VouchedBy.TEST]


async def test_demo_person_under_a_real_ca_is_refused(tmp_path: Path) -> None:
    """Demo certificates come from the demo CA alone."""
    real = HsmInstallation(tmp_path, trial=False)
    provision(real.settings)
    async with real.session() as session:
        authority = Authority(session, read_ca(real.settings), real.settings)
        now = datetime.now(tz=UTC)

        with pytest.raises(ApplianceError) as caught:
            await authority.enrol(REF, KeyAlgorithm.RSA_2048, ANA, now)
        officer = CertificateSubject(ANA.name, ANA.cuil, VouchedBy.OFFICER)
        issued = await authority.enrol(REF, KeyAlgorithm.RSA_2048, officer, now)

    assert caught.value.code is ErrorCode.NOT_A_TRIAL
    _read(issued).verify_directly_issued_by(read_ca(real.settings))

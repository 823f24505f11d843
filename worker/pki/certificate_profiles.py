"""What stands in the certificates that the internal CA issues, as pure functions.

`docs/pki.md` shows them as tables.

Source: RFC 5280, 4.2; RFC 9336; RFC 6960, 4.2.2.2; design §6.
"""

import re
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import (
    AuthorityInformationAccessOID,
    ExtendedKeyUsageOID,
    NameOID,
)

from appliance.domain.errors import FieldInvalidError, HsmRefusedError
from appliance.domain.people.identity import parse_cuil
from appliance.domain.pki.certificates import ARC, POLICIES
from appliance.domain.vocab import VouchedBy
from appliance.settings import Settings
from hsm_config.provisioning.ca_certificates import key_usage
from hsm_config.provisioning.ca_hierarchy import crl_at, issuer_at

TSA_POLICY: Final = x509.ObjectIdentifier(f"{ARC}.1.5")
"""The installation's own timestamping authority; never changed or reused."""

DOCUMENT_SIGNING: Final = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.36")
"""id-kp-documentSigning. Source: RFC 9336, 3.1."""

PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
Extensions: TypeAlias = tuple[tuple[x509.ExtensionType, bool], ...]
"""Each with whether a reader must understand it."""

_LEAST_RSA_BITS: Final = 2048
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1)
_NAME_BYTES: Final = 64
"""Upper bound of a CN. Source: RFC 5280, appendix A.1 (ub-common-name)."""
_CONTROL: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control and bidirectional characters: a name must read as it is."""


def signer_extensions(
    settings: Settings, ca: x509.Certificate, public: PublicKey, vouched_by: VouchedBy
) -> Extensions:
    """A signer's extensions.

    Args:
        settings: of the installation, for its public address.
        ca: the issuer.
        public: the signer's key.
        vouched_by: who answers for the identity.
    """
    # emailProtection besides, for readers older than RFC 9336.
    usages = [DOCUMENT_SIGNING, ExtendedKeyUsageOID.EMAIL_PROTECTION]
    oid = x509.ObjectIdentifier(POLICIES[vouched_by])
    policy = x509.PolicyInformation(oid, None)
    return (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (key_usage(digital_signature=True, content_commitment=True), True),
        (x509.ExtendedKeyUsage(usages), False),
        *_identifiers(ca, public),
        (x509.CertificatePolicies([policy]), False),
        *_published_at(settings),
    )


def tsa_extensions(
    settings: Settings, ca: x509.Certificate, public: PublicKey
) -> Extensions:
    """The timestamping authority's extensions: it does that alone.

    Args:
        settings: of the installation, for its public address.
        ca: the issuer.
        public: the authority's key.

    Source: RFC 3161, 2.3; EN 319 422, 6.
    """
    policy = x509.PolicyInformation(TSA_POLICY, None)
    return (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (key_usage(digital_signature=True), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), True),
        *_identifiers(ca, public),
        (x509.CertificatePolicies([policy]), False),
        *_published_at(settings),
    )


def responder_extensions(ca: x509.Certificate, public: PublicKey) -> Extensions:
    """The OCSP responder's extensions.

    Nobody is to ask whether the responder itself is revoked (id-pkix-ocsp-nocheck),
    which is why its certificate is short-lived.

    Args:
        ca: the issuer, for which it answers.
        public: the responder's key.
    """
    return (
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (key_usage(digital_signature=True), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING]), False),
        (x509.OCSPNoCheck(), False),
        *_identifiers(ca, public),
    )


def _identifiers(ca: x509.Certificate, public: PublicKey) -> Extensions:
    issuer = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        (x509.SubjectKeyIdentifier.from_public_key(public), False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer), False),
    )


def _published_at(settings: Settings) -> Extensions:
    """Where the CA tells whether a certificate is revoked, and its own."""
    ocsp = x509.AccessDescription(
        AuthorityInformationAccessOID.OCSP,
        x509.UniformResourceIdentifier(f"{settings.web.base_url}/pki/ocsp"),
    )
    return (
        (crl_at(settings, "ca.crl"), False),
        (x509.AuthorityInformationAccess([ocsp, issuer_at(settings, "ca.cer")]), False),
    )


def signer_name(name: str, cuil: str) -> x509.Name:
    """C=AR, CN=name, serialNumber=`CUIL …`. Source: facts "Argentina".

    Args:
        name: the person's, up to 64 bytes of UTF-8.
        cuil: eleven digits.

    Raises:
        FieldInvalidError: name or CUIL cannot stand there.
    """
    words = name.strip()
    if not words or len(words.encode()) > _NAME_BYTES or _CONTROL.search(words):
        raise FieldInvalidError("nombre", f"1 to {_NAME_BYTES} bytes of printable text")
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "AR"),
            x509.NameAttribute(NameOID.COMMON_NAME, words),
            # pyca writes this attribute as a PrintableString.
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"CUIL {parse_cuil(cuil)}"),
        ]
    )


def signer_key(spki_der: bytes) -> PublicKey:
    """Read the public key to certify.

    Args:
        spki_der: SubjectPublicKeyInfo.

    Raises:
        HsmRefusedError: it is none, or of a kind that is not certified.
    """
    try:
        public = serialization.load_der_public_key(spki_der)
    except (ValueError, TypeError) as exc:
        msg = "that is no public key"
        raise HsmRefusedError(msg) from exc
    if isinstance(public, rsa.RSAPublicKey) and public.key_size >= _LEAST_RSA_BITS:
        return public
    if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(
        public.curve, _CURVES
    ):
        return public
    msg = "only RSA keys of 2048 bits or more, P-256 and P-384 are certified"
    raise HsmRefusedError(msg)

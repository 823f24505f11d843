"""The certificates of the internal CA itself: a root, and under it one that issues.

Two levels, so that what verifiers hold (the root, 20 years) outlives what signs
every day, and the one that issues can be replaced without asking them anything.

Source: RFC 5280, 4.2; design §6.
"""

from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import (
    AuthorityInformationAccessOID,
    CertificatePoliciesOID,
    NameOID,
)

from appliance.settings import Settings
from hsm_config.provisioning.ca_certificates import (
    DEMO_WORDS,
    HsmRsaPrivateKey,
    key_usage,
    new_serial,
)

ROOT_VALIDITY: Final = timedelta(days=20 * 365)
CA_VALIDITY: Final = timedelta(days=10 * 365)
BACKDATE: Final = timedelta(minutes=5)
"""For readers whose clock is behind."""
_CN_BYTES: Final = 64
"""Upper bound of a CN. Source: RFC 5280, appendix A.1 (ub-common-name)."""
_ANY_POLICY: Final = x509.PolicyInformation(CertificatePoliciesOID.ANY_POLICY, None)


def authority_name(settings: Settings, what: str) -> x509.Name:
    """A name of the authority: `CN=Rúbrica <what> … <installation>`, O, C=AR.

    A CN has room for 64 bytes, so a very long installation name is cut in it
    and stands whole in O.

    Args:
        settings: the installation; a trial's names say that they are worth nothing.
        what: `raíz`, `CA`, `OCSP`.
    """
    kind = DEMO_WORDS if settings.trial else "interna"
    words = ("Rúbrica", what, kind, settings.installation)
    name = " ".join(words).encode()[:_CN_BYTES].decode(errors="ignore").rstrip()
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "AR"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, settings.installation),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )


def self_sign_root(
    key: HsmRsaPrivateKey, settings: Settings, now: datetime
) -> x509.Certificate:
    """Make the root's certificate: trusted by itself, one level of CAs below it.

    Args:
        key: the root's.
        settings: the installation.
        now: aware.

    Source: RFC 5280, 4.2.1.2, 4.2.1.3, 4.2.1.9.
    """
    name = authority_name(settings, "raíz")
    public = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _ca_builder(key, name, now, ROOT_VALIDITY, path_length=1)
        .issuer_name(name)
        .add_extension(public, critical=False)
        .sign(key, hashes.SHA256())
    )


def issue_ca(
    root_key: HsmRsaPrivateKey,
    root: x509.Certificate,
    key: HsmRsaPrivateKey,
    settings: Settings,
    now: datetime,
) -> x509.Certificate:
    """Make the certificate of the CA that issues, and certifies no other CA.

    Args:
        root_key: the root's.
        root: its certificate.
        key: of the CA.
        settings: the installation, whose public address it names for good.
        now: aware.

    Source: RFC 5280, 4.2.1 and 4.2.2.1.
    """
    issuer = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    extensions = (
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer),
        # Signers' policies are in force only below one that allows them.
        x509.CertificatePolicies([_ANY_POLICY]),
        crl_at(settings, "root.crl"),
        x509.AuthorityInformationAccess([issuer_at(settings, "root.cer")]),
    )
    builder = _ca_builder(
        key,
        authority_name(settings, "CA"),
        now,
        min(CA_VALIDITY, root.not_valid_after_utc - now),
        path_length=0,
    ).issuer_name(root.subject)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(root_key, hashes.SHA256())


def crl_at(settings: Settings, name: str) -> x509.CRLDistributionPoints:
    """Where a certificate's CRL is. Source: RFC 5280, 4.2.1.13."""
    url = x509.UniformResourceIdentifier(f"{settings.web.base_url}/pki/{name}")
    return x509.CRLDistributionPoints([x509.DistributionPoint([url], None, None, None)])


def issuer_at(settings: Settings, name: str) -> x509.AccessDescription:
    """Where a certificate's issuer is. Source: RFC 5280, 4.2.2.1."""
    return x509.AccessDescription(
        AuthorityInformationAccessOID.CA_ISSUERS,
        x509.UniformResourceIdentifier(f"{settings.web.base_url}/pki/{name}"),
    )


def _ca_builder(
    key: HsmRsaPrivateKey,
    subject: x509.Name,
    now: datetime,
    validity: timedelta,
    path_length: int,
) -> x509.CertificateBuilder:
    """What both have: it signs certificates and CRLs, and nothing else."""
    start = now.replace(microsecond=0) - BACKDATE
    usage = key_usage(key_cert_sign=True, crl_sign=True)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(new_serial())
        .not_valid_before(start)
        .not_valid_after(start + validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=path_length), True)  # noqa: FBT003 (pyca's form)
        .add_extension(usage, critical=True)
    )

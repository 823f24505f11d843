"""The installation's own CA as administrators see it: certificates and CRLs."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from appliance.domain.pki.certificates import serial_text
from appliance.domain.vocab import CertificateKind
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from appliance.pki.validation.certificate_rules import name_of
from appliance.pki.validation.trust_anchors import algorithm_of
from appliance.record.unit_of_work import Database

ReadOwn = Callable[[], bytes | None]
"""Reads a certificate of ours, DER; None before it was made."""


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A certificate of the CA's own."""

    role: str
    """`root`, `issuing`, `ocsp` or `tsa`."""
    name: str
    issuer: str
    serial: str
    algorithm: str
    not_before: datetime
    not_after: datetime
    sha256: str
    sha1: str
    der: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PublishedCrl:
    """The CRL that a CA published last."""

    issuer: str
    """The CA's name."""
    file: str
    """Its name under `{base_url}/pki/`."""
    number: int
    this_update: datetime
    next_update: datetime


@dataclass(frozen=True, slots=True)
class OwnAuthority:
    """All of it."""

    certificates: tuple[OwnCertificate, ...]
    crls: tuple[PublishedCrl, ...]


class OwnAuthorityViews:
    """The use case of the console's page of the CA.

    Args:
        store: the record.
        root: reads the root.
        issuing: reads the CA that issues.
    """

    def __init__(self, store: Database, root: ReadOwn, issuing: ReadOwn) -> None:
        self._store = store
        self._sources = (("root", "root.crl", root), ("issuing", "ca.crl", issuing))

    async def show(self) -> OwnAuthority:
        """Certificates in use, root first, and the newest CRL of each CA."""
        certificates: list[OwnCertificate] = []
        crls: list[PublishedCrl] = []
        async with self._store.read() as transaction:
            for role, file, read in self._sources:
                der = read()
                if der is None:
                    continue
                own = view_of(role, der)
                certificates.append(own)
                crl = await PublicationStore(transaction).crl(_key_id(der))
                if crl is not None:
                    crls.append(
                        PublishedCrl(
                            own.name,
                            file,
                            crl.number,
                            crl.this_update,
                            crl.next_update,
                        )
                    )
            for kind in (CertificateKind.OCSP, CertificateKind.TSA):
                in_force = await CertificateStore(transaction).in_force(kind)
                certificates += [view_of(kind.value, one.der) for one in in_force]
        return OwnAuthority(tuple(certificates), tuple(crls))


def view_of(role: str, der: bytes) -> OwnCertificate:
    """A certificate of the CA's own, for people.

    Args:
        role: what it is for.
        der: itself.
    """
    made = x509.load_der_x509_certificate(der)
    return OwnCertificate(
        role=role,
        name=name_of(made.subject),
        issuer=name_of(made.issuer),
        serial=serial_text(made.serial_number),
        algorithm=algorithm_of(made),
        not_before=made.not_valid_before_utc,
        not_after=made.not_valid_after_utc,
        sha256=hashlib.sha256(der).hexdigest(),
        sha1=made.fingerprint(hashes.SHA1()).hex(),  # noqa: S303 (what some viewers show)
        der=der,
    )


def _key_id(der: bytes) -> str:
    """How the record names a CA: SHA-1 of its key (see `CertificateRecord`)."""
    key = x509.load_der_x509_certificate(der).public_key()
    return x509.SubjectKeyIdentifier.from_public_key(key).digest.hex()

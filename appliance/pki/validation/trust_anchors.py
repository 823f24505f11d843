"""The trust store: roots of outside CAs, beside the installation's own.

A root is trusted because somebody compared its fingerprint with what its CA
publishes; nothing here fetches one.

Source: design §6.
"""

import hashlib
import re
from collections.abc import Callable
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    ChainRefusedError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.ids import new_id
from appliance.domain.pki.trust_store import Anchor, AnchorPurpose, AnchorView
from appliance.domain.vocab import EventKind
from appliance.pki.validation.certificate_rules import der_of, name_of, names
from appliance.pki.validation.path_validation import check_root
from appliance.pki.validation.trust_store import TrustStore
from appliance.record.unit_of_work import Database

OwnRoot = Callable[[], bytes | None]
"""Reads the installation's own root, DER; None before it was made."""
_OWN: Final = ""
_BETWEEN: Final = re.compile(r"[\s:.-]+")
_FINGERPRINT: Final = re.compile(r"[0-9A-Fa-f]{40}(?:[0-9A-Fa-f]{24})?", re.ASCII)
_LONGEST: Final = 256


class Trust:
    """The use cases around trusted roots.

    Args:
        store: the record.
        clock: the time.
        own_root: of this installation; always trusted, for signers and for the
            internal TSA.
    """

    def __init__(self, store: Database, clock: Clock, own_root: OwnRoot) -> None:
        self._store = store
        self._clock = clock
        self._own_root = own_root

    async def anchors(self) -> list[AnchorView]:
        """Every trusted root, once a purpose: our own first, then by their end."""
        async with self._store.read() as transaction:
            kept = await TrustStore(transaction).all()
        views = [view_of(anchor) for anchor in kept]
        own = self._own_root()
        if own:
            views = [*(_own_view(own, each) for each in AnchorPurpose), *views]
        return views

    async def roots(self, purpose: AnchorPurpose) -> list[bytes]:
        """What is trusted for a purpose, DER."""
        async with self._store.read() as transaction:
            kept = await TrustStore(transaction).all(purpose)
        own = self._own_root()
        return [*([own] if own else []), *(anchor.certificate for anchor in kept)]

    async def add(
        self, actor: str, content: bytes, purpose: AnchorPurpose, fingerprint: str
    ) -> AnchorView:
        """Trust a root.

        Args:
            actor: for the audit; answers for where the fingerprint comes from.
            content: one certificate, PEM or DER.
            purpose: what it is trusted for.
            fingerprint: as the CA publishes it on another way: SHA-256 or SHA-1
                in hex, colons and spaces do not count.

        Raises:
            FieldInvalidError: `fingerprint` is none.
            ChainRefusedError: it is not one sound root (see `check_root`), or
                `ANCHOR_FINGERPRINT`.
            ApplianceError: `ALREADY_EXISTS`.
        """
        published = read_fingerprint(fingerprint)
        root = check_root(content, self._clock.now())
        der = der_of(root)
        if published not in _fingerprints(root):
            raise ChainRefusedError(
                ErrorCode.ANCHOR_FINGERPRINT,
                0,
                **names(root),
                sha256=hashlib.sha256(der).hexdigest(),
            )
        anchor = Anchor(
            id=new_id(),
            certificate=der,
            sha256=hashlib.sha256(der).hexdigest(),
            purpose=purpose,
            not_after=root.not_valid_after_utc,
            added=self._clock.now(),
        )
        async with self._store.write() as transaction:
            await TrustStore(transaction).add(anchor)
            transaction.audit.add(
                AuditEvent(
                    EventKind.ANCHOR_ADDED,
                    actor,
                    detail={"anchor": anchor.id, "before": None, "after": _of(anchor)},
                )
            )
        return view_of(anchor)

    async def remove(self, actor: str, anchor: str) -> None:
        """Trust a root no longer; what was imported under it stays.

        Raises:
            ApplianceError: `ANCHOR_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            removed = await TrustStore(transaction).remove(anchor)
            if removed is None:
                raise ApplianceError(ErrorCode.ANCHOR_NOT_FOUND)
            transaction.audit.add(
                AuditEvent(
                    EventKind.ANCHOR_REMOVED,
                    actor,
                    detail={"anchor": anchor, "before": _of(removed), "after": None},
                )
            )


def _of(anchor: Anchor) -> dict[str, object]:
    return {"sha256": anchor.sha256, "purpose": anchor.purpose.value}


def read_fingerprint(typed: str) -> bytes:
    """Read a fingerprint as CAs print it.

    Args:
        typed: in hex; colons and spaces do not count.

    Raises:
        FieldInvalidError: it is none.
    """
    bare = _BETWEEN.sub("", typed[:_LONGEST])
    if not _FINGERPRINT.fullmatch(bare):
        raise FieldInvalidError("fingerprint", "SHA-256 or SHA-1, hex")
    return bytes.fromhex(bare)


def _fingerprints(root: x509.Certificate) -> set[bytes]:
    # SHA-1 only identifies here what its CA published: nobody makes a second
    # certificate with the fingerprint of a given one.
    return {root.fingerprint(hashes.SHA256()), root.fingerprint(hashes.SHA1())}  # noqa: S303


def view_of(anchor: Anchor) -> AnchorView:
    """A root for people.

    Args:
        anchor: as it is kept.
    """
    root = x509.load_der_x509_certificate(anchor.certificate)
    return AnchorView(
        id=anchor.id,
        subject=root.subject.rfc4514_string(),
        name=name_of(root.subject),
        sha256=anchor.sha256,
        sha1=root.fingerprint(hashes.SHA1()).hex(),  # noqa: S303 (to be compared with what CAs print)
        algorithm=algorithm_of(root),
        purpose=anchor.purpose,
        not_before=root.not_valid_before_utc,
        not_after=root.not_valid_after_utc,
        added=anchor.added,
        certificate=anchor.certificate,
    )


def _own_view(der: bytes, purpose: AnchorPurpose) -> AnchorView:
    root = x509.load_der_x509_certificate(der)
    own = Anchor(
        id=_OWN,
        certificate=der,
        sha256=hashlib.sha256(der).hexdigest(),
        purpose=purpose,
        not_after=root.not_valid_after_utc,
        added=root.not_valid_before_utc,
    )
    return view_of(own)


def algorithm_of(certificate: x509.Certificate) -> str:
    """Kind and size of a certificate's key, for people.

    Args:
        certificate: any.
    """
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return f"RSA {key.key_size}"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return f"EC {key.curve.name}"
    return type(key).__name__

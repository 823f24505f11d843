"""Whole consent: a signature's inputs, as its signer consented to them.

Activations of `ActivationFormat.WHOLE` bind their seals to these bytes. The front
computes them from what it is about to record, a worker from what it is about to use:
name, certificate, inspection and profile as they stand now, and the pixels that the
engine is given. Whatever was changed in between gives other bytes, and no seal opens.

Source: design §4 "Activation keys", "What stands beside the seal"; RFC 8785;
docs/signing.md "What the consent covers".
"""

import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from appliance.domain.appearance.details import (
    LOGO_HEIGHT_PX,
    LOGO_WIDTH_PX,
    Logo,
    LogoPicture,
)
from appliance.domain.people.identity import Credential, Person
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.request import RequestView
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    ActivationFormat,
    activation_data,
)
from appliance.domain.text.canonical_json import canonical_json

_FORMAT: Final = "rubrica/consent/2"
_CHANNELS: Final = 3
"""Bytes of a pixel: RGB."""
Resolves = Callable[[RequestView], SignatureProfile]
"""Gives the profile that a request is signed by."""


@dataclass(frozen=True, slots=True)
class ConsentSigner:
    """The signer, with the certificate that signs."""

    name: str
    cuil: str
    """Eleven digits."""
    locale: str
    """Language of the stamp's words."""
    key_version: int
    certificate: bytes = field(repr=False)
    """The signer's, DER."""
    chain: tuple[bytes, ...] = field(repr=False)
    """Its issuers, DER: their length decides how much room the signature takes."""

    @classmethod
    def of(cls, person: Person, credential: Credential) -> "ConsentSigner":
        """A person and the credential that signs.

        Args:
            person: as recorded.
            credential: theirs, as recorded.
        """
        return cls(
            name=person.name,
            cuil=person.cuil,
            locale=person.locale,
            key_version=credential.key_version,
            certificate=credential.certificate,
            chain=credential.chain,
        )


@dataclass(frozen=True, slots=True)
class DocumentTerms:
    """Inputs of one signature beside the signer's command."""

    basis_sha256: str
    """`Inspection.basis_sha256` of the document, hex."""
    profile: SignatureProfile
    """Level, timestamp policy, digest and TSAs as resolved."""
    logo: Logo | None = None
    """The logo that its stamp shows, by the hash of its pixels."""


@dataclass(frozen=True, slots=True)
class Consent:
    """All that the signatures of an activation follow from."""

    activation: Activation
    signer: ConsentSigner
    terms: tuple[DocumentTerms, ...]
    """One for each document of the activation, in its order."""

    def data(self, bound: ActivationFormat) -> bytes:
        """The `info` of the seal: SHA-256 of the RFC 8785 JSON, 32 bytes.

        Args:
            bound: format of the activation key that is sealed to.
        """
        signer, activation = self.signer, self.activation
        if bound is ActivationFormat.FIRST:
            return activation_data(activation, signer.key_version)
        return hashlib.sha256(
            canonical_json(
                {
                    "format": _FORMAT,
                    "activation": activation.id,
                    "person": activation.person,
                    "name": signer.name,
                    "cuil": signer.cuil,
                    "language": signer.locale,
                    "credential": activation.credential,
                    "keyVersion": signer.key_version,
                    "certificateSha256": _sha256(signer.certificate),
                    "chainSha256": [_sha256(issuer) for issuer in signer.chain],
                    "items": [
                        _item(document, terms)
                        for document, terms in zip(
                            activation.documents, self.terms, strict=True
                        )
                    ],
                    "factors": list(activation.factors),
                    "created": _instant(activation.created),
                    "claimBy": _instant(activation.claim_by),
                }
            )
        ).digest()


def consent_of(
    activation: Activation,
    signer: ConsentSigner,
    views: Mapping[int, RequestView],
    resolves: Resolves,
    logo_of: Callable[[Logo], Logo] = lambda logo: logo,
) -> Consent:
    """The consent to an activation, by the requests as they stand.

    Args:
        activation: to be recorded, or claimed.
        signer: who signs.
        views: the request of each document, by its place.
        resolves: gives the profile of a request.
        logo_of: gives the logo that is really drawn; the front draws none, and
            names it as the stamp does.

    Raises:
        KeyError: a document has no request.
    """
    terms = tuple(
        DocumentTerms(
            basis_sha256=views[document.seq].inspection.basis_sha256,
            profile=resolves(views[document.seq]),
            logo=document.details.logo and logo_of(document.details.logo),
        )
        for document in activation.documents
    )
    return Consent(activation, signer, terms)


def field_name(document: ActivationDocument) -> str:
    """Name of the signature field: the document's own, or of the one that is made."""
    own = document.params.field
    return f"Firma-{document.request}" if own is None else own


def drawn_logo(picture: LogoPicture) -> Logo:
    """A logo by the pixels that a stamp draws of it, whatever it is filed under.

    Args:
        picture: as the record gave it.

    Raises:
        ValueError: it is no picture of that size, or holds more than its pixels.
    """
    logo = picture.logo
    sha256 = _pixels_sha256(picture.deflated, logo.width_px, logo.height_px)
    return Logo(sha256, logo.width_px, logo.height_px)


@lru_cache(maxsize=8)
def _pixels_sha256(deflated: bytes, width: int, height: int) -> str:
    """SHA-256 of a picture's pixels, hex.

    Raises:
        ValueError: see `drawn_logo`.
    """
    if not (0 < width <= LOGO_WIDTH_PX and 0 < height <= LOGO_HEIGHT_PX):
        msg = "no logo is as large as the picture states"
        raise ValueError(msg)
    inflating = zlib.decompressobj()
    size = width * height * _CHANNELS
    try:
        # One byte more than there may be, which tells that there is more.
        pixels = inflating.decompress(deflated, size + 1)
    except zlib.error as exc:
        msg = "the picture cannot be inflated"
        raise ValueError(msg) from exc
    if len(pixels) != size or not inflating.eof or inflating.unused_data:
        msg = "the picture is not of the size that it states"
        raise ValueError(msg)
    return hashlib.sha256(pixels).hexdigest()


def _item(document: ActivationDocument, terms: DocumentTerms) -> dict[str, Any]:
    """One document as it is consented to."""
    details = document.details.to_json()
    if terms.logo is not None:
        details["logo"] = {
            "pixelsSha256": terms.logo.sha256,
            "width": terms.logo.width_px,
            "height": terms.logo.height_px,
        }
    return {
        "request": document.request,
        "documentSha256": document.document_sha256,
        "inspectionSha256": terms.basis_sha256,
        "parameters": document.params.to_wire(),
        "field": field_name(document),
        "stamp": details,
        "code": document.code,
        **terms.profile.to_json(),
    }


def _instant(at: datetime) -> str:
    """A time as both databases keep it: UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

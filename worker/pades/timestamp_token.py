"""Reads timestamp tokens: what they stamp, when, and by whose certificate."""

import hmac
from dataclasses import dataclass, field
from datetime import datetime

from asn1crypto import cms, tsp, x509

from appliance.domain.keys.hsm_keys import DigestAlgorithm


@dataclass(frozen=True, slots=True)
class TimestampToken:
    """A TimeStampToken as it was read; its signature is not verified by that."""

    at: datetime
    """genTime, aware."""
    digest: DigestAlgorithm
    """What made the imprint."""
    imprint: bytes
    certificate: bytes = field(repr=False)
    """The TSA's, DER."""
    certificates: tuple[bytes, ...] = field(repr=False)
    """All that it carries, the TSA's among them, DER."""

    def stamps(self, imprint: bytes) -> bool:
        """Whether it is over that digest."""
        return hmac.compare_digest(self.imprint, imprint)


def read_token(token: bytes) -> TimestampToken:
    """Read a token.

    Args:
        token: TimeStampToken (a CMS ContentInfo), DER; zeros may follow it, as in
            a document timestamp's Contents.

    Raises:
        ValueError: it is none, carries no certificate of its signer, or its
            imprint is by a digest that is not ours.

    Source: RFC 3161, 2.4.2.
    """
    try:
        signed = cms.ContentInfo.load(token)["content"]
        info = tsp.TSTInfo.load(signed["encap_content_info"]["content"].contents)
        carried = [
            each.chosen
            for each in signed["certificates"]
            if isinstance(each.chosen, x509.Certificate)
        ]
        (signer,) = signed["signer_infos"]
        own = next(each for each in carried if _is_of(each, signer["sid"]))
        imprint = info["message_imprint"]
        return TimestampToken(
            at=info["gen_time"].native,
            digest=DigestAlgorithm(imprint["hash_algorithm"]["algorithm"].native),
            imprint=imprint["hashed_message"].native,
            certificate=own.dump(),
            certificates=tuple(each.dump() for each in carried),
        )
    except (KeyError, TypeError, AttributeError, StopIteration) as exc:
        msg = "no timestamp token"
        raise ValueError(msg) from exc


def _is_of(certificate: x509.Certificate, signer: cms.SignerIdentifier) -> bool:
    """Whether a SignerIdentifier names a certificate. Source: RFC 5652, 5.3."""
    if signer.name == "issuer_and_serial_number":
        named = signer.chosen
        issuer = certificate.issuer
        return bool(
            named["serial_number"].native == certificate.serial_number
            # To compare names by their values takes a hundred times as long.
            and (named["issuer"].dump() == issuer.dump() or named["issuer"] == issuer)
        )
    return bool(signer.native == certificate.key_identifier)

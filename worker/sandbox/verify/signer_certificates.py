"""Check of a signer's certificate by itself: readable, and one for signing documents.

A chain that ends at a trusted root says who the subject is. It does not say that the
key is meant for documents: a web server and an OCSP responder have such a chain too.
"""

from typing import Final

from asn1crypto import x509

from appliance.domain.documents.verification import (
    YES,
    Check,
    CheckCode,
    refuted,
    unchecked,
)

_TEXT_CHARS: Final = 200
_USAGES: Final = {"digital_signature", "non_repudiation"}
_FOR_DOCUMENTS: Final = {
    "any_extended_key_usage",
    "email_protection",
    "client_auth",
    "1.3.6.1.5.5.7.3.36",  # id-kp-documentSigning (RFC 9336)
    "microsoft_document_signing",
    "1.2.840.113583.1.1.5",  # Adobe authentic documents
    "adobe_authentic_documents_trust",
    "pdf_signing",  # the same, once asn1crypto.pdf is imported
}
"""Extended key usages of which one suffices, by asn1crypto's names."""
_OF_SERVICES: Final = {"server_auth", "ocsp_signing", "time_stamping", "code_signing"}
"""Usages beside which `client_auth` does not count: TLS servers have both."""


def check_identity(certificate: x509.Certificate) -> Check:
    """Check that a certificate names its subject and is one for signing documents.

    Args:
        certificate: of the signer; trusted or not, an anchor too.

    Source: RFC 5280, 4.2.1.3 (key usage), 4.2.1.9 (CA flag), 4.2.1.12 (extended key
    usage); RFC 9336.
    """
    try:
        problem = _misuse(certificate)
        is_unknown = not problem and not _has_known_purpose(certificate)
        certificate.subject.native  # noqa: B018 (decodes every name)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return unchecked(
            CheckCode.SIGNATURE_UNREADABLE, "the signer's certificate cannot be read"
        )
    if is_unknown:
        return unchecked(
            CheckCode.SIG_CONSTRAINTS_FAILURE,
            "the signer's certificate names purposes that are not known here",
        )
    return refuted(CheckCode.SIG_CONSTRAINTS_FAILURE, problem) if problem else YES


def _misuse(certificate: x509.Certificate) -> str:
    """Describe the purpose that forbids signing documents; empty if none does."""
    constraints = certificate.basic_constraints_value
    if constraints is not None and constraints["ca"].native:
        return "the signer's certificate is that of a certification authority"
    usage = certificate.key_usage_value
    if usage is not None and not _USAGES & usage.native:
        return "the signer's certificate is not for signatures"
    extended = certificate.extended_key_usage_value
    if extended is None:
        return ""
    purposes = set(extended.native)
    if not _suited(purposes) and not _unknown(purposes):
        return "the signer's certificate is not for signing documents"
    return ""


def _has_known_purpose(certificate: x509.Certificate) -> bool:
    """Return whether a certificate may sign documents by a purpose known here."""
    extended = certificate.extended_key_usage_value
    return extended is None or bool(_suited(set(extended.native)))


def _suited(purposes: set[str]) -> set[str]:
    suited = purposes & _FOR_DOCUMENTS
    return suited - {"client_auth"} if purposes & _OF_SERVICES else suited


def _unknown(purposes: set[str]) -> set[str]:
    """Purposes that asn1crypto has no name for: some CAs have their own."""
    return {each for each in purposes if each[:1].isdigit()}


def attribute(certificate: x509.Certificate, name: str) -> str:
    """A subject's attribute as text; empty if it is absent or cannot be read.

    Args:
        certificate: any.
        name: by asn1crypto's names, such as `common_name`.
    """
    try:
        return text(certificate.subject.native.get(name))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 (a forged one raises anything)
        return ""


def text(value: object) -> str:
    """A subject's attribute as text; of several the first counts.

    Args:
        value: as `Name.native` has it; empty for None.
    """
    if isinstance(value, list):
        value = value[0] if value else ""
    return str(value or "")[:_TEXT_CHARS]

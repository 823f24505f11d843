"""Signing credentials, and the certificates of the internal CA."""

from enum import StrEnum


class CredentialState(StrEnum):
    """A signing credential."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    REVOKING = "revoking"
    """Its revocation was asked for: it signs no more, and is soon `revoked`."""
    REVOKED = "revoked"
    """CRL and OCSP say so."""


class CertificateKind(StrEnum):
    """What the internal CA certifies."""

    SIGNER = "signer"
    OCSP = "ocsp"
    """The responder that answers for the CA (RFC 6960, 4.2.2.2)."""
    TSA = "tsa"
    """The internal timestamping authority (RFC 3161, 2.3)."""


class CertificateState(StrEnum):
    """Whether a certificate is revoked; its end is a matter of its dates."""

    VALID = "valid"
    REVOKING = "revoking"
    """Asked for; CRL and OCSP still say that it is good."""
    REVOKED = "revoked"


class RevocationReason(StrEnum):
    """Why a signer's certificate is revoked.

    The CRLReasons that are a signer's and for good: no hold, nothing of CAs.

    Source: RFC 5280, 5.3.1.
    """

    UNSPECIFIED = "unspecified"
    KEY_COMPROMISE = "keyCompromise"
    AFFILIATION_CHANGED = "affiliationChanged"
    SUPERSEDED = "superseded"
    CESSATION_OF_OPERATION = "cessationOfOperation"
    PRIVILEGE_WITHDRAWN = "privilegeWithdrawn"


class StatementFault(StrEnum):
    """A check that a credential failed before its key was used; `layer` in the audit.

    The certificate states whose key it is; the rest of the row is believed as far as it
    agrees with that.
    """

    UNREADABLE = "certificate-unreadable"
    """It is no certificate, or has values that cannot be read."""
    ISSUER = "certificate-issuer"
    """No chain leads from it to a CA that is pinned by a file of the signing host."""
    KEY = "certificate-key"
    """It certifies another key than the credential's."""
    NAME = "certificate-name"
    """It names somebody else than the person, or nobody."""
    CUIL = "certificate-cuil"
    """Its CUIL is another one, or missing."""
    PURPOSE = "certificate-purpose"
    """It is not one for signing documents: a CA's, a TSA's, an OCSP responder's."""
    POLICY = "certificate-policy"
    """It does not say how the person was vouched for."""
    DATES = "certificate-dates"
    """It has ended, or has not begun."""
    RESIDENT = "resident-key"
    """The key on the token is another one, or the installation's own."""

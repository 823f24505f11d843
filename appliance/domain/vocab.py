"""Closed vocabularies: every word that is stored or sent comes from here.

The values are what stands in the database and, where they are part of the
contract, on the wire (Spanish there, as the spec has it).
"""

from enum import StrEnum


class RequestState(StrEnum):
    """`estado` of a signature request; each says who acts next.

    Source: decisions "estados".
    """

    WAITING = "en_espera"
    """Another signer's turn."""
    PENDING = "pendiente"
    """The signer acts next."""
    IN_PROGRESS = "en_proceso"
    """The appliance acts next."""
    SIGNED = "firmada"
    REJECTED = "rechazada"
    CANCELLED = "cancelada"
    EXPIRED = "vencida"
    FAILED = "fallida"


class ActivationState(StrEnum):
    """Where a signature activation stands (design §3)."""

    WAITING = "waiting"
    """Made, not yet claimed: claimable until `claim_by`."""
    KEYING = "keying"
    """Claimed; signatures are being made, until `key_until`."""
    FINISHING = "finishing"
    """Every signature value is stored; no user key is needed any more."""
    DONE = "done"
    EXPIRED = "expired"
    FAILED = "failed"


class ItemState(StrEnum):
    """One document of an activation."""

    WAITING = "waiting"
    KEYED = "keyed"
    """Signature value and prepared increment are stored."""
    DONE = "done"
    """Checked, stored and published."""
    FAILED = "failed"


class IntentState(StrEnum):
    """One intended use of a key; ends in exactly one of the last two."""

    OPEN = "abierta"
    COMPLETED = "completada"
    INTERRUPTED = "interrumpida"


class TaskState(StrEnum):
    """An `HsmTask`."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class TaskKind(StrEnum):
    """What a front may ask of the HSM."""

    ISSUE = "issue"
    """Make a key pair for a person and have the CA certify it."""
    RENEW = "renew"
    """Certify a credential's key again."""
    REVOKE = "revoke"
    """Sign what says that a credential's certificates are revoked."""
    CSR = "csr"
    """Sign a certificate signing request with a credential's key."""
    PUBLISH = "publish"
    """Sign the CRLs and OCSP answers that are due."""
    TIMESTAMP = "timestamp"
    """Answer a question to the internal timestamping authority."""


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


class PersonState(StrEnum):
    """A person of the installation."""

    INVITED = "invited"
    """Recorded, without secrets: has an enrolment link."""
    ACTIVE = "active"
    DISABLED = "disabled"


class SlotOutcome(StrEnum):
    """How one check of a signing password ended."""

    RUNNING = "running"
    RIGHT = "right"
    WRONG = "wrong"
    """Wrong and counted."""
    REPEATED = "repeated"
    """Wrong, the same as within the last minute: not counted again."""


class VouchedBy(StrEnum):
    """How a person came to be certified (decisions "who may be certified")."""

    VOUCHED = "vouched"
    OFFICER = "officer"
    EXTERNAL = "external"
    DEMO = "demo"


class Environment(StrEnum):
    """Which of the two kinds an installation is (spec "Environments")."""

    PREPROD = "PREPROD"
    PROD = "PROD"


class Restriction(StrEnum):
    """`restriccion` of the signing command (decisions "restriccion")."""

    NO_VALUE = "NO_VALUE"
    NO_CHANGES_ALLOWED = "NO_CHANGES_ALLOWED"
    FORM_FILLING = "FORM_FILLING"
    FORM_FILLING_AND_ANNOTATIONS = "FORM_FILLING_AND_ANNOTATIONS"


class SignatureLevel(StrEnum):
    """PAdES baseline levels, each with all of the one before it.

    Source: EN 319 142-1, 6; decisions "level".
    """

    B_B = "B-B"
    """The signature."""
    B_T = "B-T"
    """A timestamp over it."""
    B_LT = "B-LT"
    """What its validation needs: certificates, OCSP answers, CRLs."""
    B_LTA = "B-LTA"
    """A timestamp over the document with all of that."""


class TimestampPolicy(StrEnum):
    """What becomes of a signature while no timestamp can be had.

    Source: decisions "level"; reliability F22.
    """

    REQUIRED = "required"
    """It waits, and fails for good when its time is over."""
    PREFERRED = "preferred"
    """It is handed out at the level reached, and raised later."""


class FontName(StrEnum):
    """`fontName`: the logical names, each a Liberation family."""

    SERIF = "Serif"
    SANS_SERIF = "SansSerif"
    MONOSPACED = "Monospaced"


class FontStyle(StrEnum):
    """`fontStyle`."""

    PLAIN = "PLAIN"
    BOLD = "BOLD"
    ITALIC = "ITALIC"
    BOLD_ITALIC = "BOLD_ITALIC"


class CuilDisplay(StrEnum):
    """How much of the CUIL a stamp shows: `cuil` of the signing command."""

    WHOLE = "COMPLETO"
    MASKED = "ENMASCARADO"


class SecretName(StrEnum):
    """The secret keys of an installation that are kept in files."""

    DATA = "data"
    DOCUMENT = "document"
    LOOKUP = "lookup"
    PEPPER = "pepper"


class EventKind(StrEnum):
    """What the audit can say; grammar `subject.act`."""

    INTEGRATOR_CREATED = "integrator.created"
    INTEGRATOR_CHANGED = "integrator.changed"
    LOGO_CHANGED = "logo.changed"
    API_KEY_CREATED = "api_key.created"
    API_KEY_ROTATED = "api_key.rotated"
    API_KEY_REVOKED = "api_key.revoked"
    API_KEY_FLAGGED = "api_key.flagged"
    """It was seen in an address or came from a browser."""
    DOMAIN_ADDED = "domain.added"
    DOMAIN_REMOVED = "domain.removed"
    SESSION_OPENED = "session.opened"
    SESSION_EXCHANGED = "session.exchanged"
    """The frame gave the token for a bearer; earlier bearers are over."""
    SESSION_INIT = "session.init"
    SESSION_DOCUMENT = "session.document"
    SESSION_IDENTIFIED = "session.identified"
    SESSION_OTP_RIGHT = "session.otp_right"
    SESSION_OTP_WRONG = "session.otp_wrong"
    SESSION_REQUEST = "session.request"
    SESSION_COMPLETED = "session.completed"
    SESSION_RENEWED = "session.renewed"
    """A new token took over what was done under an earlier one."""
    SESSION_CANCELLED = "session.cancelled"
    SESSION_ENDED = "session.ended"
    LEGACY_CREDENTIALS = "integrator.legacy_credentials"
    """A page of the integrator sent an API key to the frame."""
    CONSOLE_USER_CREATED = "console_user.created"
    CONSOLE_LOGIN_WRONG = "console.login_wrong"
    CONSOLE_LOGIN_COMPLETED = "console.login_completed"
    CONSOLE_CODE_WRONG = "console.code_wrong"
    CONSOLE_LOGOUT = "console.logout"
    PERSON_INVITED = "person.invited"
    PERSON_ENROLLED = "person.enrolled"
    PERSON_CREATED = "person.created"
    PERSON_UNLOCKED = "person.unlocked"
    PERSON_DISABLED = "person.disabled"
    PERSON_ENABLED = "person.enabled"
    PERSON_REISSUED = "person.reissued"
    """Key revoked and secrets forgotten: they enrol anew."""
    CREDENTIAL_ISSUED = "credential.issued"
    KEY_ORPHAN_DESTROYED = "key.orphan_destroyed"
    """A key that a killed enrolment left on the token."""
    CERTIFICATE_ISSUED = "certificate.issued"
    """One of the appliance's own: the OCSP responder's, the TSA's."""
    CERTIFICATE_RENEWED = "certificate.renewed"
    REVOCATION_ASKED = "revocation.asked"
    """The credential signs no more from here on."""
    REVOCATION_PUBLISHED = "revocation.published"
    """CRL and OCSP say that it is revoked."""
    CRL_PUBLISHED = "crl.published"
    OCSP_PUBLISHED = "ocsp.published"
    CERTIFICATE_IMPORTED = "certificate.imported"
    """A credential got the certificate of an outside CA."""
    CSR_INTENDED = "csr.intended"
    """Before a key signs a request: the exact digest."""
    CSR_MADE = "csr.made"
    CERTIFICATE_EXPIRING = "certificate.expiring"
    """Somebody's, the CA's or a trusted root's; `detail.days` says how soon."""
    ANCHOR_ADDED = "anchor.added"
    ANCHOR_REMOVED = "anchor.removed"
    REVOCATION_PIN_SET = "revocation_pin.set"
    REVOCATION_PIN_WRONG = "revocation_pin.wrong"
    DOCUMENT_KEY_CREATED = "document_key.created"
    DOCUMENT_KEY_DESTROYED = "document_key.destroyed"
    """No document of the integrator opens from here on."""
    DOCUMENT_REMOVED = "document.removed"
    """Nothing referred to it."""
    REQUEST_CREATED = "request.created"
    REQUEST_TURN = "request.turn"
    """From `en_espera` to `pendiente`: those before have signed."""
    REQUEST_VIEWED = "request.viewed"
    REQUEST_REJECTED = "request.rejected"
    REQUEST_CANCELLED = "request.cancelled"
    REQUEST_EXPIRED = "request.expired"
    REQUEST_RETURNED = "request.returned"
    """From `en_proceso` back to `pendiente`; `detail.reason` says why."""
    REQUEST_SIGNED = "request.signed"
    REQUEST_FAILED = "request.failed"
    DOCUMENT_RAISED = "document.raised"
    """A later version of a signed document: the same, with more appended."""
    UPKEEP_FAILED = "document.upkeep_failed"
    """Its level could not be raised or kept now; it is tried again."""
    LOGIN_PASSWORD_RIGHT = "login.password_right"  # noqa: S105 (a word, no secret)
    LOGIN_PASSWORD_WRONG = "login.password_wrong"  # noqa: S105 (a word, no secret)
    LOGIN_OTP_WRONG = "login.otp_wrong"
    LOGIN_COMPLETED = "login.completed"
    SIGN_PASSWORD_WRONG = "sign.password_wrong"  # noqa: S105 (a word, no secret)
    SIGN_PASSWORD_CHANGED = "sign.password_changed"  # noqa: S105 (a word, no secret)
    SIGN_PASSWORD_REPLACED = "sign.password_replaced"  # noqa: S105 (a word, no secret)
    """An operator gave a person who had forgotten theirs a new one."""
    SIGN_PEPPER_RENEWED = "sign.pepper_renewed"
    """What is kept of a signing password was derived anew, with a newer pepper."""
    SIGN_LOCKED = "sign.locked"
    ACTIVATION_CREATED = "activation.created"
    ACTIVATION_CLAIMED = "activation.claimed"
    ACTIVATION_EXPIRED = "activation.expired"
    KEY_INTENDED = "key.intended"
    """Before a key is used: the exact digest to be signed."""
    KEY_USED = "key.used"
    """After a key was used and its signature stored."""
    KEY_INTERRUPTED = "key.interrupted"
    """An intent whose outcome is unknown was closed by a later claim."""
    DOCUMENT_DOWNLOADED = "document.downloaded"
    TIMESTAMP_ISSUED = "timestamp.issued"
    """The internal TSA answered somebody outside of the installation."""
    TASK_CREATED = "task.created"
    TASK_FAILED = "task.failed"
    SECRET_ROTATED = "secret.rotated"  # noqa: S105 (a word, no secret)
    """Another version of a secret key came into use."""
    SECRET_APPLIED = "secret.applied"  # noqa: S105 (a word, no secret)
    """What could be brought to that version was."""
    SECRET_RETIRED = "secret.retired"  # noqa: S105 (a word, no secret)
    """A version is known no more."""
    MEMBER_JOINING = "member.joining"
    """A token is about to be brought behind the logical HSM."""
    MASTER_CREATED = "master.created"
    """A new version of the HSM's master key came into use."""
    MASTER_APPLIED = "master.applied"
    """Every wrapped key is under that version."""
    MASTER_RETIRED = "master.retired"
    """A version was destroyed in the HSM."""
    LINK_CREATED = "link.created"

"""Closed vocabularies: every word that is stored or sent comes from here.

The values are what stands in the database and, where they are part of the
contract, on the wire (Spanish there, as the spec has it).
"""

from appliance.domain.vocab.activations import ActivationState, IntentState, ItemState
from appliance.domain.vocab.certificates import (
    CertificateKind,
    CertificateState,
    CredentialState,
    RevocationReason,
    StatementFault,
)
from appliance.domain.vocab.events import EventKind
from appliance.domain.vocab.installation import Environment, SecretName
from appliance.domain.vocab.people import (
    HelpOutcome,
    HelpTopic,
    PersonState,
    SlotOutcome,
    VouchedBy,
)
from appliance.domain.vocab.requests import (
    BatchState,
    Openings,
    RequestState,
    Restriction,
    SignatureLevel,
    TimestampPolicy,
)
from appliance.domain.vocab.stamps import (
    CuilDisplay,
    FontName,
    FontStyle,
    StampDesign,
)
from appliance.domain.vocab.tasks import TaskKind, TaskState
from appliance.domain.vocab.webhooks import (
    DeliveryFailure,
    MessageState,
    WebhookDisabled,
    WebhookEvent,
)

__all__ = [
    "ActivationState",
    "BatchState",
    "CertificateKind",
    "CertificateState",
    "CredentialState",
    "CuilDisplay",
    "DeliveryFailure",
    "Environment",
    "EventKind",
    "FontName",
    "FontStyle",
    "HelpOutcome",
    "HelpTopic",
    "IntentState",
    "ItemState",
    "MessageState",
    "Openings",
    "PersonState",
    "RequestState",
    "Restriction",
    "RevocationReason",
    "SecretName",
    "SignatureLevel",
    "SlotOutcome",
    "StampDesign",
    "StatementFault",
    "TaskKind",
    "TaskState",
    "TimestampPolicy",
    "VouchedBy",
    "WebhookDisabled",
    "WebhookEvent",
]

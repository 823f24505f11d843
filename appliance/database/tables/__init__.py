"""Every table of the record, a module for each subject.

Words are those of design §2; states come from `appliance.domain.vocab`.
Migrations in `migrations/` build exactly this (a test compares them). Import
from here, never from a module below: `metadata` is whole only with all of them.
"""

from appliance.database.tables.activations import (
    activation,
    activation_item,
    activation_key,
    activation_seal,
    intent,
)
from appliance.database.tables.audit import audit_event, audit_writer
from appliance.database.tables.base import metadata
from appliance.database.tables.certificates import (
    certificate,
    crl,
    expiry_notice,
    ocsp_response,
    outside_status,
    trust_anchor,
)
from appliance.database.tables.compatibility import table_compatibility
from appliance.database.tables.credentials import credential, former_certificate
from appliance.database.tables.documents import (
    document,
    document_key,
    document_original,
    document_repair,
    level_upkeep,
    passing_document,
    signed_document,
    uploaded_document,
)
from appliance.database.tables.installation import installation
from appliance.database.tables.integrators import (
    api_key,
    blocked_origin,
    integrator,
    integrator_domain,
    logo,
    logo_use,
)
from appliance.database.tables.mail import mail_message, security_notice
from appliance.database.tables.outside import outside_job, outside_material
from appliance.database.tables.people import (
    attempt_slot,
    enrolment,
    help_request,
    known_address,
    login_attempt,
    login_secret,
    person,
    person_vouch,
    revocation_pin,
    signing_secret,
    test_signer,
)
from appliance.database.tables.requests import (
    batch_document,
    batch_preparation,
    idempotency,
    integrator_event,
    request_batch,
    shown_document,
    signature_request,
    signing_batch,
    signing_process,
)
from appliance.database.tables.sessions import (
    console_session,
    console_user,
    download_link,
    embed_session,
    embed_session_document,
    jwt_key,
)
from appliance.database.tables.webhooks import (
    webhook_attempt,
    webhook_endpoint,
    webhook_message,
)
from appliance.database.tables.workers import hsm_task, task_seal, worker_status

__all__ = [
    "activation",
    "activation_item",
    "activation_key",
    "activation_seal",
    "api_key",
    "attempt_slot",
    "audit_event",
    "audit_writer",
    "batch_document",
    "batch_preparation",
    "blocked_origin",
    "certificate",
    "console_session",
    "console_user",
    "credential",
    "crl",
    "document",
    "document_key",
    "document_original",
    "document_repair",
    "download_link",
    "embed_session",
    "embed_session_document",
    "enrolment",
    "expiry_notice",
    "former_certificate",
    "help_request",
    "hsm_task",
    "idempotency",
    "installation",
    "integrator",
    "integrator_domain",
    "integrator_event",
    "intent",
    "jwt_key",
    "known_address",
    "level_upkeep",
    "login_attempt",
    "login_secret",
    "logo",
    "logo_use",
    "mail_message",
    "metadata",
    "ocsp_response",
    "outside_job",
    "outside_material",
    "outside_status",
    "passing_document",
    "person",
    "person_vouch",
    "request_batch",
    "revocation_pin",
    "security_notice",
    "shown_document",
    "signature_request",
    "signed_document",
    "signing_batch",
    "signing_process",
    "signing_secret",
    "table_compatibility",
    "task_seal",
    "test_signer",
    "trust_anchor",
    "uploaded_document",
    "webhook_attempt",
    "webhook_endpoint",
    "webhook_message",
    "worker_status",
]

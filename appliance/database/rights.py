"""What each process role may do with each table, on PostgreSQL.

Every role has a database user of its own, named as its Unix user, and no rights but
these: `rubrica migrate` grants them and takes all others away (`granting`). SQLite
knows no users, nor does an installation where one user serves all roles.

Operators' commands run as the tables' owner, but for those that open the HSM or go
outside (`appliance.cli.as_role`). Words are those of GRANT; UPDATE always names
its columns, SELECT does where some are secrets that the role has no use for.
`SELECT … FOR UPDATE` needs UPDATE of one column at least, `ON CONFLICT` with a
column SELECT of it, `RETURNING` SELECT of what it returns.

Source: PostgreSQL, chapter "Privileges".
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """Users of the database, one a process role."""

    API = "rubrica-api"
    EMBED = "rubrica-embed"
    ADMIN = "rubrica-admin"
    SIGNING = "rubrica-signing"
    CHORES = "rubrica-chores"


OWNER: Final = "rubrica-migrate"
"""The user that owns the tables and alone alters them."""

_API, _EMBED, _ADMIN, _SIGNING, _CHORES = Role
_READERS: Final = dict.fromkeys(Role, "SELECT")

_LEASE: Final = "lease_owner, lease_until, fence"
_ACTIVATION: Final = (
    f"SELECT, UPDATE (state, key_until, finish_until, {_LEASE}, progress, outside, "
    "reason)"
)
_ITEM: Final = (
    "SELECT, UPDATE (state, reason, increment, contents_at, contents_length, "
    "signed_attributes, signature)"
)
_CONSENT: Final = (
    "id, person, credential, state, factors, created, claim_by, fence, progress, "
    "reason, profile"
)
_CONSENTED: Final = (
    "activation, seq, request, document_sha256, params, params_sha256, state, reason, "
    "stamp, code"
)
_UPKEEP: Final = (
    f"SELECT, INSERT, UPDATE (wanted, outside, due, since, tries, reason, {_LEASE}), "
    "DELETE"
)
# What a signing worker wants of servers outside: never what it is to be, or whose.
_MATERIAL_SEEN: Final = (
    "(job, key, kind, subject, required, code, nonce, wanted_at, state, reason, token)"
)
_CERTIFIED: Final = "certificate, chain, not_before, not_after"
_REVOKING: Final = "state, revoked_at, reason, task"
_TAKEN_IN: Final = "SELECT, INSERT, UPDATE (inspection, created)"
_ORIGINALS: Final = dict.fromkeys(Role, "SELECT, INSERT") | dict.fromkeys(
    (_API, _ADMIN, _CHORES), "SELECT, INSERT, DELETE"
)
_PASSING: Final = "SELECT, INSERT, UPDATE (leaves, since), DELETE"
_TRIES: Final = (
    "SELECT, INSERT, UPDATE (account_index, person, outcome, token_index, until), "
    "DELETE"
)
_HELP: Final = (
    "SELECT, INSERT, UPDATE (id, topic, integrator, code_index, asked, counted, "
    "since, ended, outcome)"
)
_REMEMBERED: Final = "SELECT, INSERT, UPDATE (at)"
_MAIL_SHOWN: Final = (
    "(id, integrator, person, request, kind, detail, state, answer, tries, due, "
    "created, ended)"
)
_DERIVATION: Final = "salt, argon2, pepper_version, verifier_sha256"
_COUNT: Final = "counted, locked_at, cleared"
_ENDPOINT: Final = (
    "SELECT, INSERT, UPDATE (url, label, events, secret_sealed, former_secret_sealed, "
    "former_until, disabled, disabled_reason, failing_since, removed)"
)
_MESSAGE: Final = "SELECT, INSERT, UPDATE (state, tries, due)"

RIGHTS: Final[Mapping[str, Mapping[Role, str]]] = {
    # Nobody changes or deletes a row of the audit; the console alone reads them. Which
    # rows each role adds and moves, policies say (`row_policies`): the user that began
    # a chain is the database's to note.
    "audit_event": dict.fromkeys(Role, "INSERT") | {_ADMIN: "SELECT, INSERT"},
    "audit_writer": dict.fromkeys(
        Role, "SELECT, INSERT (id, role, started, n, hash), UPDATE (n, hash)"
    ),
    # People. Who vouched for each is recorded with them, once.
    "person": {
        # An enrolment makes an invited person active; an integrator's backend that may
        # vouch invites.
        _API: "SELECT, INSERT, UPDATE (state)",
        _EMBED: "SELECT",
        _ADMIN: "SELECT, INSERT, UPDATE (state, signed_out)",
        _SIGNING: "SELECT",
        # Of test signers, where an installation became PROD.
        _CHORES: "SELECT, UPDATE (state)",
    },
    "enrolment": {
        _API: "SELECT, INSERT, UPDATE (used, until)",
        _ADMIN: "SELECT, INSERT, UPDATE (until)",
        # Whether somebody who is asked to sign has a link to enrol by.
        _CHORES: "SELECT (person, used, until)",
    },
    "person_vouch": {
        _API: "SELECT, INSERT",
        _ADMIN: "SELECT",
        # Whom to tell of a person.
        _SIGNING: "SELECT (person, integrator)",
        _CHORES: "SELECT (person, integrator)",
    },
    "test_signer": {
        _API: "SELECT, INSERT, UPDATE (removed)",
        _EMBED: "SELECT (person, integrator, removed)",
        _ADMIN: "SELECT (person, integrator, removed)",
        _CHORES: "SELECT (person, integrator, removed)",
    },
    # Asked on a page or in a frame, closed by an officer.
    "help_request": {
        _API: _HELP,
        _EMBED: _HELP,
        _ADMIN: "SELECT (id, person, topic, integrator, proven, asked, ended, outcome)"
        ", UPDATE (ended, outcome)",
    },
    "login_secret": {
        _API: "SELECT, INSERT, UPDATE (last_step)",
        _EMBED: "SELECT, UPDATE (last_step)",
        _ADMIN: "SELECT (person), UPDATE (totp_sealed, last_step), DELETE",
    },
    "login_attempt": {
        _API: _TRIES,
        _EMBED: "SELECT, INSERT, UPDATE (outcome), DELETE",
        _ADMIN: _TRIES,
        _CHORES: "SELECT, DELETE",
    },
    "known_address": {
        _API: _REMEMBERED,
        _EMBED: _REMEMBERED,
        _ADMIN: _REMEMBERED,
        _CHORES: "SELECT, DELETE",
    },
    "signing_secret": {
        _API: f"SELECT, INSERT, UPDATE ({_DERIVATION}, {_COUNT})",
        _EMBED: f"SELECT, UPDATE ({_DERIVATION}, {_COUNT})",
        _ADMIN: f"SELECT, UPDATE ({_COUNT}), DELETE",
    },
    "attempt_slot": {
        _API: "SELECT, INSERT, UPDATE (outcome, verifier_sha256)",
        _EMBED: "SELECT, INSERT, UPDATE (outcome, verifier_sha256)",
        _CHORES: "SELECT, DELETE",
    },
    "revocation_pin": {
        _API: "SELECT, INSERT, UPDATE (phc, made)",
        _ADMIN: "SELECT (person, made), INSERT, UPDATE (phc, made)",
    },
    # Keys and certificates. Workers with the HSM alone add them.
    "credential": {
        _API: f"SELECT, UPDATE (outer, state, {_CERTIFIED})",
        # A right password after `secrets rotate pepper` locks the key anew.
        _EMBED: "SELECT, UPDATE (outer)",
        _ADMIN: f"SELECT, UPDATE (state, {_CERTIFIED})",
        _SIGNING: "SELECT, INSERT, "
        f"UPDATE (state, {_CERTIFIED}, master, blob_w, method_w)",
        _CHORES: "SELECT, UPDATE (state)",
    },
    "former_certificate": {
        _API: "SELECT, INSERT",
        _ADMIN: "SELECT, INSERT",
        _SIGNING: "SELECT",
        _CHORES: "SELECT",
    },
    "certificate": {
        _API: f"SELECT, UPDATE ({_REVOKING})",
        _EMBED: "SELECT",
        _ADMIN: f"SELECT, UPDATE ({_REVOKING})",
        _SIGNING: f"SELECT, INSERT, UPDATE ({_REVOKING})",
        _CHORES: f"SELECT, UPDATE ({_REVOKING})",
    },
    "crl": {
        _API: "SELECT",
        _ADMIN: "SELECT",
        _SIGNING: "SELECT, INSERT, UPDATE (number, der, this_update, next_update)",
        _CHORES: "SELECT",
    },
    "ocsp_response": {
        _API: "SELECT",
        _ADMIN: "SELECT",
        _SIGNING: "SELECT, INSERT, UPDATE (state, der, this_update, next_update)",
        _CHORES: "SELECT, DELETE",
    },
    "trust_anchor": _READERS | {_ADMIN: "SELECT, INSERT, DELETE"},
    "outside_status": _READERS
    | {
        _CHORES: "SELECT, INSERT, UPDATE "
        "(der, this_update, next_update, revoked_at, reason), DELETE"
    },
    "expiry_notice": {_CHORES: "SELECT, INSERT, UPDATE (not_after, days, at)"},
    # Documents.
    "document": {
        # What nothing refers to goes with the call that kept it, or that deletes it.
        _API: f"{_TAKEN_IN}, DELETE",
        _EMBED: _TAKEN_IN,
        _ADMIN: f"{_TAKEN_IN}, DELETE",
        _SIGNING: _TAKEN_IN,
        _CHORES: f"{_TAKEN_IN}, DELETE",
    },
    # Forgotten with its document, by PostgreSQL as the tables' owner, or before that.
    "document_repair": _ORIGINALS,
    "document_original": _ORIGINALS,
    "uploaded_document": {
        _API: "SELECT, INSERT, DELETE",
        _ADMIN: "SELECT",
        _CHORES: "SELECT, DELETE",
    },
    "passing_document": {
        _API: _PASSING,
        _ADMIN: _PASSING,
        _CHORES: _PASSING,
    },
    # Nobody but the owner destroys one (`documents shred`) or seals it anew.
    "document_key": dict.fromkeys(Role, "SELECT, INSERT"),
    # The process that signed, or one of its kind, alone says what a signed document is.
    "signed_document": _READERS | {_SIGNING: "SELECT, INSERT"},
    "level_upkeep": {
        _ADMIN: "SELECT",
        _SIGNING: _UPKEEP,
        # That its material is there.
        _CHORES: "SELECT, UPDATE (lease_until)",
    },
    "outside_job": {
        # Which activations wait for a TSA or CA.
        _ADMIN: "SELECT",
        _SIGNING: "SELECT, INSERT, UPDATE (until, lease_until), DELETE",
        _CHORES: f"SELECT, UPDATE ({_LEASE}, progress), DELETE",
    },
    "outside_material": {
        _SIGNING: "SELECT, INSERT, UPDATE (required, nonce, wanted_at, state, reason, "
        "token), DELETE",
        # Not what is stamped, nor the nonce: only what came of it.
        _CHORES: f"SELECT {_MATERIAL_SEEN}, UPDATE (state, reason, token), DELETE",
    },
    # Integrators. The console alone says which are there and may vouch.
    "integrator": _READERS
    | {
        _ADMIN: "SELECT, INSERT, UPDATE (name, delivery_limit_bytes, may_vouch, level, "
        "timestamp_policy, digest, disabled, tsa, event_prefix, mails_signers, "
        "reminder_days, sign_url)"
    },
    "api_key": {
        _API: "SELECT, UPDATE (last_used, key_index, flagged, flag_reason)",
        _ADMIN: "SELECT, INSERT, UPDATE (ends, revoked)",
        _CHORES: "SELECT (id, integrator, created, expires, ends, revoked, "
        "expiry_told), UPDATE (expiry_told)",
    },
    "integrator_domain": {
        _API: "SELECT",
        _EMBED: "SELECT, UPDATE (seen)",
        _ADMIN: "SELECT, INSERT, DELETE",
    },
    "blocked_origin": {
        _API: "SELECT",
        _EMBED: "SELECT, INSERT, UPDATE (last, count), DELETE",
        _ADMIN: "SELECT, DELETE",
    },
    "logo": _READERS | {_ADMIN: "SELECT, INSERT"},
    "logo_use": _READERS | {_ADMIN: "SELECT, INSERT, UPDATE (logo, since), DELETE"},
    # Requests, and what people authorised.
    "signing_process": _READERS
    | {
        _API: "SELECT, INSERT, UPDATE (reference, unique_reference, metadata, "
        "language, message)",
        _EMBED: "SELECT, INSERT",
        _ADMIN: "SELECT, INSERT",
        # Of batches, once their documents are examined.
        _CHORES: "SELECT, INSERT",
    },
    "signature_request": {
        _API: "SELECT, INSERT, "
        "UPDATE (state, reason, activation, params_sha256, expires, preset)",
        _EMBED: "SELECT, INSERT, "
        "UPDATE (state, reason, activation, params_sha256, expires, seen)",
        _ADMIN: "SELECT, INSERT, UPDATE (state, reason, expires)",
        _SIGNING: "SELECT, UPDATE (state, reason, level, document)",
        _CHORES: "SELECT, INSERT, UPDATE (state, reason, document)",
    },
    # Signers are shown documents by these two alone.
    "shown_document": dict.fromkeys(
        (_API, _EMBED), "SELECT, INSERT, UPDATE (sha256, drawn)"
    ),
    "request_batch": {
        # Taken back before it is ready.
        _API: "SELECT, INSERT, UPDATE (state, unique_reference, reason, ended)",
        _EMBED: "SELECT (id, openings)",
        _ADMIN: "SELECT",
        _CHORES: "SELECT, UPDATE (state, unique_reference, examined, faults, ended), "
        "DELETE",
    },
    "batch_preparation": {
        _API: "SELECT, INSERT, DELETE",
        _ADMIN: "SELECT",
        _CHORES: f"SELECT, UPDATE (tries, {_LEASE}), DELETE",
    },
    "batch_document": {
        _API: "SELECT, INSERT, DELETE",
        # Who removes a file asks first whether a batch needs it.
        _ADMIN: "SELECT (integrator, sha256, document, original_sha256)",
        _CHORES: "SELECT, "
        "UPDATE (document, original_sha256, preset, settled, fault), DELETE",
    },
    # Each role writes what it does; nobody changes it but to say that it was sent.
    "integrator_event": dict.fromkeys(Role, "INSERT")
    | {
        _API: "SELECT, INSERT",
        _ADMIN: "SELECT, INSERT",
        _CHORES: "SELECT, INSERT, UPDATE (pending)",
    },
    # Who sets webhooks up may send something again; chores alone deliver.
    "webhook_endpoint": {
        _API: _ENDPOINT,
        _ADMIN: _ENDPOINT,
        _CHORES: "SELECT, UPDATE (disabled, disabled_reason, failing_since)",
    },
    "webhook_message": {
        _API: _MESSAGE,
        _ADMIN: _MESSAGE,
        _CHORES: f"SELECT, INSERT, UPDATE (state, tries, due, {_LEASE}), DELETE",
    },
    "webhook_attempt": {
        _API: "SELECT",
        _ADMIN: "SELECT",
        _CHORES: "SELECT, INSERT, DELETE",
    },
    # Each role writes what is to be told; links are sealed.
    "mail_message": dict.fromkeys(Role, "INSERT")
    | {
        _API: f"SELECT {_MAIL_SHOWN}, INSERT, UPDATE (state, ended, link_sealed)",
        _ADMIN: f"SELECT {_MAIL_SHOWN}, INSERT, UPDATE (state, ended, link_sealed)",
        _CHORES: "SELECT, INSERT, UPDATE "
        f"(state, answer, tries, due, ended, link_sealed, {_LEASE}), DELETE",
    },
    # A notice to somebody about their own keys, factors and secrets: every role may
    # cause one, and chores alone say what became of it.
    "security_notice": dict.fromkeys(Role, "INSERT")
    | {
        _API: "SELECT, INSERT",
        _ADMIN: "SELECT, INSERT",
        _CHORES: "SELECT, INSERT, UPDATE "
        f"(state, answer, tries, due, ended, {_LEASE}), DELETE",
    },
    "signing_batch": {
        _API: "SELECT, INSERT, UPDATE (requests, refused, asked)",
        _CHORES: "SELECT, DELETE",
    },
    "idempotency": {
        # The key of a batch that was taken back before it was ready is free again.
        _API: "SELECT, INSERT, DELETE",
        _EMBED: "SELECT, INSERT, UPDATE (fingerprint, created)",
        _CHORES: "SELECT, DELETE",
    },
    "activation": {
        # As it waits. Whatever follows of it, a signature among that, is no front's.
        _API: f"SELECT, INSERT ({_CONSENT})",
        _EMBED: f"SELECT, INSERT ({_CONSENT})",
        _ADMIN: "SELECT",
        _SIGNING: _ACTIVATION,
        # Those whose time is over, and that their material is there.
        _CHORES: "SELECT, UPDATE (state, reason, lease_until, fence, outside)",
    },
    "activation_item": {
        _API: f"SELECT, INSERT ({_CONSENTED})",
        _EMBED: f"SELECT, INSERT ({_CONSENTED})",
        _ADMIN: "SELECT",
        _SIGNING: _ITEM,
        _CHORES: "SELECT, UPDATE (state, reason)",
    },
    "activation_seal": {
        _API: "INSERT",
        _EMBED: "INSERT",
        # A host seals again what waits for longer than a private half is kept.
        _SIGNING: "SELECT, DELETE, UPDATE (epoch, sealed)",
        # Sealed to hosts: without their keys it is of no use.
        _CHORES: "SELECT, DELETE",
    },
    "activation_key": {
        _API: "SELECT",
        _EMBED: "SELECT",
        # The console says whether the hosts that are alive are admitted.
        _ADMIN: "SELECT",
        _SIGNING: "SELECT, INSERT, "
        "UPDATE (public, identity, signature, made, host_signature), DELETE",
    },
    "intent": {
        _API: "SELECT",
        _EMBED: "SELECT",
        _ADMIN: "SELECT",
        _SIGNING: "SELECT, INSERT, UPDATE (state, closed)",
        _CHORES: "SELECT, UPDATE (state, closed)",
    },
    # Sessions and links.
    "embed_session": {
        _API: "SELECT, INSERT",
        _EMBED: "SELECT, UPDATE (bearer_index, state, nonce, idem_key, init_sha256, "
        "person, otp_at, document, document_name, request, completed, documents, "
        "wanted, batch, host_document, successor, codes, original_sha256)",
        _ADMIN: "SELECT, UPDATE (state)",
        _CHORES: "SELECT, UPDATE (document, expiry_told), DELETE",
    },
    "embed_session_document": {
        # Who removes a file asks first whether a session has brought it, too.
        _API: "SELECT",
        _ADMIN: "SELECT",
        _EMBED: "SELECT, INSERT, DELETE",
        _CHORES: "SELECT, DELETE",
    },
    "console_user": {
        _ADMIN: "SELECT, INSERT, "
        "UPDATE (phc, totp_sealed, last_step, disabled, last_login)",
    },
    "console_session": {
        _ADMIN: "SELECT, INSERT, UPDATE (until, proven), DELETE",
        _CHORES: "SELECT (token_index, until), DELETE",
    },
    "download_link": {
        _API: "SELECT, INSERT",
        _EMBED: "INSERT",
        _CHORES: "SELECT, DELETE",
    },
    "jwt_key": {_API: "SELECT, INSERT"},
    # Work for the HSM, and who is there to do it.
    "hsm_task": {
        _API: "SELECT, INSERT",
        _EMBED: "SELECT",
        _ADMIN: "SELECT, INSERT",
        _SIGNING: f"SELECT, INSERT, UPDATE (state, {_LEASE}, output, reason, swept)",
        _CHORES: f"SELECT, INSERT, UPDATE (state, {_LEASE}, output, reason, swept), "
        "DELETE",
    },
    "task_seal": {
        _API: "INSERT",
        _SIGNING: "SELECT, DELETE",
        _CHORES: "SELECT (task, host), DELETE",
    },
    "worker_status": dict.fromkeys(Role, "SELECT, INSERT, DELETE"),
    # Alembic's own, and ours: each process looks whether it may use the tables.
    "alembic_version": _READERS,
    "table_compatibility": _READERS,
    # The mark is set by the tables' owner (`migrate`), the number by who has the HSM.
    "installation": _READERS | {_SIGNING: "SELECT, INSERT, UPDATE (value)"},
}
"""By table: what each role may; a role that is not named there may nothing."""

UNTIL_CLOSED: Final[Mapping[str, Mapping[Role, str]]] = {
    "signed_document": {_CHORES: "INSERT"},
    "level_upkeep": {_CHORES: _UPKEEP},
    "signature_request": {_CHORES: "UPDATE (level)"},
    "activation": {_CHORES: _ACTIVATION},
    "activation_item": {_CHORES: _ITEM},
}
"""Rights that the version before made use of and this one has no need of.

A user that has one keeps it until the upgrade is closed (`rubrica upgrade --close`):
until then chores of the version before may publish. None is ever given: a new
installation has none of them, and one that was closed gets none back."""

SEQUENCES: Final[Mapping[str, frozenset[Role]]] = {
    "signature_request_id_seq": frozenset({_API, _EMBED, _ADMIN, _CHORES}),
    "integrator_event_id_seq": frozenset(Role),
    "webhook_attempt_id_seq": frozenset({_CHORES}),
}
"""By sequence: who takes numbers of it (USAGE)."""

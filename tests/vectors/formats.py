"""Every format of which vectors are kept, by the name of its file."""

from typing import Final

from tests.vectors import adapters as do
from tests.vectors import cases, signature_cases
from tests.vectors import column_adapters as column
from tests.vectors import process_adapters as process
from tests.vectors import signature_adapters as sign
from tests.vectors.kept import Format

FORMATS: Final = {
    "activation-data": Format(
        "HPKE info of an activation: SHA-256 of the RFC 8785 JSON of `given`.",
        cases.ACTIVATIONS,
        write=do.activation_info,
    ),
    "consent-data": Format(
        "HPKE info of an activation in format 2: SHA-256 of the RFC 8785 JSON of "
        "docs/signing.md; `inspection`: the hash of what a signature relies on.",
        cases.CONSENTS,
        write=do.consent_info,
    ),
    "issue-data": Format(
        "HPKE info of an `issue` task: SHA-256 of the RFC 8785 JSON of `given`.",
        cases.ISSUES,
        write=do.issue_info,
    ),
    "csr-data": Format(
        "HPKE info of a `csr` task: SHA-256 of the RFC 8785 JSON of `given` and "
        '`"use": "csr"`.',
        cases.CSRS,
        write=do.csr_info,
    ),
    "hpke-envelope": Format(
        "activation_seal.sealed, task_seal.sealed: encapsulated key and ciphertext of "
        "HPKE (X25519, HKDF-SHA256, AES-256-GCM).",
        cases.SEALS,
        seal=do.sealed_unlock_key,
        read=do.opened_unlock_key,
    ),
    "credential-outer": Format(
        "credential.outer: nonce, AES-256-GCM of the wrapped key; and what it is "
        "bound to.",
        cases.OUTERS,
        write=do.outer,
        read=do.outer_opened,
    ),
    "activation-key-statement": Format(
        "What the worker identity signs for activation_key.signature.",
        cases.STATEMENTS,
        write=do.statement,
    ),
    "host-statement": Format(
        "What worker identity and host sign for activation_key.signature and "
        "activation_key.host_signature of an epoch of 60 seconds.",
        cases.HOST_STATEMENTS,
        write=do.host_statement,
    ),
    "signing-hosts": Format(
        "pki/signing-hosts: the hosts that fronts admit; and fingerprints.",
        cases.HOST_LISTS,
        write=do.signing_hosts,
        read=do.signing_hosts_read,
    ),
    "activation-epoch": Format(
        "Epochs of activation keys.", cases.EPOCHS, write=do.epoch
    ),
    "command-fingerprint": Format(
        "signature_request.params_sha256, activation_item.params.",
        cases.COMMANDS,
        write=do.command_fingerprint,
    ),
    "batch-fingerprint": Format(
        "signing_batch.id, idempotency.fingerprint.",
        cases.BATCHES,
        write=do.batch_fingerprint,
    ),
    "signature-preset": Format(
        "signature_request.preset.", cases.PRESETS, write=do.signature_preset
    ),
    "stamp-details": Format(
        "activation_item.stamp.", cases.STAMPS, write=do.stamp_details
    ),
    "frame-init": Format(
        "embed_session.init_sha256.", cases.INITS, write=do.frame_init
    ),
    "audit-chain": Format(
        "audit_event: n, prev, hash.",
        cases.CHAINS,
        write=do.audit_chain,
        read=do.audit_broken_at,
    ),
    "sealed-columns": Format(
        "Columns sealed with the data or document key: version, nonce, AES-256-GCM; "
        "bound to table, row and column.",
        cases.SEALED,
        write=do.sealed_value,
        read=do.opened_value,
    ),
    "lookup-indexes": Format(
        "Keyed hashes that secrets and addresses are found by; an advisory lock.",
        cases.LOOKUPS,
        write=do.lookup_indexes,
    ),
    "key-file": Format(
        "Files of pepper, data key, document key and lookup key.",
        cases.RINGS,
        write=do.key_file,
        read=do.read_key_file,
    ),
    "signing-password": Format(
        "signing_secret, and the unlock key of each credential.",
        cases.SIGNING_PASSWORDS,
        write=do.signing_secret,
        read=do.checked_secret,
    ),
    "wrong-password-mark": Format(
        "attempt_slot.verifier_sha256: tells one wrong signing password from another.",
        cases.WRONG_PASSWORDS,
        write=do.wrong_password_mark,
    ),
    "count-clearing": Format(
        "signing_secret.cleared: proof of when the count of wrong passwords was reset.",
        cases.CLEARINGS,
        write=do.count_clearing,
        read=do.count_cleared,
    ),
    "login-password": Format(
        "login_secret.phc, console_user.phc, revocation_pin.phc; `written`: its cost.",
        cases.LOGIN_PASSWORDS,
        write=do.login_parameters,
        seal=do.login_hash,
        read=do.login_right,
    ),
    "totp-seed": Format(
        "Seed of an enrolment's opening; what an authenticator app reads.",
        cases.SEEDS,
        write=do.totp_seed,
    ),
    "api-key": Format(
        "API keys as integrators have them, and api_key.hint.",
        cases.API_KEYS,
        write=do.api_key,
        read=do.api_key_read,
    ),
    "document-file": Format(
        "Encrypted documents: name, associated data, file; `read`: SHA-256.",
        cases.FILES,
        write=do.document_file,
        read=do.document_opened,
    ),
    "download-name": Format(
        "Content-Disposition of a signed document.",
        cases.DOWNLOADS,
        write=do.download_name,
    ),
    "inspection": Format(
        "document.inspection.",
        cases.INSPECTIONS,
        write=do.stored_inspection,
        read=do.read_inspection,
    ),
    "columns": Format(
        "JSON and times of any column; credential.chain; hsm_task.share; "
        "installation.value.",
        cases.COLUMNS,
        write=column.column_values,
        read=column.column_values_read,
    ),
    "timestamp-task": Format(
        "hsm_task.input of a `timestamp` task.",
        cases.QUESTIONS,
        write=column.timestamp_task,
        read=column.timestamp_question,
    ),
    "console-cursor": Format(
        "`cursor` of the console's lists.",
        cases.CURSORS,
        write=column.console_cursor,
        read=column.console_cursor_read,
    ),
    "backup-names": Format(
        "Names of backups, fingerprints of keys in about.json, contents.json.",
        cases.BACKUPS,
        write=column.backup_names,
        read=column.backup_names_read,
    ),
    "sandbox-messages": Format(
        "What sandbox and client say to each other.",
        cases.MESSAGES,
        write=process.sandbox_message,
        read=process.sandbox_read,
    ),
    "sandbox-caller": Format(
        "Name of a caller's socket, in the abstract namespace.",
        cases.CALLERS,
        write=process.sandbox_caller,
        read=process.sandbox_caller_read,
    ),
    "process-files": Format(
        "run_dir's files of calls and pulses; metrics_dir's of figures.",
        cases.PROCESSES,
        write=process.files_of_processes,
    ),
    "cms": Format(
        "Signed attributes and CMS of a signature: activation_item.signed_attributes, "
        "Contents.",
        signature_cases.CMS,
        write=sign.cms,
    ),
    "timestamp-token": Format(
        "TSTInfo and TimeStampToken of the internal TSA.",
        signature_cases.TIMESTAMPS,
        write=sign.timestamp,
    ),
    "signed-pdf": Format(
        "Revision that a signature adds, in Latin-1; of one with a stamp its hash.",
        signature_cases.PDFS,
        write=sign.signed_pdf,
        read=sign.signed_pdf_right,
    ),
    "certificate-fields": Format(
        "Subject and extensions of signers', TSA's and OCSP responder's certificates.",
        signature_cases.CERTIFICATES,
        write=sign.certificate_fields,
    ),
    "certificate-request": Format(
        "CertificationRequestInfo.", signature_cases.REQUESTS, write=sign.request_body
    ),
    "revocation": Format(
        "TBSCertList of a CRL; CertStatus of OCSP answers.",
        signature_cases.REVOCATIONS,
        write=sign.revocations,
    ),
}

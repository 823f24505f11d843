"""The product as the vectors see it: the one module of theirs that names its parts.

Each function is given plain JSON and gives plain JSON. Where code moves, the imports
here move with it; the files of `formats` stay as they are.
"""

import hashlib
import io
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from appliance.admission.known_addresses import known_indexes
from appliance.admission.login_attempt_store import _lock_key
from appliance.database.types import JsonText
from appliance.documents.document_files import (
    NewDocument,
    SealedReader,
    associated,
    name_of,
    named_document,
)
from appliance.domain.appearance.details import StampDetails
from appliance.domain.audit.record import AuditEvent, AuditRow, chain, first_break
from appliance.domain.documents.inspected import (
    FindingKind,
    Inspection,
    PageBox,
    SignatureMark,
    inspection_from_json,
    inspection_to_json,
    signed_name,
    signing_facts_from_json,
)
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    IntegratorId,
    PersonId,
    RequestId,
    TaskId,
)
from appliance.domain.integrators.api_keys import checksum, new_api_key, read_api_key
from appliance.domain.keys.host_statements import HostStatement
from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyAlgorithm
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import SigningSecret, credential_aad
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    ActivationFormat,
    Claim,
    CsrBinding,
    IssueBinding,
    activation_data,
    epoch_start,
    key_statement,
)
from appliance.domain.signing.consent import Consent, ConsentSigner, DocumentTerms
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import (
    ActivationState,
    Environment,
    EventKind,
    SignatureLevel,
    TimestampPolicy,
    VouchedBy,
)
from appliance.identity import (
    console_login,
    console_login_attempts,
    invitations,
    login,
    totp,
)
from appliance.integrators.api_keys import key_purpose
from appliance.keys.count_clearings import CountClearings
from appliance.keys.key_encryption import lock_outer, open_outer, open_seal, seal_to
from appliance.keys.password_hashing import HashSlots, PasswordRoot, Passwords
from appliance.keys.signing_password import SigningPasswords, normalize
from appliance.pki.revocation_pins import plain
from appliance.secrets import key_files
from appliance.secrets.admitted_hosts import admit, listed
from appliance.secrets.host_key import fingerprint
from appliance.secrets.sealed_box import LookupKey, SecretBox
from embed import wire as frame_wire
from tests.support.processes.event_loops import run_apart
from tests.vectors.kept import Given


def at(text: str) -> datetime:
    """A time, aware."""
    return datetime.fromisoformat(text)


def raw(digits: str) -> bytes:
    """Bytes of hexadecimal digits."""
    return bytes.fromhex(digits)


# -- what a signature is bound to ----------------------------------------------


def activation_info(given: Given) -> str:
    """What an unlock key is sealed to, as the front has it, and the worker."""
    consent: dict[str, Any] = {
        "id": ActivationId(given["activation"]),
        "person": PersonId(given["person"]),
        "credential": CredentialId(given["credential"]),
        "factors": tuple(given["factors"]),
        "created": at(given["created"]),
        "claim_by": at(given["claimBy"]),
        "documents": tuple(
            ActivationDocument(
                seq,
                RequestId(each["request"]),
                each["documentSha256"],
                SignParameters.from_wire(each["parameters"]),
                "",
                details=StampDetails.from_json(each.get("stamp", {})),
            )
            for seq, each in enumerate(given["items"])
        ),
    }
    claim = Claim(
        **consent,
        state=ActivationState.KEYING,
        fence=3,
        key_until=consent["claim_by"],
    )
    (data,) = {
        activation_data(one, given["keyVersion"])
        for one in (Activation(**consent), claim)
    }
    return data.hex()


def consent_info(given: Given) -> dict[str, str]:
    """What an unlock key is sealed to in format 2, by the front and by the worker."""
    signer = given["signer"]
    consenting = ConsentSigner(
        name=signer["name"],
        cuil=signer["cuil"],
        locale=signer["locale"],
        key_version=given["keyVersion"],
        certificate=raw(signer["certificate"]),
        chain=tuple(map(raw, signer["chain"])),
    )
    activation = Activation(
        id=ActivationId(given["activation"]),
        person=PersonId(given["person"]),
        credential=CredentialId(given["credential"]),
        factors=tuple(given["factors"]),
        created=at(given["created"]),
        claim_by=at(given["claimBy"]),
        documents=tuple(
            ActivationDocument(
                seq,
                RequestId(each["request"]),
                each["documentSha256"],
                SignParameters.from_wire(each["parameters"]),
                "",
                details=StampDetails.from_json(each.get("stamp", {})),
                code=each["code"],
            )
            for seq, each in enumerate(given["items"])
        ),
    )
    bases = [inspection_of(each["inspection"]).basis_sha256 for each in given["items"]]
    terms = tuple(
        DocumentTerms(
            basis,
            SignatureProfile(
                SignatureLevel(each["profile"]["level"]),
                TimestampPolicy(each["profile"]["timestampPolicy"]),
                DigestAlgorithm(each["profile"]["digest"]),
                tuple(each["profile"]["tsa"]),
            ),
            document.details.logo,
        )
        for basis, each, document in zip(
            bases, given["items"], activation.documents, strict=True
        )
    )
    consent = Consent(activation, consenting, terms)
    first = consent.data(ActivationFormat.FIRST)
    assert first == activation_data(activation, given["keyVersion"])
    return {
        "inspections": ",".join(bases),
        "info": consent.data(ActivationFormat.WHOLE).hex(),
    }


def issue_info(given: Given) -> str:
    """What the unlock key of a new key pair is sealed to."""
    return (
        IssueBinding(
            TaskId(given["task"]),
            PersonId(given["person"]),
            CredentialId(given["credential"]),
            KeyAlgorithm(given["algorithm"]),
            VouchedBy(given["vouchedBy"]),
        )
        .info()
        .hex()
    )


def csr_info(given: Given) -> str:
    """What the unlock key of a certificate signing request is sealed to."""
    return (
        CsrBinding(
            TaskId(given["task"]),
            PersonId(given["person"]),
            CredentialId(given["credential"]),
            given["keyVersion"],
        )
        .info()
        .hex()
    )


def sealed_unlock_key(given: Given) -> str:
    """An unlock key, sealed to a host by HPKE."""
    info, unlock = raw(given["info"]), raw(given["unlock"])
    return seal_to(raw(given["public"]), unlock, info).hex()


def opened_unlock_key(given: Given, sealed: str) -> str:
    """The unlock key again."""
    return open_seal(raw(given["private"]), raw(sealed), raw(given["info"])).hex()


def outer_aad(given: Given) -> bytes:
    """What `outer` is bound to."""
    return credential_aad(
        given["installation"],
        PersonId(given["person"]),
        CredentialId(given["credential"]),
        given["keyVersion"],
        raw(given["spki"]),
    )


def outer(given: Given) -> dict[str, str]:
    """A wrapped private key, locked by its owner's password."""
    aad = outer_aad(given)
    locked = lock_outer(raw(given["unlock"]), raw(given["inner"]), aad)
    return {"aad": aad.decode(), "outer": locked.hex()}


def outer_opened(given: Given, written: Mapping[str, str]) -> str:
    """What was locked."""
    opened = open_outer(raw(given["unlock"]), raw(written["outer"]), outer_aad(given))
    return opened.hex()


def statement(given: Given) -> str:
    """What the HSM's worker identity signs of an activation key."""
    return key_statement(
        given["installation"], given["host"], given["epoch"], raw(given["public"])
    ).hex()


def host_statement(given: Given) -> dict[str, str]:
    """What the worker identity and the host sign of an activation key of a minute."""
    statement = HostStatement(
        installation=given["installation"],
        host=given["host"],
        host_key=raw(given["hostKey"]),
        epoch=given["epoch"],
        public=raw(given["public"]),
        identity=given["identity"],
    )
    return {
        "identity": statement.by_identity().hex(),
        "host": statement.by_host().hex(),
    }


def signing_hosts(given: Given) -> dict[str, object]:
    """The file of admitted hosts, and how their keys are told apart by people."""
    hosts = {name: raw(key) for name, key in given["hosts"].items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "signing-hosts")
        for name, key in hosts.items():
            admit(path, name, key)
        text = path.read_text("utf-8") if hosts else ""
    return {
        "file": text,
        "fingerprints": {name: fingerprint(key) for name, key in hosts.items()},
    }


def signing_hosts_read(given: Given, written: Mapping[str, Any]) -> dict[str, str]:
    """The hosts of a file."""
    del given
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "signing-hosts")
        path.write_text(written["file"], "utf-8")
        return {name: key.hex() for name, key in listed(path).items()}


def epoch(given: Given) -> dict[str, object]:
    """The epoch of a time, and when it begins."""
    kind = ActivationFormat(given.get("format", 1))
    number = kind.epoch_at(at(given["at"]))
    return {"epoch": number, "begins": epoch_start(number).isoformat()}


# -- commands ------------------------------------------------------------------


def command_fingerprint(given: Given) -> dict[str, object]:
    """How a repeated firmar is known; and its parameters as they stand stored."""
    params = SignParameters.from_wire(given["parameters"])
    return {
        "stored": params.to_wire(),
        "sha256": params.sha256(given["request"]),
    }


def batch_fingerprint(given: Given) -> dict[str, str]:
    """How a repeated firmar/lote is known, and what it is called."""
    batch = SignBatch(
        tuple(RequestId(each) for each in given["requests"]),
        GivenParameters.all_of(SignParameters.from_wire(given["parameters"])),
        b"",
    )
    own = {RequestId(int(k)): v for k, v in given.get("fingerprints", {}).items()}
    named = batch.id_for(PersonId(given["person"]), own)
    return {"sha256": batch.sha256(own), "id": named}


def signature_preset(given: Given) -> dict[str, Any]:
    """The look and place that a request brings, as they stand stored."""
    return SignaturePreset.from_json(given).to_json()


def stamp_details(given: Given) -> dict[str, Any]:
    """What a stamp shows besides, as it stands stored."""
    return StampDetails.from_json(dict(given)).to_json()


def frame_init(given: Given) -> str:
    """How a repeated `svc.init` of a host is known."""
    return frame_wire.init_order({"page": "p", "init": given["init"]}).sha256


# -- the audit -----------------------------------------------------------------


def _event(given: Mapping[str, Any]) -> AuditEvent:
    return AuditEvent(
        EventKind(given["event"]),
        given["actor"],
        given["integrator"],
        given["request"],
        given["activation"],
        given["attempt"],
        given["detail"],
    )


def audit_chain(given: Given) -> list[dict[str, object]]:
    """Rows of one writer: each one's place and hash."""
    rows: list[AuditRow] = []
    for n, event in enumerate(given["events"], start=1):
        prev = rows[-1].hash if rows else "0" * 64
        row = chain(given["writer"], n, prev, at(event["at"]), _event(event))
        rows.append(row)
    return [{"n": row.n, "prev": row.prev, "hash": row.hash} for row in rows]


def audit_broken_at(given: Given, written: list[Mapping[str, Any]]) -> int | None:
    """The first row that does not hang on the one before."""
    return first_break(
        [
            AuditRow(
                given["writer"],
                row["n"],
                row["prev"],
                row["hash"],
                at(event["at"]),
                _event(event),
            )
            for event, row in zip(given["events"], written, strict=True)
        ]
    )


# -- secrets at rest -----------------------------------------------------------


def ring_of(given: Mapping[str, Any]) -> KeyRing:
    """Versions of a key."""
    keys = {int(version): raw(key) for version, key in given["keys"].items()}
    return KeyRing(given["present"], keys)


def sealed_value(given: Given) -> str:
    """A value in a sealed column."""
    box = SecretBox(ring_of(given["ring"]))
    return box.seal(raw(given["secret"]), **given["place"]).hex()


def opened_value(given: Given, sealed: str) -> str:
    """The value again."""
    box = SecretBox(ring_of(given["ring"]))
    return box.open(raw(sealed), **given["place"]).hex()


def lookup_indexes(given: Given) -> dict[str, Any]:
    """What stands in the place of values that are looked up."""
    key = LookupKey(ring_of(given["ring"]))
    environment = Environment(given["environment"])
    email, cuil, token = given["email"], given["cuil"], given["token"]
    return {
        "email": login.email_indexes(key, email),
        "login-account": login.account_indexes(key, cuil, email),
        "known-address": known_indexes(key, given["person"], given["address"]),
        "console-account": console_login_attempts.account_indexes(
            key, given["administrator"]
        ),
        "console-session": console_login.session_indexes(key, environment, token),
        "enrolment": invitations.code_indexes(key, token),
        "api-key": key.indexes(key_purpose(environment), given["apiKey"]),
        "plain": key.indexes(given["purpose"], given["value"]),
        "lock": _lock_key(key.index(given["purpose"], given["value"])),
    }


def key_file(given: Given) -> str:
    """A file of a secret key's versions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "key")
        path.touch(0o600)
        key_files.write_key_ring(path, ring_of(given))
        return path.read_text("ascii")


def read_key_file(_given: Given, text: str) -> dict[str, Any]:
    """What stands in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "key")
        path.touch(0o600)
        path.write_text(text, "ascii")
        ring = key_files.read_key_ring(path)
    keys = {str(version): key.hex() for version, key in sorted(ring.keys.items())}
    return {"present": ring.present, "next": ring.next, "keys": keys}


def signing_secret(given: Given) -> dict[str, Any]:
    """What is kept of a signing password, and the unlock keys that follow from it."""
    passwords = SigningPasswords(ring_of(given["pepper"]), HashSlots(1))
    credentials = [CredentialId(each) for each in given["credentials"]]
    made = run_apart(
        passwords.derive_new(normalize(given["password"]), credentials, first=True)
    )
    return {
        "salt": made.secret.salt.hex(),
        "argon2": made.secret.argon2,
        "pepper_version": made.secret.pepper_version,
        "verifier_sha256": made.secret.verifier_sha256,
        "unlock": {name: key.hex() for name, key in made.unlock.items()},
    }


def checked_secret(given: Given, written: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the password is right, and the unlock keys."""
    passwords = SigningPasswords(ring_of(given["pepper"]), HashSlots(1))
    kept = SigningSecret(
        raw(written["salt"]),
        written["argon2"],
        written["pepper_version"],
        written["verifier_sha256"],
    )
    credentials = [CredentialId(each) for each in given["credentials"]]
    check = run_apart(passwords.check(normalize(given["password"]), kept, credentials))
    unlock = {name: key.hex() for name, key in check.unlock.items()}
    return {"right": check.right, "unlock": unlock}


def wrong_password_mark(given: Given) -> str:
    """What the row of a wrong try has."""
    root = PasswordRoot(raw(given["pepper"]), raw(given["salt"]), given["argon2"])
    typed, owner = normalize(given["password"]), given["person"].encode()
    return root.derive_marked(typed, (), owner)[2]


def count_clearing(given: Given) -> str:
    """Proof of a cleared count."""
    clearings = CountClearings(LookupKey(ring_of(given["ring"])))
    person, salt = PersonId(given["person"]), raw(given["salt"])
    return clearings.prove(person, salt, at(given["at"]))


def count_cleared(given: Given, proof: str) -> dict[str, Any] | None:
    """What it proves."""
    clearings = CountClearings(LookupKey(ring_of(given["ring"])))
    found = clearings.proven(PersonId(given["person"]), proof)
    if found is None:
        return None
    ours = found.is_of(raw(given["salt"]))
    return {"at": found.at.isoformat(), "salt": ours, "other": found.is_of(b"")}


def login_hash(given: Given) -> str:
    """What is kept of a login password, or of a revocation PIN."""
    return run_apart(Passwords(HashSlots(1)).hash(given["password"].encode()))


def login_parameters(given: Given) -> str:
    """The cost that a hash is made at: all of it but salt and value."""
    return login_hash(given).rpartition("$")[0].rpartition("$")[0]


def login_right(given: Given, phc: str) -> bool:
    """Whether a password is that one."""
    password = plain(given["typed"]) if "typed" in given else b""
    password = password or given["password"].encode()
    return run_apart(Passwords(HashSlots(1)).verify(phc, password))


def totp_seed(given: Given) -> dict[str, str]:
    """The seed of one opening of the form of an enrolment, and what an app reads."""
    seed = totp.seed_of(given["secret"], given["opening"])
    uri = totp.provisioning_uri(seed, given["name"], given["issuer"])
    return {"seed": seed, "uri": uri}


def api_key(given: Given) -> dict[str, str]:
    """A new API key."""
    made = new_api_key(Environment(given["environment"]))
    body = made.text[:-6]
    return {"text": made.text, "hint": made.hint, "checksum": checksum(body)}


def api_key_read(given: Given, written: Mapping[str, str]) -> str | None:
    """The id of an API key."""
    read = read_api_key(written["text"], Environment(given["environment"]))
    return None if read is None else read.id


# -- documents -----------------------------------------------------------------


def _document(given: Given) -> tuple[bytes, IntegratorId, str]:
    pdf = raw(given["content"]) * given.get("times", 1)
    return pdf, IntegratorId(given["integrator"]), hashlib.sha256(pdf).hexdigest()


def document_file(given: Given) -> dict[str, Any]:
    """An encrypted document, and where it lies; of a long one its hash."""
    pdf, integrator, sha256 = _document(given)
    bound = associated(integrator, sha256)
    sealed = b"".join(NewDocument(integrator, [pdf], raw(given["key"])).sealed())
    name = name_of(integrator, sha256)
    assert named_document(name) == (integrator, sha256)
    told: dict[str, Any] = {"name": name, "bound": bound.decode()}
    if len(sealed) > 4096:
        return {
            **told,
            "bytes": len(sealed),
            "hash": hashlib.sha256(sealed).hexdigest(),
        }
    return {**told, "file": sealed.hex()}


def document_opened(given: Given, written: Mapping[str, Any]) -> str:
    """SHA-256 of what is in it."""
    pdf, integrator, sha256 = _document(given)
    bound = associated(integrator, sha256)
    key = raw(given["key"])
    if "file" not in written:
        return hashlib.sha256(pdf).hexdigest()
    sealed = raw(written["file"])
    reader = SealedReader(io.BytesIO(sealed), len(sealed), key, bound)
    return hashlib.sha256(b"".join(reader)).hexdigest()


def download_name(given: Given) -> str:
    """How a signed document is called."""
    return signed_name(given["name"])


_INSPECTOR_VERSION = 6
"""Version of the tree that wrote the vectors; a later one keeps the form."""


def inspection_of(given: Mapping[str, Any]) -> Inspection:
    """An inspection, as the cases have it."""
    return Inspection(
        size_bytes=given["size"],
        pages=tuple(PageBox(*box) for box in given["pages"]),
        findings=tuple(FindingKind(each) for each in given["findings"]),
        signatures=given["signatures"],
        docmdp=given["docmdp"],
        marks=tuple(SignatureMark(page, tuple(rect)) for page, rect in given["marks"]),
        signing=signing_facts_from_json(given["signing"]),
        inspector_version=_INSPECTOR_VERSION,
    )


def written_json(value: object) -> str:
    """A JSON value as it stands in a column."""
    return str(cast("Any", JsonText().bind_processor(cast("Any", None)))(value))


def read_json(written: str) -> Any:
    """What is read of it."""
    return cast("Any", JsonText().result_processor(cast("Any", None), None))(written)


def stored_inspection(given: Given) -> str:
    """An inspection as it stands in its column."""
    value = inspection_to_json(inspection_of(given))
    return str(written_json(value))


def read_inspection(given: Given, written: str) -> bool:
    """Whether the same inspection is read back."""
    value = cast("Any", read_json(written))
    return inspection_from_json(value) == inspection_of(given)

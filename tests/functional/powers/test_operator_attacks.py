"""Power: whoever may run `rubrica` commands tries to sign in the name of others.

A command is no password: none of them opens a key that somebody has. What commands do
allow is a new key, a root of the operator's own and a pin on a front, and what tells of
each of these.

Source: docs/keys.md "A forgotten password", "Which hosts a front believes".
"""

import io
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyotp
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigSeedSubFilter
from sqlalchemy import select

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.ids import IntegratorId
from appliance.domain.signing.activation import ActivationFormat
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, normalize
from appliance.people.person_store import PersonStore
from appliance.secrets.host_key import key_text
from appliance.secrets.key_files import read_key_ring
from tests.functional.powers.test_k01_thief_with_the_pin import (
    forge,
    hosts_sealed_to,
    plant,
)
from tests.functional.powers.test_k13_one_use import consented
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign
from tests.support.documents import pdfs
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.faults.fault_injection import harmed, held, until
from tests.support.faults.theft import read_rows
from tests.support.patience import CALL_S
from tests.support.pki.outside_ca import OutsideCa, bundle, der, ec_key, spki_of
from tests.support.processes.event_loops import run_apart

# PROD refuses SQLite, plain HTTP and whatever root would make; they do here.
_PROGRAM: Final = """\
import os, sys
from appliance.settings import root
root.contradictions = lambda settings: []
os.geteuid = lambda: 1
from appliance.cli import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def appliance() -> Iterator[Appliance]:
    """An appliance of its own, with one signing worker; its calls do not wait."""
    with harmed(signing="workers = 1\nwait_s = 0.1") as made:
        yield made


@pytest.fixture
def victim(appliance: Appliance) -> TestPerson:
    """Somebody with a key."""
    return appliance.new_person("Ana Ruiz")


class Commands:
    """The command line in one environment, over the same record.

    Args:
        appliance: whose record it is.
        is_prod: in PROD; else as the appliance is, a trial.
    """

    def __init__(self, appliance: Appliance, *, is_prod: bool) -> None:
        self._appliance = appliance
        self._file = appliance.settings_file
        if is_prod:
            text = self._file.read_text("utf-8")
            self._file = appliance.folder / "prod.toml"
            self._file.write_text(
                text.replace("trial = true", 'environment = "PROD"'), "utf-8"
            )
        self._is_prod = is_prod

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command."""
        if not self._is_prod:
            return self._appliance.rubrica(*words)
        return subprocess.run(
            [sys.executable, "-c", _PROGRAM, "--settings", str(self._file), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=CALL_S,
        )

    def administrator(self, folder: Path) -> tuple[str, str, pyotp.TOTP]:
        """Make an administrator of the operator's own: name, password and codes."""
        name, password = f"eva.{secrets.token_hex(3)}", secrets.token_urlsafe(12)
        file = folder / name
        file.write_text(f"{password}\n")
        done = self.run("console-user", "create", name, "--password-file", str(file))
        assert done.returncode == 0, done.stderr
        (uri,) = [x for x in done.stdout.splitlines() if x.startswith("otpauth://")]
        totp = pyotp.parse_uri(uri)
        assert isinstance(totp, pyotp.TOTP)
        return name, password, totp


def audited(appliance: Appliance, kind: EventKind) -> list[dict[str, Any]]:
    """Details of all events of a kind whose actor is the operator, oldest first."""
    rows = [
        row
        for row in read_rows(appliance, tables.audit_event)
        if (row.event, row.actor) == (kind.value, "operator")
    ]
    return [row.detail for row in sorted(rows, key=lambda row: row.at)]


# -- certify -------------------------------------------------------------------------


def test_production_takes_a_witness(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """Neither none nor one whose code is wrong: the key stays its owner's."""
    commands = Commands(appliance, is_prod=True)
    name, password, _ = commands.administrator(tmp_path)
    file = tmp_path / "witness"
    file.write_text(f"{password}\n000000\n")
    asked = ("person", "issue", "--cuil", victim.cuil, "--forgotten")

    alone = commands.run(*asked)
    wrong = commands.run(*asked, "--witness", name, "--witness-file", str(file))
    nobody = commands.run(*asked, "--witness", "nadie", "--witness-file", str(file))

    assert "needs --witness" in alone.stderr
    assert "LOGIN_FAILED" in wrong.stderr
    assert "LOGIN_FAILED" in nobody.stderr
    with appliance.client(victim) as client:
        request = appliance.new_request(victim, pdfs.one_page())
        assert sign(client, victim, request).status_code in {200, 202}


@pytest.mark.parametrize("is_prod", [False, True], ids=["trial", "prod"])
def test_new_key_for_somebody_is_told(
    appliance: Appliance, victim: TestPerson, tmp_path: Path, is_prod: bool
) -> None:
    """In PROD by a witness that the operator made: rows and a notice tell of both."""
    commands = Commands(appliance, is_prod=is_prod)
    asked = ["person", "issue", "--cuil", victim.cuil, "--forgotten"]
    name = None
    if is_prod:
        name, password, totp = commands.administrator(tmp_path)
        file = tmp_path / "witness"
        file.write_text(f"{password}\n{totp.now()}\n")
        asked += ["--witness", name, "--witness-file", str(file)]

    done = commands.run(*asked)

    assert done.returncode == 0, done.stderr
    told = audited(appliance, EventKind.PERSON_REISSUED)[-1]
    assert told["person"] == victim.id
    if name is not None:
        users = read_rows(appliance, tables.console_user)
        (witness,) = [row.id for row in users if row.name == name]
        assert told["witness"] == f"console:{witness}"
        assert witness in str(audited(appliance, EventKind.CONSOLE_USER_CREATED)[-1])
    notices = read_rows(appliance, tables.security_notice)
    assert "revoked" in {row.kind for row in notices if row.person == victim.id}


@pytest.mark.parametrize("is_prod", [False, True], ids=["trial", "prod"])
def test_person_whose_passwords_the_operator_chose_is_told(
    appliance: Appliance, tmp_path: Path, is_prod: bool
) -> None:
    """Somebody who has no key yet: no witness is asked for, and the audit tells."""
    commands = Commands(appliance, is_prod=is_prod)
    file, cuil = tmp_path / "both", appliance.next_cuil()
    file.write_text("una clave de ingreso\nuna clave de firma\n")
    named = ("--name", "Nadie Inscripta", "--email", f"{cuil}@demo.example")

    done = commands.run(
        "person", "create", "--cuil", cuil, *named, "--passwords-file", str(file)
    )

    assert done.returncode == 0, done.stderr
    (row,) = [row for row in read_rows(appliance, tables.person) if row.cuil == cuil]
    made = audited(appliance, EventKind.PERSON_CREATED)[-1]
    assert made["person"] == row.id
    again = commands.run(
        "person", "create", "--cuil", cuil, *named, "--passwords-file", str(file)
    )
    assert "ALREADY_EXISTS" in again.stderr


# -- key, sign -----------------------------------------------------------------------


def test_password_that_the_operator_types_makes_no_key_for_who_has_one(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """Neither beside the key that there is nor in its place."""
    commands = Commands(appliance, is_prod=True)
    file = tmp_path / "typed"
    file.write_text("una clave nueva de firma\n")
    asked = ("person", "issue", "--cuil", victim.cuil, "--password-file", str(file))

    assert "ALREADY_EXISTS" in commands.run(*asked).stderr
    assert "chooses it behind the link" in commands.run(*asked, "--forgotten").stderr
    assert appliance.credential(victim).person == victim.id


def test_production_signs_no_sample_and_tells_no_code(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """What a trial does for demo people."""
    commands = Commands(appliance, is_prod=True)
    out = str(tmp_path / "signed.pdf")
    for words in (
        ("sample",),
        ("demo", "sign", "--out", out),
        ("demo", "request"),
        ("demo", "otp", victim.cuil),
        ("demo", "setup"),
    ):
        done = commands.run(*words)
        assert done.returncode != 0, words
        assert done.stdout == ""


@pytest.mark.parametrize("whose", ["another key", "another person's certificate"])
def test_chain_of_another_key_is_not_imported(
    appliance: Appliance, victim: TestPerson, tmp_path: Path, whose: str
) -> None:
    """By a root that the operator has the record trust: their own."""
    commands = Commands(appliance, is_prod=True)
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    trusted(commands, outside, tmp_path)
    key = appliance.credential(victim)
    made = (
        outside.certify(spki_of(ec_key()), victim.cuil)
        if whose == "another key"
        else outside.certify(key.spki, appliance.next_cuil())
    )

    done = imported(commands, key.id, bundle(made, outside.issuing), tmp_path)

    assert done.returncode == 1, done.stdout
    assert appliance.credential(victim).certificate == key.certificate


def test_certificate_of_the_operators_own_ca_signs_nothing(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """Over the victim's own key: signing hosts believe the roots that they pin."""
    commands = Commands(appliance, is_prod=True)
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    trusted(commands, outside, tmp_path)
    key = appliance.credential(victim)
    made = bundle(outside.certify(key.spki, victim.cuil), outside.issuing)
    done = imported(commands, key.id, made, tmp_path)
    assert done.returncode == 0, done.stderr

    request = appliance.new_request(victim, pdfs.one_page())
    with appliance.client(victim) as client:
        assert sign(client, victim, request).status_code in {202, 409}
    until(lambda: state(appliance, request) == RequestState.PENDING.value)

    told = appliance.rubrica("request", "audit", str(request)).stdout
    assert "certificate-issuer" in told
    assert EventKind.KEY_INTENDED.value not in told
    assert audited(appliance, EventKind.ANCHOR_ADDED)
    assert audited(appliance, EventKind.CERTIFICATE_IMPORTED)


def trusted(commands: Commands, outside: OutsideCa, folder: Path) -> None:
    """Have the record trust a root."""
    file = folder / "root.pem"
    file.write_bytes(bundle(outside.root))
    sha256 = outside.root.fingerprint(hashes.SHA256()).hex()
    done = commands.run("trust", "add", str(file), "--fingerprint", sha256)
    assert done.returncode == 0, done.stderr


def imported(
    commands: Commands, credential: str, chain: bytes, folder: Path
) -> "subprocess.CompletedProcess[str]":
    """Import a chain for a credential."""
    file = folder / "chain.pem"
    file.write_bytes(chain)
    return commands.run("certificate", "import", credential, str(file))


def state(appliance: Appliance, request: int) -> str:
    """How a request stands."""
    rows = read_rows(appliance, tables.signature_request)
    return str(next(row.state for row in rows if row.id == request))


def test_front_seals_to_a_host_that_the_operator_admits(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The pins of a front are files of its machine: `hsm admit` changes them.

    With the PIN, which `rubrica hsm` reads, a host of the operator's own gets the
    unlock keys of the passwords that are typed from then on. No row tells of it.
    """
    commands = Commands(appliance, is_prod=False)
    thief, own = f"thief-{secrets.token_hex(3)}", Ed25519PrivateKey.generate()
    forged = forge(appliance, thief, ActivationFormat.WHOLE, own)
    plant(appliance, forged)
    before = hosts_sealed_to(appliance, victim)
    rows = operators_rows(appliance)

    public = key_text(own.public_key().public_bytes_raw())
    admitted = commands.run("hsm", "admit", thief, public)
    left = operators_rows(appliance) - rows
    try:
        after = hosts_sealed_to(appliance, victim)
    finally:
        commands.run("hsm", "admit", "--remove", thief)

    assert admitted.returncode == 0, admitted.stderr
    assert thief not in before
    assert thief in after
    assert left == 0


def operators_rows(appliance: Appliance) -> int:
    """How many rows of operators' the audit has."""
    rows = read_rows(appliance, tables.audit_event)
    return sum(row.actor == "operator" for row in rows)


# -- swap, batch ---------------------------------------------------------------------


def test_commands_meanwhile_change_nothing_of_a_consent(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """Neither its document nor its certificate, and no document is added to it."""
    commands = Commands(appliance, is_prod=True)
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    trusted(commands, outside, tmp_path)
    key = appliance.credential(victim)
    chain = bundle(outside.certify(key.spki, victim.cuil), outside.issuing)
    other = tmp_path / "otro.pdf"
    other.write_bytes(pdfs.one_page("Otro importe"))
    with held(appliance):
        kept = consented(appliance, victim)
        tried = [
            imported(commands, key.id, chain, tmp_path),
            commands.run("request", "cancel", str(kept.request)),
        ]
        added = commands.run(
            *("request", "create", str(other), "--integrator", "demo"),
            *("--person", victim.cuil),
        )
        assert added.returncode == 0, added.stderr
        items = read_rows(appliance, tables.activation_item)
    until(kept.over)

    assert [done.returncode for done in tried] == [1, 1]
    assert "BUSY" in tried[0].stderr
    assert [row.request for row in items if row.activation == kept.activation.id] == [
        kept.request
    ]
    assert kept.state == RequestState.SIGNED.value
    (use,) = kept.audited(EventKind.KEY_INTENDED)
    assert use["documentSha256"] == kept.items[0].document_sha256
    extra = int(added.stdout.split("request ")[1].split()[0])
    assert state(appliance, extra) == RequestState.PENDING.value


# -- version, page -------------------------------------------------------------------


def signed_by_operator(
    pdf: bytes, request: int, cuil: str, outside: OutsideCa
) -> bytes:
    """The document with a signature in the victim's name, by a CA of the operator's."""
    key = ec_key()
    signer = SoftwareSigner(
        key,
        der(outside.certify(spki_of(key), cuil)),
        (der(outside.issuing), der(outside.root)),
    )
    metadata = PdfSignatureMetadata(
        field_name=f"Firma-{request}",
        md_algorithm="sha256",
        subfilter=SigSeedSubFilter.PADES,
    )
    writer, out = IncrementalPdfFileWriter(io.BytesIO(pdf)), io.BytesIO()
    made = PdfSigner(metadata, signer=signer.stock())
    run_apart(made.async_sign_pdf(writer, output=out))
    return out.getvalue()


def put(appliance: Appliance, request: int, pdf: bytes) -> None:
    """Place a file where those of the request's integrator are, named by no row."""

    async def work(front: ServiceRegistry) -> None:
        table = tables.signature_request
        query = select(table.c.integrator).where(table.c.id == request)
        async with front.core.store.read() as transaction:
            integrator = (await transaction.connection.execute(query)).scalar_one()
        await front.core.documents.put(IntegratorId(integrator), pdf)

    appliance.do(work)


@pytest.mark.parametrize("is_trusted", [False, True], ids=["unknown CA", "own root"])
def test_file_of_the_operators_as_a_recovered_document(
    appliance: Appliance, victim: TestPerson, tmp_path: Path, is_trusted: bool
) -> None:
    """`documents recover` believes signatures by roots that the record trusts.

    A root of the operator's own is one once they add it. Both leave a row.
    """
    commands = Commands(appliance, is_prod=False)
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    if is_trusted:
        trusted(commands, outside, tmp_path)
    document = pdfs.one_page(secrets.token_hex(8))
    request = appliance.new_request(victim, document)
    forged = signed_by_operator(document, request, victim.cuil, outside)
    for pdf in (document + b"\n% more\n", forged):
        put(appliance, request, pdf)

    done = appliance.rubrica("documents", "recover")

    is_given = f"is the signed document of request {request}\n" in done.stdout
    assert is_given is is_trusted, done.stdout + done.stderr
    if not is_trusted:
        assert state(appliance, request) == RequestState.PENDING.value
        return
    assert audited(appliance, EventKind.ANCHOR_ADDED)
    assert audited(appliance, EventKind.REQUEST_SIGNED)[-1]["recovered"] is True
    # Its signature has no code, and so no page.
    items = read_rows(appliance, tables.activation_item)
    assert request not in {row.request for row in items}
    # No check of the audit tells: a document that was recovered is explained.
    assert appliance.rubrica("audit", "verify").returncode == 0


# -- guess ---------------------------------------------------------------------------


def test_pepper_and_rows_try_passwords_without_a_lock(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Files and rows that commands read suffice; no attempt is counted."""
    pepper = read_key_ring(appliance.settings.secrets.pepper_file)
    credential = appliance.credential(victim)

    async def tried(front: ServiceRegistry, guesses: Sequence[str]) -> list[bool]:
        async with front.core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(victim.id)
        assert secret is not None
        passwords = SigningPasswords(pepper, HashSlots())
        return [
            (await passwords.check(normalize(guess), secret, [credential.id])).right
            for guess in guesses
        ]

    wrong = [f"adivinanza {number}" for number in range(12)]
    guesses = [*wrong, victim.signing_password]
    found = appliance.do(lambda front: tried(front, guesses))

    assert found == [False] * len(wrong) + [True]
    slots = read_rows(appliance, tables.attempt_slot)
    assert not [row for row in slots if row.person == victim.id]
    with appliance.client(victim) as client:
        request = appliance.new_request(victim, pdfs.one_page())
        assert sign(client, victim, request).status_code in {200, 202}


def test_wrong_passwords_by_command_are_counted_as_any(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """A command is a front: whoever guesses by `person issue` locks the person."""
    commands = Commands(appliance, is_prod=True)
    key = appliance.credential(victim)
    (made,) = [
        row
        for row in read_rows(appliance, tables.certificate)
        if row.credential == key.id
    ]
    gone = commands.run("certificate", "revoke", "--reason", "superseded", made.serial)
    assert gone.returncode == 0, gone.stderr
    file = tmp_path / "guess"
    asked = ("person", "issue", "--cuil", victim.cuil, "--password-file", str(file))

    said = []
    for number in range(11):
        file.write_text(f"adivinanza {number}\n")
        said.append(commands.run(*asked).stderr)

    assert all("SIGN_PASSWORD_WRONG" in each for each in said[:9])
    assert "SIGN_LOCKED" in said[10]
    file.write_text(victim.signing_password)
    assert "SIGN_LOCKED" in commands.run(*asked).stderr

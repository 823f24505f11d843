"""Power: who reads the database, and has the data key and the lookup key besides.

The data key opens seeds of one-time codes, addresses, links on their way and keys of
tokens. So this reader passes for any person where no password is asked for; for a key
it is asked for, and neither key helps to guess it.

Source: docs/keys.md "Where the pieces are", "What is not claimed".
"""

import base64
import hashlib
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pyotp
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jws
from joserfc.jwk import ECKey

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain import strict_json
from appliance.domain.ids import new_id
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.mail.mails import MailKind
from appliance.domain.people.identity import SigningSecret
from appliance.domain.vocab import EventKind, SecretName, VouchedBy
from appliance.identity.access_tokens import ALGORITHM, TYPE
from appliance.keys.credential_store import credential_of
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, normalize
from appliance.record.secret_version_store import SEALED
from appliance.secrets.key_files import KeyFile, read_key_ring
from appliance.secrets.sealed_box import SecretBox
from tests.functional.powers.test_k12_document_last_fetched import two_of_a_turn
from tests.functional.powers.test_signature_page import SIGNED, code_of, look
from tests.functional.powers.writer_scene import (
    chains_are_whole,
    rows_of,
    state_of,
    unexplained,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import LOTE, TestBackend, sign
from tests.support.appliance.http_calls import problem, sign_at_last
from tests.support.documents import pdfs
from tests.support.faces.enrolment_page import opening_of, seed_of
from tests.support.faults.fault_injection import until
from tests.support.faults.theft import read_tables, traces
from tests.support.patience import CALL_S
from tests.support.processes.event_loops import run_apart
from tests.support.processes.scratch import free_port, short_folder

_LIMIT: Final = 10
"""Wrong passwords that lock, unless set otherwise."""


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def appliance(request: pytest.FixtureRequest) -> Appliance:
    """An appliance on each database."""
    found: Appliance = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def account(appliance: Appliance) -> TestPerson:
    """The reader's own account: it shows what tokens look like."""
    return appliance.new_person("Ladrona")


@pytest.fixture
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who can sign."""
    return appliance.new_person("Ana Ruiz")


@dataclass(frozen=True, slots=True)
class Reader:
    """All rows, and what the data key opens of them."""

    appliance: Appliance
    rows: dict[str, list[Any]]
    opened: dict[tuple[str, str], bytes]
    """By column and row."""

    @classmethod
    def of(cls, appliance: Appliance) -> "Reader":
        """Read a database, with both keys in hand."""
        settings = appliance.settings
        box = SecretBox(KeyFile(settings.secrets.data_key_file))
        rows = run_apart(read_tables(settings))
        opened = {}
        for column, stored in SEALED.items():
            if column.secret is not SecretName.DATA:
                continue
            (key,) = stored.table.primary_key
            for row in rows[column.table]:
                name, sealed = getattr(row, key.name), getattr(row, column.column)
                if sealed:
                    place = {"table": column.table, "column": column.column}
                    secret = box.open(sealed, row=name, **place)
                    opened[f"{column.table}.{column.column}", name] = secret
        return cls(appliance, rows, opened)

    def column(self, name: str) -> dict[str, bytes]:
        """What was opened of a column, by row."""
        return {
            row: one for (column, row), one in self.opened.items() if column == name
        }

    def token(self, person: TestPerson, account: TestPerson) -> str:
        """An access token of a person, who never signed in, like that of an account."""
        (kid, pem), *_ = self.column("jwt_key.private_sealed").items()
        own = self.appliance.bearer(account)
        claims = strict_json.parse_object(_decoded(own.split(".")[1]))
        claims |= {"sub": person.id, "jti": new_id()}
        header = {"alg": ALGORITHM, "typ": TYPE, "kid": kid}
        payload = json.dumps(claims).encode()
        key = ECKey.import_key(pem)
        return jws.serialize_compact(header, payload, key, algorithms=[ALGORITHM])

    def client(self, person: TestPerson, account: TestPerson) -> httpx.Client:
        """A client that passes for a person, by a token like that of an account."""
        return httpx.Client(
            base_url=self.appliance.base_url,
            headers={"Authorization": f"Bearer {self.token(person, account)}"},
            timeout=CALL_S,
        )


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_no_value_that_is_read_opens_a_key(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Neither what both keys open, nor the keys themselves."""
    appliance.bearer(victim)
    reader = Reader.of(appliance)
    files = appliance.settings.secrets
    rings = [read_key_ring(f) for f in (files.data_key_file, files.lookup_key_file)]
    values = {one for ring in rings for one in ring.keys.values()}
    values |= set(reader.opened.values())
    assert {column for column, _ in reader.opened} >= {
        "jwt_key.private_sealed",
        "login_secret.totp_sealed",
        "person.email_sealed",
    }
    assert traces({victim.signing_password}, b"\n".join(values)) == []
    installation = appliance.settings.installation
    for row in reader.rows["credential"]:
        key = credential_of(row)
        info = b"rubrica/unlock/1" + key.id.encode()
        aad, nonce, rest = key.aad(installation), key.outer[:12], key.outer[12:]
        for value in values:
            derived = HKDF(SHA256(), 32, salt=None, info=info).derive(value)
            for candidate in (value, hashlib.sha256(value).digest(), derived):
                if len(candidate) == 32:
                    with suppress(InvalidTag):
                        AESGCM(candidate).decrypt(nonce, rest, aad)
                        pytest.fail(f"a value opens credential {key.id}")


@pytest.mark.parametrize("known", ["data_key_file", "lookup_key_file", "pepper_file"])
def test_guess_cannot_be_tried_without_the_pepper(
    appliance: Appliance, victim: TestPerson, known: str
) -> None:
    """The right password fits the verifier that was read with the pepper alone."""
    (row,) = rows_of(appliance, tables.signing_secret, person=victim.id)
    secret = SigningSecret(
        row.salt, row.argon2, row.pepper_version, row.verifier_sha256
    )
    ring = read_key_ring(getattr(appliance.settings.secrets, known))
    passwords = SigningPasswords(KeyRing.of(ring.keys[ring.present]), HashSlots())

    found = run_apart(passwords.check(normalize(victim.signing_password), secret))

    fits = found.verifier_sha256 == secret.verifier_sha256
    assert fits is (known == "pepper_file")


def test_forged_token_uses_no_key(
    appliance: Appliance, victim: TestPerson, account: TestPerson
) -> None:
    """It reads what the person may read; whatever takes a key takes the password.

    One document, a batch, a signed one again, a signing request, another password: ten
    wrong ones lock, and the audit has them all.
    """
    signed, pending, other = (
        appliance.new_request(victim, pdfs.one_page(text=text), f"{text}.pdf")
        for text in ("uno", "dos", "tres")
    )
    with appliance.client(victim) as client:
        answer = sign_at_last(client, victim, signed)
    assert answer.status_code == httpx.codes.OK
    page = code_of(appliance, signed)
    before = Reader.of(appliance)
    (held,) = [r for r in before.rows["credential"] if r.person == victim.id]
    codes = []
    with before.client(victim, account) as thief:
        assert {each["solicitudId"] for each in thief.get("/solicitudes").json()} >= {
            pending,
            other,
        }
        calls: dict[str, dict[str, object]] = {
            "/solicitudes/firmar": {"solicitudId": pending},
            LOTE: {"solicitudIds": [pending, other]},
            f"/credenciales/{held.id}/csr": {},
            "/credenciales/clave": {"nueva": secrets.token_urlsafe(9)},
        }
        for number in range(_LIMIT // 2):
            for path, body in calls.items():
                wrong = f"adivinanza {number} {path}"
                answer = thief.post(path, json={**body, "password": wrong})
                codes.append(answer.json()["code"])
        again = {"solicitudId": signed, "password": "adivinanza"}
        thief.post("/solicitudes/firmar", json=again)
    after = Reader.of(appliance)

    assert codes == ["SIGN_PASSWORD_WRONG"] * (_LIMIT - 1) + ["SIGN_LOCKED"] * (
        _LIMIT + 1
    )
    for table in ("activation", "credential", "hsm_task", "signed_document", "intent"):
        assert after.rows[table] == before.rows[table], table
    assert {state_of(appliance, each) for each in (pending, other)} == {"pendiente"}
    assert SIGNED in look(appliance, page)
    locked = rows_of(appliance, tables.audit_event, event=EventKind.SIGN_LOCKED.value)
    assert f"person:{victim.id}" in {row.actor for row in locked}
    assert chains_are_whole(appliance)
    assert unexplained(appliance, person=victim.id) == set()


def test_link_that_waits_to_be_sent_enrols_and_is_told_of() -> None:
    """An invitation that is read before it is sent; mails tell its person of it.

    That is a new key in the person's name. Nothing that they had is used.
    """
    mail = f'host = "127.0.0.1"\nport = {free_port()}\ntls = "none"\n'
    mail += 'from_address = "firma@demo.example"'
    with (
        short_folder() as folder,
        Appliance.made(folder, more=f"[mail]\n{mail}") as appliance,
    ):

        async def invite(front: ServiceRegistry) -> str:
            made = await front.invitations.invite(
                "operator",
                appliance.next_cuil(),
                "Eva Ríos",
                "eva@demo.example",
                VouchedBy.DEMO,
                by_mail=True,
            )
            return made.person

        person = appliance.do(invite)
        (link,) = Reader.of(appliance).column("mail_message.link_sealed").values()
        enrol(link.decode())
        until(lambda: bool(rows_of(appliance, tables.credential, person=person)))

        notices = rows_of(appliance, tables.security_notice, person=person)
        assert {row.kind for row in notices} >= {
            MailKind.ENROLLED.value,
            MailKind.CERTIFIED.value,
        }
        (told,) = rows_of(
            appliance, tables.audit_event, event=EventKind.PERSON_ENROLLED.value
        )
        assert told.detail["person"] == person


def enrol(url: str) -> None:
    """Choose secrets behind a link, as its person would."""
    page = httpx.get(url, timeout=CALL_S).text
    login, signing = secrets.token_urlsafe(9), secrets.token_urlsafe(9)
    done = httpx.post(
        url,
        data={
            "login_password": login,
            "login_password_again": login,
            "signing_password": signing,
            "signing_password_again": signing,
            "totp_code": pyotp.TOTP(seed_of(page)).now(),
            "opening": opening_of(page),
        },
        timeout=CALL_S,
    )
    assert done.status_code == httpx.codes.OK, done.text


@pytest.mark.parametrize("names_document", [False, True])
def test_fetching_in_somebodys_name_counts_as_theirs(
    appliance: Appliance,
    backend: TestBackend,
    people: list[TestPerson],
    account: TestPerson,
    names_document: bool,
) -> None:
    """Somebody else signed meanwhile, and a forged token fetched the later version.

    The victim then signs that version, unless their call names the document. The audit
    has the fetching, in the victim's name.
    """
    victim, other = people
    _, request, theirs = two_of_a_turn(backend, people)
    with appliance.client(victim) as client:
        seen = client.get(f"/solicitudes/{request}/original")
        sign(appliance, other, theirs)
        with Reader.of(appliance).client(victim, account) as thief:
            later = thief.get(f"/solicitudes/{request}/original")
        assert later.headers["ETag"] != seen.headers["ETag"]
        answer = client.post(
            "/solicitudes/firmar",
            json={"solicitudId": request, "password": victim.signing_password},
            headers={"If-Match": seen.headers["ETag"]} if names_document else {},
        )

    if names_document:
        problem(answer, 412, "DOCUMENT_CHANGED")
    else:
        assert answer.status_code == httpx.codes.OK, answer.text
    viewed = rows_of(
        appliance,
        tables.audit_event,
        event=EventKind.REQUEST_VIEWED.value,
        request=request,
    )
    assert {row.actor for row in viewed} == {f"person:{victim.id}"}

"""Nobody but its owner can use a key: through the whole appliance.

Source: design §4; reliability F16.
"""

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.keys.hsm_keys import KeyMode
from appliance.domain.vocab import TaskState
from appliance.people.person_store import PersonStore
from tests.support.appliance.administrators import new_administrator
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig
from tests.support.faults.fault_injection import (
    harmed,
    held,
    order_crash,
    restarted,
    until,
)
from tests.support.patience import CALL_S
from worker.failpoints import CERTIFIED, ISSUED, KEY_MADE, SAMPLED


@pytest.fixture(scope="module")
def appliance_with_keys() -> Iterator[Appliance]:
    """On SQLite, with crash points, whose rows a test may alter."""
    with harmed(signing="workers = 2") as appliance:
        yield appliance


@pytest.fixture(scope="module")
def owner(appliance_with_keys: Appliance) -> TestPerson:
    """Somebody with a wrapped RSA key."""
    return appliance_with_keys.new_person()


def signed(appliance: Appliance, person: TestPerson) -> None:
    """They sign, and a second tool says that it is valid."""
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        answer = sign(client, person, request)
        assert answer.status_code == 200, answer.text
        (verdict,) = pdfsig(client.get(answer.json()["documentoFirmado"]).content)
    assert verdict.valid


def alter(appliance: Appliance, statement: str, *values: object) -> None:
    """What somebody who can write to the database does."""
    path = appliance.folder / "rubrica.db"
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
        changed = connection.execute(statement, values).rowcount
        connection.commit()
    assert changed


def audited(appliance: Appliance, request: int, event: str) -> list[dict[str, Any]]:
    """What was recorded of a kind about a request."""

    async def read(front: ServiceRegistry) -> list[dict[str, Any]]:
        async with front.core.store.read() as transaction:
            rows = await transaction.audit.of_request(request)
        return [dict(row.event.detail) for row in rows if row.event.event == event]

    return appliance.do(read)


# -- the modes and kinds -------------------------------------------------------------


def test_wrapped_key_signs(appliance_with_keys: Appliance, owner: TestPerson) -> None:
    """By default: RSA-2048, of which nothing stays on the token."""
    signed(appliance_with_keys, owner)

    key = appliance_with_keys.credential(owner)
    assert (key.key_mode, key.cka_id, key.master) == (KeyMode.WRAPPED, None, 1)
    public = x509.load_der_x509_certificate(key.certificate).public_key()
    assert isinstance(public, rsa.RSAPublicKey)


def test_wrapped_curve_key_signs(appliance_with_keys: Appliance) -> None:
    """P-256, by a setting."""
    with restarted(appliance_with_keys, hsm='key_algorithm = "ec-p256"'):
        person = appliance_with_keys.new_person("Curva Elíptica")
        signed(appliance_with_keys, person)

        key = appliance_with_keys.credential(person)
    public = x509.load_der_x509_certificate(key.certificate).public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert key.key_mode is KeyMode.WRAPPED
    # A key made before goes on as it was.
    signed(appliance_with_keys, person)


def test_resident_key_signs_by_its_permit_alone(appliance_with_keys: Appliance) -> None:
    """On the token, by a setting; and not without its owner's password."""
    with restarted(appliance_with_keys, hsm='key_mode = "resident"'):
        person = appliance_with_keys.new_person("Clave Residente")
        signed(appliance_with_keys, person)
    key = appliance_with_keys.credential(person)
    assert (key.key_mode, key.master) == (KeyMode.RESIDENT, None)

    request = appliance_with_keys.new_request(person, pdfs.one_page())
    with appliance_with_keys.client(person) as client, ThreadPoolExecutor(1) as pool:
        with held(appliance_with_keys):
            call = pool.submit(sign, client, person, request)
            _activation(appliance_with_keys, request)
            alter(
                appliance_with_keys,
                'UPDATE credential SET "outer" = ? WHERE id = ?',
                secrets.token_bytes(len(key.outer)),
                key.id,
            )
        problem(call.result(), 503, "ACTIVATION_INVALID")
        # From here on no password opens it.
        problem(sign(client, person, request), 403, "SIGN_PASSWORD_WRONG")
    (back,) = audited(appliance_with_keys, request, "request.returned")
    assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "outer")


# -- altered rows --------------------------------------------------------------------

ALTERATIONS = {
    "document": "UPDATE activation_item SET document_sha256 = printf('%064d', 1)"
    " WHERE activation = :id",
    "parameters": "UPDATE activation_item SET params ="
    " replace(params, '\"page\":1', '\"page\":2') WHERE activation = :id",
    "factors": "UPDATE activation SET factors = '[\"sign-pwd\"]' WHERE id = :id",
    "claim by": "UPDATE activation SET claim_by ="
    " strftime('%Y-%m-%d %H:%M:%f000', claim_by, '+1 hour') WHERE id = :id",
    "created": "UPDATE activation SET created ="
    " strftime('%Y-%m-%d %H:%M:%f000', created, '-1 hour') WHERE id = :id",
    "key version": "UPDATE credential SET key_version = 2 WHERE id ="
    " (SELECT credential FROM activation WHERE id = :id)",
    "seal": "UPDATE activation_seal SET sealed = zeroblob(length(sealed))"
    " WHERE activation = :id",
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_altered_row_is_given_back_and_can_be_signed(
    appliance_with_keys: Appliance, owner: TestPerson, what: str
) -> None:
    """Between the password and the key: nothing is signed, and it is told why."""
    request = appliance_with_keys.new_request(owner, pdfs.one_page())
    with appliance_with_keys.client(owner) as client, ThreadPoolExecutor(1) as pool:
        with held(appliance_with_keys):
            call = pool.submit(sign, client, owner, request)
            activation = _activation(appliance_with_keys, request)
            alter(
                appliance_with_keys, ALTERATIONS[what].replace(":id", "?"), activation
            )
        problem(call.result(), 503, "ACTIVATION_INVALID")
        if what == "key version":
            alter(
                appliance_with_keys,
                "UPDATE credential SET key_version = 1 WHERE key_version = 2",
            )

        (back,) = audited(appliance_with_keys, request, "request.returned")
        assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "seal")
        assert audited(appliance_with_keys, request, "key.intended") == []
        again = sign(client, owner, request)

    assert again.status_code == 200, again.text
    assert read_ledger(appliance_with_keys, after=request - 1).faults() == []


def _activation(appliance: Appliance, request: int) -> str:
    """The activation of a request, once there is one."""
    path = appliance.folder / "rubrica.db"
    found: list[tuple[str]] = []

    def look() -> bool:
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
            found[:] = connection.execute(
                "SELECT activation FROM activation_item WHERE request = ?", (request,)
            ).fetchall()
        return bool(found)

    until(look)
    return found[0][0]


def test_altered_wrapping_is_given_back(appliance_with_keys: Appliance) -> None:
    """What the HSM wrapped for one key does not unwrap another's."""
    one, two = (
        appliance_with_keys.new_person("Una"),
        appliance_with_keys.new_person("Otra"),
    )
    theirs = appliance_with_keys.credential(two).blob_w
    key = appliance_with_keys.credential(one)
    alter(
        appliance_with_keys,
        "UPDATE credential SET blob_w = ? WHERE id = ?",
        theirs,
        key.id,
    )
    request = appliance_with_keys.new_request(one, pdfs.one_page())

    with appliance_with_keys.client(one) as client:
        problem(sign(client, one, request), 503, "ACTIVATION_INVALID")

    (back,) = audited(appliance_with_keys, request, "request.returned")
    assert back["layer"] == "hsm"
    alter(
        appliance_with_keys,
        "UPDATE credential SET blob_w = ? WHERE id = ?",
        key.blob_w,
        key.id,
    )
    signed(appliance_with_keys, one)


def test_key_moved_to_somebody_else_does_not_open(
    appliance_with_keys: Appliance,
) -> None:
    """A thief with a password of their own and the rows of another.

    The front opens nothing with it, so the password is a wrong one. Rows that are
    altered after it was right are the worker's to refuse (`test_theft.py`).
    """
    thief, victim = (
        appliance_with_keys.new_person("Ladrona"),
        appliance_with_keys.new_person("Víctima"),
    )
    theirs, ours = (
        appliance_with_keys.credential(victim),
        appliance_with_keys.credential(thief),
    )
    columns = ("outer", "blob_w", "spki", "certificate", "chain")
    for column in columns:
        # The public key's hash alone is unique; who moves a key moves it too.
        alter(
            appliance_with_keys,
            f'UPDATE credential SET "{column}" = (SELECT "{column}" FROM credential'  # noqa: S608 (our own names)
            " WHERE id = ?) WHERE id = ?",
            theirs.id,
            ours.id,
        )
    request = appliance_with_keys.new_request(thief, pdfs.one_page())

    with appliance_with_keys.client(thief) as client:
        told = problem(sign(client, thief, request), 403, "SIGN_PASSWORD_WRONG")

    assert told["attemptsLeft"] == 9
    assert audited(appliance_with_keys, request, "activation.created") == []


# -- the password and the pepper -----------------------------------------------------


def test_password_changes_and_the_key_stays(appliance_with_keys: Appliance) -> None:
    """204; the old one is wrong from then on, the new one signs."""
    person = appliance_with_keys.new_person("Cambia Clave")
    before = appliance_with_keys.credential(person)
    new = secrets.token_urlsafe(9)
    appliance_with_keys.secrets.add(new)
    body = {"password": person.signing_password, "nueva": new}
    with appliance_with_keys.client(person) as client:
        wrong = client.post("/credenciales/clave", json={**body, "password": "x" * 9})
        done = client.post("/credenciales/clave", json=body)
        request = appliance_with_keys.new_request(person, pdfs.one_page())
        old = sign(client, person, request)
        answer = client.post(
            "/solicitudes/firmar", json={"solicitudId": request, "password": new}
        )

    assert problem(wrong, 403, "SIGN_PASSWORD_WRONG")["attemptsLeft"] == 9
    assert (done.status_code, done.content) == (204, b"")
    problem(old, 403, "SIGN_PASSWORD_WRONG")
    assert answer.status_code == 200, answer.text
    assert appliance_with_keys.credential(person).certificate == before.certificate


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"password": "12345678"},
        {"password": "12345678", "nueva": "1234567"},
        {"password": "12345678", "nueva": "12345678"},
        {"password": "12345678", "nueva": 12345678},
        {"password": "12345678", "nueva": "123456789", "otra": 1},
    ],
)
def test_change_that_is_none_is_refused(
    appliance_with_keys: Appliance, owner: TestPerson, body: dict[str, object]
) -> None:
    """400 by the field, and no attempt is counted."""
    with appliance_with_keys.client(owner) as client:
        answer = client.post("/credenciales/clave", json=body)

    assert answer.status_code == 400, answer.text
    assert answer.json()["field"] in {"password", "nueva", "otra"}


def test_change_needs_a_signer(appliance_with_keys: Appliance) -> None:
    """No bearer, no change."""
    answer = httpx.post(
        f"{appliance_with_keys.base_url}/credenciales/clave",
        json={"password": "12345678", "nueva": "123456789"},
        timeout=CALL_S,
    )

    problem(answer, 401, "TOKEN_MISSING")


def test_pepper_is_renewed_at_the_next_signature(
    appliance_with_keys: Appliance,
) -> None:
    """A second pepper: who signs is under it from then on, without noticing."""
    person = appliance_with_keys.new_person("Pimienta")
    pepper = appliance_with_keys.folder / "secrets" / "pepper"
    before = pepper.read_text()
    done = appliance_with_keys.rubrica("secrets", "rotate", "pepper")
    assert done.returncode == 0, done.stderr
    signed(appliance_with_keys, person)
    signed(appliance_with_keys, person)

    async def version(front: ServiceRegistry) -> int:
        async with front.core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(person.id)
        assert secret is not None
        return secret.pepper_version

    assert appliance_with_keys.do(version) == 2
    # Without the second pepper nobody can check what is kept under it.
    after = pepper.read_text()
    pepper.write_text(before)
    request = appliance_with_keys.new_request(person, pdfs.one_page())
    with appliance_with_keys.client(person) as client:
        problem(sign(client, person, request), 503, "STORE_UNAVAILABLE")
    pepper.write_text(after)


# -- enrolment -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "mode"),
    [
        (KEY_MADE, "resident"),
        (CERTIFIED, "wrapped"),
        (SAMPLED, "wrapped"),
        pytest.param(SAMPLED, "resident", marks=pytest.mark.long),
        pytest.param(KEY_MADE, "wrapped", marks=pytest.mark.long),
        pytest.param(CERTIFIED, "resident", marks=pytest.mark.long),
        pytest.param(ISSUED, "wrapped", marks=pytest.mark.long),
        pytest.param(ISSUED, "resident", marks=pytest.mark.long),
    ],
)
def test_killed_enrolment_ends_in_one_key_that_works(
    appliance_with_keys: Appliance, point: str, mode: str
) -> None:
    """Another worker, or the next start, makes it; what was left is swept."""
    with contextlib.ExitStack() as stack:
        if mode == "wrapped":
            appliance = appliance_with_keys
        else:
            appliance = stack.enter_context(harmed(hsm=f'key_mode = "{mode}"'))
        crash = order_crash(appliance, point)
        person = appliance.new_person("Muerta Y Viva")

        signed(appliance, person)
        assert not crash.exists()


def test_enrolment_waits_for_the_sandbox_and_keeps_nobody_waiting(
    appliance_with_keys: Appliance, owner: TestPerson
) -> None:
    """No sample can be verified: the task stays open, and others are done."""
    held = appliance_with_keys.credential(owner)
    with suspended(appliance_with_keys.children("sandbox")):
        person = appliance_with_keys.new_person("Espera Su Clave", with_key=False)
        with appliance_with_keys.client(owner) as client:
            asked = client.post(
                f"/credenciales/{held.id}/csr",
                json={"password": owner.signing_password},
            )
        assert asked.status_code == 200, asked.text
        tasks = read_ledger(appliance_with_keys).of(tables.hsm_task)
        (waiting,) = [row for row in tasks if row.person == person.id]
        assert waiting.state in {TaskState.WAITING.value, TaskState.RUNNING.value}

    def is_made() -> bool:
        made = read_ledger(appliance_with_keys).of(tables.credential)
        return any(row.person == person.id for row in made)

    until(is_made)
    signed(appliance_with_keys, person)


@contextlib.contextmanager
def suspended(processes: list[psutil.Process]) -> Iterator[None]:
    """Have processes stand still meanwhile."""
    assert processes
    for each in processes:
        each.suspend()
    try:
        yield
    finally:
        for each in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.resume()


def test_forgotten_password_begins_with_a_link_by_command(
    appliance_with_keys: Appliance,
) -> None:
    """`rubrica person issue --forgotten`: no operator types a password for anybody."""
    person = appliance_with_keys.new_person("Olvida Todo")
    file = appliance_with_keys.folder / "typed"
    file.write_text("una clave nueva de firma\n")
    asked = ("person", "issue", "--cuil", person.cuil)
    before = appliance_with_keys.credential(person)

    has = appliance_with_keys.rubrica(*asked, "--password-file", str(file))
    typed = appliance_with_keys.rubrica(
        *asked, "--forgotten", "--password-file", str(file)
    )
    kept = appliance_with_keys.credential(person)
    forgotten = appliance_with_keys.rubrica(*asked, "--forgotten")

    assert "ALREADY_EXISTS" in has.stderr
    assert "chooses it behind the link" in typed.stderr
    assert kept.id == before.id
    assert forgotten.returncode == 0, forgotten.stderr
    assert "/alta/" in forgotten.stdout
    with appliance_with_keys.client(person) as client:
        assert client.get("/solicitudes").status_code == 401


def test_forgotten_password_takes_a_witness(appliance_with_keys: Appliance) -> None:
    """An administrator, by password and one-time code together."""
    appliance = appliance_with_keys
    person = appliance.new_person("Olvida Ante Testigo")
    officer = new_administrator(appliance)
    file = appliance.folder / "witness"
    asked = ["person", "issue", "--cuil", person.cuil, "--forgotten"]
    asked += ["--witness", officer.name, "--witness-file", str(file)]

    file.write_text(f"{officer.password}\n000000\n")
    refused = appliance.rubrica(*asked)
    kept = appliance.credential(person)
    file.write_text(f"{officer.password}\n{officer.code()}\n")
    made = appliance.rubrica(*asked)

    assert "LOGIN_FAILED" in refused.stderr
    assert kept.person == person.id
    assert made.returncode == 0, made.stderr
    assert "/alta/" in made.stdout


def test_no_secret_stands_anywhere(appliance_with_keys: Appliance) -> None:
    """After all of the above: not in the log, nor in the record or its journal."""
    kept = b"".join(
        path.read_bytes()
        for path in appliance_with_keys.folder.glob("rubrica.*")
        if path.is_file()
    )

    for secret in appliance_with_keys.secrets:
        assert secret.encode() not in kept

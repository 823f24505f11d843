"""Guesses at a signing password, over HTTP, by who writes to database and Redis.

Source: finding K6; docs/keys.md "What bounds guesses".
"""

import contextlib
from typing import Any

import httpx
from redis import Redis
from sqlalchemy import delete, update

from appliance.database.tables import attempt_slot, signing_secret
from tests.functional.integration.test_batch_sessions import Page, opened
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import TestBackend
from tests.support.documents import pdfs
from tests.support.faults.theft import read_rows, write

LIMIT = 10
"""Wrong passwords that lock, unless set otherwise."""


def reset(appliance: Appliance) -> None:
    """Forget every wrong password that the database and Redis know of."""
    write(
        appliance,
        delete(attempt_slot),
        update(signing_secret).values(counted=0, locked_at=None),
    )
    socket = str(appliance.settings.redis_socket)
    with contextlib.closing(Redis(unix_socket_path=socket)) as redis:
        redis.flushall()


def guess(
    client: httpx.Client, request: int, password: str
) -> tuple[int, str, object, set[str]]:
    """Status, code, tries left and names of what a guess is answered."""
    body = {"solicitudId": request, "password": password}
    answer = client.post("/solicitudes/firmar", json=body)
    told: dict[str, Any] = answer.json()
    return answer.status_code, told["code"], told.get("attemptsLeft"), set(told)


def test_counts_that_are_reset_give_twenty_guesses(appliance: Appliance) -> None:
    """Then 423, whatever database and Redis say; the right password included."""
    person = appliance.new_person()
    request = appliance.new_request(person, pdfs.one_page())
    codes = []
    with appliance.client(person) as client:
        for number in range(3 * LIMIT):
            reset(appliance)
            codes.append(guess(client, request, f"adivinanza {number}")[1])
        reset(appliance)
        right = guess(client, request, person.signing_password)

    assert codes == ["SIGN_PASSWORD_WRONG"] * 2 * LIMIT + ["SIGN_LOCKED"] * LIMIT
    assert right[:2] == (423, "SIGN_LOCKED")
    (locked,) = [
        row.locked_at
        for row in read_rows(appliance, signing_secret)
        if row.person == person.id
    ]
    assert locked is not None


def test_copied_verifier_answers_no_guess(appliance: Appliance) -> None:
    """The victim's right password and any other are answered alike."""
    victim, attacker = appliance.new_person(), appliance.new_person()
    request = appliance.new_request(attacker, pdfs.one_page())
    rows = {row.person: row for row in read_rows(appliance, signing_secret)}
    theirs = rows[victim.id]
    answers = []
    with appliance.client(attacker) as client:
        for password in (victim.signing_password, "ninguna de ellas"):
            reset(appliance)
            write(
                appliance,
                update(signing_secret)
                .where(signing_secret.c.person == attacker.id)
                .values(
                    salt=theirs.salt,
                    argon2=theirs.argon2,
                    pepper_version=theirs.pepper_version,
                    verifier_sha256=theirs.verifier_sha256,
                ),
            )
            answers.append(guess(client, request, password))
    marks = {row.verifier_sha256 for row in read_rows(appliance, attempt_slot)}

    assert answers[0] == answers[1]
    assert answers[0][:3] == (403, "SIGN_PASSWORD_WRONG", LIMIT - 1)
    assert theirs.verifier_sha256 not in marks


def test_frame_has_a_memory_of_its_own(
    appliance: Appliance, backend: TestBackend
) -> None:
    """A session that the attacker made the victim's gives no more guesses there."""
    person = appliance.new_person()
    told = backend.made(pdfs.one_page(), person)
    (signer,) = told["firmantes"]
    page = Page(appliance, opened(backend, solicitudId=signer["solicitudId"]).json())
    page.start(person)
    appliance.refresh(person)
    page.prove(person)
    sha256 = page.get("state").json()["document"]["sha256"]
    codes = []
    for number in range(2 * LIMIT + 2):
        reset(appliance)
        answer = page.ask(
            "sign",
            corner="bottomLeft",
            page=1,
            sha256=sha256,
            password=f"adivinanza {number}",
        )
        codes.append(answer.json()["code"])

    assert codes == ["SIGN_PASSWORD_WRONG"] * 2 * LIMIT + ["SIGN_LOCKED"] * 2

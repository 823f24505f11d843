"""Power: who reads and writes Redis, and nothing else.

Redis carries ids of work and of outcomes, and counts of integrators' calls. It is no
record: whatever is written there, workers and fronts do what the database says.

Source: docs/running.md "The roles"; docs/keys.md "What bounds guesses".
"""

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import httpx
import pytest
from redis import Redis

from appliance.database import tables
from appliance.domain.ids import UPKEEP, new_id
from appliance.domain.vocab import EventKind, RequestState
from appliance.messaging.redis_link import BELL, NEWS, QUEUE, RING_JOB
from tests.functional.powers.test_k13_one_use import consented
from tests.functional.powers.writer_scene import state_of
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    code_of,
    log_in,
    problem,
    sign,
    sign_at_last,
)
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import read_rows, traces
from tests.support.processes.scratch import short_folder

_LIMIT: Final = 10
"""Wrong passwords that lock, unless set otherwise."""
_RECORD: Final = (
    tables.person,
    tables.signing_secret,
    tables.credential,
    tables.certificate,
    tables.hsm_task,
    tables.signature_request,
    tables.document,
    tables.activation,
    tables.activation_item,
    tables.activation_seal,
    tables.intent,
    tables.signed_document,
)
"""What keys, consents and documents follow from."""


@pytest.fixture(scope="module")
def appliance() -> Iterator[Appliance]:
    """An appliance with a Redis of its own, whose calls do not wait."""
    signing = "workers = 1\nwait_s = 0.1"
    with short_folder() as folder, Appliance.made(folder, signing=signing) as made:
        yield made


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs."""
    return appliance.new_person()


@pytest.fixture
def redis(appliance: Appliance) -> Iterator[Redis]:
    """The attacker's connection."""
    with closing(Redis(unix_socket_path=str(appliance.settings.redis_socket))) as made:
        yield made


@contextmanager
def overheard(appliance: Appliance) -> Iterator[list[str]]:
    """All commands that Redis gets meanwhile."""
    end, heard = f"ECHO {new_id()}", list[str]()
    with (
        closing(Redis(unix_socket_path=str(appliance.settings.redis_socket))) as redis,
        redis.monitor() as monitor,  # type: ignore[no-untyped-call]  # as redis has it
    ):

        def listen() -> None:
            for each in monitor.listen():
                if each["command"] == end:
                    return
                heard.append(each["command"])

        listening = threading.Thread(target=listen)
        listening.start()
        yield heard
        with closing(
            Redis(unix_socket_path=str(appliance.settings.redis_socket))
        ) as other:
            other.execute_command(*end.split())  # type: ignore[no-untyped-call]
        listening.join()


def ring(redis: Redis, work: str) -> None:
    """Tell workers and fronts that there is work, and that it ended."""
    job = f"{work}:1"
    call: dict[str, Any] = {"t": None, "f": RING_JOB, "a": [work], "k": {}, "et": 0}
    redis.set(f"arq:job:{job}", json.dumps(call), px=120_000)
    redis.zadd(QUEUE, {job: int(time.time() * 1000)})
    redis.publish(BELL, "")
    redis.publish(NEWS, work)


def record(appliance: Appliance) -> dict[str, list[Any]]:
    """Rows of the tables that count, and what was audited but for links and logins."""
    rows = {table.name: sorted(read_rows(appliance, table)) for table in _RECORD}
    kinds = {
        kind.value
        for kind in EventKind
        if kind.value.startswith(("activation.", "key.", "request.", "credential."))
    }
    events = read_rows(appliance, tables.audit_event)
    rows["audit"] = [row for row in events if row.event in kinds]
    return rows


def test_redis_holds_no_secret(appliance: Appliance) -> None:
    """Of an enrolment, a sign-in, a wrong and a right password, and a new one."""
    with overheard(appliance) as heard:
        person = appliance.new_person("Eva Paz")
        with appliance.client() as client:
            token = log_in(client, person)
            code = code_of(appliance, person)
            answer = client.post(
                "/auth/otp", json={"loginToken": token, "codigo": code}
            )
            assert answer.status_code == httpx.codes.OK, answer.text
            typed = {token, answer.json()["access_token"], secrets.token_urlsafe(9)}
        request = appliance.new_request(person, pdfs.one_page())
        with appliance.client(person) as client:
            body = {"solicitudId": request, "password": max(typed)[:40]}
            client.post("/solicitudes/firmar", json=body)
            sign_at_last(client, person, request)
            new = secrets.token_urlsafe(9)
            body = {"password": person.signing_password, "nueva": new}
            until(
                lambda: client.post("/credenciales/clave", json=body).status_code == 204
            )
    known = appliance.secrets | typed | {new, code}

    assert any("arq:job" in each or "PUBLISH" in each for each in heard)
    assert traces({each for each in known if len(each) > 6}, _bytes(heard)) == []


def _bytes(heard: list[str]) -> bytes:
    return "\n".join(heard).encode()


def test_forged_notifications_change_no_row(
    appliance: Appliance, victim: TestPerson, redis: Redis
) -> None:
    """Of work that ended, of work that never was, and of what is no work.

    No key is used or made, nobody consents, nothing is published, and the audit stays.
    """
    request = appliance.new_request(victim, pdfs.one_page())
    appliance.new_request(victim, pdfs.one_page(text="otro"), "otro.pdf")
    with appliance.client(victim) as client:
        assert sign_at_last(client, victim, request).status_code == httpx.codes.OK
    before = record(appliance)
    named = [
        str(row.id)
        for table in ("activation", "hsm_task", "credential", "person", "document")
        for row in before[table]
    ]
    forged = [*named, new_id(), f"{UPKEEP}{new_id()}", str(request), "", "../x", "\0"]
    for work in forged:
        ring(redis, work)
    redis.set("arq:job:pickled", b"\x80\x04cos\nsystem\n(S'true'\ntR.")
    redis.zadd(QUEUE, {"pickled": 1})
    redis.publish(BELL, "")
    until(lambda: redis.zcard(QUEUE) == 0)
    # A signature that comes after all of them: what they caused is over by then.
    later = appliance.new_request(victim, pdfs.one_page())
    known = {row.id for row in before["signature_request"]} | {later}
    with appliance.client(victim) as client:
        assert sign_at_last(client, victim, later).status_code == httpx.codes.OK

    after = record(appliance)
    for table in ("person", "credential", "certificate", "hsm_task"):
        assert after[table] == before[table], table
    assert {row.id for row in after["signature_request"]} == known
    assert [row for row in after["signature_request"] if row.id != later] == before[
        "signature_request"
    ]
    added = [row for row in after["audit"] if row not in before["audit"]]
    assert {row.request for row in added} <= {later}
    uses = [row.request for row in added if row.event == EventKind.KEY_USED.value]
    assert uses == [later]


def test_false_news_call_nothing_signed(
    appliance: Appliance, victim: TestPerson, redis: Redis
) -> None:
    """A front that is told of an outcome reads it from the record."""
    with held(appliance), appliance.client(victim) as client:
        kept = consented(appliance, victim)
        for _ in range(3):
            ring(redis, kept.activation.id)
            answer = sign(client, victim, kept.request)
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text
            assert "documentoFirmado" not in answer.json()
        assert state_of(appliance, kept.request) == RequestState.IN_PROGRESS.value
    until(kept.over)

    assert kept.state == RequestState.SIGNED.value
    assert len(kept.audited(EventKind.KEY_USED)) == 1
    ring(redis, kept.activation.id)
    until(lambda: redis.zcard(QUEUE) == 0)
    assert len(kept.audited(EventKind.KEY_USED)) == 1


def test_emptied_redis_gives_no_further_guesses(
    appliance: Appliance, redis: Redis
) -> None:
    """Counts and locks of wrong passwords are not there."""
    person = appliance.new_person("Luis Paz")
    request = appliance.new_request(person, pdfs.one_page())
    codes = []
    with appliance.client(person) as client:
        for number in range(_LIMIT + 2):
            redis.flushall()
            body = {"solicitudId": request, "password": f"adivinanza {number}"}
            codes.append(client.post("/solicitudes/firmar", json=body).json()["code"])
        redis.flushall()
        problem(sign(client, person, request), 423, "SIGN_LOCKED")

    assert codes[: _LIMIT - 1] == ["SIGN_PASSWORD_WRONG"] * (_LIMIT - 1)
    assert codes[_LIMIT - 1 :] == ["SIGN_LOCKED"] * 3

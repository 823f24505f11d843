"""The HSM fails in the midst of signing, each way injected by a shim around it.

Source: research on reliability, F3, F8 and F10 to F18; docs/hsm-faults.md.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.vocab import IntentState, ItemState, RequestState
from appliance.keys.credential_store import CredentialStore
from appliance.requests.request_store import RequestStore
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import (
    assert_sound,
    execute,
    frozen,
    newest,
    order_crash,
    troubled,
    until,
)
from tests.support.faults.retrying_callers import Crowd
from tests.support.hsm.pkcs11_shim import Action, Pkcs11Shim
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS
from tests.support.services.postgres import PostgresServer
from worker.failpoints import AFTER_SIGN, FREEZE

DONE, INTERRUPTED = IntentState.COMPLETED, IntentState.INTERRUPTED
_ROUNDS = 5
DEVICE_REMOVED, SESSION_HANDLE_INVALID, PIN_INCORRECT = 0x32, 0xB3, 0xA0


@dataclass
class Trouble:
    """An appliance whose HSM fails as it is told to, and somebody who signs."""

    appliance: Appliance
    shim: Pkcs11Shim
    person: TestPerson
    looked_at: int = 0
    """Uses of keys that were looked at before."""

    def new_request(self) -> int:
        """A document for that person, from which on uses of keys are looked at."""
        self.looked_at = len(self.shim.signed())
        return self.appliance.new_request(self.person, pdfs.one_page())

    def sign(self, request: int) -> httpx.Response:
        """Call until there is an end."""
        body = {"solicitudId": request, "password": self.person.signing_password}
        with self.appliance.client(self.person) as client:
            answer = client.post("/solicitudes/firmar", json=body)
            while answer.status_code == 202:
                answer = client.post("/solicitudes/firmar", json=body)
        return answer

    def assert_signed(self, request: int, tries: list[IntentState]) -> None:
        """Sign; one document, so many attempts, and no other use of a key."""
        self.assert_one_document(request, tries)
        self.assert_on_record()

    def assert_one_document(self, request: int, tries: list[IntentState]) -> None:
        """Sign; one document, so many attempts, and a clean ledger."""
        answer = self.sign(request)

        assert answer.status_code == 200, answer.text
        ledger = read_ledger(self.appliance, after=request - 1)
        assert ledger.attempts(request) == tries
        assert ledger.faults() == []

    def assert_on_record(self, lost: range = range(1)) -> int:
        """Every digest that a user's key was used on is on the record (G2).

        Args:
            lost: how many results may have been lost, and so made once more.

        Returns:
            How many were.
        """
        rows = read_ledger(self.appliance).of(tables.intent)
        intended = Counter(row.digest for row in rows)
        uses = [one for one in self.shim.signed()[self.looked_at :] if one.key == "-"]
        signed = Counter(one.data[-32:].hex() for one in uses)
        assert uses
        assert signed.keys() <= intended.keys()
        again = (signed - intended).total()
        assert again in lost
        return again


@pytest.fixture(scope="module")
def on_sqlite() -> Iterator[Trouble]:
    """On SQLite."""
    with troubled() as (appliance, shim):
        yield Trouble(appliance, shim, appliance.new_person())


@pytest.fixture(scope="module")
def on_postgres(postgres_server: PostgresServer) -> Iterator[Trouble]:
    """On PostgreSQL."""
    name = postgres_server.create_database()
    with troubled(database=postgres_server.url(name)) as (appliance, shim):
        yield Trouble(appliance, shim, appliance.new_person())
    postgres_server.drop_database(name)


@pytest.fixture(
    params=["on_sqlite", pytest.param("on_postgres", marks=pytest.mark.long)]
)
def either(request: pytest.FixtureRequest) -> Trouble:
    """On each of the two databases."""
    trouble: Trouble = request.getfixturevalue(request.param)
    return trouble


@pytest.mark.parametrize("function", ["C_Sign", "C_UnwrapKey"])
def test_lost_session_is_not_noticed(on_sqlite: Trouble, function: str) -> None:
    """F10: started anew inside the call; one attempt on the record."""
    request = on_sqlite.new_request()
    code = SESSION_HANDLE_INVALID
    with on_sqlite.shim.fault(function, "code", code, at="firma", times=1):
        on_sqlite.assert_signed(request, [DONE])


@pytest.mark.parametrize("action", ["abort", "hang"])
def test_worker_lost_in_the_module_is_replaced(either: Trouble, action: Action) -> None:
    """F13, F14: a crash, or a call that hangs and is ended; resumed elsewhere."""
    request = either.new_request()
    before = either.appliance.log.read_text()
    with either.shim.fault("C_Sign", action, at="firma", times=1):
        either.assert_signed(request, [INTERRUPTED, DONE])

    news = either.appliance.log.read_text().removeprefix(before)
    assert ("role.hangs" in news) == (action == "hang")
    assert ("SIGKILL" if action == "hang" else "SIGABRT") in news


def test_lost_result_is_signed_again_and_published_once(either: Trouble) -> None:
    """The key was used and nobody has its result: the same digest once more."""
    # What keeps sessions alive signs too, and may be what was lost.
    assert any(_signed_with_a_lost_result(either) == 1 for _ in range(_ROUNDS))


def _signed_with_a_lost_result(trouble: Trouble) -> int:
    """How many results of the user's key were lost: at most one."""
    request = trouble.new_request()
    with trouble.shim.fault("C_Sign", "lose", DEVICE_REMOVED, at="firma", times=1):
        answer = trouble.sign(request)

    assert answer.status_code == 200, answer.text
    ledger = read_ledger(trouble.appliance, after=request - 1)
    assert ledger.attempts(request) == [DONE]
    assert ledger.faults() == []
    return trouble.assert_on_record(lost=range(2))


def test_hsm_that_is_gone_is_503_and_heals(on_sqlite: Trouble) -> None:
    """F11: never "no such key"; back without a restart of anything."""
    appliance = on_sqlite.appliance
    request = on_sqlite.new_request()
    workers = {process.pid for process in appliance.children("signing")}
    tokens = appliance.folder / "hsm" / "tokens"
    away = tokens.with_name("away")
    tokens.rename(away)
    refused = on_sqlite.sign(request)
    away.rename(tokens)
    appliance.wait_ready()

    assert refused.status_code == 503, refused.text
    assert refused.json()["code"] == "HSM_UNAVAILABLE"
    assert on_sqlite.sign(request).status_code == 200
    assert {process.pid for process in appliance.children("signing")} == workers


def test_pki_that_is_gone_lets_people_sign(on_sqlite: Trouble) -> None:
    """A new person's key waits for the CA's token, and is made when it is back."""
    appliance = on_sqlite.appliance
    request = on_sqlite.new_request()
    with on_sqlite.shim.fault("*", "code", DEVICE_REMOVED, at="pki"):
        waiting = appliance.new_person("Nora Paz", with_key=False)
        # A new key may be tried out meanwhile, which no intent tells of.
        on_sqlite.assert_one_document(request, [DONE])

    until(lambda: _has_key(appliance, waiting))


def _has_key(appliance: Appliance, person: TestPerson) -> bool:
    async def look(front: ServiceRegistry) -> bool:
        async with front.core.store.read() as transaction:
            return await CredentialStore(transaction).active(person.id) is not None

    return appliance.do(look)


def test_refused_pin_is_tried_once_a_start(on_sqlite: Trouble) -> None:
    """F12: not ready, no loop; with the right PIN the next start heals."""
    appliance, shim = on_sqlite.appliance, on_sqlite.shim
    with shim.fault("C_Login", "code", PIN_INCORRECT, at="firma") as rule:
        for process in appliance.children("signing"):
            process.kill()
        until(lambda: appliance.log.read_text().count("status=pin") >= 2)
        ready = f"{appliance.base_url}/readyz"
        until(
            lambda: httpx.get(ready, verify=NO_TLS, timeout=CALL_S).status_code == 503
        )
        assert shim.used(rule) == 2

    for process in appliance.children("signing"):
        process.kill()
    appliance.wait_ready()


def test_worker_without_its_hsm_leaves_work_to_the_other(on_sqlite: Trouble) -> None:
    """One of two is refused its PIN: nobody is told that the HSM is away."""
    appliance, shim = on_sqlite.appliance, on_sqlite.shim
    before = newest(appliance)
    refused = appliance.log.read_text().count("status=pin")
    with shim.fault("C_Login", "code", PIN_INCORRECT, at="firma", times=1):
        (victim, *_) = appliance.children("signing")
        victim.kill()
        until(lambda: appliance.log.read_text().count("status=pin") > refused)
    crowd = Crowd(appliance, [on_sqlite.person], pdfs.one_page(), at_least=10)
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)
    for process in appliance.children("signing"):
        process.kill()
    appliance.wait_ready()


def test_ring_that_comes_often_is_one_use_of_the_key(either: Trouble) -> None:
    """F3: twenty notifications of one activation in hand, two workers: one C_Sign."""
    request = either.new_request()

    async def ring(front: ServiceRegistry) -> None:
        async with front.core.store.read() as transaction:
            view = await RequestStore(transaction).get(RequestId(request))
        assert view is not None
        for _ in range(20):
            await front.core.work_notifier.notify(ActivationId(view.activation or ""))

    with (
        either.shim.fault("C_Sign", "delay", 1000, at="firma", times=1) as rule,
        ThreadPoolExecutor(1) as pool,
    ):
        signing = pool.submit(either.assert_signed, request, [DONE])
        until(lambda: either.shim.used(rule) > 0)
        either.appliance.do(ring)
        signing.result()


def test_sqlite_that_is_away_at_the_commit_loses_nothing(on_sqlite: Trouble) -> None:
    """F8: the key was used, its signature cannot be stored; once more, and once."""
    assert any(_signed_with_sqlite_away(on_sqlite) for _ in range(_ROUNDS))


def _signed_with_sqlite_away(trouble: Trouble) -> bool:
    """Whether it was away: not if the worker froze while it held the lock itself."""
    appliance = trouble.appliance
    request = trouble.new_request()
    tries = [DONE]
    order_crash(appliance, AFTER_SIGN, FREEZE)
    with (
        ThreadPoolExecutor(1) as pool,
        closing(sqlite3.connect(appliance.folder / "rubrica.db", timeout=2)) as other,
    ):
        other.isolation_level = None
        signing = pool.submit(trouble.assert_signed, request, tries)
        until(lambda: bool(frozen(appliance)))
        (worker,) = frozen(appliance)
        before = _let_go(appliance)
        try:
            other.execute("BEGIN IMMEDIATE")
            tries[:] = [INTERRUPTED, DONE]
        except sqlite3.OperationalError:
            pass
        finally:
            worker.resume()
        if other.in_transaction:
            until(lambda: _let_go(appliance) > before)
            other.rollback()
        signing.result()
    return len(tries) > 1


def _let_go(appliance: Appliance) -> int:
    """How often a worker let go of what it could not finish."""
    return appliance.log.read_text().count("worker.let_go")


@pytest.mark.long
def test_postgres_that_dies_at_the_commit_loses_nothing(on_postgres: Trouble) -> None:
    """F8: its connection ends within the very statement that stores a signature."""
    request = on_postgres.new_request()
    execute(
        on_postgres.appliance,
        "CREATE SEQUENCE fault_f8",
        "CREATE FUNCTION fault_f8() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        # A sequence's number outlives the transaction that took it.
        "IF nextval('fault_f8') = 1 THEN "
        "PERFORM pg_terminate_backend(pg_backend_pid()); END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER fault_f8 BEFORE UPDATE ON activation_item FOR EACH ROW "
        f"WHEN (NEW.state = '{ItemState.KEYED.value}') EXECUTE FUNCTION fault_f8()",
    )

    on_postgres.assert_signed(request, [INTERRUPTED, DONE])


def test_certificate_that_is_over_uses_no_key(on_sqlite: Trouble) -> None:
    """F18: refused by its code before anything is asked of the HSM."""
    appliance = on_sqlite.appliance
    late = Trouble(appliance, on_sqlite.shim, appliance.new_person())
    request = late.new_request()
    over = "UPDATE credential SET not_after = not_before WHERE person = "
    execute(appliance, f"{over}'{late.person.id}'")
    used = len(late.shim.signed())
    answer = late.sign(request)

    assert answer.status_code == 409, answer.text
    assert answer.json()["code"] == "CERTIFICATE_NOT_USABLE"
    # Nothing but what keeps a session alive.
    keys = {bytes.fromhex(one.key) for one in late.shim.signed()[used:] if one.key}
    assert keys <= {b"rubrica-keep-alive"}


def test_crowd_is_served_whatever_the_module_does(on_sqlite: Trouble) -> None:
    """A lost session, a crash, a lost result and a hang among forty calls."""
    appliance, shim = on_sqlite.appliance, on_sqlite.shim
    before = newest(appliance)
    on_sqlite.looked_at = len(shim.signed())
    crowd = Crowd(appliance, [on_sqlite.person], pdfs.one_page(), at_least=20)
    faults: list[tuple[Action, int]] = [
        ("code", SESSION_HANDLE_INVALID),
        ("abort", 0),
        ("lose", DEVICE_REMOVED),
        ("hang", 0),
    ]
    with crowd.calling():
        for action, value in faults:
            with shim.fault("C_Sign", action, value, at="firma", times=1) as rule:
                until(lambda rule=rule: shim.used(rule) > 0)  # type: ignore[misc]  # bound now

    assert_sound(crowd, before=before)
    # The lost one may have been a test signature of a worker that had just died.
    on_sqlite.assert_on_record(lost=range(2))
    failed = read_ledger(appliance).with_state(RequestState.FAILED)
    assert [row.id for row in failed if row.id > before] == []


def test_twelve_workers_at_once_all_start() -> None:
    """F15: nobody is told that the HSM is away, at a start or when all were killed."""
    with troubled(signing="workers = 12") as (appliance, _):
        until(lambda: _signing_starts(appliance) == 12)
        for process in appliance.children("signing"):
            process.kill()
        until(lambda: _signing_starts(appliance) == 24)
        appliance.wait_ready()

        assert "hsm.unavailable" not in appliance.log.read_text()


def _signing_starts(appliance: Appliance) -> int:
    return appliance.log.read_text().count("slot=signing/")

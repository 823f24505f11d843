"""K13: a seal that is put back opens again, and one consent uses the key twice.

Whoever writes to the database keeps the rows of a consent, lets it be signed, and puts
them back; or has a worker open it after its time. The host's journal says what it
opened and saw end, and no row changes that.

Source: docs/keys.md "The journal of a host".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from sqlalchemy import Executable, Row, Table, delete, insert, update

from appliance.database import tables
from appliance.domain.vocab import EventKind, RequestState, TaskKind, TaskState
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import LOTE, TestBackend, upload
from tests.support.appliance.http_calls import sign
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import execute, held, restarted, until
from tests.support.faults.theft import read_rows, write
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

_A: Final = tables.activation
_ITEM: Final = tables.activation_item
_SEAL: Final = tables.activation_seal
_INTENT: Final = tables.intent
_REQUEST: Final = tables.signature_request
_SIGNED: Final = tables.signed_document
_UPKEEP: Final = tables.level_upkeep
_KEY: Final = tables.document_key
_SIGNING: Final = "workers = 2\nwait_s = 0.1"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def appliance(
    request: pytest.FixtureRequest, postgres_server: PostgresServer
) -> Iterator[Appliance]:
    """An appliance with two signing workers, whose calls do not wait."""
    with short_folder() as folder:
        if request.param == "sqlite":
            with Appliance.made(folder, signing=_SIGNING) as made:
                yield made
            return
        name = postgres_server.create_database()
        url = postgres_server.url(name)
        with Appliance.made(folder, database=url, signing=_SIGNING) as made:
            yield made
        postgres_server.drop_database(name)


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs."""
    return appliance.new_person()


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a consent, as they were before a worker came."""

    appliance: Appliance
    request: int
    activation: Row[Any]
    items: Sequence[Row[Any]]
    seals: Sequence[Row[Any]]

    @property
    def state(self) -> str:
        """How the request stands now."""
        rows = read_rows(self.appliance, _REQUEST)
        return str(next(row.state for row in rows if row.id == self.request))

    def over(self) -> bool:
        """True once no worker is signing it."""
        return self.state != RequestState.IN_PROGRESS.value

    def audited(self, kind: EventKind) -> list[dict[str, Any]]:
        """What was recorded of a kind about the request, oldest first."""
        rows = read_rows(self.appliance, tables.audit_event)
        own = [r for r in rows if (r.event, r.request) == (kind.value, self.request)]
        return [row.detail for row in sorted(own, key=lambda row: row.at)]

    def put_back(self, **activation: object) -> list[Executable]:
        """Everything as it was, but for some columns of the activation."""
        one = self.activation.id
        return [
            delete(_SIGNED).where(_SIGNED.c.request == self.request),
            delete(_UPKEEP).where(_UPKEEP.c.request == self.request),
            delete(_INTENT).where(_INTENT.c.activation == one),
            _restored(_A, _A.c.id == one, self.activation, activation),
            *(
                _restored(
                    _ITEM, (_ITEM.c.activation == one) & (_ITEM.c.seq == item.seq), item
                )
                for item in self.items
            ),
            delete(_SEAL).where(_SEAL.c.activation == one),
            *(insert(_SEAL).values(dict(seal._mapping)) for seal in self.seals),
            update(_REQUEST)
            .where(_REQUEST.c.id == self.request)
            .values(state=RequestState.IN_PROGRESS.value, reason=""),
        ]


def _restored(
    table: Table, which: Any, row: Row[Any], other: dict[str, object] | None = None
) -> Executable:
    return update(table).where(which).values({**row._mapping, **(other or {})})


def consented(appliance: Appliance, person: TestPerson) -> Kept:
    """Have somebody consent while no worker goes on; the rows that it left."""
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        assert sign(client, person, request).status_code == 202
    return kept_rows(appliance, request)


def kept_rows(appliance: Appliance, request: int) -> Kept:
    """Read the rows of a consent that no worker went on with."""
    items = [row for row in read_rows(appliance, _ITEM) if row.request == request]
    one = items[0].activation
    (activation,) = [row for row in read_rows(appliance, _A) if row.id == one]
    seals = [row for row in read_rows(appliance, _SEAL) if row.activation == one]
    return Kept(appliance, request, activation, items, seals)


ROWS: Final[dict[str, dict[str, object]]] = {
    "as they were": {},
    "with a high fence": {"fence": 1000, "progress": 1000},
    "as being signed": {"state": "keying", "fence": 1, "progress": 1},
}


@pytest.mark.parametrize("rows", ROWS)
def test_seal_that_is_put_back_opens_nothing(
    appliance: Appliance, victim: TestPerson, rows: str
) -> None:
    """Within its time, all rows put back: the key was used once, and stays so."""
    with held(appliance):
        kept = consented(appliance, victim)
    until(kept.over)
    assert kept.state == RequestState.SIGNED.value
    assert len(kept.audited(EventKind.KEY_USED)) == 1

    later = datetime.now(UTC) + timedelta(hours=1)
    changes = {**ROWS[rows]}
    if changes.get("state") == "keying":
        changes |= {"key_until": later, "finish_until": later}
        changes |= {"lease_until": kept.activation.created}
    write(appliance, *kept.put_back(**changes))
    until(kept.over)

    assert len(kept.audited(EventKind.KEY_USED)) == 1, "the key was used twice"
    assert kept.state == RequestState.PENDING.value
    back = kept.audited(EventKind.REQUEST_RETURNED)[-1]
    assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "journal")


def test_workers_that_start_anew_know_it(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The journal outlives every process of the host."""
    with held(appliance):
        kept = consented(appliance, victim)
    until(kept.over)
    for worker in appliance.children("signing"):
        worker.kill()

    write(appliance, *kept.put_back())
    until(kept.over)

    assert len(kept.audited(EventKind.KEY_USED)) == 1, "the key was used twice"
    assert kept.state == RequestState.PENDING.value


def test_consent_that_failed_opens_nothing_once_put_right(
    appliance: Appliance, victim: TestPerson
) -> None:
    """It was given back to its signer: a row that is put right later is no consent."""
    with held(appliance):
        kept = consented(appliance, victim)
        write(
            appliance,
            update(_ITEM)
            .where(_ITEM.c.activation == kept.activation.id)
            .values(document_sha256="00" * 32),
        )
    until(kept.over)
    assert kept.state == RequestState.PENDING.value

    write(appliance, *kept.put_back())
    until(kept.over)

    assert kept.state == RequestState.PENDING.value, "it was signed all the same"
    assert kept.audited(EventKind.KEY_USED) == []


def test_seal_is_not_opened_for_the_first_time_after_its_time(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The row says that a worker took it in time; no worker of this host did."""
    with restarted(appliance, signing=f"{_SIGNING}\nclaim_s = 5"):
        with held(appliance):
            kept = consented(appliance, victim)
            later = datetime.now(UTC) + timedelta(hours=1)
            write(
                appliance,
                update(_A)
                .where(_A.c.id == kept.activation.id)
                .values(
                    state="keying",
                    fence=1,
                    progress=1,
                    key_until=later,
                    finish_until=later,
                    lease_until=kept.activation.created,
                ),
            )
            until(lambda: datetime.now(UTC) > kept.activation.claim_by)
        until(kept.over)

        assert kept.audited(EventKind.KEY_USED) == [], "the key was used too late"
        assert kept.state == RequestState.PENDING.value
        assert kept.audited(EventKind.REQUEST_RETURNED)[-1]["reason"] == (
            "ACTIVATION_EXPIRED"
        )


def test_document_under_another_number_is_signed_once(
    appliance: Appliance, victim: TestPerson, backend: TestBackend
) -> None:
    """Of a batch in progress: the signed document is put back, and all numbered anew.

    The other document cannot be read meanwhile, by a row that no seal is bound to:
    it is another integrator's, whose key of documents does not open.
    """
    upload(backend, pdfs.one_page("ajeno"))
    requests = [appliance.new_request(victim, pdfs.one_page()) for _ in range(2)]
    with held(appliance):
        with appliance.client(victim) as client:
            body = {
                "solicitudIds": requests,
                "password": victim.signing_password,
            }
            assert client.post(LOTE, json=body).status_code == 202
        first, second = (kept_rows(appliance, request) for request in requests)
        assert first.activation.id == second.activation.id
        integrators = read_rows(appliance, tables.integrator)
        other = next(row.id for row in integrators if row.code == backend.code)
        own = next(
            row.integrator
            for row in read_rows(appliance, _REQUEST)
            if row.id == requests[1]
        )
        shut = (
            update(_KEY).where(_KEY.c.integrator == other).values(key_sealed=bytes(64))
        )
        write(appliance, shut, _moved(requests[1], other))
    until(first.over)
    assert first.state == RequestState.SIGNED.value

    one = first.activation.id
    later = datetime.now(UTC) + timedelta(hours=1)
    write(
        appliance,
        delete(_SIGNED).where(_SIGNED.c.request == requests[0]),
        delete(_UPKEEP).where(_UPKEEP.c.request == requests[0]),
        delete(_INTENT).where(_INTENT.c.activation == one),
        update(_ITEM).where(_ITEM.c.request == requests[1]).values(seq=2),
        _restored(_ITEM, _ITEM.c.request == requests[0], first.items[0], {"seq": 1}),
        update(_A)
        .where(_A.c.id == one)
        .values(
            state="keying",
            key_until=later,
            finish_until=later,
            lease_until=first.activation.created,
        ),
        update(_REQUEST)
        .where(_REQUEST.c.id == requests[0])
        .values(state=RequestState.IN_PROGRESS.value, reason=""),
    )
    until(first.over)
    write(appliance, _moved(requests[1], own))
    until(second.over)

    assert len(first.audited(EventKind.KEY_USED)) == 1, "the key was used twice"
    for kept in (first, second):
        assert kept.state == RequestState.PENDING.value
        back = kept.audited(EventKind.REQUEST_RETURNED)[-1]
        assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "seal")


NOT_KEPT: Final[dict[str, tuple[list[str], list[str]]]] = {
    "sqlite": (
        [
            (
                "CREATE TRIGGER not_kept BEFORE UPDATE ON activation_item"
                " WHEN NEW.state = 'keyed' BEGIN SELECT RAISE(ABORT, 'seen'); END"
            )
        ],
        ["DROP TRIGGER not_kept"],
    ),
    "postgresql": (
        [
            (
                "CREATE FUNCTION not_kept() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'seen'; END $$"
            ),
            (
                "CREATE TRIGGER not_kept BEFORE UPDATE ON activation_item FOR EACH ROW"
                " WHEN (NEW.state = 'keyed') EXECUTE FUNCTION not_kept()"
            ),
        ],
        ["DROP TRIGGER not_kept ON activation_item", "DROP FUNCTION not_kept"],
    ),
}
"""Has the database see a signature and not keep it, and what puts an end to that."""


def test_signature_that_was_not_kept_is_the_only_one(
    appliance: Appliance, victim: TestPerson
) -> None:
    """A second value would be over the same digest: same document, stamp and time."""
    database = appliance.settings.database.url
    begins, ends = NOT_KEPT["sqlite" if database == "sqlite" else "postgresql"]
    with held(appliance):
        kept = consented(appliance, victim)
        execute(appliance, *begins)
    until(lambda: len(kept.audited(EventKind.KEY_INTENDED)) > 1)
    execute(appliance, *ends)
    until(kept.over)

    intended = {each["digest"] for each in kept.audited(EventKind.KEY_INTENDED)}
    assert len(intended) == 1, "the key signed two digests"
    assert kept.state == RequestState.SIGNED.value


def _moved(request: int, integrator: str) -> Executable:
    """A request as another integrator's, whose documents are others."""
    which = update(_REQUEST).where(_REQUEST.c.id == request)
    return which.values(integrator=integrator)


def test_enrolment_that_is_put_back_makes_no_key(appliance: Appliance) -> None:
    """Its seal opens once: a second key would be locked by the same unlock key."""
    task, seals = tables.hsm_task, tables.task_seal
    with held(appliance):
        person = appliance.new_person("Otra Persona", with_key=False)
        (asked,) = [
            row
            for row in read_rows(appliance, task)
            if row.person == person.id and row.kind == TaskKind.ISSUE.value
        ]
        sealed = [row for row in read_rows(appliance, seals) if row.task == asked.id]
    until(lambda: _task(appliance, asked.id).state == TaskState.DONE.value)

    # What came of it is taken away, so that there is room for a second key.
    credential, certificate = tables.credential, tables.certificate
    (made,) = [
        row for row in read_rows(appliance, certificate) if row.credential == asked.id
    ]
    answer = tables.ocsp_response
    write(
        appliance,
        delete(answer).where(answer.c.serial == made.serial),
        delete(certificate).where(certificate.c.serial == made.serial),
        delete(credential).where(credential.c.person == person.id),
        _restored(task, task.c.id == asked.id, asked),
        *(insert(seals).values(dict(seal._mapping)) for seal in sealed),
    )
    ends = {TaskState.DONE.value, TaskState.FAILED.value}
    until(lambda: _task(appliance, asked.id).state in ends)

    keys = [row.person for row in read_rows(appliance, credential)]
    assert person.id not in keys, "a second key was made"
    assert _task(appliance, asked.id).reason == "ACTIVATION_INVALID"


def _task(appliance: Appliance, task: str) -> Row[Any]:
    return next(row for row in read_rows(appliance, tables.hsm_task) if row.id == task)

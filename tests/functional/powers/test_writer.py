"""Power: who writes to the database, and has nothing else.

Each test tries one goal at a running appliance, on each database, and asserts what
comes of it: what is refused, and what works and is told of by `audit reconcile`.

Source: docs/keys.md "What is claimed", "What is not claimed".
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest
from sqlalchemy import Executable, Row, delete, insert, update

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.audit.reconciliation import Check
from appliance.domain.audit.record import GENESIS, AuditEvent, AuditRow, chain
from appliance.domain.clock import SystemClock
from appliance.domain.ids import TaskId
from appliance.domain.mail.mails import MailKind
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    CertificateState,
    CredentialState,
    EventKind,
    RequestState,
)
from appliance.record.unit_of_work import Database
from appliance.secrets.own_host import own_name
from tests.functional.powers.test_signature_page import (
    REFUTED,
    SIGNED,
    code_of,
    look,
    new_code,
    original_of,
)
from tests.functional.powers.writer_scene import (
    DATABASES,
    ForgedKey,
    appliance_on,
    audited,
    chains_are_whole,
    consent_by_rows,
    key_by_rows,
    row_of,
    rows_of,
    state_of,
    unexplained,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import LOTE
from tests.support.appliance.http_calls import (
    command,
    problem,
    sign,
    sign_at_last,
)
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import read_rows, write
from tests.support.processes.event_loops import run_apart
from tests.support.services.postgres import PostgresServer

_REQUEST: Final = tables.signature_request
_ITEM: Final = tables.activation_item
_SIGNED: Final = tables.signed_document
_CREDENTIAL: Final = tables.credential
FORGED_REASON: Final = "Cedo todos mis derechos"
"""Why something is said to be signed, by the writer's row."""


@pytest.fixture(scope="module", params=DATABASES)
def appliance(
    request: pytest.FixtureRequest, postgres_server: PostgresServer
) -> Iterator[Appliance]:
    """An appliance with two signing workers, whose calls do not wait."""
    signing = "workers = 2\nwait_s = 0.1"
    with appliance_on(request.param, postgres_server, signing=signing) as made:
        yield made


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs."""
    return appliance.new_person("Ana Ruiz")


def signed(appliance: Appliance, person: TestPerson) -> int:
    """A document that somebody signed; its request."""
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        answer = sign_at_last(client, person, request)
    assert answer.status_code == httpx.codes.OK, answer.text
    return request


# -- certify, and what follows from it: a new key by rows ------------------------------


def test_new_key_in_a_persons_name_signs_and_is_told_of(appliance: Appliance) -> None:
    """K2: a worker makes it for a row, and signs by a consent that nobody gave.

    The page of the signature names the victim, for so does the certificate. Person and
    audit know.
    """
    victim = appliance.new_person("Eva Paz")
    own = appliance.credential(victim)
    forged = key_by_rows(appliance, victim, secrets.token_bytes(32))
    request, code = appliance.new_request(victim, pdfs.one_page()), new_code()
    consent_by_rows(appliance, forged, request, code)
    until(lambda: state_of(appliance, request) != RequestState.IN_PROGRESS.value)

    assert state_of(appliance, request) == RequestState.SIGNED.value
    assert row_of(appliance, _CREDENTIAL, id=forged.id).spki != own.spki
    page = look(appliance, code)
    assert SIGNED in page
    assert "E••• P•••" in page

    assert Check.CERTIFIED_UNASKED in unexplained(appliance, person=victim.id)
    assert Check.USED_WITHOUT_CONSENT in unexplained(appliance, request=request)
    notices = rows_of(appliance, tables.security_notice, person=victim.id)
    assert [row.kind for row in notices].count(MailKind.CERTIFIED.value) == 2


def test_consent_by_rows_opens_no_key_that_a_person_has(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The same rows for her own key: its lock does not open by the writer's key."""
    own = ForgedKey(victim, TaskId(appliance.credential(victim).id), bytes(32))
    request = appliance.new_request(victim, pdfs.one_page())
    consent_by_rows(appliance, own, request)
    until(lambda: state_of(appliance, request) != RequestState.IN_PROGRESS.value)

    assert state_of(appliance, request) == RequestState.PENDING.value
    (back,) = audited(appliance, EventKind.REQUEST_RETURNED, request)
    assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "outer")
    assert audited(appliance, EventKind.KEY_INTENDED, request) == []


# -- batch -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """A consent to two documents, and a third one that nobody consented to."""

    appliance: Appliance
    items: list[Row[Any]]
    extra: Row[Any]
    """Request of the same person, or of another one."""

    @property
    def activation(self) -> str:
        """Id of the one activation."""
        return str(self.items[0].activation)

    def added(self) -> list[Executable]:
        """Rows of a third document behind the two."""
        return [insert(_ITEM).values({**self._forged(), "seq": len(self.items)})]

    def replaced(self) -> list[Executable]:
        """Rows that make the third document the second one."""
        last = self.items[-1]
        return [
            update(_REQUEST)
            .where(_REQUEST.c.id == last.request)
            .values(state=RequestState.PENDING.value, activation=None),
            update(_ITEM)
            .where(_ITEM.c.activation == self.activation, _ITEM.c.seq == last.seq)
            .values(self._forged()),
        ]

    def _forged(self) -> dict[str, Any]:
        document = row_of(self.appliance, tables.document, id=self.extra.document)
        values = dict(self.items[-1]._mapping)
        params = SignParameters.from_wire(values["params"])
        values |= {"request": self.extra.id, "document_sha256": document.sha256}
        values |= {"params_sha256": params.sha256(self.extra.id), "code": None}
        return values


_WAYS: Final[dict[str, Callable[[Batch], list[Executable]]]] = {
    "added": Batch.added,
    "in the place of another": Batch.replaced,
}


@pytest.mark.parametrize("whose", ["own", "another's"])
@pytest.mark.parametrize("way", _WAYS)
def test_extra_document_in_a_batch_signs_nothing(
    appliance: Appliance, victim: TestPerson, way: str, whose: str
) -> None:
    """None of the batch is signed: the seal is bound to each of its documents."""
    requests = appliance.new_requests(victim, pdfs.one_page(), 2)
    person = victim if whose == "own" else appliance.new_person("Luis Paz")
    other = appliance.new_request(person, pdfs.one_page(text="otro"), "otro.pdf")
    body = {"solicitudIds": requests, "password": victim.signing_password}
    with appliance.client(victim) as client:
        with held(appliance):
            assert client.post(LOTE, json=body).status_code == httpx.codes.ACCEPTED
            items = [
                row for row in read_rows(appliance, _ITEM) if row.request in requests
            ]
            assert len({row.activation for row in items}) == 1
            extra = row_of(appliance, _REQUEST, id=other)
            batch = Batch(appliance, sorted(items, key=lambda row: row.seq), extra)
            moved = update(_REQUEST).where(_REQUEST.c.id == other)
            write(
                appliance,
                *_WAYS[way](batch),
                moved.values(
                    state=RequestState.IN_PROGRESS.value, activation=batch.activation
                ),
            )
        every = [*requests, other]
        until(lambda: "en_proceso" not in {state_of(appliance, r) for r in every})

        assert {state_of(appliance, r) for r in every} == {RequestState.PENDING.value}
        for request in every:
            assert audited(appliance, EventKind.KEY_INTENDED, request) == []
        backs = audited(appliance, EventKind.REQUEST_RETURNED, requests[0])
        assert [back["layer"] for back in backs] == ["seal"]
        # The control: as it was consented to, it is signed.
        answer = client.post(LOTE, json=body)
        until(lambda: {state_of(appliance, r) for r in requests} == {"firmada"})
        assert answer.status_code in {200, 202}
    assert state_of(appliance, other) == RequestState.PENDING.value


# -- swap, before the call -------------------------------------------------------------


def swapped(appliance: Appliance, person: TestPerson, request: int) -> str:
    """Put another document, and a reason, into a request; the document's SHA-256."""
    text = secrets.token_hex(8)
    other = appliance.new_request(person, pdfs.one_page(text=text), "otro.pdf")
    values = row_of(appliance, _REQUEST, id=other)
    which = update(_REQUEST).where(_REQUEST.c.id == request)
    write(
        appliance,
        which.values(
            document=values.document,
            original_sha256=values.original_sha256,
            preset={"motivo": FORGED_REASON},
        ),
    )
    return original_of(appliance, other)


def test_document_swapped_before_a_call_that_names_it_is_refused(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Neither by its hash nor by its file; nothing is consented to."""
    request = appliance.new_request(victim, pdfs.one_page())
    options = json.dumps(command(victim, request))
    with appliance.client(victim) as client:
        seen = client.get(f"/solicitudes/{request}/original")
        swapped(appliance, victim, request)
        named = client.post(
            "/solicitudes/firmar",
            json=command(victim, request),
            headers={"If-Match": seen.headers["ETag"]},
        )
        sent = client.post(
            "/solicitudes/firmar",
            files={
                "file": ("c.pdf", seen.content, "application/pdf"),
                "options": (None, options, "application/json"),
            },
        )

    problem(named, 412, "DOCUMENT_CHANGED")
    problem(sent, 422, "DOCUMENT_MISMATCH")
    assert audited(appliance, EventKind.ACTIVATION_CREATED, request) == []


def test_document_swapped_before_a_call_that_names_none_is_signed(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Such a call consents to what the rows say: another file, with a reason of theirs.

    The page of the signature says nothing of it, `audit reconcile` does.
    """
    request = appliance.new_request(victim, pdfs.one_page())
    with appliance.client(victim) as client:
        seen = client.get(f"/solicitudes/{request}/original")
        sha256 = swapped(appliance, victim, request)
        answer = sign_at_last(client, victim, request)
        made = client.get(f"/solicitudes/{request}/documento").content

    assert answer.status_code == httpx.codes.OK, answer.text
    assert sha256 not in seen.headers["ETag"]
    (consent,) = audited(appliance, EventKind.ACTIVATION_CREATED, request)
    assert consent["documentSha256"] == sha256
    assert not made.startswith(seen.content)
    assert FORGED_REASON.encode() in made
    assert SIGNED in look(appliance, code_of(appliance, request))
    assert unexplained(appliance, request=request) == {Check.DOCUMENT_SWAPPED}


@pytest.mark.parametrize("given", [{}, {"motivo": "Conformidad"}], ids=["none", "own"])
def test_reason_swapped_before_a_call_that_gives_none_is_signed(
    appliance: Appliance, victim: TestPerson, given: dict[str, str]
) -> None:
    """The call names its document; what it leaves out of the look, the rows say."""
    request = appliance.new_request(victim, pdfs.one_page())
    with appliance.client(victim) as client:
        seen = client.get(f"/solicitudes/{request}/original")
        which = update(_REQUEST).where(_REQUEST.c.id == request)
        write(appliance, which.values(preset={"motivo": FORGED_REASON}))
        client.headers["If-Match"] = seen.headers["ETag"]
        answer = sign_at_last(client, victim, request, **given)
        del client.headers["If-Match"]
        made = client.get(f"/solicitudes/{request}/documento").content

    assert answer.status_code == httpx.codes.OK, answer.text
    assert made.startswith(seen.content)
    assert (FORGED_REASON.encode() in made) is not bool(given)


# -- version ---------------------------------------------------------------------------


def false_version(appliance: Appliance, person: TestPerson, request: int) -> str:
    """Write that an unsigned file is the newest version; its SHA-256."""
    text = secrets.token_hex(8)
    other = appliance.new_request(person, pdfs.one_page(text=text), "otro.pdf")
    first = row_of(appliance, _SIGNED, request=request, version=1)
    sha256 = original_of(appliance, other)
    values = {**first._mapping, "version": 2, "sha256": sha256}
    write(appliance, insert(_SIGNED).values(values))
    return sha256


def test_false_version_is_served_and_told_of(
    appliance: Appliance, victim: TestPerson
) -> None:
    """K7: the file is served; its page calls it invalid, and `reconcile` names it."""
    request = signed(appliance, victim)
    sha256 = false_version(appliance, victim, request)
    with appliance.client(victim) as client:
        served = client.get(f"/solicitudes/{request}/documento").content

    assert hashlib.sha256(served).hexdigest() == sha256
    assert b"/ByteRange" not in served
    assert REFUTED in look(appliance, code_of(appliance, request))
    assert unexplained(appliance, request=request) == {Check.VERSION_UNRECORDED}


# -- silent ----------------------------------------------------------------------------


def test_forged_chain_makes_a_false_version_silent(
    appliance: Appliance, victim: TestPerson
) -> None:
    """A chain in the name of a signing worker has the row that was missing."""
    request = signed(appliance, victim)
    sha256 = false_version(appliance, victim, request)
    assert Check.VERSION_UNRECORDED in unexplained(appliance, request=request)

    async def forge() -> None:
        engines = open_engines(appliance.settings)
        store = Database(engines, SystemClock(), f"signing/{own_name()}/1")
        async with store.write() as transaction:
            event = EventKind.DOCUMENT_RAISED
            detail: dict[str, object] = {"after": {"sha256": sha256, "level": "B-LTA"}}
            transaction.audit.add(
                AuditEvent(event, "system", request=request, detail=detail)
            )
        await store.close()

    run_apart(forge())

    assert unexplained(appliance, request=request) == set()
    assert chains_are_whole(appliance)


def test_computed_chains_forget_a_key_and_its_use(appliance: Appliance) -> None:
    """K2 again: the signed file is kept, its rows are deleted, the chains made anew."""
    victim = appliance.new_person("Ana Paz")
    forged = key_by_rows(appliance, victim, secrets.token_bytes(32))
    request = appliance.new_request(victim, pdfs.one_page())
    activation = consent_by_rows(appliance, forged, request)
    until(lambda: state_of(appliance, request) == RequestState.SIGNED.value)
    with appliance.client(victim) as client:
        kept = client.get(f"/solicitudes/{request}/documento").content
    assert pyhanko_valid(kept, appliance.roots)
    assert unexplained(appliance, person=victim.id) != set()
    assert unexplained(appliance, request=request) != set()
    # Processes that live would go on from rows that are no more.
    appliance.stop()
    try:
        traces = {request, activation, forged.id}
        write(
            appliance,
            *forgotten(appliance, forged, request, activation),
            *computed_again(appliance, lambda event: not _names(event, traces)),
        )

        assert chains_are_whole(appliance)
        assert unexplained(appliance, person=victim.id) == set()
        assert unexplained(appliance, request=request) == set()
    finally:
        appliance.start()


def _names(event: AuditEvent, traces: set[object]) -> bool:
    """Return whether an event is about one of some things."""
    named = {event.request, event.activation, *map(str, event.detail.values())}
    return not traces.isdisjoint(named)


def forgotten(
    appliance: Appliance, forged: ForgedKey, request: int, activation: str
) -> list[Executable]:
    """Statements that delete a forged key, and what it signed."""
    answer, certificate = tables.ocsp_response, tables.certificate
    serials = [
        row.serial for row in rows_of(appliance, certificate, credential=forged.id)
    ]
    person = forged.person.id
    return [
        *(
            delete(table).where(table.c.request == request)
            for table in (_SIGNED, tables.level_upkeep)
        ),
        update(_REQUEST)
        .where(_REQUEST.c.id == request)
        .values(state=RequestState.PENDING.value, activation=None, params_sha256=None),
        *(
            delete(table).where(table.c.activation == activation)
            for table in (tables.activation_seal, tables.intent, _ITEM)
        ),
        delete(tables.activation).where(tables.activation.c.id == activation),
        delete(answer).where(answer.c.serial.in_(serials)),
        delete(certificate).where(certificate.c.serial.in_(serials)),
        delete(_CREDENTIAL).where(_CREDENTIAL.c.id == forged.id),
        delete(tables.task_seal).where(tables.task_seal.c.task == forged.task),
        delete(tables.hsm_task).where(tables.hsm_task.c.id == forged.task),
        update(_CREDENTIAL)
        .where(_CREDENTIAL.c.person == person)
        .values(state=CredentialState.ACTIVE.value),
    ]


def computed_again(
    appliance: Appliance, keeps: Callable[[AuditEvent], bool]
) -> list[Executable]:
    """Statements that write each chain anew, without some of its events."""
    rows, event = read_rows(appliance, tables.audit_event), tables.audit_event
    statements: list[Executable] = []
    for writer in read_rows(appliance, tables.audit_writer):
        own = sorted((r for r in rows if r.writer == writer.id), key=lambda r: r.n)
        said = [(row.at, _event_of(row)) for row in own]
        if all(keeps(each) for _, each in said):
            continue
        statements.append(delete(event).where(event.c.writer == writer.id))
        n, last = 0, GENESIS
        for at, each in said:
            if keeps(each):
                n += 1
                made = chain(writer.id, n, last, at, each)
                last = made.hash
                statements.append(insert(event).values(_values(made)))
        which = tables.audit_writer.c.id == writer.id
        statements.append(
            update(tables.audit_writer).where(which).values(n=n, hash=last)
        )
    assert statements
    return statements


def _event_of(row: Row[Any]) -> AuditEvent:
    return AuditEvent(
        EventKind(row.event),
        row.actor,
        row.integrator,
        row.request,
        row.activation,
        row.attempt,
        row.detail,
    )


def _values(row: AuditRow) -> dict[str, object]:
    said = {name: getattr(row.event, name) for name in _EVENT}
    place = {name: getattr(row, name) for name in ("writer", "n", "prev", "hash", "at")}
    return {**place, **said, "event": row.event.event.value}


_EVENT: Final = ("actor", "integrator", "request", "activation", "attempt", "detail")


# -- rows that are put back ------------------------------------------------------------


def test_earlier_password_counts_again_once_its_rows_are_put_back(
    appliance: Appliance,
) -> None:
    """K8: two rows of before a change; whoever knows that password signs by it."""
    person = appliance.new_person("Olga Sanz")
    new = secrets.token_urlsafe(9)
    appliance.secrets.add(new)
    key = appliance.credential(person)
    secret = row_of(appliance, tables.signing_secret, person=person.id)
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        body = {"password": person.signing_password, "nueva": new}
        assert client.post("/credenciales/clave", json=body).status_code == 204
        problem(sign(client, person, request), 403, "SIGN_PASSWORD_WRONG")
        owns = tables.signing_secret.c.person == person.id
        write(
            appliance,
            update(tables.signing_secret).where(owns).values(dict(secret._mapping)),
            update(_CREDENTIAL)
            .where(_CREDENTIAL.c.id == key.id)
            .values(outer=key.outer),
        )

        assert sign_at_last(client, person, request).status_code == httpx.codes.OK


def test_revoked_key_signs_for_its_owner_once_its_rows_are_put_back(
    appliance: Appliance,
) -> None:
    """K11: and for nobody else, for it takes her password."""
    person = appliance.new_person("Hugo Rey")
    key = row_of(appliance, _CREDENTIAL, person=person.id)
    made = row_of(appliance, tables.certificate, credential=key.id)
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        revoke = f"/credenciales/{key.id}/revocar"
        answer = client.post(revoke, json={"motivo": "clave_comprometida"})
        assert answer.status_code == httpx.codes.ACCEPTED
        until(lambda: _is_revoked(appliance, made.serial))
        problem(sign(client, person, request), 409, "CERTIFICATE_NOT_USABLE")
        write(
            appliance,
            update(_CREDENTIAL)
            .where(_CREDENTIAL.c.id == key.id)
            .values(dict(key._mapping)),
            update(tables.certificate)
            .where(tables.certificate.c.serial == made.serial)
            .values(dict(made._mapping)),
        )

        assert sign_at_last(client, person, request).status_code == httpx.codes.OK


def _is_revoked(appliance: Appliance, serial: str) -> bool:
    state = row_of(appliance, tables.certificate, serial=serial).state
    return bool(state == CertificateState.REVOKED.value)

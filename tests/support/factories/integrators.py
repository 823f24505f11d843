"""Keys, sessions and requests of integrators, as the services make them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from appliance.core.database import tables
from appliance.documents.document_store import DocumentStore
from appliance.domain.documents import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import DocumentId, PersonId, RequestId, new_id
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.requests.new_request import NewRequest, StoredDocument
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.integrators.session_store import SessionStore
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from tests.support.factories.integrator_services import Desk, open_desk

OPERATOR = "operator"


@asynccontextmanager
async def open_acme(folder: Path, url: str) -> AsyncIterator[Desk]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_desk(folder, url) as made:
        await made.integrators.create(OPERATOR, "acme", "ACME S.A.")
        yield made


async def new_key(desk: Desk, code: str = "acme") -> str:
    """A fresh API key."""
    return (await desk.integrators.create_key(OPERATOR, code, "backend")).secret


async def new_session(desk: Desk) -> EmbedSession:
    """A session whose token is exchanged."""
    opened = await desk.sessions.open("acme", await new_key(desk))
    return (await desk.sessions.exchange(opened.token)).session


async def new_person(desk: Desk, cuil: str = "20055361682") -> PersonId:
    """Somebody invited."""
    made = await desk.invitations.invite(
        OPERATOR, cuil, "Ana Núñez", f"{cuil}@demo.example", VouchedBy.DEMO
    )
    return made.person


async def new_document(desk: Desk, session: EmbedSession) -> DocumentId:
    """A document of the session's integrator."""
    stored = StoredDocument(
        DocumentId(new_id()),
        session.integrator.id,
        "ab" * 32,
        Inspection(10, (), (), 0, None),
    )
    async with desk.store.write() as transaction:
        return (await DocumentStore(transaction).add(stored, desk.clock.now())).id


async def new_request(
    desk: Desk, session: EmbedSession, person: PersonId, origin: str = "sesion"
) -> RequestId:
    """A request of the session's integrator."""
    new = NewRequest(
        person=person,
        integrator=session.integrator.id,
        document=await new_document(desk, session),
        name="contrato.pdf",
        origin=origin,
        created=desk.clock.now(),
        expires=session.until,
    )
    async with desk.store.write() as transaction:
        return await RequestStore(transaction).add(new)


async def signed_session(desk: Desk, session: EmbedSession) -> EmbedSession:
    """A session that told of its signature."""
    person = await new_person(desk)
    async with desk.store._engines.writer.begin() as connection:
        row = tables.person.update().where(tables.person.c.id == person)
        await connection.execute(row.values(state=PersonState.ACTIVE))
    await desk.progress.set_person(session, person)
    await desk.progress.set_otp(session, person)
    request = await new_request(desk, session, person)
    bound = await desk.progress.set_request(session, request)
    payload: dict[str, object] = {"eventId": "e1", "document": {"size": 1}}
    assert await desk.progress.complete(bound, payload) == payload
    async with desk.store.read() as transaction:
        stored = await SessionStore(transaction).get(session.id)
    assert stored is not None
    return stored


def sweeping(desk: Desk) -> ExpiryJob:
    """The reconciler; it tells nobody of sessions."""
    return ExpiryJob(desk.store, None, desk.clock)  # type: ignore[arg-type]  # unused here


async def refused(work: object) -> ErrorCode:
    """The code that an awaitable ends with."""
    with pytest.raises(ApplianceError) as caught:
        await work  # type: ignore[misc]  # an awaitable
    return caught.value.code

"""Keys, sessions and requests of integrators, as the services make them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from appliance.database import tables
from appliance.documents.document_store import DocumentStore
from appliance.domain.documents.inspected import CameDocument, Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import DocumentId, PersonId, RequestId, new_id
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.integrators.session_store import SessionStore
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from tests.support.installation.installation import Installation
from tests.support.installation.services import Services

OPERATOR = "operator"


@asynccontextmanager
async def open_acme(folder: Path, url: str) -> AsyncIterator[Services]:
    """Services on a fresh database, with the integrator `acme`."""
    async with Installation(folder, url).services() as made:
        await made.integrators.create(OPERATOR, "acme", "ACME S.A.")
        yield made


async def new_key(integrator_services: Services, code: str = "acme") -> str:
    """A fresh API key."""
    return (
        await integrator_services.integrators.create_key(OPERATOR, code, "backend")
    ).secret


async def new_session(integrator_services: Services) -> EmbedSession:
    """A session whose token is exchanged."""
    opened = await integrator_services.sessions.open(
        "acme", await new_key(integrator_services)
    )
    return (await integrator_services.sessions.exchange(opened.token)).session


async def new_person(
    integrator_services: Services, cuil: str = "20055361682"
) -> PersonId:
    """Somebody invited."""
    made = await integrator_services.invitations.invite(
        OPERATOR, cuil, "Ana Núñez", f"{cuil}@demo.example", VouchedBy.DEMO
    )
    return made.person


async def new_document(
    integrator_services: Services, session: EmbedSession
) -> CameDocument:
    """A document of the session's integrator."""
    stored = StoredDocument(
        DocumentId(new_id()),
        session.integrator.id,
        "ab" * 32,
        Inspection(10, (), (), 0, None),
    )
    async with integrator_services.store.write() as transaction:
        return (
            await DocumentStore(transaction).add(
                stored, integrator_services.clock.now()
            )
        ).came


async def new_request(
    integrator_services: Services,
    session: EmbedSession,
    person: PersonId,
    origin: str = "sesion",
) -> RequestId:
    """A request of the session's integrator."""
    new = NewRequest(
        person=person,
        integrator=session.integrator.id,
        document=(await new_document(integrator_services, session)).id,
        name="contrato.pdf",
        origin=origin,
        created=integrator_services.clock.now(),
        expires=session.until,
    )
    async with integrator_services.store.write() as transaction:
        return await RequestStore(transaction).add(new)


async def signed_session(
    integrator_services: Services, session: EmbedSession
) -> EmbedSession:
    """A session that told of its signature."""
    person = await new_person(integrator_services)
    async with integrator_services.store._engines.writer.begin() as connection:
        row = tables.person.update().where(tables.person.c.id == person)
        await connection.execute(row.values(state=PersonState.ACTIVE))
    await integrator_services.progress.set_person(session, person)
    await set_otp(integrator_services, session, person)
    request = await new_request(integrator_services, session, person)
    bound = await integrator_services.progress.set_request(session, request)
    payload: dict[str, object] = {"eventId": "e1", "document": {"size": 1}}
    assert await integrator_services.progress.complete(bound, payload) == payload
    async with integrator_services.store.read() as transaction:
        stored = await SessionStore(transaction).get(session.id)
    assert stored is not None
    return stored


async def set_otp(
    services: Services, session: EmbedSession, person: PersonId
) -> EmbedSession:
    """Have the matched person of a session have given a right code."""
    async with services.store.write() as transaction:
        return await services.progress.set_otp_in(transaction, session, person)


def sweeping(integrator_services: Services) -> ExpiryJob:
    """The reconciler; it tells nobody of sessions."""
    return ExpiryJob(integrator_services.store, None, integrator_services.clock)  # type: ignore[arg-type]  # unused here


async def refused(work: object) -> ErrorCode:
    """The code that an awaitable ends with."""
    with pytest.raises(ApplianceError) as caught:
        await work  # type: ignore[misc]  # an awaitable
    return caught.value.code

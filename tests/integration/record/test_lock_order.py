"""Two transactions about one person, one in the middle of the other: both end well.

Source: PostgreSQL, chapter "Explicit Locking", 13.3.2 and 13.3.4; SQLSTATE 40P01.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyotp
import pytest
from sqlalchemy import select, text, update

from appliance.database.engines import open_engines
from appliance.database.tables import embed_session, signature_request
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, DocumentId, PersonId, RequestId
from appliance.domain.requests.intake import FRAME_ORIGIN, NewRequest
from appliance.domain.vocab import RevocationReason
from appliance.identity.enrolment import Choice
from appliance.integrators.session_store import SessionStore
from appliance.keys.credential_store import CredentialStore
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.people.console_user_store import EnrolmentStore
from appliance.people.person_store import PersonStore
from appliance.record.edit_versions import Precondition, version_of
from appliance.record.unit_of_work import Transaction, demanding
from appliance.requests.request_store import RequestStore
from tests.support.factories.held_credential import hold
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation

pytestmark = pytest.mark.storage

ANA = "20055361682"
ACTOR = "operator"
_PATIENCE_S = 120
Step = Callable[[Transaction], Awaitable[object]]
"""Half of a transaction."""
_LOCK_WAITS = text(
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@dataclass
class Site:
    """A console on PostgreSQL, and Ana, who has passwords, a key and a session."""

    console: Console
    ana: PersonId
    credential: CredentialId
    serial: str
    session: str
    request: RequestId

    async def edits(
        self, subject: Subject, key: str, change: Callable[[], Awaitable[object]]
    ) -> None:
        """Change what a form of the console changes, from what is stored."""
        (values,) = await self.console.front.edits.read((subject, key))
        names = tuple(values)
        seen = Precondition(subject, key, names, version_of(values, names))
        with demanding(seen):
            await change()

    async def until_waiting(self, *tasks: "asyncio.Task[Any]") -> None:
        """Wait until a transaction waits for another one's lock, or a task is done."""
        engines = open_engines(self.console.services.settings)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not any(task.done() for task in tasks):
                    async with engines.reader.connect() as connection:
                        if await connection.scalar(_LOCK_WAITS):
                            return
                    await asyncio.sleep(0.01)
        finally:
            await engines.dispose()

    async def between(
        self, first: Step, then: Step, other: Callable[[], Awaitable[object]]
    ) -> "asyncio.Task[Any]":
        """Begin a change between two halves of a transaction, and have both end."""
        async with self.console.services.store.write() as transaction:
            await first(transaction)
            begun = started(other)
            await self.until_waiting(begun)
            await then(transaction)
        await asyncio.wait([begun], timeout=_PATIENCE_S)
        return begun

    async def paused_at(
        self,
        monkeypatch: pytest.MonkeyPatch,
        where: tuple[type, str],
        first: Callable[[], Awaitable[object]],
        other: Callable[[], Awaitable[object]],
    ) -> tuple["asyncio.Task[Any]", "asyncio.Task[Any]"]:
        """Begin a change while another one stands before a call of a store."""
        store, name = where
        call = getattr(store, name)
        reached, may_go = asyncio.Event(), asyncio.Event()

        async def paused(*given: Any, **named: Any) -> Any:
            if not reached.is_set():
                reached.set()
                await may_go.wait()
            return await call(*given, **named)

        monkeypatch.setattr(store, name, paused)
        one = started(first)
        async with asyncio.timeout(_PATIENCE_S):
            await reached.wait()
        two = started(other)
        await self.until_waiting(two)
        may_go.set()
        await asyncio.wait([one, two], timeout=_PATIENCE_S)
        return one, two


def started(call: Callable[[], Awaitable[object]]) -> "asyncio.Task[Any]":
    """Begin a call as another request would: in no transaction of this one."""

    async def run() -> object:
        return await call()

    return asyncio.create_task(run(), context=Context())


@pytest.fixture
async def site(tmp_path: Path, reused_url: str) -> AsyncIterator[Site]:
    """Ana with all that a change of hers may have to wait for."""
    async with Installation(tmp_path, reused_url).console() as console:
        await console.front.integrators.create(ACTOR, "acme", "ACME S.A.")
        key = await console.front.integrators.create_key(ACTOR, "acme", "k")
        ana = await console.person(ANA, enrolled=False)
        await enrol(console, ana)
        held = await hold(console.services.store, ana, ANA, console.clock.now())
        request = RequestId(await console.request(ANA))
        token = await console.services.sessions.open("acme", key.secret)
        serial = (await console.front.credentials.of(ana))[0].serial
        async with console.services.store.write() as transaction:
            opened = await transaction.connection.execute(
                update(embed_session)
                .where(embed_session.c.public_id == token.public_id)
                .values(person=ana)
                .returning(embed_session.c.id)
            )
        yield Site(console, ana, held.id, serial, opened.scalar_one(), request)


async def enrol(console: Console, person: PersonId) -> None:
    """Have somebody invited choose their passwords."""
    code, choice = await chosen(console, person)
    await console.services.enrolment.complete(code, choice)


async def chosen(console: Console, person: PersonId) -> tuple[str, Choice]:
    """The code of a new link, and what is chosen behind it."""
    services = console.services
    found = await console.front.views.person(person)
    made = await services.invitations.renew(ACTOR, found.row.cuil)
    view = await services.enrolment.look(made.code)
    console.clock.forward(30)
    await services.host.beat(services.store, console.clock.now())
    code_now = pyotp.TOTP(view.totp_secret).at(console.clock.now())
    return made.code, Choice(
        "contraseña de ingreso", "contraseña de firma", code_now, view.opening
    )


async def gives_request(site: Site) -> tuple[Step, Step]:
    """How a frame gives its session a request (`EmbedSessionRequests.give`)."""
    services = site.console.services
    view = await services.record.view(site.request)
    async with services.store.read() as transaction:
        document = await transaction.connection.scalar(
            select(signature_request.c.document).where(
                signature_request.c.id == site.request
            )
        )
    now = services.clock.now()
    new = NewRequest(
        person=site.ana,
        integrator=view.integrator,
        document=DocumentId(str(document)),
        name="b.pdf",
        origin=FRAME_ORIGIN,
        created=now,
        expires=now + timedelta(hours=1),
    )
    return (
        lambda transaction: SessionStore(transaction).get(site.session, lock=True),
        lambda transaction: RequestStore(transaction).add(new),
    )


@pytest.mark.parametrize("change", ["disable", "reset the app", "start over"])
async def test_officer_changes_a_person_whose_frame_makes_a_request(
    site: Site, change: str
) -> None:
    """The session ends after its step; neither is refused for the other."""
    front = site.console.front
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "disable": lambda: front.officers.disable(ACTOR, site.ana),
        "reset the app": lambda: front.person_factor.reset(ACTOR, site.ana),
        "start over": lambda: front.reissue.reissue(ACTOR, site.ana),
    }
    first, then = await gives_request(site)

    begun = await site.between(
        first, then, lambda: site.edits(Subject.PERSON, site.ana, calls[change])
    )

    begun.result()


async def test_officer_unlocks_a_password_that_is_being_checked(site: Site) -> None:
    """The use case looks at the lock once the slot of the check is taken."""
    front, now = site.console.front, site.console.clock.now()

    begun = await site.between(
        lambda transaction: PersonStore(transaction).signing_secret(
            site.ana, lock=True
        ),
        lambda transaction: PasswordAttemptStore(transaction).take(site.ana, None, now),
        lambda: site.edits(
            Subject.PERSON, site.ana, lambda: front.officers.unlock(ACTOR, site.ana)
        ),
    )

    with pytest.raises(ApplianceError) as caught:
        begun.result()
    assert caught.value.code is ErrorCode.NOT_LOCKED


async def test_officer_starts_over_with_a_person_who_signs(site: Site) -> None:
    """Signing locks the password and then the key, and so does the officer."""
    front = site.console.front

    begun = await site.between(
        lambda transaction: PersonStore(transaction).signing_secret(
            site.ana, lock=True
        ),
        lambda transaction: CredentialStore(transaction).get(
            site.credential, lock=True
        ),
        lambda: front.reissue.reissue(ACTOR, site.ana),
    )

    begun.result()


async def test_two_officers_reset_one_app(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command, which has seen no version, and a form: the form comes second."""
    factor = site.console.front.person_factor

    one, two = await site.paused_at(
        monkeypatch,
        (PersonStore, "sign_out"),
        lambda: factor.reset(ACTOR, site.ana),
        lambda: site.edits(
            Subject.PERSON, site.ana, lambda: factor.reset(ACTOR, site.ana)
        ),
    )

    one.result()
    with pytest.raises(ApplianceError) as caught:
        two.result()
    assert caught.value.code is ErrorCode.CHANGED_MEANWHILE


async def test_person_enrols_while_another_link_is_made(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who came first has used the link; the officer reads that it was used."""
    console = site.console
    luis = await console.person("20267565393", "Luis Peña", enrolled=False)
    code, choice = await chosen(console, luis)

    one, two = await site.paused_at(
        monkeypatch,
        (PersonStore, "enrol"),
        lambda: console.services.enrolment.complete(code, choice),
        lambda: site.edits(
            Subject.PERSON,
            luis,
            lambda: console.front.invitations.renew(ACTOR, "20267565393"),
        ),
    )

    one.result()
    with pytest.raises(ApplianceError) as caught:
        two.result()
    assert caught.value.code is ErrorCode.CHANGED_MEANWHILE


async def test_certificate_is_revoked_by_its_serial_and_by_its_key(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One revokes it, and the other reads that it is."""
    console = site.console
    why = RevocationReason.KEY_COMPROMISE

    one, two = await site.paused_at(
        monkeypatch,
        (CredentialStore, "get"),
        lambda: console.services.revocations.ask(site.serial, why, ACTOR),
        lambda: console.front.credentials.revoke(site.credential, why, ACTOR),
    )

    failures = [task.exception() for task in (one, two)]
    (refused,) = filter(None, failures)
    assert isinstance(refused, ApplianceError)
    assert refused.code in {ErrorCode.CERTIFICATE_STATE, ErrorCode.CREDENTIAL_STATE}


async def test_two_new_links_for_one_person_come_one_after_the_other(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weaker lock keeps changes apart as well: the earlier link is over."""
    console = site.console
    luis = await console.person("20267565393", "Luis Peña", enrolled=False)
    renew = console.services.invitations.renew

    one, two = await site.paused_at(
        monkeypatch,
        (EnrolmentStore, "add"),
        lambda: renew(ACTOR, "20267565393"),
        lambda: renew(ACTOR, "20267565393"),
    )

    links = [task.result().code for task in (one, two)]
    first, second = links
    with pytest.raises(ApplianceError) as caught:
        await console.services.enrolment.look(first)
    assert caught.value.code is ErrorCode.ENROLMENT_EXPIRED
    assert (await console.services.enrolment.look(second)).person == luis

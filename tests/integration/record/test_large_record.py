"""No statement of every day costs more as the record grows (PostgreSQL).

Use cases run over 20,000 requests and what belongs to them; the plan of each of their
statements is looked at as it runs. What may read more stands in `ALLOWED`, with why.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Final

import pyotp
import pytest
from sqlalchemy import update

from appliance.console.batch_list_store import ConsoleBatchStore
from appliance.console.expiry_notices import Expiry
from appliance.console.view_store import ConsoleViewStore
from appliance.database import tables
from appliance.documents.document_store import DocumentStore
from appliance.documents.download_links import DownloadLinks
from appliance.domain.console.lists import RequestFilter
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    RequestBatchId,
    RequestId,
    new_id,
)
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.domain.requests.process import ProcessFilter
from appliance.domain.vocab import CertificateKind, RequestState
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.automatic_renewal import AutoRenewal
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.pki.revocation import Revocations
from appliance.record.audit_check import AuditChains
from appliance.record.backlog_store import BacklogStore
from appliance.record.unit_of_work import Transaction
from appliance.requests.history_store import HistoryStore
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore
from appliance.requests.turn_store import TurnStore
from appliance.settings import PkiSettings
from appliance.signing.expiry import ExpiryJob
from appliance.signing.level_maintenance import UpkeepWork, upkeep_overdue
from bench.large_record import fill, ident, verification_code
from tests.support.factories.fakes import NOON
from tests.support.factories.signing_front import open_front
from tests.support.installation.api import CUIL, LOGIN_PASSWORD
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation
from tests.support.installation.record import CoreFixture, open_record
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart
from tests.support.services.postgres import PostgresServer
from tests.support.services.query_plans import PlanWatch, shortened

pytestmark = pytest.mark.full

REQUESTS: Final = 20_000
HERE: Final = "192.0.2.1"
ISSUER: Final = "ca" * 20
"""Of every certificate of the record."""


BUSY: Final = PersonId(ident("person", 2))
"""Who signs one request in fifty."""
ASKS: Final = IntegratorId(ident("integrator", 0))
"""Who asks for every other one."""

LOTE: Final = RequestBatchId(ident("lote", 2))
"""A batch of a thousand, of years ago."""

ALLOWED: Final = {
    "position($1::BYTEA IN credential.certificate)": (
        "what an outside CA issued is found by the serial in its bytes: a search by "
        "hand, where nothing else has that number"
    ),
    "person.cuil LIKE": "a search by hand, in 20,000 rows a page at the most",
    "LIMIT $2::INTEGER OFFSET $3::INTEGER": "finds where those 20,000 rows end",
}
"""Part of a statement → why it may read more."""


@pytest.fixture(scope="module")
def large_database(
    postgres_server: PostgresServer, migrated_database: str
) -> Iterator[str]:
    """Name of a database with the large record; to be copied."""
    name = postgres_server.create_database(migrated_database)
    run_apart(fill(postgres_server.url(name), REQUESTS, NOON))
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def large_url(postgres_server: PostgresServer, large_database: str) -> Iterator[str]:
    """URL of a copy of the large record."""
    name = postgres_server.create_database(large_database)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
async def large_core(tmp_path: Path, large_url: str) -> AsyncIterator[CoreFixture]:
    """The large record."""
    async with open_record(settings_in(tmp_path, large_url)) as parts:
        yield parts


@asynccontextmanager
async def watched(url: str) -> AsyncIterator[None]:
    """Look at what runs in the block, and refuse what grows."""
    watch = await PlanWatch.over(url)
    with watch.watching():
        yield
    assert watch.seen
    told = [f"{why}: {shortened(sql)}" for sql, why in watch.found.items()]
    grows = [line for line in told if not any(part in line for part in ALLOWED)]
    assert not grows, "\n".join(grows)


async def test_signing(large_core: CoreFixture, large_url: str) -> None:
    """A call of firmar, the worker's part, a repeat, and a call that is handed back."""
    async with open_front(large_core) as front:
        request, other = await front.new_request(), await front.new_request()
        command = front.command(request, key="once")
        async with watched(large_url):
            await front.signed(command)
            await front.signing.sign(command, front.signer, None)
            call = front.start(front.command(other))
            await front.notified(2)
            worker = large_core.claiming()
            work = await worker.claim_next()
            assert work is not None
            assert await worker.renew(work.claim)
            await worker.returned(
                work.claim, list(work.claim.documents), ErrorCode.HSM_UNAVAILABLE
            )
            with pytest.raises(ApplianceError, match="HSM_UNAVAILABLE"):
                await call


async def test_lists_of_a_busy_person(large_core: CoreFixture, large_url: str) -> None:
    """Each filter of `GET /solicitudes`, first pages and later ones."""
    states = [
        (RequestState.PENDING, RequestState.IN_PROGRESS),
        *((state,) for state in RequestState),
        tuple(RequestState),
    ]
    async with watched(large_url), large_core.store.read() as transaction:
        store = RequestStore(transaction)
        for among in states:
            for before in (None, RequestId(REQUESTS // 2)):
                for asks in (None, ASKS):
                    await store.of_person(
                        BUSY, among, limit=51, before=before, integrator=asks
                    )
        found = await store.of_person(BUSY, (RequestState.SIGNED,), limit=51)
        assert len(found) == 51
        await store.with_signed([view.id for view in found])


async def test_lists_of_a_busy_integrator(
    large_core: CoreFixture, large_url: str
) -> None:
    """Each filter of a backend's list, one request, and what became of it."""
    filters = [
        ProcessFilter(),
        *(ProcessFilter(state=state) for state in RequestState),
        ProcessFilter(reference="none has it"),
        ProcessFilter(cuil="20000000001"),
        ProcessFilter(since=NOON, until=NOON + timedelta(days=1)),
    ]
    async with watched(large_url), large_core.store.read() as transaction:
        store = ProcessStore(transaction)
        for asked in filters:
            for before in (None, RequestId(REQUESTS // 2)):
                await store.matching(ASKS, replace(asked, before=before))
        ((_, newest), *_) = await store.matching(ASKS, ProcessFilter())
        assert await store.get(ASKS, newest.id) == newest
        ids = [view.id for view in newest.requests]
        assert await store.signers(ids)
        await HistoryStore(transaction).of_requests(ids)
        assert await store.of_reference(ASKS, "none has it") is None


async def test_sign_in_and_what_tokens_open(tmp_path: Path, large_url: str) -> None:
    """Login, code, token, download link and verification code, right and wrong."""
    async with Installation(tmp_path, database={"url": large_url}).api() as services:
        _, seed = await services.add_person()
        links: DownloadLinks = services.links
        async with watched(large_url):
            challenge = await services.login.login(CUIL, LOGIN_PASSWORD.encode(), HERE)
            code = pyotp.TOTP(seed).at(services.clock.now())
            issued = await services.login.otp(challenge.login_token, code, HERE)
            await services.tokens.verify(issued.token)
            key = await links.mint(RequestId(1))
            assert await links.open(key, RequestId(1))
            known = await services.verification.look(verification_code(1))
            assert known is not None
            async with services.store.read() as transaction:
                await DocumentStore(transaction).signed(RequestId(1))
                await PublicationStore(transaction).status(
                    "00", ISSUER, services.clock.now()
                )


async def test_frame(tmp_path: Path, large_url: str) -> None:
    """A session, from its opening to the request, by DNI and by CUIL, and its end."""
    async with Installation(tmp_path, large_url).frame_services() as services:
        someone = await services.add_person()
        async with watched(large_url):
            session = await services.proven(someone)
            await services.framing.waiting(session)
            other = (await services.open(idem_key="2")).view.session
            claim = services.claim(someone, cuil=None, dni=someone.cuil[2:10])
            assert await services.framing.identify(other, claim, HERE)
            await services.services.integrators.disable("operator", "acme")


async def test_chores(large_core: CoreFixture, large_url: str) -> None:
    """What workers and chores ask every few seconds, and what dead ones leave."""
    core = large_core
    job = ExpiryJob(core.store, core.completion_notifier, core.clock)
    tasks = HsmTasks(core.store, core.clock, "signing/h/1", new_id())
    async with watched(large_url):
        for work in (
            job.expire_activations,
            job.expire_requests,
            job.fail_tasks,
            tasks.claim_next,
            core.claiming().release_own,
            core.claiming().claim_next,
            core.fetching().claim_next,
            core.fetching().forget,
            Revocations(core.store, core.clock).resume,
            UpkeepWork(core.store, core.clock, "signing/h/1").claim_next,
        ):
            await work()
        await upkeep_overdue(core.store, core.clock)
        await _look_at_figures(core)


async def test_certificates(large_core: CoreFixture, large_url: str) -> None:
    """What ends, what is renewed and published, and what the CA has of its own."""
    core = large_core
    expiry = Expiry(core.store, core.clock, _no_own)
    certificates = Certificates(core.store, core.clock)
    ends = NOON + timedelta(days=3650)
    async with watched(large_url):
        await expiry.first_ends()
        await expiry.overview()
        await AutoRenewal(
            core.store, certificates, core.clock, 30, lambda: ends
        ).submit_due()
        await Publishing(core.store, core.clock, PkiSettings(), "w").submit_due(
            [ISSUER]
        )
        async with core.store.read() as transaction:
            store = CertificateStore(transaction)
            await store.in_force(CertificateKind.TSA)
            await store.newest_first(CertificateKind.OCSP, ISSUER)
            await store.of_kind(CertificateKind.TSA)


async def _no_own(transaction: Transaction) -> Sequence[tuple[ExpiringKind, bytes]]:
    """An installation without a CA."""
    del transaction
    return ()


PAGES: Final = (
    "",
    "people",
    "people?state=invited",
    "people?locked=yes",
    "people?q=20-20000014-1",
    "requests",
    "requests?state=fallida",
    "requests?state=fallida&again=no",
    "requests?state=pendiente",
    "requests?integrator=organismo-0",
    "requests?integrator=organismo-7&state=fallida",
    f"requests?person={BUSY}",
    "requests?since=2026-05-20",
    "requests?until=2023-05-20",
    "requests?since=2023-05-01&until=2023-05-20&integrator=organismo-3",
    f"requests?batch={LOTE}",
    f"requests?batch={LOTE}&state=firmada",
    f"requests?batch={LOTE}&integrator=organismo-0",
    f"requests?q={LOTE}",
    "requests/1000",
    "requests/2500",
    "audit",
    "audit?event=certificate.renewed",
    "audit?event=credential.issued",
    f"audit?actor=person:{BUSY}",
    "audit?integrator=organismo-7",
    "audit?request=1000",
    "audit?since=2024-01-01&until=2024-01-02",
    f"audit?writer={ident('writer', 3)}",
    "audit/chains",
    "certificates",
    "integrators",
    "integrators/organismo-7",
    f"people/{BUSY}",
    "health",
)
"""Of the console; who searches by a text looks at 20,000 rows a page at the most."""


async def test_console(tmp_path: Path, large_url: str) -> None:
    """Each list with each of its filters, and the next page of it."""
    async with Installation(tmp_path, large_url).console() as console:
        await console.sign_in()
        await _seal_address(console, BUSY)
        async with watched(large_url):
            for path in PAGES:
                shown = await console.get(f"/admin/{path}")
                assert shown.status == 200, path
                following = re.search(r'href="([^"]*cursor=[^"]*)"', shown.text)
                if following is not None:
                    later = await console.get(unescape(following[1]))
                    assert later.status == 200, path


async def test_batches_of_a_reference(large_core: CoreFixture, large_url: str) -> None:
    """Which they are, and the newest requests of one."""
    called = RequestFilter(text="lote-2")
    async with watched(large_url), large_core.store.read() as transaction:
        (batch,) = await ConsoleBatchStore(transaction).named(called)
        assert batch.id == LOTE
        assert batch.total == 1_000
        views = ConsoleViewStore(transaction)
        assert len(await views.of_batch(called, LOTE, 50)) == 50


async def _seal_address(console: Console, person: PersonId) -> None:
    """Give somebody an address that the console can open."""
    sealed = console.services.sealer.seal(
        b"a@b.example", table="person", row=person, column="email_sealed"
    )
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.person)
            .where(tables.person.c.id == person)
            .values(email_sealed=sealed)
        )


async def test_audit_is_verified_in_pages(
    large_core: CoreFixture, large_url: str
) -> None:
    """A chain of 2,500 rows is read in parts."""
    chains = AuditChains(large_core.store)
    async with watched(large_url):
        found = await chains.one(ident("writer", 3))
    # The first row's hash is none of it.
    assert (found.writer.n, found.broken_at) == (2_500, 1)


async def _look_at_figures(core: CoreFixture) -> None:
    async with core.store.read() as transaction:
        for outside in (False, True):
            await BacklogStore(transaction).activations(core.now, outside=outside)
        await BacklogStore(transaction).tasks(core.now)
        await PublicationStore(transaction).first_to_end(core.now)
        await TurnStore(transaction).stalled(RequestId(0), 50)

"""The record on both databases, a clock to be moved, and rows to start from.

    async def test_…(core: CoreFixture) -> None:
        signer = await core.add_signer()
        request = await core.add_request(signer.person)

`core` runs a test on SQLite and on PostgreSQL, each time on a fresh database.
"""

import asyncio
import functools
import hashlib
import itertools
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import update

from appliance.admission.connection_turns import ConnectionTurns
from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.database.tables import signature_request
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditRow, first_break
from appliance.domain.documents.inspected import Inspection, PageBox
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    DocumentId,
    IntegratorId,
    PersonId,
    RequestId,
    new_id,
)
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import (
    Credential,
    Integrator,
    NewPerson,
    Person,
    SigningSecret,
)
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.domain.requests.process import NO_NOTE
from appliance.domain.requests.request import RequestView, SignedDocumentView, Signer
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    ActivationFormat,
    IntentRow,
    Seal,
    SignatureValue,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    ActivationState,
    CredentialState,
    PersonState,
    RequestState,
    VouchedBy,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.key_encryption import lock_outer
from appliance.keys.password_hashing import PasswordRoot
from appliance.keys.signing_password import ARGON2, SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import Settings, SigningSettings
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.claims import Claims
from appliance.signing.outside_material import MaterialWork
from tests.support.factories.fakes import (
    NOON,
    FakeCompletionNotifier,
    FakeWorkNotifier,
    MovingClock,
)
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart
from tests.support.services.postgres import PostgresServer
from tests.support.services.reused_database import ReusedDatabase

PASSWORD = b"una clave de firma"
A4 = PageBox(0, 0, 595.28, 841.89, 0)
MADE = SignatureValue(b"increment", 3, 4, b"attributes", b"signature")
DIGEST = "d1" * 32
CERTIFICATE = b"certificate"
"""Of every credential made here."""
HOST = "h"
"""Host of the workers here, and what activations are sealed to."""


DATA_KEY: Final = SecretBox(KeyRing.of(b"d" * 32))
"""Seals e-mail addresses of people."""


def prepared(document: ActivationDocument, digest: str = DIGEST) -> ActivationDocument:
    """A document whose digest is known, as it is before the key is used."""
    return replace(document, digest=digest)


def keyed(document: ActivationDocument) -> ActivationDocument:
    """A document that the key was used for."""
    return replace(document, digest=DIGEST, signature=MADE)


def cheap_secret(password: bytes = PASSWORD) -> SigningSecret:
    """A signing secret that nothing is derived from."""
    digest = hashlib.sha256(password).hexdigest()
    return SigningSecret(b"s" * 16, ARGON2, 1, digest)


def new_credential(person: PersonId, **changes: Any) -> Credential:
    """A resident key in force, whose `outer` nothing opens unless it is given."""
    new: dict[str, Any] = {
        "id": CredentialId(new_id()),
        "person": person,
        "key_mode": KeyMode.RESIDENT,
        "algorithm": KeyAlgorithm.RSA_2048,
        "key_version": 1,
        "spki": new_id().encode(),
        "outer": b"outer",
        "master": None,
        "blob_w": None,
        "method_w": None,
        "method_k": None,
        "key_token": "firma",
        "cka_id": b"\x01",
        "certificate": CERTIFICATE,
        "chain": (b"issuer", b"root"),
        "not_before": NOON - timedelta(days=1),
        "not_after": NOON + timedelta(days=365),
        "vouched_by": VouchedBy.DEMO,
        "state": CredentialState.ACTIVE,
        **changes,
    }
    return Credential(**new)


@dataclass
class CoreFixture:
    """The record and what tests steer it by."""

    settings: Settings
    clock: MovingClock
    store: Database
    completion_notifier: FakeCompletionNotifier = field(
        default_factory=FakeCompletionNotifier
    )
    work_notifier: FakeWorkNotifier = field(default_factory=FakeWorkNotifier)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _integrator: IntegratorId | None = None
    _others: list[Database] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        """The time it is."""
        return self.clock.now()

    def other_store(self) -> Database:
        """The same record as another process has it; closed with this one."""
        store = Database(open_engines(self.settings), self.clock, "other")
        self._others.append(store)
        return store

    async def close(self) -> None:
        """Close every store."""
        for store in (self.store, *self._others):
            await store.close()

    def claiming(self, slot: str = "signing/h/1", **options: Any) -> Claims:
        """A signing worker's transactions."""
        return Claims(
            options.pop("store", self.store),
            self.completion_notifier,
            self.clock,
            SigningSettings(**options),
            slot,
            new_id(),
        )

    def fetching(self, slot: str = "chores/h/1", **options: Any) -> MaterialWork:
        """A chores worker's transactions around material of servers outside."""
        return MaterialWork(
            self.store, self.clock, SigningSettings(**options), slot, new_id()
        )

    # -- rows ------------------------------------------------------------------

    async def integrator(self) -> IntegratorId:
        """The one integrator, made when it is first asked for."""
        if self._integrator is None:
            self._integrator = await self.add_integrator("demo")
        return self._integrator

    async def add_integrator(self, code: str) -> IntegratorId:
        """One more integrator."""
        new = Integrator(IntegratorId(new_id()), code, code.title())
        async with self.store.write() as transaction:
            await PersonStore(transaction).add_integrator(new)
        return new.id

    async def add_signer(
        self,
        secret: SigningSecret | None = None,
        *,
        state: PersonState = PersonState.ACTIVE,
        credential: bool = True,
        login_phc: str = "-",
        cuil: str | None = None,
    ) -> Signer:
        """A person, with a credential that works."""
        number = next(self._numbers)
        person = PersonId(new_id())
        new = NewPerson(
            person=Person(person, cuil or f"20{number:09d}", "Ana Pérez", state, "es"),
            email_sealed=DATA_KEY.seal(
                b"ana@example.org", table="person", row=person, column="email_sealed"
            ),
            email_index=f"{number:064d}",
            vouched_by=VouchedBy.DEMO,
            login_phc=login_phc,
            totp_sealed=b"-",
            signing=secret or cheap_secret(),
        )
        async with self.store.write() as transaction:
            await PersonStore(transaction).add(new)
        if credential:
            await self.add_credential(person)
        return Signer(person, f"person:{person}", ("pwd", "otp"), self.now)

    async def add_credential(self, person: PersonId, **changes: Any) -> CredentialId:
        """A credential of a person, in the place of an earlier one."""
        made = new_credential(person, **changes)
        async with self.store.write() as transaction:
            secret = await PersonStore(transaction).signing_secret(person)
            if secret is not None and "outer" not in changes:
                outer = _outer(made, secret, self.settings.installation)
                made = replace(made, outer=outer)
            await CredentialStore(transaction).add(made)
        return made.id

    async def add_request(self, person: PersonId, **changes: Any) -> RequestId:
        """A document, and the request to sign it.

        Args:
            person: who is to sign.
            changes: `sha256` of the document, `integrator`, `pages`,
                `signatures`, `docmdp`, `expires`, `repair`, `preset`, `batch`; or the
                whole `inspection`.
        """
        return (await self.add_process([person], **changes))[0]

    async def add_process(
        self, people: Sequence[PersonId], **changes: Any
    ) -> list[RequestId]:
        """A document that people sign in turn; their requests.

        Args:
            people: who, in their order.
            changes: as of `add_request`; `turns` of each.
        """
        number = next(self._numbers)
        turns = changes.get("turns") or [None] * len(people)
        integrator = changes.get("integrator") or await self.integrator()
        inspection = changes.get("inspection") or Inspection(
            size_bytes=1000,
            pages=changes.get("pages", (A4, A4)),
            findings=(),
            signatures=changes.get("signatures", 0),
            docmdp=changes.get("docmdp"),
        )
        sha256 = changes.get("sha256", f"{number:064x}")
        repair = changes.get("repair")
        document = StoredDocument(
            DocumentId(new_id()), integrator, sha256, inspection, repair
        )
        async with self.store.write() as transaction:
            kept = await DocumentStore(transaction).add(document, self.now)
            new = [
                NewRequest(
                    person=person,
                    integrator=integrator,
                    document=kept.id,
                    name="contrato.pdf",
                    origin="operador",
                    created=self.now,
                    expires=changes.get("expires"),
                    preset=changes.get("preset"),
                    batch=changes.get("batch"),
                    turn=turn,
                    original_sha256=kept.original_sha256,
                )
                for person, turn in zip(people, turns, strict=True)
            ]
            return (await RequestStore(transaction).add_all([(new, NO_NOTE)]))[0]

    async def add_activation(
        self,
        signer: Signer,
        items: int = 1,
        claim_s: float = 60,
        hosts: Sequence[str] = (HOST,),
    ) -> ActivationId:
        """An activation over that many fresh requests, all `en_proceso`."""
        requests = [await self.add_request(signer.person) for _ in range(items)]
        return await self.begin(signer, requests, claim_s, hosts)

    async def begin(
        self,
        signer: Signer,
        requests: Sequence[RequestId],
        claim_s: float = 60,
        hosts: Sequence[str] = (HOST,),
    ) -> ActivationId:
        """An activation over requests that are `pendiente`, sealed to hosts."""
        activation = ActivationId(new_id())
        params = SignParameters()
        async with self.store.write() as transaction:
            credential = await CredentialStore(transaction).active(signer.person)
            assert credential is not None
            views = [
                await RequestStore(transaction).get(request) for request in requests
            ]
            begun = await ActivationStore(transaction).begin(
                Activation(
                    id=activation,
                    person=signer.person,
                    credential=credential.id,
                    factors=("pwd", "otp", "sign-pwd"),
                    created=self.now,
                    claim_by=self.now + timedelta(seconds=claim_s),
                    documents=tuple(
                        ActivationDocument(
                            seq, view.id, view.sha256, params, params.sha256(view.id)
                        )
                        for seq, view in enumerate(views)
                        if view is not None
                    ),
                ),
                [
                    Seal(host, ActivationFormat.WHOLE.epoch_at(self.now), b"sealed")
                    for host in hosts
                ],
            )
            assert begun == len(requests)
        return activation

    async def begin_one(
        self,
        transaction: Transaction,
        person: PersonId,
        request: RequestId,
        name: str,
    ) -> int:
        """Begin an activation of that name over one request, in whatever state.

        Returns:
            How many requests it moved.
        """
        credential = await CredentialStore(transaction).active(person)
        assert credential is not None
        params, sha256 = SignParameters(), "ab" * 32
        new = Activation(
            id=ActivationId(name),
            person=person,
            credential=credential.id,
            factors=(),
            created=self.now,
            claim_by=self.now,
            documents=(ActivationDocument(0, request, sha256, params, sha256),),
        )
        return await ActivationStore(transaction).begin(new, ())

    # -- how things stand ------------------------------------------------------

    async def view(self, request: RequestId) -> RequestView:
        """A request as it stands."""
        async with self.store.read() as transaction:
            view = await RequestStore(transaction).get(request)
        assert view is not None
        return view

    async def request_states(
        self, requests: Sequence[RequestId]
    ) -> list[tuple[RequestState, str]]:
        """State and reason of each."""
        views = [await self.view(request) for request in requests]
        return [(view.state, view.reason) for view in views]

    async def activation_state(
        self, activation: ActivationId
    ) -> tuple[ActivationState, str]:
        """State and reason of an activation."""
        async with self.store.read() as transaction:
            return await ActivationStore(transaction).state(activation)

    async def intents(self, activation: ActivationId) -> list[IntentRow]:
        """Every intended use of a key under an activation."""
        async with self.store.read() as transaction:
            return await ActivationStore(transaction).intents(activation)

    async def audit(self) -> list[AuditRow]:
        """The rows of every writer, each chain verified."""
        rows = []
        async with self.store.read() as transaction:
            for writer in await transaction.audit.writers():
                own = await transaction.audit.of_writer(writer)
                assert first_break(own) is None
                rows += own
        return rows

    async def audited(self) -> list[str]:
        """Every audited event, in order for one writer."""
        return [row.event.event.value for row in await self.audit()]


def signed_view(view: RequestView) -> SignedDocumentView:
    """A signed document of a request."""
    return SignedDocumentView(
        request=view.id,
        integrator=view.integrator,
        file_name=view.document_name,
        sha256="cd" * 32,
        size_bytes=2000,
        level="B-B",
    )


@functools.cache
def _migrated() -> dict[str, bytes]:
    """The files of a migrated data folder, made once in a process."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run_apart(migrate(settings_in(folder)))
        return {path.name: path.read_bytes() for path in folder.iterdir()}


async def lay_tables(settings: Settings) -> None:
    """Give a fresh data folder the file of SQLite, copied rather than migrated.

    The migrations themselves have tests of their own (`test_store_migrations`).

    Args:
        settings: of an installation; one that has its file keeps it, and another
            database than SQLite comes migrated (`migrated_url`).
    """
    if settings.database.url != "sqlite":
        return
    files = await asyncio.to_thread(_migrated)
    if any((settings.data_dir / name).exists() for name in files):
        return
    for name, content in files.items():
        (settings.data_dir / name).write_bytes(content)


@asynccontextmanager
async def open_record(settings: Settings) -> AsyncIterator[CoreFixture]:
    """The record of an installation, which needs no more than a folder."""
    await lay_tables(settings)
    clock = MovingClock()
    engines = open_engines(settings)
    parts = CoreFixture(
        settings, clock, Database(engines, clock, "test", ConnectionTurns(engines))
    )
    try:
        yield parts
    finally:
        await parts.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The setting `database.url` of a fresh, empty database, of each kind."""
    if request.param == "sqlite":
        return "sqlite"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def migrated_database(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Name of a PostgreSQL database that is migrated; to be copied."""
    name = postgres_server.create_database()
    settings = settings_in(tmp_path_factory.mktemp("unused"), postgres_server.url(name))
    run_apart(migrate(settings))
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def migrated_url(
    postgres_server: PostgresServer, migrated_database: str
) -> Iterator[str]:
    """URL of a fresh copy of the migrated PostgreSQL database."""
    name = postgres_server.create_database(migrated_database)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def reused_databases(
    postgres_server: PostgresServer,
) -> Iterator[list[ReusedDatabase]]:
    """Migrated databases that no test uses at the moment; who takes one returns it."""
    kept: list[ReusedDatabase] = []
    yield kept
    for database in kept:
        database.close()
        postgres_server.drop_database(database.name)


@pytest.fixture
def reused_url(
    postgres_server: PostgresServer,
    migrated_database: str,
    reused_databases: list[ReusedDatabase],
) -> Iterator[str]:
    """URL of a migrated PostgreSQL database as migrations leave it, used before."""
    if reused_databases:
        database = reused_databases.pop()
    else:
        name = postgres_server.create_database(migrated_database)
        database = ReusedDatabase(postgres_server.url(name))
    yield database.url
    if database.empty():
        reused_databases.append(database)
    else:
        database.close()
        postgres_server.drop_database(database.name)


@pytest.fixture(params=["sqlite", "postgresql"])
def each_url(request: pytest.FixtureRequest) -> str:
    """The setting `database.url` of a fresh database, of each kind.

    PostgreSQL comes migrated; SQLite's file is laid by who opens it (`lay_tables`).
    """
    if request.param == "sqlite":
        return "sqlite"
    url: str = request.getfixturevalue("reused_url")
    return url


@pytest.fixture
async def sqlite_core(tmp_path: Path) -> AsyncIterator[CoreFixture]:
    """A fresh record on SQLite, for tests that are not about the database."""
    async with open_record(settings_in(tmp_path)) as parts:
        yield parts


@pytest.fixture
async def postgres_core(tmp_path: Path, reused_url: str) -> AsyncIterator[CoreFixture]:
    """A fresh record on PostgreSQL."""
    async with open_record(settings_in(tmp_path, reused_url)) as parts:
        yield parts


@pytest.fixture(params=["sqlite", "postgresql"])
def core(request: pytest.FixtureRequest) -> CoreFixture:
    """A fresh record on each database."""
    name = "sqlite_core" if request.param == "sqlite" else "postgres_core"
    parts: CoreFixture = request.getfixturevalue(name)
    return parts


async def password_secret(
    passwords: SigningPasswords, password: bytes = PASSWORD
) -> SigningSecret:
    """What is kept of a password."""
    blank = SigningSecret(b"s" * 16, ARGON2, 1, "")
    found = await passwords.check(password, blank)
    pepper = passwords._peppers.ring().keys[blank.pepper_version]
    root = PasswordRoot(pepper, blank.salt, blank.argon2)
    _ROOTS[found.verifier_sha256] = (root, password)
    return replace(blank, verifier_sha256=found.verifier_sha256)


_ROOTS: dict[str, tuple[PasswordRoot, bytes]] = {}
"""Of these secrets, by verifier: what locks their people's keys."""


def _outer(made: Credential, secret: SigningSecret, installation: str) -> bytes:
    """`outer` that the password of such a secret opens; else what nothing opens."""
    if secret.verifier_sha256 not in _ROOTS:
        return made.outer
    root, password = _ROOTS[secret.verifier_sha256]
    _, unlock = root.derive(password, (made.id,))
    return lock_outer(unlock[made.id], b"permit" * 5, made.aad(installation))


async def begin_request(
    transaction: Transaction, request: RequestId, params_sha256: str
) -> None:
    """Have a request be `en_proceso` by an activation that nobody sees."""
    await transaction.connection.execute(
        update(signature_request)
        .where(signature_request.c.id == request)
        .values(
            state=RequestState.IN_PROGRESS.value,
            reason="",
            params_sha256=params_sha256,
            activation=new_id(),
        )
    )

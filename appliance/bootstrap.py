"""The one place where storage and services are built and closed, by hand.

A worker gets a `Core`: the record, documents, news, and no secret. A front (and
the command line) gets a `Front` on top of it, with the keys of its role's
secret files and the use cases that need them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arq.connections import ArqRedis, create_pool
from cryptography import x509

from appliance.domain.clock import Clock
from appliance.domain.ids import new_id
from appliance.domain.ports import (
    DocumentStore,
    Doorbell,
    LookupIndex,
    Outcomes,
    PdfInspector,
    Sealer,
)
from appliance.domain.records import Records, Store
from appliance.domain.trust import ExpiringKind
from appliance.domain.vocab import CertificateKind
from appliance.services.attempts import Attempts
from appliance.services.auto_renewal import AutoRenewal
from appliance.services.certificates import Certificates
from appliance.services.console import ConsoleLogin
from appliance.services.console_views import ConsoleViews
from appliance.services.credentials import Credentials
from appliance.services.csr import SigningRequests
from appliance.services.enrolment import Enrolment
from appliance.services.expiry import Expiry
from appliance.services.frame_identity import FrameIdentity
from appliance.services.frame_requests import FrameRequests
from appliance.services.frame_signing import FrameSigning
from appliance.services.frame_views import FrameViews
from appliance.services.framing import Framing
from appliance.services.health import Health
from appliance.services.hsm_tasks import HsmTasks
from appliance.services.intake import Intake
from appliance.services.integrators import Integrators
from appliance.services.invitations import Invitations
from appliance.services.issuing import Issuing
from appliance.services.links import Links
from appliance.services.login import Login
from appliance.services.officers import Officers
from appliance.services.own_authority import OwnAuthorityViews
from appliance.services.password_change import PasswordChange
from appliance.services.passwords import HashSlots, Passwords
from appliance.services.people import People
from appliance.services.progress import Progress
from appliance.services.publishing import Publishing
from appliance.services.reissue import Reissue
from appliance.services.requests import Requests
from appliance.services.revocation import Revocations
from appliance.services.revocation_pins import RevocationPins
from appliance.services.secret_rotation import SecretRotation
from appliance.services.self_revocation import SelfRevocation
from appliance.services.sessions import Sessions
from appliance.services.shielding import Shielded
from appliance.services.signing import Signing
from appliance.services.signing_hosts import SigningHosts
from appliance.services.signing_password import SigningPasswords
from appliance.services.status_answers import StatusAnswers
from appliance.services.throttle import Throttle
from appliance.services.tokens import Tokens
from appliance.services.trust import Trust
from appliance.settings import Settings
from appliance.storage import redis
from appliance.storage.documents import LocalDocuments
from appliance.storage.engines import Engines, open_engines
from appliance.storage.identities import PinnedIdentities
from appliance.storage.key_files import KeyFile
from appliance.storage.migrate import is_current
from appliance.storage.pki_files import read_certificate
from appliance.storage.sandbox import SandboxClient
from appliance.storage.secretbox import LookupKey, SecretBox
from appliance.storage.store import SqlStore

_SANDBOX_MARGIN_S = 5
"""The sandbox ends a late job itself; the client waits a little longer."""


@dataclass(frozen=True, slots=True)
class Bell:
    """How a worker hears rings."""

    queue: str
    job: str
    connect: Callable[[], Any]
    """Makes a connection; awaited, gives an arq pool."""
    listen: Callable[[], AsyncIterator[str | None]]
    """Messages of the bell's channel, for ever."""
    serialize: Callable[[dict[str, Any]], bytes]
    deserialize: Callable[[bytes], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Core:
    """What every role stands on."""

    settings: Settings
    clock: Clock
    process: str
    """Id of this process start."""
    store: Store
    documents: DocumentStore
    inspector: PdfInspector
    doorbell: Doorbell
    outcomes: Outcomes
    bell: Bell
    migrated: Callable[[], Any]
    """Awaited, tells whether the tables are of this version."""


@dataclass(frozen=True, slots=True)
class Front:
    """What a face, or the command line, stands on."""

    settings: Settings
    clock: Clock
    core: Core
    sealer: Sealer
    lookup: LookupIndex
    requests: Requests
    intake: Intake
    people: People
    signing: Signing
    login: Login
    tokens: Tokens
    links: Links
    health: Health
    tasks: HsmTasks
    certificates: Certificates
    revocations: Revocations
    trust: Trust
    expiry: Expiry
    credentials: Credentials
    revocation_pins: RevocationPins
    self_revocation: SelfRevocation
    signing_requests: SigningRequests
    status_answers: StatusAnswers
    integrators: Integrators
    sessions: Sessions
    progress: Progress
    """How a session of the frame goes on."""
    console: ConsoleLogin
    invitations: Invitations
    enrolment: Enrolment
    issuing: Issuing
    password_change: PasswordChange
    framing: Framing
    frame_signing: FrameSigning


@dataclass(frozen=True, slots=True)
class AdminFront:
    """What the console stands on: no pepper, so no signing password (design §1)."""

    settings: Settings
    clock: Clock
    core: Core
    sealer: Sealer
    lookup: LookupIndex
    requests: Requests
    intake: Intake
    health: Health
    tasks: HsmTasks
    certificates: Certificates
    revocations: Revocations
    trust: Trust
    expiry: Expiry
    credentials: Credentials
    revocation_pins: RevocationPins
    integrators: Integrators
    console: ConsoleLogin
    invitations: Invitations
    views: ConsoleViews
    officers: Officers
    reissue: Reissue
    own_authority: OwnAuthorityViews


@asynccontextmanager
async def open_core(settings: Settings, clock: Clock, role: str) -> AsyncIterator[Core]:
    """Build what every role stands on, and close it.

    Args:
        settings: of the installation.
        clock: the time.
        role: what this process is, for the audit.
    """
    redis_settings = redis.redis_settings(settings)
    engines = open_engines(settings)
    store = SqlStore(engines, clock, role)
    doorbell = redis.RedisDoorbell(redis_settings)
    outcomes = redis.RedisOutcomes(redis_settings)

    async def connect() -> ArqRedis:
        return await create_pool(
            redis_settings,
            job_serializer=redis.serialize,
            job_deserializer=redis.deserialize,
            default_queue_name=redis.QUEUE,
        )

    try:
        yield Core(
            settings=settings,
            clock=clock,
            process=new_id(),
            store=store,
            documents=LocalDocuments(settings.documents_dir),
            inspector=SandboxClient(
                settings.sandbox_socket, settings.sandbox.wall_s + _SANDBOX_MARGIN_S
            ),
            doorbell=doorbell,
            outcomes=outcomes,
            bell=Bell(
                queue=redis.QUEUE,
                job=redis.RING_JOB,
                connect=connect,
                listen=lambda: redis.listen(redis_settings, redis.BELL),
                serialize=redis.serialize,
                deserialize=redis.deserialize,
            ),
            migrated=lambda: _migrated(engines),
        )
    finally:
        await doorbell.close()
        await outcomes.close()
        await store.close()


@asynccontextmanager
async def open_secret_rotation(
    settings: Settings, clock: Clock
) -> AsyncIterator[SecretRotation]:
    """Build what replaces secret keys, and close it.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    sealer = SecretBox(KeyFile(settings.secrets.data_key_file))
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    async with open_core(settings, clock, "operator") as core:
        yield SecretRotation(core.store, sealer, lookup, clock)


async def _migrated(engines: Engines) -> bool:
    async with engines.reader.connect() as connection:
        return await is_current(connection)


def open_trust(core: Core) -> Trust:
    """The trust store of the installation.

    Args:
        core: open.
    """
    path = core.settings.root_file
    return Trust(core.store, core.clock, lambda: read_certificate(path))


def open_expiry(core: Core) -> Expiry:
    """Warnings of what ends, the CA's own certificates among it.

    Args:
        core: open.
    """
    settings = core.settings
    files = (settings.root_file, settings.ca_file)

    async def own(records: Records) -> list[tuple[ExpiringKind, bytes]]:
        found = [der for path in files if (der := read_certificate(path))]
        responders = await records.certificates.in_force(CertificateKind.OCSP)
        return [(ExpiringKind.CA, der) for der in found] + [
            (ExpiringKind.OCSP, one.der) for one in responders
        ]

    return Expiry(core.store, core.clock, own)


def open_auto_renewal(core: Core) -> AutoRenewal:
    """Renewals of the internal CA's certificates.

    Args:
        core: open.
    """
    settings = core.settings

    def ca_end() -> datetime | None:
        found = read_certificate(settings.ca_file)
        if found is None:
            return None
        return x509.load_der_x509_certificate(found).not_valid_after_utc

    certificates = Certificates(core.store, core.clock)
    return AutoRenewal(
        core.store, certificates, core.clock, settings.pki.renew_days, ca_end
    )


@asynccontextmanager
async def open_front(
    settings: Settings, clock: Clock, role: str
) -> AsyncIterator[Front]:
    """Build what a face stands on, and close it after what it began is done.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    secrets = settings.secrets
    sealer = SecretBox(KeyFile(secrets.data_key_file))
    lookup = LookupKey(KeyFile(secrets.lookup_key_file))
    slots = HashSlots()
    signing_passwords = SigningPasswords(KeyFile(secrets.pepper_file), slots)
    login_passwords = Passwords(slots)
    shielded = Shielded()
    async with open_core(settings, clock, role) as core:
        store = core.store
        tokens = Tokens(store, sealer, clock, settings)
        attempts = Attempts(
            store, signing_passwords, clock, settings.signing, settings.installation
        )
        hosts = SigningHosts(
            store,
            PinnedIdentities(settings.worker_identity_file),
            clock,
            settings.installation,
        )
        signing = Signing(
            store,
            attempts,
            hosts,
            core.doorbell,
            core.outcomes,
            clock,
            settings.signing,
            shielded,
        )
        issuing = Issuing(
            store,
            attempts,
            signing_passwords,
            login_passwords,
            hosts,
            clock,
            settings.hsm.key_algorithm,
            shielded,
        )
        progress = Progress(store, clock)
        sessions = Sessions(store, lookup, clock, settings)
        requests = Requests(store, core.documents, core.inspector, clock)
        intake = Intake(
            store, core.documents, core.inspector, clock, settings.documents
        )
        links = Links(store, lookup, clock, settings.signing.link_ttl_s)
        views = FrameViews(store, clock)
        throttle = Throttle(store, clock, settings.auth)
        pins = RevocationPins(store, clock, login_passwords)
        revocations = Revocations(store, clock)
        trust = open_trust(core)
        front = Front(
            settings=settings,
            clock=clock,
            core=core,
            sealer=sealer,
            lookup=lookup,
            requests=requests,
            intake=intake,
            people=People(
                store,
                sealer,
                lookup,
                login_passwords,
                signing_passwords,
                issuing,
                clock,
                settings.installation,
                pins,
                trial=settings.trial,
            ),
            signing=signing,
            login=Login(
                store, lookup, sealer, clock, login_passwords, tokens, settings.auth
            ),
            tokens=tokens,
            links=links,
            health=Health(store, core.inspector, clock, core.migrated),
            tasks=HsmTasks(store, clock, role, core.process),
            certificates=Certificates(store, clock),
            revocations=revocations,
            trust=trust,
            expiry=open_expiry(core),
            credentials=Credentials(store, clock, trust, revocations),
            revocation_pins=pins,
            signing_requests=SigningRequests(store, attempts, hosts, clock, shielded),
            self_revocation=SelfRevocation(store, lookup, throttle, pins, revocations),
            status_answers=StatusAnswers(
                store, clock, settings, Publishing(store, clock, settings.pki, role)
            ),
            integrators=Integrators(store, lookup, clock, settings.environment),
            sessions=sessions,
            progress=progress,
            console=ConsoleLogin(
                store, lookup, sealer, clock, login_passwords, settings
            ),
            invitations=Invitations(store, lookup, sealer, clock, settings),
            enrolment=Enrolment(
                store,
                lookup,
                sealer,
                clock,
                login_passwords,
                signing_passwords,
                issuing,
                settings.installation,
                pins,
            ),
            issuing=issuing,
            password_change=PasswordChange(
                store,
                attempts,
                signing_passwords,
                login_passwords,
                settings.installation,
                shielded,
            ),
            framing=Framing(
                store=store,
                documents=core.documents,
                inspector=core.inspector,
                clock=clock,
                sessions=sessions,
                progress=progress,
                identity=FrameIdentity(
                    store, lookup, sealer, clock, throttle, progress
                ),
                frame_requests=FrameRequests(store, lookup, clock, progress),
                intake=intake,
                requests=requests,
                views=views,
            ),
            frame_signing=FrameSigning(
                store,
                clock,
                views,
                signing,
                requests,
                links,
                settings.web.base_url,
            ),
        )
        listening = asyncio.create_task(core.outcomes.run())
        try:
            yield front
        finally:
            await shielded.close()
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening


@asynccontextmanager
async def open_admin(settings: Settings, clock: Clock) -> AsyncIterator[AdminFront]:
    """Build what the console stands on, and close it.

    Args:
        settings: of the installation; the pepper's file is not opened.
        clock: the time.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    role = "admin"
    sealer = SecretBox(KeyFile(settings.secrets.data_key_file))
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    passwords = Passwords(HashSlots())
    async with open_core(settings, clock, role) as core:
        store = core.store
        revocations = Revocations(store, clock)
        trust = open_trust(core)
        invitations = Invitations(store, lookup, sealer, clock, settings)
        yield AdminFront(
            settings=settings,
            clock=clock,
            core=core,
            sealer=sealer,
            lookup=lookup,
            requests=Requests(store, core.documents, core.inspector, clock),
            intake=Intake(
                store, core.documents, core.inspector, clock, settings.documents
            ),
            health=Health(store, core.inspector, clock, core.migrated),
            tasks=HsmTasks(store, clock, role, core.process),
            certificates=Certificates(store, clock),
            revocations=revocations,
            trust=trust,
            expiry=open_expiry(core),
            credentials=Credentials(store, clock, trust, revocations),
            revocation_pins=RevocationPins(store, clock, passwords),
            integrators=Integrators(store, lookup, clock, settings.environment),
            console=ConsoleLogin(store, lookup, sealer, clock, passwords, settings),
            invitations=invitations,
            views=ConsoleViews(store, sealer, lookup, clock),
            officers=Officers(store),
            reissue=Reissue(store, invitations, revocations),
            own_authority=OwnAuthorityViews(
                store,
                lambda: read_certificate(settings.root_file),
                lambda: read_certificate(settings.ca_file),
            ),
        )

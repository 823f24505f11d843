"""A face over real storage on SQLite, with fakes only where workers stand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyotp

from appliance.appearance.content import Stamping
from appliance.core.background import Shielded
from appliance.core.database.engines import open_engines
from appliance.core.messaging import connect, redis_settings
from appliance.core.rate_limit import Throttle
from appliance.core.secrets.password_hashing import HashSlots, Passwords
from appliance.core.secrets.sealed_box import LookupKey, SecretBox
from appliance.core.unit_of_work import Database
from appliance.documents.document_store import DocumentStore
from appliance.documents.download_links import DownloadLinks
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.identity import Integrator, NewPerson, Person, SigningSecret
from appliance.domain.ids import DocumentId, IntegratorId, PersonId, new_id
from appliance.domain.requests.new_request import NewRequest, StoredDocument
from appliance.domain.secrets import KeyRing
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.embedding.session import Sessions
from appliance.identity.access_tokens import AccessTokens
from appliance.identity.enrolment import Enrolment
from appliance.identity.invitations import Invitations
from appliance.identity.login import Login, email_index
from appliance.identity.people import People
from appliance.integration.batch_ordering import BackendBatchOrders
from appliance.integration.batches import BackendBatches
from appliance.integration.diagnosis import BackendDiagnosis
from appliance.integration.mails_for_tests import MailsForTests
from appliance.integration.ordering import BackendOrders
from appliance.integration.quotas import BackendQuotas
from appliance.integration.reminders import BackendReminders
from appliance.integration.requests import BackendRequests
from appliance.integration.signers import BackendSigners
from appliance.integration.signers_for_tests import SignersForTests
from appliance.integrators.api_key_auth import ApiKeyAuth
from appliance.integrators.call_rates import CallRates
from appliance.keys.change_password import PasswordChange
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_password import SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.pki.credentials import Credentials
from appliance.pki.csr import SigningRequests
from appliance.pki.ocsp_responder import OcspResponder
from appliance.pki.publication import Publishing
from appliance.pki.revocation import Revocations
from appliance.pki.revocation_pins import RevocationPins
from appliance.pki.self_revocation import SelfRevocation
from appliance.pki.tsa.authority import Timestamps
from appliance.pki.validation.trust_anchors import Trust
from appliance.requests.intake import Intake
from appliance.requests.presets import Presets
from appliance.requests.request_store import RequestStore
from appliance.requests.uploads import UploadedDocuments
from appliance.settings import Settings
from appliance.signing.signature_lookup import Verification
from appliance.signing.signer_quotas import SignerQuotas
from appliance.signing.signing_calls import SigningCalls
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoint_address import AddressRules
from appliance.webhooks.endpoints import WebhookEndpoints
from tests.support.factories.cached_hashes import CachedHashes
from tests.support.factories.core import core_settings
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.factories.fakes import (
    FakeBatchSigning,
    FakeHealth,
    FakeRequests,
    FakeSigning,
    FakeTasks,
    FakeWorkNotifier,
    FixedDocumentKeys,
    MovingClock,
    request_view,
)
from tests.support.factories.migrated_folder import lay_tables
from tests.support.factories.signing_host import INSTALLATION, SigningHost, issuing

CUIL = "20267565393"
EMAIL = "ana@example.com"
LOGIN_PASSWORD = "una clave de ingreso"
BASE_URL = "https://firma.example"
ORIGIN = "https://app.example"


def make_settings(folder: Path, **tables: dict[str, Any]) -> Settings:
    """Settings of a face in a folder: its limits are low, and the given ones count."""
    web = {
        "base_url": BASE_URL,
        "cors_origins": [ORIGIN],
        "body_limit_bytes": 4096,
        "body_timeout_s": 0.2,
    }
    auth = {"login_per_minute_address": 10_000, "login_per_minute_account": 10_000}
    usual: dict[str, Any] = {
        "web": web,
        "documents": {"limit_bytes": 8192},
        # A machine that does much else is slow, not wrong.
        "database": {"busy_timeout_s": 60},
        "auth": auth,
    }
    for name, given in tables.items():
        usual[name] = {**usual.get(name, {}), **given}
    return core_settings(folder, **usual)


@dataclass
class ApiServices:
    """The core of a face, as `ApiCore` has it, and what tests steer it by."""

    settings: Settings
    clock: MovingClock
    store: Database
    sealer: SecretBox
    lookup: LookupKey
    hashes: CachedHashes
    tokens: AccessTokens
    login: Login
    links: DownloadLinks
    api_keys: ApiKeyAuth
    backend_orders: BackendOrders
    backend_requests: BackendRequests
    backend_batch_orders: BackendBatchOrders
    backend_batches: BackendBatches
    backend_reminders: BackendReminders
    backend_signers: BackendSigners
    signers_for_tests: SignersForTests
    mails_for_tests: MailsForTests
    webhooks: WebhookEndpoints
    deliveries: DeliveryLog
    uploads: UploadedDocuments
    quotas: BackendQuotas
    signer_quotas: SignerQuotas
    signing_calls: SigningCalls
    backend_diagnosis: BackendDiagnosis
    sessions: Sessions
    invitations: Invitations
    enrolment: Enrolment
    trust: Trust
    credentials: Credentials
    signing_requests: SigningRequests
    revocation_pins: RevocationPins
    self_revocation: SelfRevocation
    password_change: PasswordChange
    signing_passwords: SigningPasswords
    host: SigningHost
    """Alive since the parts were opened."""
    tasks: FakeTasks
    status_answers: OcspResponder
    verification: Verification
    timestamps: Timestamps
    requests: FakeRequests
    signing: FakeSigning
    batch_signing: FakeBatchSigning
    health: FakeHealth

    async def add_person(
        self,
        cuil: str = CUIL,
        email: str = EMAIL,
        state: PersonState = PersonState.ACTIVE,
    ) -> tuple[PersonId, str]:
        """Record a person; gives the id and the TOTP seed."""
        person = PersonId(new_id())
        seed = pyotp.random_base32()
        new = NewPerson(
            person=Person(person, cuil, "Ana Pérez", state, "es"),
            email_sealed=b"-",
            email_index=email_index(self.lookup, email),
            vouched_by=VouchedBy.DEMO,
            login_phc=await self.hashes.hash(LOGIN_PASSWORD.encode()),
            totp_sealed=self.sealer.seal(
                seed.encode(), table="login_secret", row=person, column="totp_sealed"
            ),
            signing=SigningSecret(b"-" * 16, {}, 1, "00"),
        )
        async with self.store.write() as transaction:
            await PersonStore(transaction).add(new)
        return person, seed

    async def add_requests(self, person: PersonId, *numbers: int) -> None:
        """Record requests by number, of one integrator and document."""
        now = self.clock.now()
        async with self.store.write() as transaction:
            await PersonStore(transaction).add_integrator(
                Integrator(IntegratorId("i"), "demo", "Demo")
            )
            inspection = request_view(1, person).inspection
            document = await DocumentStore(transaction).add(
                StoredDocument(
                    DocumentId("d"), IntegratorId("i"), "00" * 32, inspection
                ),
                now,
            )
            for _ in range(max(numbers)):
                await RequestStore(transaction).add(
                    NewRequest(
                        person,
                        IntegratorId("i"),
                        document.id,
                        "a.pdf",
                        "operador",
                        now,
                        None,
                    )
                )

    async def bearer(self, person: PersonId, *, age_s: float = 0) -> dict[str, str]:
        """The Authorization header of a signed-in person."""
        at = self.clock.now()
        self.clock.forward(-age_s)
        since = self.clock.now()
        self.clock.at = at
        issued = await self.tokens.issue(person, ("pwd", "otp"), since)
        return {"Authorization": f"Bearer {issued.token}"}


@asynccontextmanager
async def open_api_services(
    folder: Path, inspector: FakeInspector | None = None, **tables: dict[str, Any]
) -> AsyncIterator[ApiServices]:
    """Build the parts over a fresh database, and close them."""
    settings = make_settings(folder, **tables)
    await lay_tables(settings)
    clock = MovingClock()
    store = Database(open_engines(settings), clock, "test")
    sealer, lookup = SecretBox(KeyRing.of(b"d" * 32)), LookupKey(KeyRing.of(b"l" * 32))
    documents = LocalBlobStore(folder / "documents", FixedDocumentKeys())
    inspector = inspector or FakeInspector(pages=1)
    intake = Intake(store, documents, inspector, clock, settings.documents)
    slots = HashSlots()
    passwords = Passwords(slots)
    tokens = AccessTokens(store, sealer, clock, settings)
    pins = RevocationPins(store, clock, passwords)
    revocations = Revocations(store, clock)
    trust = Trust(store, clock, lambda: None)
    signing_passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots())
    host = SigningHost(folder)
    await host.beat(store, clock.now())
    asks = issuing(store, clock, host.hosts(store, clock), signing_passwords, passwords)
    uploads = UploadedDocuments(store, documents, intake, clock, settings.documents)
    stamping = Stamping(settings.stamp, settings.verify_url)
    presets = Presets(store, documents, inspector, clock, stamping)
    # No Redis is there: it counts alone.
    rates = CallRates(partial(connect, redis_settings(settings)), clock)
    parts = ApiServices(
        settings=settings,
        clock=clock,
        store=store,
        sealer=sealer,
        lookup=lookup,
        hashes=CachedHashes(slots),
        tokens=tokens,
        login=Login(store, lookup, sealer, clock, passwords, tokens, settings.auth),
        links=DownloadLinks(store, lookup, clock, settings.signing.link_ttl_s),
        api_keys=ApiKeyAuth(store, lookup, clock, settings.environment),
        backend_signers=BackendSigners(
            store, Invitations(store, lookup, sealer, clock, settings), clock
        ),
        signers_for_tests=SignersForTests(
            store,
            People(
                store,
                sealer,
                lookup,
                passwords,
                signing_passwords,
                asks,
                clock,
                settings.installation,
                pins,
                trial=settings.trial,
            ),
            sealer,
            FakeTasks(),
            clock,
            settings.environment,
        ),
        mails_for_tests=MailsForTests(store, documents, sealer, clock, settings),
        webhooks=WebhookEndpoints(store, sealer, clock, AddressRules.of(settings)),
        deliveries=DeliveryLog(store, clock),
        backend_requests=BackendRequests(store, documents, clock),
        backend_orders=BackendOrders(store, intake, uploads, presets, lookup, clock),
        backend_batch_orders=BackendBatchOrders(
            store, intake, uploads, presets, lookup, clock
        ),
        backend_reminders=BackendReminders(store, clock, is_on=settings.mail.is_on),
        backend_batches=BackendBatches(store),
        uploads=uploads,
        backend_diagnosis=BackendDiagnosis(store, clock, has_mail=False),
        quotas=BackendQuotas(rates, settings.integration),
        signer_quotas=SignerQuotas(rates, settings.signing),
        signing_calls=SigningCalls(),
        sessions=Sessions(store, lookup, clock, settings),
        invitations=Invitations(store, lookup, sealer, clock, settings),
        enrolment=Enrolment(
            store,
            lookup,
            sealer,
            clock,
            passwords,
            signing_passwords,
            asks,
            settings.installation,
            pins,
        ),
        trust=trust,
        credentials=Credentials(store, clock, trust, revocations),
        signing_requests=SigningRequests(
            store,
            PasswordAttempts(
                store, signing_passwords, clock, settings.signing, INSTALLATION
            ),
            host.hosts(store, clock),
            clock,
            Shielded(),
        ),
        revocation_pins=pins,
        self_revocation=SelfRevocation(
            store,
            lookup,
            Throttle(store, lookup, clock, settings.auth),
            pins,
            revocations,
        ),
        password_change=PasswordChange(
            store,
            PasswordAttempts(
                store, signing_passwords, clock, settings.signing, INSTALLATION
            ),
            signing_passwords,
            passwords,
            INSTALLATION,
            Shielded(),
        ),
        signing_passwords=signing_passwords,
        host=host,
        tasks=FakeTasks(),
        status_answers=OcspResponder(
            store, clock, settings, Publishing(store, clock, settings.pki, "test"), 0.0
        ),
        verification=Verification(store),
        timestamps=Timestamps(
            store, clock, HsmTasks(store, clock, "api", new_id(), FakeWorkNotifier())
        ),
        requests=FakeRequests(),
        signing=FakeSigning(),
        batch_signing=FakeBatchSigning(),
        health=FakeHealth(),
    )
    try:
        yield parts
    finally:
        await store.close()

"""What a face, or the command line, stands on.

The keys of its role's secret files, and the use cases that need them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from appliance.admission.backend_quotas import BackendQuotas
from appliance.admission.call_rates import CallRates
from appliance.admission.login_throttle import Throttle
from appliance.admission.signer_quotas import SignerQuotas
from appliance.admission.signing_calls import SigningCalls
from appliance.admission.single_calls_here import SingleCallsHere
from appliance.appearance.content import Stamping
from appliance.bootstrap.certificates import (
    open_expiry,
    open_signer_roots,
    open_trust,
)
from appliance.bootstrap.core import (
    Core,
    OpensCore,
    data_sealer,
    document_sealer,
    open_core,
)
from appliance.bootstrap.hosts import open_belief
from appliance.console.expiry_notices import Expiry
from appliance.documents.download_links import DownloadLinks
from appliance.domain.clock import Clock
from appliance.domain.ports import (
    LookupIndex,
    Sealer,
)
from appliance.embedding.batch import EmbedSessionBatches
from appliance.embedding.ceremony import Ceremony
from appliance.embedding.identification import EmbedSessionIdentity
from appliance.embedding.request import EmbedSessionRequests
from appliance.embedding.session import Sessions
from appliance.embedding.session_steps import SessionSteps
from appliance.embedding.session_views import EmbedSessionViews
from appliance.embedding.signing import EmbedSessionSigning
from appliance.identity.access_tokens import AccessTokens
from appliance.identity.console_login import ConsoleLogin
from appliance.identity.console_users import ConsoleUsers
from appliance.identity.enrolment import Enrolment
from appliance.identity.failed_logins import FailedTries
from appliance.identity.help_requests import HelpRequests
from appliance.identity.invitations import Invitations
from appliance.identity.key_reissue import Reissue
from appliance.identity.login import Login
from appliance.identity.people import People
from appliance.integration.batches.backend_batches import BackendBatches
from appliance.integration.batches.checks import BatchChecks
from appliance.integration.batches.creation import BackendBatchOrders
from appliance.integration.diagnosis import BackendDiagnosis
from appliance.integration.requests.backend_requests import BackendRequests
from appliance.integration.requests.creation import BackendOrders
from appliance.integration.requests.reminders import BackendReminders
from appliance.integration.signers import BackendSigners
from appliance.integration.test_mode.mails import MailsForTests
from appliance.integration.test_mode.signers import SignersForTests
from appliance.integrators.api_key_auth import ApiKeyAuth
from appliance.integrators.integrators import Integrators
from appliance.integrators.logos import Logos
from appliance.keys.change_password import PasswordChange
from appliance.keys.count_clearings import CountClearings
from appliance.keys.health import Health, SharedHealth
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.password_hashing import HashSlots, Passwords
from appliance.keys.signing_hosts import SigningHosts
from appliance.keys.signing_password import SigningPasswords
from appliance.messaging.redis_link import connect, redis_settings
from appliance.pki.certificates import Certificates
from appliance.pki.credentials import Credentials
from appliance.pki.csr import SigningRequests
from appliance.pki.issuance import Issuance
from appliance.pki.kept_pins import KeptPins
from appliance.pki.ocsp_responder import OcspResponder
from appliance.pki.publication import Publishing
from appliance.pki.revocation import Revocations
from appliance.pki.revocation_pins import RevocationPins
from appliance.pki.self_revocation import SelfRevocation
from appliance.pki.tsa.authority import Timestamps
from appliance.pki.validation.trust_anchors import Trust
from appliance.record.edit_versions import EditVersions
from appliance.requests.inspection import Inspections
from appliance.requests.intake import Intake
from appliance.requests.presets import Presets
from appliance.requests.uploads import UploadedDocuments
from appliance.requests.waiting_documents import WaitingDocuments
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import Settings
from appliance.signing.reexamination import Reexamination
from appliance.signing.requests import Requests
from appliance.signing.sign import Signing
from appliance.signing.sign_batch import BatchSigning
from appliance.signing.signature_lookup import Verification
from appliance.signing.signature_proof import SignatureProofs
from appliance.system.background import Shielded
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoint_address import AddressRules
from appliance.webhooks.endpoints import WebhookEndpoints


@dataclass(frozen=True, slots=True)
class ServiceRegistry:
    """What a face, or the command line, stands on."""

    settings: Settings
    clock: Clock
    core: Core
    sealer: Sealer
    lookup: LookupIndex
    edits: EditVersions
    requests: Requests
    intake: Intake
    uploads: UploadedDocuments
    people: People
    signing: Signing
    batch_signing: BatchSigning
    login: Login
    tokens: AccessTokens
    links: DownloadLinks
    health: SharedHealth
    tasks: HsmTasks
    certificates: Certificates
    revocations: Revocations
    trust: Trust
    expiry: Expiry
    credentials: Credentials
    revocation_pins: RevocationPins
    kept_pins: KeptPins
    waiting_documents: WaitingDocuments
    self_revocation: SelfRevocation
    signing_requests: SigningRequests
    status_answers: OcspResponder
    timestamps: Timestamps
    integrators: Integrators
    api_keys: ApiKeyAuth
    backend_orders: BackendOrders
    backend_requests: BackendRequests
    backend_batch_orders: BackendBatchOrders
    backend_batches: BackendBatches
    backend_reminders: BackendReminders
    backend_signers: BackendSigners
    signers_for_tests: SignersForTests
    mails_for_tests: MailsForTests
    quotas: BackendQuotas
    signer_quotas: SignerQuotas
    signing_calls: SigningCalls
    backend_diagnosis: BackendDiagnosis
    webhooks: WebhookEndpoints
    deliveries: DeliveryLog
    sessions: Sessions
    progress: SessionSteps
    """How a session of the frame goes on."""
    console: ConsoleLogin
    console_users: ConsoleUsers
    failed_tries: FailedTries
    invitations: Invitations
    help_requests: HelpRequests
    enrolment: Enrolment
    issuing: Issuance
    reissue: Reissue
    password_change: PasswordChange
    framing: Ceremony
    frame_signing: EmbedSessionSigning
    frame_batches: EmbedSessionBatches
    verification: Verification
    logos: Logos


@asynccontextmanager
async def open_front(
    settings: Settings, clock: Clock, role: str, opens: OpensCore = open_core
) -> AsyncIterator[ServiceRegistry]:
    """Build what a face stands on, and close it after what it began is done.

    Args:
        settings: of the installation.
        clock: the time.
        role: what this process is, for the audit.
        opens: the core below, where another than this machine's is to be there.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    secrets = settings.secrets
    sealer = data_sealer(settings)
    lookup = LookupKey(KeyFile(secrets.lookup_key_file))
    slots = HashSlots()
    signing_passwords = SigningPasswords(KeyFile(secrets.pepper_file), slots)
    login_passwords = Passwords(slots)
    shielded = Shielded()
    async with opens(settings, clock, role, document_sealer(settings)) as core:
        store = core.store
        rates = CallRates(partial(connect, redis_settings(settings)), clock)
        tokens = AccessTokens(store, sealer, clock, settings)
        attempts = PasswordAttempts(
            store,
            signing_passwords,
            clock,
            settings.signing,
            settings.installation,
            CountClearings(lookup),
        )
        hosts = SigningHosts(store, open_belief(settings), clock)
        stamping = Stamping(settings.stamp, settings.verify_url)
        signing = Signing(
            store,
            attempts,
            hosts,
            stamping,
            core.work_notifier,
            core.completion_notifier,
            clock,
            settings.signing,
            shielded,
            Reexamination(
                store, Inspections(store, core.documents, core.inspector, clock)
            ),
            settings.signature_profile,
        )
        revocations = Revocations(store, clock)
        issuing = Issuance(
            store,
            attempts,
            hosts,
            clock,
            settings.hsm.key_algorithm,
            shielded,
        )
        progress = SessionSteps(store, clock)
        sessions = Sessions(store, lookup, clock, settings)
        requests = Requests(store, core.documents, core.inspector, clock, stamping)
        intake = Intake(
            store, core.documents, core.inspector, clock, settings.documents
        )
        invitations = Invitations(store, lookup, sealer, clock, settings)
        uploads = UploadedDocuments(
            store, core.documents, intake, clock, settings.documents
        )
        presets = Presets(store, core.documents, core.inspector, clock, stamping)
        links = DownloadLinks(store, lookup, clock, settings.signing.link_ttl_s)
        views = EmbedSessionViews(
            store, clock, settings.verify_url, trial=settings.trial
        )
        throttle = Throttle(store, lookup, clock, settings.auth)
        pins = RevocationPins(store, clock, login_passwords)
        kept_pins = KeptPins(store, sealer, clock)
        trust = open_trust(core)
        tasks = HsmTasks(store, clock, role, core.process, core.work_notifier)
        people = People(
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
        )
        frame_signing = EmbedSessionSigning(
            store,
            clock,
            views,
            signing,
            requests,
            links,
            settings.web.base_url,
            stamping,
            core.inspector,
        )
        front = ServiceRegistry(
            settings=settings,
            clock=clock,
            core=core,
            sealer=sealer,
            lookup=lookup,
            edits=EditVersions(store),
            requests=requests,
            intake=intake,
            uploads=uploads,
            people=people,
            signing=signing,
            batch_signing=BatchSigning(store, signing, clock, settings.signing),
            login=Login(
                store, lookup, sealer, clock, login_passwords, tokens, settings.auth
            ),
            tokens=tokens,
            links=links,
            health=SharedHealth(
                Health(
                    store,
                    core.inspector,
                    clock,
                    core.tables,
                    core.clock_check,
                    core.documents.check,
                    hosts,
                )
            ),
            tasks=tasks,
            certificates=Certificates(store, clock),
            revocations=revocations,
            trust=trust,
            expiry=open_expiry(core),
            credentials=Credentials(store, clock, trust, revocations, core.inspector),
            revocation_pins=pins,
            kept_pins=kept_pins,
            waiting_documents=WaitingDocuments(store, clock),
            signing_requests=SigningRequests(store, attempts, hosts, clock, shielded),
            self_revocation=SelfRevocation(store, lookup, throttle, pins, revocations),
            status_answers=OcspResponder(
                store,
                clock,
                settings,
                Publishing(store, clock, settings.pki, role, core.work_notifier),
            ),
            timestamps=Timestamps(store, clock, tasks),
            integrators=Integrators(store, lookup, clock, settings.environment),
            api_keys=ApiKeyAuth(store, lookup, clock, settings.environment),
            backend_signers=BackendSigners(store, invitations, clock),
            signers_for_tests=SignersForTests(
                store, people, sealer, tasks, clock, settings.environment, issuing
            ),
            mails_for_tests=MailsForTests(
                store, core.documents, sealer, clock, settings
            ),
            quotas=BackendQuotas(rates, settings.integration),
            signer_quotas=SignerQuotas(rates, settings.signing),
            signing_calls=SigningCalls(here=SingleCallsHere(settings.run_dir)),
            backend_diagnosis=BackendDiagnosis(
                store, clock, has_mail=settings.mail.is_on
            ),
            webhooks=WebhookEndpoints(store, sealer, clock, AddressRules.of(settings)),
            deliveries=DeliveryLog(store, clock),
            backend_requests=BackendRequests(store, core.documents, clock),
            backend_reminders=BackendReminders(store, clock, is_on=settings.mail.is_on),
            backend_orders=BackendOrders(
                store, intake, uploads, presets, lookup, clock
            ),
            backend_batch_orders=BackendBatchOrders(
                store,
                intake,
                uploads,
                BatchChecks(
                    store, uploads, lookup, clock, settings.documents.limit_bytes
                ),
                core.work_notifier,
                clock,
            ),
            backend_batches=BackendBatches(store, intake.passing, clock),
            sessions=sessions,
            progress=progress,
            console=ConsoleLogin(
                store, lookup, sealer, clock, login_passwords, settings
            ),
            failed_tries=FailedTries(store, lookup, sealer, clock),
            console_users=ConsoleUsers(
                store, lookup, sealer, clock, login_passwords, settings
            ),
            invitations=invitations,
            help_requests=HelpRequests(store, lookup, sealer, clock, settings),
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
                kept_pins,
            ),
            issuing=issuing,
            reissue=Reissue(store, invitations, revocations, clock),
            password_change=PasswordChange(
                store,
                attempts,
                signing_passwords,
                login_passwords,
                settings.installation,
                shielded,
                sealer,
            ),
            framing=Ceremony(
                store=store,
                documents=core.documents,
                inspector=core.inspector,
                clock=clock,
                sessions=sessions,
                progress=progress,
                identity=EmbedSessionIdentity(
                    store,
                    lookup,
                    sealer,
                    clock,
                    throttle,
                    progress,
                    settings.auth.codes_per_session,
                ),
                frame_requests=EmbedSessionRequests(store, lookup, clock, progress),
                intake=intake,
                requests=requests,
                views=views,
                settings=settings.documents,
            ),
            frame_signing=frame_signing,
            frame_batches=EmbedSessionBatches(
                store, frame_signing, signing, requests, progress, views
            ),
            verification=Verification(
                store,
                SignatureProofs(
                    store,
                    core.documents,
                    core.inspector,
                    open_signer_roots(core),
                    trust,
                    clock,
                ),
            ),
            logos=Logos(store, core.inspector, clock),
        )
        listening = asyncio.create_task(core.completion_notifier.run())
        try:
            yield front
        finally:
            await front.signing_calls.close()
            await shielded.close()
            await rates.close()
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

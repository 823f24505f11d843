"""What the console stands on: no pepper, so no signing password (design §1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from appliance.appearance.content import Stamping
from appliance.appearance.samples import StampSamples
from appliance.bootstrap.certificates import (
    open_credential_faults,
    open_expiry,
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
from appliance.console.views import ConsoleViews
from appliance.domain.clock import Clock
from appliance.domain.ports import (
    LookupIndex,
    Sealer,
)
from appliance.identity.console_login import ConsoleLogin
from appliance.identity.console_users import ConsoleUsers
from appliance.identity.failed_logins import FailedTries
from appliance.identity.help_requests import HelpDesk
from appliance.identity.invitations import Invitations
from appliance.identity.key_reissue import Reissue
from appliance.identity.registration_officers import RegistrationOfficers
from appliance.identity.totp_reset import PersonFactor
from appliance.integrators.integrators import Integrators
from appliance.integrators.logos import Logos
from appliance.keys.count_clearings import CountClearings
from appliance.keys.health import Health
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.password_hashing import HashSlots, Passwords
from appliance.keys.signing_hosts import SigningHosts
from appliance.mail.mail_views import MailViews
from appliance.pki.ca_files import read_certificate
from appliance.pki.ca_overview import OwnAuthorityViews
from appliance.pki.certificates import Certificates
from appliance.pki.credential_faults import CredentialFaults
from appliance.pki.credentials import Credentials
from appliance.pki.revocation import Revocations
from appliance.pki.revocation_pins import RevocationPins
from appliance.pki.validation.trust_anchors import Trust
from appliance.record.edit_versions import EditVersions
from appliance.requests.intake import Intake
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import Settings
from appliance.signing.request_again import RequestAgain
from appliance.signing.requests import Requests
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoint_address import AddressRules
from appliance.webhooks.endpoints import WebhookEndpoints


@dataclass(frozen=True, slots=True)
class AdminServiceRegistry:
    """What the console stands on: no pepper, so no signing password (design §1)."""

    settings: Settings
    clock: Clock
    core: Core
    sealer: Sealer
    lookup: LookupIndex
    edits: EditVersions
    requests: Requests
    request_again: RequestAgain
    intake: Intake
    health: Health
    tasks: HsmTasks
    certificates: Certificates
    revocations: Revocations
    trust: Trust
    expiry: Expiry
    credentials: Credentials
    credential_faults: CredentialFaults
    revocation_pins: RevocationPins
    integrators: Integrators
    webhooks: WebhookEndpoints
    deliveries: DeliveryLog
    console: ConsoleLogin
    console_users: ConsoleUsers
    failed_tries: FailedTries
    invitations: Invitations
    help_desk: HelpDesk
    views: ConsoleViews
    officers: RegistrationOfficers
    person_factor: PersonFactor
    reissue: Reissue
    logos: Logos
    stamp_samples: StampSamples
    own_authority: OwnAuthorityViews
    mails: MailViews


@asynccontextmanager
async def open_admin(
    settings: Settings, clock: Clock, opens: OpensCore = open_core
) -> AsyncIterator[AdminServiceRegistry]:
    """Build what the console stands on, and close it.

    Args:
        settings: of the installation; the pepper's file is not opened.
        clock: the time.
        opens: the core below, where another than this machine's is to be there.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    role = "admin"
    sealer = data_sealer(settings)
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    passwords = Passwords(HashSlots())
    async with opens(settings, clock, role, document_sealer(settings)) as core:
        store = core.store
        revocations = Revocations(store, clock)
        trust = open_trust(core)
        intake = Intake(
            store, core.documents, core.inspector, clock, settings.documents
        )
        stamping = Stamping(settings.stamp, settings.verify_url)
        invitations = Invitations(store, lookup, sealer, clock, settings)
        yield AdminServiceRegistry(
            settings=settings,
            clock=clock,
            core=core,
            sealer=sealer,
            lookup=lookup,
            edits=EditVersions(store),
            requests=Requests(
                store,
                core.documents,
                core.inspector,
                clock,
                stamping,
            ),
            request_again=RequestAgain(store, core.documents, intake, clock),
            intake=intake,
            health=Health(
                store,
                core.inspector,
                clock,
                core.tables,
                core.clock_check,
                core.documents.check,
                SigningHosts(store, open_belief(settings), clock),
            ),
            tasks=HsmTasks(store, clock, role, core.process, core.work_notifier),
            certificates=Certificates(store, clock),
            revocations=revocations,
            trust=trust,
            expiry=open_expiry(core),
            credentials=Credentials(store, clock, trust, revocations, core.inspector),
            credential_faults=open_credential_faults(core),
            revocation_pins=RevocationPins(store, clock, passwords),
            integrators=Integrators(store, lookup, clock, settings.environment),
            webhooks=WebhookEndpoints(store, sealer, clock, AddressRules.of(settings)),
            deliveries=DeliveryLog(store, clock),
            console=ConsoleLogin(store, lookup, sealer, clock, passwords, settings),
            failed_tries=FailedTries(store, lookup, sealer, clock),
            console_users=ConsoleUsers(
                store, lookup, sealer, clock, passwords, settings
            ),
            invitations=invitations,
            help_desk=HelpDesk(store, clock),
            views=ConsoleViews(store, sealer, lookup, clock),
            officers=RegistrationOfficers(store, clock, CountClearings(lookup)),
            person_factor=PersonFactor(store, sealer, clock, settings.installation),
            reissue=Reissue(store, invitations, revocations, clock),
            logos=Logos(store, core.inspector, clock),
            mails=MailViews(store),
            stamp_samples=StampSamples(store, core.inspector, clock, stamping),
            own_authority=OwnAuthorityViews(
                store,
                lambda: read_certificate(settings.root_file),
                lambda: read_certificate(settings.ca_file),
            ),
        )

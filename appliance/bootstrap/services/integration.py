"""Services of integrators: their keys, requests, batches, webhooks."""

from dataclasses import dataclass

from appliance.admission.backend_quotas import BackendQuotas
from appliance.bootstrap.services.foundation import Foundation
from appliance.bootstrap.services.identity import IdentityServices
from appliance.bootstrap.services.keys import KeyServices
from appliance.bootstrap.services.pki import PkiServices
from appliance.bootstrap.services.signing import SigningServices
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
from appliance.record.edit_versions import EditVersions
from appliance.requests.presets import Presets
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoint_address import AddressRules
from appliance.webhooks.endpoints import WebhookEndpoints


@dataclass(frozen=True)
class IntegrationServices:
    """What a face asks for integrators and their backends."""

    edits: EditVersions
    integrators: Integrators
    api_keys: ApiKeyAuth
    logos: Logos
    quotas: BackendQuotas
    backend_orders: BackendOrders
    backend_requests: BackendRequests
    backend_batch_orders: BackendBatchOrders
    backend_batches: BackendBatches
    backend_reminders: BackendReminders
    backend_signers: BackendSigners
    backend_diagnosis: BackendDiagnosis
    signers_for_tests: SignersForTests
    mails_for_tests: MailsForTests
    webhooks: WebhookEndpoints
    deliveries: DeliveryLog


def integration_services(
    on: Foundation,
    keys: KeyServices,
    pki: PkiServices,
    identity: IdentityServices,
    signing: SigningServices,
) -> IntegrationServices:
    """Make them."""
    store, clock, settings, core = on.store, on.clock, on.settings, on.core
    intake, uploads = signing.intake, signing.uploads
    presets = Presets(store, core.documents, core.inspector, clock, on.stamping)
    limit_bytes = settings.documents.limit_bytes
    return IntegrationServices(
        edits=EditVersions(store),
        integrators=Integrators(store, on.lookup, clock, settings.environment),
        api_keys=ApiKeyAuth(store, on.lookup, clock, settings.environment),
        logos=Logos(store, core.inspector, clock),
        quotas=BackendQuotas(on.rates, settings.integration),
        backend_orders=BackendOrders(store, intake, uploads, presets, on.lookup, clock),
        backend_requests=BackendRequests(store, core.documents, clock),
        backend_batch_orders=BackendBatchOrders(
            store,
            intake,
            uploads,
            BatchChecks(store, uploads, on.lookup, clock, limit_bytes),
            core.work_notifier,
            clock,
        ),
        backend_batches=BackendBatches(store, intake.passing, clock),
        backend_reminders=BackendReminders(store, clock, is_on=settings.mail.is_on),
        backend_signers=BackendSigners(store, identity.invitations, clock),
        backend_diagnosis=BackendDiagnosis(store, clock, has_mail=settings.mail.is_on),
        signers_for_tests=SignersForTests(
            store,
            identity.people,
            on.sealer,
            keys.tasks,
            clock,
            settings.environment,
            pki.issuing,
        ),
        mails_for_tests=MailsForTests(
            store, core.documents, on.sealer, clock, settings
        ),
        webhooks=WebhookEndpoints(store, on.sealer, clock, AddressRules.of(settings)),
        deliveries=DeliveryLog(store, clock),
    )

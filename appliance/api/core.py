"""What the API needs of the core: its services, as the routes use them.

`appliance.bootstrap.Front` is what is handed in. A service is a Protocol here where
tests have a double of it, since workers stand behind it
(`tests/support/factories/fakes.py`); so is the
whole (`tests.support.installation.api.ApiServices`). All others are the classes
themselves.
"""

from collections.abc import Callable
from typing import Protocol, cast

from quart import current_app

from appliance.admission.backend_quotas import BackendQuotas
from appliance.admission.signer_quotas import SignerQuotas
from appliance.admission.signing_calls import SigningCalls
from appliance.documents.download_links import DownloadLinks
from appliance.domain.clock import Clock
from appliance.domain.ids import BatchId, PersonId, RequestId, TaskId
from appliance.domain.ports import DocumentStream
from appliance.domain.requests.request import (
    Preview,
    RequestView,
    SignCommand,
    SignedDocumentView,
    SignedVersion,
    Signer,
    SignOutcome,
)
from appliance.domain.requests.signing_batch import BatchOutcome, SignBatch
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState
from appliance.embedding.session import Sessions
from appliance.identity.access_tokens import AccessTokens
from appliance.identity.enrolment import Enrolment
from appliance.identity.help_requests import HelpRequests
from appliance.identity.login import Login
from appliance.integration.batches.backend_batches import BackendBatches
from appliance.integration.batches.creation import BackendBatchOrders
from appliance.integration.diagnosis import BackendDiagnosis
from appliance.integration.requests.backend_requests import BackendRequests
from appliance.integration.requests.creation import BackendOrders
from appliance.integration.requests.reminders import BackendReminders
from appliance.integration.signers import BackendSigners
from appliance.integration.test_mode.mails import MailsForTests
from appliance.integration.test_mode.signers import SignersForTests
from appliance.integrators.api_key_auth import ApiKeyAuth
from appliance.keys.change_password import PasswordChange
from appliance.pki.credentials import Credentials
from appliance.pki.csr import SigningRequests
from appliance.pki.kept_pins import KeptPins
from appliance.pki.ocsp_responder import OcspResponder
from appliance.pki.revocation_pins import RevocationPins
from appliance.pki.self_revocation import SelfRevocation
from appliance.pki.tsa.authority import Timestamps
from appliance.record.edit_versions import EditVersions
from appliance.requests.uploads import UploadedDocuments
from appliance.requests.waiting_documents import WaitingDocuments
from appliance.settings import Settings
from appliance.signing.signature_lookup import Verification
from appliance.webhooks.delivery_log import DeliveryLog
from appliance.webhooks.endpoints import WebhookEndpoints

KEY = "rubrica.core"
"""Where the application keeps it."""


class RequestsService(Protocol):
    """Signature requests as their signer sees them."""

    async def list_for(
        self,
        person: PersonId,
        states: frozenset[RequestState],
        limit: int | None,
        before: RequestId | None,
    ) -> list[RequestView]:
        """A person's requests in those states, newest first."""
        ...

    async def detail(self, person: PersonId, request: RequestId) -> RequestView:
        """One of a person's requests, to be told to them.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`.
        """
        ...

    async def message(self, view: RequestView) -> str | None:
        """What the integrator wrote to the signers."""
        ...

    async def versions(self, view: RequestView) -> list[SignedVersion]:
        """Every version of a request's signed document, oldest first.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    async def original(
        self, person: PersonId, request: RequestId, *, goes_on: bool = False
    ) -> tuple[RequestView, DocumentStream]:
        """The document to be signed; `goes_on`: not from its beginning.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`.
        """
        ...

    async def preview(
        self, person: PersonId, request: RequestId, given: GivenParameters
    ) -> Preview:
        """Where the stamp would lie, and that page with it.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `PAGE_OUT_OF_RANGE`,
                `POSITION_OUT_OF_PAGE`.
        """
        ...

    async def reject(
        self, signer: Signer, request: RequestId, reason: str
    ) -> RequestView:
        """Have the signer refuse to sign.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `STATE`.
        """
        ...

    async def signed(
        self, person: PersonId | None, request: RequestId, sha256: str | None = None
    ) -> tuple[SignedDocumentView, DocumentStream]:
        """The signed document; `person` is None when a valid link was shown.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`, `NOT_SIGNED_YET`, `STATE`,
                `NOT_FOUND` for a version that there is not.
        """
        ...


class SigningService(Protocol):
    """Signing."""

    async def sign(
        self,
        command: SignCommand,
        signer: Signer,
        sent: str | None = None,
        waits: Callable[[], object] = ...,
    ) -> SignOutcome:
        """Carry out a signing command, or give what an equal one yielded."""
        ...


class BatchSigningService(Protocol):
    """Signing several requests by one command."""

    async def sign(
        self,
        batch: SignBatch,
        signer: Signer,
        waits: Callable[[], object] = ...,
    ) -> BatchOutcome:
        """Sign several requests, or give what signing them before gave."""
        ...

    async def progress(self, person: PersonId, batch: BatchId) -> BatchOutcome:
        """How a batch stands.

        Raises:
            ApplianceError: `LOTE_NOT_FOUND`.
        """
        ...


class HealthService(Protocol):
    """Whether the appliance can work."""

    async def ready(self) -> dict[str, str]:
        """Each part with `ok` or a reason."""
        ...


class TasksService(Protocol):
    """What workers do with the HSM."""

    async def wait(self, task: TaskId, timeout_s: float) -> dict[str, object]:
        """Wait until a task is done.

        Raises:
            ApplianceError: `TASK_FAILED`, or `HSM_UNAVAILABLE` after the time.
        """
        ...


class ApiCore(Protocol):
    """The services and settings of a running process."""

    @property
    def settings(self) -> Settings:
        """The settings file."""
        ...

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    @property
    def requests(self) -> RequestsService:
        """Signature requests."""
        ...

    @property
    def backend_orders(self) -> BackendOrders:
        """What integrators' backends ask for."""
        ...

    @property
    def backend_requests(self) -> BackendRequests:
        """Signature requests as their integrator sees them."""
        ...

    @property
    def backend_batch_orders(self) -> BackendBatchOrders:
        """Batches that integrators' backends ask for."""
        ...

    @property
    def backend_batches(self) -> BackendBatches:
        """Batches as their integrator sees them."""
        ...

    @property
    def backend_reminders(self) -> BackendReminders:
        """Reminders that integrators' backends ask for."""
        ...

    @property
    def backend_signers(self) -> BackendSigners:
        """People as an integrator's backend sees them."""
        ...

    @property
    def signers_for_tests(self) -> SignersForTests:
        """Test mode: signers that integrators' backends make up."""
        ...

    @property
    def mails_for_tests(self) -> MailsForTests:
        """Test mode: what those were written."""
        ...

    @property
    def edits(self) -> EditVersions:
        """Versions of what integrators change."""
        ...

    @property
    def webhooks(self) -> WebhookEndpoints:
        """Webhooks of integrators."""
        ...

    @property
    def deliveries(self) -> DeliveryLog:
        """What was sent to webhooks."""
        ...

    @property
    def signing(self) -> SigningService:
        """Signing."""
        ...

    @property
    def signing_calls(self) -> SigningCalls:
        """How many calls that sign there may be."""
        ...

    @property
    def batch_signing(self) -> BatchSigningService:
        """Signing several requests by one command."""
        ...

    @property
    def login(self) -> Login:
        """Sign-in."""
        ...

    @property
    def tokens(self) -> AccessTokens:
        """Access tokens."""
        ...

    @property
    def links(self) -> DownloadLinks:
        """Download links."""
        ...

    @property
    def sessions(self) -> Sessions:
        """Sessions of the frame."""
        ...

    @property
    def api_keys(self) -> ApiKeyAuth:
        """API keys as they are presented."""
        ...

    @property
    def backend_diagnosis(self) -> BackendDiagnosis:
        """How integrators are set up."""
        ...

    @property
    def quotas(self) -> BackendQuotas:
        """How much backends may call for."""
        ...

    @property
    def signer_quotas(self) -> SignerQuotas:
        """How often signers may call."""
        ...

    @property
    def uploads(self) -> UploadedDocuments:
        """Documents that integrators' backends upload."""
        ...

    @property
    def enrolment(self) -> Enrolment:
        """Enrolment by a link."""
        ...

    @property
    def kept_pins(self) -> KeptPins:
        """New PINs, kept for a while by the browser that was shown them."""
        ...

    @property
    def waiting_documents(self) -> WaitingDocuments:
        """Documents that wait for people, and where they are signed."""
        ...

    @property
    def help_requests(self) -> HelpRequests:
        """Help for people who cannot sign."""
        ...

    @property
    def credentials(self) -> Credentials:
        """People's credentials."""
        ...

    @property
    def signing_requests(self) -> SigningRequests:
        """Certificate signing requests."""
        ...

    @property
    def revocation_pins(self) -> RevocationPins:
        """PINs that revoke."""
        ...

    @property
    def self_revocation(self) -> SelfRevocation:
        """Revocation by PIN."""
        ...

    @property
    def password_change(self) -> PasswordChange:
        """Another signing password."""
        ...

    @property
    def tasks(self) -> TasksService:
        """HSM tasks."""
        ...

    @property
    def status_answers(self) -> OcspResponder:
        """What the internal CA publishes."""
        ...

    @property
    def verification(self) -> Verification:
        """Signatures by the code in their stamp."""
        ...

    @property
    def timestamps(self) -> Timestamps:
        """The internal timestamping authority."""
        ...

    @property
    def health(self) -> HealthService:
        """Readiness."""
        ...


def core() -> ApiCore:
    """The core of the application that serves the present request."""
    return cast("ApiCore", current_app.extensions[KEY])

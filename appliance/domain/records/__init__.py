"""What services read and write: one protocol a table group.

A `Store` gives `Records` for the length of a transaction. Adapters are the
`*_store` modules; each protocol has one contract test on both databases.
"""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from appliance.domain.audit import AuditEvent, AuditRow
from appliance.domain.records.activations import ActivationRecords
from appliance.domain.records.backlog import BacklogRecords
from appliance.domain.records.batches import BatchRecords
from appliance.domain.records.certificates import (
    CertificateRecords,
    PublicationRecords,
)
from appliance.domain.records.console import ConsoleRecords, EnrolmentRecords
from appliance.domain.records.console_views import ConsoleViewRecords
from appliance.domain.records.document_keys import DocumentKeyRecords
from appliance.domain.records.external_status import OutsideStatusRecords
from appliance.domain.records.hsm_tasks import (
    ActivationKeyRecords,
    TaskRecords,
    WorkerRecords,
)
from appliance.domain.records.idempotency import IdempotencyRecords
from appliance.domain.records.installation import InstallationRecords
from appliance.domain.records.integration import IntegratorRecords, SessionRecords
from appliance.domain.records.levels import UpkeepRecords
from appliance.domain.records.login import (
    JwtKeyRecords,
    LinkRecords,
    LoginRecords,
)
from appliance.domain.records.logos import LogoRecords
from appliance.domain.records.master_keys import MasterRecords
from appliance.domain.records.password_attempts import SlotRecords
from appliance.domain.records.people import CredentialRecords, PeopleRecords
from appliance.domain.records.requests import DocumentRecords, RequestRecords
from appliance.domain.records.revocations import RevocationRecords
from appliance.domain.records.secret_versions import SecretVersionRecords
from appliance.domain.records.session_documents import SessionDocumentRecords
from appliance.domain.records.trust import (
    ExpiryRecords,
    FormerCertificateRecords,
    RevocationPinRecords,
    TrustRecords,
)


class AuditRecords(Protocol):
    """The audit's rows."""

    def add(self, event: AuditEvent) -> None:
        """Have an event written as the last statement of this transaction.

        A transaction that rolls back leaves no row and no hole.
        """
        ...

    async def of_request(self, request: int) -> list[AuditRow]:
        """All rows that name a request, oldest first."""
        ...

    async def of_writer(self, writer: str) -> list[AuditRow]:
        """All rows of one process start, by number."""
        ...

    async def writers(self) -> list[str]:
        """Ids of all process starts that wrote something, oldest first."""
        ...


class Records(Protocol):
    """Every table group, within one transaction."""

    @property
    def people(self) -> PeopleRecords:
        """Persons, integrators and signing secrets."""
        ...

    @property
    def credentials(self) -> CredentialRecords:
        """Keys and certificates."""
        ...

    @property
    def certificates(self) -> CertificateRecords:
        """What the internal CA certified."""
        ...

    @property
    def revocations(self) -> RevocationRecords:
        """Certificates of it that are being revoked, or are."""
        ...

    @property
    def publications(self) -> PublicationRecords:
        """CRLs and OCSP answers."""
        ...

    @property
    def former_certificates(self) -> FormerCertificateRecords:
        """What credentials had before."""
        ...

    @property
    def revocation_pins(self) -> RevocationPinRecords:
        """PINs by which people revoke without signing in."""
        ...

    @property
    def trust(self) -> TrustRecords:
        """Roots of outside CAs."""
        ...

    @property
    def expiry(self) -> ExpiryRecords:
        """What ends soon, and what was said of it."""
        ...

    @property
    def installation(self) -> InstallationRecords:
        """What belongs to the installation as a whole."""
        ...

    @property
    def backlog(self) -> BacklogRecords:
        """What waits for a worker."""
        ...

    @property
    def outside(self) -> OutsideStatusRecords:
        """What outside CAs said of certificates."""
        ...

    @property
    def documents(self) -> DocumentRecords:
        """Documents and signed documents."""
        ...

    @property
    def document_keys(self) -> DocumentKeyRecords:
        """What integrators' documents are encrypted with."""
        ...

    @property
    def requests(self) -> RequestRecords:
        """Signature requests."""
        ...

    @property
    def logos(self) -> LogoRecords:
        """Logos of stamps."""
        ...

    @property
    def slots(self) -> SlotRecords:
        """Attempts at the signing password."""
        ...

    @property
    def activations(self) -> ActivationRecords:
        """Activations, items and intents."""
        ...

    @property
    def batches(self) -> BatchRecords:
        """Batches that are looked at again."""
        ...

    @property
    def tasks(self) -> TaskRecords:
        """HSM tasks."""
        ...

    @property
    def workers(self) -> WorkerRecords:
        """Who is alive, and how its HSM is."""
        ...

    @property
    def activation_keys(self) -> ActivationKeyRecords:
        """What signing hosts publish of their keys."""
        ...

    @property
    def logins(self) -> LoginRecords:
        """Sign-in secrets and attempts."""
        ...

    @property
    def jwt_keys(self) -> JwtKeyRecords:
        """Keys that sign tokens."""
        ...

    @property
    def links(self) -> LinkRecords:
        """Download links."""
        ...

    @property
    def integrators(self) -> IntegratorRecords:
        """Integrators, their API keys, and origins allowed and blocked."""
        ...

    @property
    def sessions(self) -> SessionRecords:
        """Sessions of the frame."""
        ...

    @property
    def session_documents(self) -> SessionDocumentRecords:
        """What those sessions have brought."""
        ...

    @property
    def console(self) -> ConsoleRecords:
        """Users of the console and their sessions."""
        ...

    @property
    def enrolments(self) -> EnrolmentRecords:
        """Enrolment links."""
        ...

    @property
    def console_views(self) -> ConsoleViewRecords:
        """What the console reads."""
        ...

    @property
    def masters(self) -> MasterRecords:
        """Wrapped keys by the master key that wraps them."""
        ...

    @property
    def secret_versions(self) -> SecretVersionRecords:
        """Values by the version of the key that made them."""
        ...

    @property
    def idempotency(self) -> IdempotencyRecords:
        """Idempotency keys."""
        ...

    @property
    def upkeep(self) -> UpkeepRecords:
        """What published documents still need."""
        ...

    @property
    def audit(self) -> AuditRecords:
        """The audit."""
        ...


class Store(Protocol):
    """The record of everything."""

    def read(self) -> AbstractAsyncContextManager[Records]:
        """Read a consistent state; nothing can be written.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

    def write(self) -> AbstractAsyncContextManager[Records]:
        """Change the record: all of it at the end, or nothing on any error.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        ...

"""The record of everything, as `appliance.domain.records.Store`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.console.view_store import SqlConsoleViews
from appliance.core.audit_store import SqlAudit
from appliance.core.backlog_store import SqlBacklog
from appliance.core.database import tables
from appliance.core.database.engines import Engines
from appliance.core.database.fair_connections import ConnectionTurns
from appliance.core.database.upsert import insert_into
from appliance.core.idempotency_store import SqlIdempotency
from appliance.core.installation_store import SqlInstallation
from appliance.core.secrets.secret_version_store import SqlSecretVersions
from appliance.documents.document_key_store import SqlDocumentKeys
from appliance.documents.document_store import SqlDocuments
from appliance.domain.audit import GENESIS
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import new_id
from appliance.embedding.session_document_store import SqlSessionDocuments
from appliance.embedding.session_store import SqlSessions
from appliance.identity.console_user_store import SqlConsole, SqlEnrolments
from appliance.identity.login_store import SqlJwtKeys, SqlLinks, SqlLogins
from appliance.identity.person_store import SqlPeople
from appliance.integrators.integrator_store import SqlIntegrators
from appliance.integrators.logo_store import SqlLogos
from appliance.keys.credential_store import SqlCredentials
from appliance.keys.hsm_task_store import SqlTasks
from appliance.keys.master_key_store import SqlMasters
from appliance.keys.password_attempt_store import SqlSlots
from appliance.keys.worker_store import SqlActivationKeys, SqlWorkers
from appliance.pki.certificate_store import SqlCertificates
from appliance.pki.publication_store import SqlPublications
from appliance.pki.revocation_store import SqlRevocations
from appliance.pki.validation.external_status_store import SqlOutsideStatus
from appliance.pki.validation.trust_store import (
    SqlExpiry,
    SqlFormerCertificates,
    SqlRevocationPins,
    SqlTrust,
)
from appliance.signing.activations.activation_store import SqlActivations
from appliance.signing.batch_store import SqlBatches
from appliance.signing.level_maintenance_store import SqlUpkeep
from appliance.signing.request_store import SqlRequests

_log = structlog.get_logger(__name__)
_AWAY = (OperationalError, InterfaceError, PoolTimeoutError, OSError)
_AWAY_STATES = ("08", "40", "53", "57")
"""Classes of SQLSTATE: connection, deadlock, resources, a stop by an operator."""

_DENIED = "42501"
"""SQLSTATE of what the user of the database has no right to."""


class SqlRecords:
    """Every table group over one connection."""

    def __init__(self, connection: AsyncConnection, writer: str, clock: Clock) -> None:
        self.people = SqlPeople(connection, clock)
        self.credentials = SqlCredentials(connection, clock)
        self.certificates = SqlCertificates(connection, clock)
        self.revocations = SqlRevocations(connection)
        self.publications = SqlPublications(connection)
        self.former_certificates = SqlFormerCertificates(connection)
        self.revocation_pins = SqlRevocationPins(connection)
        self.trust = SqlTrust(connection)
        self.expiry = SqlExpiry(connection)
        self.outside = SqlOutsideStatus(connection)
        self.backlog = SqlBacklog(connection)
        self.installation = SqlInstallation(connection)
        self.documents = SqlDocuments(connection)
        self.document_keys = SqlDocumentKeys(connection)
        self.requests = SqlRequests(connection)
        self.logos = SqlLogos(connection)
        self.slots = SqlSlots(connection)
        self.activations = SqlActivations(connection)
        self.batches = SqlBatches(connection)
        self.tasks = SqlTasks(connection)
        self.workers = SqlWorkers(connection)
        self.activation_keys = SqlActivationKeys(connection)
        self.logins = SqlLogins(connection)
        self.jwt_keys = SqlJwtKeys(connection)
        self.links = SqlLinks(connection)
        self.integrators = SqlIntegrators(connection)
        self.sessions = SqlSessions(connection)
        self.session_documents = SqlSessionDocuments(connection)
        self.console = SqlConsole(connection)
        self.enrolments = SqlEnrolments(connection)
        self.console_views = SqlConsoleViews(connection)
        self.masters = SqlMasters(connection)
        self.secret_versions = SqlSecretVersions(connection)
        self.idempotency = SqlIdempotency(connection)
        self.upkeep = SqlUpkeep(connection)
        self.audit = SqlAudit(connection, writer, clock)


class SqlStore:
    """Transactions over the engines of one process.

    Args:
        engines: where to read and write; closed by `close`.
        clock: the time of audit rows.
        role: what this process is, for its audit writer.
    """

    def __init__(self, engines: Engines, clock: Clock, role: str) -> None:
        self._engines = engines
        self._clock = clock
        self._role = role
        self._user = engines.reader.url.username
        self._writer = new_id()
        self._registered = False
        self._registering = asyncio.Lock()
        self._turns = ConnectionTurns(engines)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[SqlRecords]:
        """Read a consistent state; nothing can be written.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
        """
        with store_faults(self._user):
            async with (
                self._turns.reading(),
                self._engines.reader.connect() as connection,
            ):
                yield SqlRecords(connection, self._writer, self._clock)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[SqlRecords]:
        """Change the record: all of it at the end, or nothing on any error.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
        """
        with store_faults(self._user):
            await self._register()
            async with (
                self._turns.writing(),
                self._engines.writing() as connection,
            ):
                records = SqlRecords(connection, self._writer, self._clock)
                yield records
                # Last, so that the writer's row is locked for the shortest
                # time and a rollback leaves no hole in its numbers.
                await records.audit.flush()

    async def _register(self) -> None:
        """Give this process start its row, once."""
        # Whoever writes second waits until the row is committed.
        async with self._registering:
            if self._registered:
                return
            async with self._engines.writing() as connection:
                # A caller that left between commit and return left the row.
                await connection.execute(
                    insert_into(connection, tables.audit_writer)
                    .values(
                        id=self._writer,
                        role=self._role,
                        started=self._clock.now(),
                        n=0,
                        hash=GENESIS,
                    )
                    .on_conflict_do_nothing()
                )
            self._registered = True

    async def close(self) -> None:
        """Close every connection."""
        await self._engines.dispose()


class store_faults:  # noqa: N801 (used as a statement, like contextlib.suppress)
    """Turn a database that is away into `STORE_UNAVAILABLE`.

    So it does with a right that is missing, which is logged.

    Args:
        user: of the database, for the log.
    """

    def __init__(self, user: str | None = None) -> None:
        self._user = user

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, kind: object, exc: BaseException | None, trace: object) -> None:
        if isinstance(exc, IntegrityError):
            return
        if (denied := denied_right(exc)) is not None:
            # Not away, and no retry will do: an operator has to look.
            _log.error("store.permission_denied", user=self._user, **denied)
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        if isinstance(exc, _AWAY) or (isinstance(exc, DBAPIError) and _away(exc)):
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc


def denied_right(exc: BaseException | None) -> dict[str, str] | None:
    """What a right is missing for, in PostgreSQL's words, and what to do about it.

    Args:
        exc: of a statement.

    Returns:
        Fields for the log, or None for any other error.
    """
    if not isinstance(exc, DBAPIError) or exc.statement is None:
        return None
    if getattr(exc.orig, "sqlstate", None) != _DENIED:
        return None
    # "permission denied for table person": asyncpg's own error below SQLAlchemy's.
    told = str(getattr(exc.orig, "__cause__", None) or exc.orig)
    return {
        "reason": told.partition("\n")[0],
        "statement": exc.statement.split(maxsplit=1)[0],
        "remedy": "run rubrica migrate",
    }


def _away(exc: DBAPIError) -> bool:
    """Whether an error is none of the statement's: asyncpg's come in one kind."""
    # Without a statement it was refused while connecting: the server starts,
    # stops, or takes no more.
    return (
        exc.connection_invalidated
        or exc.statement is None
        or str(getattr(exc.orig, "sqlstate", "")).startswith(_AWAY_STATES)
    )

"""Services of integrators and sessions over the record, on either database.

async with open_integrator_services(folder, url) as services:
    await services.integrators.create("operator", "acme", "ACME S.A.")
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.core.database.engines import open_engines
from appliance.core.secrets.password_hashing import HashSlots, Passwords
from appliance.core.secrets.sealed_box import LookupKey, SecretBox
from appliance.core.unit_of_work import Database
from appliance.domain.audit import AuditEvent
from appliance.domain.secrets import KeyRing, KeySource
from appliance.domain.vocab import EventKind
from appliance.embedding.session import Sessions
from appliance.embedding.session_steps import SessionSteps
from appliance.identity.console_login import ConsoleLogin
from appliance.identity.console_users import ConsoleUsers
from appliance.identity.enrolment import Enrolment
from appliance.identity.invitations import Invitations
from appliance.integrators.api_key_auth import ApiKeyAuth
from appliance.integrators.integrators import Integrators
from appliance.keys.signing_password import SigningPasswords
from appliance.pki.revocation_pins import RevocationPins
from appliance.settings import Settings
from tests.support.factories.core import core_settings
from tests.support.factories.fakes import MovingClock
from tests.support.factories.migrated_folder import lay_tables
from tests.support.factories.signing_host import SigningHost, issuing


@dataclass
class IntegratorServices:
    """Services over one database, and the clock they are told the time by."""

    settings: Settings
    clock: MovingClock
    store: Database
    sealer: SecretBox
    lookup: LookupKey
    integrators: Integrators
    api_keys: ApiKeyAuth
    sessions: Sessions
    progress: SessionSteps
    console: ConsoleLogin
    console_users: ConsoleUsers
    invitations: Invitations
    enrolment: Enrolment
    host: SigningHost
    """Alive since the desk was opened."""

    async def audited_names(self) -> list[str]:
        """Kinds of everything that was recorded, in order."""
        async with self.store.read() as transaction:
            writers = await transaction.audit.writers()
            rows = [
                row for w in writers for row in await transaction.audit.of_writer(w)
            ]
        return [row.event.event.value for row in rows]

    async def audited(self, kind: EventKind) -> list[AuditEvent]:
        """What was recorded of a kind, in order."""
        async with self.store.read() as transaction:
            writers = await transaction.audit.writers()
            rows = [
                row for w in writers for row in await transaction.audit.of_writer(w)
            ]
        return [row.event for row in rows if row.event.event is kind]


@asynccontextmanager
async def open_integrator_services(
    folder: Path,
    url: str = "sqlite",
    keys: tuple[KeySource, KeySource] | None = None,
    **top: Any,
) -> AsyncIterator[IntegratorServices]:
    """Build the services over a database that is brought to this version.

    Args:
        folder: for its files.
        url: of the database.
        keys: the data key and the lookup key, where the usual ones will not do.
        top: settings.
    """
    settings = core_settings(folder, url, **{"trial": True, **top})
    await lay_tables(settings)
    clock = MovingClock()
    store = Database(open_engines(settings), clock, "test")
    data, index = keys or (KeyRing.of(b"d" * 32), KeyRing.of(b"l" * 32))
    sealer, lookup = SecretBox(data), LookupKey(index)
    slots = HashSlots()
    passwords = Passwords(slots)
    signing_passwords = SigningPasswords(KeyRing.of(b"p" * 32), slots)
    host = SigningHost(folder)
    await host.beat(store, clock.now())
    asks = issuing(store, clock, host.hosts(store, clock), signing_passwords, passwords)
    try:
        yield IntegratorServices(
            settings,
            clock,
            store,
            sealer,
            lookup,
            Integrators(store, lookup, clock, settings.environment),
            ApiKeyAuth(store, lookup, clock, settings.environment),
            Sessions(store, lookup, clock, settings),
            SessionSteps(store, clock),
            ConsoleLogin(store, lookup, sealer, clock, passwords, settings),
            ConsoleUsers(store, lookup, sealer, clock, passwords, settings),
            Invitations(store, lookup, sealer, clock, settings),
            Enrolment(
                store,
                lookup,
                sealer,
                clock,
                passwords,
                signing_passwords,
                asks,
                settings.installation,
                RevocationPins(store, clock, passwords),
            ),
            host,
        )
    finally:
        await store.close()

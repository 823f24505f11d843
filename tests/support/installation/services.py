"""Every service of a face over a fresh record, as the product's bootstrap opens them.

async with open_services(settings_in(folder, trial=True)) as services:
    await services.integrators.create("operator", "acme", "ACME S.A.")

Played are the sandbox, and the news from and to workers; of those a signing host is
alive.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from appliance.bootstrap import Core, ServiceRegistry, open_core, open_front
from appliance.bootstrap.core import OpensCore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.ports import PdfInspector, Sealer
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database
from appliance.settings import Settings
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.factories.fakes import (
    FakeCompletionNotifier,
    FakeWorkNotifier,
    MovingClock,
)
from tests.support.factories.signing_host import SigningHost
from tests.support.installation.record import CoreFixture, lay_tables
from tests.support.installation.settings import write_secrets


@dataclass(frozen=True)
class Services(ServiceRegistry):
    """What a face stands on, and what tests steer it by."""

    clock: MovingClock
    record: CoreFixture
    host: SigningHost
    """Alive since the services were opened."""

    @property
    def store(self) -> Database:
        """The record's."""
        return self.record.store

    async def audited(self, kind: EventKind) -> list[AuditEvent]:
        """What was recorded of a kind, in order."""
        rows = await self.record.audit()
        return [row.event for row in rows if row.event.event is kind]


def parts_of(registry: ServiceRegistry) -> dict[str, Any]:
    """Each service by its name, to make more of them."""
    return {name: getattr(registry, name) for name in registry.__dataclass_fields__}


def playing(
    inspector: PdfInspector,
    work: FakeWorkNotifier | None = None,
    completion: FakeCompletionNotifier | None = None,
) -> OpensCore:
    """What opens a core where neither sandbox nor Redis is."""

    @asynccontextmanager
    async def opens(
        settings: Settings, clock: Clock, role: str, sealer: Sealer | None = None
    ) -> AsyncIterator[Core]:
        async with open_core(settings, clock, role, sealer) as core:
            yield replace(
                core,
                inspector=inspector,
                work_notifier=work or FakeWorkNotifier(),
                completion_notifier=completion or FakeCompletionNotifier(),
                redis_answers=_not_asked,
            )

    return opens


async def _not_asked() -> None:
    """No answer of a Redis that is not there."""


@asynccontextmanager
async def open_services(
    settings: Settings, inspector: PdfInspector | None = None
) -> AsyncIterator[Services]:
    """Open the services over a fresh database.

    Args:
        settings: whose secrets are made where they are not there.
        inspector: the sandbox; None for one that sees one page in every PDF.
    """
    await lay_tables(settings)
    write_secrets(settings)
    clock, work, completion = (
        MovingClock(),
        FakeWorkNotifier(),
        FakeCompletionNotifier(),
    )
    opens = playing(inspector or FakeInspector(pages=1), work, completion)
    async with open_front(settings, clock, "test", opens) as registry:
        store = registry.core.store
        record = CoreFixture(settings, clock, store, completion, work)
        host = SigningHost(settings.data_dir)
        await host.beat(store, clock.now())
        parts = parts_of(registry)
        yield Services(**parts, record=record, host=host)

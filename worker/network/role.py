"""What the role with a network has: TSAs and CAs outside, and a mail server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from appliance.bootstrap import Core, open_trust
from appliance.domain.vocab import Environment
from appliance.integrators.event_outbox import EventTaker
from appliance.mail.fan_out import MailFanOut
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication import Publishing
from appliance.pki.validation.validation_material import ValidationSource
from appliance.signing.outside_material import MaterialWork
from worker.network.guarded_http import GuardedHttp
from worker.network.material_fetcher import MaterialFetcher, OutsideServers
from worker.network.revocation_status import ExternalStatus
from worker.network.trusted_roots import anchors_of
from worker.network.tsa_client import open_tsa_client
from worker.network.tsa_failover import OutsideAuthorities

if TYPE_CHECKING:
    from worker.mail.sender import MailSender


@dataclass(frozen=True, slots=True)
class Outside:
    """What of it others use."""

    fetcher: MaterialFetcher
    materials: MaterialWork
    mails: "MailSender | None"
    """None where mail is off."""


@asynccontextmanager
async def open_outside(core: Core, slot: str) -> AsyncIterator[Outside]:
    """Build it for the chores worker, and close it.

    Args:
        core: open, with the document key.
        slot: of this worker.

    Raises:
        SettingsError: a file of a TSA cannot be used, or the CA's are missing.
    """
    settings, clock, store = core.settings, core.clock, core.store
    async with (
        open_tsa_client(core) as client,
        GuardedHttp(settings.revocation) as http,
    ):
        status = ExternalStatus(settings.revocation, http, store, clock)
        source = ValidationSource(
            store,
            clock,
            read_authority(settings),
            Publishing(store, clock, settings.pki, slot, core.work_notifier),
            outside=status,
            anchors=anchors_of(open_trust(core)),
        )
        work = MaterialWork(store, clock, settings.signing, slot, core.process)
        fetcher = MaterialFetcher(
            work,
            OutsideServers(OutsideAuthorities(client), status, source),
            core.work_channel,
            core.work_notifier,
            settings.signing,
        )
        yield Outside(fetcher, work, _mail_sender(core, slot))


def mail_takers(core: Core) -> list[EventTaker]:
    """What makes mails of events; where mail is off, those to test signers alone."""
    if core.settings.mail.is_on:
        return [MailFanOut(core.clock)]
    if core.settings.environment is Environment.PREPROD:
        return [MailFanOut(core.clock, only_tests=True)]
    return []


def _mail_sender(core: Core, slot: str) -> "MailSender | None":
    """What sends mails; None where no server is set.

    Raises:
        SettingsError: a file that its settings name cannot be used.
    """
    if not core.settings.mail.is_on:
        return None
    # Templates and catalogues, which no other worker needs.
    from worker.mail.opening import mail_sender  # noqa: PLC0415

    return mail_sender(core, slot)

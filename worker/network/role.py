"""What the role with a network has: TSAs and CAs outside, and a finish phase."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from appliance.bootstrap import Core, open_trust
from appliance.domain.trust_store import AnchorPurpose
from appliance.domain.vocab import Environment
from appliance.integrators.event_outbox import EventTaker
from appliance.keys.hsm_tasks import HsmTasks
from appliance.mail.fan_out import MailFanOut
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication import Publishing
from appliance.pki.tsa.authority import Timestamps
from appliance.pki.validation.validation_material import ValidationSource
from appliance.requests.inspection import Inspections
from appliance.signing.claims import Claims
from appliance.signing.level_maintenance import UpkeepWork
from appliance.signing.signing_order import SigningOrder
from worker.network.guarded_http import GuardedHttp
from worker.network.revocation_status import ExternalStatus
from worker.network.timestamp_authorities import NamedAuthorities
from worker.network.tsa_client import open_tsa_client
from worker.signing.completion import Completion
from worker.signing.level_extension import Levels
from worker.signing.level_maintenance import LevelUpkeep
from worker.signing.network_completion import NetworkCompletion

if TYPE_CHECKING:
    from worker.mail.sender import MailSender


@dataclass(frozen=True, slots=True)
class Outside:
    """What of it others use."""

    completion: NetworkCompletion
    upkeep: LevelUpkeep
    """Of what was signed with them."""
    mails: "MailSender | None"
    """None where mail is off."""


@asynccontextmanager
async def open_outside(core: Core, slot: str) -> AsyncIterator[Outside]:
    """Build it for the chores worker, and close it.

    Its TSAs are those that profiles name; the installation's own one is asked by an
    HSM task.

    Args:
        core: open, with the document key.
        slot: of this worker.

    Raises:
        SettingsError: a file of a TSA cannot be used, or the CA's are missing.
    """
    settings, clock, store = core.settings, core.clock, core.store
    trust = open_trust(core)

    async def anchors() -> Sequence[bytes]:
        return [
            *await trust.roots(AnchorPurpose.SIGNERS),
            *await trust.roots(AnchorPurpose.TIMESTAMPS),
        ]

    tasks = HsmTasks(store, clock, slot, core.process, core.work_notifier)
    own = Timestamps(store, clock, tasks)
    async with (
        open_tsa_client(core) as client,
        GuardedHttp(settings.revocation) as http,
    ):
        source = ValidationSource(
            store,
            clock,
            read_authority(settings),
            Publishing(store, clock, settings.pki, slot, core.work_notifier),
            outside=ExternalStatus(settings.revocation, http, store, clock),
            anchors=anchors,
        )
        levels = Levels(
            own,
            source,
            clock,
            settles=timedelta(seconds=settings.pki.ocsp_validity_s),
            renewal=timedelta(days=settings.profile.renew_days),
            outside=NamedAuthorities(own, client),
        )
        claims = Claims(
            store,
            core.completion_notifier,
            clock,
            settings.signing,
            slot,
            core.process,
            outside=True,
        )
        inspections = Inspections(store, core.documents, core.inspector, clock)
        turns = SigningOrder(store, inspections, clock)
        completion = Completion(
            claims,
            core.documents,
            turns,
            levels,
            settings.signature_profile,
            source.is_internal,
        )
        yield Outside(
            NetworkCompletion(claims, completion, core.work_channel, settings.signing),
            LevelUpkeep(
                UpkeepWork(store, clock, slot, outside=True), core.documents, levels
            ),
            _mail_sender(core, slot),
        )


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

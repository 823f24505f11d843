"""What the frame's routes need of the running process."""

from dataclasses import dataclass
from typing import Final, cast

from quart import current_app, g

from appliance.admission.address_rates import AddressRate
from appliance.admission.signing_calls import SigningCalls
from appliance.domain.clock import Clock
from appliance.domain.integrators.integrators import EmbedSession
from appliance.embedding.batch import EmbedSessionBatches
from appliance.embedding.ceremony import Ceremony
from appliance.embedding.session import Sessions
from appliance.embedding.signing import EmbedSessionSigning
from appliance.identity.help_requests import HelpRequests
from appliance.integrators.logos import Logos
from appliance.keys.health import SharedHealth
from appliance.settings import Settings
from embed.assets import Assets
from embed.reports import Reports
from embed.served import ServedSessions

KEY: Final = "rubrica.embed"
"""Where the application keeps it."""


@dataclass(frozen=True, slots=True)
class EmbedCore:
    """Services, settings and files of an `embed` process."""

    settings: Settings
    clock: Clock
    sessions: Sessions
    framing: Ceremony
    signing: EmbedSessionSigning
    signing_calls: SigningCalls
    batches: EmbedSessionBatches
    health: SharedHealth
    logos: Logos
    assets: Assets
    help_requests: HelpRequests
    asked: AddressRate
    """Requests for help by address."""
    tried: Reports
    """Origins that may not show the frame and tried."""
    told: Reports
    """Errors that pages found by themselves."""
    served: ServedSessions
    """Sessions that have a page of their own."""


def core() -> EmbedCore:
    """The core of the application that serves the present request."""
    return cast("EmbedCore", current_app.extensions[KEY])


def frame_session() -> EmbedSession:
    """The session whose bearer the present request carries."""
    return cast("EmbedSession", g.frame_session)

"""Requests for help of people who cannot sign: what an officer sees of them."""

from dataclasses import dataclass
from datetime import datetime

from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.vocab import HelpTopic


@dataclass(frozen=True, slots=True)
class HelpRequest:
    """A request for help that is open."""

    id: str
    person: PersonId
    name: str
    """The person's name."""
    topic: HelpTopic
    integrator: IntegratorId | None
    """The integrator in whose frame it was filed; None: on the public page."""
    integrator_name: str | None
    proven: bool
    """True if the person had typed a right code before."""
    asked: datetime

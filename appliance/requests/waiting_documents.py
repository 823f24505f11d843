"""Documents that wait for a person's signature, by who asks for it.

    for waiting in await WaitingDocuments(store, clock).of(person):
        print(waiting.integrator, waiting.count, waiting.url)

Names no document: it is for pages that say where to sign, and not what.
"""

from dataclasses import dataclass
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.integrators.sign_urls import sign_link_to
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import RequestState
from appliance.integrators.integrator_store import IntegratorStore
from appliance.record.unit_of_work import Database
from appliance.requests.request_store import RequestStore

_LOOKED_AT: Final = 100
"""Newest requests of a person that are looked at."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Documents of one integrator that wait for a person."""

    integrator: str
    """Its name."""
    count: int
    """1 to 100."""
    url: str | None
    """Its page where the oldest of them is signed; None: none is known."""


class WaitingDocuments:
    """Looks up where a person can sign.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, person: PersonId) -> list[Waiting]:
        """Documents that wait for a person now, whose request came first first.

        Args:
            person: the signer.
        """
        now = self._clock.now()
        by_integrator: dict[IntegratorId, list[RequestView]] = {}
        async with self._store.read() as transaction:
            newest = await RequestStore(transaction).of_person(
                person, {RequestState.PENDING}, limit=_LOOKED_AT
            )
            for view in reversed(newest):
                if view.expires is None or view.expires > now:
                    by_integrator.setdefault(view.integrator, []).append(view)
            integrators = IntegratorStore(transaction)
            found = [
                (await integrators.by_id(wanted), views)
                for wanted, views in by_integrator.items()
            ]
        return [
            Waiting(
                asker.name,
                len(views),
                sign_link_to(asker.sign_url, views) if asker.sign_url else None,
            )
            for asker, views in found
            # A disabled one opens no page to sign on.
            if asker is not None and asker.disabled is None
        ]

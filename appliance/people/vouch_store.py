"""For whom integrators answered, in SQL."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, insert, select

from appliance.database.tables import person_vouch
from appliance.domain.ids import IntegratorId, PersonId, new_id
from appliance.record.unit_of_work import Store


@dataclass(frozen=True, slots=True)
class Vouch:
    """An integrator's word for who somebody is."""

    person: PersonId
    integrator: IntegratorId
    api_key: str
    """Id of the key by which it was given."""
    method: str
    """How they were identified, in the integrator's words."""
    by: str
    """Who of the integrator checked it."""
    checked: datetime
    """When they did."""


class VouchStore(Store):
    """Rows that nobody changes."""

    async def add(self, new: Vouch, at: datetime) -> None:
        """Record one."""
        await self._connection.execute(
            insert(person_vouch).values(
                id=new_id(),
                person=new.person,
                integrator=new.integrator,
                api_key=new.api_key,
                method=new.method,
                vouched_by=new.by,
                checked=new.checked,
                created=at,
            )
        )

    async def is_from(self, person: PersonId, whose: IntegratorId) -> bool:
        """Whether an integrator answered for a person."""
        found = exists().where(
            person_vouch.c.person == person, person_vouch.c.integrator == whose
        )
        return bool((await self._connection.execute(select(found))).scalar_one())

"""The end of everything that a person has open.

async with store.write() as records:
    ended = await end_access(records, person, clock.now())
"""

from datetime import datetime

from appliance.domain.ids import PersonId
from appliance.domain.records import Records


async def end_access(
    records: Records, person: PersonId, at: datetime
) -> dict[str, object]:
    """End a person's sessions of frames, access and login tokens, and links.

    Args:
        records: of the caller's transaction.
        person: whose.
        at: the time; what they prove after it counts again.

    Returns:
        What was ended, for the audit: public ids of sessions, number of links.
    """
    await records.people.sign_out(person, at)
    await records.logins.end_pending(person)
    return {
        "sessions": await records.sessions.end_of_person(person, at),
        "links": await records.enrolments.end_of_person(person, at),
    }

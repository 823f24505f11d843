"""The end of everything that a person has open.

async with store.write() as transaction:
    ended = await end_access(transaction, person, clock.now())
"""

from datetime import datetime

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.domain.ids import PersonId
from appliance.integrators.session_store import SessionStore
from appliance.people.console_user_store import EnrolmentStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Transaction


async def end_access(
    transaction: Transaction, person: PersonId, at: datetime
) -> dict[str, object]:
    """End a person's sessions of frames, access and login tokens, and links.

    Args:
        transaction: the caller's.
        person: whose.
        at: the time; what they prove after it counts again.

    Returns:
        What was ended, for the audit: public ids of sessions, number of links.
    """
    await PersonStore(transaction).sign_out(person, at)
    await LoginAttemptStore(transaction).end_pending(person)
    return {
        "sessions": await SessionStore(transaction).end_of_person(person, at),
        "links": await EnrolmentStore(transaction).end_of_person(person, at),
    }

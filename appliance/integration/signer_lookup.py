"""People, as integrators' backends name them."""

from appliance.core.unit_of_work import Transaction
from appliance.domain.identity import Person
from appliance.domain.ids import PersonId
from appliance.domain.ports import LookupIndex
from appliance.domain.requests.process import NamedBy
from appliance.identity.login import email_indexes
from appliance.integration.orders import NamedSigner
from appliance.people.person_store import PersonStore


async def person_named(
    transaction: Transaction, lookup: LookupIndex, named: NamedSigner
) -> Person | None:
    """Who is meant; None: nobody who is known.

    Args:
        transaction: the caller's.
        lookup: finds people by e-mail.
        named: by a backend.
    """
    people = PersonStore(transaction)
    if named.by is NamedBy.CUIL:
        return await people.by_cuil(named.value)
    if named.by is NamedBy.EMAIL:
        return await people.by_email_index(email_indexes(lookup, named.value))
    return await people.get(PersonId(named.value))

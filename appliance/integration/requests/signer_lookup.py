"""People, as integrators' backends name them."""

from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.people.identity import Person
from appliance.domain.ports import LookupIndex
from appliance.domain.requests.process import NamedBy
from appliance.identity.login import email_indexes
from appliance.integration.requests.order import NamedSigner
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import seen_by
from appliance.record.unit_of_work import Transaction


async def person_named(
    transaction: Transaction,
    lookup: LookupIndex,
    named: NamedSigner,
    whose: IntegratorId,
) -> Person | None:
    """Who is meant; None: nobody whom this integrator can ask.

    Args:
        transaction: the caller's.
        lookup: finds people by e-mail.
        named: by a backend.
        whose: the integrator that it is of.
    """
    people = PersonStore(transaction)
    if named.by is NamedBy.CUIL:
        found = await people.by_cuil(named.value)
    elif named.by is NamedBy.EMAIL:
        found = await people.by_email_index(email_indexes(lookup, named.value))
    else:
        found = await people.get(PersonId(named.value))
    return await seen_by(transaction, found, whose)

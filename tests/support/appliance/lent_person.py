"""One person of an appliance who is lent to tests, one after the other.

A person's key takes a second to make. What they sign for a test is told apart by its
integrator, which is its own; who lists all that is somebody's makes another.
"""

from tests.support.appliance.appliance import Appliance, TestPerson


def lend(appliance: Appliance, people: dict[Appliance, TestPerson]) -> TestPerson:
    """Somebody who can sign, as if they were new.

    Args:
        appliance: whose person it is.
        people: the one of each, made when first wanted.
    """
    lent = people.get(appliance)
    if lent is None:
        lent = people[appliance] = appliance.new_person()
    appliance.refresh(lent)
    return lent

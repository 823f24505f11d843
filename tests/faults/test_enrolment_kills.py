"""Workers die while they make people's keys: nobody gets half a one.

Source: research on reliability, F16; design §4 "Enrolment".
"""

import secrets
import time
from collections.abc import Callable

import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.database import tables
from appliance.domain.vocab import TaskState
from appliance.keys.credential_store import CredentialStore
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import assert_sound, kill_one, newest, until
from tests.support.faults.retrying_callers import Crowd
from tests.support.hsm.hsm_installation import folder_of_token
from tests.support.patience import TEST_S


def objects(appliance: Appliance) -> set[str]:
    """Every object of the users' token, by its file."""
    tokens = appliance.folder / "hsm" / "tokens"
    return {path.name for path in folder_of_token(tokens, "firma").glob("*.object")}


def with_key(appliance: Appliance, people: list[TestPerson]) -> list[TestPerson]:
    """Who has a credential."""

    async def look(front: ServiceRegistry) -> list[TestPerson]:
        async with front.core.store.read() as transaction:
            return [
                person
                for person in people
                if await CredentialStore(transaction).active(person.id) is not None
            ]

    return appliance.do(look)


def open_tasks(appliance: Appliance) -> int:
    """Tasks that somebody is still to do."""
    ended = {TaskState.DONE.value, TaskState.FAILED.value}
    rows = read_ledger(appliance).of(tables.hsm_task)
    return sum(row.state not in ended for row in rows)


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.timeout(TEST_S)
def test_killed_enrolment_leaves_no_half_key(
    sqlite_appliance: Appliance,
    kills: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Whoever has a key signs with it, and the token holds what it held before.

    A task whose every attempt was killed is given up: that person has no key.
    """
    before, held = newest(sqlite_appliance), objects(sqlite_appliance)
    people = []
    for _ in range(kills):
        people.append(sqlite_appliance.new_person(with_key=False))
        time.sleep(secrets.randbelow(1000) / 1000)
        kill_one(sqlite_appliance)
    while left := open_tasks(sqlite_appliance):
        until(lambda left=left: open_tasks(sqlite_appliance) < left)  # type: ignore[misc]  # bound now

    able = with_key(sqlite_appliance, people)
    record_property("keys", len(able))
    assert able
    crowd = Crowd(sqlite_appliance, able, pdfs.one_page(), at_least=len(able))
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)
    assert objects(sqlite_appliance) == held

"""Workers die while they make people's keys: nobody gets half a one.

Source: research on reliability, F16; design §4 "Enrolment".
"""

import secrets
import time

import pytest

from appliance.bootstrap import Front
from tests import pdfs
from tests.parts.appliance import Appliance, TestPerson
from tests.parts.callers import Crowd
from tests.parts.harm import assert_sound, kill_one, newest, until
from tests.parts.hsm import folder_of_token


def objects(appliance: Appliance) -> set[str]:
    """Every object of the users' token, by its file."""
    tokens = appliance.folder / "hsm" / "tokens"
    return {path.name for path in folder_of_token(tokens, "firma").glob("*.object")}


def without_key(appliance: Appliance, people: list[TestPerson]) -> list[TestPerson]:
    """Who has no credential yet."""

    async def look(front: Front) -> list[TestPerson]:
        async with front.core.store.read() as records:
            return [
                person
                for person in people
                if await records.credentials.active(person.id) is None
            ]

    return appliance.do(look)


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.timeout(1800)
def test_killed_enrolment_leaves_no_half_key(on_sqlite: Appliance, kills: int) -> None:
    """Everybody's key signs in the end, and the token holds what it held before."""
    before, held = newest(on_sqlite), objects(on_sqlite)
    people = []
    for _ in range(kills):
        people.append(on_sqlite.new_person(with_key=False))
        time.sleep(secrets.randbelow(1000) / 1000)
        kill_one(on_sqlite)

    until(lambda: not without_key(on_sqlite, people))
    crowd = Crowd(on_sqlite, people, pdfs.one_page(), at_least=len(people))
    with crowd.calling():
        pass

    assert_sound(crowd, before=before)
    assert objects(on_sqlite) == held

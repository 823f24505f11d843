"""Strangers who guess at accounts, from many addresses."""

from typing import Protocol

from appliance.admission.login_throttle import Throttle
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import PersonId
from appliance.domain.people.login import AttemptKind
from appliance.domain.ports import LookupIndex
from appliance.identity import login
from appliance.record.unit_of_work import Database
from appliance.settings import Settings


class Place(Protocol):
    """Where it is recorded."""

    @property
    def settings(self) -> Settings:
        """Limits."""

    @property
    def clock(self) -> Clock:
        """The time."""

    @property
    def lookup(self) -> LookupIndex:
        """Indexes of accounts."""


async def guess(
    store: Database,
    place: Place,
    account: str,
    person: PersonId | None = None,
    user: str | None = None,
) -> None:
    """Guess at an account until no more guesses are looked at.

    Args:
        store: of the installation.
        place: its settings, clock and lookup key.
        account: the index it is counted by.
        person: whose it is, if a person's.
        user: id of the administrator whose it is.
    """
    auth = place.settings.auth
    throttle = Throttle(store, place.lookup, place.clock, auth)
    for number in range(auth.wrong_per_hour_account + 1):
        try:
            attempt = await throttle.begin(
                AttemptKind.PASSWORD, account, person, f"203.0.113.{number}", user=user
            )
        except ApplianceError:
            return
        async with store.write() as transaction:
            await throttle.wrong(transaction, attempt)
    raise AssertionError("nothing was refused")


async def guess_at_person(
    store: Database, place: Place, person: PersonId, cuil: str, email: str
) -> None:
    """Guess at both names of a person, CUIL and e-mail address."""
    accounts = login.account_indexes(place.lookup, cuil, email)
    for account in (accounts[0], accounts[-1]):
        await guess(store, place, account, person)

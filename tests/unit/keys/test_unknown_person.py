"""What is checked for an unknown person costs as much as a known person's hash."""

import pytest
from argon2 import PasswordHasher, extract_parameters

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.keys.password_hashing import HashSlots, Passwords


async def test_it_costs_what_a_known_persons_does() -> None:
    """Version, memory, passes, lanes, and the lengths of salt and hash."""
    passwords = Passwords(HashSlots(1))
    known = await passwords.hash(b"a password")
    assert extract_parameters(passwords._nobody) == extract_parameters(known)
    assert len(passwords._nobody) == len(known)


async def test_it_is_checked_to_the_end_and_never_right() -> None:
    """Another hash than it says is found; as a malformed one it would raise."""
    passwords = Passwords(HashSlots(1))
    assert not await passwords.verify(passwords._nobody, b"a password")
    assert not await passwords.verify(None, b"a password")


def test_a_start_hashes_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has one start what another one has."""

    def refuse(*given: object) -> str:
        raise AssertionError(given)

    monkeypatch.setattr(PasswordHasher, "hash", refuse)
    assert Passwords(HashSlots(1))._nobody != Passwords(HashSlots(1))._nobody


@pytest.mark.parametrize("costs", ["m=4000000,t=2,p=1", "m=19456,t=2000000,p=1"])
async def test_stored_hash_that_costs_more_is_not_run(costs: str) -> None:
    """Whoever writes to the database does not stop the process by one sign-in."""
    passwords = Passwords(HashSlots(1))
    dear = (await passwords.hash(b"a password")).replace("m=19456,t=2,p=1", costs)

    with pytest.raises(ApplianceError) as caught:
        await passwords.verify(dear, b"a password")

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE

"""What one process remembers of wrong signing passwords: bounded, and in order.

Source: docs/keys.md "What bounds guesses".
"""

from datetime import timedelta

from appliance.domain.ids import PersonId, new_id
from appliance.domain.people.identity import SigningSecret
from appliance.keys.count_clearings import Clearing
from appliance.keys.password_floor import Admission, PasswordFloor
from tests.support.factories.fakes import MovingClock

LIMIT = 3
A = Admission


def secret_of(salt: bytes) -> SigningSecret:
    """A password under a salt."""
    return SigningSecret(salt, {}, 1, "")


def mark() -> str:
    """Mark of another wrong password."""
    return new_id().replace("-", "")


class Front:
    """A process that checks passwords, each by itself."""

    def __init__(self, entries: int = 100) -> None:
        self.clock = MovingClock()
        self.floor = PasswordFloor(self.clock, LIMIT, entries)

    def wrong(
        self, person: str, salt: bytes = b"", clearing: Clearing | None = None
    ) -> Admission:
        """Try a wrong password of a person, which the record does not hinder."""
        secret = secret_of(salt or person.encode())
        answer, check = self.floor.admit(PersonId(person), secret, clearing)
        if answer is A.FREE:
            self.floor.wrong(check, mark())
        return answer

    def right(self, person: str) -> Admission:
        """Try the right one."""
        secret = secret_of(person.encode())
        answer, check = self.floor.admit(PersonId(person), secret, None)
        if answer is A.FREE:
            self.floor.right(check)
        return answer

    @property
    def size(self) -> int:
        """Persons and salts that are remembered."""
        return len(self.floor._seen)


def test_nothing_is_kept_of_who_was_never_wrong() -> None:
    """Thousands who sign leave nothing behind."""
    front = Front()
    for number in range(1000):
        assert front.right(f"p{number}") is A.FREE

    assert front.size == 0


def test_memory_is_bounded_and_full_counts_stay() -> None:
    """A flood of wrong passwords of others forgets those with fewer, not the victim."""
    front = Front(entries=64)
    for _ in range(2 * LIMIT):
        assert front.wrong("victim") is A.FREE
    assert front.wrong("victim") is A.LOCKED
    for number in range(2000):
        front.wrong(f"p{number}")
        assert front.size <= 64

    assert front.wrong("victim") is A.LOCKED


def test_full_counts_of_others_displace_no_full_count() -> None:
    """Whoever fills the memory waits for a place; the victim's pause goes on."""
    front = Front(entries=64)
    for _ in range(2 * LIMIT):
        assert front.wrong("victim") is A.FREE
    answers = {
        front.wrong(f"p{number}") for number in range(200) for _ in range(2 * LIMIT)
    }

    assert A.BUSY in answers
    assert front.size <= 64
    assert front.wrong("victim") is A.LOCKED
    assert front.wrong("somebody") is A.BUSY
    front.clock.forward(2 * 24 * 3600)
    assert front.wrong("somebody") is A.FREE


def test_running_checks_are_never_forgotten() -> None:
    """Their entries are there when they end, however many others come."""
    front = Front(entries=4)
    secret = secret_of(b"victim")
    running = [
        front.floor.admit(PersonId("victim"), secret, None) for _ in range(LIMIT)
    ]
    assert {answer for answer, _ in running} == {A.FREE}
    assert front.floor.admit(PersonId("victim"), secret, None)[0] is A.BUSY
    for number in range(20):
        front.wrong(f"p{number}")
    for _, check in running:
        front.floor.wrong(check, mark())

    assert front.right("victim") is A.FREE  # the first clearing without a proof


def test_check_that_came_to_nothing_counts_nothing() -> None:
    """The hasher was overloaded, or the transaction was not committed."""
    front = Front()
    for _ in range(10):
        answer, check = front.floor.admit(PersonId("p"), secret_of(b"s"), None)
        assert answer is A.FREE
        front.floor.left(check)

    assert front.size == 0


def test_clearing_from_before_the_last_wrong_one_is_none() -> None:
    """But for what the clocks of two hosts may be apart."""
    front = Front()
    for _ in range(2 * LIMIT):
        front.wrong("p", b"s")
    now = front.clock.now()
    (early, late) = (
        Clearing(now - timedelta(seconds=seconds), "") for seconds in (11, 9)
    )

    assert front.wrong("p", b"t", early) is A.LOCKED
    assert front.wrong("p", b"t", late) is A.FREE


def test_clearing_of_another_salt_clears_the_person_alone() -> None:
    """A proof of one's own password says nothing of the one that was copied."""
    front = Front()
    for _ in range(2 * LIMIT):
        front.wrong("p", b"copied")
    front.clock.forward(60)
    proof = Clearing(front.clock.now(), "of their own")

    assert front.wrong("p", b"copied", proof) is A.LOCKED
    assert front.wrong("p", b"own", proof) is A.FREE

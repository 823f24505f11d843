"""A host's journal: each consent is opened in time, and used once, whatever rows say.

Source: docs/keys.md "The journal of a host".
"""

import json
import os
import signal
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.domain.errors import ActivationInvalidError, ApplianceError, ErrorCode
from appliance.domain.ids import (
    ActivationId,
    CredentialId,
    PersonId,
    RequestId,
    new_id,
)
from appliance.domain.signing.activation import (
    ActivationDocument,
    ActivationFormat,
    Claim,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import ActivationState, Environment, ItemState
from tests.support.factories.fakes import NOON, MovingClock
from worker.signing.activation_keys import JOURNAL, ActivationFolder, open_folder
from worker.signing.consent_journal import ConsentJournal, KeyUse

KEY: Final = timedelta(seconds=60)


class Host:
    """A host's folder, and the journals of its workers."""

    def __init__(self, path: Path) -> None:
        self.path = path / "activation"
        self.clock = MovingClock(NOON)
        self.folder: ActivationFolder = open_folder(self.path, Environment.PREPROD)

    def worker(self) -> ConsentJournal:
        """The journal, as a worker that has just started sees it."""
        return ConsentJournal(self.folder, self.clock, KEY)

    @property
    def file(self) -> Path:
        """Its file."""
        return self.path / JOURNAL


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host that opened nothing yet."""
    return Host(tmp_path)


def claimed(name: str = "a", count: int = 1, fence: int = 1, **more: Any) -> Claim:
    """A claim of so many documents that wait."""
    return Claim(
        id=ActivationId(name),
        person=PersonId("p"),
        credential=CredentialId("c"),
        factors=(),
        created=NOON,
        claim_by=NOON + timedelta(seconds=60),
        documents=tuple(
            ActivationDocument(seq, RequestId(seq + 1), "ab", SignParameters(), "cd")
            for seq in range(count)
        ),
        state=ActivationState.KEYING,
        fence=fence,
        key_until=NOON,
        **more,
    )


def uses(*seqs: int, digest: str = "ab", at: datetime = NOON) -> dict[int, KeyUse]:
    """What the key is to sign for some documents."""
    return {seq: KeyUse(digest, at, 0) for seq in seqs}


def again(claim: Claim, *done: int) -> Claim:
    """The next claim of it, those documents being signed by then."""
    documents = tuple(
        replace(each, state=ItemState.DONE) if each.seq in done else each
        for each in claim.documents
    )
    return replace(claim, fence=claim.fence + 1, documents=documents)


def refusal(call: Callable[[], object]) -> ErrorCode | None:
    """Why something is refused; None where it is not."""
    try:
        call()
    except ApplianceError as exc:
        return exc.code
    return None


EXPIRED, INVALID = ErrorCode.ACTIVATION_EXPIRED, ErrorCode.ACTIVATION_INVALID


def test_first_opening_is_before_claim_by(host: Host) -> None:
    """By the host's own clock; the row's state says nothing."""
    claim = claimed()
    host.clock.forward(60)

    assert refusal(lambda: host.worker().begin(claim)) is EXPIRED
    host.clock.forward(-1)
    assert refusal(lambda: host.worker().begin(claim)) is None


def test_what_was_begun_goes_on_within_its_key_phase(host: Host) -> None:
    """Another worker of the host too, after `claim_by`; and no longer than that."""
    claim = claimed(count=3)
    host.clock.forward(59)
    host.worker().begin(claim)

    host.clock.forward(62.9)
    assert refusal(lambda: host.worker().begin(again(claim))) is None
    host.clock.forward(0.1)
    assert refusal(lambda: host.worker().begin(again(claim))) is EXPIRED


def test_key_phase_is_over_at_the_key_too(host: Host) -> None:
    """A worker that stood still since it opened the seal."""
    journal, claim = host.worker(), claimed()
    journal.begin(claim)

    host.clock.forward(61)

    assert refusal(lambda: journal.intend(claim, uses(0))) is EXPIRED


@pytest.mark.parametrize("last", ["signed", "given up"])
def test_what_ended_never_opens_again(host: Host, last: str) -> None:
    """Whatever the rows say by then: times, states and fences among it."""
    journal, claim = host.worker(), claimed(count=2)
    journal.begin(claim)
    assert journal.intend(claim, uses(0, 1)) == frozenset()
    journal.over(claim, [0])
    assert refusal(lambda: host.worker().begin(again(claim, 0))) is None

    if last == "signed":
        journal.over(claim, [1])
    else:
        host.worker().over(again(claim, 0), [1])

    for row in (
        claim,
        again(claim),
        replace(claim, fence=99),
        replace(claim, claim_by=claim.claim_by + timedelta(days=1)),
        replace(claim, documents=claim.documents * 2),
    ):
        with pytest.raises(ActivationInvalidError) as caught:
            host.worker().begin(row)
        assert caught.value.layer == "journal"
        assert host.worker().intend(row, uses(0, 1)) == {0, 1}


def test_what_did_not_open_is_burnt_as_well(host: Host) -> None:
    """Rows that were altered, and then put back as they were."""
    journal, claim = host.worker(), claimed()
    altered = replace(claim, claim_by=NOON + timedelta(seconds=1))
    journal.begin(altered)
    journal.over(altered, [0])

    host.clock.forward(30)

    assert refusal(lambda: host.worker().begin(claim)) is INVALID


def test_late_activation_is_burnt_too(host: Host) -> None:
    """The row's time was moved back to have it refused, and then put right."""
    late = replace(claimed(), claim_by=NOON)
    journal = host.worker()
    assert refusal(lambda: journal.begin(late)) is EXPIRED
    journal.over(late, [0])

    assert refusal(lambda: host.worker().begin(claimed())) is INVALID


def test_key_is_used_once_for_a_document(host: Host) -> None:
    """A document whose row was put back is refused; the others of it are not."""
    journal, claim = host.worker(), claimed(count=3)
    journal.begin(claim)
    assert journal.intend(claim, uses(0)) == frozenset()
    journal.over(claim, [0])

    rolled_back = again(claim)
    other = host.worker()
    other.begin(rolled_back)

    assert other.intend(rolled_back, uses(0, 1, 2)) == {0}


def test_interrupted_attempt_is_made_again(host: Host) -> None:
    """Its worker died before the signature was recorded: the next claim signs."""
    claim = claimed()
    killed = host.worker()
    killed.begin(claim)
    assert killed.intend(claim, uses(0)) == frozenset()

    after = host.worker()
    after.begin(again(claim))

    assert after.intend(again(claim), uses(0)) == frozenset()


def test_interrupted_attempt_signs_nothing_else(host: Host) -> None:
    """Its value may have left the worker: another digest is another signature."""
    claim = replace(claimed(count=2), fence=1)
    killed = host.worker()
    killed.begin(claim)
    at = NOON + timedelta(microseconds=123_456)
    assert killed.intend(claim, uses(0, digest="ab", at=at)) == frozenset()

    after = host.worker()
    after.begin(again(claim))
    known = after.attempted(again(claim))

    assert known == {0: KeyUse("ab", at, 0)}
    assert after.intend(again(claim), uses(0, 1, digest="cd", at=at)) == {0}
    assert after.intend(again(claim), known) == frozenset()
    fill(after)
    assert host.worker().attempted(claim) == {**known, 1: KeyUse("cd", at, 0)}


@pytest.mark.parametrize("fence", [1, 2])
def test_fence_that_was_put_back_uses_no_key(host: Host, fence: int) -> None:
    """Nor does the worker that was claimed over, whatever the row says of it."""
    journal = host.worker()
    journal.begin(claimed())
    assert journal.intend(claimed(fence=2), uses(0)) == frozenset()

    assert host.worker().intend(claimed(fence=fence), uses(0)) == {0}
    assert journal.intend(claimed(fence=fence), uses(0)) == {0}


def test_what_was_never_begun_uses_no_key(host: Host) -> None:
    """A worker opens first, and then signs."""
    assert host.worker().intend(claimed(), uses(0)) == {0}


def test_ended_task_opens_nothing(host: Host) -> None:
    """Enrolments and signing requests: by their id alone."""
    host.worker().demand_not_ended("t")
    host.worker().end("t")

    assert refusal(lambda: host.worker().demand_not_ended("t")) is INVALID
    host.worker().demand_not_ended("other")


# -- the file ------------------------------------------------------------------


def fill(journal: ConsentJournal, count: int = 1000) -> None:
    """Have it grow by that many activations."""
    for _ in range(count):
        claim = replace(
            claimed(new_id()),
            claim_by=journal._clock.now() + timedelta(seconds=60),
        )
        journal.begin(claim)
        journal.intend(claim, uses(0))
        journal.over(claim, [0])


def test_file_is_its_users_alone(host: Host) -> None:
    """As the keys beside it, with no secret in it."""
    host.worker().begin(claimed())

    assert stat.S_IMODE(host.file.stat().st_mode) == 0o600


def test_sweep_of_keys_leaves_it(host: Host) -> None:
    """Keys of earlier epochs go, and what a killed write left."""
    journal, claim = host.worker(), claimed()
    journal.begin(claim)
    (host.path / f".{JOURNAL}.new").write_bytes(b"half")

    host.folder.sweep(host.clock.now(), ActivationFormat.FIRST)

    assert {file.name for file in host.path.iterdir()} == {JOURNAL, "lock"}


def test_journal_of_a_worker_outlives_a_sweep_of_the_version_before(
    host: Host,
) -> None:
    """That deletes what is no key: whoever is left writes what it knows."""
    journal, ended, open_ = host.worker(), claimed("ended"), claimed("open")
    for claim in (ended, open_):
        journal.begin(claim)
        journal.intend(claim, uses(0))
    journal.over(ended, [0])
    host.file.unlink()

    journal.demand_not_ended("anything")

    host.clock.forward(60)
    assert refusal(lambda: host.worker().begin(ended)) is INVALID
    assert refusal(lambda: host.worker().begin(again(open_))) is None
    assert host.worker().intend(claimed("open"), uses(0)) == {0}


def test_killed_writers_line_is_no_line(host: Host) -> None:
    """It did nothing after it; the next one writes on whole lines."""
    host.worker().begin(claimed())
    whole = host.file.read_bytes()
    with host.file.open("ab") as file:
        file.write(b'["ended","a",17')

    other = host.worker()
    other.begin(claimed("b"))

    assert host.file.read_bytes().startswith(whole)
    _, *lines = map(json.loads, host.file.read_bytes().splitlines())
    assert [line[:2] for line in lines] == [["begun", "a"], ["begun", "b"]]


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b'["begun"]',
        b"\xff",
        b'["x","a",1]',
        b'["intent","a",1,1,[0]]',
        b'["intent","a",1,1,[[0,"ab","noon",0]]]',
    ],
)
def test_line_that_nobody_understands_opens_nothing(host: Host, line: bytes) -> None:
    """Nothing is guessed: an operator deletes keys and journal together."""
    host.worker().begin(claimed())
    with host.file.open("ab") as file:
        file.write(line + b"\n")

    for call in (
        lambda: host.worker().begin(claimed("b")),
        lambda: host.worker().intend(claimed(), uses(0)),
        lambda: host.worker().demand_not_ended("t"),
    ):
        assert refusal(call) is ErrorCode.STORE_UNAVAILABLE


@pytest.mark.parametrize(
    "odd",
    [{"fence": 1.5}, {"id": "a" * 65}, {"id": b"a"}],
    ids=lambda odd: str(odd)[:9],
)
def test_row_of_another_kind_spoils_no_line(host: Host, odd: dict[str, Any]) -> None:
    """SQLite gives what somebody wrote into a column, whatever the column is for."""
    journal = host.worker()
    journal.begin(claimed())
    strange = replace(claimed(), **odd)

    if "id" in odd:
        assert refusal(lambda: journal.begin(strange)) is ErrorCode.STORE_UNAVAILABLE
    else:
        call = partial(journal.intend, strange, uses(0))
        assert refusal(call) is ErrorCode.STORE_UNAVAILABLE
    journal.over(strange, [0.5])  # type: ignore[list-item]  # as SQLite has it

    assert host.worker().intend(claimed(), uses(0)) == frozenset()


def test_forged_rows_are_remembered_no_longer_than_others(host: Host) -> None:
    """However many documents they have, and however late they may be claimed."""
    journal, many = host.worker(), claimed("many")
    late = claimed("late")
    journal.begin(replace(many, documents=many.documents * 100_000))
    journal.begin(replace(late, claim_by=NOON + timedelta(days=365)))

    host.clock.forward(30 * 60)
    fill(journal)

    assert {"many", "late"}.isdisjoint(journal._entries)


def test_journal_that_cannot_be_written_opens_nothing(host: Host) -> None:
    """And an end that cannot be written is not forgotten by who saw it."""
    journal, claim = host.worker(), claimed()
    journal.begin(claim)
    journal.intend(claim, uses(0))
    kept = host.file.rename(host.path / "kept")
    host.file.mkdir()

    assert refusal(lambda: host.worker().begin(claimed("b"))) is (
        ErrorCode.STORE_UNAVAILABLE
    )
    journal.over(claim, [0])
    host.file.rmdir()
    kept.rename(host.file)

    assert refusal(lambda: journal.begin(again(claim))) is INVALID
    assert refusal(lambda: host.worker().begin(again(claim))) is INVALID


def test_ids_stay_on_their_lines(host: Host) -> None:
    """Whoever writes to the database chooses them, and writes no line by one."""
    ids = ['x","y"]\n["ended","victim",99999999999999]\n', "á\u2028\r\n", ""]
    journal = host.worker()
    for name in ids:
        journal.begin(claimed(name))

    assert host.file.read_bytes().count(b"\n") == 1 + len(ids)
    host.worker().begin(claimed("victim"))


def test_journal_stays_small(host: Host) -> None:
    """It is written anew as it grows, without what is over; workers follow."""
    one, other = host.worker(), host.worker()
    kept = claimed("kept", 3)
    one.begin(kept)
    one.intend(kept, uses(0))
    one.over(kept, [0])
    for _ in range(6):
        fill(one, 500)
        assert refusal(lambda: other.begin(again(kept, 0))) is None
        host.clock.forward(10)
    sizes = []
    for _ in range(5):
        host.clock.forward(200)
        fill(other, 500)
        fill(one, 500)
        sizes.append(host.file.stat().st_size)

    # Twice what can still be opened, at the most; 1.7 MB were written.
    assert max(sizes) < 600_000
    assert len(one._entries) < 4000
    assert refusal(lambda: one.begin(again(kept, 0))) is EXPIRED


def test_cost_of_a_signature_does_not_grow(host: Host) -> None:
    """Three lines a signature, however many there were before."""
    journal = host.worker()
    fill(journal, 50)
    before = host.file.stat().st_size
    fill(journal, 50)

    assert host.file.stat().st_size <= 2 * before
    assert host.file.read_bytes().count(b"\n") == 1 + 3 * 100


def test_workers_killed_at_any_time_leave_it_whole(host: Host) -> None:
    """Several write at once, and die; what they noted in full is read."""
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                journal = host.worker()
                for count in range(100_000):
                    claim = claimed(f"{number}-{count}")
                    journal.begin(claim)
                    journal.intend(claim, uses(0))
                    journal.over(claim, [0])
            finally:
                os._exit(1)
        children.append(child)
    looking = host.worker()
    while len(looking._entries) < 400:
        looking.demand_not_ended("t")
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    looking = host.worker()
    looking.demand_not_ended("t")
    known = looking._entries
    for number in range(4):
        own = [name for name in known if name.startswith(f"{number}-")]
        # All but the last one that each was about to write came to their end.
        assert len([name for name in own if not known[name].ended]) <= 1

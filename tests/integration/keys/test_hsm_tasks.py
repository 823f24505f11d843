"""The life of an HSM task, on both databases."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from appliance.admission.work_owner import working_for
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode, TokenRole
from appliance.domain.people.identity import Credential
from appliance.domain.pki.certificates import CertificateRecord
from appliance.domain.signing.activation import ActivationFormat, IssueBinding, Seal
from appliance.domain.signing.hsm_tasks import TaskClaim, WorkerStatus
from appliance.domain.vocab import CertificateKind, TaskKind, TaskState, VouchedBy
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import (
    TASK_ATTEMPTS,
    HsmTasks,
    issue_binding,
    submit_issue,
)
from appliance.keys.worker_store import WorkerStore
from appliance.signing.expiry import ExpiryJob
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.fakes import AlwaysServed
from tests.support.installation.record import HOST, CoreFixture, new_credential
from worker.hsm.connection import HsmStatus
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.pki.hsm_tasks import TOKENS, TaskRunner
from worker.pki.sample_signature import SampleSignatures

pytestmark = pytest.mark.storage


def worker(core: CoreFixture, slot: str = "signing/h/1") -> HsmTasks:
    """A worker's transactions."""
    return HsmTasks(core.store, core.clock, slot, new_id())


def binding(task: TaskId, person: PersonId) -> IssueBinding:
    """What a task is bound to."""
    return issue_binding(task, person, VouchedBy.DEMO, KeyAlgorithm.RSA_2048)


async def submit(core: CoreFixture, person: PersonId, *hosts: str) -> TaskId:
    """Ask for a key and a certificate, sealed to hosts: to ours by default."""
    task = TaskId(new_id())
    epoch = ActivationFormat.WHOLE.epoch_at(core.now)
    seals = tuple(Seal(host, epoch, b"sealed") for host in hosts or (HOST,))
    async with core.store.write() as transaction:
        await submit_issue(transaction, binding(task, person), seals, core.clock)
    return task


async def claimed(tasks: HsmTasks) -> TaskClaim:
    """Claim a task that is there."""
    claim = await tasks.claim_next()
    assert claim is not None
    return claim


KEY = CertificateRecord(
    serial="1f",
    kind=CertificateKind.SIGNER,
    issuer="a" * 40,
    credential=None,
    der=b"certificate",
    not_before=datetime(2026, 1, 1, tzinfo=UTC),
    not_after=datetime(2028, 1, 1, tzinfo=UTC),
)
"""Certificate of what a task made."""


def credential(person: PersonId, identifier: str) -> Credential:
    """What a task made."""
    return new_credential(person, id=CredentialId(identifier))


async def state(core: CoreFixture, task: TaskId) -> tuple[TaskState, str]:
    """How a task stands."""
    async with core.store.read() as transaction:
        status = await HsmTaskStore(transaction).status(task)
    assert status is not None
    return status.state, status.reason


async def test_task_is_done_with_its_credential(core: CoreFixture) -> None:
    """Asked for, claimed, committed with the credential, and told to who waits."""
    signer = await core.add_signer(credential=False)
    task = await submit(core, signer.person)
    tasks = worker(core)

    claim = await claimed(tasks)
    order = await tasks.issue_order(claim)
    made = credential(signer.person, task)
    assert await tasks.issued(claim, made, KEY)

    assert (claim.id, order.person.id) == (task, signer.person)
    assert order.vouched_by is VouchedBy.DEMO
    assert await tasks.wait(task, 1) == {"credential": task}
    async with core.store.read() as transaction:
        assert await CredentialStore(transaction).active(signer.person) == made
    assert await core.audited() == ["task.created", "credential.issued"]


async def test_task_claimed_by_one_of_twenty(core: CoreFixture) -> None:
    """Twenty claimants of two processes, three tasks, the oldest first."""
    signer = await core.add_signer(credential=False)
    made = []
    for _ in range(3):
        made.append(await submit(core, signer.person))
        core.clock.forward(1)
    stores = (core.store, core.other_store())
    first = await claimed(worker(core))

    taken = await asyncio.gather(
        *(
            HsmTasks(stores[n % 2], core.clock, f"signing/h/{n}", "p").claim_next()
            for n in range(20)
        )
    )

    assert first.id == made[0]
    assert sorted(each.id for each in taken if each) == sorted(made[1:])


async def test_what_documents_wait_for_is_made_first(core: CoreFixture) -> None:
    """However many keys are asked for: nobody's document waits behind them."""
    signer = await core.add_signer(credential=False)
    await submit(core, signer.person)
    core.clock.forward(1)
    answers = TaskId(new_id())
    async with core.store.write() as transaction:
        await HsmTaskStore(transaction).add(answers, TaskKind.PUBLISH, {}, core.now)

    assert (await claimed(worker(core))).id == answers
    assert (await claimed(worker(core))).kind is TaskKind.ISSUE


async def ask_for(core: CoreFixture, share: str) -> TaskId:
    """Somebody's task."""
    task = TaskId(new_id())
    with working_for(share, share):
        async with core.store.write() as transaction:
            await HsmTaskStore(transaction).add(task, TaskKind.TIMESTAMP, {}, core.now)
    core.clock.forward(1)
    return task


async def test_a_flood_comes_after_the_others_first_tasks(core: CoreFixture) -> None:
    """Who asks for forty delays nobody who comes later by more than one."""
    flood = [await ask_for(core, "person:flood") for _ in range(40)]
    others = [await ask_for(core, f"person:{number}") for number in range(3)]
    own = await ask_for(core, "")

    order = [(await claimed(worker(core))).id for _ in range(44)]

    assert order[:5] == [flood[0], *others, own]
    assert order[5:] == flood[1:]


async def test_an_owner_has_so_many_tasks_open_and_no_more(core: CoreFixture) -> None:
    """Others and the installation itself ask on."""
    for _ in range(64):
        await ask_for(core, "address:192.0.2.1")

    with pytest.raises(ApplianceError) as caught:
        await ask_for(core, "address:192.0.2.1")

    assert caught.value.code is ErrorCode.OVERLOADED
    await ask_for(core, "address:192.0.2.2")
    await ask_for(core, "")


async def test_task_claimed_again_when_its_lease_ends(core: CoreFixture) -> None:
    """A lease of 30 s; renewing prolongs it; the overtaken one is refused."""
    signer = await core.add_signer(credential=False)
    task = await submit(core, signer.person)
    dead, heir = worker(core), worker(core, "signing/h/2")
    old = await claimed(dead)
    core.clock.forward(20)
    assert await dead.renew(old)
    core.clock.forward(29)
    assert await heir.claim_next() is None
    core.clock.forward(1)

    new = await claimed(heir)
    done = [
        await dead.renew(old),
        await dead.issued(old, credential(signer.person, "x"), KEY),
        await dead.failed(old, "X"),
    ]

    assert (old.fence, new.fence) == (1, 2)
    assert done == [False] * 3
    assert await state(core, task) == (TaskState.RUNNING, "")
    async with core.store.read() as transaction:
        assert await CredentialStore(transaction).active(signer.person) is None


async def test_task_of_a_restarted_worker_is_free_at_once(core: CoreFixture) -> None:
    """A new start of slot 1 lets go of its tasks, and not of slot 10's."""
    signer = await core.add_signer(credential=False)
    for _ in range(2):
        await submit(core, signer.person)
    for slot in ("signing/h/1", "signing/h/10"):
        await claimed(worker(core, slot))

    released = await core.claiming("signing/h/1").release_own()

    assert released == 1
    assert await worker(core).claim_next() is not None
    assert await worker(core).claim_next() is None


async def test_failed_task_is_told(core: CoreFixture) -> None:
    """Who waits learns why, and it is audited."""
    signer = await core.add_signer(credential=False)
    task = await submit(core, signer.person)
    tasks = worker(core)

    await tasks.failed(await claimed(tasks), "KEY_SELF_TEST")

    with pytest.raises(ApplianceError) as caught:
        await tasks.wait(task, 1)
    assert caught.value.code is ErrorCode.TASK_FAILED
    assert caught.value.params == {"reason": "KEY_SELF_TEST"}
    assert (await core.audited())[-1] == "task.failed"


async def test_task_whose_attempts_are_used_up_fails(core: CoreFixture) -> None:
    """Five workers died of it: it ends, once, and who waits is told."""
    signer = await core.add_signer(credential=False)
    task = await submit(core, signer.person)
    tasks = worker(core)
    sweeping = ExpiryJob(core.store, core.completion_notifier, core.clock)
    other = ExpiryJob(core.other_store(), core.completion_notifier, core.clock)
    for _ in range(TASK_ATTEMPTS):
        assert await sweeping.fail_tasks() == 0
        last = await claimed(tasks)
        core.clock.forward(30)

    unclaimable = await tasks.claim_next()
    failed = await asyncio.gather(sweeping.fail_tasks(), other.fail_tasks())

    assert unclaimable is None
    assert sorted(failed) == [0, 1]
    assert await sweeping.fail_tasks() == 0
    assert await state(core, task) == (TaskState.FAILED, "attempts used up")
    assert (await core.audited()).count("task.failed") == 1
    # The last of them wakes up after all: too late.
    made = credential(signer.person, "x")
    assert not await tasks.issued(last, made, KEY)


async def test_last_attempt_is_waited_for(core: CoreFixture) -> None:
    """While the last lease lasts the task is not given up."""
    signer = await core.add_signer(credential=False)
    task = await submit(core, signer.person)
    tasks = worker(core)
    for _ in range(TASK_ATTEMPTS - 1):
        await claimed(tasks)
        core.clock.forward(30)
    last = await claimed(tasks)

    core.clock.forward(29)
    given_up = await ExpiryJob(
        core.store, core.completion_notifier, core.clock
    ).fail_tasks()
    done = await tasks.issued(last, credential(signer.person, task), KEY)

    assert (given_up, done) == (0, True)
    assert await state(core, task) == (TaskState.DONE, "")


async def test_wait_ends_without_an_answer(sqlite_core: CoreFixture) -> None:
    """Nobody does the task: `HSM_UNAVAILABLE` after the time."""
    signer = await sqlite_core.add_signer(credential=False)
    task = await submit(sqlite_core, signer.person)

    with pytest.raises(ApplianceError) as caught:
        await worker(sqlite_core).wait(task, 0.05)

    assert caught.value.code is ErrorCode.HSM_UNAVAILABLE


async def test_who_waits_wakes_a_worker(sqlite_core: CoreFixture) -> None:
    """Else it would look by itself, a moment later."""
    waiting = HsmTasks(
        sqlite_core.store, sqlite_core.clock, "api", new_id(), sqlite_core.work_notifier
    )
    signer = await sqlite_core.add_signer(credential=False)
    task = await submit(sqlite_core, signer.person)

    with pytest.raises(ApplianceError):
        await waiting.wait(task, 0.05)

    assert [str(work) for work in sqlite_core.work_notifier.notified] == [task]


async def test_wait_for_no_task_is_refused(sqlite_core: CoreFixture) -> None:
    """A task that is not there cannot be waited for."""
    with pytest.raises(ApplianceError) as caught:
        await worker(sqlite_core).wait(TaskId("none"), 1)

    assert caught.value.code is ErrorCode.TASK_FAILED


async def test_order_for_nobody_is_refused(sqlite_core: CoreFixture) -> None:
    """A task whose person is not there names that."""
    signer = await sqlite_core.add_signer(credential=False)
    await submit(sqlite_core, signer.person)
    tasks = worker(sqlite_core)
    claim = await claimed(tasks)
    claim = replace(claim, input={**claim.input, "person": "nobody"})

    with pytest.raises(ApplianceError) as caught:
        await tasks.issue_order(claim)

    assert caught.value.code is ErrorCode.PERSON_NOT_FOUND


async def test_heartbeat_is_the_slots_last_word(core: CoreFixture) -> None:
    """One row a slot, and only those that spoke of late are alive."""
    for at in range(2):
        core.clock.forward(at)
        async with core.store.write() as transaction:
            for number in (1, 2):
                status = WorkerStatus(
                    f"signing/h/{number}", f"p{at}", core.now, "ready", ""
                )
                await WorkerStore(transaction).beat(status)
    since = core.now
    core.clock.forward(5)
    async with core.store.write() as transaction:
        last = WorkerStatus("signing/h/2", "p3", core.now, "pin", "refused", 2)
        await WorkerStore(transaction).beat(last)

    async with core.store.read() as transaction:
        assert await WorkerStore(transaction).alive(since) == [last]


@dataclass
class AccessTokens:
    """An HSM of which some tokens are there."""

    there: set[TokenRole]

    def status_of(self, role: TokenRole) -> HsmStatus:
        """Whether a role's token is one of them."""
        return HsmStatus.READY if role in self.there else HsmStatus.UNAVAILABLE


async def test_task_waits_unclaimed_for_its_token(core: CoreFixture) -> None:
    """No attempt is used up while it is away; what needs it not goes on."""
    signer = await core.add_signer(credential=False)
    issue, publish = await submit(core, signer.person), TaskId(new_id())
    tokens = AccessTokens({TokenRole.PKI})
    none: Any = None
    runner = TaskRunner(
        worker(core),
        authority=none,
        session=cast("HsmSession", tokens),
        keys=none,
        journal=none,
        clock=core.clock,
        mode=KeyMode.WRAPPED,
        installation="x",
        certificates=none,
        requests=none,
        timestamps=none,
        served=cast("GenerationCheck", AlwaysServed()),
        samples=SampleSignatures(
            worker(core),
            session=none,
            inspector=PlayedSandbox(),
            root=b"",
            clock=core.clock,
            served=none,
        ),
        new_keys=none,
    )

    nothing = [await runner.claim_next() for _ in range(TASK_ATTEMPTS + 1)]
    async with core.store.write() as transaction:
        await HsmTaskStore(transaction).add(publish, TaskKind.PUBLISH, {}, core.now)
    other = await runner.claim_next()
    tokens.there.add(TokenRole.FIRMA)
    mine = await runner.claim_next()

    assert nothing == [None] * (TASK_ATTEMPTS + 1)
    assert other is not None
    assert other.id == publish
    assert mine is not None
    assert (mine.id, mine.fence) == (issue, 1)
    tokens.there.clear()
    assert await runner.claim_next() is None


def test_every_kind_of_task_names_its_tokens() -> None:
    """None is claimed without a look at what it needs."""
    assert TOKENS.keys() == set(TaskKind)

"""Two chores workers on one record, at the same moment: nothing is done twice.

Each chore is run by both at once, over and over, with much to do; what is told of it
stands in the audit once. Source: docs/scaling.md "What hosts share".
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.console.expiry_notices import Expiry
from appliance.documents.garbage_collection import GarbageCollection
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.ids import CredentialId, TaskId, new_id
from appliance.domain.pki.certificates import CertificateRecord
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.domain.vocab import (
    CertificateKind,
    EventKind,
    RevocationReason,
    TaskKind,
    TaskState,
)
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import TASK_ATTEMPTS
from appliance.pki.automatic_renewal import AutoRenewal
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from appliance.pki.revocation import Revocations
from appliance.pki.revocation_store import RevocationStore
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import DocumentSettings
from appliance.signing.expiry import ExpiryJob
from tests.support.factories.fakes import NOON, FixedDocumentKeys
from tests.support.factories.held_credential import hold
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.storage

DAY = timedelta(days=1)
MANY = 12
WORKERS = 4
"""More than two meet more often."""
Chore = Callable[[Database], Awaitable[object]]


async def all_at_once(core: CoreFixture, chore: Chore) -> None:
    """Have every worker do it, twice."""
    stores = [core.store, *(core.other_store() for _ in range(WORKERS - 1))]
    for _ in range(2):
        await asyncio.gather(*(chore(store) for store in stores))


async def told(core: CoreFixture, kind: EventKind, *about: str) -> Counter[object]:
    """How often the audit tells something, by what it is about."""
    return Counter(
        tuple(row.event.detail[name] for name in about) or row.event.request
        for row in await core.audit()
        if row.event.event is kind
    )


async def test_requests_expire_once(core: CoreFixture) -> None:
    """Those of a process of several signers among them."""
    soon = core.now + timedelta(seconds=1)
    signers = [(await core.add_signer()).person for _ in range(3)]
    for _ in range(MANY):
        await core.add_request(signers[0], expires=soon)
        await core.add_process(signers, expires=soon)
    core.clock.forward(2)

    await all_at_once(
        core,
        lambda store: ExpiryJob(
            store, core.completion_notifier, core.clock
        ).expire_requests(),
    )

    expired = await told(core, EventKind.REQUEST_EXPIRED)
    assert len(expired) == MANY * 4
    assert set(expired.values()) == {1}


async def test_activations_expire_once(core: CoreFixture) -> None:
    """Each request goes back to its signer by one row of the audit."""
    begun = [await core.add_activation(await core.add_signer()) for _ in range(MANY)]
    core.clock.forward(61)

    await all_at_once(
        core,
        lambda store: ExpiryJob(
            store, core.completion_notifier, core.clock
        ).expire_activations(),
    )

    assert Counter(core.completion_notifier.published) == Counter(begun)
    returned = await told(core, EventKind.REQUEST_RETURNED)
    assert (len(returned), set(returned.values())) == (MANY, {1})


async def test_tasks_are_given_up_once(core: CoreFixture) -> None:
    """Whose attempts are used up: failed by one row of the audit."""
    for _ in range(MANY):
        async with core.store.write() as transaction:
            await HsmTaskStore(transaction).add(
                TaskId(new_id()), TaskKind.PUBLISH, {}, core.now
            )
    for _ in range(TASK_ATTEMPTS):
        for _ in range(MANY):
            async with core.store.write() as transaction:
                assert await HsmTaskStore(transaction).claim_next(
                    "w", "h", core.now, DAY / 24, TASK_ATTEMPTS, [TaskKind.PUBLISH]
                )
        core.clock.forward(3601)

    await all_at_once(
        core,
        lambda store: ExpiryJob(
            store, core.completion_notifier, core.clock
        ).fail_tasks(),
    )

    failed = await told(core, EventKind.TASK_FAILED, "task")
    assert (len(failed), set(failed.values())) == (MANY, {1})


async def ending(core: CoreFixture, days: int) -> CredentialId:
    """A credential whose certificate ends in so many days."""
    signer = await core.add_signer(credential=False)
    held = await hold(
        core.store,
        signer.person,
        "20267565393",
        NOON,
        not_before=NOON - 700 * DAY,
        not_after=NOON + days * DAY,
    )
    return held.id


async def test_ends_are_warned_of_once(core: CoreFixture) -> None:
    """One warning for each certificate, from whichever worker."""
    ends = [await ending(core, 20) for _ in range(MANY)]
    warned: list[str] = []

    async def no_own(transaction: Transaction) -> Sequence[tuple[ExpiringKind, bytes]]:
        del transaction
        return ()

    async def warn(store: Database) -> None:
        found = await Expiry(store, core.clock, no_own).warn()
        warned.extend(what.id for what, _ in found)

    await all_at_once(core, warn)

    assert Counter(warned) == Counter(ends)
    noted = await told(core, EventKind.CERTIFICATE_EXPIRING, "id")
    assert (len(noted), set(noted.values())) == (MANY, {1})


async def test_certificates_are_renewed_once(core: CoreFixture) -> None:
    """One task for each, though all found them due before the first was asked for."""
    for _ in range(MANY):
        await ending(core, 20)

    def renew(store: Database) -> Awaitable[object]:
        certificates = Certificates(store, core.clock)
        return AutoRenewal(
            store, certificates, core.clock, 30, lambda: NOON + 3650 * DAY
        ).submit_due()

    await all_at_once(core, renew)

    asked = await told(core, EventKind.TASK_CREATED, "credential")
    assert (len(asked), set(asked.values())) == (MANY, {1})


async def give_up(core: CoreFixture, *tasks: TaskId) -> None:
    """Have all tasks fail."""
    for _ in range(TASK_ATTEMPTS):
        for _ in tasks:
            async with core.store.write() as transaction:
                assert await HsmTaskStore(transaction).claim_next(
                    "w", "h", core.now, DAY / 24, TASK_ATTEMPTS, [TaskKind.REVOKE]
                )
        core.clock.forward(3601)
    await ExpiryJob(core.store, core.completion_notifier, core.clock).fail_tasks()
    async with core.store.read() as transaction:
        for task in tasks:
            status = await HsmTaskStore(transaction).status(task)
            assert status is not None
            assert status.state is TaskState.FAILED


async def test_revocations_go_on_once(core: CoreFixture) -> None:
    """What was given up has one new task."""
    revocations = Revocations(core.store, core.clock)
    given_up = []
    for _ in range(MANY):
        credential = await ending(core, 300)
        async with core.store.write() as transaction:
            given_up.append(
                await revocations.submit(
                    transaction, credential, RevocationReason.SUPERSEDED, "operator"
                )
            )
    await give_up(core, *given_up)
    before = await told(core, EventKind.TASK_CREATED, "kind")

    await all_at_once(core, lambda store: Revocations(store, core.clock).resume())

    after = await told(core, EventKind.TASK_CREATED, "kind")
    assert sum((after - before).values()) == MANY


async def test_revocation_of_the_tsa_goes_on_once(core: CoreFixture) -> None:
    """The same for a certificate of the appliance's own."""
    async with core.store.write() as transaction:
        await CertificateStore(transaction).add(
            CertificateRecord(
                "ab", CertificateKind.TSA, "0" * 40, None, b"tsa", NOON, NOON + DAY
            )
        )
        task = TaskId(new_id())
        reason = RevocationReason.SUPERSEDED
        assert await RevocationStore(transaction).begin_own(
            ["ab"], core.now, reason, task
        )
        await HsmTaskStore(transaction).add(
            task, TaskKind.REVOKE, {"serials": ["ab"]}, core.now
        )
    await give_up(core, task)

    await all_at_once(core, lambda store: TsaCertificates(store, core.clock).resume())

    assert sum((await told(core, EventKind.TASK_CREATED, "task")).values()) == 1


async def test_unused_documents_are_removed_once(core: CoreFixture) -> None:
    """And told once; a file that another has just removed is no fault."""
    folder: Path = core.settings.documents_dir
    documents = LocalBlobStore(folder, FixedDocumentKeys())
    integrator = await core.integrator()
    for number in range(MANY):
        await documents.put(integrator, b"unused %d" % number)
    for path in folder.rglob("*.pdf"):
        os.utime(path, (0, 0))

    def sweep(store: Database) -> Awaitable[object]:
        each = LocalBlobStore(folder, FixedDocumentKeys())
        return GarbageCollection(store, each, core.clock, DocumentSettings()).run()

    await all_at_once(core, sweep)

    assert not [*folder.rglob("*.pdf")]
    removed = await told(core, EventKind.DOCUMENT_REMOVED, "documentSha256")
    assert (len(removed), set(removed.values())) == (MANY, {1})

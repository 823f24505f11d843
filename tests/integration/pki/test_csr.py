"""Certificate signing requests: asked for, sealed, bound, ended; on both databases.

That the HSM signs them is `tests/functional/pki/test_outside_ca.py`.
"""

from dataclasses import replace

import pytest

from appliance.core.background import Shielded
from appliance.domain.errors import ActivationInvalidError, ErrorCode
from appliance.domain.hsm_tasks import TaskClaim
from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.vocab import (
    CredentialState,
    EventKind,
    TaskKind,
    TaskState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.key_encryption import open_outer, open_seal
from appliance.pki.csr import CsrWork, SigningRequests
from tests.support.factories.core import PASSWORD, CoreParts
from tests.support.factories.locked_key import INNER, LockedDesk, locked_desk
from tests.support.factories.signing_host import INSTALLATION

SLOT = "signing/h/1"
WRONG = b"una clave equivocada"


@pytest.fixture
async def desk(core: CoreParts) -> LockedDesk:
    """On each database."""
    return await locked_desk(core)


def asking(desk: LockedDesk) -> SigningRequests:
    """The use case of a front."""
    core = desk.core
    hosts = desk.host.hosts(core.store, core.clock)
    return SigningRequests(core.store, desk.attempts, hosts, core.clock, Shielded())


async def claimed(desk: LockedDesk) -> TaskClaim:
    """A request asked for, in the hands of a worker."""
    credential = await desk.credential()
    await asking(desk).ask(desk.signer, credential.id, PASSWORD)
    claim = await HsmTasks(desk.core.store, desk.core.clock, SLOT, "p").claim_next()
    assert claim is not None
    assert claim.kind is TaskKind.CSR
    return claim


async def test_seal_opens_the_key_for_this_task_alone(desk: LockedDesk) -> None:
    """By the rows alone; for another task, credential or version it does not open."""
    claim = await claimed(desk)
    order = await CsrWork(desk.core.store, SLOT).order(claim)
    credential = order.credential
    assert claim.seal is not None
    private, sealed = desk.host.private_bytes, claim.seal.sealed

    unlock = open_seal(private, sealed, order.binding.info())

    aad = credential.aad(INSTALLATION)
    assert open_outer(unlock, credential.outer, aad) == INNER
    for altered in (
        replace(order.binding, credential=CredentialId(new_id())),
        replace(order.binding, key_version=2),
        replace(order.binding, person=PersonId(new_id())),
        replace(order.binding, task=TaskId(new_id())),
    ):
        with pytest.raises(ActivationInvalidError):
            open_seal(private, sealed, altered.info())


async def test_request_ends_its_task_and_leaves_no_seal(desk: LockedDesk) -> None:
    """Intended and made stand in the audit; whoever waits reads the request."""
    claim = await claimed(desk)
    work = CsrWork(desk.core.store, SLOT)

    await work.intended(claim, "ab" * 32)
    assert not await work.made(replace(claim, fence=claim.fence + 1), "another")
    assert await work.made(claim, "-----BEGIN CERTIFICATE REQUEST-----")

    async with desk.core.store.read() as transaction:
        status = await HsmTaskStore(transaction).status(claim.id)
        seals = await HsmTaskStore(transaction).seals(claim.id)
    assert status is not None
    assert status.state is TaskState.DONE
    assert status.output == {"csr": "-----BEGIN CERTIFICATE REQUEST-----"}
    assert seals == []
    audited = await desk.core.audited()
    assert audited[-3:] == [
        EventKind.TASK_CREATED,
        EventKind.CSR_INTENDED,
        EventKind.CSR_MADE,
    ]


async def test_wrong_password_is_counted_and_asks_for_nothing(desk: LockedDesk) -> None:
    """As for a signature."""
    credential = await desk.credential()

    code = await desk.code(asking(desk).ask(desk.signer, credential.id, WRONG))

    assert code is ErrorCode.SIGN_PASSWORD_WRONG
    assert (await desk.secret()).counted == 1
    async with desk.core.store.read() as transaction:
        assert not await HsmTaskStore(transaction).any_open(TaskKind.CSR)


async def test_only_its_holder_asks_and_only_in_use(desk: LockedDesk) -> None:
    """Another's is not there; one that is revoked asks for nothing."""
    credential = await desk.credential()
    stranger = replace(desk.signer, person=PersonId(new_id()))
    asks = asking(desk)

    unknown = await desk.code(asks.ask(stranger, credential.id, PASSWORD))
    async with desk.core.store.write() as transaction:
        await CredentialStore(transaction).set_state(
            credential.id, CredentialState.REVOKING
        )
    revoked = await desk.code(asks.ask(desk.signer, credential.id, PASSWORD))

    assert (unknown, revoked) == (
        ErrorCode.CREDENTIAL_NOT_FOUND,
        ErrorCode.CREDENTIAL_STATE,
    )
    assert (await desk.secret()).counted == 0


async def test_key_revoked_meanwhile_signs_no_request(desk: LockedDesk) -> None:
    """The worker looks again."""
    claim = await claimed(desk)
    credential = await desk.credential()
    async with desk.core.store.write() as transaction:
        await CredentialStore(transaction).set_state(
            credential.id, CredentialState.REVOKING
        )

    code = await desk.code(CsrWork(desk.core.store, SLOT).order(claim))

    assert code is ErrorCode.CREDENTIAL_STATE


async def test_password_stays_while_a_request_is_made(desk: LockedDesk) -> None:
    """The unlock key that is on its way has to open what is locked."""
    claim = await claimed(desk)
    change = desk.change.change(desk.signer, PASSWORD, b"otra clave de firma")

    assert await desk.code(change) is ErrorCode.IN_PROGRESS
    await CsrWork(desk.core.store, SLOT).made(claim, "x")
    await desk.change.change(desk.signer, PASSWORD, b"otra clave de firma")


async def test_nobody_alive_is_told_before_the_password(desk: LockedDesk) -> None:
    """503, and nothing counted."""
    credential = await desk.credential()
    desk.core.clock.forward(16)

    code = await desk.code(asking(desk).ask(desk.signer, credential.id, WRONG))

    assert code is ErrorCode.HSM_UNAVAILABLE
    assert (await desk.secret()).counted == 0

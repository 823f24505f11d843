"""Certificate signing requests: asked for, sealed, bound, ended; on both databases.

That the HSM signs them is `tests/functional/pki/test_outside_ca.py`.
"""

from dataclasses import replace

import pytest

from appliance.domain.errors import ActivationInvalidError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.signing.hsm_tasks import TaskClaim
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
from appliance.keys.key_facts import KeyFacts
from appliance.pki.csr import CsrWork, SigningRequests
from appliance.system.background import Shielded
from tests.integration.keys.locked_key import (
    INNER,
    LockedKeyServices,
    locked_key_services,
)
from tests.support.factories.signing_host import INSTALLATION
from tests.support.installation.record import PASSWORD, CoreFixture

SLOT = "signing/h/1"
WRONG = b"una clave equivocada"


@pytest.fixture
async def locked_key(core: CoreFixture) -> LockedKeyServices:
    """On each database."""
    return await locked_key_services(core)


def asking(locked_key: LockedKeyServices) -> SigningRequests:
    """The use case of a front."""
    core = locked_key.core
    hosts = locked_key.host.hosts(core.store, core.clock)
    return SigningRequests(
        core.store, locked_key.attempts, hosts, core.clock, Shielded()
    )


async def claimed(locked_key: LockedKeyServices) -> TaskClaim:
    """A request asked for, in the hands of a worker."""
    credential = await locked_key.credential()
    await asking(locked_key).ask(locked_key.signer, credential.id, PASSWORD)
    claim = await HsmTasks(
        locked_key.core.store, locked_key.core.clock, SLOT, "p"
    ).claim_next()
    assert claim is not None
    assert claim.kind is TaskKind.CSR
    return claim


async def test_seal_opens_the_key_for_this_task_alone(
    locked_key: LockedKeyServices,
) -> None:
    """By the rows alone; for another task, credential or version it does not open."""
    claim = await claimed(locked_key)
    order = await CsrWork(locked_key.core.store, SLOT).order(claim)
    credential = order.credential
    assert claim.seal is not None
    private, sealed = locked_key.host.private_bytes, claim.seal.sealed

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


async def test_request_ends_its_task_and_leaves_no_seal(
    locked_key: LockedKeyServices,
) -> None:
    """Intended and made stand in the audit; whoever waits reads the request."""
    claim = await claimed(locked_key)
    work = CsrWork(locked_key.core.store, SLOT)

    await work.intended(claim, "ab" * 32, KeyFacts("cd" * 32, "1f"))
    assert not await work.made(replace(claim, fence=claim.fence + 1), "another")
    assert await work.made(claim, "-----BEGIN CERTIFICATE REQUEST-----")

    async with locked_key.core.store.read() as transaction:
        status = await HsmTaskStore(transaction).status(claim.id)
        seals = await HsmTaskStore(transaction).seals(claim.id)
    assert status is not None
    assert status.state is TaskState.DONE
    assert status.output == {"csr": "-----BEGIN CERTIFICATE REQUEST-----"}
    assert seals == []
    audited = await locked_key.core.audited()
    assert audited[-3:] == [
        EventKind.TASK_CREATED,
        EventKind.CSR_INTENDED,
        EventKind.CSR_MADE,
    ]


async def test_wrong_password_is_counted_and_asks_for_nothing(
    locked_key: LockedKeyServices,
) -> None:
    """As for a signature."""
    credential = await locked_key.credential()

    code = await locked_key.code(
        asking(locked_key).ask(locked_key.signer, credential.id, WRONG)
    )

    assert code is ErrorCode.SIGN_PASSWORD_WRONG
    assert (await locked_key.secret()).counted == 1
    async with locked_key.core.store.read() as transaction:
        assert not await HsmTaskStore(transaction).any_open(TaskKind.CSR)


async def test_only_its_holder_asks_and_only_in_use(
    locked_key: LockedKeyServices,
) -> None:
    """Another's is not there; one that is revoked asks for nothing."""
    credential = await locked_key.credential()
    stranger = replace(locked_key.signer, person=PersonId(new_id()))
    asks = asking(locked_key)

    unknown = await locked_key.code(asks.ask(stranger, credential.id, PASSWORD))
    async with locked_key.core.store.write() as transaction:
        await CredentialStore(transaction).set_state(
            credential.id, CredentialState.REVOKING
        )
    revoked = await locked_key.code(
        asks.ask(locked_key.signer, credential.id, PASSWORD)
    )

    assert (unknown, revoked) == (
        ErrorCode.CREDENTIAL_NOT_FOUND,
        ErrorCode.CREDENTIAL_STATE,
    )
    assert (await locked_key.secret()).counted == 0


async def test_key_revoked_meanwhile_signs_no_request(
    locked_key: LockedKeyServices,
) -> None:
    """The worker looks again."""
    claim = await claimed(locked_key)
    credential = await locked_key.credential()
    async with locked_key.core.store.write() as transaction:
        await CredentialStore(transaction).set_state(
            credential.id, CredentialState.REVOKING
        )

    code = await locked_key.code(CsrWork(locked_key.core.store, SLOT).order(claim))

    assert code is ErrorCode.CREDENTIAL_STATE


async def test_password_stays_while_a_request_is_made(
    locked_key: LockedKeyServices,
) -> None:
    """The unlock key that is on its way has to open what is locked."""
    claim = await claimed(locked_key)
    change = locked_key.change.change(
        locked_key.signer, PASSWORD, b"otra clave de firma"
    )

    assert await locked_key.code(change) is ErrorCode.IN_PROGRESS
    await CsrWork(locked_key.core.store, SLOT).made(claim, "x")
    await locked_key.change.change(locked_key.signer, PASSWORD, b"otra clave de firma")


async def test_nobody_alive_is_told_before_the_password(
    locked_key: LockedKeyServices,
) -> None:
    """503, and nothing counted."""
    credential = await locked_key.credential()
    locked_key.core.clock.forward(16)

    code = await locked_key.code(
        asking(locked_key).ask(locked_key.signer, credential.id, WRONG)
    )

    assert code is ErrorCode.HSM_UNAVAILABLE
    assert (await locked_key.secret()).counted == 0

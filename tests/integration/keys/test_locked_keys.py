"""Keys that only their owner's password opens: sealing, erasing, changing.

Source: design §4 "Password", "Activation keys".
"""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.ids import ActivationId, CredentialId, TaskId, new_id
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.vocab import (
    CredentialState,
    PersonState,
    TaskState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.key_encryption import open_outer, open_seal
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.people.person_store import PersonStore
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.expiry import ExpiryJob
from tests.integration.keys.locked_key import (
    FIRST,
    INNER,
    LOGIN,
    SECOND,
    LockedKeyServices,
    add_key,
    locked_key_services,
)
from tests.support.factories.consents import consent_data
from tests.support.factories.fakes import error_code
from tests.support.factories.signing_host import INSTALLATION
from tests.support.installation.record import (
    CERTIFICATE,
    PASSWORD,
    CoreFixture,
    keyed,
    prepared,
)

C = ErrorCode
NEW, WRONG = b"otra clave de firma", b"una clave equivocada"
BOTH = KeyRing(2, {1: FIRST, 2: SECOND})


@pytest.fixture
async def locked_key(core: CoreFixture) -> LockedKeyServices:
    """On each database."""
    return await locked_key_services(core)


@pytest.fixture
async def plain(sqlite_core: CoreFixture) -> LockedKeyServices:
    """On SQLite."""
    return await locked_key_services(sqlite_core)


async def seals(core: CoreFixture, activation: ActivationId) -> list[str]:
    """Hosts that something stands sealed to."""
    async with core.store.read() as transaction:
        return [
            seal.host for seal in await ActivationStore(transaction).seals(activation)
        ]


async def task_of(
    locked_key: LockedKeyServices, password: bytes = PASSWORD, *, fail: bool = True
) -> TaskId:
    """Take the person's key away and ask for another."""
    async with locked_key.core.store.write() as transaction:
        for held in await CredentialStore(transaction).locked(locked_key.signer.person):
            await CredentialStore(transaction).set_state(
                held.id, CredentialState.SUPERSEDED
            )
    task = await locked_key.issuing.again(locked_key.signer, password.decode())
    if fail:
        worker = HsmTasks(
            locked_key.core.store, locked_key.core.clock, "signing/h/1", "p"
        )
        claim = await worker.claim_next()
        assert claim is not None
        await worker.failed(claim, "X")
    return task


# -- sealing -------------------------------------------------------------------------


async def test_seal_opens_what_the_worker_needs(locked_key: LockedKeyServices) -> None:
    """By the rows alone: the seal gives the unlock key, and that the wrapped key."""
    await locked_key.sign(await locked_key.request())

    work = await locked_key.core.claiming().claim_next()
    assert work is not None
    assert work.credential is not None
    assert work.claim.seal is not None
    info = await consent_data(locked_key.core, work.claim)
    unlock = open_seal(locked_key.host.private_bytes, work.claim.seal.sealed, info)

    aad = work.credential.aad(INSTALLATION)
    assert open_outer(unlock, work.credential.outer, aad) == INNER


async def test_altered_activation_does_not_open(locked_key: LockedKeyServices) -> None:
    """Another document, written into the row before a worker came."""
    await locked_key.sign(await locked_key.request())
    work = await locked_key.core.claiming().claim_next()
    assert work is not None
    assert work.claim.seal is not None
    item = replace(work.claim.documents[0], document_sha256="00" * 32)
    altered = replace(work.claim, documents=(item,))

    with pytest.raises(ActivationInvalidError):
        open_seal(
            locked_key.host.private_bytes,
            work.claim.seal.sealed,
            await consent_data(locked_key.core, altered),
        )


async def test_nobody_alive_is_told_before_the_password(
    plain: LockedKeyServices,
) -> None:
    """503 without a slot taken, and nothing counted."""
    request = await plain.request()
    plain.core.clock.forward(16)

    code = await plain.code(plain.sign(request, WRONG))

    assert code is C.HSM_UNAVAILABLE
    assert (await plain.secret()).counted == 0


async def test_other_host_leaves_it_alone(locked_key: LockedKeyServices) -> None:
    """What is not sealed to a host is not for its workers to claim."""
    activation = await locked_key.sign(await locked_key.request())

    other = await locked_key.core.claiming("signing/other/1").claim_next()
    ours = await locked_key.core.claiming("signing/h/2").claim_next()

    assert other is None
    assert ours is not None
    assert ours.claim.id == activation


async def test_any_host_finishes_what_is_signed(locked_key: LockedKeyServices) -> None:
    """Once its signature is stored it needs no seal, and has none."""
    await locked_key.sign(await locked_key.request())
    ours = locked_key.core.claiming()
    work = await ours.claim_next()
    assert work is not None
    await ours.intend(work.claim, [prepared(work.claim.documents[0])], CERTIFICATE)
    await ours.record_signatures(work.claim, [keyed(work.claim.documents[0])])
    locked_key.core.clock.forward(11)

    other = await locked_key.core.claiming("signing/other/1").claim_next()

    assert other is not None
    assert other.claim.seal is None


# -- erasing -------------------------------------------------------------------------


async def test_last_signature_erases_the_seals(core: CoreFixture) -> None:
    """The commit that stores it does, and none before it."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    left = []
    for item in work.claim.documents:
        await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        await worker.record_signatures(work.claim, [keyed(item)])
        left.append(await seals(core, activation))

    assert left == [["h"], []]


@pytest.mark.parametrize("claimed", [False, True])
async def test_expiry_erases_the_seals(core: CoreFixture, *, claimed: bool) -> None:
    """Unclaimed, or claimed and not signed in time."""
    activation = await core.add_activation(await core.add_signer())
    if claimed:
        await core.claiming().claim_next()
    core.clock.forward(200)

    await ExpiryJob(
        core.store, core.completion_notifier, core.clock
    ).expire_activations()

    assert await seals(core, activation) == []


async def test_failure_erases_the_seals(core: CoreFixture) -> None:
    """What goes back to its signer is sealed anew with the next password."""
    activation = await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None

    await worker.returned(
        work.claim, list(work.claim.documents), C.ACTIVATION_INVALID, "seal"
    )

    assert await seals(core, activation) == []
    (row,) = [r for r in await core.audit() if r.event.event.value.endswith("returned")]
    assert row.event.detail["reason"] == "ACTIVATION_INVALID"
    assert row.event.detail["layer"] == "seal"


async def test_host_that_lost_its_key_leaves_it_to_others(core: CoreFixture) -> None:
    """Sealed to two, and one was rebooted: the other goes on, then nobody is left."""
    activation = await core.add_activation(
        await core.add_signer(), hosts=("h", "other")
    )
    ours, other = core.claiming(), core.claiming("signing/other/1")
    work = await ours.claim_next()
    assert work is not None

    assert await ours.leave_to_others(work.claim)

    again = await ours.claim_next()
    taken = await other.claim_next()
    assert again is None
    assert taken is not None
    assert taken.claim.id == activation
    assert not await other.leave_to_others(taken.claim)


# -- changing the password -----------------------------------------------------------


async def test_changed_password_opens_the_same_key(
    locked_key: LockedKeyServices,
) -> None:
    """The old one is wrong from then on; what the HSM wrapped is untouched."""
    before = await locked_key.credential()

    await locked_key.change.change(locked_key.signer, PASSWORD, NEW)

    after = await locked_key.credential()
    assert await locked_key.opened(NEW) == INNER
    assert after.outer != before.outer
    assert replace(after, outer=before.outer) == before
    assert (
        await locked_key.code(locked_key.sign(await locked_key.request()))
        is C.SIGN_PASSWORD_WRONG
    )
    assert await locked_key.sign(await locked_key.request(), NEW)
    assert "sign.password_changed" in await locked_key.core.audited()


async def test_wrong_old_password_counts(locked_key: LockedKeyServices) -> None:
    """By the same attempts as at signing, with what is left; then it locks."""
    calls = [b"una", b"otra", b"tercera"]
    codes = []
    for typed in calls:
        with pytest.raises(ApplianceError) as caught:
            await locked_key.change.change(locked_key.signer, typed * 3, NEW)
        codes.append((caught.value.code, caught.value.extras.get("attemptsLeft")))

    assert codes == [
        (C.SIGN_PASSWORD_WRONG, 2),
        (C.SIGN_PASSWORD_WRONG, 1),
        (C.SIGN_LOCKED, None),
    ]
    assert await locked_key.code(
        locked_key.change.change(locked_key.signer, PASSWORD, NEW)
    ) is (C.SIGN_LOCKED)
    assert await locked_key.opened() == INNER


async def test_login_password_is_refused_as_the_new_one(
    plain: LockedKeyServices,
) -> None:
    """One theft must not be enough; nor does the answer help to guess at it."""
    with pytest.raises(FieldInvalidError) as caught:
        await plain.change.change(plain.signer, PASSWORD, LOGIN)
    wrong = await plain.code(plain.change.change(plain.signer, WRONG, LOGIN))

    assert caught.value.field == "nueva"
    assert wrong is C.SIGN_PASSWORD_WRONG
    assert await plain.opened() == INNER


async def test_weak_password_is_no_new_one(plain: LockedKeyServices) -> None:
    """A common one, or the person's CUIL: refused before anything is tried."""
    async with plain.core.store.read() as transaction:
        person = await PersonStore(transaction).get(plain.signer.person)
    assert person is not None

    for weak in ("password1", person.cuil):
        with pytest.raises(FieldInvalidError) as caught:
            await plain.change.change(plain.signer, WRONG, weak.encode())
        assert caught.value.field == "nueva"

    assert (await plain.secret()).counted == 0


async def test_same_password_is_no_new_one(plain: LockedKeyServices) -> None:
    """Refused before anything is tried."""
    with pytest.raises(FieldInvalidError):
        await plain.change.change(plain.signer, WRONG, WRONG)

    assert (await plain.secret()).counted == 0


async def test_change_waits_for_what_is_being_signed(
    locked_key: LockedKeyServices,
) -> None:
    """The unlock key on its way is of the old password: 409 until it has arrived."""
    await locked_key.sign(await locked_key.request())
    busy = await locked_key.code(
        locked_key.change.change(locked_key.signer, PASSWORD, NEW)
    )
    worker = locked_key.core.claiming()
    work = await worker.claim_next()
    assert work is not None
    still = await locked_key.code(
        locked_key.change.change(locked_key.signer, PASSWORD, NEW)
    )
    await worker.intend(work.claim, [prepared(work.claim.documents[0])], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(work.claim.documents[0])])

    await locked_key.change.change(locked_key.signer, PASSWORD, NEW)

    assert busy is still is C.IN_PROGRESS
    assert await locked_key.opened(NEW) == INNER


async def test_change_waits_for_a_key_that_is_being_made(
    locked_key: LockedKeyServices,
) -> None:
    """It would be locked with the old password's unlock key."""
    await task_of(locked_key, fail=False)

    assert await locked_key.code(
        locked_key.change.change(locked_key.signer, PASSWORD, NEW)
    ) is (C.IN_PROGRESS)


async def test_change_and_signature_at_once_leave_one_that_works(
    locked_key: LockedKeyServices,
) -> None:
    """Whoever comes first; never an activation that does not open."""
    request = await locked_key.request()

    codes = await asyncio.gather(
        locked_key.code(locked_key.sign(request)),
        locked_key.code(locked_key.change.change(locked_key.signer, PASSWORD, NEW)),
    )

    work = await locked_key.core.claiming().claim_next()
    if work is not None:
        assert work.credential is not None
        assert work.claim.seal is not None
        info = await consent_data(locked_key.core, work.claim)
        unlock = open_seal(locked_key.host.private_bytes, work.claim.seal.sealed, info)
        aad = work.credential.aad(INSTALLATION)
        assert open_outer(unlock, work.credential.outer, aad) == INNER
    assert None in codes
    assert set(codes) <= {None, C.IN_PROGRESS, C.SIGN_PASSWORD_WRONG}


@pytest.mark.parametrize(
    ("alone", "refusal"), [(True, C.SIGN_PASSWORD_WRONG), (False, C.ACTIVATION_INVALID)]
)
async def test_key_that_does_not_open_stops_the_change(
    locked_key: LockedKeyServices, alone: bool, refusal: ErrorCode
) -> None:
    """Nothing is changed by halves; alone, it makes every password a wrong one."""
    credential = await locked_key.credential()
    if not alone:
        name = CredentialId(new_id())
        found = await locked_key.passwords.check(
            PASSWORD, await locked_key.secret(), (name,)
        )
        await add_key(locked_key.core, locked_key.signer, name, found.unlock[name])
    async with locked_key.core.store.write() as transaction:
        await CredentialStore(transaction).set_state(
            credential.id, CredentialState.ACTIVE
        )
        await CredentialStore(transaction).relock(credential.id, b"x" * 60)
    before = await locked_key.secret()

    code = await locked_key.code(
        locked_key.change.change(locked_key.signer, PASSWORD, NEW)
    )

    assert code is refusal
    assert replace(await locked_key.secret(), counted=0) == before


# -- the pepper ----------------------------------------------------------------------


async def test_older_pepper_is_left_at_the_next_signature(core: CoreFixture) -> None:
    """Password, lock and activation are all of the new derivation at once."""
    services = await locked_key_services(core, BOTH)

    await services.sign(await services.request())

    assert (await services.secret()).pepper_version == 2
    assert await services.opened() == INNER
    work = await core.claiming().claim_next()
    assert work is not None
    assert work.credential is not None
    assert work.claim.seal is not None
    info = await consent_data(core, work.claim)
    unlock = open_seal(services.host.private_bytes, work.claim.seal.sealed, info)
    aad = work.credential.aad(INSTALLATION)
    assert open_outer(unlock, work.credential.outer, aad) == INNER
    assert "sign.pepper_renewed" in await core.audited()


async def test_new_pepper_is_kept_once_for_all_of_one_check(core: CoreFixture) -> None:
    """Each of those who waited for it gets what opens the key as it is now."""
    services = await locked_key_services(core, BOTH)
    name = (await services.credential()).id
    right = await services.attempts.check(services.signer, None, PASSWORD)

    opened = []
    for _ in range(3):
        async with core.store.write() as transaction:
            unlock = await services.attempts.passed(transaction, services.signer, right)
        assert unlock is not None
        now = await services.credential()
        opened.append(open_outer(unlock[name], now.outer, now.aad(INSTALLATION)))

    assert opened == [INNER] * 3
    assert (await services.secret()).pepper_version == 2
    assert (await core.audited()).count("sign.pepper_renewed") == 1


async def test_older_pepper_stays_while_a_key_is_in_use(core: CoreFixture) -> None:
    """What is on its way opens; the next signature after it renews."""
    old = await locked_key_services(core)
    await old.sign(await old.request())
    services = replace(await locked_key_services(core, BOTH), signer=old.signer)

    await services.sign(await services.request())

    assert (await services.secret()).pepper_version == 1
    assert await services.opened() == INNER


async def test_changed_password_is_under_the_present_pepper(core: CoreFixture) -> None:
    """Also where the old one was kept under an earlier."""
    services = await locked_key_services(core, BOTH)

    await services.change.change(services.signer, PASSWORD, NEW)

    assert (await services.secret()).pepper_version == 2
    assert await services.opened(NEW) == INNER


# -- another key ---------------------------------------------------------------------


async def test_failed_enrolment_can_be_asked_for_again(
    locked_key: LockedKeyServices,
) -> None:
    """With the password chosen before; sealed, and open to the right host alone."""
    first = await task_of(locked_key)
    second = await locked_key.issuing.again(locked_key.signer, PASSWORD.decode())

    worker = HsmTasks(locked_key.core.store, locked_key.core.clock, "signing/h/1", "p")
    other = HsmTasks(
        locked_key.core.store, locked_key.core.clock, "signing/other/1", "p"
    )
    assert await other.claim_next() is None
    claim = await worker.claim_next()
    assert claim is not None
    assert claim.id == second != first
    assert claim.seal is not None
    order = await worker.issue_order(claim)
    unlock = open_seal(
        locked_key.host.private_bytes, claim.seal.sealed, order.binding.info()
    )
    name = CredentialId(claim.id)
    found = await locked_key.passwords.check(
        PASSWORD, await locked_key.secret(), (name,)
    )
    assert found.unlock[name] == unlock


async def test_key_is_not_asked_for_twice(locked_key: LockedKeyServices) -> None:
    """Who has one, or is getting one, gets no other by it."""
    has = await locked_key.code(
        locked_key.issuing.again(locked_key.signer, PASSWORD.decode())
    )
    await task_of(locked_key, fail=False)
    getting = await locked_key.code(
        locked_key.issuing.again(locked_key.signer, PASSWORD.decode())
    )

    assert (has, getting) == (C.ALREADY_EXISTS, C.IN_PROGRESS)


async def test_refusal_after_the_right_password_closes_its_attempt(
    locked_key: LockedKeyServices,
) -> None:
    """Of two who ask at once one is refused when both passwords are checked."""
    await task_of(locked_key)

    codes = await asyncio.gather(
        *(
            locked_key.code(
                locked_key.issuing.again(locked_key.signer, PASSWORD.decode())
            )
            for _ in "ab"
        )
    )

    async with locked_key.core.store.read() as transaction:
        since = locked_key.core.now - timedelta(hours=1)
        running = await PasswordAttemptStore(transaction).running(
            locked_key.signer.person, since
        )
    assert set(codes) == {None, C.IN_PROGRESS}
    assert running == 0


async def test_end_of_a_task_erases_its_seals(locked_key: LockedKeyServices) -> None:
    """Done or failed, and when its time is over."""
    failed = await task_of(locked_key)
    late = await locked_key.issuing.again(locked_key.signer, PASSWORD.decode())
    async with locked_key.core.store.read() as transaction:
        kept = [
            len(await HsmTaskStore(transaction).seals(task)) for task in (failed, late)
        ]
    locked_key.core.clock.forward(1200)

    sweeping = ExpiryJob(
        locked_key.core.store,
        locked_key.core.completion_notifier,
        locked_key.core.clock,
    )
    assert await sweeping.fail_tasks() == 1

    async with locked_key.core.store.read() as transaction:
        status = await HsmTaskStore(transaction).status(late)
        left = await HsmTaskStore(transaction).seals(late)
    assert kept == [0, 1]
    assert left == []
    assert status is not None
    assert (status.state, status.reason) == (TaskState.FAILED, "ACTIVATION_EXPIRED")
    await locked_key.host.beat(locked_key.core.store, locked_key.core.now)
    assert await locked_key.issuing.again(locked_key.signer, PASSWORD.decode())


async def test_key_is_for_active_people_alone(plain: LockedKeyServices) -> None:
    """Nobody who is disabled, and nobody unknown."""
    nobody = replace(plain.signer, person=new_id())  # type: ignore[arg-type]  # an id
    held = await plain.credential()
    async with plain.core.store.write() as transaction:
        await CredentialStore(transaction).set_state(
            held.id, CredentialState.SUPERSEDED
        )
        await PersonStore(transaction).move(
            plain.signer.person, PersonState.ACTIVE, PersonState.DISABLED
        )

    codes = [
        await error_code(plain.issuing.again(who, "12345678"))
        for who in (plain.signer, nobody)
    ]

    assert codes == [C.PERSON_STATE, C.PERSON_NOT_FOUND]

"""K1: whoever writes to the database and has the signing PIN makes no signing host.

The thief here has all rows and the HSM's worker identity, which signs whatever a PIN
holder asks. What they lack is the key of an admitted host.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete, insert

from appliance.database.tables import worker_status
from appliance.domain.errors import ApplianceError, ErrorCode, HsmUnavailableError
from appliance.domain.signing.activation import ActivationFormat, ActivationKey
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.activation_format import pin_format
from appliance.keys.host_belief import KeyStanding
from appliance.keys.key_encryption import seal_to_each
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.secrets.admitted_hosts import admit, remove
from tests.support.factories.signing_host import SigningHost
from tests.support.installation.record import CoreFixture

FIRST, WHOLE = ActivationFormat.FIRST, ActivationFormat.WHOLE
THIEF = "zz-thief"
"""After all other hosts in every order."""


@pytest.fixture
def host(tmp_path: Path) -> SigningHost:
    """The true signing host, admitted on this front."""
    return SigningHost(tmp_path)


@pytest.fixture
def thief(tmp_path: Path, host: SigningHost) -> SigningHost:
    """A host of the thief's: the true worker identity, and an own host key."""
    folder = tmp_path / "thief"
    folder.mkdir()
    return SigningHost(folder, THIEF, identity=host.identity)


def close(host: SigningHost) -> None:
    """Let the newest format alone count on the front."""
    pin_format(host.pins.with_name("activation-format"), WHOLE)


async def write_rows(
    core: CoreFixture, keys: Sequence[ActivationKey], *slots: str
) -> None:
    """Write as somebody does who may write everything."""
    async with core.store.write() as transaction:
        for key in keys:
            await ActivationKeyStore(transaction).publish(key)
        for slot in slots:
            await transaction.connection.execute(
                delete(worker_status).where(worker_status.c.slot == slot)
            )
            await transaction.connection.execute(
                insert(worker_status).values(
                    slot=slot,
                    process="p",
                    at=core.now,
                    hsm="ready",
                    reason="",
                    activation_format=99,
                )
            )


async def sealed_to(core: CoreFixture, host: SigningHost) -> list[tuple[str, bytes]]:
    """Seal an unlock key as a front does; host and public key of each seal."""
    chosen = await host.hosts(core.store, core.clock).live()
    assert len(seal_to_each(chosen, b"u" * 32, b"info")) == len(chosen)
    return [(key.host, key.public) for key in chosen]


async def only_the_true_host(core: CoreFixture, host: SigningHost) -> bool:
    """Return whether one seal is made, and it is to the true host's own key."""
    true = host.private.public_key().public_bytes_raw()
    return await sealed_to(core, host) == [(host.name, true)]


@pytest.mark.storage
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "open"])
async def test_own_host_with_the_true_identity_gets_no_seal(
    core: CoreFixture, host: SigningHost, thief: SigningHost, is_closed: bool
) -> None:
    """With an own host key, with none, and in every slot that says that it is alive."""
    if is_closed:
        close(host)
    await host.beat(core.store, core.now)
    whole = thief.key(core.now)
    for forged in (
        whole,
        replace(whole, host_signature=None),
        replace(whole, host_signature=b""),
        replace(whole, host_signature=bytes(64)),
        thief.key(core.now, epoch=whole.epoch + 1),
    ):
        slots = (f"signing/{THIEF}/1", f"signing/{THIEF}/{host.name}/1")
        await write_rows(core, [forged], *slots)

        assert await only_the_true_host(core, host)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(path.read_bytes() + b"\xff"),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), path.symlink_to("nowhere")),
        lambda path: path.chmod(0o664),
    ],
    ids=["empty", "cut", "no text", "a folder", "a link to nothing", "open"],
)
async def test_damaged_list_of_hosts_brings_the_old_format_back_for_nobody(
    sqlite_core: CoreFixture, host: SigningHost, damage: Callable[[Path], object]
) -> None:
    """Before the upgrade is closed, a host that is admitted has no key of it."""
    old = host.key(sqlite_core.now, epoch=FIRST.epoch_at(sqlite_core.now))
    belief = host.belief()
    assert belief.standing(old) is KeyStanding.OLD_FORMAT

    damage(host.admitted)

    assert belief.standing(old) is KeyStanding.OLD_FORMAT
    assert host.belief().standing(old) is KeyStanding.OLD_FORMAT


async def test_link_to_nothing_is_no_missing_format(
    sqlite_core: CoreFixture, host: SigningHost
) -> None:
    """The file that closes an upgrade, while what it leads to is away."""
    path = host.pins.with_name("activation-format")
    path.symlink_to("nowhere")

    with pytest.raises(ApplianceError) as caught:
        host.belief().standing(host.key(sqlite_core.now))

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


@pytest.mark.parametrize("mode", [0o664, 0o646])
async def test_pins_that_others_may_write_are_not_relied_on(
    sqlite_core: CoreFixture, host: SigningHost, mode: int
) -> None:
    """Each role of a machine could be a signing host else; mended, they count again."""
    close(host)
    key, belief = host.key(sqlite_core.now), host.belief()
    closing = host.pins.with_name("activation-format")
    assert belief.standing(key) is KeyStanding.BELIEVED
    for path, told in (
        (host.pins, KeyStanding.UNKNOWN_IDENTITY),
        (host.admitted, KeyStanding.NOT_ADMITTED),
    ):
        path.chmod(mode)
        assert belief.standing(key) is told
        path.chmod(0o644)
        assert belief.standing(key) is KeyStanding.BELIEVED

    closing.chmod(mode)

    with pytest.raises(ApplianceError) as caught:
        belief.standing(key)
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


@pytest.mark.storage
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "open"])
async def test_key_in_the_name_of_an_admitted_host_gets_no_seal(
    core: CoreFixture, host: SigningHost, thief: SigningHost, is_closed: bool
) -> None:
    """By the thief's host key, the true host's other signatures, and the old format.

    The true rows are overwritten, so nobody can sign; but the thief gets nothing.
    """
    if is_closed:
        close(host)
    true, forged = host.key(core.now), thief.key(core.now, name=host.name)
    old = thief.key(core.now, epoch=FIRST.epoch_at(core.now), name=host.name)
    mine = thief.private.public_key().public_bytes_raw()
    await host.beat(core.store, core.now)
    for each in (
        forged,
        replace(forged, host_signature=true.host_signature),
        replace(true, public=mine),
        replace(true, public=mine, signature=forged.signature),
        replace(host.key(core.now, epoch=true.epoch + 1), epoch=true.epoch),
        old,
        replace(old, host_signature=true.host_signature),
    ):
        async with core.store.write() as transaction:
            await ActivationKeyStore(transaction).forget(0, 2**40)
        await write_rows(core, [each])

        with pytest.raises(HsmUnavailableError):
            await sealed_to(core, host)


@pytest.mark.storage
async def test_old_format_of_an_own_host_counts_until_the_upgrade_is_closed(
    core: CoreFixture, host: SigningHost, thief: SigningHost
) -> None:
    """Stated honestly: before that PIN and database suffice, and no longer."""
    await host.beat(core.store, core.now)
    old = thief.key(core.now, epoch=FIRST.epoch_at(core.now))
    await write_rows(core, [old], f"signing/{THIEF}/1")

    before = {name for name, _ in await sealed_to(core, host)}
    close(host)

    assert before == {host.name, THIEF}
    assert await only_the_true_host(core, host)


async def test_no_row_opens_what_was_closed(
    sqlite_core: CoreFixture, host: SigningHost, thief: SigningHost
) -> None:
    """Workers of the release before that seem to be alive change nothing."""
    core = sqlite_core
    close(host)
    await host.beat(core.store, core.now)
    old = thief.key(core.now, epoch=FIRST.epoch_at(core.now))
    await write_rows(core, [old], f"signing/{THIEF}/1", f"signing/{host.name}/2")
    async with core.store.write() as transaction:
        await transaction.connection.execute(
            worker_status.update().values(activation_format=None)
        )

    assert await only_the_true_host(core, host)


async def test_host_key_without_the_identity_makes_no_key(
    sqlite_core: CoreFixture, host: SigningHost, thief: SigningHost
) -> None:
    """A copy of the host's file and the database lack the PIN."""
    core = sqlite_core
    close(host)
    await host.beat(core.store, core.now)
    true = host.key(core.now)
    stranger = ec.generate_private_key(ec.SECP256R1())
    forged = thief.key(core.now, name=host.name, own=host.own, identity=stranger)

    for each in (
        forged,
        replace(forged, identity=true.identity),
        replace(forged, identity=true.identity, signature=true.signature),
    ):
        assert host.belief().standing(each) is not KeyStanding.BELIEVED


async def test_host_that_is_removed_gets_no_seal_from_then_on(
    sqlite_core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """By a front that believed it a moment ago."""
    core = sqlite_core
    other = SigningHost(tmp_path, "other", identity=host.identity)
    host.pins.write_bytes(other.pins.read_bytes())
    await host.beat(core.store, core.now)
    await other.beat(core.store, core.now)
    hosts = host.hosts(core.store, core.clock)
    before = {key.host for key in await hosts.live()}

    assert remove(host.admitted, "other")

    assert before == {"h", "other"}
    assert {key.host for key in await hosts.live()} == {"h"}


async def test_host_of_another_key_is_not_believed(
    sqlite_core: CoreFixture, host: SigningHost
) -> None:
    """Readiness names the reason, and so does the refusal."""
    core = sqlite_core
    await host.beat(core.store, core.now)
    stranger = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    hosts = host.hosts(core.store, core.clock)
    ready = await hosts.readiness()

    admit(host.admitted, host.name, stranger)

    with pytest.raises(HsmUnavailableError) as caught:
        await hosts.live()
    assert (ready, await hosts.readiness()) == ("ok", "HOST_NOT_ADMITTED")
    assert caught.value.reason == (
        "signing host h is not admitted on this machine by the key that it has: "
        "rubrica hsm admit"
    )


async def test_upgraded_front_seals_to_a_host_of_the_release_before(
    sqlite_core: CoreFixture, tmp_path: Path
) -> None:
    """Not admitted, without a key of its own: it counts until the close."""
    core = sqlite_core
    host = SigningHost(tmp_path, is_admitted=False)
    old = host.key(core.now, epoch=FIRST.epoch_at(core.now))
    status = WorkerStatus(f"signing/{host.name}/1", "p", core.now, "ready", "")
    async with core.store.write() as transaction:
        await WorkerStore(transaction).beat(status)
        await ActivationKeyStore(transaction).publish(old)
    hosts = host.hosts(core.store, core.clock)
    (before,) = await hosts.live()

    close(host)

    assert before == old
    with pytest.raises(HsmUnavailableError):
        await hosts.live()
    assert await hosts.readiness() == "HSM_UNAVAILABLE"

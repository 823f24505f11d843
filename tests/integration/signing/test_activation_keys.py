"""Whom a front seals to, and what a host keeps to open it with.

Source: design §4 "Activation keys".
"""

import hashlib
import os
import shutil
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import update

from appliance.database.tables import worker_status
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    HsmUnavailableError,
)
from appliance.domain.signing.activation import (
    ActivationFormat,
    ActivationKey,
    Seal,
    epoch_start,
    newest_of_each,
)
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import Environment
from appliance.keys.activation_format import PinnedFormat, pin_format
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.host_belief import KeyStanding
from appliance.keys.key_encryption import seal_to
from appliance.keys.signing_hosts import SigningHosts
from appliance.keys.worker_identities import PinnedIdentities
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.secrets.admitted_hosts import admit
from appliance.secrets.host_key import make_host_key
from appliance.settings import SettingsError
from tests.support.factories.signing_host import INSTALLATION, SigningHost
from tests.support.installation.record import CoreFixture
from worker.signing.activation_keys import (
    ActivationFolder,
    ActivationKeys,
    KeySweep,
    filesystem_of,
    open_folder,
)

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:5 / /dev rw - devtmpfs devtmpfs rw
24 23 0:20 / /dev/shm rw,nosuid - tmpfs tmpfs rw
25 22 0:21 / /mnt/con\\040espacio rw shared:1 - ramfs none rw
26 22 0:22 / /run rw - ext4 /dev/vdb rw
27 26 0:23 / /run rw - tmpfs tmpfs rw
"""

MINUTES = ActivationFormat.WHOLE


class Identity:
    """What a worker asks of the HSM to prove where its keys are from."""

    def __init__(self, host: SigningHost) -> None:
        self._key = host.identity
        self.signed = 0
        self.away = False

    async def identity_statement(self, message: bytes) -> tuple[bytes, bytes]:
        """DER, and ECDSA, unless the HSM is away."""
        if self.away:
            raise HsmUnavailableError
        self.signed += 1
        public = self._key.public_key()
        return (
            public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            self._key.sign(message, ec.ECDSA(SHA256())),
        )


@pytest.fixture
def host(tmp_path: Path) -> SigningHost:
    """A host whose identity is pinned."""
    return SigningHost(tmp_path)


def folder_in(path: Path) -> ActivationFolder:
    """A folder of keys, on whatever the tests' folder is on."""
    return open_folder(path / "activation", Environment.PREPROD)


def keys_of(
    core: CoreFixture,
    host: SigningHost,
    identity: Identity,
    folder: ActivationFolder,
    oldest: ActivationFormat = MINUTES,
) -> ActivationKeys:
    """A worker's keys, with an HSM that does nothing but prove."""
    pin_format(host.pins.with_name("activation-format"), oldest)
    published = PublishedKeys(core.store)
    return ActivationKeys(
        folder,
        published,
        identity,  # type: ignore[arg-type]  # the two calls that it makes
        core.clock,
        host.name,
        INSTALLATION,
        PinnedFormat(host.pins.with_name("activation-format")),
        host.key_file,
    )


def sweep_of(
    core: CoreFixture, host: SigningHost, folder: ActivationFolder
) -> KeySweep:
    """What deletes a host's private halves, by the time alone."""
    pinned = PinnedFormat(host.pins.with_name("activation-format"))
    return KeySweep(folder, core.clock, pinned)


async def published(core: CoreFixture) -> list[ActivationKey]:
    """Every key on the record."""
    async with core.store.read() as transaction:
        return await ActivationKeyStore(transaction).published(0)


async def refused(hosts: SigningHosts) -> str:
    """Why nobody can be sealed to."""
    with pytest.raises(HsmUnavailableError) as caught:
        await hosts.live()
    return caught.value.reason


# -- the front's side ----------------------------------------------------------------


async def test_host_with_a_pinned_identity_is_sealed_to(
    core: CoreFixture, host: SigningHost
) -> None:
    """Alive, with its HSM, and with a key that the pinned identity signed."""
    hosts = host.hosts(core.store, core.clock)
    await host.beat(core.store, core.now)

    (chosen,) = await hosts.live()

    assert chosen.public == host.key(core.now).public
    assert (chosen.host, chosen.epoch) == ("h", MINUTES.epoch_at(core.now))


async def test_host_is_silent_after_fifteen_seconds(
    core: CoreFixture, host: SigningHost
) -> None:
    """Nobody seals to a host whose workers are dead."""
    hosts = host.hosts(core.store, core.clock)
    await host.beat(core.store, core.now)

    core.clock.forward(15)

    assert await refused(hosts) == "no signing worker has its HSM"


async def test_host_without_its_hsm_is_not_sealed_to(
    core: CoreFixture, host: SigningHost
) -> None:
    """It could open, but not sign."""
    await host.beat(core.store, core.now, hsm="unavailable")

    assert "no signing worker" in await refused(host.hosts(core.store, core.clock))


async def test_key_of_a_stranger_is_not_sealed_to(
    core: CoreFixture, host: SigningHost
) -> None:
    """Whoever writes to the database alone has no identity that is pinned.

    Neither with a signature of their own, nor under the pinned one's name, nor
    with the pinned one's signature over another key, host or epoch.
    """
    hosts = host.hosts(core.store, core.clock)
    await host.beat(core.store, core.now)
    good = host.key(core.now)
    stranger = ec.generate_private_key(ec.SECP256R1())
    foreign = host.key(core.now, identity=stranger)
    mine = X25519PrivateKey.generate().public_key().public_bytes_raw()
    for forged in (
        foreign,
        replace(foreign, identity=good.identity),
        replace(good, public=mine),
        replace(good, epoch=good.epoch + 1),
        replace(good, signature=b""),
    ):
        async with core.store.write() as transaction:
            await ActivationKeyStore(transaction).forget(0, 2**40)
            await ActivationKeyStore(transaction).publish(forged)

        reason = await refused(hosts)
        assert "pinned identity" in reason or "not admitted" in reason, forged


async def test_newer_key_of_a_stranger_hides_no_good_one(
    core: CoreFixture, host: SigningHost
) -> None:
    """A forged row for the next epoch does not keep anybody from signing."""
    await host.beat(core.store, core.now)
    stranger = ec.generate_private_key(ec.SECP256R1())
    next_one = MINUTES.epoch_at(core.now) + 1
    async with core.store.write() as transaction:
        await ActivationKeyStore(transaction).publish(
            host.key(core.now, epoch=next_one, identity=stranger)
        )

    (chosen,) = await host.hosts(core.store, core.clock).live()

    assert chosen.epoch == MINUTES.epoch_at(core.now)


async def test_old_key_is_not_sealed_to(core: CoreFixture, host: SigningHost) -> None:
    """One of two epochs ago, put back by whoever has its private half by now."""
    old = host.key(core.now, epoch=MINUTES.epoch_at(core.now) - 2)
    await host.beat(core.store, core.now)
    async with core.store.write() as transaction:
        await ActivationKeyStore(transaction).forget(0, 2**40)
        await ActivationKeyStore(transaction).publish(old)

    assert "activation key" in await refused(host.hosts(core.store, core.clock))


async def test_nobody_is_believed_without_the_file_of_pins(
    core: CoreFixture, host: SigningHost
) -> None:
    """And it is read again when it comes, without a new start."""
    hosts = host.hosts(core.store, core.clock)
    await host.beat(core.store, core.now)
    pins = host.pins.read_bytes()
    host.pins.unlink()
    before = await refused(hosts)

    host.pins.write_bytes(b"# pins\n" + pins)

    assert "pinned identity" in before
    assert len(await hosts.live()) == 1


def test_rsa_identity_is_pinned_beside_others(tmp_path: Path) -> None:
    """One file may hold several, of both kinds; what is none is passed over."""
    first, second = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    third = rsa.generate_private_key(65537, 2048)
    pem = b"".join(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        for key in (first, third)
    )
    path = tmp_path / "pins.pem"
    broken = b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    path.write_bytes(broken + pem)
    pinned = PinnedIdentities(path)

    def name(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
        spki = key.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha256(spki).hexdigest()

    ecdsa = first.sign(b"m", ec.ECDSA(SHA256()))
    pkcs1 = third.sign(b"m", PKCS1v15(), SHA256())
    assert pinned.signed(name(first), b"m", ecdsa)
    assert pinned.signed(name(third), b"m", pkcs1)
    assert not pinned.signed(name(first), b"n", ecdsa)
    assert not pinned.signed(name(third), b"m", ecdsa)
    assert not pinned.signed(name(second), b"m", ecdsa)


# -- the host's side -----------------------------------------------------------------


async def test_key_is_made_published_and_opened_with(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Made once, believed by a front, and what is sealed to it opens here."""
    identity = Identity(host)
    keys = keys_of(core, host, identity, folder_in(tmp_path))
    await keys.keep()
    await keys.keep()
    await host_alive(core)

    (chosen,) = await host.hosts(core.store, core.clock).live()
    seal = Seal(chosen.host, chosen.epoch, seal_to(chosen.public, b"u" * 32, b"info"))

    assert identity.signed == 2
    assert keys.unlock(seal, b"info") == b"u" * 32
    with pytest.raises(ActivationInvalidError):
        keys.unlock(seal, b"other")


async def host_alive(
    core: CoreFixture, slot: str = "signing/h/1", *, earlier: bool = False
) -> None:
    """A worker beats; or one of the release before."""
    async with core.store.write() as transaction:
        await WorkerStore(transaction).beat(
            WorkerStatus(slot, "p", core.now, "ready", "")
        )
        if earlier:
            await transaction.connection.execute(
                update(worker_status)
                .where(worker_status.c.slot == slot)
                .values(activation_format=None)
            )


async def test_workers_of_a_host_share_one_key(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Whoever comes second takes what is there, and publishes nothing anew."""
    identity = Identity(host)
    first = keys_of(core, host, identity, folder_in(tmp_path))
    second = keys_of(core, host, identity, folder_in(tmp_path))

    await first.keep()
    await second.keep()

    assert len(await published(core)) == identity.signed == 2


async def test_next_key_is_published_before_its_epoch(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """No epoch begins without one, and five are kept."""
    identity, folder = Identity(host), folder_in(tmp_path)
    keys = keys_of(core, host, identity, folder)
    sweep = sweep_of(core, host, folder)
    now = MINUTES.epoch_at(core.now)
    seen = []
    for second in (0, 59, 60, 239, 240, 300):
        core.clock.at = epoch_start(now).replace(microsecond=0)
        core.clock.forward(second)
        await keys.keep()
        await sweep.run()
        seen.append(
            (
                second,
                [key.epoch - now for key in await published(core)],
                [n for n in range(-1, 8) if folder.has(now + n)],
            )
        )

    assert seen == [
        (0, [0, 1], [0, 1]),
        (59, [0, 1], [0, 1]),
        (60, [0, 1, 2], [0, 1, 2]),
        (239, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        (240, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (300, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
    ]


@pytest.mark.parametrize("skew_s", [-90, -30, 0, 30, 90])
async def test_front_whose_clock_is_off_finds_a_key_that_lasts(
    core: CoreFixture, host: SigningHost, tmp_path: Path, skew_s: int
) -> None:
    """In each second of a minute: what is sealed opens for a key phase and more.

    A front that is ahead takes the key that is published ahead, one that is behind an
    earlier one. (By more than 15 s ahead it takes workers for silent, whatever keys
    there are; by 60 s behind, its consents are over when they are made.)
    """
    folder = folder_in(tmp_path)
    keys = keys_of(core, host, Identity(host), folder)
    sweep = sweep_of(core, host, folder)
    belief, lasts = host.belief(), []
    for second in range(300):
        await keys.keep()
        await sweep.run()
        if second >= 240:
            believed = [
                each
                for each in await published(core)
                if belief.standing(each) is KeyStanding.BELIEVED
            ]
            front = core.now + timedelta(seconds=skew_s)
            (chosen,) = newest_of_each(believed, [host.name], front)
            gone = epoch_start(chosen.epoch + MINUTES.epochs_kept)
            assert folder.has(chosen.epoch)
            lasts.append((gone - core.now).total_seconds())
        core.clock.forward(1)

    assert min(lasts) > 120


async def test_key_of_an_epoch_is_signed_once_by_the_hsm(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """An hour costs the HSM one signature a minute, for all workers of the host."""
    identity, folder = Identity(host), folder_in(tmp_path)
    workers = [keys_of(core, host, identity, folder) for _ in range(2)]
    for _ in range(60):
        for worker in workers:
            await worker.keep()
        core.clock.forward(60)

    assert identity.signed == 61


async def test_host_without_a_key_of_its_own_says_so(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Once earlier formats count no more it cannot sign; until then it can."""
    folder, path = folder_in(tmp_path), host.key_file.with_name("other.pem")
    host.key_file.rename(path)
    first = ActivationFormat.FIRST
    keys = keys_of(core, host, Identity(host), folder, oldest=first)
    await keys.keep()
    formats = {key.format for key in await published(core)}

    pin_format(host.pins.with_name("activation-format"), MINUTES)
    with pytest.raises(HsmUnavailableError) as caught:
        await keys.keep()
    path.rename(host.key_file)
    await keys.keep()

    assert formats == {first}
    assert caught.value.reason == f"{host.key_file}: is not there; rubrica hsm host-key"
    assert MINUTES in {key.format for key in await published(core)}


async def test_host_is_sealed_to_by_minutes_once_all_its_workers_are_new(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """One of the release before would claim what it cannot open."""
    first = ActivationFormat.FIRST
    keys = keys_of(core, host, Identity(host), folder_in(tmp_path), oldest=first)
    await host_alive(core, "signing/h/2", earlier=True)
    await host_alive(core, "signing/hh/1", earlier=True)
    await keys.keep()
    beside = {key.format for key in await published(core)}

    await host_alive(core, "signing/h/2")
    await keys.keep()

    assert beside == {first}
    assert {key.format for key in await published(core)} == {first, MINUTES}


async def test_key_of_another_host_key_is_published_again(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """A host that got a new key is believed by it from the next start on."""
    folder = folder_in(tmp_path)
    await keys_of(core, host, Identity(host), folder).keep()
    before = await published(core)
    host.key_file.unlink()
    own, _ = make_host_key(host.key_file)
    admit(host.admitted, host.name, own.public)

    await keys_of(core, host, Identity(host), folder).keep()

    after = await published(core)
    assert [key.public for key in after] == [key.public for key in before]
    assert {host.belief().standing(key) for key in before} == {
        KeyStanding.OTHER_HOST_KEY
    }
    assert {host.belief().standing(key) for key in after} == {KeyStanding.BELIEVED}


async def test_key_of_a_clock_that_was_ahead_is_not_kept(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Else it would open seals until its minute comes, in a year perhaps."""
    identity, folder = Identity(host), folder_in(tmp_path)
    keys = keys_of(core, host, identity, folder)
    sweep = sweep_of(core, host, folder)
    right = core.now
    for ahead in (timedelta(days=365), timedelta(seconds=30)):
        core.clock.at = right + ahead
        await keys.keep()
        await sweep.run()
    far = MINUTES.epoch_at(right + timedelta(days=365))
    near = MINUTES.epoch_at(right + timedelta(seconds=30))

    core.clock.at = right
    await sweep.run()

    assert not folder.has(far)
    assert folder.has(near)


async def test_seal_of_a_gone_epoch_has_expired(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Five epochs later, and after a reboot, nobody can open it any more."""
    folder = folder_in(tmp_path)
    keys = keys_of(core, host, Identity(host), folder)
    sweep = sweep_of(core, host, folder)
    await keys.keep()
    key, _ = await published(core)
    seal = Seal(key.host, key.epoch, seal_to(key.public, b"u" * 32, b"info"))
    core.clock.at = epoch_start(key.epoch + 4)
    await sweep.run()
    assert keys.unlock(seal, b"info") == b"u" * 32

    core.clock.at = epoch_start(key.epoch + 5)
    await sweep.run()

    for gone in (seal, None):
        with pytest.raises(ApplianceError) as caught:
            keys.unlock(gone, b"info")
        assert caught.value.code is ErrorCode.ACTIVATION_EXPIRED


async def test_both_formats_are_offered_until_the_first_is_over(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Until the file says that the first is over; then its keys and seals are, too."""
    first, folder = ActivationFormat.FIRST, folder_in(tmp_path)
    keys = keys_of(core, host, Identity(host), folder, oldest=first)
    await keys.keep()
    await host_alive(core)
    old = next(key for key in await published(core) if key.format is first)
    seal = Seal(old.host, old.epoch, seal_to(old.public, b"u" * 32, b"info"))
    opened = keys.unlock(seal, b"info")
    (chosen,) = await host.hosts(core.store, core.clock).live()

    pin_format(host.pins.with_name("activation-format"), MINUTES)
    with pytest.raises(ApplianceError) as caught:
        keys.unlock(seal, b"info")
    async with core.store.write() as transaction:
        await ActivationKeyStore(transaction).forget(MINUTES.first_epoch, 2**40)
    reason = await refused(host.hosts(core.store, core.clock))
    await sweep_of(core, host, folder).run()

    assert opened == b"u" * 32
    assert chosen.format is MINUTES
    assert caught.value.code is ErrorCode.ACTIVATION_EXPIRED
    assert "activation key" in reason
    assert not folder.has(old.epoch)


@pytest.mark.parametrize("content", ["", "0", "3", "two", "1\n2", "\xff"])
def test_format_that_cannot_be_read_is_not_taken_for_the_first(
    tmp_path: Path, content: str
) -> None:
    """A damaged file lets no earlier format count again."""
    path = tmp_path / "activation-format"
    pinned = PinnedFormat(path)
    unpinned = pinned.oldest
    pin_format(path, MINUTES)
    closed = pinned.oldest

    path.write_text(content, "latin-1")

    assert (unpinned, closed) == (ActivationFormat.FIRST, MINUTES)
    for reader in (pinned, PinnedFormat(path)):
        with pytest.raises(ApplianceError) as caught:
            _ = reader.oldest
        assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


async def test_key_is_made_anew_after_a_reboot(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """The memory is empty: another key takes the row's place, in the same epoch."""
    identity = Identity(host)
    keys = keys_of(core, host, identity, folder_in(tmp_path))
    await keys.keep()
    before, _ = await published(core)

    for file in (tmp_path / "activation").glob("*.key"):
        file.unlink()
    await keys.keep()

    after, _ = await published(core)
    assert (after.epoch, after.public != before.public) == (before.epoch, True)


async def test_key_waits_for_an_hsm_that_is_away(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Nothing is published that nobody signed for; it comes with the HSM."""
    identity = Identity(host)
    identity.away = True
    keys = keys_of(core, host, identity, folder_in(tmp_path))
    with pytest.raises(HsmUnavailableError):
        await keys.keep()
    assert await published(core) == []

    identity.away = False
    await keys.keep()

    assert len(await published(core)) == 2


async def test_folder_that_is_gone_is_named(
    sqlite_core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """The worker says so with its beat and finishes what it has; it does not die."""
    folder = folder_in(tmp_path)
    shutil.rmtree(tmp_path / "activation")
    keys = keys_of(sqlite_core, host, Identity(host), folder)
    with pytest.raises(ApplianceError) as caught:
        await keys.keep()
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE

    (tmp_path / "activation").mkdir()
    await keys.keep()
    assert await published(sqlite_core)


def test_folder_and_files_are_of_their_owner_alone(tmp_path: Path) -> None:
    """0700 and 0600, whatever the umask."""
    before = os.umask(0)
    try:
        folder_in(tmp_path).make(5)
    finally:
        os.umask(before)

    path = tmp_path / "activation"
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert modes == {0o600}


def test_one_of_many_makes_the_key(tmp_path: Path) -> None:
    """Twelve that start at once have one key."""
    folder = folder_in(tmp_path)
    made: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: made.append(folder.make(5))) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 12
    assert len(set(made)) == 1


def test_sweep_leaves_nothing_of_a_killed_write(tmp_path: Path) -> None:
    """Older epochs go, and what was written half."""
    folder, now = folder_in(tmp_path), datetime(2026, 5, 25, 12, tzinfo=UTC)
    first, minute = (kind.oldest_kept(now) for kind in ActivationFormat)
    for epoch in (first - 1, first, minute - 1, minute):
        folder.make(epoch)
    (tmp_path / "activation" / f".{first}.new").write_bytes(b"half")

    left = []
    for oldest in ActivationFormat:
        folder.sweep(now, oldest)
        left.append({file.name for file in (tmp_path / "activation").iterdir()})

    assert left == [
        {f"{first}.key", f"{minute}.key", "lock"},
        {f"{minute}.key", "lock"},
    ]


def test_folder_of_others_is_refused(tmp_path: Path) -> None:
    """Open to others, a link elsewhere, or a file."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    shared.chmod(0o750)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    file = tmp_path / "file"
    file.touch()

    for path in (shared, link, file):
        with pytest.raises(SettingsError, match=str(path)):
            open_folder(path, Environment.PREPROD)


def test_folder_that_was_swapped_is_not_used(tmp_path: Path) -> None:
    """Whoever may rename what stands beside it gets no key, and gives none."""
    folder = folder_in(tmp_path)
    path = tmp_path / "activation"
    folder.make(5)
    path.rename(tmp_path / "taken")
    path.symlink_to(tmp_path / "taken")

    with pytest.raises(ApplianceError) as through_a_link:
        folder.make(6)
    with pytest.raises(ApplianceError):
        folder.private(5)
    path.unlink()
    path.mkdir(mode=0o770)
    path.chmod(0o770)
    with pytest.raises(ApplianceError) as open_to_others:
        folder.make(6)

    assert through_a_link.value.code is open_to_others.value.code
    assert through_a_link.value.code is ErrorCode.STORE_UNAVAILABLE
    assert [*path.iterdir()] == []


def test_folder_on_a_disk_is_refused_in_production(disk_dir: Path) -> None:
    """A disk has backups; a trial is only warned."""
    if filesystem_of(disk_dir) == "tmpfs":
        pytest.skip("all folders for temporary files are in memory here")
    path = disk_dir / "activation"

    with pytest.raises(SettingsError, match="tmpfs"):
        open_folder(path, Environment.PROD)

    open_folder(path, Environment.PREPROD)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/shm/rubrica", "tmpfs"),  # noqa: S108 (named, not used)
        ("/dev/shmem", "devtmpfs"),  # noqa: S108 (named, not used)
        ("/mnt/con espacio/x", "ramfs"),
        ("/run/rubrica", "tmpfs"),
        ("/var/lib", "ext4"),
    ],
)
def test_file_system_is_told_from_the_mounts(
    tmp_path: Path, path: str, kind: str
) -> None:
    """The innermost mount counts, and of two on one point the later."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)

    assert filesystem_of(Path(path), mounts) == kind

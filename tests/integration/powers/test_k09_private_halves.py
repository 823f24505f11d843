"""K9: root of a signing host, afterwards, with the database's whole log.

What was sealed stands in the log for ever. It opens by a private half in the host's
memory, and that one is gone five minutes after its minute began: by the time alone.
"""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import insert, select, update

from appliance.database.tables import activation, activation_item, activation_seal
from appliance.domain.errors import ActivationInvalidError, ApplianceError
from appliance.domain.ids import ActivationId
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.request import RequestView
from appliance.domain.signing.activation import (
    ActivationFormat,
    Claim,
    Seal,
    epoch_start,
    format_of,
)
from appliance.domain.vocab import ActivationState, Environment
from appliance.keys.activation_format import PinnedFormat, pin_format
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.key_encryption import open_seal, seal_to
from appliance.signing.activations.aging_seal_store import AgingSealStore
from tests.support.factories.consents import consent_data
from tests.support.factories.signing_host import INSTALLATION, SigningHost
from tests.support.factories.statements import AS_RECORDED
from tests.support.installation.record import HOST, CoreFixture
from worker.signing.activation_keys import (
    ActivationKeys,
    KeySweep,
    open_folder,
)
from worker.signing.aging_seals import SealRenewal
from worker.signing.consent_journal import ConsentJournal
from worker.signing.document_signer import DocumentSigner

FIRST, WHOLE = ActivationFormat.FIRST, ActivationFormat.WHOLE
UNLOCK = b"u" * 32
MOST = timedelta(minutes=5)
KEY_PHASE = timedelta(seconds=60)


class Away:
    """An HSM that signs nothing."""

    async def identity_statement(self, message: bytes) -> tuple[bytes, bytes]:
        """Nobody may need it here."""
        raise AssertionError(message)


class Scene:
    """A host with its folder of private halves, and an activation sealed to it."""

    def __init__(self, core: CoreFixture, folder: Path) -> None:
        self.core = core
        self.path = folder / "activation"
        self.folder = open_folder(self.path, Environment.PREPROD)
        pin = folder / "activation-format"
        pin_format(pin, WHOLE)
        self.sweep = KeySweep(self.folder, core.clock, PinnedFormat(pin))
        self.keys = ActivationKeys(
            self.folder,
            PublishedKeys(core.store),
            cast("Any", Away()),
            core.clock,
            HOST,
            INSTALLATION,
            PinnedFormat(pin),
            SigningHost(folder, HOST).key_file,
        )
        self.journal = ConsentJournal(self.folder, core.clock, KEY_PHASE)
        claims = core.claiming()
        nothing = cast("Any", None)
        own = core.settings.signature_profile

        def profile_of(view: RequestView) -> SignatureProfile:
            return own.narrowed(view.wishes)

        signer = DocumentSigner(
            claims,
            documents=nothing,
            completion=cast("Any", SimpleNamespace(profile=own, profile_of=profile_of)),
            levels=nothing,
            session=nothing,
            keys=self.keys,
            statements=AS_RECORDED,
            journal=self.journal,
            fonts=nothing,
            clock=core.clock,
            installation=INSTALLATION,
            served=nothing,
            inspections=nothing,
        )
        self.renewal = SealRenewal(
            core.store, claims, signer, self.keys, core.clock, HOST, KEY_PHASE
        )
        self.log: list[bytes] = []
        """Every seal that the database ever had."""

    async def consent(self, claim_s: float = 60, items: int = 1) -> ActivationId:
        """Have a person consent, their unlock key sealed to this host now."""
        core = self.core
        signer = await core.add_signer()
        made = await core.add_activation(signer, items, claim_s)
        epoch = WHOLE.epoch_at(core.now)
        sealed = seal_to(self.folder.make(epoch), UNLOCK, await self.data(made))
        await self.write(made, epoch=epoch, sealed=sealed)
        return made

    async def data(self, made: ActivationId) -> bytes:
        """Return what its seal is bound to, by what stands recorded."""
        return await consent_data(self.core, await self.claim(made))

    async def claim(self, made: ActivationId) -> Claim:
        """Read an activation as a worker does."""
        long_ago = self.core.now - timedelta(days=1)
        async with self.core.store.read() as transaction:
            found = await AgingSealStore(transaction).due(HOST, 2**40, long_ago)
        return next(each for each in found if each.id == made)

    async def write(self, made: ActivationId, **values: Any) -> None:
        """Write its seal's row."""
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(activation_seal)
                .where(activation_seal.c.activation == made)
                .values(**values)
            )
        self.log.append((await self.seal(made)).sealed)

    async def alter(self, made: ActivationId, **values: Any) -> None:
        """Alter its row, as somebody does who may write everything."""
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(activation).where(activation.c.id == made).values(**values)
            )

    async def seal(self, made: ActivationId) -> Seal:
        """Return its seal to this host."""
        async with self.core.store.read() as transaction:
            rows = await transaction.connection.execute(
                select(activation_seal).where(activation_seal.c.activation == made)
            )
            row = rows.one()
        return Seal(row.host, row.epoch, row.sealed)

    async def pass_time(self, seconds: int, every: int = 10) -> None:
        """Let time pass as a worker does that has neither HSM nor work."""
        for _ in range(seconds // every):
            self.core.clock.forward(every)
            await self.renewal.run()
            await self.sweep.run()

    async def opened_by_root(self, data: bytes) -> bool:
        """Return whether what is in memory opens anything that was ever sealed."""
        for file in self.path.glob("*.key"):
            for sealed in self.log:
                try:
                    assert open_seal(file.read_bytes(), sealed, data) == UNLOCK
                except ActivationInvalidError:
                    continue
                return True
        return False


@pytest.fixture
def scene(core: CoreFixture, tmp_path: Path) -> Scene:
    """A host on each database."""
    return Scene(core, tmp_path)


async def test_private_half_is_gone_five_minutes_after_its_minute_began(
    sqlite_core: CoreFixture, tmp_path: Path
) -> None:
    """With neither HSM nor record; in every second of ten minutes."""
    core = sqlite_core
    folder = open_folder(tmp_path / "activation", Environment.PREPROD)
    pin = tmp_path / "activation-format"
    pin_format(pin, WHOLE)
    await core.store.close()
    sweep = KeySweep(folder, core.clock, PinnedFormat(pin))
    oldest = timedelta()
    for _ in range(600):
        for ahead in (0, 1):
            folder.make(WHOLE.epoch_at(core.now) + ahead)
        await sweep.run()
        for file in (tmp_path / "activation").glob("*.key"):
            age = core.now - epoch_start(int(file.stem))
            oldest = max(oldest, age)
        core.clock.forward(1)

    assert MOST - timedelta(seconds=1) <= oldest < MOST


async def test_keys_of_the_release_before_go_with_the_close(
    sqlite_core: CoreFixture, tmp_path: Path
) -> None:
    """Until then they are kept for twenty minutes, as fronts of that release expect."""
    folder = open_folder(tmp_path / "activation", Environment.PREPROD)
    pin = tmp_path / "activation-format"
    sweep = KeySweep(folder, sqlite_core.clock, PinnedFormat(pin))
    epoch = FIRST.epoch_at(sqlite_core.now)
    folder.make(epoch)
    sqlite_core.clock.forward(600)
    await sweep.run()
    before = folder.has(epoch)

    pin_format(pin, WHOLE)
    await sweep.run()

    assert format_of(epoch) is FIRST
    assert (before, folder.has(epoch)) == (True, False)


@pytest.mark.storage
async def test_root_opens_nothing_five_minutes_after_a_consent(scene: Scene) -> None:
    """Signed or not: the seal in the log is opened by nothing that is left."""
    made = await scene.consent()
    data = await scene.data(made)
    assert await scene.opened_by_root(data)

    await scene.pass_time(300)

    assert not await scene.opened_by_root(data)


@pytest.mark.storage
async def test_part_of_a_large_batch_is_sealed_again_while_it_waits(
    scene: Scene,
) -> None:
    """It opens until its claim is over; nothing older than five minutes opens it."""
    made = await scene.consent(claim_s=1000, items=3)
    data = await scene.data(made)
    begun, opened = scene.core.now, []
    for _ in range(5):
        await scene.pass_time(190)
        seal = await scene.seal(made)
        scene.log.append(seal.sealed)
        opened.append(scene.keys.unlock(seal, data) == UNLOCK)
        age = scene.core.now - epoch_start(seal.epoch)
        assert age < MOST
    assert scene.core.now - begun == timedelta(seconds=950)

    await scene.pass_time(50 + 300)

    assert opened == [True] * 5
    with pytest.raises(ApplianceError):
        scene.keys.unlock(await scene.seal(made), data)
    assert not await scene.opened_by_root(data)


@pytest.mark.storage
async def test_key_phase_that_lasts_is_sealed_again(scene: Scene) -> None:
    """Whoever claims it after a kill opens it as well, and not for ever."""
    made = await scene.consent(claim_s=280)
    data = await scene.data(made)
    await scene.pass_time(270)
    until = scene.core.now + KEY_PHASE
    await scene.alter(made, state=ActivationState.KEYING.value, key_until=until)
    await scene.pass_time(50)

    assert scene.keys.unlock(await scene.seal(made), data) == UNLOCK

    await scene.alter(made, key_until=until + timedelta(days=1))
    await scene.pass_time(20 + 1 + 300 + 9, every=10)

    scene.log.append((await scene.seal(made)).sealed)
    assert not await scene.opened_by_root(data)


@pytest.mark.storage
@pytest.mark.parametrize("what", ["claim_by", "state", "seal", "documents"])
async def test_no_row_keeps_an_unlock_key_alive(scene: Scene, what: str) -> None:
    """A writer of the database would have the host seal again, on and on.

    The seal is bound to its time, so that a later one opens nothing. An activation
    that has ended is not taken up again past that time.
    """
    made = await scene.consent(claim_s=60)
    data = await scene.data(made)
    far = scene.core.now + timedelta(days=1)
    if what == "claim_by":
        await scene.alter(made, claim_by=far)
    elif what == "state":
        await scene.alter(made, state=ActivationState.KEYING.value, key_until=far)
    elif what == "documents":
        # A thousand documents would have a key phase of a thousand seconds more.
        await more_documents(scene.core, made)
        await scene.alter(made, state=ActivationState.KEYING.value, key_until=far)
    for _ in range(45):
        await scene.pass_time(10)
        if what == "seal":
            # Each minute's newest key, by the public half alone.
            await scene.write(made, epoch=WHOLE.epoch_at(scene.core.now))
        scene.log.append((await scene.seal(made)).sealed)

    assert not await scene.opened_by_root(data)


async def more_documents(core: CoreFixture, made: ActivationId) -> None:
    """Give an activation rows of documents that nobody consented to."""
    async with core.store.write() as transaction:
        rows = await transaction.connection.execute(
            select(activation_item).where(activation_item.c.activation == made)
        )
        row = dict(rows.mappings().one())
        await transaction.connection.execute(
            insert(activation_item),
            [{**row, "seq": seq, "code": None} for seq in range(1, 400)],
        )


async def test_what_this_host_saw_end_is_not_sealed_again(scene: Scene) -> None:
    """Rows put back after its end say that it still waits."""
    made = await scene.consent(claim_s=1000)
    scene.journal.end(made)
    before = await scene.seal(made)
    scene.core.clock.forward(250)

    assert await scene.renewal.run() == 0
    assert await scene.seal(made) == before


async def test_two_workers_of_a_host_seal_again_once(scene: Scene) -> None:
    """What another one renewed meanwhile stays as it is."""
    made = await scene.consent(claim_s=1000)
    scene.core.clock.forward(250)
    before = await scene.seal(made)

    first = await scene.renewal.run()
    renewed = await scene.seal(made)
    second = await scene.renewal.run()
    async with scene.core.store.write() as transaction:
        late = await AgingSealStore(transaction).replace([(made, before, before)])

    assert (first, second, late) == (1, 0, 0)
    assert await scene.seal(made) == renewed
    assert renewed.epoch > before.epoch

"""Power: root of a signing host, later than five minutes after a consent.

Root has the database's whole log, puts rows back, alters them, deletes the host's
journal and reads each private half that is left. What was consented to before opens by
none of it; from then on root is a signing worker.

Source: docs/keys.md "From the password to the key", "The journal of a host".
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import update

from appliance.database.tables import person
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import ActivationId
from appliance.domain.signing.activation import Seal, format_of
from appliance.domain.vocab import ActivationState
from tests.integration.powers.test_k09_private_halves import Scene, more_documents
from tests.support.installation.record import CoreFixture
from worker.signing.activation_keys import JOURNAL

pytestmark = pytest.mark.storage


@pytest.fixture
def scene(core: CoreFixture, tmp_path: Path) -> Scene:
    """A host on each database, and an activation sealed to it."""
    return Scene(core, tmp_path)


async def put_back(scene: Scene, made: ActivationId) -> None:
    """Have the activation wait as it did, with its fence and without its journal."""
    await scene.alter(made, state=ActivationState.WAITING.value, fence=0, progress=0)
    (scene.path / JOURNAL).unlink(missing_ok=True)


async def rename(scene: Scene, made: ActivationId) -> None:
    """Have the signer be called otherwise."""
    await put_back(scene, made)
    async with scene.core.store.write() as transaction:
        await transaction.connection.execute(update(person).values(name="Otra Persona"))


async def extend(scene: Scene, made: ActivationId) -> None:
    """Have the batch hold documents that nobody consented to."""
    await put_back(scene, made)
    await more_documents(scene.core, made)


async def prolong(scene: Scene, made: ActivationId) -> None:
    """Have the consent last for a day."""
    await put_back(scene, made)
    later = scene.core.now + timedelta(days=1)
    await scene.alter(made, claim_by=later, key_until=later)


GOALS: Final[dict[str, Callable[[Scene, ActivationId], Awaitable[None]]]] = {
    "sign": prolong,
    "swap": rename,
    "batch": extend,
    "twice": put_back,
}


@pytest.mark.parametrize("goal", GOALS)
async def test_root_opens_nothing_that_was_consented_to_before(
    scene: Scene, goal: str
) -> None:
    """By no seal of the log, whatever the rows say; at once, the first one opens."""
    made = await scene.consent()
    consented = await scene.data(made)
    first = await scene.seal(made)
    assert await scene.opened_by_root(consented)

    await scene.pass_time(300)
    await GOALS[goal](scene, made)
    forged = await scene.data(made)

    # The host's newest key is root's as well: seals of before are not sealed to it.
    scene.folder.make(format_of(first.epoch).epoch_at(scene.core.now))
    for data in {consented, forged}:
        assert not await scene.opened_by_root(data)
        for sealed in scene.log:
            for seal in _everywhere(scene, first, sealed):
                with pytest.raises(ApplianceError):
                    scene.keys.unlock(seal, data)


def _everywhere(scene: Scene, first: Seal, sealed: bytes) -> list[Seal]:
    """A seal as of its own epoch, and of each whose private half is left."""
    left = [int(file.stem) for file in scene.path.glob("*.key")]
    assert left
    return [Seal(first.host, epoch, sealed) for epoch in (first.epoch, *left)]

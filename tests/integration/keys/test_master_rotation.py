"""A new master key while signing goes on: killed, gone on with, brought to its end."""

import asyncio
import hashlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from pkcs11 import Attribute
from sqlalchemy import update

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.domain.keys.hsm_keys import KeyAlgorithm, WrappedKey
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.signatures import verify
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.wrapped_keys import SCHEME, add_keys, read_keys
from tests.support.processes.forked_process import Running
from worker.hsm.session import HsmSession

pytestmark = pytest.mark.full

DIGEST = hashlib.sha256(b"a document").digest()


@dataclass
class RotatedInstallation:
    """An installation with an HSM and a record."""

    hsm: HsmInstallation

    def begin(self, *words: str) -> Running:
        """Start `rubrica hsm rotate-master …`."""
        return self.hsm.start_apart("rotate-master", *words)

    async def run(self, *words: str, status: int = 0) -> str:
        """Run it to its end; what it says."""
        process = self.begin(*words)
        out, err = await asyncio.to_thread(process.communicate, timeout=240)
        assert process.returncode == status, out + err
        return out + err

    async def add(self, count: int, kinds: int = 3) -> None:
        """So many persons, whose keys are of a few that were made in the HSM."""
        async with self.hsm.session() as session:
            keys = [
                await session.generate_wrapped(KeyAlgorithm.EC_P256)
                for _ in range(kinds)
            ]
        await add_keys(self.hsm.settings, SystemClock(), keys, count)

    async def keys(self) -> list[WrappedKey]:
        """Every key as its row has it."""
        return await read_keys(self.hsm.settings)

    def versions(self) -> list[tuple[int, ...]]:
        """The master keys of each member."""
        with self.hsm.raw_members() as sessions:
            return [MasterKeys(session).versions() for session in sessions]

    async def audited(self) -> list[EventKind]:
        """What was recorded of master keys, in order."""
        store = Database(open_engines(self.hsm.settings), SystemClock(), "test")
        async with store.read() as transaction:
            writers = await transaction.audit.writers()
            rows = [
                row for w in writers for row in await transaction.audit.of_writer(w)
            ]
        await store.close()
        ordered = sorted(rows, key=lambda row: row.at)
        return [row.event.event for row in ordered]


async def sign(session: HsmSession, key: WrappedKey) -> None:
    """A signature that verifies."""
    value = await session.sign(key, DIGEST, SCHEME)
    verify(load_spki(key.spki), value, DIGEST, SCHEME)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(1, id="one-token", marks=pytest.mark.long),
        pytest.param(2, id="two-tokens"),
    ],
)
def template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> HsmInstallation:
    """An installation after `hsm init`, to copy."""
    folder = tmp_path_factory.mktemp("template")
    return HsmInstallation.ready(folder, members=request.param)


@pytest.fixture
async def rotated_installation(
    template: HsmInstallation, tmp_path: Path
) -> RotatedInstallation:
    """An installation of the test's own, with its tables."""
    hsm = template.copy(tmp_path)
    await migrate(hsm.settings)
    return RotatedInstallation(hsm)


async def test_keys_move_though_killed_and_sign_all_the_while(
    rotated_installation: RotatedInstallation,
) -> None:
    """Killed in the middle, twice: no further version, no key lost."""
    await rotated_installation.add(2_500)
    before = await rotated_installation.keys()
    signed = 0

    for _ in range(2):
        process = rotated_installation.begin()
        assert process.stderr is not None
        await asyncio.to_thread(process.stderr.readline)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    halfway = {key.master for key in await rotated_installation.keys()}
    async with rotated_installation.hsm.session() as session:
        running = asyncio.create_task(rotated_installation.run())
        while not running.done():
            # As read before, as a worker has it in hand, and as it is now.
            await sign(session, before[signed % len(before)])
            await sign(
                session, (await rotated_installation.keys())[signed % len(before)]
            )
            signed += 1
        said = await running
        after = await rotated_installation.keys()
        for key in [*before[::100], *after[::100]]:
            await sign(session, key)

    assert halfway == {1, 2}
    assert signed
    assert "going on with master key 2" in said
    assert {key.master for key in after} == {2}
    assert len({key.blob_w for key in after}) >= 3
    assert [key.spki for key in after] == [key.spki for key in before]
    assert set(rotated_installation.versions()) == {(1, 2)}
    kinds = await rotated_installation.audited()
    assert kinds.count(EventKind.MASTER_CREATED) == 1
    assert kinds[-1] is EventKind.MASTER_APPLIED


async def test_old_version_goes_when_no_key_needs_it(
    rotated_installation: RotatedInstallation,
) -> None:
    """Refused before; destroyed on every member after; what moved signs on."""
    await rotated_installation.add(3)

    refused = await rotated_installation.run("--retire", "1", status=1)
    await rotated_installation.run()
    newest = await rotated_installation.run("--retire", "2", status=1)
    said = await rotated_installation.run("--retire", "1")
    again = await rotated_installation.run("--retire", "1", status=1)

    members = len(rotated_installation.versions())
    assert "3 keys are under it" in refused
    assert "2 stays: 3 keys" in newest
    assert f"destroyed on {members} token(s)" in said
    assert "there is no master key 1" in again
    assert set(rotated_installation.versions()) == {(2,)}
    async with rotated_installation.hsm.session() as session:
        for key in await rotated_installation.keys():
            await sign(session, key)
    assert EventKind.MASTER_RETIRED in await rotated_installation.audited()


async def test_row_that_names_another_version_has_none_destroyed(
    rotated_installation: RotatedInstallation,
) -> None:
    """The HSM tells by what a key opens; the row may be anybody's who writes there."""
    await rotated_installation.add(3)
    engines = open_engines(rotated_installation.hsm.settings)
    async with engines.writer.begin() as connection:
        await connection.execute(update(tables.credential).values(master=2))
    await engines.dispose()
    made = await rotated_installation.run()

    said = await rotated_installation.run("--retire", "1", status=1)

    assert "0 keys were moved" in made
    assert "3 keys do not open" in said
    assert set(rotated_installation.versions()) == {(1, 2)}


async def test_new_version_is_as_safe_as_the_first(
    rotated_installation: RotatedInstallation,
) -> None:
    """Not extractable on any member; new keys are under it."""
    said = await rotated_installation.run()

    assert "master key 2 was made" in said
    with rotated_installation.hsm.raw_members() as sessions:
        for member in sessions:
            master = MasterKeys(member).get(2)
            assert not master[Attribute.EXTRACTABLE]
            assert master[Attribute.SENSITIVE]
    async with rotated_installation.hsm.session() as session:
        key = await session.generate_wrapped(KeyAlgorithm.EC_P256)
        assert key.master == 2
    assert "master key 7 is not an old one" in await rotated_installation.run(
        "--retire", "7", status=1
    )


async def test_key_that_does_not_open_keeps_no_other_back(
    rotated_installation: RotatedInstallation,
) -> None:
    """It is named, and the version that it needs stays."""
    await rotated_installation.add(10)
    engines = open_engines(rotated_installation.hsm.settings)
    async with engines.writer.begin() as connection:
        column = tables.credential.c
        await connection.execute(
            update(tables.credential)
            .where(column.spki_sha256 == f"{4:064}")
            .values(blob_w=bytes(40))
        )
    await engines.dispose()

    said = await rotated_installation.run(status=1)

    assert "9 keys were moved" in said
    assert said.count("stays where it was") == 1
    masters = sorted(key.master for key in await rotated_installation.keys())
    assert masters == [1] + [2] * 9
    assert "1 keys are under it" in await rotated_installation.run(
        "--retire", "1", status=1
    )

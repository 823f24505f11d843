"""The number of the last take-over, on real tokens.

Source: docs/backup.md "One HSM, one record".
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from appliance.bootstrap import open_core
from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.generation import Generation
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.record.installation_store import InstallationStore
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.provisioning import generation, tsa_keys
from hsm_config.provisioning.signing_token import KEEP_ALIVE_ALGORITHM
from hsm_config.provisioning.take_over import raise_generation
from tests.support.hsm.hsm_installation import HsmInstallation

pytestmark = pytest.mark.full


def taken(hsm: HsmInstallation) -> list[Generation]:
    """What each member has."""
    with hsm.raw_members() as sessions:
        return [generation.read(session) for session in sessions]


def numbers(hsm: HsmInstallation) -> list[int]:
    """The number that each member has."""
    return [one.number for one in taken(hsm)]


def pairs(hsm: HsmInstallation) -> list[int]:
    """How many keys each member has for it; a pair is two."""
    with hsm.raw_members() as sessions:
        return [len(objects.find_label(one, generation.LABEL)) for one in sessions]


def kept(hsm: HsmInstallation) -> tuple[object, ...]:
    """Versions of what commands make anew, and destroy."""
    with hsm.raw(TokenRole.FIRMA) as firma:
        masters = MasterKeys(firma).versions()
    with hsm.raw(TokenRole.PKI) as pki:
        return masters, tsa_keys.generations(pki)


async def have(hsm: HsmInstallation, generation: Generation) -> None:
    """Have the record be of a take-over."""
    async with (
        open_core(hsm.settings, SystemClock(), "operator") as core,
        core.store.write() as transaction,
    ):
        await InstallationStore(transaction).set_generation(generation)


def test_every_member_has_it_and_it_only_grows(tmp_path: Path) -> None:
    """Above what the record has, and what any member has."""
    hsm = HsmInstallation.ready(tmp_path, members=2)
    assert numbers(hsm) == [0, 0]

    assert raise_generation(hsm.settings, 0).number == 1
    assert raise_generation(hsm.settings, -1).number == 2
    last = raise_generation(hsm.settings, 6)

    assert taken(hsm) == [last, last]

    assert numbers(hsm) == [7, 7]
    assert pairs(hsm) == [2, 2]
    with hsm.raw_members() as (one, _):
        generation.write(one, Generation(3, "ff"))
    assert numbers(hsm) == [7, 7]


def test_take_over_that_was_killed_is_run_again(tmp_path: Path) -> None:
    """On one member alone, and with the older pair still there."""
    hsm = HsmInstallation.ready(tmp_path, members=2)
    raise_generation(hsm.settings, 0)
    with hsm.raw_members() as (_, other):
        label = generation.LABEL
        objects.generate(other, f"{label}-2".encode(), label, KEEP_ALIVE_ALGORITHM)
    assert numbers(hsm) == [1, 2]

    assert raise_generation(hsm.settings, 1).number == 3

    assert numbers(hsm) == [3, 3]
    assert pairs(hsm) == [2, 2]


async def test_member_that_joins_has_it(tmp_path: Path) -> None:
    """Or a worker that prefers that member would serve a record that was left."""
    await migrate(HsmInstallation.ready(tmp_path).settings)
    last = raise_generation(HsmInstallation(tmp_path).settings, 4)
    both = HsmInstallation(tmp_path, members=2)
    await have(both, last)

    await both.rubrica("join")

    assert taken(both) == [last, last]
    async with both.session(number=2) as session:
        assert await session.generation() == last


@pytest.mark.parametrize(
    "command",
    [
        ("join",),
        ("rotate-master",),
        ("rotate-master", "--retire", "1"),
        ("renew-tsa",),
        ("renew-tsa", "--retire", "1"),
    ],
)
async def test_record_that_was_left_changes_no_key(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """What it believes to be needed no more is what the other one's keys are under."""
    hsm = HsmInstallation.ready(tmp_path)
    await migrate(hsm.settings)
    last = raise_generation(hsm.settings, 0)
    masters = kept(hsm)

    said = await hsm.rubrica(*command, status=1)

    assert "take-over" in said
    assert kept(hsm) == masters
    await have(hsm, last)
    assert "take-over" not in await hsm.rubrica("renew-tsa")


async def test_record_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    """The HSM serves nobody then: who does not read that would go home."""
    hsm = HsmInstallation.ready(tmp_path)
    await migrate(hsm.settings)
    with closing(
        sqlite3.connect(tmp_path / "data" / "rubrica.db", isolation_level=None)
    ) as db:
        db.execute("BEGIN IMMEDIATE")
        said = await hsm.rubrica("take-over", status=os.EX_TEMPFAIL)

    assert numbers(hsm) == [1]
    assert "NOBODY SIGNS" in said
    assert "take-over is run again" in said
    await hsm.rubrica("take-over")
    assert numbers(hsm) == [2]


@pytest.mark.parametrize("rest", [b"", b"x", b"1.", b"+1", b"1_0", b"-2", b"\xff"])
async def test_key_of_no_take_over_is_named(tmp_path: Path, rest: bytes) -> None:
    """It may be of a newer version: no key is used, and nothing fails unheard."""
    hsm = HsmInstallation.ready(tmp_path)
    await migrate(hsm.settings)
    cka_id = generation.LABEL.encode() + b"-" + rest
    with hsm.raw(TokenRole.FIRMA) as session:
        objects.generate(session, cka_id, generation.LABEL, KEEP_ALIVE_ALGORITHM)

    said = await hsm.rubrica("take-over", status=1)

    assert cka_id.hex() in said
    assert "Traceback" not in said
    async with hsm.session() as session:
        with pytest.raises(HsmRefusedError):
            await session.generation()
    with hsm.raw(TokenRole.FIRMA) as session:
        objects.destroy(session, cka_id)
    await hsm.rubrica("take-over")

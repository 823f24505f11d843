"""Take-overs that are begun at once: one of them has the HSM, and the others say so.

Source: docs/backup.md "One HSM, one record".
"""

import asyncio
import shutil
from pathlib import Path

import pkcs11
import pytest

from appliance.bootstrap import open_core
from appliance.database.migrate import migrate
from appliance.domain.audit.record import AuditRow
from appliance.domain.clock import SystemClock
from appliance.domain.keys.generation import NONE, Generation
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.domain.vocab import EventKind
from appliance.keys.take_over import record_take_over
from appliance.record.installation_store import RESTORED, InstallationStore
from hsm_config.pkcs11 import objects
from hsm_config.provisioning import generation
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.installation.record import CoreFixture
from tests.support.processes.forked_process import Running

HOSTS = 3
WAIT_S = 120
LOST = "another take-over of this HSM was under way at the same time"
LONG_MS = 5000
"""In which all of them have looked for a number, and none has made its pair."""


def rows(audit: list[AuditRow]) -> list[AuditRow]:
    """Those of take-overs."""
    return [row for row in audit if row.event.event is EventKind.HSM_TAKEN_OVER]


async def own(hsm: HsmInstallation) -> Generation:
    """What a record has."""
    async with (
        open_core(hsm.settings, SystemClock(), "operator") as core,
        core.store.read() as transaction,
    ):
        return await InstallationStore(transaction).generation()


def end(command: Running) -> tuple[int, str]:
    """Wait for a command's end; its status, and all it said."""
    with command:
        said, _ = command.communicate(timeout=WAIT_S)
    return command.returncode, said


async def hosts_of_one_hsm(
    folder: Path,
) -> tuple[HsmInstallation, list[HsmInstallation], Pkcs11Shim]:
    """An installation, those that are its restores, and what its tokens are behind."""
    source = folder / "first"
    source.mkdir(mode=0o700)
    first = HsmInstallation.ready(source)
    shim = Pkcs11Shim(folder, first.profile.modules[0])
    lines = (
        f'softhsm_conf = "{first.settings.hsm.softhsm_conf}"\nmodule = "{shim.path}"'
    )
    hosts = []
    for number in range(HOSTS):
        place = folder / f"host-{number}"
        place.mkdir(mode=0o700)
        shutil.copytree(source / "secrets", place / "secrets")
        host = HsmInstallation(place, hsm_lines=lines, environment=shim.environment)
        await migrate(host.settings)
        hosts.append(host)
    return first, hosts, shim


@pytest.mark.parametrize("first", ["0a", "f0"])
def test_pairs_of_one_number_stand_side_by_side(
    initialised_hsm: HsmInstallation, first: str
) -> None:
    """Whichever is made first, the one with the greater mark stays alone."""
    second = {"0a": "f0", "f0": "0a"}[first]
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        for mark in (first, second):
            generation.write(session, Generation(4, mark))

        assert generation.read(session) == Generation(4, "f0")
        assert len(objects.find_label(session, generation.LABEL)) == 2


def test_greater_one_that_comes_meanwhile_stays(
    initialised_hsm: HsmInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever look of a slow host it comes after: its record is served already."""
    find, left = objects.find_label, 0
    quick = NONE

    def find_and_wait(session: pkcs11.Session, label: str) -> list[pkcs11.Object]:
        nonlocal left
        found = find(session, label)
        left -= 1
        if left == 0:
            generation.write(session, quick)
            assert generation.read(session) == quick
        return found

    monkeypatch.setattr(objects, "find_label", find_and_wait)
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        for looks in range(1, 9):
            number = 50 + looks  # above what other tests gave the token
            quick = Generation(number, "f0")
            left = looks
            generation.write(session, Generation(number, "0a"))
            came, left = left <= 0, 0
            if not came:
                break
            assert generation.read(session) == quick

    assert not came
    assert looks >= 3


def test_number_of_before_there_were_marks_is_below(
    initialised_hsm: HsmInstallation,
) -> None:
    """It is a take-over all the same."""
    with initialised_hsm.raw(TokenRole.FIRMA) as session:
        generation.write(session, Generation(4))
        assert generation.read(session) == Generation(4)
        generation.write(session, Generation(4, "0a"))
        assert generation.read(session) == Generation(4, "0a")


async def test_one_host_of_several_has_the_hsm(tmp_path: Path) -> None:
    """Each has a record of its own; who lost says so, and its record is as it was."""
    first, hosts, shim = await hosts_of_one_hsm(tmp_path)
    making = shim.order("C_GenerateKeyPair", "delay", LONG_MS, at="firma", times=HOSTS)
    commands = [host.start_command("take-over") for host in hosts]
    ended = await asyncio.gather(*(asyncio.to_thread(end, one) for one in commands))

    assert shim.used(making) == HOSTS
    with first.raw(TokenRole.FIRMA) as session:
        served = generation.read(session)
        assert len(objects.find_label(session, generation.LABEL)) == 2
    transaction = [await own(host) for host in hosts]
    assert transaction.count(served) == 1
    for (status, said), record, host in zip(ended, transaction, hosts, strict=True):
        audited = EventKind.HSM_TAKEN_OVER in await host.audited()
        assert (status == 0) == (record != NONE) == audited, said
        assert status == 0 or LOST in said
        assert "Traceback" not in said
        assert record <= served
    # Run again by one of them it is as ever: nothing has to be mended.
    await hosts[0].rubrica("take-over")
    assert (await own(hosts[0])).number == served.number + 1


async def test_record_keeps_the_greatest(core: CoreFixture) -> None:
    """Of several hosts of it; each row tells from which number to which."""
    taken = [Generation(number, f"{99 - number}") for number in range(1, 13)]
    mixed = [taken[at * 5 % len(taken)] for at in range(len(taken))]
    stores = [core.store, *(core.other_store() for _ in range(3))]

    found = await asyncio.gather(
        *(record_take_over(stores[at % 4], one) for at, one in enumerate(mixed))
    )

    async with core.store.read() as transaction:
        assert await InstallationStore(transaction).generation() == taken[-1]
    assert all(after >= given for given, after in zip(mixed, found, strict=True))
    told = [row.event.detail for row in rows(await core.audit())]
    steps = sorted((one["before"], one["after"]) for one in told)
    assert [0, *(after for _, after in steps)] == [
        *(before for before, _ in steps),
        taken[-1].number,
    ]


async def test_audit_tells_of_a_record_that_was_brought_back(core: CoreFixture) -> None:
    """Not of a number below zero."""
    async with core.store.write() as transaction:
        await InstallationStore(transaction).set_generation(RESTORED)

    await record_take_over(core.store, Generation(3, "ab"))
    await record_take_over(core.store, Generation(4, "ab"))

    assert [row.event.detail for row in rows(await core.audit())] == [
        {"before": "restored", "after": 3},
        {"before": 3, "after": 4},
    ]

"""`rubrica upgrade`: what stands in the way of closing one, and its close."""

import asyncio
import shlex
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from appliance.cli import main
from appliance.database.tables import worker_status
from appliance.domain.signing.activation import ActivationFormat
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.operations.doctor.host_checks import look_at_hosts
from appliance.operations.upgrade.obstacles import obstacles
from appliance.secrets.admitted_hosts import admit
from tests.integration.pki.test_credential_faults import Scene
from tests.support.appliance.manual import run_lines
from tests.support.factories.signing_host import INSTALLATION, SigningHost
from tests.support.installation.record import CoreFixture
from tests.support.installation.settings import tables_in, toml

FIRST, WHOLE = ActivationFormat.FIRST, ActivationFormat.WHOLE


@pytest.fixture
def host(core: CoreFixture) -> SigningHost:
    """A signing host that the fronts of this machine admit."""
    core.settings.data_dir.mkdir(exist_ok=True)
    return SigningHost(core.settings.data_dir)


async def found(core: CoreFixture, *, has_fronts: bool = True) -> list[str]:
    """What stands in the way, in words."""
    settings = core.settings.model_copy(update={"installation": INSTALLATION})
    every = await obstacles(settings, has_fronts=has_fronts, clock=core.clock)
    assert all(each.remedy for each in every)
    return [each.what for each in every]


async def beat(core: CoreFixture, slot: str, *, earlier: bool = False) -> None:
    """Have a process say that it is alive; or one of the release before."""
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


@pytest.mark.storage
async def test_nothing_stands_in_the_way_of_hosts_that_are_admitted(
    core: CoreFixture, host: SigningHost
) -> None:
    """Each process is of this release, and the host's keys are believed."""
    await host.beat(core.store, core.now)
    await beat(core, "api/h/1")

    assert await found(core) == []


async def test_processes_of_the_release_before_are_named(
    core: CoreFixture, host: SigningHost
) -> None:
    """Whichever role; those that fell silent are no obstacle."""
    await host.beat(core.store, core.now)
    await beat(core, "api/other/1", earlier=True)
    await beat(core, "signing/other/2", earlier=True)
    named = await found(core)
    workers_alone = await found(core, has_fronts=False)

    core.clock.forward(15)
    await host.beat(core.store, core.now)

    assert named == workers_alone
    assert named == [
        "api/other/1: runs the release before",
        "signing/other/2: runs the release before",
    ]
    assert await found(core) == []


async def test_host_that_is_not_admitted_is_named(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """Of a machine without fronts it is no obstacle."""
    other = SigningHost(tmp_path, "other", identity=host.identity, is_admitted=False)
    await host.beat(core.store, core.now)
    await other.beat(core.store, core.now)

    named = await found(core)

    assert named == ["signing host other: is not admitted on this machine"]
    assert await found(core, has_fronts=False) == []
    admit(host.admitted, "other", other.own.public)
    assert await found(core) == []


@pytest.mark.parametrize(
    "name", ["$(id)", "a;id", "a`id`", "\x1b[2J", "a\nid", "\u202ea"]
)
async def test_names_of_rows_are_words_in_what_people_copy(
    sqlite_core: CoreFixture, name: str
) -> None:
    """Whoever writes to the database runs no command on a front's machine by it."""
    await beat(sqlite_core, f"signing/{name}/1")
    await beat(sqlite_core, f"signing/{name}/2", earlier=True)

    every = await obstacles(
        sqlite_core.settings, has_fronts=True, clock=sqlite_core.clock
    )

    assert len(every) == 2
    for each in every:
        assert (each.what + each.remedy).isprintable()
        _, _, typed = each.remedy.partition("here: ")
        assert typed in {"", f"rubrica hsm admit {shlex.quote(name)} KEY"}
    assert any("here: " in each.remedy for each in every) is name.isprintable()


async def test_host_of_another_key_or_identity_is_named(
    core: CoreFixture, host: SigningHost, tmp_path: Path
) -> None:
    """And one that publishes no key of its own."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = SigningHost(elsewhere, "h", identity=host.identity, is_admitted=False)
    await other.beat(core.store, core.now)
    by_key = await found(core)
    stranger = SigningHost(elsewhere, "h", is_admitted=False)
    async with core.store.write() as transaction:
        await ActivationKeyStore(transaction).publish(
            host.key(core.now, identity=stranger.identity)
        )
    by_identity = await found(core)
    async with core.store.write() as transaction:
        await ActivationKeyStore(transaction).forget(0, 2**40)
        await ActivationKeyStore(transaction).publish(
            host.key(core.now, epoch=FIRST.epoch_at(core.now))
        )

    assert by_key == ["signing host h: is admitted by another key than it has"]
    assert by_identity == [
        "signing host h: its activation keys are of no pinned worker identity"
    ]
    assert await found(core) == [
        "signing host h: has published no activation key of its own"
    ]


async def test_without_a_worker_nobody_knows(
    core: CoreFixture, host: SigningHost
) -> None:
    """A host that is off may be one that nobody admitted."""
    assert host.name == "h"

    assert await found(core) == [
        "no signing worker is alive: it is not known which hosts to admit"
    ]


def test_doctor_tells_of_each_host_and_what_to_do() -> None:
    """A line of the command is a finding; where it fails, its last word is."""
    says = "echo 'signing host h: is not admitted -> on h: show; here: admit'; exit 1"
    fails = "echo no >&2; echo 'database: is away' >&2; exit 75"

    (found,) = look_at_hosts(["sh", "-c", says])
    (away,) = look_at_hosts(["sh", "-c", fails])

    assert (found.what, found.remedy) == (
        "signing host h: is not admitted",
        "on h: show\nhere: admit",
    )
    assert (away.what, away.remedy) == ("database: is away", "rubrica upgrade")
    assert list(look_at_hosts(["true"])) == []


def command(file: Path, *arguments: str) -> int:
    """Run `rubrica upgrade`."""
    return main(["--settings", str(file), "upgrade", *arguments])


def test_refused_keys_are_named_and_are_no_obstacle(
    sqlite_core: CoreFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with its fault; without the CA's files it is said that nobody looked."""
    core = sqlite_core
    folder = core.settings.data_dir
    host = SigningHost(folder)
    file = folder / "settings.toml"
    file.write_text(toml({**tables_in(folder), "installation": INSTALLATION}))
    core.clock.at = datetime.now(UTC) + timedelta(seconds=60)
    asyncio.run(host.beat(core.store, core.now))
    scene = Scene(core, folder / "pki")
    asyncio.run(scene.enrolled("20267565393"))
    _, altered = asyncio.run(scene.enrolled("20055361682", certificate=b"x"))
    unseen = command(file), capsys.readouterr().out
    scene.write()

    status = command(file)
    told = capsys.readouterr().out.splitlines()
    closed = command(file, "--close"), capsys.readouterr().out

    ready = "ready: `rubrica upgrade --close` ends what the release before needed"
    assert unseen[0] == 0
    assert unseen[1].splitlines() == [
        "keys in use were not checked here; `rubrica certificate check` does",
        ready,
    ]
    assert status == 0
    named = f"credential {altered} of 20-05536168-2: certificate-unreadable"
    assert told == [
        f"{named}; it signs nothing -> docs/keys.md, Whose key it is",
        ready,
    ]
    assert closed[0] == 0
    assert "credential" not in closed[1]


def test_close_writes_a_file_once_nothing_stands_in_the_way(
    sqlite_core: CoreFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused in words before; and it stays closed."""
    core = sqlite_core
    folder = core.settings.data_dir
    host = SigningHost(folder, is_admitted=False)
    file = folder / "settings.toml"
    file.write_text(toml({**tables_in(folder), "installation": INSTALLATION}))
    core.clock.at = datetime.now(UTC) + timedelta(seconds=60)
    asyncio.run(host.beat(core.store, core.now))
    pinned = PinnedFormat(core.settings.activation_format_file)
    refused = command(file, "--close"), pinned.oldest
    told = capsys.readouterr().out
    hosts = command(file, "--hosts"), capsys.readouterr().out

    admit(host.admitted, host.name, host.own.public)
    hosts_now = command(file, "--hosts")
    found = []

    def run(line: str) -> int:
        words = shlex.split(line, comments=True)
        assert words[:2] == ["rubrica", "upgrade"]
        found.append(pinned.oldest)
        return command(file, *words[2:])

    done = run_lines("running.md", "Closing an upgrade", 0, run)
    closed, again = pinned.oldest, command(file, "--close")

    assert refused == (1, FIRST)
    why, then = told.splitlines()
    assert why == (
        "signing host h: is not admitted on this machine -> on h: rubrica hsm "
        "host-key; here: rubrica hsm admit h KEY"
    )
    assert then == "not closed: everything works as before; mend that, and run it again"
    assert hosts == (1, f"{why}\n")
    assert [*done.values()] == [0, 0]
    assert found == [FIRST, FIRST]
    assert (closed, again, hosts_now) == (WHOLE, 0, 0)
    path = core.settings.activation_format_file
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("2\n", 0o644)

"""What `rubrica doctor` finds of workers, Redis and PostgreSQL."""

import socket
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.cli import main
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import Environment
from appliance.keys.worker_store import WorkerStore
from appliance.operations.doctor.health_checks import look_at_health
from appliance.operations.doctor.worker_checks import look_at_workers
from appliance.operations.installation_checks import faults_of, look_at_hsm_kind
from appliance.operations.reachability import look_at_redis, look_for_database
from appliance.operations.setup.questions import look
from appliance.operations.setup_answers import Answers
from appliance.operations.status import _tell
from appliance.settings import Settings
from hsm_config.cli import _kind
from tests.support.installation.record import CoreFixture
from tests.support.processes.command_folder import make_command_folder
from tests.support.processes.scratch import free_port
from tests.support.services.postgres import PostgresServer
from tests.support.services.redis import RedisServer


def with_tables(settings: Settings, **tables: dict[str, Any]) -> Settings:
    """The settings with other keys of some tables."""
    changed = {
        name: getattr(settings, name).model_copy(update=keys)
        for name, keys in tables.items()
    }
    return settings.model_copy(update=changed)


async def beat(core: CoreFixture, slot: str, hsm: str, why: str, ago_s: int) -> None:
    """Have a worker say how it is."""
    at = datetime.now(UTC) - timedelta(seconds=ago_s)
    async with core.store.write() as transaction:
        await WorkerStore(transaction).beat(
            WorkerStatus(slot=slot, process=slot[-1] * 26, at=at, hsm=hsm, reason=why)
        )


async def test_worker_whose_pin_was_refused_is_told_of(core: CoreFixture) -> None:
    """One of two, which `/readyz` says nothing of; and no try is wasted by a look."""
    token = core.settings.hsm.firma
    why = f"{token.label}: token {token.label}: PinIncorrect"
    await beat(core, "signing/one/1", "ready", "", 0)
    await beat(core, "signing/one/2", "pin", why, 1)
    await beat(core, "signing/one/3", "ready", "pki: token pki: no answer | x", 1)
    await beat(core, "signing/one/4", "pin", why, 3600)

    refused, away, silent = look_at_workers(core.settings)

    assert refused.what == f"signing/one/2: pin ({why})"
    assert refused.remedy.splitlines() == [
        f"put the right PIN of {token.label} into {token.pin_file}",
        "on one: rubrica hsm check; systemctl restart rubrica-signing@2",
    ]
    assert away.what == "signing/one/3: ready (pki: token pki: no answer | x)"
    assert away.remedy == "rubrica hsm check"
    assert silent.what.startswith("signing/one/4: silent since ")
    assert "systemctl start rubrica-signing@4" in silent.remedy


async def test_process_that_was_killed_is_named(core: CoreFixture) -> None:
    """Of whatever role, for a day; not one that lives, nor one of long ago."""
    await beat(core, "signing/one/1", "ready", "", 1)
    await beat(core, "signing/one/2", "ready", "", 16)
    await beat(core, "chores/one/1", "none", "", 3600)
    await beat(core, "api/two/1", "none", "", 2)
    await beat(core, "embed/two/1", "none", "", 90_000)

    found = list(look_at_workers(core.settings))

    assert [each.what.partition(":")[0] for each in found] == [
        "chores/one/1",
        "signing/one/2",
    ]
    assert "on one: journalctl -u rubrica-chores" in found[0].remedy


def test_troubles_of_the_report_are_told_with_their_remedy(tmp_path: Path) -> None:
    """A line each: what wants attention warns, what is bad is amiss."""
    status = tmp_path / "status"
    status.write_text(
        "#!/bin/sh\n"
        "echo 'AMISS  waiting: Work waits: batches (2) -> look at the log'\n"
        "echo 'warn   delivery: Webhooks fail: webhooks (1) -> tell them'\n"
        "exit 1\n"
    )
    status.chmod(0o755)
    late, webhooks = look_at_health([str(status)])
    assert (late.what, late.remedy, late.is_warning) == (
        "waiting: Work waits: batches (2)",
        "look at the log",
        False,
    )
    assert webhooks.is_warning

    status.write_text("#!/bin/sh\necho 'STORE_UNAVAILABLE: away' >&2\nexit 75\n")
    (away,) = look_at_health([str(status)])
    assert (away.what, away.is_warning) == ("STORE_UNAVAILABLE: away", False)


async def test_status_lists_what_the_console_shows(
    sqlite_core: CoreFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record's part of it; a bad item is status 1, and `--only` chooses."""
    await beat(sqlite_core, "signing/one/1", "ready", "", 60)

    assert (
        await _tell(sqlite_core.settings, lambda item: item.section == "workers") == 1
    )

    said = capsys.readouterr().out
    assert "AMISS  workers: A process is not running: signing/one/1 -> It gives" in said
    assert await _tell(sqlite_core.settings, lambda item: item.name == "mails") == 0
    assert "nothing that can be seen from here" in capsys.readouterr().out


async def test_figures_that_may_not_be_read_are_told_of_with_what_they_hide(
    sqlite_core: CoreFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No TSA is told to be well: one line for all roles, in doctor too."""
    folder = sqlite_core.settings.metrics_dir
    folder.mkdir(parents=True, exist_ok=True)
    for role in ("api", "chores"):
        # A folder that is a link is refused as one of another group is, to root too.
        (folder / role).symlink_to(tmp_path)

    await _tell(sqlite_core.settings, lambda item: item.belongs_to("tsas"))
    said = capsys.readouterr().out
    await _tell(sqlite_core.settings, lambda item: item.belongs_to("delivery"))

    assert "workers" not in capsys.readouterr().out
    (line,) = (each for each in said.splitlines() if each.startswith("warn"))
    assert line.endswith(
        "Not looked at: figures that cannot be read: api, chores -> Its user needs the "
        "group rubrica-metrics: see docs/metrics.md."
    )
    told = list(look_at_health(["echo", said]))
    assert [(each.mark, each.remedy) for each in told] == [
        ("warn", "Its user needs the group rubrica-metrics: see docs/metrics.md.")
    ]


async def test_host_without_figures_here_is_not_told_to_be_well(
    sqlite_core: CoreFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record alone tells that it lives; which is no trouble."""
    await beat(sqlite_core, "chores/second/1", "none", "", 0)

    assert await _tell(sqlite_core.settings, lambda item: item.section == "tsas") == 0

    said = capsys.readouterr().out
    assert "none   figures of second: not looked at -> run rubrica status there" in said
    (unseen,) = look_at_health(["echo", said])
    assert (unseen.what, unseen.mark) == ("figures of second: not looked at", "none")


def test_kind_of_hsm_is_not_known_where_nobody_signs() -> None:
    """A profile of one's own may be on the signing host alone."""
    command = ["sh", "-c", "echo 'hsm.profile: own.toml cannot be read' >&2; exit 78"]

    (there,) = look_at_hsm_kind(command)
    (elsewhere,) = look_at_hsm_kind(command, signs_here=False)

    assert (there.mark, elsewhere.mark) == ("AMISS", "none")
    assert elsewhere.what.startswith("not known here: hsm.profile: own.toml")


@pytest.mark.parametrize(
    ("environment", "profile", "status", "said"),
    [
        ("PROD", "softhsm2", 1, "a software token, PROD keeps its keys in it"),
        ("PREPROD", "softhsm2", 0, "a software token, for trials"),
        ("PROD", "luna", 0, ""),
    ],
)
def test_kind_of_hsm_is_named(
    core_settings_here: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: str,
    profile: str,
    status: int,
    said: str,
) -> None:
    """Production on a software token warns, in doctor too; no HSM is opened."""
    hsm = core_settings_here.hsm.model_copy(update={"profile": profile})
    changed = {"hsm": hsm, "environment": Environment(environment)}
    settings = core_settings_here.model_copy(update=changed)
    monkeypatch.setattr("hsm_config.cli.load_settings", lambda _: settings)

    assert _kind(Namespace(settings=None, ask_pin=False)) == status

    out = capsys.readouterr().out
    assert said in out
    found = list(look_at_hsm_kind(["sh", "-c", f"echo '{out}'; exit {status}"]))
    assert [each.is_warning for each in found] == [True] * status


def test_redis_that_does_not_answer_is_told_of(core_settings_here: Settings) -> None:
    """Readiness needs none; with its address and what to do."""
    here = f"redis://127.0.0.1:{free_port()}/0"
    (found,) = look_at_redis(with_tables(core_settings_here, redis={"url": here}))

    assert "Redis does not answer" in found.what
    assert f"{here}); signing goes on, more slowly" in found.what
    assert "systemctl status redis-server" in found.remedy


def hanging(settings: Settings, redis_server: RedisServer) -> Settings:
    """The settings with that Redis."""
    return with_tables(settings, redis={"url": None, "socket": redis_server.socket})


def test_redis_that_hangs_is_told_of(
    core_settings_here: Settings,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It accepts connections: to start it would not help."""
    settings = hanging(core_settings_here, redis_server)
    assert list(look_at_redis(settings)) == []
    monkeypatch.setattr("appliance.operations.reachability.ANSWER_S", 0.3)

    with redis_server.hung():
        (found,) = look_at_redis(settings)

    assert "does not answer: it hangs" in found.what
    assert "systemctl restart redis-server" in found.remedy


async def test_status_says_that_redis_hangs(
    sqlite_core: CoreFixture,
    redis_server: RedisServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a ping of its own, whatever figures are in reach."""
    settings = hanging(sqlite_core.settings, redis_server)
    told = "Redis does not respond"
    await _tell(settings, lambda item: item.name == "redis")
    assert told not in capsys.readouterr().out
    monkeypatch.setattr("appliance.messaging.redis_link._ANSWER_S", 0.3)

    with redis_server.hung():
        await _tell(settings, lambda item: item.name == "redis")

    said = capsys.readouterr().out
    assert f"warn   ground: {told}: {socket.gethostname()} -> Start Redis, or" in said


@pytest.mark.parametrize("is_socket", [True, False])
def test_database_that_hangs_is_told_of(
    core_settings_here: Settings,
    short_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_socket: bool,
) -> None:
    """It accepts connections, so only an answer proves that it works."""
    monkeypatch.setattr("appliance.operations.reachability.ANSWER_S", 0.3)
    if is_socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(short_dir / ".s.PGSQL.5432"))
        listener.listen()
        url = f"postgresql:///rubrica?host={short_dir}"
    else:
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"postgresql://127.0.0.1:{listener.getsockname()[1]}/rubrica"

    with listener:
        (found,) = look_for_database(
            with_tables(core_settings_here, database={"url": url})
        )

    assert "does not answer: it hangs" in found.what
    assert "systemctl restart postgresql" in found.remedy


def test_database_that_answers_is_not_told_of(
    core_settings_here: Settings, postgres_server: PostgresServer
) -> None:
    """Try its socket and its port, without logging in."""
    folder, port = postgres_server.folder, postgres_server.port
    for url in (
        f"postgresql:///rubrica?host={folder}&port={port}",
        f"postgresql://127.0.0.1:{port}/rubrica",
    ):
        settings = with_tables(core_settings_here, database={"url": url})
        assert list(look_for_database(settings)) == []


def test_command_that_hangs_is_given_up() -> None:
    """A document store, or an HSM, that does not answer holds doctor up no longer."""
    (told,) = faults_of(["sleep", "600"], limit_s=0.3)
    assert told == "not looked at: no answer within 0.3 s, what it asks hangs"


def test_fault_of_redis_is_told_once() -> None:
    """Of its address, and not of its password as well."""
    answers = Answers.of({"redis": f"redis://127.0.0.1:{free_port()}/0"})

    assert len(look(answers, "redis")) == 1
    assert look(answers, "redis_password_file") == []


@pytest.mark.parametrize(
    ("url", "told", "remedy"),
    [
        (
            "postgresql:///rubrica?host=/nowhere",
            "/nowhere/.s.PGSQL.5432 does not answer: No such file or directory",
            "systemctl status postgresql",
        ),
        (
            "postgresql://127.0.0.1:{port}/rubrica",
            "127.0.0.1:{port} does not answer",
            "systemctl status postgresql",
        ),
        ("postgresql://db.invalid/r", "db.invalid does not answer", "on db.invalid"),
    ],
)
def test_database_that_is_away_is_told_by_its_place(
    core_settings_here: Settings, url: str, told: str, remedy: str
) -> None:
    """The socket or host that was asked, and what can be looked at there."""
    port = str(free_port())
    database = {"url": url.replace("{port}", port)}

    (found,) = look_for_database(with_tables(core_settings_here, database=database))

    assert told.replace("{port}", port) in found.what
    assert remedy in found.remedy


def test_database_that_is_away_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each part that needs it says so in a line without a fault of its own."""
    make_command_folder(tmp_path, "postgresql:///rubrica?host=/nowhere")
    monkeypatch.setattr("appliance.operations.doctor.command.os.geteuid", lambda: 0)
    monkeypatch.setattr("appliance.operations.doctor.command.left_out", lambda: ())
    parts = ("database", "documents", "service", "workers", "backups")
    words = [word for part in parts for word in ("--only", part)]

    assert main(["--settings", str(tmp_path / "settings.toml"), "doctor", *words]) == 1

    said = capsys.readouterr().out
    assert said.count("AMISS") == 1
    assert "AMISS  database: PostgreSQL: /nowhere/.s.PGSQL.5432" in said
    for part in parts[1:]:
        assert f"none   {part}: not looked at while the database does not" in said


@pytest.fixture
def core_settings_here(sqlite_core: CoreFixture) -> Settings:
    """Settings that are good."""
    return sqlite_core.settings

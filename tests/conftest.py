"""The real parts that tests run against, and where each test runs.

What is started here ends with the session, also after a failure. The parts
themselves stand in `tests.support`.
"""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.hsm.softhsm import SoftHsm
from tests.support.plugins.compile_cache import share_compiling
from tests.support.processes import rubrica, setup_cache
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import URL_VARIABLE, PostgresServer
from tests.support.services.redis import RedisServer

pytest_plugins = (
    "tests.support.plugins.built_sdks",
    "tests.support.plugins.collected_garbage",
    "tests.support.plugins.tiers",
    "tests.support.plugins.durations",
    "tests.support.plugins.forked_processes",
    "tests.support.plugins.log_as_it_was",
    "tests.support.plugins.passed_tests",
    "tests.support.plugins.rendered_pages",
    "tests.support.plugins.documented",
    "tests.support.installation.record",
    "tests.support.plugins.shared_appliances",
    "pytester",
)

# As the command line has it: what a test makes is its owner's alone.
os.umask(0o077)
# Started in the background it ignores Ctrl+C, by nohup the end of its terminal, and
# so would what tests end by these.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

share_compiling()

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile(
    "rubrica",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("rubrica")


def pytest_configure(config: pytest.Config) -> None:
    """Have a place for what is made once and copied, and `rubrica` loaded once."""
    config.add_cleanup(setup_cache.begin_run())
    config.add_cleanup(rubrica.begin_run())


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A private folder whose path leaves room for a socket's name."""
    with short_folder() as folder:
        yield folder


@pytest.fixture
def disk_dir() -> Iterator[Path]:
    """A private folder that is not in memory, as `tmp_path` may be."""
    with tempfile.TemporaryDirectory(prefix="rbk-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The run's PostgreSQL: the one `./check` started, or one of our own."""
    if url := os.environ.get(URL_VARIABLE):
        yield PostgresServer.at(url)
        return
    with short_folder() as folder:
        server = PostgresServer.start(folder)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """URL of a fresh, empty database (`postgresql://rubrica@/name?host=…`)."""
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def redis_server(short_dir: Path) -> Iterator[RedisServer]:
    """A running private redis-server; `stop`, `kill`, `start` and `flush` it."""
    server = RedisServer(short_dir)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def softhsm(tmp_path: Path) -> SoftHsm:
    """A private SoftHSM without tokens; give `environment` to child processes."""
    folder = tmp_path / "softhsm"
    folder.mkdir(mode=0o700)
    return SoftHsm(folder)


@pytest.fixture(scope="session")
def appliance() -> Iterator[Appliance]:
    """A running appliance on SQLite that tests share: leave it as it was."""
    with short_folder() as folder, Appliance.made(folder) as running:
        yield running


@pytest.fixture(scope="session")
def signer(appliance: Appliance) -> TestPerson:
    """Somebody who can sign; their signing password must not get locked."""
    return appliance.new_person()

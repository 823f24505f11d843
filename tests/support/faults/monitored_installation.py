"""A whole installation that Prometheus watches, and all that it stands on, to be hurt.

    with watched(folder) as site:
        with site.hurting("RubricaDatabaseAway"):
            site.server.stop()
            site.prometheus.until_firing("RubricaDatabaseAway")
            site.server.start_again()

The alert rules are those of operators, but that `for:` is two seconds.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hsm_config.profile import load_profile
from tests.support.appliance.appliance import Appliance
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.processes.scratch import short_folder
from tests.support.services.outside_services import (
    OutsideServices,
    running_outside_services,
)
from tests.support.services.postgres import PostgresServer
from tests.support.services.prometheus import Prometheus
from tests.support.services.redis import RedisServer

RULES: Final = Path(__file__).resolve().parents[3] / "docs/samples/rubrica-alerts.yaml"
_CLOCK: Final = (
    "CREATE SCHEMA shadow",
    "CREATE TABLE shadow.off (ahead interval NOT NULL)",
    "INSERT INTO shadow.off VALUES ('0')",
    """
    CREATE FUNCTION shadow.clock_timestamp() RETURNS timestamptz LANGUAGE sql
    AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM shadow.off'
    """,
)
_SIGNING: Final = "wait_s = 6"


@dataclass
class Watched:
    """The installation, and what it stands on."""

    appliance: Appliance
    shim: Pkcs11Shim
    world: OutsideServices
    redis: RedisServer
    server: PostgresServer
    database: str
    prometheus: Prometheus
    lingering: set[str]
    """Alerts about the last minutes, of what was over sooner."""

    def until_quiet(self) -> None:
        """Wait until nothing fires, but for what was hurt a few minutes ago."""
        self.prometheus.until_quiet(*self.lingering)

    @contextmanager
    def hurting(self, *alerts: str, along: Sequence[str] = ()) -> Iterator[None]:
        """Have faults come and go; before them none of their alerts fires.

        Args:
            alerts: that the block has fire.
            along: what may fire by the same faults, and may do so already.
        """
        assert self.prometheus.firing() & set(alerts) == set()
        yield
        self.lingering |= {*alerts, *along} & _about_minutes()
        self.until_quiet()

    def set_database_clock(self, ahead: str) -> None:
        """Have the database's clock be off.

        Args:
            ahead: an interval, in PostgreSQL's words.
        """
        set_off = f"UPDATE shadow.off SET ahead = '{ahead}'"  # noqa: S608 (ours)
        self.server.execute(set_off, self.database)


def _about_minutes() -> set[str]:
    """Alerts whose rules look back: they go on firing when all is well again."""
    rules = RULES.read_text("utf-8").split("- alert: ")[1:]
    return {rule.split("\n")[0] for rule in rules if re.search(r"\[\d+m\]", rule)}


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """It has been scraped, every role of it, and nothing fires.

    Args:
        folder: of Prometheus' own.
    """
    with (
        short_folder() as servers,
        short_folder() as own,
        running_outside_services() as world,
        _running(servers) as (server, redis),
    ):
        shims = own / "shim"
        shims.mkdir()
        shim = Pkcs11Shim(shims, load_profile("softhsm2").modules[0])
        database = _database(server)
        with Appliance.made(
            own,
            database=server.url(database),
            signing=_SIGNING,
            hsm=f'module = "{shim.path}"\nkeep_alive_s = 1',
            environment=shim.environment,
            more=f'[redis]\nurl = "{redis.url}"\n\n[sandbox]\ncpu_s = 1\n\n'
            + world.settings,
        ) as appliance:
            rules = folder / "rules.yaml"
            text = RULES.read_text("utf-8")
            rules.write_text(re.sub(r"( for: )\w+", r"\g<1>2s", text))
            with Prometheus.watching(
                appliance.metrics_url, folder, rules
            ) as prometheus:
                prometheus.until('rubrica_role_up{role="sandbox"} == 1')
                prometheus.until('rubrica_signing_workers{hsm="ready"} == 2')
                prometheus.until_quiet()
                yield Watched(
                    *(appliance, shim, world, redis, server, database, prometheus),
                    lingering=set(),
                )


@contextmanager
def _running(folder: Path) -> Iterator[tuple[PostgresServer, RedisServer]]:
    """Servers of their own, which are there at the end whatever was done to them."""
    database, work_notifier = folder / "pg", folder / "redis"
    database.mkdir(mode=0o700)
    work_notifier.mkdir(mode=0o700)
    # PostgreSQL runs as another user, who has to get to its folder.
    folder.chmod(0o711)
    server, redis = PostgresServer.start(database), RedisServer(work_notifier)
    redis.start()
    try:
        yield server, redis
    finally:
        redis.kill()
        shutil.rmtree(work_notifier)
        server.stop()


def _database(server: PostgresServer) -> str:
    """A database whose clock can be set."""
    name = server.create_database()
    for statement in _CLOCK:
        server.execute(statement, name)
    # Before its own functions, so that its clock is ours; tables are in `public`.
    path = "public, shadow, pg_catalog"
    server.execute(f"ALTER DATABASE {name} SET search_path = {path}")
    return name

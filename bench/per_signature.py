"""What one signature costs every part: processor time, rows, bytes, commands.

    python -m bench.per_signature [--calls 200] [--idle 20]

A whole appliance on a PostgreSQL of its own signs small PDFs at B-LT, eight calls at a
time. Processor time of each role, of PostgreSQL and of Redis; transactions, statements,
rows and bytes of the database and of its write-ahead log; commands of Redis; bytes of
documents. What the same time costs while nobody signs is taken off.

Processor time says how far one of each carries, also on a machine that does other
things besides; how long a signature takes it does not say (`bench.firmar` does).
"""

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psutil
from redis import Redis

from bench.firmar import call_all
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

_WARM: Final = 20
_AT_A_TIME: Final = 8
_SETTLED_S: Final = 12
"""Within which PostgreSQL's processes tell what they counted."""
_ROLES: Final = ("api", "signing", "chores", "sandbox", "redis")
_OPTIONS: Final = "-c shared_preload_libraries=pg_stat_statements"
Figures = dict[str, float]


class Measured:
    """An appliance, and counters of all its parts.

    Args:
        appliance: running.
        server: its database's.
        name: of the database.
    """

    def __init__(self, appliance: Appliance, server: PostgresServer, name: str) -> None:
        self._appliance = appliance
        self._server = server
        self._name = name

    def counters(self) -> Figures:
        """All that only grows."""
        return {**self._processor(), **self._database(), **self._redis()}

    def sizes(self) -> Figures:
        """Bytes that the database and the documents take, without what is dead."""
        self._server.execute("VACUUM FULL", self._name)
        documents = self._appliance.settings.documents_dir
        return {
            "database_bytes": float(self._ask("pg_database_size(current_database())")),
            "document_bytes": float(
                sum(path.stat().st_size for path in documents.rglob("*.pdf"))
            ),
        }

    def rows(self) -> Figures:
        """Rows in each table."""
        self._server.execute("ANALYZE", self._name)
        query = "SELECT relname, reltuples FROM pg_class WHERE relkind = 'r'"
        where = f"{query} AND relnamespace = 'public'::regnamespace"
        lines = self._server.execute(where, self._name).splitlines()
        return {
            name: float(rows) for name, _, rows in (x.partition("|") for x in lines)
        }

    def _processor(self) -> Figures:
        found = {}
        for role in _ROLES:
            processes = self._appliance.children(role)
            found[f"cpu_{role}_ms"] = sum(map(_cpu_ms, processes))
        postmaster = (self._server.folder / "data/postmaster.pid").read_text()
        server = psutil.Process(int(postmaster.split()[0]))
        found["cpu_postgres_ms"] = sum(map(_cpu_ms, [server, *server.children()]))
        return found

    def _database(self) -> Figures:
        columns = ("xact_commit", "tup_inserted", "tup_updated", "tup_deleted")
        stated = f"{', '.join(columns)} FROM pg_stat_database"
        values = self._ask(f"{stated} WHERE datname = current_database()").split("|")
        statements = self._ask("sum(calls) FROM pg_stat_statements")
        return {
            **dict(zip(columns, map(float, values), strict=True)),
            "statements": float(statements),
            "wal_bytes": float(self._ask("wal_bytes FROM pg_stat_wal")),
        }

    def _redis(self) -> Figures:
        socket = str(self._appliance.settings.redis_socket)
        with contextlib.closing(Redis(unix_socket_path=socket)) as client:
            told: Any = client.info("stats")
        return {"redis_commands": float(told["total_commands_processed"])}

    def _ask(self, what: str) -> str:
        return self._server.execute(f"SELECT {what}", self._name)


def _cpu_ms(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return 1000 * (times.user + times.system + times.children_user)


@contextmanager
def measured() -> Iterator[tuple[Appliance, Measured]]:
    """An appliance on a PostgreSQL that counts its statements."""
    with short_folder() as folder, short_folder() as at:
        server = PostgresServer.start(at, _OPTIONS)
        try:
            name = server.create_database()
            server.execute("CREATE EXTENSION pg_stat_statements", name)
            with Appliance.made(folder, database=server.url(name)) as appliance:
                yield appliance, Measured(appliance, server, name)
        finally:
            server.stop()


def less(after: Figures, before: Figures) -> Figures:
    """By how much each has grown."""
    return {name: after[name] - before.get(name, 0) for name in after}


def run(calls: int, idle_s: float) -> dict[str, object]:
    """All of it, of one signature."""
    with measured() as (appliance, figures):
        person = appliance.new_person()
        pdf = pdfs.one_page()
        with appliance.client(person) as client:
            requests = appliance.new_requests(person, pdf, _WARM)
            call_all(client, person, requests, _AT_A_TIME)
            empty, no_rows = figures.sizes(), figures.rows()
            requests = [
                number
                for _ in range(calls // _WARM)
                for number in appliance.new_requests(person, pdf, _WARM)
            ]
            calls = len(requests)
            taken_in = figures.sizes()
            time.sleep(_SETTLED_S)
            at_rest = figures.counters()
            time.sleep(idle_s)
            rested = less(figures.counters(), at_rest)
            before, begun = figures.counters(), time.monotonic()
            call_all(client, person, requests, _AT_A_TIME)
            time.sleep(_SETTLED_S)
            took_s = time.monotonic() - begun
            spent = less(figures.counters(), before)
            full, rows = figures.sizes(), figures.rows()
        if faults := read_ledger(appliance, after=requests[-1] - 20).faults():
            raise RuntimeError(faults)
    idle = {name: rested[name] / idle_s for name in rested}
    each = {name: (spent[name] - idle[name] * took_s) / calls for name in spent}
    return {
        "calls": calls,
        "original_bytes": len(pdf),
        "of_a_signature": _rounded(each),
        "bytes_of_a_signature": _per(less(full, taken_in), calls),
        "bytes_of_a_request": _per(less(taken_in, empty), calls),
        "rows_of_both": {
            name: count
            for name, count in _per(less(rows, no_rows), calls).items()
            if count
        },
        "idle_a_second": _rounded(idle),
    }


def _per(figures: Figures, calls: int) -> Figures:
    return _rounded({name: value / calls for name, value in figures.items()})


def _rounded(figures: Figures) -> Figures:
    return {name: round(value, 2) for name, value in figures.items()}


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--idle", type=float, default=20)
    options = parser.parse_args()
    print(json.dumps(run(options.calls, options.idle), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())

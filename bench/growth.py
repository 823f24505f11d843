"""A call, a list and a claim on a record of years against an empty one (PostgreSQL).

    python -m bench.growth --postgres URL [--requests 1000000] [--large DATABASE]
                           [--pairs 300] [--runs 3] [--most 1.10] [--json FILE]

Both records take turns, and medians are compared. There is no HSM and no HTTP: what
the database takes is all that there is of a call, so that its growth is seen whole.
"""

import argparse
import asyncio
import json
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import asyncpg
import structlog

from appliance.database.migrate import migrate
from appliance.domain.vocab import RequestState
from appliance.record.backlog_store import BacklogStore
from appliance.requests.request_store import RequestStore
from bench.large_record import fill
from tests.support.factories.signing_front import SigningFront, open_front
from tests.support.installation.record import open_record
from tests.support.installation.settings import settings_in
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

_WARM: Final = 20
_LOOK: Final = 20
"""Pairs between two looks of the chores."""
_WAITING: Final = 10
"""Requests of the person whose list is asked for."""
_MS: Final = 1000.0
_ROOM: Final = (
    (
        "UPDATE person SET cuil = substr(id, 26), email_index = id "
        "WHERE email_index = repeat('0', 64)"
    ),
    "UPDATE integrator SET code = id WHERE code = 'demo'",
)
"""Names that an earlier run on the same database took, of its person and integrator."""
Work = Callable[[SigningFront], Awaitable[float]]


async def firmar(front: SigningFront) -> float:
    """Sign a document, from the password to the publication; ms."""
    command = front.command(await front.new_request())
    begun = time.perf_counter()
    await front.signed(command)
    return (time.perf_counter() - begun) * _MS


async def listed(front: SigningFront) -> float:
    """A person's waiting requests; ms."""
    states = (RequestState.PENDING, RequestState.IN_PROGRESS)
    begun = time.perf_counter()
    async with front.core.store.read() as transaction:
        found = await RequestStore(transaction).of_person(
            front.signer.person, states, limit=51
        )
    took_ms = (time.perf_counter() - begun) * _MS
    if len(found) != _WAITING:
        msg = f"{len(found)} requests listed"
        raise RuntimeError(msg)
    return took_ms


async def claimed(front: SigningFront) -> float:
    """A worker takes the one activation that waits; ms."""
    call = front.start(front.command(await front.new_request()))
    await front.core.work_notifier.heard(len(front.core.work_notifier.notified) + 1)
    worker = front.core.claiming()
    begun = time.perf_counter()
    work = await worker.claim_next()
    took_ms = (time.perf_counter() - begun) * _MS
    if work is None:
        msg = "nothing to claim"
        raise RuntimeError(msg)
    await worker.drop(work.claim)
    await front.work_off()
    await call
    return took_ms


WORKS: Final[dict[str, Work]] = {"firmar": firmar, "list": listed, "claim": claimed}


async def look(front: SigningFront) -> None:
    """What the chores ask every few seconds.

    An index keeps entries of what rows were before, until a scan in its order has
    marked them or a vacuum comes; of a large table that is seldom.
    """
    async with front.core.store.read() as transaction:
        for outside in (False, True):
            await BacklogStore(transaction).activations(front.core.now, outside=outside)


async def compare(
    fronts: dict[str, SigningFront], work: Work, pairs: int
) -> dict[str, float]:
    """Do it in pairs, the first of each by turns; medians in ms and their ratio."""
    times: dict[str, list[float]] = {name: [] for name in fronts}
    for pair in range(pairs + _WARM):
        order = list(fronts) if pair % 2 else list(reversed(fronts))
        for name in order:
            if pair % _LOOK == 0:
                await look(fronts[name])
            took_ms = await work(fronts[name])
            if pair >= _WARM:
                times[name].append(took_ms)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return {**medians, "ratio": medians["large"] / medians["empty"]}


async def open_filled_front(
    stack: AsyncExitStack, folder: Path, url: str, requests: int
) -> SigningFront:
    """A face over a record; it is made where that many requests are asked for."""
    await asyncio.to_thread(folder.mkdir)
    settings = settings_in(folder, url)
    await migrate(settings)
    now = datetime.now(UTC)
    if requests:
        await fill(url, requests, now)
    connection = await asyncpg.connect(url)
    for statement in _ROOM:
        await connection.execute(statement)
    await connection.close()
    core = await stack.enter_async_context(open_record(settings))
    core.clock.at = now
    front = await stack.enter_async_context(open_front(core))
    for _ in range(_WAITING):
        await front.new_request()
    return front


async def measure(args: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Everything."""
    server = PostgresServer.at(args.postgres)
    async with AsyncExitStack() as stack:
        fronts = {}
        for name, requests in (("large", args.requests), ("empty", 0)):
            given = args.large if name == "large" else None
            database = given or server.create_database()
            if given is None:
                stack.callback(server.drop_database, database)
            fronts[name] = await open_filled_front(
                stack,
                folder / name,
                server.url(database),
                0 if given else requests,
            )
        result: dict[str, object] = {}
        for what, work in WORKS.items():
            runs = [await compare(fronts, work, args.pairs) for _ in range(args.runs)]
            result[what] = [
                {name: round(figure, 3) for name, figure in run.items()} for run in runs
            ]
            ratio = statistics.median(run["ratio"] for run in runs)
            result[f"{what} ratio"] = round(ratio, 3)
            sys.stdout.write(f"  {what}: {ratio:.3f} {result[what]}\n")
            sys.stdout.flush()
        return result


def main() -> int:
    """Measure and print; fails when a ratio is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", required=True, help="URL of a server")
    parser.add_argument("--large", help="a database that `bench.large_record` filled")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=float, default=1.10, help="highest ratio")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)
    )
    with short_folder() as folder:
        result = asyncio.run(measure(args, folder))
    if args.json:
        args.json.write_text(json.dumps(result, indent=2), "utf-8")
    return int(any(result[f"{what} ratio"] > args.most for what in WORKS))


if __name__ == "__main__":
    sys.exit(main())

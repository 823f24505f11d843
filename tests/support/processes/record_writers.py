"""Processes that write to one record without a pause.

    counts = written_by(settings, processes=4, seconds=3)

Run as `python -m tests.support.processes.record_writers`, its arguments are the
settings as JSON and the
seconds. It says `ready`, begins at a line of its input, and says how often it wrote.
"""

import asyncio
import subprocess
import sys
import time
from typing import Final

from appliance.database.engines import open_engines
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import SystemClock
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database
from appliance.settings import Settings

_EVENT: Final = AuditEvent(EventKind.REQUEST_VIEWED, "system")
_HOLD_S: Final = 0.005


def written_by(settings: Settings, *, processes: int, seconds: float) -> list[int]:
    """How often each of some processes wrote.

    Args:
        settings: of the record, whose tables are there.
        processes: how many, all at once.
        seconds: how long they write.
    """
    arguments = [settings.model_dump_json(), str(seconds)]
    writers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.processes.record_writers",
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    return [int(writer.communicate()[0]) for writer in writers]


async def _write(settings: Settings, seconds: float) -> int:
    store = Database(open_engines(settings), SystemClock(), "test")
    async with store.write():
        pass
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        async with store.write() as transaction:
            transaction.audit.add(_EVENT)
            await asyncio.sleep(_HOLD_S)
        count += 1
    await store.close()
    return count


if __name__ == "__main__":
    made = Settings.model_validate_json(sys.argv[1])
    sys.stdout.write(f"{asyncio.run(_write(made, float(sys.argv[2])))}\n")

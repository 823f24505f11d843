"""Hostile clients, in a process of their own with the lowest priority.

    with attacking(Attack("half", port, number=1000, requests=(head,))) as attack:
        …
    attack.answers

Run as `python -m tests.support.faults.attackers`, one JSON object on its input says
what to do.
It says `on` once it is in force, goes on until its input ends, and for a minute at
the most, and then says what it was answered. It calls nothing but loopback addresses.
"""

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

_LONGEST_S: Final = 60
_AGAIN_S: Final = 0.05
_LOST_AGAIN_S: Final = 1.0
"""Before another connection in the place of one that was refused or ended."""
_TRICKLE_S: Final = 0.2
_CHUNK: Final = b"\0" * 65_536


@dataclass(slots=True)
class Attack:
    """What hostile clients do, all at once and again and again.

    `half` sends half of a head and holds the connection; `slow` a whole head and then
    a byte now and then; `huge` as much of a body as is taken; `flood` whole requests.
    """

    kind: str
    port: int
    number: int
    """Connections at a time."""
    requests: tuple[bytes, ...]
    """Heads, or for `flood` whole requests; taken in turn."""
    length: int = 0
    """Bytes of a `huge` body."""
    rate: float = 0
    """Requests a second of a `flood` in all; 0 for as many as are answered."""
    addresses: tuple[str, ...] = ("127.0.0.2",)
    """Source addresses, taken in turn."""
    answers: Counter[str] = field(default_factory=Counter)
    """Statuses that came back, and `lost` for connections that ended without."""

    def as_json(self) -> str:
        """It as the process reads it."""
        coded = [base64.b64encode(each).decode() for each in self.requests]
        return json.dumps(
            {
                "kind": self.kind,
                "port": self.port,
                "number": self.number,
                "requests": coded,
                "length": self.length,
                "rate": self.rate,
                "addresses": self.addresses,
            }
        )

    @classmethod
    def read(cls, text: str) -> "Attack":
        """What `as_json` wrote."""
        given = json.loads(text)
        given["requests"] = tuple(map(base64.b64decode, given["requests"]))
        return cls(**given)


@contextmanager
def attacking(*attacks: Attack) -> Iterator[None]:
    """Have attacks in force; each one's `answers` are filled in after.

    Args:
        *attacks: all at the same time.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.faults.attackers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in attacks
    ]
    try:
        for attack, process in zip(attacks, processes, strict=True):
            assert process.stdin is not None
            process.stdin.write(attack.as_json() + "\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "on\n"
        yield
    finally:
        for attack, process in zip(attacks, processes, strict=True):
            told, _ = process.communicate(timeout=_LONGEST_S)
            attack.answers.update(json.loads(told.splitlines()[-1]))


class _Attackers:
    """The connections of an attack.

    Args:
        attack: what they do.
    """

    def __init__(self, attack: Attack) -> None:
        self._attack = attack
        self._begun = 0
        self.in_force = asyncio.Event()
        self._turns = asyncio.Semaphore(0) if attack.rate else None

    async def run(self, over: asyncio.Event) -> None:
        """Attack until it is over."""
        tasks = [
            asyncio.create_task(self._go_on(n)) for n in range(self._attack.number)
        ]
        if self._turns is not None:
            tasks.append(asyncio.create_task(self._pace(self._turns)))
        await over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pace(self, turns: asyncio.Semaphore) -> None:
        """Let so many requests a second go."""
        while True:
            turns.release()
            await asyncio.sleep(1 / self._attack.rate)

    async def _go_on(self, n: int) -> None:
        """One connection after another."""
        while True:
            pause_s = _AGAIN_S
            try:
                if not await self._once(n):
                    pause_s = _LOST_AGAIN_S
            except (OSError, EOFError):
                self._attack.answers["lost"] += 1
                pause_s = _LOST_AGAIN_S
            await asyncio.sleep(pause_s)
            n += self._attack.number

    async def _once(self, n: int) -> bool:
        """One connection; whether it was answered."""
        attack = self._attack
        if self._turns is not None:
            await self._turns.acquire()
        source = attack.addresses[n % len(attack.addresses)]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", attack.port, local_addr=(source, 0)
        )
        try:
            request = attack.requests[n % len(attack.requests)]
            sending = asyncio.create_task(self._send(writer, request))
            try:
                line = await reader.readline()
                status = line.split(b" ")[1:2]
                attack.answers[status[0].decode() if status else "lost"] += 1
                while await reader.read(len(_CHUNK)):
                    pass
                return bool(status)
            finally:
                sending.cancel()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await sending
        finally:
            writer.transport.abort()

    async def _send(self, writer: asyncio.StreamWriter, request: bytes) -> None:
        attack = self._attack
        is_half = attack.kind == "half"
        writer.write(request[: len(request) // 2] if is_half else request)
        await writer.drain()
        if attack.kind == "slow":
            self._begin()
            while True:
                writer.write(b"{")
                await writer.drain()
                await asyncio.sleep(_TRICKLE_S)
        left = attack.length if attack.kind == "huge" else 0
        if left:
            self._begin()
        while left > 0:
            writer.write(_CHUNK[:left])
            left -= len(_CHUNK)
            await writer.drain()
        self._begin()

    def _begin(self) -> None:
        """Count a connection at work; enough of them are an attack in force."""
        self._begun += 1
        if self._begun >= min(self._attack.number, 100):
            self.in_force.set()


async def _attack(attack: Attack) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait_for_end, daemon=True).start()
    loop.call_later(_LONGEST_S, over.set)
    attackers = _Attackers(attack)
    running = asyncio.create_task(attackers.run(over))
    waiting = asyncio.create_task(attackers.in_force.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    sys.stdout.write("on\n")
    sys.stdout.flush()
    await running
    sys.stdout.write(json.dumps(attack.answers) + "\n")


if __name__ == "__main__":
    # Whoever signs meanwhile must wait for the service, not for its attackers' cores.
    os.nice(19)
    asyncio.run(_attack(Attack.read(sys.stdin.readline())))

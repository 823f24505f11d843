"""Signatures a second of one process, by how many sessions it has at a network HSM.

    python -m bench.hsm_sessions [--sessions 1 4 16] [--ms 5] [--here]

The HSM is SoftHSM behind the tests' shim. By default the shim answers the calls that
sign by itself, after a time as the network takes it: the HSM computes elsewhere, and
all that is measured is ours. With `--here` SoftHSM does what it is told after that
time, in this very process, as no network HSM does.

All take turns, `--rounds` of them, and the best round of each counts. Beside the
signatures stand the processors that the process used: near 1 they are what is measured.
On a busy machine it waits for one; that is printed as well.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    TokenRole,
    WrappedKey,
    scheme_for,
)
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.pkcs11_shim import Action, Pkcs11Shim
from tests.support.processes.scratch import short_folder
from worker.hsm.session import HsmSession

_RESIDENT: Final = KeyReference(TokenRole.FIRMA, b"bench-sessions")
_CALLERS: Final = 2
"""Signatures asked for at once, for each session: one runs, one waits."""
_SIGNING: Final = ("C_UnwrapKey", "C_SignInit", "C_Sign", "C_DestroyObject")
_NANO: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Rate:
    """What was measured of one kind of key with so many sessions."""

    a_second: float
    """Signatures."""
    processors: float
    """That the process used at an average."""
    waited: float
    """Part of the time in which its threads could have run that they waited for one."""


def _scheduled_s() -> tuple[float, float]:
    """Seconds that this process's threads ran, and waited for a processor."""
    ran = waited = 0
    for task in Path("/proc/self/task").iterdir():
        on, off, _ = (task / "schedstat").read_text("ascii").split()
        ran, waited = ran + int(on), waited + int(off)
    return ran * _NANO, waited * _NANO


async def _rate(
    session: HsmSession,
    key: ResidentKey | WrappedKey,
    algorithm: KeyAlgorithm,
    callers: int,
    seconds: float,
) -> Rate:
    """Sign for so many seconds, `callers` at a time."""
    scheme, digest, count = scheme_for(algorithm), bytes(32), 0
    end = time.perf_counter() + 1

    async def call() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await session.sign(key, digest, scheme)
            count += 1

    # To warm up: each session looks up its keys.
    await asyncio.gather(*(call() for _ in range(callers)))
    count, began = 0, time.perf_counter()
    end, before, used_s = began + seconds, _scheduled_s(), time.process_time()
    await asyncio.gather(*(call() for _ in range(callers)))
    took_s = time.perf_counter() - began
    used_s = time.process_time() - used_s
    ran_s, waited_s = (
        after - at for after, at in zip(_scheduled_s(), before, strict=True)
    )
    return Rate(count / took_s, used_s / took_s, waited_s / (ran_s + waited_s))


async def measure(
    installation: HsmInstallation,
    shim: Pkcs11Shim,
    sessions: int,
    args: argparse.Namespace,
) -> tuple[Rate, Rate]:
    """The rates of the wrapped key and of the resident one."""
    algorithm: KeyAlgorithm = args.algorithm
    async with installation.session(module=shim.path, sessions=sessions) as session:
        if session.reason:
            sys.exit(session.reason)
        await session.destroy(_RESIDENT)
        spki = await session.generate(_RESIDENT, algorithm)
        resident = ResidentKey(_RESIDENT.cka_id, spki)
        wrapped = await session.generate_wrapped(algorithm)
        callers = _CALLERS * sessions
        with ExitStack() as network:
            for function in _SIGNING:
                action: Action = "delay" if args.here else "play"
                network.enter_context(shim.fault(function, action, args.ms))
            return (
                await _rate(session, wrapped, algorithm, callers, args.seconds),
                await _rate(session, resident, algorithm, callers, args.seconds),
            )


@contextmanager
def _network_hsm() -> Iterator[tuple[HsmInstallation, Pkcs11Shim]]:
    """An HSM of its own, and the shim before it."""
    with short_folder() as folder:
        installation = HsmInstallation.ready(Path(folder))
        shim = Pkcs11Shim(installation.folder, installation.profile.modules[0])
        os.environ.update(shim.environment)
        yield installation, shim


def _best(rounds: Sequence[tuple[Rate, Rate]]) -> tuple[Rate, Rate]:
    """The best round of each kind of key."""
    wrapped, resident = zip(*rounds, strict=True)
    return (
        max(wrapped, key=lambda rate: rate.a_second),
        max(resident, key=lambda rate: rate.a_second),
    )


def table(sessions: Sequence[int], rates: Sequence[tuple[Rate, Rate]]) -> str:
    """The figures, for a terminal."""
    head = f"{'sessions':>8}  {'key':<8}  {'a second':>8}  {'times':>6}"
    lines = [f"{head}  {'processors':>10}  {'waited':>6}"]
    for kind, name in enumerate(("wrapped", "resident")):
        first = rates[0][kind].a_second
        for count, both in zip(sessions, rates, strict=True):
            one = both[kind]
            lines.append(
                f"{count:>8}  {name:<8}  {one.a_second:>8.1f}  "
                f"{one.a_second / first:>6.2f}  {one.processors:>10.2f}  "
                f"{one.waited:>6.0%}"
            )
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--ms", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--algorithm", type=KeyAlgorithm, default=KeyAlgorithm.RSA_2048)
    parser.add_argument("--here", action="store_true")
    args = parser.parse_args()
    with _network_hsm() as (installation, shim):
        rounds = [
            [asyncio.run(measure(installation, shim, n, args)) for n in args.sessions]
            for _ in range(args.rounds)
        ]
    rates = [_best(of_one) for of_one in zip(*rounds, strict=True)]
    where = "here" if args.here else "elsewhere"
    print(f"{args.algorithm}, {args.ms} ms a call, computed {where}")
    print(table(args.sessions, rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())

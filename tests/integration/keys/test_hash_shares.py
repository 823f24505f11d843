"""Whose password is hashed next, and who is told that there are too many."""

import asyncio
import statistics
import threading
from collections.abc import Awaitable, Callable

import pytest

from appliance.admission.work_owner import working_for
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.keys.password_hashing import HashSlots, Passwords
from appliance.keys.signing_password import SigningPasswords
from appliance.system.cpu_count import usable_cores

PASSWORD = b"una clave de firma"


class Scene:
    """One core, which is busy until it is opened; what was begun, in order."""

    def __init__(self) -> None:
        self.slots = HashSlots(1)
        self.begun: list[str] = []
        self._gate = threading.Event()
        self._tasks: list[asyncio.Task[ErrorCode | None]] = []

    async def ask(self, share: str, party: str = "", *, first: bool = False) -> None:
        """Ask for a hash, and let it come to where it waits."""

        async def hashed() -> ErrorCode | None:
            with working_for(share, party):
                try:
                    await self.slots.run(lambda: self._work(share), first=first)
                except ApplianceError as exc:
                    return exc.code
            return None

        self._tasks.append(asyncio.create_task(hashed()))
        for _ in range(3):
            await asyncio.sleep(0)

    def _work(self, share: str) -> None:
        self._gate.wait(60)
        self.begun.append(share)

    async def end(self) -> list[ErrorCode | None]:
        """Let everything end; how."""
        self._gate.set()
        return await asyncio.gather(*self._tasks)


async def test_signing_passwords_come_before_others() -> None:
    """However many tries to sign in wait."""
    scene = Scene()
    for number in range(20):
        await scene.ask(f"address:{number}")
    await scene.ask("person:ana", first=True)

    await scene.end()

    assert scene.begun.index("person:ana") == 1


async def test_integrator_with_many_frames_holds_nobody_up() -> None:
    """Another's check waits for what is running, and for one more at most."""
    scene = Scene()
    for number in range(30):
        await scene.ask("acme", f"session:{number}", first=True)
    await scene.ask("otro", "session:x", first=True)

    await scene.end()

    assert scene.begun.index("otro") <= 2


async def test_flood_is_told_at_once_and_alone() -> None:
    """Thirty-two of an address wait, sixty-four of an integrator's frames."""
    scene = Scene()
    for number in range(40):
        await scene.ask("address:a", "address:a")
        await scene.ask("acme", f"session:{number}", first=True)
        await scene.ask("acme", f"session:{number}", first=True)
    await scene.ask("address:b", "address:b")
    await scene.ask("otro", "session:x", first=True)

    ends = await scene.end()

    assert ends.count(ErrorCode.OVERLOADED) == (40 - 33) + (80 - 65)
    assert ends[-2:] == [None, None]


async def test_who_leaves_frees_the_place() -> None:
    """A caller that is cancelled while it waits keeps nobody from a core."""
    slots, gate = HashSlots(1), threading.Event()
    running = asyncio.create_task(slots.run(lambda: gate.wait(60)))
    await asyncio.sleep(0)
    waiting = [
        asyncio.create_task(slots.run(lambda: None, first=first))
        for first in (False, True)
    ]
    for _ in range(3):
        await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    gate.set()
    assert await running

    async with asyncio.timeout(60):
        await slots.run(lambda: None, first=True)
        await slots.run(lambda: None)


@pytest.mark.alone
@pytest.mark.parametrize("flood", ["logins", "frames"])
async def test_real_checks_pass_by_a_flood(flood: str) -> None:
    """Argon2 as it is: others' hashes that end during a check are few.

    Those that ran as it came, and those beside its own: about twice its quiet time,
    counted in hashes, since a busy machine makes each of them slower.
    """
    slots = HashSlots()
    logins = Passwords(slots)
    signing = SigningPasswords(KeyRing.of(b"p" * 32), slots)
    kept = (await signing.derive_new(PASSWORD)).secret
    phc = await logins.hash(PASSWORD)
    stop, poured, done = asyncio.Event(), asyncio.Event(), 0

    async def check() -> object:
        return await signing.check(PASSWORD, kept, (CredentialId("c"),))

    async def login() -> object:
        return await logins.verify(phc, b"wrong")

    async def pour(work: Callable[[], Awaitable[object]], party: str) -> None:
        nonlocal done
        share = "address:a" if flood == "logins" else "acme"
        with working_for(share, party):
            while not stop.is_set():
                try:
                    await work()
                    done += 1
                    poured.set()
                except ApplianceError:
                    await asyncio.sleep(0.01)

    work = login if flood == "logins" else check
    passed = []
    async with asyncio.TaskGroup() as group:
        for number in range(48):
            group.create_task(pour(work, f"session:{number}"))
        await poured.wait()
        for _ in range(30):
            before = done
            with working_for("person:ana", "person:ana"):
                await check()
            passed.append(done - before)
        stop.set()

    assert done > len(passed)
    assert statistics.median(passed) <= 2 * usable_cores(), passed

"""Argon2id off the event loop, at most one a core at a time.

For login passwords, of which a PHC string is kept. Signing passwords are
another matter (no PHC string is ever made of one) but share the slots.
"""

import asyncio
import functools
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from appliance.domain.errors import ApplianceError, ErrorCode

MEMORY_KIB: Final = 19_456
TIME_COST: Final = 2
PARALLELISM: Final = 1

_HASHER: Final = PasswordHasher(
    time_cost=TIME_COST, memory_cost=MEMORY_KIB, parallelism=PARALLELISM
)
_T = TypeVar("_T")


class HashSlots:
    """Lets one hash a core run at a time, in threads.

    Args:
        slots: how many at a time; one a core by default.
    """

    def __init__(self, slots: int | None = None) -> None:
        most = slots or os.cpu_count() or 1
        self._free = asyncio.Semaphore(most)
        # Threads of its own: each keeps the 19 MiB of its last hash, and those
        # of asyncio's pool are many.
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="hash")

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run slow hashing in a thread when a slot is free.

        A caller that is cancelled leaves; its slot stays taken until the
        thread is done, so that leaving frees no core that is still busy.

        Args:
            work: the hashing; it must not touch the event loop.
        """
        await self._free.acquire()
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except BaseException:
            self._free.release()
            raise
        future.add_done_callback(lambda _: self._free.release())
        return await asyncio.shield(future)


@functools.cache
def _nobody() -> str:
    """Checked for unknown users, so that they cost what known ones do."""
    return _HASHER.hash(secrets.token_bytes(16))


class Passwords:
    """Hashes and checks login passwords.

    Args:
        slots: shared by everything of this process that hashes passwords.
    """

    def __init__(self, slots: HashSlots) -> None:
        self._slots = slots
        self._nobody = _nobody()

    async def hash(self, password: bytes) -> str:
        """Hash a login password.

        Args:
            password: UTF-8 of the NFC form, 1 to 1024 bytes.

        Returns:
            A PHC string.
        """
        return await self._slots.run(lambda: _HASHER.hash(password))

    async def verify(self, phc: str | None, password: bytes) -> bool:
        """Check a login password.

        Args:
            phc: what `hash` made, or None when nobody is known by that name:
                it takes as long and is never right.
            password: as for `hash`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the stored hash is none.
        """
        right = await self._slots.run(
            lambda: self._matches(phc or self._nobody, password)
        )
        return right and phc is not None

    def _matches(self, phc: str, password: bytes) -> bool:
        try:
            return _HASHER.verify(phc, password)
        except VerificationError:
            return False
        except InvalidHashError as exc:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc

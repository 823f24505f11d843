"""Argon2id off the event loop, at most one a core at a time.

Of login passwords a PHC string is kept. Of signing passwords none is ever made: their
verifier and unlock keys are expanded from a root that is gone with its thread.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar, TypeVarTuple

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION, Type, hash_secret_raw
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import WORK_OWNER
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId
from appliance.system.cpu_count import usable_cores

MEMORY_KIB: Final = 19_456
TIME_COST: Final = 2
PARALLELISM: Final = 1

_STRANGERS_PART: Final = 0.25
"""Of the time of hashes other than signing passwords': 12 sign-ins a second where one
takes 20 ms and one runs at a time."""

_HASHER: Final = PasswordHasher(
    time_cost=TIME_COST, memory_cost=MEMORY_KIB, parallelism=PARALLELISM
)
_T = TypeVar("_T")
_Given = TypeVarTuple("_Given")


class HashSlots:
    """Lets one hash a core run at a time, in threads; each asks in their turn.

    Checks of signing passwords come before all else: who is there has proven by
    another factor who they are, while anybody may try to sign in. Other hashes
    leave a core free where there are several. Within both, each share and each of
    its parties (`WorkOwner`) wait in turns, so that a flood of one address, or of
    one integrator's frames, makes no other wait longer than for a hash or two. Sign-ins
    from new addresses have a quarter of the time of other hashes, all together.

    Args:
        slots: how many at a time; one a core by default.
    """

    def __init__(self, slots: int | None = None) -> None:
        most = slots or usable_cores()
        self._signing = FairQueue(
            FairLimits(
                places=most,
                per_share=most,
                per_party=most,
                waiting=256,
                waiting_per_share=64,
                # A person has at most ten checks running (decisions "attempts").
                waiting_per_party=16,
                retry_after_s=1,
            ),
            "signing_passwords",
        )
        others = max(1, most - 1)
        self._others = FairQueue(
            FairLimits(
                places=others,
                per_share=others,
                per_party=others,
                waiting=128,
                waiting_per_share=32,
                waiting_per_party=32,
                retry_after_s=1,
                # With its statements a try costs twice its hash.
                group_part=_STRANGERS_PART,
            ),
            "other_passwords",
        )
        self._cores = _Cores(most)
        # Threads of its own: each keeps the 19 MiB of its last hash, and those
        # of asyncio's pool are many.
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="hash")

    async def run(
        self, work: Callable[[*_Given], _T], *given: *_Given, first: bool = False
    ) -> _T:
        """Run slow hashing in a thread when a slot is free.

        A caller that is cancelled leaves; its slot stays taken until the
        thread is done, so that leaving frees no core that is still busy.

        Args:
            work: the hashing; it must not touch the event loop.
            given: of it. Not in a partial, whose repr would tell a password.
            first: it is a signing password's, which comes before others.

        Raises:
            ApplianceError: `OVERLOADED`: too many wait, of all or of this share.
        """
        queue = self._signing if first else self._others
        place = await queue.acquire(WORK_OWNER.get())
        try:
            await self._cores.take(first=first)
        except BaseException:
            place.release(is_undone=True)
            raise
        # Who waits for a core uses none.
        place.begin()

        def leave(_: object = None) -> None:
            place.release()
            self._cores.give_back()

        try:
            future = asyncio.get_running_loop().run_in_executor(
                self._threads, work, *given
            )
        except BaseException:
            leave()
            raise
        future.add_done_callback(leave)
        return await asyncio.shield(future)


class _Cores:
    """A number of cores, given to those who come first before others.

    Few wait here: those who have a place of their queue.

    Args:
        free: how many.
    """

    def __init__(self, free: int) -> None:
        self._free = free
        self._first: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()

    async def take(self, *, first: bool) -> None:
        """Wait for a core.

        Raises:
            CancelledError: the caller left; it holds none.
        """
        if self._free:
            self._free -= 1
            return
        granted = asyncio.get_running_loop().create_future()
        (self._first if first else self._others).append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give a core to the next one."""
        for waiting in (self._first, self._others):
            while waiting:
                granted = waiting.popleft()
                if not granted.done():
                    granted.set_result(None)
                    return
        self._free += 1


def _nobody() -> str:
    """Checked for unknown users, so that they cost what known ones do.

    A PHC string as `hash` makes them, whose hash is of nothing: random bytes, which
    no password has, and which cost no hash to make.
    """
    costs = f"m={MEMORY_KIB},t={TIME_COST},p={PARALLELISM}"
    salt, digest = _random(_HASHER.salt_len), _random(_HASHER.hash_len)
    return f"$argon2id$v={ARGON2_VERSION}${costs}${salt}${digest}"


def _random(length: int) -> str:
    """So many bytes, as a PHC string has them: base64 without padding."""
    return base64.b64encode(secrets.token_bytes(length)).rstrip(b"=").decode("ascii")


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
        return await self._slots.run(_HASHER.hash, password)

    async def verify(self, phc: str | None, password: bytes) -> bool:
        """Check a login password.

        Args:
            phc: what `hash` made, or None when nobody is known by that name:
                it takes as long and is never right.
            password: as for `hash`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the stored hash is none.
        """
        right = await self._slots.run(self._matches, phc or self._nobody, password)
        return right and phc is not None

    def _matches(self, phc: str, password: bytes) -> bool:
        try:
            _demand_affordable(phc)
            return _HASHER.verify(phc, password)
        except VerificationError:
            return False
        except InvalidHashError as exc:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc


def _demand_affordable(phc: str) -> None:
    """Refuse a stored hash that costs more than ours: it would stop this process.

    Raises:
        InvalidHashError: it does, or is no hash.
    """
    given = extract_parameters(phc)
    if (
        given.time_cost > TIME_COST
        or given.memory_cost > MEMORY_KIB
        or given.parallelism > PARALLELISM
    ):
        msg = "costs more than this version's"
        raise InvalidHashError(msg)


@dataclass(frozen=True, slots=True)
class PasswordRoot:
    """How the root of a signing password is had; what it is stands in no object."""

    pepper: bytes = field(repr=False)
    salt: bytes = field(repr=False)
    argon2: dict[str, int]

    def derive(
        self, password: bytes, credentials: Collection[CredentialId]
    ) -> tuple[str, dict[CredentialId, bytes]]:
        """SHA-256 of the verifier in hex, and the unlock key of each credential."""
        digest, unlock, _ = self.derive_marked(password, credentials, b"")
        return digest, unlock

    def derive_marked(
        self, password: bytes, credentials: Collection[CredentialId], owner: bytes
    ) -> tuple[str, dict[CredentialId, bytes], str]:
        """Derive the same, and a mark of the password in hex.

        The mark tells a wrong password of one owner from others. It is stored, and
        follows neither from the verifier nor from its hash.

        Args:
            password: UTF-8 of the NFC form.
            credentials: whose unlock keys are wanted.
            owner: who has typed it.
        """
        root = hash_secret_raw(
            hmac.digest(self.pepper, password, "sha256"),
            self.salt,
            time_cost=self.argon2["t"],
            memory_cost=self.argon2["m"],
            parallelism=self.argon2["p"],
            hash_len=32,
            type=Type.ID,
            version=self.argon2["v"],
        )
        verifier = _expand(root, b"rubrica/verifier/1")
        unlock = {
            credential: _expand(root, b"rubrica/unlock/1" + credential.encode())
            for credential in credentials
        }
        mark = _expand(root, b"rubrica/wrong-password/1" + owner).hex()
        return hashlib.sha256(verifier).hexdigest(), unlock, mark


def _expand(root: bytes, info: bytes) -> bytes:
    """HKDF-SHA256 without salt, 32 bytes. Source: RFC 5869."""
    return HKDF(SHA256(), 32, salt=None, info=info).derive(root)

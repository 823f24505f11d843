"""Moving users' keys from one master key to another; no password is needed.

Each key's W is unwrapped by the old version and wrapped by the new one, inside
the HSM. Signing goes on meanwhile, in other processes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from appliance.domain.errors import HsmRefusedError, KeyNotFoundError
from appliance.domain.ids import CredentialId
from appliance.domain.keys.hsm_keys import MasterWrapped, WrapMethod
from appliance.keys.master_key_rotation import MasterKeyRotation
from worker.hsm.session import HsmSession

_NONE: Final = 0
"""Version that no master key has."""


@dataclass(slots=True)
class Moved:
    """What a move did."""

    keys: int = 0
    """How many are under the new version now."""
    stuck: dict[CredentialId, str] = field(default_factory=dict)
    """Those that do not open, and why: altered blobs, or a version that is lost."""


async def move_keys(
    session: HsmSession,
    rotation: MasterKeyRotation,
    version: int,
    progress: Callable[[int], None],
    method: WrapMethod | None = None,
) -> Moved:
    """Bring every key under a version of the master key.

    Args:
        session: of an HSM that holds this version and those before.
        rotation: the record.
        version: of the master key.
        progress: told how many keys were looked at since it was told before.
        method: by which W shall be wrapped; the make's own unless told.

    Returns:
        What was done; nothing of it is lost when this is killed.

    Raises:
        HsmUnavailableError: the HSM cannot be used now.
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    moved = Moved()
    # Keys that were made meanwhile, by who still knew the version before, are
    # left for one more pass.
    while await _pass(session, rotation, (version, method), moved, progress):
        pass
    return moved


async def misnamed(
    session: HsmSession, rotation: MasterKeyRotation
) -> dict[CredentialId, str]:
    """Return the keys that do not open under the version that their rows name, and why.

    Rows say which version a key needs, and whoever writes to the database writes them;
    a version that was destroyed is in no backup. The HSM knows better.

    Args:
        session: of an HSM with every version.
        rotation: the record.

    Raises:
        HsmUnavailableError: the HSM cannot be used now.
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    after, tried = None, Moved()
    while batch := await rotation.batch(_NONE, None, after):
        for key in batch:
            await _rewrap(session, key, key.master, None, tried)
        after = batch[-1].credential
    return tried.stuck


async def _pass(
    session: HsmSession,
    rotation: MasterKeyRotation,
    wanted: tuple[int, WrapMethod | None],
    moved: Moved,
    progress: Callable[[int], None],
) -> int:
    """Go once through all keys; how many moved."""
    after, before = None, moved.keys
    while batch := await rotation.batch(*wanted, after):
        done = []
        for old in batch:
            new = await _rewrap(session, old, *wanted, moved)
            if new is not None:
                done.append((old, new))
        moved.keys += await rotation.store(done)
        after = batch[-1].credential
        progress(len(batch))
    return moved.keys - before


async def _rewrap(
    session: HsmSession,
    old: MasterWrapped,
    version: int,
    method: WrapMethod | None,
    moved: Moved,
) -> MasterWrapped | None:
    """One key under the new version; None for one that does not open."""
    try:
        blob_w, method_w = await session.rewrap(
            old.blob_w, old.method_w, old.master, version, method
        )
    except (HsmRefusedError, KeyNotFoundError) as exc:
        # One bad row must not keep all others from moving.
        moved.stuck[old.credential] = exc.reason
        return None
    moved.stuck.pop(old.credential, None)
    return MasterWrapped(old.credential, version, blob_w, method_w)

"""For whom the present call works, so that shared pools can give each their share.

    with working_for(integrator, session):
        await inspector.inspect(pdf)

It goes along with the asyncio task and with the tasks that it starts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class WorkOwner:
    """Whose share a piece of work counts in."""

    share: str
    """An integrator's id, or what stands for one (a person, an address); `""` for
    the installation's own work."""
    party: str = ""
    """Who of them: a session, a person, an address; `""` for nobody in particular."""
    group: str = ""
    """Those whose shares cost nothing to make, `STRANGERS`: together they have a part
    that leaves room for others. `""` for a share that stands by itself."""


STRANGERS: Final = "strangers"
"""The group of addresses from which nobody has proven who they are of late."""
INSTALLATION: Final = WorkOwner("")
"""Commands, workers and chores."""
WORK_OWNER: Final[ContextVar[WorkOwner]] = ContextVar(
    "rubrica.work_owner", default=INSTALLATION
)
"""For whom the present call works; what is set holds for the rest of its task."""


@contextmanager
def working_for(share: str, party: str | None = None) -> Iterator[None]:
    """Work for somebody for a while.

    Args:
        share: see `WorkOwner`.
        party: the same; None: as before.
    """
    before = WORK_OWNER.get()
    token = WORK_OWNER.set(WorkOwner(share, before.party if party is None else party))
    try:
        yield
    finally:
        WORK_OWNER.reset(token)

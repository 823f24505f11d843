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


INSTALLATION: Final = WorkOwner("")
"""Commands, workers and chores."""
_owner: ContextVar[WorkOwner] = ContextVar("rubrica.work_owner", default=INSTALLATION)


def work_owner() -> WorkOwner:
    """For whom the present call works."""
    return _owner.get()


def work_for(owner: WorkOwner) -> None:
    """Say for whom the rest of the present task works."""
    _owner.set(owner)


@contextmanager
def working_for(share: str, party: str | None = None) -> Iterator[None]:
    """Work for somebody for a while.

    Args:
        share: see `WorkOwner`.
        party: the same; None: as before.
    """
    before = _owner.get()
    token = _owner.set(WorkOwner(share, before.party if party is None else party))
    try:
        yield
    finally:
        _owner.reset(token)

"""Faults that are told together, so that who asks mends all of them at once.

faults = Faults()
for each in documents:
    with faults.collected():
        look_at(each)
faults.demand_none()
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar, cast

from appliance.domain.errors.codes import ErrorCode
from appliance.domain.errors.exceptions import ApplianceError

T = TypeVar("T")

FAULTS_TOLD: Final = 50
"""Most that one answer tells."""
NOT_OF_WHAT_CAME: Final = frozenset(
    {
        ErrorCode.DOCUMENT_DAMAGED,
        ErrorCode.DOCUMENT_QUOTA,
        ErrorCode.INTERNAL,
        ErrorCode.OVERLOADED,
        ErrorCode.SANDBOX_UNAVAILABLE,
        ErrorCode.STORAGE_FULL,
        ErrorCode.STORE_UNAVAILABLE,
    }
)
"""What ends a call at once: nothing that was sent is wrong."""


class SeveralFaultsError(ApplianceError):
    """The first of several faults, and the others with it.

    Args:
        faults: in the order in which they are told, at least two.
    """

    def __init__(self, faults: Sequence[ApplianceError]) -> None:
        first = faults[0]
        super().__init__(
            first.code,
            params=first.params,
            extras={**first.extras},
            sentence=first.sentence,
        )
        self.faults = tuple(faults)


class Faults:
    """Collects what is wrong with something.

    Args:
        found: what is known to be.
    """

    def __init__(self, found: Sequence[ApplianceError] = ()) -> None:
        self.found = [*found[:FAULTS_TOLD]]

    @property
    def is_full(self) -> bool:
        """Whether no more are told."""
        return len(self.found) >= FAULTS_TOLD

    def add(self, fault: ApplianceError) -> None:
        """Add one, or the several that it is, unless there are too many.

        Raises:
            ApplianceError: it is none of what was sent.
        """
        if fault.code in NOT_OF_WHAT_CAME:
            raise fault
        several = fault.faults if isinstance(fault, SeveralFaultsError) else (fault,)
        self.found.extend(several[: FAULTS_TOLD - len(self.found)])

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Go on after what is raised within, having added it.

        Raises:
            ApplianceError: what is raised within is none of what was sent.
        """
        try:
            yield
        except ApplianceError as fault:
            if fault.code in NOT_OF_WHAT_CAME:
                raise
            self.add(fault)

    def demand_none(self) -> None:
        """Refuse what something is wrong with.

        Raises:
            ApplianceError: the only fault.
            SeveralFaultsError: there are several.
        """
        if len(self.found) > 1:
            raise SeveralFaultsError(self.found)
        if self.found:
            raise self.found[0]

    def unless_any(self, read: T | None) -> T:
        """What was read, which nothing is wrong with.

        Args:
            read: None only where something is, and was added.

        Raises:
            ApplianceError: the only fault.
            SeveralFaultsError: there are several.
        """
        self.demand_none()
        return cast("T", read)

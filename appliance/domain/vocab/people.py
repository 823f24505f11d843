"""People, how they came to be certified, and their signing password."""

from enum import StrEnum


class PersonState(StrEnum):
    """A person of the installation."""

    INVITED = "invited"
    """Recorded, without secrets: has an enrolment link."""
    ACTIVE = "active"
    DISABLED = "disabled"


class SlotOutcome(StrEnum):
    """How one check of a signing password ended."""

    RUNNING = "running"
    RIGHT = "right"
    WRONG = "wrong"
    """Wrong and counted."""
    REPEATED = "repeated"
    """Wrong, the same as within the last minute: not counted again."""


class VouchedBy(StrEnum):
    """How a person came to be certified (decisions "who may be certified")."""

    VOUCHED = "vouched"
    OFFICER = "officer"
    EXTERNAL = "external"
    DEMO = "demo"
    TEST = "test"
    """Nobody: an integrator's backend made them up to try things, in PREPROD."""

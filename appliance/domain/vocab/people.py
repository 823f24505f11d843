"""People, how they came to be certified, and their signing password."""

from enum import StrEnum


class PersonState(StrEnum):
    """A person of the installation."""

    INVITED = "invited"
    """Recorded, without secrets: has an enrolment link."""
    ACTIVE = "active"
    DISABLED = "disabled"


class HelpTopic(StrEnum):
    """What keeps a person from signing, as they say themselves."""

    PASSWORD = "password"  # noqa: S105 (a word, no secret)
    """They forgot their signing password."""
    PHONE = "phone"
    """They lost the phone that shows their codes."""
    BOTH = "both"
    """They have neither."""
    LOCKED = "locked"
    """Their signing password is locked."""
    OTHER = "other"
    """Their certificate is over, or something else."""


class HelpOutcome(StrEnum):
    """How a request for help ended."""

    CLOSED = "closed"
    """An officer closed it."""
    WITHDRAWN = "withdrawn"
    """The person withdrew it by the link in their mail."""


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

"""Refusals of what is part of something larger: which part, the field tells."""

from collections.abc import Iterator
from contextlib import contextmanager

from appliance.domain.errors import ApplianceError


@contextmanager
def refused_for(name: str) -> Iterator[None]:
    """Name the field that something is refused for.

    Args:
        name: its path.

    Raises:
        ApplianceError: what was raised within, with its field.
    """
    try:
        yield
    except ApplianceError as refusal:
        refusal.extras["field"] = name
        raise


@contextmanager
def refused_within(name: str) -> Iterator[None]:
    """Name the object that something is refused in.

    Args:
        name: its path; the field within it follows, where one was named.

    Raises:
        ApplianceError: what was raised within, with its field.
    """
    try:
        yield
    except ApplianceError as refusal:
        within = refusal.extras.get("field")
        refusal.extras["field"] = f"{name}.{within}" if within else name
        raise

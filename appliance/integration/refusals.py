"""Refusals of what is part of something larger: which part, the field tells."""

from collections.abc import Iterator
from contextlib import contextmanager

from appliance.domain.errors import ApplianceError


@contextmanager
def refused_for(name: str, part: str | None = None) -> Iterator[None]:
    """Name the field that something is refused for.

    Args:
        name: its path.
        part: of a multipart body that it came in.

    Raises:
        ApplianceError: what was raised within, with its field.
    """
    try:
        yield
    except ApplianceError as refusal:
        refusal.extras["field"] = name
        if part is not None:
            refusal.extras["part"] = part
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

"""Which representation a caller asks for (RFC 9110, 12.5.1)."""

from quart import request


def prefers(media_type: str, over: str) -> bool:
    """Tell whether Accept names a type, and with more weight than another.

    A wildcard names nothing: most clients send one without meaning it.

    Args:
        media_type: the type asked about.
        over: the usual type.
    """
    weights = _named()
    weight = weights.get(media_type, 0.0)
    return weight > 0 and weight > weights.get(over, 0.0)


def wants_only(media_type: str) -> bool:
    """Tell whether Accept names this type and nothing else.

    Args:
        media_type: the type asked about.
    """
    return set(_named()) == {media_type}


def _named() -> dict[str, float]:
    """The ranges that Accept names, with their weights."""
    return {
        value.partition(";")[0].strip().lower(): quality
        for value, quality in request.accept_mimetypes
    }

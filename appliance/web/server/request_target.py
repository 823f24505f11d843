"""What a request's first line may ask for, before anything is made of it."""

import re
from typing import Final

_ABSOLUTE: Final = re.compile(
    rb"https?://(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\])(?::[0-9]*)?"
    rb"(/[^?]*)?(\?.*)?",
    re.IGNORECASE,
)


def origin_form(method: bytes, target: bytes) -> bytes | None:
    """A request's target as path and query, as the framework expects it.

    Args:
        method: of the request.
        target: as the client sent it: visible ASCII.

    Returns:
        The target, of an absolute one its path and query; `*` for OPTIONS; None for
        anything else.

    Source: RFC 9112, 3.2.
    """
    if target.startswith(b"/") or (method == b"OPTIONS" and target == b"*"):
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        return None
    path, query = absolute.groups()
    return (path or b"/") + (query or b"")

"""How much of a body a face takes, and for how long."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from quart import Request, current_app, request

from appliance.web.response import SLOWEST


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a body is taken, and for how long."""

    json: int
    """Largest JSON body, in bytes."""
    document: int
    """Largest document in a multipart body, in bytes."""
    timeout_s: float
    """Longest a body may take to arrive, in seconds."""

    @property
    def multipart(self) -> int:
        """Largest multipart body, in bytes: a document, its options, its frame."""
        return self.document + 2 * self.json


def bounded_request(limits: Limits, large: Collection[str]) -> type[Request]:
    """Make the request class whose unread body is held up to its kind's limit.

    Quart buffers what arrives while nobody reads; only a body that brings a
    document may be as large as one.

    Args:
        limits: of the face; `limits.json` is its MAX_CONTENT_LENGTH too.
        large: media types of the bodies that bring a document.
    """

    class BoundedRequest(Request):
        """A request with a larger body if that brings a document."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if self.mimetype in large:
                self.body = self.body_class(self.content_length, limits.multipart)

    return BoundedRequest


def face_limits() -> Limits:
    """What the present face takes of a body."""
    limits: Limits = current_app.extensions["rubrica.limits"]
    return limits


def patience_s(limits: Limits) -> float:
    """How long the present request's document is waited for, by its size."""
    return limits.timeout_s + (request.content_length or 0) / SLOWEST

"""What can go wrong, as exceptions with the service's stable codes."""

from collections.abc import Mapping
from typing import Any, ClassVar


class RubricaError(Exception):
    """Anything that this package raises."""


class ConnectionFailedError(RubricaError):
    """No answer came: what was asked for may have been done, or not."""


class IntegrityError(RubricaError):
    """A document is not the one whose SHA-256 the service told."""


class WebhookError(RubricaError):
    """A message that is not the service's, or is too old."""


class ApiError(RubricaError):
    """An answer that says what is wrong; its subclasses go by the status.

    Args:
        status: HTTP status.
        problem: the answer's members (RFC 9457); empty where it has none.
        retry_after_s: seconds after which the call may be repeated, where told.
    """

    statuses: ClassVar[tuple[int, ...]] = ()

    def __init__(
        self, status: int, problem: Mapping[str, Any], retry_after_s: float | None
    ) -> None:
        self.status = status
        self.problem = dict(problem)
        self.retry_after_s = retry_after_s
        super().__init__(f"{self.code}: {self.detail}")

    @property
    def code(self) -> str:
        """Which error it is: it never changes. `HTTP_502` where none was told."""
        return str(self.problem.get("code", f"HTTP_{self.status}"))

    @property
    def detail(self) -> str:
        """A sentence for people, in the client's language."""
        return str(self.problem.get("detail", ""))

    @property
    def category(self) -> str:
        """What to do next: `retry`, `new_session`, `fix_request` or `terminal`."""
        return str(self.problem.get("category", "terminal"))

    @property
    def request_id(self) -> str | None:
        """Names the call in the service's log; keep it for support."""
        return self._text("requestId")

    @property
    def field(self) -> str | None:
        """The path of the field at fault, such as `firmantes[0].cuil`."""
        return self._text("field")

    def _text(self, name: str) -> str | None:
        value = self.problem.get(name)
        return None if value is None else str(value)


class InvalidRequestError(ApiError):
    """Something of the call is wrong: mend it."""

    statuses = (400, 405, 406, 411, 413, 414, 415, 422, 431)


class AuthenticationError(ApiError):
    """The API key is missing, wrong, revoked, or of the other environment."""

    statuses = (401,)


class ForbiddenError(ApiError):
    """The key may not do this, or not from here."""

    statuses = (403,)


class NotFoundError(ApiError):
    """It does not exist, or is another integrator's."""

    statuses = (404, 410)


class ConflictError(ApiError):
    """Its state does not permit it, or an idempotency key was used otherwise."""

    statuses = (409, 412)


class RateLimitedError(ApiError):
    """More than is allowed for; see `retry_after_s`."""

    statuses = (429,)


class UnavailableError(ApiError):
    """The service cannot do it now."""

    statuses = (500, 502, 503, 504, 507)


_BY_STATUS = {
    status: kind for kind in ApiError.__subclasses__() for status in kind.statuses
}


def error_for(
    status: int, problem: Mapping[str, Any], retry_after_s: float | None
) -> ApiError:
    """The error of an answer.

    Args:
        status: HTTP status.
        problem: members of the answer.
        retry_after_s: as the answer says, in seconds.
    """
    return _BY_STATUS.get(status, ApiError)(status, problem, retry_after_s)

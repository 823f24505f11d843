"""Who is asking: a route needs a signer's bearer unless it says otherwise.

Being public is the explicit mark `@public`; forgetting it closes a route,
never opens one.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from quart import current_app, g, request

from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.requests.request import Signer
from appliance.web import request_log

Authenticate = Callable[[str, Callable[[PersonId], None]], Awaitable[Signer]]
"""Turns a bearer token into its person, or raises; tells whom a genuine one names,
before the record is asked whether it still holds."""

_MARK = "__public__"
_BEFORE = "__before_record__"
_View = TypeVar("_View", bound=Callable[..., Any])
MAX_AUTHORIZATION: Final = 8192
"""Longest Authorization header, in characters."""


def public(view: _View) -> _View:
    """Mark a view that answers without a bearer.

    Args:
        view: the view; a route decorator goes above this mark.
    """
    setattr(view, _MARK, True)
    return view


def before_record(check: Callable[[], None]) -> Callable[[_View], _View]:
    """Mark a view with what is demanded of a signer before the record is read.

    For what refuses many calls in a moment: a record that is busy is not asked of them.

    Args:
        check: raises for who may not go on; `WORK_OWNER` names them. Whether their
            token was revoked is not known yet.
    """

    def mark(view: _View) -> _View:
        setattr(view, _BEFORE, check)
        return view

    return mark


def is_public(view: object) -> bool:
    """Tell whether a view carries the mark."""
    return getattr(view, _MARK, False) is True


async def admit(public: bool) -> None:  # noqa: FBT001 (`HttpProfile.admit` has no names)
    """Demand a signer's bearer of the present request, unless its view is public.

    Args:
        public: whether it is.

    Raises:
        ApplianceError: those of `signer`.
    """
    if not public:
        await signer()


async def signer() -> Signer:
    """The person whose bearer the present request carries.

    Raises:
        ApplianceError: `TOKEN_MISSING`, `TOKEN_INVALID`, `TOKEN_EXPIRED`,
            `MFA_REQUIRED`; what `before_record` demands.

    Source: spec "Authentication"; RFC 6750, 2.1.
    """
    known: Signer | None = g.get("signer")
    if known is None:
        authenticate: Authenticate = current_app.extensions["rubrica.authenticate"]
        known = await authenticate(bearer(), _named)
        g.signer = known
    return known


def _named(person: PersonId) -> None:
    """Take the call for a person's, and demand what comes before the record."""
    name = f"person:{person}"
    WORK_OWNER.set(WorkOwner(name, name))
    request_log.note(person=person)
    view = current_app.view_functions.get(request.endpoint or "")
    check: Callable[[], None] | None = getattr(view, _BEFORE, None)
    if check is not None:
        check()


def bearer() -> str:
    """The token of the Authorization header, which must be there once.

    Raises:
        ApplianceError: `TOKEN_MISSING`, `TOKEN_INVALID`.
    """
    header = request.headers.get("Authorization", "")
    scheme, _, token = header.strip(" ").partition(" ")
    if scheme.lower() != "bearer" or not token.strip(" "):
        raise ApplianceError(ErrorCode.TOKEN_MISSING)
    if len(header) > MAX_AUTHORIZATION:
        raise ApplianceError(ErrorCode.TOKEN_INVALID)
    return token.strip(" ")

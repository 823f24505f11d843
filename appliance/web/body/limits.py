"""How much of a body a face takes, from whom, and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from quart import Request, current_app, g, request

from appliance.domain.requests.request import Signer
from appliance.web import auth
from appliance.web.body.flow_control import ArrivingBody
from appliance.web.body.memory_budget import (
    ADDRESS_PART,
    ANYONE,
    GROUP_PART,
    PARTY_PART,
    Budget,
    Held,
)
from appliance.web.server.client_address import counted, full_address

PUBLIC_JSON: Final = 16_384
"""Largest JSON body of who has not said who they are, in bytes."""
_MARK: Final = "__document__"
_View = TypeVar("_View")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a body is taken, and for how long."""

    json: int
    """Largest JSON body, in bytes."""
    document: int
    """Largest document in a multipart body, in bytes."""
    timeout_s: float
    """Longest that nothing of a body may come, in seconds."""

    @property
    def multipart(self) -> int:
        """Largest multipart body, in bytes: a document, its options, its frame."""
        return self.document + 2 * self.json


class BoundedRequest(Request):
    """A request whose body stays with its sender until it is read."""

    body_class = ArrivingBody


def brings_document(view: _View) -> _View:
    """Mark a view whose body may be as large as a document.

    Args:
        view: the view; a route decorator goes above this mark.
    """
    setattr(view, _MARK, True)
    return view


def ceiling() -> int:
    """Most that the present view may take, in bytes, whatever it asks for."""
    limits = face_limits()
    view = current_app.view_functions.get(request.endpoint or "")
    large = request.method == "POST" and getattr(view, _MARK, False)
    return limits.multipart if large else json_limit()


def json_limit() -> int:
    """Most that the present view takes where it does not say more, in bytes."""
    view = current_app.view_functions.get(request.endpoint or "")
    limit = face_limits().json
    return min(limit, PUBLIC_JSON) if auth.is_public(view) else limit


def face_limits() -> Limits:
    """What the present face takes of a body."""
    limits: Limits = current_app.extensions["rubrica.limits"]
    return limits


def hold_as(holders: Mapping[str, int]) -> None:
    """Say who asks, once that is known: the present body counts as theirs.

    Args:
        holders: as `Budget.open` has them.
    """
    g.body_holders = holders


def held() -> Held:
    """What the present request holds of its process's bytes."""
    known: Held | None = g.get("body_held")
    if known is None:
        budget: Budget = current_app.extensions["rubrica.budget"]
        known = budget.open(g.get("body_holders") or _holders())
        g.body_held = known
    return known


def _holders() -> Mapping[str, int]:
    """Who asks where the face did not say: the signer, or an address."""
    signer: Signer | None = g.get("signer")
    if signer is not None:
        return {f"person {signer.person}": PARTY_PART}
    address = counted(full_address())
    return {f"address {address}": ADDRESS_PART, ANYONE: GROUP_PART}


def release() -> None:
    """Hold nothing of the present request any more."""
    known: Held | None = g.get("body_held")
    if known is not None:
        known.release()

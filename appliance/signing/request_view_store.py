"""A signature request as it is read from SQL, with its document and integrator."""

from enum import StrEnum
from typing import Any, Final, TypeVar

from sqlalchemy import Row, Select, exists, select

from appliance.core.database.tables import (
    document,
    document_repair,
    integrator,
    signature_request,
)
from appliance.documents.document_store import REPAIR
from appliance.domain.documents import inspection_from_json, repair_of
from appliance.domain.ids import IntegratorId, PersonId, ProcessId, RequestId
from appliance.domain.keys import DigestAlgorithm
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import RequestState, SignatureLevel, TimestampPolicy

_Word = TypeVar("_Word", bound=StrEnum)
_WISHES: Final = ("level", "timestamp_policy", "digest", "tsa")
_LATER: Final = signature_request.alias("later")
_FOLLOWED: Final = exists().where(
    _LATER.c.process == signature_request.c.process,
    _LATER.c.seq > signature_request.c.seq,
    _LATER.c.state == RequestState.WAITING.value,
)
REQUEST_VIEWS: Final[Select[Any]] = (
    select(
        signature_request,
        _FOLLOWED.label("followed"),
        document.c.sha256,
        document.c.inspection,
        *REPAIR,
        integrator.c.name.label("integrator_name"),
        *(integrator.c[name].label(f"i_{name}") for name in _WISHES),
    )
    .join(document, document.c.id == signature_request.c.document)
    .outerjoin(document_repair, document_repair.c.document == document.c.id)
    .join(integrator, integrator.c.id == signature_request.c.integrator)
)
"""What `request_view` reads."""


def request_view(row: Row[Any]) -> RequestView:
    """Read a row of `REQUEST_VIEWS`."""
    return RequestView(
        id=RequestId(row.id),
        person=PersonId(row.person),
        integrator=IntegratorId(row.integrator),
        integrator_name=row.integrator_name,
        document_name=row.name,
        state=RequestState(row.state),
        reason=row.reason,
        sha256=row.sha256,
        wishes=ProfileWishes(
            _first(SignatureLevel, row.wished_level, row.i_level),
            _first(TimestampPolicy, row.timestamp_policy, row.i_timestamp_policy),
            _first(DigestAlgorithm, row.digest, row.i_digest),
            tuple(row.tsa or row.i_tsa or ()) or None,
        ),
        repair=repair_of(row.original_sha256, row.damage),
        inspection=inspection_from_json(row.inspection),
        created=row.created,
        expires=row.expires,
        params_sha256=row.params_sha256,
        activation=row.activation,
        origin=row.origin,
        process=ProcessId(row.process),
        seq=row.seq,
        followed=bool(row.followed),
    )


def _first(kind: type[_Word], *words: str | None) -> _Word | None:
    """The first word that is there: of the request, then of its integrator."""
    return next((kind(word) for word in words if word is not None), None)

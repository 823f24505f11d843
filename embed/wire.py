"""Bodies of the same-origin API: read strictly, written in one place."""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final
from urllib.parse import unquote

from quart import request

from appliance.documents.docmdp_policy import new_field, obstacle
from appliance.domain.appearance.geometry import as_seen, size_as_seen
from appliance.domain.appearance.presets import Corner
from appliance.domain.documents.inspected import (
    NAME_LENGTH,
    Damage,
    EmptyField,
    FindingKind,
)
from appliance.domain.embedding import (
    Claim,
    EmbedSessionDocument,
    EmbedSessionSigned,
    EmbedSessionView,
    InitOrder,
    PlaceChoice,
    Placement,
    make_claim,
)
from appliance.domain.errors import (
    ApplianceError,
    CheckDigitError,
    ErrorCode,
    FieldInvalidError,
    error_of_reason,
)
from appliance.domain.ids import MAX_REQUEST_ID, RequestId
from appliance.domain.people.identity import format_cuil
from appliance.domain.requests.backend_batch import BatchDocument
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.request import RequestView
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.vocab import HelpTopic, RequestState
from appliance.web import i18n, problems
from appliance.web.document_warnings import DAMAGES, FINDINGS, field_obstacle
from embed.fields import described, first_fault
from embed.protocol import INIT_FIELDS, USER_FIELDS

_CHECKED: Final = tuple(f for f in INIT_FIELDS if f.name != "autoLoadFile")
_EMAIL: Final = tuple(field for field in USER_FIELDS if field.name == "email")
_HEADER_AT_MOST: Final = 2048
_PAGE_AT_MOST: Final = 5000
_REFERENCE: Final = re.compile(r"p-[0-9]{1,10}-[0-9]{1,10}", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_BATCH_STATES: Final = {
    RequestState.WAITING: "pending",
    RequestState.PENDING: "pending",
    RequestState.IN_PROGRESS: "signing",
    RequestState.SIGNED: "signed",
    RequestState.FAILED: "failed",
    RequestState.REJECTED: "rejected",
    RequestState.CANCELLED: "cancelled",
    RequestState.EXPIRED: "expired",
}
"""How a document of a batch stands."""
_TOLD: Final = frozenset({Damage.LOOK})
"""Damages that have a finding of their own, which is shown instead.

Not `LOOK_UNKNOWN`: its finding stands for much else, and does not say what it was."""
_FARTHEST_PT: Final = 14_400_000
"""More than any page is wide: 200 in, and the largest UserUnit that is in use."""


def init_order(body: Mapping[str, object]) -> InitOrder:
    """Read the body of `init`.

    Raises:
        _InitInvalidError: `INIT_INVALID`, naming the field.

    Source: spec "Iframe init message payload"; decisions "required init fields".
    """
    init = _object(body.get("init"), "init")
    fault = first_fault(init, _CHECKED)
    if fault is not None:
        raise _InitInvalidError(fault)
    user = _object(init.get("userData"), "userData")
    try:
        claim = make_claim(
            _text(user, "email"), _some(user, "dni"), _some(user, "cuil")
        )
    except CheckDigitError as exc:
        raise _InitInvalidError(f"userData.{exc.field}", exc.sentence) from exc
    except FieldInvalidError as exc:
        raise _InitInvalidError(f"userData.{exc.field}") from exc
    content = {
        "idemKey": _some(init, "idemKey"),
        "userData": {field.name: _some(user, field.name) for field in USER_FIELDS},
    }
    return InitOrder(
        page=str(body.get("page"))[:64],
        nonce=_text(init, "nonce"),
        idem_key=_some(init, "idemKey"),
        token=_text(init, "sessionToken"),
        claim=claim,
        sha256=hashlib.sha256(canonical_json(content)).hexdigest(),
        brings_document=body.get("document") is True,
    )


def claim(body: Mapping[str, object]) -> Claim:
    """Read the body of `identify`.

    Raises:
        FieldInvalidError: `email`, `dni` or `cuil`.
    """
    if first_fault(body, _EMAIL) is not None:
        raise FieldInvalidError("email", "name@domain")
    for name in ("dni", "cuil"):
        if not isinstance(body.get(name, ""), str):
            raise FieldInvalidError(name)
    return make_claim(_text(body, "email"), _some(body, "dni"), _some(body, "cuil"))


def text(body: Mapping[str, object], name: str, most: int) -> str:
    """A text of a body.

    Raises:
        FieldInvalidError: it is missing, no text, or longer.
    """
    value = body.get(name)
    if not isinstance(value, str) or not value or len(value) > most:
        raise FieldInvalidError(name, f"1 to {most} characters")
    return value


def help_topic(body: Mapping[str, object]) -> HelpTopic:
    """What a request for help is about.

    Raises:
        FieldInvalidError: `topic`.
    """
    try:
        return HelpTopic(text(body, "topic", 16))
    except ValueError as exc:
        raise FieldInvalidError("topic", [each.value for each in HelpTopic]) from exc


def page_error(body: Mapping[str, object]) -> tuple[ErrorCode, str]:
    """The code and the reference of an error that the page found by itself.

    Raises:
        FieldInvalidError: `code` or `reference`.
    """
    code = text(body, "code", 40)
    if code not in ErrorCode.__members__:
        raise FieldInvalidError("code")
    reference = text(body, "reference", 32)
    if not _REFERENCE.fullmatch(reference):
        raise FieldInvalidError("reference")
    return ErrorCode(code), reference


def optional_text(body: Mapping[str, object], name: str, most: int) -> str:
    """A text that people may leave out, trimmed; empty without one.

    Raises:
        FieldInvalidError: it is no text, or longer.
    """
    value = body.get(name) or ""
    if not isinstance(value, str) or len(value.strip()) > most:
        raise FieldInvalidError(name, f"up to {most} characters")
    return value.strip()


def choice(body: Mapping[str, object]) -> PlaceChoice:
    """The corner or place and the page, or the field, of a body.

    Raises:
        FieldInvalidError: `corner`, `page`, `field`, `x`, `y` or `preset`.
    """
    corner, page = body.get("corner"), body.get("page")
    if corner not in list(Corner):
        raise FieldInvalidError("corner", [item.value for item in Corner])
    if not isinstance(page, int) or isinstance(page, bool):
        raise FieldInvalidError("page", "a whole number")
    if not 1 <= page <= _PAGE_AT_MOST:
        raise FieldInvalidError("page", f"1 to {_PAGE_AT_MOST}")
    name = None if body.get("field") is None else text(body, "field", NAME_LENGTH)
    x, y = _point(body, "x"), _point(body, "y")
    if (x is None) is not (y is None):
        raise FieldInvalidError("y" if y is None else "x")
    preset = body.get("preset", False)
    if not isinstance(preset, bool):
        raise FieldInvalidError("preset", ["true", "false"])
    return PlaceChoice(Corner(str(corner)), page, name, x, y, preset)


def _point(body: Mapping[str, object], name: str) -> float | None:
    """A distance on a page, in points.

    Raises:
        FieldInvalidError: no number, or of no page.
    """
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FieldInvalidError(name, "points")
    if not -_FARTHEST_PT <= value <= _FARTHEST_PT:
        raise FieldInvalidError(name, "points")
    return float(value)


def request_id(body: Mapping[str, object]) -> RequestId:
    """The request of a body.

    Raises:
        FieldInvalidError: `request`.
    """
    value = body.get("request")
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldInvalidError("request")
    if not 1 <= value <= MAX_REQUEST_ID:
        raise FieldInvalidError("request")
    return RequestId(value)


def request_number(text: str) -> RequestId:
    """The number of a request, of an address; 0 stands before all.

    Raises:
        FieldInvalidError: `request`.
    """
    if not _NUMBER.fullmatch(text) or int(text) > MAX_REQUEST_ID:
        raise FieldInvalidError("request")
    return RequestId(int(text))


def file_name() -> str:
    """The name of the document in the body, of a header in percent-encoding.

    Raises:
        ApplianceError: `FILENAME`.
    """
    header = request.headers.get("X-File-Name", "")
    if len(header) > _HEADER_AT_MOST:
        raise ApplianceError(ErrorCode.FILENAME)
    try:
        return unquote(header, errors="strict")
    except UnicodeDecodeError as exc:
        raise ApplianceError(ErrorCode.FILENAME) from exc


def snapshot(view: EmbedSessionView, lang: str) -> dict[str, object]:
    """What the page is told of its session.

    Args:
        view: the session.
        lang: of findings and reasons.
    """
    session = view.session
    return {
        "id": session.public_id,
        "integrator": session.integrator.name,
        "state": view.state.value,
        "withdrawn": view.withdrawn,
        "expiresAt": _instant(session.until),
        "secondsLeft": view.seconds_left,
        "proven": session.otp_at is not None,
        "hostDocument": session.host_document,
        "forRequest": session.is_for_something,
        "forBatch": session.batch is not None,
        "batch": _batch(view),
        "idemKey": session.idem_key,
        "document": _document(view, lang),
        "signer": _signer(view),
        "reason": view.reason and _told_as(view.reason, lang),
        "completed": None if session.batch else view.completed,
        "signed": _signed(view.signed),
    }


def _batch(view: EmbedSessionView) -> dict[str, object] | None:
    """How the session's batch stands, once its signer is proven."""
    standing = view.batch
    if standing is None:
        return None
    return {
        "id": view.session.batch,
        "total": standing.total,
        "openings": standing.openings.value,
        "seen": standing.seen,
        "unread": standing.unread,
        "pending": standing.pending,
        "signing": standing.signing,
        "signed": standing.signed,
        "failed": standing.failed,
        "rejected": standing.rejected,
    }


def batch_document(
    document: BatchDocument, signed: EmbedSessionSigned | None, lang: str
) -> dict[str, object]:
    """One document of the session's batch.

    Args:
        document: as it stands.
        signed: its signature; None where it is not signed.
        lang: of the reason.
    """
    reason = error_of_reason(document.state, document.reason)
    return {
        "id": document.request,
        "name": document.name,
        "pages": document.pages,
        "state": _BATCH_STATES[document.state],
        "seen": document.is_seen,
        "open": document.has_to_be_opened,
        "reason": reason and _told_as(reason, lang),
        "signed": _signed(signed),
        "terms": _terms(document.terms),
        "findings": [
            i18n.translate(lang, FINDINGS[each]) for each in document.findings
        ],
        "signatures": document.signatures,
    }


def refused(
    found: Mapping[RequestId, ApplianceError], lang: str
) -> list[dict[str, object]]:
    """What of a batch is not signed, and why.

    Args:
        found: by request.
        lang: of the sentences.
    """
    return [
        {"id": request, "reason": _told_as(error, lang)}
        for request, error in found.items()
    ]


def _instant(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _signed(signed: EmbedSessionSigned | None) -> dict[str, object] | None:
    """What the signer is told of the signature besides."""
    if signed is None:
        return None
    return {
        "fileName": signed.file_name,
        "at": signed.at and _instant(signed.at),
        "verifyUrl": signed.verify_url,
    }


def listed(view: RequestView) -> dict[str, object]:
    """One of the documents that wait for the signer."""
    return {
        "id": view.id,
        "name": view.document_name,
        "pages": len(view.inspection.pages),
        "integrator": view.integrator_name,
        "created": _instant(view.created),
        "expires": view.expires and _instant(view.expires),
    }


def _document(view: EmbedSessionView, lang: str) -> dict[str, object] | None:
    document = view.document
    if document is None:
        return None
    inspection = document.inspection
    return {
        "name": document.name,
        "message": document.message,
        "sha256": document.sha256,
        "size": inspection.size_bytes,
        "isCopy": document.repair is not None,
        "pages": [
            [round(width, 3), round(height, 3)]
            for width, height in map(size_as_seen, inspection.pages)
        ],
        "signatures": inspection.signatures,
        "newField": new_field(inspection).value,
        "preset": _preset(document.preset),
        "terms": _terms(document.terms),
        "fields": [_field(field, document, lang) for field in inspection.signing.empty],
        "findings": [i18n.translate(lang, each) for each in _told(document)],
    }


def _told(document: EmbedSessionDocument) -> Iterator[str]:
    """Warnings about a document; for a repaired copy, also its faults."""
    for kind in document.inspection.findings:
        yield FINDINGS[kind]
        if kind is FindingKind.REPAIRED and document.repair is not None:
            yield from (
                DAMAGES[each] for each in document.repair.damage if each not in _TOLD
            )


def _preset(preset: SignaturePreset | None) -> dict[str, object] | None:
    """A place that is proposed; None where the signer chooses one."""
    if preset is None or not (preset.fixed or preset.has_place):
        return None
    return {"fixed": preset.fixed}


def _terms(terms: SignatureTerms) -> dict[str, object]:
    """What a signature says and permits; the page finds the words."""
    return {
        "reason": terms.reason,
        "place": terms.place,
        "afterwards": terms.afterwards.value,
        "visible": terms.visible,
        "field": terms.field,
        "locks": terms.locks,
    }


def _field(
    field: EmptyField, document: EmbedSessionDocument, lang: str
) -> dict[str, object]:
    """A field that nobody has signed, and why this signer cannot, if so."""
    found = obstacle(field, document.look.restriction, document.followed)
    box = None
    if field.page is not None and field.rect is not None:
        page = document.inspection.pages[field.page - 1]
        left, top, right, bottom = as_seen(page, field.rect)
        box = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return {
        "name": field.name,
        "page": field.page,
        "box": box,
        "obstacle": found and i18n.translate(lang, field_obstacle(found)),
    }


def _signer(view: EmbedSessionView) -> dict[str, object] | None:
    signer = view.signer
    if signer is None:
        return None
    return {
        "name": signer.name,
        "cuil": format_cuil(signer.cuil),
        "issuer": signer.issuer,
        "legal": signer.legal.value,
    }


def _told_as(error: ApplianceError, lang: str) -> dict[str, object]:
    return {
        "code": error.code.value,
        "category": problems.category(error).value,
        "message": i18n.said(error, lang),
    }


def placement(placed: Placement) -> dict[str, object]:
    """Where the mark would lie.

    Args:
        placed: by the domain's rules.
    """
    return {
        "params": placed.params.to_wire(),
        "stamp": _stamp(placed),
        "terms": _terms(placed.terms),
    }


def _stamp(placed: Placement) -> dict[str, object] | None:
    layout = placed.layout
    if layout is None:
        return None
    return {
        "page": layout.page,
        "box": {
            "x": layout.x,
            "y": layout.y,
            "width": layout.width,
            "height": layout.height,
        },
        "lines": list(layout.lines),
        "png": placed.png and base64.b64encode(placed.png).decode("ascii"),
    }


class _InitInvalidError(ApplianceError):
    """A field of the initial message is missing or not as described."""

    def __init__(self, field: str, sentence: str = "") -> None:
        extras = {"field": field, **described(field, INIT_FIELDS)}
        super().__init__(
            ErrorCode.INIT_INVALID,
            params={"field": field},
            extras=extras,
            sentence=sentence,
        )


def _object(value: object, name: str) -> Mapping[str, object]:
    """A member that must be an object.

    Raises:
        _InitInvalidError: `INIT_INVALID`.
    """
    if not isinstance(value, Mapping):
        raise _InitInvalidError(name)
    return value


def _text(body: Mapping[str, object], name: str) -> str:
    """A text that was checked before."""
    return str(body[name])


def _some(body: Mapping[str, object], name: str) -> str | None:
    """A text that may be absent; empty is absent."""
    value = body.get(name)
    return str(value) if value else None

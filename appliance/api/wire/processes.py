"""The words of an integrator's requests, in and out.

Source: docs/api.md "Requests of a backend".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import Field
from quart import request

from appliance.api.wire import (
    answers,
    backend_answers,
    combinations,
    query,
    representations,
)
from appliance.api.wire.fields import (
    MOMENTS,
    Body,
    an_object,
    moment,
    objects,
    text,
    whole,
    word,
)
from appliance.api.wire.orders import (
    REFERENCE_LENGTH,
    Note,
    SentDocument,
    SignerInTurn,
    demand_named,
    named_signers,
    one_document,
    said,
    sound,
)
from appliance.api.wire.requests import REJECTION_LENGTH, request_batch_id
from appliance.domain.errors import (
    ApplianceError,
    CheckDigitError,
    ErrorCode,
    Faults,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.domain.ids import (
    MAX_REQUEST_ID,
    ProcessId,
    RequestBatchId,
    RequestId,
    is_id,
)
from appliance.domain.integrators.integrators import SessionFault
from appliance.domain.people.identity import format_cuil, parse_cuil
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.history import RequestEvent
from appliance.domain.requests.process import (
    ProcessDetails,
    ProcessFilter,
    SignerShown,
)
from appliance.domain.requests.request import RequestView, SignedVersion
from appliance.domain.requests.signer_bars import Bar
from appliance.domain.requests.told_names import (
    CHANGED_NAMES,
    EVENT_NAMES,
    told_members,
)
from appliance.domain.vocab import RequestState, SignatureLevel
from appliance.integration.requests.order import ProcessChange, ProcessOrder
from appliance.requests.intake import MAX_SIGNERS

PAGE: Final = 50
"""Processes of a page, where nothing else is asked for."""
_FILTERS: Final = (
    "estado",
    "referencia",
    "cuil",
    "desde",
    "hasta",
    "loteId",
    "limite",
    "cursor",
)
_CUIL_FORM: Final = "XX-XXXXXXXX-X"
_BARRED: Final = {
    Bar.INVITED: ErrorCode.SIGNER_PENDING_APPROVAL,
    Bar.LOCKED: ErrorCode.SIGN_LOCKED,
}
"""Codes of what keeps a signer from signing, but `CERTIFICATE_NOT_USABLE`."""
_CHANGED: Final = {
    wire: inside for inside, wire in CHANGED_NAMES.items() if inside != "expires"
}


class NewRequest(Note):
    """A document that people are to sign, and who they are."""

    document: Annotated[dict[str, Any] | None, an_object(SentDocument)] = Field(
        None, alias="documento"
    )
    signers: Annotated[list[dict[str, Any]], objects(MAX_SIGNERS, SignerInTurn)] = (
        Field(alias="firmantes")
    )
    level: Annotated[SignatureLevel | None, word(SignatureLevel)] = Field(
        None, alias="nivel"
    )


class RequestChange(Note):
    """What is to be different of a request; null takes a value away."""

    # Nothing can be said to be unique here without a look at the record.
    KEYWORDS: ClassVar[Mapping[str, Any]] = {"minProperties": 1}


class Cancellation(Body):
    """The body of a request's cancellation."""

    motivo: Annotated[str | None, text(REJECTION_LENGTH)] = None


def reminded(
    process: ProcessId, requests: Sequence[RequestView]
) -> backend_answers.Reminded:
    """Whose signers are written to.

    Args:
        process: that all belong to.
        requests: theirs.
    """
    return {
        "procesoId": process,
        "recordados": [
            {"solicitudId": view.id, "personaId": view.person} for view in requests
        ],
    }


class SessionWanted(Body):
    """What a session is to be opened for; with none, for whatever comes."""

    KEYWORDS: ClassVar[Mapping[str, Any]] = combinations.at_most_one(
        "procesoId", "solicitudId", "loteId"
    )
    process: Annotated[str | None, text(36)] = Field(None, alias="procesoId")
    request: Annotated[int | None, whole(1, MAX_REQUEST_ID)] = Field(
        None, alias="solicitudId"
    )
    batch: Annotated[str | None, text(36)] = Field(None, alias="loteId")


class FaultySession(SessionWanted):
    """The same, and what is to go wrong in it: in PREPROD alone."""

    fault: Annotated[SessionFault | None, word(SessionFault)] = Field(
        None, alias="falla"
    )


def session_fault(body: Mapping[str, object]) -> SessionFault | None:
    """Read what is to go wrong in a session, in PREPROD.

    Args:
        body: the JSON object.

    Raises:
        FieldInvalidError: no such word.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    return FaultySession.read(body).fault


@dataclass(frozen=True, slots=True)
class WholeBatch:
    """A batch that is named in place of one request."""

    id: RequestBatchId


def session_for(
    body: Mapping[str, object],
) -> ProcessId | RequestId | WholeBatch | None:
    """Read what a session is to be opened for; None: for whatever comes.

    Raises:
        FieldInvalidError: a value of another type, or more than one.
        ApplianceError: `FIELD_UNKNOWN`, `SOLICITUD_NOT_FOUND`, `LOTE_NOT_FOUND`.
    """
    read = SessionWanted.read(body)
    given = {
        "procesoId": read.process,
        "solicitudId": read.request,
        "loteId": read.batch,
    }
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise FieldInvalidError(named[-1], f"one of {', '.join(given)}")
    if read.batch is not None:
        return WholeBatch(request_batch_id(read.batch))
    if read.process is not None:
        return process_id(read.process)
    return None if read.request is None else RequestId(read.request)


def order(
    body: Mapping[str, object],
    api_key: str,
    idempotency_key: str | None,
    file: DocumentBytes | None = None,
    file_name: str | None = None,
) -> ProcessOrder:
    """Read the body of a new request.

    Args:
        body: the JSON object.
        api_key: id of the key that asks.
        idempotency_key: of the header.
        file: the document, where it came beside the object.
        file_name: as that has it; the object's goes before.

    Returns:
        With all that is wrong with how it is written, for its maker to tell: fields
        that are missing, unknown, of another type or out of their range.
    """
    faults = Faults()
    # What is null is as if it were not there: so answers have it.
    given = said(body)
    read = NewRequest.read_all(given, faults)
    note: Note = sound(Note, given, Note.LOOKED_AT) if read is None else read
    named, document = _document(given, file, faults)
    if read is not None:
        with faults.collected():
            demand_named(read)
    signers = named_signers(_listed(given), "firmantes", faults)
    return ProcessOrder(
        name=file_name if named.name is None else named.name,
        document=document,
        repairs=named.repairs,
        signers=tuple(each for each in signers if each is not None),
        note=note.note(api_key),
        expires=note.expires,
        level=None if read is None else read.level,
        idempotency_key=idempotency_key,
        faults=tuple(faults.found),
        unread=frozenset(n for n, each in enumerate(signers) if each is None),
    )


def _document(
    given: Mapping[str, Any], file: DocumentBytes | None, faults: Faults
) -> tuple[SentDocument, DocumentBytes | str | None]:
    """A request's document as it is named, and what it is; None: it is not named.

    Args:
        given: the request.
        file: the document, where it came beside the object.
        faults: where it is added what is wrong with its object.
    """
    sent = given.get("documento", {})
    if not isinstance(sent, dict):
        return SentDocument.read({}), file
    sent = said(sent)
    named = SentDocument.read_all(sent, faults, under="documento.")
    if named is None:
        named = sound(SentDocument, sent, ("documentoId", "nombre", "reparar"))
        return named, file if named.upload is None else named.upload
    document: DocumentBytes | str | None = None
    with faults.collected():
        document = one_document(named, "documento.", file)
    return named, document


def _listed(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who is to sign, whatever else is wrong; none, where it is no list of them."""
    listed = given.get("firmantes")
    if not isinstance(listed, list) or len(listed) > MAX_SIGNERS:
        return []
    return listed if all(isinstance(each, dict) for each in listed) else []


def change(body: Mapping[str, object]) -> ProcessChange:
    """Read what is to be different of a request; null takes a value away.

    Raises:
        FieldMissingError: nothing is.
        FieldInvalidError: a value of another type or out of its range.
        ApplianceError: `FIELD_UNKNOWN`.
    """
    names = (*_CHANGED, "vence")
    taken_away = {name for name, value in body.items() if value is None}
    read = RequestChange.read({n: v for n, v in body.items() if n not in taken_away})
    if unknown := taken_away - set(names):
        RequestChange.read(dict.fromkeys(unknown))
    if not body:
        raise FieldMissingError(names[0], names)
    empty: dict[str, object] = {"is_unique": False, "metadata": {}}
    return ProcessChange(
        note={
            inside: (empty.get(inside) if wire in taken_away else getattr(read, inside))
            for wire, inside in _CHANGED.items()
            if wire in body
        },
        is_expiry_given="vence" in body,
        expires=read.expires,
    )


def process_id(written: str) -> ProcessId:
    """Read the id of a request in an address.

    Args:
        written: the segment of the path.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND` for what can be no id.
    """
    if not is_id(written):
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return ProcessId(written)


def asked() -> ProcessFilter:
    """Read the query string of the list.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`, naming the parameter.
    """
    query.demand_known(_FILTERS)
    given = request.args
    cuil, reference = given.get("cuil"), given.get("referencia")
    if reference is not None:
        query.demand_length("referencia", reference, REFERENCE_LENGTH)
    limit = query.limit(given.get("limite"))
    cursor = given.get("cursor")
    return ProcessFilter(
        state=_state(given.get("estado")),
        reference=reference,
        cuil=_cuil(cuil),
        since=asked_instant("desde"),
        until=asked_instant("hasta"),
        before=None if cursor is None else query.before(cursor),
        limit=PAGE if limit is None else limit,
        batch=_batch(given.get("loteId")),
    )


def _cuil(written: str | None) -> str | None:
    if written is None:
        return None
    try:
        return parse_cuil(written)
    except CheckDigitError as wrong:
        sentence = wrong.sentence
        raise query.QueryInvalidError("cuil", _CUIL_FORM, sentence=sentence) from wrong
    except FieldInvalidError as wrong:
        raise query.QueryInvalidError("cuil", _CUIL_FORM) from wrong


def _batch(written: str | None) -> RequestBatchId | None:
    if written is None:
        return None
    if not is_id(written):
        raise query.QueryInvalidError("loteId", "as an answer gave it")
    return RequestBatchId(written)


def _state(written: str | None) -> RequestState | None:
    if written is None:
        return None
    # The first that is not signed waits for nobody.
    allowed = [each for each in RequestState if each is not RequestState.WAITING]
    for each in allowed:
        if each.value == written:
            return each
    raise query.QueryInvalidError("estado", *(each.value for each in allowed))


class _Moment(Body):
    at: Annotated[datetime, moment()]


def asked_instant(name: str) -> datetime | None:
    """Read a time of the query string; None where it was not given.

    Args:
        name: of the parameter.

    Raises:
        QueryInvalidError: `QUERY_INVALID`.
    """
    written = request.args.get(name)
    if written is None:
        return None
    try:
        return _Moment.read({"at": written}).at
    except FieldInvalidError as exc:
        raise query.QueryInvalidError(name, *MOMENTS) from exc


def element(details: ProcessDetails) -> backend_answers.RequestListed:
    """An element of the list."""
    process = details.process
    first, note = process.original, process.note
    return {
        "procesoId": process.id,
        "loteId": first.batch,
        "estado": process.state.value,
        "referencia": note.reference,
        "referenciaUnica": note.is_unique,
        "metadatos": dict(note.metadata),
        "idioma": note.language,
        "mensaje": note.message,
        "creada": representations.instant(process.created),
        "vence": representations.instant(first.expires) if first.expires else None,
        "documento": {
            "nombre": first.document_name,
            "sha256": first.sha256,
            "tamano": first.inspection.size_bytes,
            "paginas": len(first.inspection.pages),
        },
        "firmantes": [
            _signer(view, details.signers[view.id], details.versions.get(view.id, ()))
            for view in process.requests
        ],
    }


def detail(
    details: ProcessDetails, history: Sequence[RequestEvent], lang: str
) -> backend_answers.RequestDetail:
    """All of one request: with its document, and what became of it.

    Args:
        details: of it.
        history: of it, oldest first.
        lang: of what is told about the document.
    """
    told = element(details)
    first = details.process.original
    about = representations.described(first.inspection, first.repair, lang)
    return {
        **told,
        "documento": {**told["documento"], **about},
        "historia": [_event(event) for event in history],
    }


def _signer(
    view: RequestView, shown: SignerShown, versions: Sequence[SignedVersion]
) -> backend_answers.RequestSigner:
    return {
        "solicitudId": view.id,
        "orden": view.seq + 1,
        "turno": view.turn_number,
        "personaId": shown.person,
        "cuil": format_cuil(shown.cuil) if shown.cuil else None,
        "nombre": shown.name,
        "sello": _look(view),
        "estado": view.state.value,
        "motivo": view.reason or _obstacle(view, shown),
        "nivel": versions[-1].level if versions else None,
        "versiones": [representations.version(each) for each in versions],
    }


def _obstacle(view: RequestView, shown: SignerShown) -> str | None:
    """Code of what keeps a request from being signed that waits; None for nothing."""
    waits = view.state in {RequestState.PENDING, RequestState.WAITING}
    if not waits or shown.bar is None:
        return None
    return _BARRED.get(shown.bar, ErrorCode.CERTIFICATE_NOT_USABLE).value


def _look(view: RequestView) -> answers.SignatureLook | None:
    if view.preset is None:
        return None
    return cast("answers.SignatureLook", view.preset.to_wire())


def _event(event: RequestEvent) -> backend_answers.RequestEvent:
    told = {
        "evento": EVENT_NAMES[event.event],
        "cuando": representations.instant(event.at),
        "solicitudId": event.request,
        **told_members(event.detail),
    }
    return cast("backend_answers.RequestEvent", told)

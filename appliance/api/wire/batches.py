"""The words of an integrator's batches, in and out.

Source: docs/integration.md "Ask for many at once".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import Field
from quart import request

from appliance.api.wire import (
    backend_answers,
    presets,
    query,
    representations,
)
from appliance.api.wire.fields import an_object, objects, text, word
from appliance.api.wire.orders import (
    REFERENCE_LENGTH,
    NamedBody,
    Note,
    Referred,
    SentDocument,
    demand_named,
    named_signer,
    one_document,
    said,
    sound,
)
from appliance.domain.errors import (
    PART_MISSING,
    PART_OF_NONE,
    ErrorCode,
    Faults,
    FieldInvalidError,
)
from appliance.domain.ids import RequestId
from appliance.domain.people.identity import format_cuil
from appliance.domain.requests.backend_batch import (
    MOST_OF_BATCH,
    BatchDetails,
    BatchMember,
)
from appliance.domain.requests.process import ProcessNote
from appliance.domain.vocab import BatchState, Openings, SignatureLevel
from appliance.integration.requests.order import BatchDocument, BatchOrder
from appliance.record import pagination
from appliance.web import problems
from appliance.web.body import PART_LENGTH, SentFile

_OTHERWISE: Final = frozenset({"documentoId", "contenido"})
"""How a document comes that is in no part."""
PAGE: Final = 50
"""Batches of a page, or documents of one, where nothing else is asked for."""


class NewBatchDocument(SentDocument, Referred):
    """One document of a batch."""

    KEYWORDS: ClassVar[Mapping[str, Any]] = Referred.KEYWORDS
    part: Annotated[str | None, text(PART_LENGTH)] = Field(None, alias="archivo")
    stamp: Annotated[dict[str, Any] | None, an_object(presets.StampWish)] = Field(
        None, alias="sello"
    )


class NewBatch(Note):
    """Documents that one person is to sign."""

    signer: Annotated[dict[str, Any], an_object(NamedBody)] = Field(alias="firmante")
    documents: Annotated[
        list[dict[str, Any]], objects(MOST_OF_BATCH, NewBatchDocument)
    ] = Field(alias="documentos")
    level: Annotated[SignatureLevel | None, word(SignatureLevel)] = Field(
        None, alias="nivel"
    )
    openings: Annotated[Openings | None, word(Openings)] = Field(
        None, alias="aperturas"
    )


def order(
    body: Mapping[str, object],
    api_key: str,
    idempotency_key: str | None,
    files: Mapping[str, SentFile] | None = None,
) -> BatchOrder:
    """Read the body of a new batch.

    Args:
        body: the JSON object.
        api_key: id of the key that asks.
        idempotency_key: of the header.
        files: the documents that came beside the object, by their parts, in order.

    Returns:
        With all that is wrong with how it is written, for its maker to tell: fields
        that are missing, unknown or out of their range, parts that are no document's.
    """
    faults = Faults()
    given = said(body)
    read = NewBatch.read_all(given, faults)
    whole: Note = sound(Note, given, Note.LOOKED_AT) if read is None else read
    note, signer = whole.note(api_key), None
    if read is not None:
        with faults.collected():
            demand_named(read)
    if isinstance(named := given.get("firmante"), dict):
        with faults.collected():
            signer = named_signer(named, "firmante.")
    listed = _listed(given)
    parts = _Parts(files or {}, listed)
    reading = _Reading(note, parts, faults)
    documents = [
        reading.document(said(each), f"documentos[{place}].")
        for place, each in enumerate(listed)
    ]
    if listed:
        with faults.collected():
            parts.demand_taken()
    return BatchOrder(
        signer=signer,
        documents=tuple(each for each in documents if each is not None),
        note=note,
        expires=whole.expires,
        level=None if read is None else read.level,
        openings=(read and read.openings) or Openings.ALL,
        idempotency_key=idempotency_key,
        faults=tuple(faults.found),
        unread=frozenset(n for n, each in enumerate(documents) if each is None),
    )


def _listed(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The documents of a batch, whatever else is wrong with it."""
    listed = given.get("documentos")
    if not isinstance(listed, list) or len(listed) > MOST_OF_BATCH:
        return []
    return listed if all(isinstance(each, dict) for each in listed) else []


class _Parts:
    """The files of a multipart body, and which document each is.

    A document names its part. Where none of them does, the parts are those of the
    documents that came in no other way, in order.

    Args:
        files: by the names of their parts, in the order in which they came.
        documents: as their objects came.
    """

    def __init__(
        self, files: Mapping[str, SentFile], documents: Sequence[Mapping[str, Any]]
    ) -> None:
        self.files = files
        self._left = dict.fromkeys(files)
        self._are_named = any(each.get("archivo") is not None for each in documents)

    def of(self, document: Mapping[str, Any], under: str) -> str | None:
        """The part of a document; None: it came otherwise, or not at all.

        Args:
            document: its object.
            under: what stands before its names in an answer.

        Raises:
            FieldInvalidError: `FIELD_MISSING`: there is none of that name.
        """
        name = document.get("archivo")
        if not self._are_named and document.keys().isdisjoint(_OTHERWISE):
            name = next(iter(self._left), None)
        elif isinstance(name, str) and name not in self.files:
            missing = FieldInvalidError(
                f"{under}archivo",
                code=ErrorCode.FIELD_MISSING,
                sentence=PART_MISSING,
                params={"part": name},
            )
            missing.extras["part"] = name
            raise missing
        if not isinstance(name, str):
            return None
        self._left.pop(name, None)
        return name

    def demand_taken(self) -> None:
        """Refuse a part that is of no document.

        Raises:
            FieldInvalidError: `FIELD_UNKNOWN`, with the part as its field.
        """
        if self._left:
            raise FieldInvalidError(
                next(iter(self._left)),
                code=ErrorCode.FIELD_UNKNOWN,
                sentence=PART_OF_NONE,
            )


@dataclass(frozen=True, slots=True)
class _Reading:
    """What documents are read with."""

    note: ProcessNote
    """Of their batch: each is told to its signer as that is."""
    parts: _Parts
    faults: Faults

    def document(self, given: Mapping[str, Any], under: str) -> BatchDocument | None:
        """One document; None: what is wrong with it is among the faults.

        Args:
            given: its object.
            under: what stands before its names in an answer.
        """
        before, part, wished = len(self.faults.found), None, None
        read = NewBatchDocument.read_all(given, self.faults, under=under)
        with self.faults.collected():
            part = self.parts.of(given, under)
        if read is None:
            return None
        file = None if part is None else self.parts.files[part]
        with self.faults.collected():
            demand_named(read, under)
        with self.faults.collected():
            if read.stamp is not None and not self.faults.is_full:
                wished = presets.wished_preset(read.stamp, f"{under}sello.")
        if read.part is not None and file is None:
            return None
        with self.faults.collected():
            made = self._made(read, under, file)
            if len(self.faults.found) == before:
                return replace(made, wished=wished, part=part)
        return None

    def _made(
        self, read: NewBatchDocument, under: str, file: SentFile | None
    ) -> BatchDocument:
        content = None if file is None else file.content
        own = replace(
            self.note,
            reference=read.reference,
            is_unique=read.is_unique,
            metadata=read.metadata,
        )
        name = file.name if read.name is None and file is not None else read.name
        document = one_document(read, under, content, "archivo")
        return BatchDocument(name, document, own, repairs=read.repairs)


@dataclass(frozen=True, slots=True)
class BatchesQuery:
    """What of the list is asked for."""

    limit: int
    before: tuple[datetime, str] | None
    reference: str | None


def batches_query() -> BatchesQuery:
    """Read the query string of the list.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`, naming the parameter.
    """
    query.demand_known(("referencia", "limite", "cursor"))
    most, reference = (
        query.limit(request.args.get("limite")),
        request.args.get("referencia"),
    )
    if reference is not None:
        query.demand_length("referencia", reference, REFERENCE_LENGTH)
    cursor = request.args.get("cursor")
    return BatchesQuery(
        PAGE if most is None else most,
        None if cursor is None else query.before_time(cursor),
        reference,
    )


def cursor_after(last: BatchDetails) -> str:
    """The cursor of the page that begins after a batch.

    Args:
        last: of the present page.
    """
    return pagination.instant(last.batch.created, last.batch.id)


def members_query() -> tuple[int, RequestId | None]:
    """Read the query string of one batch: how many of its documents, after which.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`, naming the parameter.
    """
    query.demand_known(("limite", "cursor"))
    most, cursor = query.limit(request.args.get("limite")), request.args.get("cursor")
    after = None if cursor is None else query.before(cursor)
    return PAGE if most is None else most, after


def element(details: BatchDetails) -> backend_answers.BatchListed:
    """An element of the list.

    Args:
        details: of the batch.
    """
    batch, signer = details.batch, details.signer
    # It may have become ready between two statements that read it.
    states = details.states if batch.state is BatchState.READY else {}
    return {
        "loteId": batch.id,
        "referencia": batch.note.reference,
        "referenciaUnica": batch.note.is_unique,
        "metadatos": dict(batch.note.metadata),
        "idioma": batch.note.language,
        "mensaje": batch.note.message,
        "creado": representations.instant(batch.created),
        "firmante": {
            "personaId": signer.person,
            "cuil": format_cuil(signer.cuil) if signer.cuil else None,
            "nombre": signer.name,
        },
        "estado": batch.state.value,
        "aperturas": batch.openings.value,
        "progreso": {"documentos": details.total, "examinados": details.examined},
        "total": details.total,
        "estados": {state.value: many for state, many in states.items()},
    }


def detail(
    details: BatchDetails, members: Sequence[BatchMember], lang: str
) -> backend_answers.BatchDetailed:
    """One batch, with its documents or a page of them; why, where it was refused.

    Args:
        details: of the batch.
        members: in order.
        lang: `es` or `en`, of what is wrong.
    """
    is_ready = details.batch.state is BatchState.READY
    requests = [_member(each) for each in members if is_ready]
    told: dict[str, Any] = {**element(details), "solicitudes": requests}
    if details.batch.state is BatchState.REFUSED:
        told["errors"] = [problems.members(each, lang) for each in details.batch.faults]
    return cast("backend_answers.BatchDetailed", told)


def _member(each: BatchMember) -> backend_answers.BatchRequest:
    return {
        "procesoId": each.process,
        "solicitudId": each.request,
        "referencia": each.reference,
        "documento": {"nombre": each.name, "sha256": each.sha256},
        "estado": each.state.value,
        "motivo": each.reason or None,
    }

"""What the REST API says of a request: JSON members, in the contract's words."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast

from appliance.api.wire import answers
from appliance.domain.appearance.geometry import size_as_seen
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import EmptyField, Inspection, Repair
from appliance.domain.ids import RequestId
from appliance.domain.requests.preset import effective
from appliance.domain.requests.request import (
    Preview,
    RequestView,
    SignedDocumentView,
    SignedVersion,
)
from appliance.domain.requests.signing_batch import BatchItem, BatchOutcome
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters
from appliance.web import i18n, problems
from appliance.web.document_warnings import DAMAGES, FINDINGS

PREVIEW_DPI: Final = 96
_SIGNED: Final = "success"
_REFUSED: Final = "error"
_GOING_ON: Final = "en_proceso"


def element(view: RequestView) -> answers.SignerRequest:
    """An element of `GET /solicitudes`.

    Args:
        view: the request.

    Source: spec "Signature request"; decisions "GET /solicitudes".
    """
    return {
        "solicitudId": view.id,
        "documento": view.document_name,
        "estado": view.state.value,
        "paginas": len(view.inspection.pages),
        "tamano": view.inspection.size_bytes,
        "sha256": view.sha256,
        "creada": instant(view.created),
        "vence": instant(view.expires) if view.expires else None,
        "integrador": view.integrator_name,
        "loteId": view.batch,
    }


def detail(
    view: RequestView, lang: str, versions: Sequence[SignedVersion] = ()
) -> answers.RejectedRequest:
    """The whole of one request.

    Args:
        view: the request.
        lang: of what is told about the document.
        versions: of its signed document, oldest first.

    Source: decisions "seeing before signing", "PDFs".
    """
    return {
        **element(view),
        "motivo": view.reason or None,
        "sello": _asked_terms(view, lang),
        **described(view.inspection, view.repair, lang),
        "nivel": versions[-1].level if versions else None,
        "versiones": [version(each) for each in versions],
    }


def _asked_terms(view: RequestView, lang: str) -> answers.AskedTerms:
    """Terms of the signature where its signer's call names none."""
    params = effective(GivenParameters(), view.preset)
    terms = SignatureTerms.of(params, view.inspection)
    is_fixed = view.preset is not None and view.preset.fixed
    return {**_terms(terms, lang), "fijo": is_fixed}


def _terms(of: SignatureTerms, lang: str) -> answers.SignatureTerms:
    """Terms of a signature, with their words."""
    return {
        "motivo": of.reason,
        "lugar": of.place,
        "restriccion": of.restriction.value,
        "visible": of.visible,
        "campo": of.field,
        "texto": [
            f"{i18n.translate(lang, label)}: "
            f"{i18n.translate(lang, text) if is_own else text}"
            for label, text, is_own in of.told()
        ],
    }


def described(
    inspection: Inspection, repair: Repair | None, lang: str
) -> answers.DocumentFacts:
    """What is to be known of a document before it is signed.

    Args:
        inspection: of the document.
        repair: where it comes from, when it is a repaired copy.
        lang: of what is told about it.
    """
    return {
        "firmas": inspection.signatures,
        "certificacion": inspection.docmdp,
        "campos": [_field(field) for field in inspection.signing.empty],
        "medidas": [
            {"ancho": _points(width), "alto": _points(height)}
            for width, height in map(size_as_seen, inspection.pages)
        ],
        "avisos": [
            {
                "codigo": finding.value,
                "texto": i18n.translate(lang, FINDINGS[finding]),
            }
            for finding in inspection.findings
        ],
        "reparacion": _repair(repair, lang) if repair else None,
    }


def version(of: SignedVersion) -> answers.Version:
    """One version of a signed document.

    Args:
        of: the version.
    """
    return {
        "version": of.number,
        "nivel": of.level,
        "sha256": of.sha256,
        "tamano": of.size_bytes,
        "creada": instant(of.made),
    }


def _repair(repair: Repair, lang: str) -> answers.RepairDone:
    return {
        "sha256Original": repair.original_sha256,
        "danos": [
            {
                "codigo": damage.value,
                "texto": i18n.translate(lang, DAMAGES[damage]),
            }
            for damage in repair.damage
        ],
    }


def document_url(base_url: str, request: RequestId, clave: str | None = None) -> str:
    """Where a signed document is downloaded.

    Args:
        base_url: of this API.
        request: whose.
        clave: of a link; without one the address is for the signer's bearer.
    """
    url = f"{base_url}/solicitudes/{request}/documento"
    return url if clave is None else f"{url}?clave={clave}"


def _field(field: EmptyField) -> answers.SignatureField:
    """An empty signature field that the document has."""
    return {"nombre": field.name, "pagina": field.page, "firmable": field.usable}


def signed(view: SignedDocumentView, url: str) -> answers.SignedAnswer:
    """The answer of firmar when the document is signed.

    Args:
        view: the signed document.
        url: where it is downloaded.

    Source: spec "Signing command response"; decisions "answer".
    """
    return {
        "status": _SIGNED,
        "documentoFirmado": url,
        "solicitudId": view.request,
        "sha256": view.sha256,
        "nivel": view.level,
    }


def batch(
    outcome: BatchOutcome, urls: Mapping[RequestId, str], lang: str
) -> answers.BatchAnswer:
    """The answer of firmar/lote, and how a batch stands.

    Args:
        outcome: of every request, in their order.
        urls: where the signed ones are downloaded.
        lang: of what is told of the refused ones.

    Source: decisions "several at once".
    """
    told = Counter(_batch_state(item) for item in outcome.items)
    status: answers.BatchStatus
    if told[_GOING_ON]:
        status = _GOING_ON
    elif told[_REFUSED] and told[_SIGNED]:
        status = "parcial"
    else:
        status = _REFUSED if told[_REFUSED] else _SIGNED
    # What ended by itself is kept by nobody: its requests are.
    kept: answers.BatchKept = {"loteId": outcome.id} if told[_GOING_ON] else {}
    return {
        "status": status,
        **kept,
        "total": len(outcome.items),
        "firmadas": told[_SIGNED],
        "fallidas": told[_REFUSED],
        "enProceso": told[_GOING_ON],
        "resultados": [_batch_item(item, urls, lang) for item in outcome.items],
    }


def _batch_state(item: BatchItem) -> str:
    if item.problem is not None:
        return _REFUSED
    return _GOING_ON if item.document is None else _SIGNED


def _batch_item(
    item: BatchItem, urls: Mapping[RequestId, str], lang: str
) -> answers.SignedAnswer | answers.BatchProblem | answers.StillSigning:
    if item.document is not None:
        return signed(item.document, urls[item.request])
    if item.problem is None:
        return {"status": _GOING_ON, "solicitudId": item.request}
    told = {
        **problems.members(item.problem, lang),
        "status": _REFUSED,
        "solicitudId": item.request,
    }
    return cast("answers.BatchProblem", told)


def preview(made: Preview, lang: str) -> answers.PreviewAnswer:
    """The answer of vista-previa.

    Args:
        made: the stamp's place and the picture.
        lang: language of the words on the signature.

    Source: decisions "seeing before signing".
    """
    return {
        "pagina": made.page,
        "sello": _stamp(made.layout) if made.layout else None,
        "firma": _terms(made.terms, lang),
        "dpi": PREVIEW_DPI,
        "png": base64.b64encode(made.png).decode("ascii"),
    }


def _stamp(layout: StampLayout) -> answers.StampBox:
    return {
        "x": _points(layout.x),
        "y": _points(layout.y),
        "ancho": _points(layout.width),
        "alto": _points(layout.height),
        "texto": list(layout.lines),
        "tamanoLetra": _points(layout.font_size_pt),
    }


def _points(value: float) -> float:
    """Points to a thousandth; whole ones without a fraction."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def maybe_instant(at: datetime | None) -> str | None:
    """The same of a time that there may not be.

    Args:
        at: aware, or None.
    """
    return None if at is None else instant(at)


def instant(at: datetime) -> str:
    """ISO 8601 in UTC, to the second.

    Args:
        at: aware.
    """
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""What the REST API says of a request: JSON members, in the contract's words."""

import base64
from datetime import UTC, datetime
from typing import Final

from appliance.domain.document import Repair
from appliance.domain.request import Preview, RequestView, SignedDocumentView
from appliance.domain.signature_fields import EmptyField
from appliance.domain.stamp import StampLayout
from appliance.web import language
from appliance.web.findings import DAMAGES, FINDINGS

PREVIEW_DPI: Final = 96


def element(view: RequestView) -> dict[str, object]:
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
    }


def detail(view: RequestView, lang: str) -> dict[str, object]:
    """The whole of one request.

    Args:
        view: the request.
        lang: of what is told about the document.

    Source: decisions "seeing before signing", "PDFs".
    """
    inspection = view.inspection
    return {
        **element(view),
        "motivo": view.reason or None,
        "firmas": inspection.signatures,
        "certificacion": inspection.docmdp,
        "campos": [_field(field) for field in inspection.signing.empty],
        "medidas": [
            {"ancho": _points(page.width_pt), "alto": _points(page.height_pt)}
            for page in inspection.pages
        ],
        "avisos": [
            {
                "codigo": finding.value,
                "texto": language.translate(lang, FINDINGS[finding]),
            }
            for finding in inspection.findings
        ],
        "reparacion": _repair(view.repair, lang) if view.repair else None,
    }


def _repair(repair: Repair, lang: str) -> dict[str, object]:
    return {
        "sha256Original": repair.original_sha256,
        "danos": [
            {
                "codigo": damage.value,
                "texto": language.translate(lang, DAMAGES[damage]),
            }
            for damage in repair.damage
        ],
    }


def _field(field: EmptyField) -> dict[str, object]:
    """An empty signature field that the document has."""
    return {"nombre": field.name, "pagina": field.page, "firmable": field.usable}


def signed(view: SignedDocumentView, url: str) -> dict[str, object]:
    """The answer of firmar when the document is signed.

    Args:
        view: the signed document.
        url: where it is downloaded.

    Source: spec "Signing command response"; decisions "answer".
    """
    return {
        "status": "success",
        "documentoFirmado": url,
        "solicitudId": view.request,
        "sha256": view.sha256,
        "nivel": view.level,
    }


def preview(made: Preview, page: int) -> dict[str, object]:
    """The answer of vista-previa.

    Args:
        made: the stamp's place and the picture.
        page: the page drawn, 1-based.

    Source: decisions "seeing before signing".
    """
    return {
        "pagina": page,
        "sello": _stamp(made.layout) if made.layout else None,
        "dpi": PREVIEW_DPI,
        "png": base64.b64encode(made.png).decode("ascii"),
    }


def _stamp(layout: StampLayout) -> dict[str, object]:
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


def instant(at: datetime) -> str:
    """ISO 8601 in UTC, to the second.

    Args:
        at: aware.
    """
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

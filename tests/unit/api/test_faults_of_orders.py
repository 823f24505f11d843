"""All that is wrong with what a backend asks for is told at once."""

from typing import Any

import pytest

from appliance.api.wire import batches, processes
from appliance.api.wire.presets import wished_preset
from appliance.domain.errors import (
    FAULTS_TOLD,
    ApplianceError,
    Faults,
    SeveralFaultsError,
)

STAMP = {"page": 0, "fijo": "yes", "ancla": {"texto": "", "dx": 1.5}, "x": 1}
OF_STAMP = ["y", "page", "fijo", "ancla.texto", "ancla.dx", "ancla"]
DOCUMENT = {"contenido": "JVBERi0x"}


def told(faults: tuple[ApplianceError, ...]) -> list[object]:
    """The fields that are wrong, in order."""
    return [each.extras["field"] for each in faults]


def refused(body: dict[str, Any]) -> list[object]:
    """What is told of a request."""
    return told(processes.order(body, "key", None).faults)


def test_all_of_a_stamp_is_told() -> None:
    """Its own fields, those of its anchor, and both together."""
    with pytest.raises(SeveralFaultsError) as caught:
        wished_preset(STAMP)

    assert told(caught.value.faults) == [f"sello.{each}" for each in OF_STAMP]


def test_all_of_each_signer_is_told() -> None:
    """With their stamps; and what is wrong beside them."""
    signers = [
        {"cuil": "20-26756539-3", "nombre": "Ana", "turno": 0, "sello": {"page": 0}},
        {"cuil": "20-26756539-3", "email": "a@b.example", "sello": STAMP},
        {"cuil": "20-26756539-4"},
    ]

    assert refused({"vence": "mañana", "documento": {}, "firmantes": signers}) == [
        "vence",
        "documento.contenido",
        "firmantes[0].nombre",
        "firmantes[0].turno",
        "firmantes[0].sello.page",
        "firmantes[1]",
        *(f"firmantes[1].sello.{each}" for each in OF_STAMP),
        "firmantes[2].cuil",
    ]


def test_what_is_sound_is_read_beside_what_is_not() -> None:
    """So that what is wrong with that otherwise is told as well."""
    body = {
        "vence": "2001-01-01T00:00:00Z",
        "mensaje": 7,
        "documento": {"nombre": "a.txt", "documentoId": "one", "x": 1},
        "firmantes": [{"cuil": "20-26756539-4"}, {"cuil": "20-26756539-3"}],
    }
    order = processes.order(body, "key", None)

    assert told(order.faults) == ["mensaje", "documento.x", "firmantes[0].cuil"]
    assert order.expires is not None
    assert (order.name, order.document) == ("a.txt", "one")
    assert [(place, each.value) for place, each in order.placed()] == [
        (1, "20267565393")
    ]


def test_a_batch_tells_all_of_its_signer_and_stamps() -> None:
    """Whoever asks mends them at once."""
    body = {
        "firmante": {"cuil": "20-26756539-4", "sello": STAMP},
        "documentos": [DOCUMENT, {**DOCUMENT, "sello": {"page": 0, "color": "RED"}}],
    }
    order = batches.order(body, "key", None)

    assert told(order.faults) == [
        "firmante.cuil",
        *(f"firmante.sello.{each}" for each in OF_STAMP),
        "documentos[1].sello.color",
        "documentos[1].sello.page",
    ]


def test_no_more_are_told_than_fifty() -> None:
    """However many come in one object."""
    unknown = {f"n{number}": 1 for number in range(100)}
    signers = [{**unknown, "sello": unknown} for _ in range(10)]

    assert len(refused({"documento": DOCUMENT, "firmantes": signers})) == FAULTS_TOLD


def test_several_are_added_one_by_one() -> None:
    """What was collected within something is among what is wrong with the whole."""
    faults = Faults()
    with faults.collected():
        wished_preset(STAMP)

    assert told(tuple(faults.found)) == [f"sello.{each}" for each in OF_STAMP]

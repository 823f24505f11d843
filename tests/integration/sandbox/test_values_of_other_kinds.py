"""Values that are equal to pyHanko, and of another kind to readers."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from appliance.domain.documents.verification import Answer
from tests.support.documents.contract_pdf import contract, line, stream
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import makers
from worker.sandbox.verify.verify import verify

_CATALOG: Final = (
    b"<</Type/Catalog/Pages 2 0 R/AcroForm 20 0 R/OCProperties"
    b"<</OCGs[15 0 R]/D<</BaseState/OFF>>>>>>"
)
_PAGE: Final = (
    b"<</Type/Page/Parent 2 0 R/Rotate 90/MediaBox[0 0 300.0 400]/Contents 5 0 R"
    b"/Resources<</Font<</F1 7 0 R>>/Properties<</oc1 15 0 R>>>>"
    b"/Annots[21 0 R 22 0 R 23 0 R 24 0 R]>>"
)
_CONTENT: Final = b"/OC /oc1 BDC " + line(b"Precio: 900.000") + b" EMC"


def signed() -> SignedFile:
    """Sign a contract that hides a price in a layer and has a turned page."""
    made = contract({1: _CATALOG, 3: _PAGE, 5: stream(_CONTENT)})
    return SignedFile(makers().signed(made))


def layer_shown(f: SignedFile) -> bytes:
    """Write the state `/OFF` as a string, with validation data (8.11.4.3)."""
    layers = f.entries(f.catalog)[b"/OCProperties"].replace(b"/OFF", b"(/OFF)")
    data = {b"/DSS": b"<</Certs[%d 0 R]>>" % f.free, b"/OCProperties": layers}
    return f.append(
        {f.catalog: f.changed(f.catalog, data), f.free: f.stream(f.free, b"x")}
    )


def with_field(f: SignedFile, changes: Mapping[bytes, bytes]) -> bytes:
    """Add an invisible signature field, with other changes of its page."""
    field = b"<</FT/Sig/T(x)/Type/Annot/Subtype/Widget/Rect[0 0 0 0]/P %d 0 R/F 132>>"
    annotations = {b"/Annots": f.listed("Annots", f.free)}
    return f.append(
        {
            f.free: field % f.page,
            f.page: f.changed(f.page, annotations | dict(changes)),
            **f.form_with(f.free),
        }
    )


FORGED: Final[Mapping[str, Callable[[SignedFile], bytes]]] = {
    "layer": layer_shown,
    "rotation": lambda f: with_field(f, {b"/Rotate": b"90.0"}),
    "name": lambda f: with_field(f, {b"/Type": b"(/Page)"}),
}


@pytest.mark.parametrize("kind", FORGED)
def test_value_of_another_kind_is_a_change(kind: str) -> None:
    """Poppler shows the layer, and the page unturned."""
    f = signed()
    report = verify(FORGED[kind](f), [makers().root])

    assert report.verdict is Answer.NO
    assert report.signatures[0].changes.answer is Answer.NO


def test_real_number_may_become_an_integer() -> None:
    """PyHanko writes 300.0 as 300 when it adds a field."""
    f = signed()
    report = verify(with_field(f, {b"/MediaBox": b"[0 0 300 400]"}), [makers().root])

    assert report.verdict is Answer.YES

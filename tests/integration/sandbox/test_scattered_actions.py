"""Scripts and other actions are told wherever the trailer leads to them.

Source: docs/documents.md "Findings".
"""

from typing import Final

import pytest

from appliance.domain.documents.inspected import FindingKind
from tests.support.documents.hostile_pdfs import CONTENT, PAGE, build
from worker.sandbox.inspection import inspect

SCRIPT: Final = b"<</S/JavaScript/JS(app.alert\\(1\\))>>"
PAGES: Final = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
WIDGET: Final = b"<</Type/Annot/Subtype/Widget/F 4/FT/Tx/T(a)/Rect[0 0 9 9]/P 3 0 R%s>>"
LINK: Final = b"<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A%s>>"


def document(catalog: bytes = b"", page: bytes = b"", **more: bytes) -> bytes:
    """One page, and objects from number 5 on."""
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
            2: PAGES,
            3: PAGE[:-2] + page + b">>",
            4: CONTENT,
            **{int(name[1:]): body for name, body in more.items()},
        }
    )


SCATTERED: Final = {
    "field's parent": (
        document(
            b"/AcroForm<</Fields[5 0 R]>>",
            page=b"/Annots[5 0 R]",
            o5=WIDGET % b"/Parent 6 0 R",
            o6=b"<</AA<</K%s>>>>" % SCRIPT,
        ),
        FindingKind.JAVASCRIPT,
    ),
    "calculated field": (
        document(
            b"/AcroForm<</Fields[]/CO[5 0 R]>>", o5=b"<</FT/Tx/AA<</C%s>>>>" % SCRIPT
        ),
        FindingKind.JAVASCRIPT,
    ),
    "destination": (
        document(b"/OpenAction/a/Dests<</a 5 0 R>>", o5=SCRIPT),
        FindingKind.JAVASCRIPT,
    ),
    "escaped name": (
        document(b"/Dests<</a<</J#53(app.alert\\(1\\))>>>>"),
        FindingKind.JAVASCRIPT,
    ),
    "word of its own": (
        document(b"/Dests<</a<</S 5 0 R/F(a.exe)>>>>", o5=b"/Launch"),
        FindingKind.LAUNCH_ACTION,
    ),
    "address": (
        document(page=b"/Annots[5 0 R]", o5=LINK % b"<</S/URI/URI( java\\tScript:a)>>"),
        FindingKind.JAVASCRIPT,
    ),
    "address in UTF-16": (
        document(
            page=b"/Annots[5 0 R]",
            o5=LINK
            % b"<</S/URI/URI<FEFF%s>>>"
            % "javascript:a".encode("utf-16-be").hex().encode(),
        ),
        FindingKind.JAVASCRIPT,
    ),
    "address that opens by itself": (
        document(b"/Dests<</a<</AA<</O<</S/URI/URI(http://a/)>>>>>>>>"),
        FindingKind.EXTERNAL_LINK_ACTION,
    ),
    "thread of another file": (
        document(b"/OpenAction<</S/Thread/F(a.pdf)/D 0>>"),
        FindingKind.EXTERNAL_LINK_ACTION,
    ),
    "file of no list": (
        document(
            b"/PieceInfo<</A<</LastModified(D:2026)/Private 5 0 R>>>>",
            o5=b"<</Type/Filespec/F(a)/EF<</F 6 0 R>>>>",
            o6=CONTENT,
        ),
        FindingKind.EMBEDDED_FILES,
    ),
    "video of a page that is not shown": (
        document(
            b"/Dests<</a[5 0 R/Fit]>>",
            o5=PAGE[:-2] + b"/Annots[<</Subtype/Screen/Rect[0 0 9 9]>>]>>",
        ),
        FindingKind.RICH_MEDIA,
    ),
}


@pytest.mark.parametrize("name", SCATTERED)
def test_action_is_told_wherever_it_stands(name: str) -> None:
    """Each is where no list of the format has it, and some program finds it."""
    pdf, finding = SCATTERED[name]

    assert finding in inspect(pdf, 10).findings


@pytest.mark.parametrize(
    "pdf",
    [
        document(o5=SCRIPT),
        document(page=b"/Annots[5 0 R]", o5=LINK % b"<</S/URI/URI(http://a/)>>"),
        document(b"/Note(<</S/JavaScript/JS 1>>)"),
        document(b"/A<</Type/StructElem/S/Movie/P 5 0 R>>", o5=b"<</S/URI>>"),
        document(b"/PieceInfo<</JS<</S/JavaScripts/EFG 1>>>>"),
        document(b"/A[5 0 R 6 0 R 7 0 R]", o5=b"null", o6=b"1", o7=b"true"),
    ],
    ids=[
        "nobody leads to it",
        "a link",
        "a text",
        "a tag",
        "other names",
        "plain objects",
    ],
)
def test_nothing_else_is_told(pdf: bytes) -> None:
    """What looks like an action, and is none, is no news."""
    assert inspect(pdf, 10).findings == ()

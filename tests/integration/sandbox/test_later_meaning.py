"""Later revisions that keep the letter of a signed file, and change its meaning.

The pictures of pages reach 40 pages. Each file here has its change on a later one, or
looks the same to PDFium, so that the rules alone must find it.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from cryptography.x509 import load_der_x509_certificate

from appliance.domain.verification import Answer
from tests.support.documents.contract_pdf import contract, line, stream
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import Makers, base, makers
from worker.sandbox.verify.verify import verify

_PAGES: Final = 45
_FIRST: Final = 100
"""Number of the first page."""
_LAST: Final = _FIRST + _PAGES - 1
_OBJECT: Final = 200
"""First number of the last page's objects."""
_BOX: Final = b"/MediaBox[0 0 300 400]"


def long_file(last: bytes, objects: Mapping[int, bytes]) -> SignedFile:
    """Sign a file whose last page, beyond those that are compared, is given."""
    numbers = range(_FIRST, _FIRST + _PAGES)
    kids = b" ".join(b"%d 0 R" % each for each in numbers)
    page = b"<</Type/Page/Parent 2 0 R/Contents 6 0 R%s>>" % _BOX
    pages = dict.fromkeys(numbers, page)
    pages[_FIRST] = page[:-2] + b"/Annots[21 0 R 22 0 R 24 0 R]>>"
    pages[_LAST] = b"<</Type/Page/Parent 2 0 R%s%s>>" % (_BOX, last)
    tree = b"<</Type/Pages/Kids[%s]/Count %d/Resources<</Font<</F1 7 0 R>>>>>>"
    pdf = contract({2: tree % (kids, _PAGES), **pages, **objects})
    return SignedFile(makers().signed(pdf))


def answer(file: SignedFile, objects: Mapping[int, bytes]) -> tuple[Answer, str]:
    """Append objects and all pages but the last, and judge what follows."""
    again = {each: file.changed(each) for each in range(_FIRST, _LAST)}
    report = verify(file.append({**again, **objects}), [makers().root])
    assert report.pages_compared < report.pages_changed
    return report.verdict, report.signatures[0].changes.reason


def test_string_in_another_encoding_is_another_string() -> None:
    """A palette in UTF-16 has other colours, and is the same text to pyHanko."""
    last = b"/Contents 202 0 R/Resources<</XObject<</Im 201 0 R>>>>"
    image = b"/Type/XObject/Subtype/Image/Width 2/Height 1/BitsPerComponent 8"
    file = long_file(
        last,
        {
            _OBJECT: b"[/Indexed/DeviceRGB 1(ABCDEF)]",
            201: stream(b"\0\1", image + b"/ColorSpace 200 0 R"),
            202: stream(b"q 200 0 0 200 20 20 cm /Im Do Q"),
        },
    )
    palette = b"[/Indexed/DeviceRGB 1<FEFF%s>]" % b"".join(
        b"00%02X" % each for each in b"ABCDEF"
    )
    verdict, reason = answer(file, {_OBJECT: palette})
    assert verdict is Answer.NO
    assert "page 45" in reason


def test_name_in_another_encoding_is_not_passed() -> None:
    """A resource in Latin-1 is not found, and has the same name to pyHanko."""
    last = b"/Contents 202 0 R/Resources 200 0 R"
    names = b"<</Font<</F1 7 0 R>>/XObject<</%s 9 0 R>>>>"
    content = stream(line(b"Fin") + b" /#C3#A9 Do")
    file = long_file(last, {_OBJECT: names % b"#C3#A9", 202: content})
    assert answer(file, {_OBJECT: names % b"#E9"})[0] is Answer.UNCHECKED
    # pyHanko cannot tell these from the ones above.
    assert answer(file, {_OBJECT: names % b"#C3#A9"})[0] is Answer.UNCHECKED


@pytest.mark.parametrize("looks", [b"", b"/DA(/Foo 12 Tf 0 g)"])
@pytest.mark.parametrize("shown", [False, True])
def test_defaults_may_not_draw_a_signed_value(looks: bytes, *, shown: bool) -> None:
    """A value without an appearance is drawn by the form's added defaults."""
    appearance = b"/AP<</N 26 0 R>>" if shown else b""
    field = b"/FT/Tx/T(Precio)/V(900.000)/Rect[20 200 200 230]%s%s" % (
        looks, appearance,
    )  # fmt: skip
    file = long_file(
        b"/Contents 6 0 R/Annots[200 0 R]",
        {
            _OBJECT: b"<</Type/Annot/Subtype/Widget/F 4%s>>" % field,
            20: b"<</Fields[21 0 R 22 0 R 24 0 R 200 0 R]/DR<</Font<<>>>>>>",
            201: b"<</Type/Font/Subtype/Type1/BaseFont/ZapfDingbats>>",
        },
    )
    entries = {b"/DA": b"(/Foo 20 Tf)", b"/DR": b"<</Font<</Foo 201 0 R>>>>"}
    verdict, reason = answer(file, {file.form: file.changed(file.form, entries)})
    if shown:
        assert verdict is Answer.YES
    else:
        assert verdict is Answer.NO
        assert '"Precio"' in reason


def test_font_for_a_missing_font_may_be_added() -> None:
    """PDFBox adds Helvetica to each form without it."""
    file = long_file(
        b"/Contents 6 0 R/Annots[200 0 R]",
        {
            _OBJECT: b"<</Type/Annot/Subtype/Widget/F 4/FT/Tx/T(Precio)/V(100)"
            b"/DA(/Helv 12 Tf 0 g)/Rect[20 200 200 230]>>",
            20: b"<</Fields[21 0 R 22 0 R 24 0 R 200 0 R]/DR<</Font<<>>>>>>",
        },
    )
    entries = {b"/DR": b"<</Font<</Helv 19 0 R>>>>"}
    found = answer(file, {file.form: file.changed(file.form, entries)})
    assert found[0] is Answer.YES


def judged(objects: Mapping[int, bytes]) -> tuple[Answer, str]:
    """Append objects to a B-B file and judge what follows."""
    report = verify(SignedFile(base("B-B")).append(objects), [makers().root])
    return report.verdict, report.signatures[0].changes.reason


def test_new_field_on_a_page_has_a_place() -> None:
    """MuPDF draws an empty signature field without /Rect over the whole page."""
    file = SignedFile(base("B-B"))
    widget = b"<</Type/Annot/Subtype/Widget/FT/Sig/T(Otra)/F 4/P %d 0 R%s>>"
    found = [
        judged(
            {
                file.free: widget % (file.page, place),
                file.page: file.changed(
                    file.page, {b"/Annots": file.listed("Annots", file.free)}
                ),
                **file.form_with(file.free),
            }
        )
        for place in (b"", b"/Rect[0 0 0 0]")
    ]
    assert found[0] == (Answer.NO, 'the new field "Otra" has no place on its page')
    assert found[1][0] is Answer.YES


@pytest.mark.parametrize("flags", [b"0", b"260"])
def test_filled_field_stays_on_paper_and_screen(flags: bytes) -> None:
    """A value that is shown is printed, too."""
    file = SignedFile(base("B-B"))
    text = file.field("Nombre")
    entries = {b"/V": b"(Eva)", b"/F": flags}
    verdict, reason = judged({text: file.changed(text, entries)})
    assert verdict is Answer.NO
    assert "hidden or shown" in reason


def test_box_shows_its_value() -> None:
    """A box that is shown checked has the value of that state."""
    file = SignedFile(base("B-B"))
    box = file.field("Acepto")
    verdict, reason = judged({box: file.changed(box, {b"/AS": b"/Yes"})})
    assert verdict is Answer.NO
    assert "another state than its value" in reason


@pytest.mark.parametrize("value", [b"<FEFF0041006E0061>", b"stream"])
def test_value_in_another_form_is_the_same_value(value: bytes) -> None:
    """Another encoding, or a stream, hides no other drawing of the same value."""
    file = SignedFile(base("B-B"))
    text, free = file.field("Nombre"), file.free
    value = b"%d 0 R" % (free + 1) if value == b"stream" else value
    entries = {b"/V": value, b"/AP": b"<</N %d 0 R>>" % free}
    verdict, reason = judged(
        {
            text: file.changed(text, entries),
            free: file.look(free, line(b"Eva", 2, 4), b"[0 0 120 20]"),
            free + 1: file.stream(free + 1, b"Ana"),
        }
    )
    assert verdict is Answer.NO
    assert "shows something else with the same value" in reason


def test_filled_field_over_text_is_stated() -> None:
    """The report says that a filled field hides what the page shows."""
    field = b"<</Type/Annot/Subtype/Widget/F 4/P 3 0 R/FT/Tx/T(Nombre)%s>>"
    pdf = contract({21: field % b"/DA(/Helv 9 Tf)/Rect[0 0 300 400]"})
    file = SignedFile(makers().signed(pdf))
    text, look = file.field("Nombre"), file.free
    white = b"1 g 0 0 300 400 re f"
    found = [
        verify(
            file.append(
                {
                    text: file.changed(
                        text, {b"/V": b"(x)", b"/AP": b"<</N %d 0 R>>" % look}
                    ),
                    look: file.look(look, drawn),
                }
            ),
            [makers().root],
        )
        for drawn in (white, line(b"x", 2, 4))
    ]
    assert [each.text_covered for each in found] == [True, False]


_FRESH: Final = """
import sys
from worker.sandbox.verify.verify import verify
pdf, root = (open(path, "rb").read() for path in sys.argv[1:])
print(verify(pdf, [root]).verdict.value)
"""


def test_font_that_is_not_embedded_looks_the_same(tmp_path: Path) -> None:
    """PDFium draws the first such page of a process differently."""
    font = b"<</Type/Font/Subtype/TrueType/BaseFont/Calibri/ToUnicode 8 0 R>>"
    pdf = makers().signed(makers().signed(contract({7: font})))
    paths = [tmp_path / "signed.pdf", tmp_path / "root.der"]
    for path, data in zip(paths, (pdf, makers().root), strict=True):
        path.write_bytes(data)
    found = subprocess.run(
        [sys.executable, "-c", _FRESH, *paths],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == Answer.YES.value


def test_revocation_that_was_once_in_the_file_counts() -> None:
    """A later revision may empty the DSS, and revokes nothing back."""
    do = Makers.now()
    certificate = load_der_x509_certificate(do.signer.certificate)
    do.pki.revoked.add(certificate.serial_number)
    pdf = do.with_dss(do.signed(contract(), timestamp=True))
    file = SignedFile(pdf)
    store = int(file.qpdf.Root.DSS.objgen[0])
    entries = dict.fromkeys((b"/Certs", b"/CRLs", b"/OCSPs"), b"[]")
    emptied = file.append({store: file.changed(store, entries)})
    for each in (pdf, emptied):
        (signature,) = verify(each, [do.root]).signatures
        assert signature.revocation.answer is Answer.NO

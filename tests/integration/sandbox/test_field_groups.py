"""Fields that have fields below them, which inherit what they have.

Source: ISO 32000-2, 12.7.4.1 and 12.7.4.2.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from appliance.domain.documents.verification import Answer
from tests.support.documents.contract_pdf import contract
from tests.support.documents.filled_fields import WIDGET
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import base, makers
from worker.sandbox.verify.verify import verify

_EMPTY: Final = b"<</FT/Sig/T(x)/Parent %d 0 R/Type/Annot/Subtype/Widget/Rect[0 0 0 0]"
_EMPTY_END: Final = b"/P 3 0 R/F 132>>"


def changes(pdf: bytes) -> tuple[Answer, str]:
    """Verify a file; give the verdict, and the reason of what follows the first."""
    report = verify(pdf, [makers().root])
    return report.verdict, report.signatures[0].changes.reason


@pytest.mark.parametrize("apart", [False, True])
def test_signatures_in_a_group_are_honest(*, apart: bool) -> None:
    """PyHanko makes a group for a name with a full stop, and adds to it later."""
    one = makers().stock_signed(
        base("B-B"), "Firmas.Otra", box=(160, 300, 290, 340), apart=apart
    )
    assert changes(one) == (Answer.YES, "")
    two = makers().stock_signed(
        one, "Firmas.Segunda", box=(160, 200, 290, 240), apart=apart
    )
    assert changes(two) == (Answer.YES, "")


_Kids = Callable[[SignedFile], bytes]
_OTHER: Final[Mapping[str, _Kids]] = {
    "direct field": lambda f: b"%d 0 R<</T(y)/FT/Tx/V(900)>>" % (f.free + 1),
    "signed field": lambda f: b"%d 0 R %d 0 R" % (f.free + 1, f.field("Nombre")),
    "field twice": lambda f: b"%d 0 R %d 0 R" % (f.free + 1, f.free + 1),
    "no field": lambda f: b"%d 0 R 99 0 R" % (f.free + 1),
}


@pytest.mark.parametrize("kids", _OTHER)
def test_group_has_new_fields_alone(kids: str) -> None:
    """Another kid would be a field of that name to whoever reads the values."""
    f = SignedFile(base("B-B"))
    group = b"<</T(G)/Kids[%s]>>" % _OTHER[kids](f)
    forged = f.append(
        {
            f.free: group,
            f.free + 1: _EMPTY % f.free + _EMPTY_END,
            f.page: f.changed(f.page, {b"/Annots": f.listed("Annots", f.free + 1)}),
            **f.form_with(f.free),
        }
    )
    assert changes(forged)[0] is Answer.NO


@pytest.mark.parametrize(
    "entry", [b"/V(900)", b"/DV(900)", b"/Ff 1", b"/DA(/Helv 1 Tf)"]
)
def test_group_only_names(entry: bytes) -> None:
    """What it has, the fields below it have."""
    f = SignedFile(base("B-B"))
    forged = f.append(
        {
            f.free: b"<</T(G)/Kids[%d 0 R]%s>>" % (f.free + 1, entry),
            f.free + 1: _EMPTY % f.free + _EMPTY_END,
            f.page: f.changed(f.page, {b"/Annots": f.listed("Annots", f.free + 1)}),
            **f.form_with(f.free),
        }
    )
    assert changes(forged)[0] is Answer.NO


@pytest.mark.parametrize("fields", [b"40 0 R", b"21 0 R 40 0 R", b"40 0 R 21 0 R"])
def test_value_of_a_group_stays(fields: bytes) -> None:
    """It is a group also if the form lists the field below it first."""
    below = b"<<%s/Parent 40 0 R/T(Monto)/Rect[20 60 140 80]/AP<</N 26 0 R>>>>" % WIDGET
    pdf = contract(
        {
            20: b"<</Fields[%s 22 0 R 24 0 R]/DA(/F1 9 Tf)>>" % fields,
            21: below,
            40: b"<</T(p)/FT/Tx/V(100)/Kids[21 0 R]>>",
        }
    )
    f = SignedFile(makers().signed(pdf))
    forged = f.append({40: f.changed(40, {b"/V": b"(900)"})})
    assert changes(forged)[0] is Answer.NO


@pytest.mark.parametrize(
    ("resources", "fonts"),
    [
        (b"50 0 R", {50: b"<</Font 51 0 R>>", 51: b"<</Helv 19 0 R>>"}),
        (b"50 0 R", {50: b"<</Font<</Helv 19 0 R>>>>"}),
        (b"<</Font 51 0 R>>", {51: b"<</Helv 19 0 R>>"}),
    ],
)
def test_font_may_be_added_to_resources_of_their_own(
    resources: bytes, fonts: Mapping[int, bytes]
) -> None:
    """PDFBox, iText and Acrobat write them as objects."""
    form = b"<</Fields[21 0 R 22 0 R 24 0 R]/DA(/Helv 12 Tf 0 g)/DR %s>>" % resources
    f = SignedFile(makers().signed(contract({20: form, **fonts})))
    changed = max(fonts)
    again = f.changed(changed).replace(b"/Helv", b"/Cour %d 0 R /Helv" % f.free)
    later = f.append(
        {
            changed: again,
            f.free: b"<</Type/Font/Subtype/Type1/BaseFont/Courier>>",
        }
    )
    assert changes(later) == (Answer.YES, "")
    other = f.changed(changed).replace(b"19 0 R", b"%d 0 R" % f.free)
    forged = f.append(
        {changed: other, f.free: b"<</Type/Font/Subtype/Type1/BaseFont/Symbol>>"}
    )
    assert changes(forged)[0] is Answer.NO

"""Signed documents as attackers have altered them; each is to be found out.

    content = ATTACKS["shadow: hide"](sign)

`sign` signs a prepared document; what comes back shows something else than what
was signed, or nothing that is signed at all.

Source: V. Mladenov et al.: 1 Trillion Dollar Refund (CCS 2019: USF, ISA, SWA);
C. Mainka et al.: Shadow Attacks (NDSS 2021); S. Rohlmann et al.: Breaking the
Specification (S&P 2021: EAA, SSA).
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pyhanko.sign.fields import MDPPerm

from tests.support.documents import hostile_pdfs, shadow_pdfs


class Sign(Protocol):
    """Signs or certifies a document."""

    def __call__(
        self, pdf: bytes, *, certify: MDPPerm | None = None, field: str = "Firma1"
    ) -> bytes:
        """Give the signed document."""
        ...


Attack = Callable[[Sign], bytes]

_STARTXREF: Final = re.compile(rb"startxref\s+(\d+)")
_SIZE: Final = re.compile(rb"/Size (\d+)")
_SEEN: Final = b"<</Length 27>>stream\n0 0 1 rg 0 0 100 100 re f  \nendstream"
_JUNK_STAMP: Final = (
    b"<</Type/DocTimeStamp/Filter/Adobe.PPKLite/SubFilter/ETSI.RFC3161"
    b"/ByteRange[0 0 0 0]/Contents<00>>>"
)
_MEANT: Final = b"<</Length 27>>stream\n1 0 0 rg 0 0 200 300 re f  \nendstream"


def update(pdf: bytes, objects: Mapping[int, bytes], root: bytes = b"1 0 R") -> bytes:
    """Append a revision that is right in form.

    Args:
        pdf: the document.
        objects: new or replaced, by number.
        root: the catalog from then on.
    """
    out = bytearray(pdf if pdf.endswith(b"\n") else pdf + b"\n")
    places = {}
    for number, body in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    previous = _STARTXREF.findall(pdf)[-1]
    size = max(*map(int, _SIZE.findall(pdf)), *(n + 1 for n in objects))
    start = len(out)
    out += b"xref\n0 1\n0000000000 65535 f \n"
    for number, place in places.items():
        out += b"%d 1\n%010d 00000 n \n" % (number, place)
    out += b"trailer\n<</Size %d/Root %s/Prev %s>>\n" % (size, root, previous)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _root_of(pdf: bytes) -> bytes:
    """The catalog's reference."""
    return bytes(re.findall(rb"/Root (\d+ \d+ R)", pdf)[-1])


def _saved(pdf: bytes, objects: Mapping[int, bytes]) -> bytes:
    return update(pdf, objects, _root_of(pdf))


def incremental_saving(sign: Sign) -> bytes:
    """ISA: the page's content is replaced by a later revision."""
    return _saved(sign(hostile_pdfs.plain()), {4: _MEANT})


def incremental_page(sign: Sign) -> bytes:
    """ISA: a page is added by a later revision."""
    pages = b"<</Type/Pages/Kids[3 0 R 90 0 R]/Count 2>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    return _saved(sign(hostile_pdfs.plain()), {2: pages, 90: page})


def objects_without_table(sign: Sign) -> bytes:
    """ISA without a table: an object after the end, for readers that search."""
    return sign(hostile_pdfs.plain()) + b"4 0 obj\n%s\nendobj\n" % _MEANT


def wrapped(sign: Sign) -> bytes:
    """SWA: a second ByteRange in the gap points to a tail that was moved away."""
    pdf = sign(hostile_pdfs.plain())
    found = re.search(rb"/ByteRange \[(\d+) (\d+) (\d+) (\d+)\]", pdf)
    assert found is not None
    _, head, tail, length = map(int, found.groups())
    gap = pdf[head:tail]
    value = gap.rstrip(b">").rstrip(b"0")
    value += b"0" * (len(value) % 2 == 0)  # an even count of digits after `<`
    evil = b"\n4 0 obj\n%s\nendobj\n" % _MEANT
    moved = len(pdf) + len(evil)
    forged = value + b">/ByteRange [0 %d %d %d]" % (head, moved, length)
    return pdf[:head] + forged.ljust(len(gap)) + pdf[tail:] + evil + pdf[tail:]


def shifted(sign: Sign) -> bytes:
    """SWA: the ByteRange itself skips what was put between."""
    pdf = sign(hostile_pdfs.plain())
    found = re.search(rb"/ByteRange (\[(\d+) (\d+) (\d+) (\d+)\] *)", pdf)
    assert found is not None
    _, head, tail, length = map(int, found.groups()[1:])
    evil = b" " * 64
    ranges = b"[0 %d %d %d]" % (head, tail + len(evil), length)
    start, end = found.span(1)
    forged = pdf[:start] + ranges.ljust(end - start) + pdf[end:tail]
    return forged + evil + pdf[tail:]


def without_contents(sign: Sign) -> bytes:
    """USF: the signature has no value at all."""
    return sign(hostile_pdfs.plain()).replace(b"/Contents <", b"/Kontents <")


def without_range(sign: Sign) -> bytes:
    """USF: the signature covers nothing that it names."""
    return sign(hostile_pdfs.plain()).replace(b"/ByteRange [", b"/ByteRangf [")


def annotated_certified(sign: Sign) -> bytes:
    """EAA: a certified document gets a note that covers the page."""
    pdf = sign(
        hostile_pdfs.plain(page=b"/Annots[5 0 R]", o5=b"<<>>"), certify=MDPPerm.ANNOTATE
    )
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]" + _MEANT[2:]
    note = (
        b"<</Type/Annot/Subtype/FreeText/Rect[0 0 200 300]/F 4/Contents(x)"
        b"/DA(/F 9 Tf)/AP<</N 91 0 R>>>>"
    )
    return _saved(pdf, {5: note, 91: look})


def sneaked_signature(sign: Sign) -> bytes:
    """SSA: a certified document gets a signature field that covers the page."""
    pdf = sign(hostile_pdfs.plain(), certify=MDPPerm.FILL_FORMS)
    form = re.findall(rb"/AcroForm (\d+) 0 R", pdf)
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]" + _MEANT[2:]
    field = (
        b"<</Type/Annot/Subtype/Widget/FT/Sig/T(b)/Rect[0 0 200 300]/F 4/P 3 0 R"
        b"/V 92 0 R/AP<</N 91 0 R>>>>"
    )
    value = b"<</Type/Sig/Filter/Adobe.PPKLite/SubFilter/ETSI.CAdES.detached>>"
    page = hostile_pdfs.PAGE[:-2] + b"/Annots[90 0 R]>>"
    new = {3: page, 90: field, 91: look, 92: value}
    if form:
        new[int(form[-1])] = b"<</SigFlags 3/Fields[90 0 R]>>"
    return _saved(pdf, new)


def _field_after(sign: Sign, field: bytes, **more: bytes) -> bytes:
    """A signed document that gets a signature field `b`; object 90 is on the page."""
    pdf = sign(hostile_pdfs.plain())
    form = re.findall(rb"/AcroForm (\d+) 0 R", pdf)[-1]
    fields = re.findall(rb"/Fields \[(.*?)\]", pdf)[-1]
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]" + _MEANT[2:]
    objects = {int(name[1:]): body for name, body in more.items()}
    shown = b" ".join(b"%d 0 R" % each for each in (90, 93) if each in objects) or b""
    page = hostile_pdfs.PAGE[:-2] + b"/Annots[%s 90 0 R %s]>>" % (fields, shown)
    known = b"<</SigFlags 3/Fields[%s 90 0 R]>>" % fields
    return _saved(pdf, {3: page, 90: field, 91: look, int(form): known, **objects})


_SMALL: Final = (
    b"<</Type/Annot/Subtype/Widget/FT/Sig/T(b)/Rect[9 9 40 20]/F 4/P 3 0 R%s>>"
)
_WHOLE: Final = b"/Rect[0 0 200 300]/F 132/P 3 0 R/AP<</N 91 0 R>>"


def stamped_over(value: bytes) -> Attack:
    """What calls itself a document timestamp covers the page, and stamps nothing."""
    field = b"<</Type/Annot/Subtype/Widget/FT/Sig/T(b)/V 92 0 R" + _WHOLE + b">>"
    return lambda sign: _field_after(sign, field, o92=value)


def unseen_stamp(sign: Sign) -> bytes:
    """A document timestamp that stamps nothing, and shows nothing either."""
    return _field_after(
        sign, _SMALL.replace(b"9 9 40 20", b"0 0 0 0") % b"/V 92 0 R", o92=_JUNK_STAMP
    )


def second_mark(sign: Sign) -> bytes:
    """SSA: a field for a second signer has another mark, which covers the page."""
    field = b"<</FT/Sig/T(b)/Kids[92 0 R 93 0 R]>>"
    small = b"<</Parent 90 0 R/Type/Annot/Subtype/Widget/Rect[9 9 40 20]/F 4/P 3 0 R>>"
    whole = b"<</Parent 90 0 R/Type/Annot/Subtype/Widget" + _WHOLE + b">>"
    return _field_after(sign, field, o92=small, o93=whole)


def mark_on_pages(sign: Sign) -> bytes:
    """SSA: a second signer's mark is shown a second time."""
    pdf = sign(hostile_pdfs.plain())
    form = re.findall(rb"/AcroForm (\d+) 0 R", pdf)[-1]
    fields = re.findall(rb"/Fields \[(.*?)\]", pdf)[-1]
    page = hostile_pdfs.PAGE[:-2] + b"/Annots[%s 90 0 R 90 0 R]>>" % fields
    known = b"<</SigFlags 3/Fields[%s 90 0 R]>>" % fields
    return sign(_saved(pdf, {3: page, 90: _SMALL % b"", int(form): known}), field="b")


def mark_that_acts(sign: Sign) -> bytes:
    """SSA: a second signer's mark runs a script."""
    script = b"/AA<</E<</S/JavaScript/JS(app.alert(1))>>>>"
    return sign(_field_after(sign, _SMALL % script), field="b")


def form_drawn_anew(after: bytes) -> Attack:
    """Shadow, replace: a form is changed so that readers draw its fields anew.

    Args:
        after: entries of the form that come after the signature.
    """
    field = (
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(1000000)/Ff 1/Rect[0 0 200 30]"
        b"/F 4/P 3 0 R/DA(/F 9 Tf)/AP<</N 6 0 R>>>>"
    )
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 30]" + _SEEN[2:]
    form = b"<</Fields[5 0 R]/DA(/F 9 Tf)/Q 0/DR<</Font<</F 8 0 R>>>>>>"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"

    def attack(sign: Sign) -> bytes:
        pdf = sign(
            hostile_pdfs.plain(
                b"/AcroForm 7 0 R",
                b"/Annots[5 0 R]",
                o5=field,
                o6=look,
                o7=form,
                o8=font,
            )
        )
        fields = re.findall(rb"/Fields \[(.*?)\]", pdf)[-1]
        had = {
            b"/DA": b"/DA(/F 9 Tf)",
            b"/Q": b"/Q 0",
            b"/DR": b"/DR<</Font<</F 8 0 R>>>>",
        }
        kept = b"".join(v for k, v in had.items() if not after.startswith(k))
        now = b"<</SigFlags 3/Fields[%s]%s%s>>" % (fields, kept, after)
        other = font.replace(b"Helvetica", b"ZapfDingbats")
        return _saved(pdf, {7: now, 80: other})

    return attack


def shadow_hide(sign: Sign) -> bytes:
    """Shadow, hide: what covered the content is taken away after signing."""
    cover = b"<</Type/Annot/Subtype/Stamp/Rect[0 0 200 300]/F 4/AP<</N 6 0 R>>>>"
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]" + _SEEN[2:]
    pdf = hostile_pdfs.plain(page=b"/Annots[5 0 R]", o5=cover, o6=look)
    empty = (
        b"<</Type/XObject/Subtype/Form/BBox[0 0 200 300]/Length 0>>stream\n\nendstream"
    )
    return _saved(sign(pdf), {6: empty})


def shadow_replace(sign: Sign) -> bytes:
    """Shadow, replace: a field shows another value than it showed when signed."""
    field = (
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(100)/Rect[0 0 200 30]/F 4"
        b"/P 3 0 R/AP<</N 6 0 R>>>>"
    )
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 30]" + _SEEN[2:]
    other = b"<</Type/XObject/Subtype/Form/BBox[0 0 200 30]" + _MEANT[2:]
    pdf = hostile_pdfs.plain(
        b"/AcroForm<</Fields[5 0 R]>>", b"/Annots[5 0 R]", o5=field, o6=look
    )
    return _saved(sign(pdf), {6: other})


def shadow_font(sign: Sign) -> bytes:
    """Shadow, replace: a font is replaced, so that other figures are read."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    pdf = hostile_pdfs.plain(page=b"/Resources<</Font<</F 5 0 R>>>>", o5=font)
    return _saved(sign(pdf), {5: font.replace(b"Helvetica", b"ZapfDingbats")})


def shadow_hide_and_replace(sign: Sign) -> bytes:
    """Shadow, hide and replace: a second document inside becomes the document."""
    pdf = sign(shadow_pdfs.second_document())
    form = re.findall(rb"/AcroForm (\d+ 0 R)", pdf)
    kept = b"/AcroForm " + form[-1] if form else b""
    root = b"<</Type/Catalog/Pages 6 0 R" + kept + b">>"
    return update(pdf, {5: root}, b"5 0 R")


ATTACKS: Final[dict[str, Attack]] = {
    "ISA: content": incremental_saving,
    "ISA: page": incremental_page,
    "ISA: objects without a table": objects_without_table,
    "SWA: second range": wrapped,
    "SWA: shifted range": shifted,
    "USF: null range": lambda sign: hostile_pdfs.null_byte_range(
        sign(hostile_pdfs.plain())
    ),
    "USF: negative range": lambda sign: hostile_pdfs.negative_byte_range(
        sign(hostile_pdfs.plain())
    ),
    "USF: zeros": lambda sign: hostile_pdfs.no_contents(sign(hostile_pdfs.plain())),
    "USF: no contents": without_contents,
    "USF: no range": without_range,
    "EAA": annotated_certified,
    "SSA": sneaked_signature,
    "SSA: second mark": second_mark,
    "SSA: mark shown twice": mark_on_pages,
    "SSA: mark that acts": mark_that_acts,
    "stamp: junk over the page": stamped_over(_JUNK_STAMP),
    "stamp: junk unseen": unseen_stamp,
    "shadow: fields drawn anew": form_drawn_anew(b"/NeedAppearances true"),
    "shadow: form's default looks": form_drawn_anew(b"/DA(/F 99 Tf)"),
    "shadow: form's quadding": form_drawn_anew(b"/Q 2"),
    "shadow: form's fonts": form_drawn_anew(b"/DR<</Font<</F 80 0 R>>>>"),
    "shadow: hide": shadow_hide,
    "shadow: replace": shadow_replace,
    "shadow: font": shadow_font,
    "shadow: hide and replace": shadow_hide_and_replace,
    "blank lines": lambda sign: sign(hostile_pdfs.plain()) + b"\n" * 1_100,
}
"""What is known, by its name."""

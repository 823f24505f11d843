"""The drawing of a stamp: a form XObject with all that it needs in itself.

Words, a QR code and a logo, and in which colours.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import segno
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NumberObject,
    PdfObject,
    StreamObject,
    TextStringObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.appearance.details import LogoPicture, qr_version
from appliance.domain.appearance.font_metrics import UNITS_PER_EM
from appliance.domain.appearance.stamp import (
    LINE_HEIGHT,
    QUIET_MODULES,
    LogoFigure,
    QrFigure,
    StampLayout,
)
from appliance.domain.vocab import FontName, FontStyle
from worker.pades.appearance.archival import (
    BLANK,
    archival_part,
    blank_drawing,
    has_output_intent,
)
from worker.pades.appearance.embedded_font import EmbeddedFont
from worker.pades.appearance.fonts import StampFonts
from worker.pades.pdf.document import add_annotation, find_page
from worker.pades.pdf.revision import open_revision, refusing

_BORDER: Final = 0.045  # line width as a share of the font size: half a point at 12
_TINT: Final = 0.45  # how much of the text's colour the border has
_FAINT: Final = 0.7  # as much of it labels have: they are read on grey scans, too
_PRINT: Final = 4  # annotation flag
PDF_2_0: Final = (2, 0)
# The primaries and the white of sRGB (IEC 61966-2-1), as CalRGB has them.
_WHITE: Final = (0.9505, 1.0, 1.089)
_GAMMA: Final = (2.2, 2.2, 2.2)
_PRIMARIES: Final = (
    (0.4124, 0.2126, 0.0193),
    (0.3576, 0.7152, 0.1192),
    (0.1805, 0.0722, 0.9505),
)


def show(
    layout: StampLayout,
    fonts: StampFonts | None,
    picture: LogoPicture | None,
    revision: IncrementalPdfFileWriter,
    widget: DictionaryObject,
) -> None:
    """Give a widget the stamp's appearance.

    Args:
        layout: from `appliance.domain.appearance.stamp.place`.
        fonts: from `load_fonts`.
        picture: the logo that the layout names, if it names one.
        revision: the open file.
        widget: whose box the stamp was laid out for.

    Raises:
        TypeError: there are no fonts to draw it with.
    """
    if fonts is None:
        msg = "a stamp needs fonts"
        raise TypeError(msg)
    stamp = write_stamp(revision, layout, fonts, picture)
    widget[pdf_name("/AP")] = DictionaryObject({pdf_name("/N"): stamp})
    if layout.rotate and "/MK" not in widget:
        widget[pdf_name("/MK")] = DictionaryObject(
            {pdf_name("/R"): NumberObject(layout.rotate)}
        )


def write_stamp(
    writer: IncrementalPdfFileWriter,
    layout: StampLayout,
    fonts: StampFonts,
    picture: LogoPicture | None = None,
) -> IndirectObject:
    """Add the stamp's appearance to a file.

    Its Matrix turns it with the page, so that it reads upright for a reader when
    it is shown in `layout.rect`.

    Args:
        writer: the revision it becomes part of.
        layout: from `appliance.domain.appearance.stamp.place`.
        fonts: from `load_fonts`.
        picture: the logo that the layout names, if it names one.

    Returns:
        The reference to the form XObject.

    Raises:
        ValueError: the picture is not the one that the layout names.

    Source: ISO 32000-2, 12.5.5 (appearance streams).
    """
    named = layout.logo.sha256 if layout.logo else None
    if named is not None and (picture is None or picture.logo.sha256 != named):
        raise ValueError(named)
    used = _letters(layout, fonts)
    resources = _default_colors(writer)
    drawings = DictionaryObject()
    if picture is not None and named is not None:
        drawings[pdf_name("/Logo")] = _write_logo(writer, picture)
    blank = blank_drawing(writer)
    if blank is not None:
        # For the document timestamps that follow.
        drawings[pdf_name(BLANK)] = blank
    if drawings:
        resources[pdf_name("/XObject")] = drawings
    if used:
        resources[pdf_name("/Font")] = _dictionary(
            {
                f"/F{at}": _write_font(writer, font, letters)
                for at, (font, letters) in enumerate(used, 1)
            }
        )
    form = _dictionary(
        {
            "/Type": pdf_name("/XObject"),
            "/Subtype": pdf_name("/Form"),
            "/BBox": _numbers(0, 0, layout.width, layout.height),
            "/Matrix": _numbers(*_matrix(layout)),
            "/Resources": resources,
        }
    )
    return writer.add_object(StreamObject(form, stream_data=_content(layout, fonts)))


def draw_on_page(
    pdf: bytes,
    layout: StampLayout,
    fonts: StampFonts,
    picture: LogoPicture | None = None,
) -> bytes:
    """Show the stamp on its page, as a signature there would.

    For previews in the sandbox only; the result is never stored. The stamp is
    hung on the page as an annotation, as a signature is, so that the page's own
    content cannot move or hide it.

    Args:
        pdf: the whole file.
        layout: from `appliance.domain.appearance.stamp.place`.
        fonts: from `load_fonts`.
        picture: the logo that the layout names, if it names one.

    Returns:
        The file with one revision more.

    Raises:
        DocumentRefusedError: it cannot be read or extended, by a `PDF_*` code.
    """
    with open_revision(pdf) as revision, refusing():
        page = find_page(revision, layout.page)
        appearance = write_stamp(revision, layout, fonts, picture)
        annotation = _dictionary(
            {
                "/Type": pdf_name("/Annot"),
                "/Subtype": pdf_name("/Stamp"),
                "/Rect": _numbers(*layout.rect),
                "/F": NumberObject(_PRINT),
                "/P": page,
                "/AP": DictionaryObject({pdf_name("/N"): appearance}),
            }
        )
        add_annotation(revision, page, revision.add_object(annotation))
        return pdf + revision.write_tail(pdf).getvalue()


def _dictionary(entries: Mapping[str, PdfObject]) -> DictionaryObject:
    """A dictionary from plain names."""
    return DictionaryObject({pdf_name(k): v for k, v in entries.items()})


def _numbers(*values: float) -> ArrayObject:
    """An array of numbers, to a thousandth of a point."""
    return ArrayObject(FloatObject(round(value, 3)) for value in values)


def _matrix(layout: StampLayout) -> tuple[float, float, float, float, float, float]:
    """Turns the upright drawing against the page's clockwise rotation.

    The turned box keeps its lower left corner at the origin.
    """
    return {
        0: (1, 0, 0, 1, 0, 0),
        90: (0, 1, -1, 0, layout.height, 0),
        180: (-1, 0, 0, -1, layout.width, layout.height),
        270: (0, -1, 1, 0, 0, layout.width),
    }[layout.rotate]


def _letters(layout: StampLayout, fonts: StampFonts) -> list[tuple[EmbeddedFont, str]]:
    """The fonts of a stamp in the order of its words, and what it shows of each."""
    found: dict[tuple[FontName, FontStyle], str] = {}
    if layout.runs:
        for run in layout.runs:
            key = run.font_name, run.font_style
            found[key] = found.get(key, "") + run.text
    elif layout.lines:
        found[layout.font_name, layout.font_style] = "".join(layout.lines)
    return [(fonts[key], letters) for key, letters in found.items()]


def _content(layout: StampLayout, fonts: StampFonts) -> bytes:
    """The operators that draw border, figures and text."""
    wide = layout.frame_pt or _BORDER * layout.font_size_pt
    pen = min(wide, layout.width / 4, layout.height / 4)
    border = _tinted(layout, _TINT)
    out = [
        "q",
        f"{border[0]:.3f} {border[1]:.3f} {border[2]:.3f} RG {pen:.3f} w",
        # Wholly inside the box: readers clip what lies on its very edge.
        f"{pen:.3f} {pen:.3f}",
        f"{layout.width - 2 * pen:.3f} {layout.height - 2 * pen:.3f} re S",
    ]
    if layout.logo is not None:
        out += _logo_content(layout, layout.logo)
    if layout.qr is not None:
        out += _qr_content(layout, layout.qr)
    if layout.runs:
        out += _card_content(layout, fonts)
    elif layout.lines:
        font = fonts[layout.font_name, layout.font_style]
        out += _text_content(layout, font)
    out.append("Q")
    return "\n".join(out).encode("ascii")


def _text_content(layout: StampLayout, font: EmbeddedFont) -> list[str]:
    """The operators that draw the lines, each in the middle of its row."""
    size, leading = layout.font_size_pt, LINE_HEIGHT * layout.font_size_pt
    baseline = layout.height - layout.text_y - _above(font) * size
    red, green, blue = layout.color
    lines = (_glyphs(font, line) for line in layout.lines)
    return [
        f"BT /F1 {size:.3f} Tf {leading:.3f} TL",
        f"{red:.3f} {green:.3f} {blue:.3f} rg",
        f"{layout.text_x:.3f} {baseline:.3f} Td",
        *(f"<{line}> Tj T*" for line in lines),
        "ET",
    ]


def _card_content(layout: StampLayout, fonts: StampFonts) -> Iterator[str]:
    """The operators that draw each of a card's words in its font, size and tint."""
    used = [font for font, _ in _letters(layout, fonts)]
    yield "BT"
    for run in layout.runs:
        font = fonts[run.font_name, run.font_style]
        baseline = layout.height - run.y - _above(font) * run.size
        red, green, blue = _tinted(layout, _FAINT if run.is_faint else 1.0)
        yield f"/F{used.index(font) + 1} {run.size:.3f} Tf"
        yield f"{red:.3f} {green:.3f} {blue:.3f} rg"
        yield f"1 0 0 1 {run.x:.3f} {baseline:.3f} Tm <{_glyphs(font, run.text)}> Tj"
    yield "ET"


def _tinted(layout: StampLayout, share: float) -> tuple[float, ...]:
    """The stamp's colour as a tint, from 0, white, to 1."""
    return tuple(1 - share * (1 - part) for part in layout.color)


def _above(font: EmbeddedFont) -> float:
    """From the top of a row to its baseline, as a multiple of the font size."""
    ascent = font.metrics.ascent / UNITS_PER_EM
    descent = font.metrics.descent / UNITS_PER_EM
    return (LINE_HEIGHT - ascent - descent) / 2 + ascent


def _glyphs(font: EmbeddedFont, line: str) -> str:
    """Glyph numbers of a line, four hexadecimal digits each."""
    return "".join([f"{font.glyphs[c]:04X}" for c in line])


def _write_font(
    writer: IncrementalPdfFileWriter, font: EmbeddedFont, letters: str
) -> IndirectObject:
    """Embed a font as Type0 with Identity-H.

    Args:
        writer: the revision it becomes part of.
        font: which.
        letters: characters that are shown in it.

    Source: ISO 32000-2, 9.7.4, 9.7.6, 9.8, 9.9.
    """
    name = pdf_name(f"/{font.name}")
    descendant = _dictionary(
        {
            "/Type": pdf_name("/Font"),
            "/Subtype": pdf_name("/CIDFontType2"),
            "/BaseFont": name,
            "/CIDSystemInfo": _dictionary(
                {
                    "/Registry": TextStringObject("Adobe"),
                    "/Ordering": TextStringObject("Identity"),
                    "/Supplement": NumberObject(0),
                }
            ),
            "/FontDescriptor": writer.add_object(_descriptor(writer, font)),
            "/CIDToGIDMap": pdf_name("/Identity"),
            "/DW": NumberObject(1000),
            "/W": _widths(font, letters),
        }
    )
    to_unicode = StreamObject(
        {pdf_name("/Filter"): pdf_name("/FlateDecode")}, encoded_data=font.to_unicode
    )
    return writer.add_object(
        _dictionary(
            {
                "/Type": pdf_name("/Font"),
                "/Subtype": pdf_name("/Type0"),
                "/BaseFont": name,
                "/Encoding": pdf_name("/Identity-H"),
                "/DescendantFonts": ArrayObject([writer.add_object(descendant)]),
                "/ToUnicode": writer.add_object(to_unicode),
            }
        )
    )


def _descriptor(
    writer: IncrementalPdfFileWriter, font: EmbeddedFont
) -> DictionaryObject:
    """The font's descriptor, with its program."""
    program = StreamObject(
        {
            pdf_name("/Filter"): pdf_name("/FlateDecode"),
            pdf_name("/Length1"): NumberObject(font.program_length),
        },
        encoded_data=font.program,
    )
    descriptor = _dictionary(
        {
            "/Type": pdf_name("/FontDescriptor"),
            "/FontName": pdf_name(f"/{font.name}"),
            "/Flags": NumberObject(font.flags),
            "/FontBBox": ArrayObject(NumberObject(side) for side in font.bbox),
            "/ItalicAngle": FloatObject(font.italic_angle),
            "/Ascent": NumberObject(font.ascent),
            "/Descent": NumberObject(font.descent),
            "/CapHeight": NumberObject(font.cap_height),
            "/StemV": NumberObject(font.stem_v),
            "/FontFile2": writer.add_object(program),
        }
    )
    if writer.output_version < PDF_2_0:
        # PDF/A-1 wants it of a subset (ISO 19005-1, 6.3.5); PDF 2.0 has dropped it.
        glyphs = StreamObject(stream_data=font.cid_set)
        descriptor[pdf_name("/CIDSet")] = writer.add_object(glyphs)
    return descriptor


def _widths(font: EmbeddedFont, letters: str) -> ArrayObject:
    """Widths, in 1/1000 em, of the glyphs that are shown."""
    shown = {font.glyphs[char]: char for char in letters}
    out = ArrayObject()
    for glyph in sorted(shown):
        units = font.metrics.advances[shown[glyph]]
        out += [NumberObject(glyph), ArrayObject([_width(units)])]
    return out


@lru_cache(maxsize=4096)
def _width(units: int) -> FloatObject:
    """A width in 1/1000 em; fonts have few, and decimals are slow to make."""
    return FloatObject(round(units * 1000 / UNITS_PER_EM, 2))


def _default_colors(writer: IncrementalPdfFileWriter) -> DictionaryObject:
    """The resources that every stamp begins with.

    A file with an output intent (PDF/A, PDF/X) may be made for paper, where RGB of a
    device means nothing and costs the file its conformance: there the stamp's RGB is
    that of sRGB, and so it is in PDF/A that names no device, with grey as well. In
    other files its colours are as plain as those of the page.

    Source: ISO 32000-2, 8.6.5.6; ISO 19005-1, 6.2.3; ISO 19005-2, 6.2.4.3.
    """
    root = writer.root
    is_archival = archival_part(root) is not None
    if "/OutputIntents" not in root and not is_archival:
        return DictionaryObject()
    white = {"/WhitePoint": _floats(_WHITE)}
    primaries = {"/Gamma": _floats(_GAMMA), "/Matrix": _floats(sum(_PRIMARIES, ()))}
    spaces = {"/DefaultRGB": _calibrated("/CalRGB", {**white, **primaries})}
    if is_archival and not has_output_intent(root):
        grey = {**white, "/Gamma": FloatObject(_GAMMA[0])}
        spaces["/DefaultGray"] = _calibrated("/CalGray", grey)
    return _dictionary({"/ColorSpace": _dictionary(spaces)})


def _calibrated(family: str, entries: Mapping[str, PdfObject]) -> ArrayObject:
    """A colour space that depends on no device."""
    return ArrayObject([pdf_name(family), _dictionary(entries)])


def _floats(values: tuple[float, ...]) -> ArrayObject:
    return ArrayObject(FloatObject(value) for value in values)


def _write_logo(
    writer: IncrementalPdfFileWriter, picture: LogoPicture
) -> IndirectObject:
    """Add a logo's picture to a file.

    Source: ISO 32000-2, 8.9.5.
    """
    entries = {
        pdf_name("/Type"): pdf_name("/XObject"),
        pdf_name("/Subtype"): pdf_name("/Image"),
        pdf_name("/Width"): NumberObject(picture.logo.width_px),
        pdf_name("/Height"): NumberObject(picture.logo.height_px),
        pdf_name("/ColorSpace"): pdf_name("/DeviceRGB"),
        pdf_name("/BitsPerComponent"): NumberObject(8),
        pdf_name("/Filter"): pdf_name("/FlateDecode"),
    }
    return writer.add_object(StreamObject(entries, encoded_data=picture.deflated))


def _logo_content(layout: StampLayout, logo: LogoFigure) -> list[str]:
    """The operators that paint the logo."""
    bottom = layout.height - logo.y - logo.height
    return [
        f"q {logo.width:.3f} 0 0 {logo.height:.3f} {logo.x:.3f} {bottom:.3f} cm",
        "/Logo Do Q",
    ]


def _qr_content(layout: StampLayout, qr: QrFigure) -> list[str]:
    """The operators that paint the QR code, black on white.

    All its modules are one path: as paths of their own they would show seams.
    """
    rows = _rows(qr)
    module = qr.side / (len(rows) + 2 * QUIET_MODULES)
    top = layout.height - qr.y
    out = [f"q 1 g {qr.x:.3f} {top - qr.side:.3f} {qr.side:.3f} {qr.side:.3f} re f 0 g"]
    for at, row in enumerate(rows, QUIET_MODULES):
        y = top - (at + 1) * module
        out += [
            f"{qr.x + (start + QUIET_MODULES) * module:.3f} {y:.3f} "
            f"{length * module:.3f} {module:.3f} re"
            for start, length in _runs(row)
        ]
    return [*out, "f Q"]


def _rows(qr: QrFigure) -> list[bytes]:
    """The code's modules, row by row, 1 for dark."""
    made = segno.make_qr(
        qr.content,
        error="m",
        version=qr_version(qr.content),
        mode="byte",
        boost_error=False,
    )
    return [bytes(row) for row in made.matrix]


def _runs(row: bytes) -> Iterator[tuple[int, int]]:
    """Start and length of each run of dark modules."""
    start = None
    for at, dark in enumerate([*row, 0]):
        if dark and start is None:
            start = at
        elif not dark and start is not None:
            yield start, at - start
            start = None

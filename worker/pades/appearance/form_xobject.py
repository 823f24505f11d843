"""The drawing of a stamp: a form XObject with all that it needs in itself."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

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

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.font_metrics import UNITS_PER_EM
from appliance.domain.appearance.stamp import LINE_HEIGHT, StampLayout
from worker.pades.appearance.fonts import EmbeddedFont, StampFonts
from worker.pades.appearance.graphics import (
    default_rgb,
    logo_content,
    qr_content,
    write_logo,
)
from worker.pades.pdf.revision import (
    add_annotation,
    find_page,
    open_revision,
    refusing,
    write_increment,
)

_BORDER: Final = 0.045  # line width as a share of the font size: half a point at 12
_TINT: Final = 0.45  # how much of the text's colour the border has
_PRINT: Final = 4  # annotation flag
PDF_2_0: Final = (2, 0)


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
    font = fonts[layout.font_name, layout.font_style]
    resources = default_rgb(writer)
    if picture is not None and named is not None:
        resources[pdf_name("/XObject")] = DictionaryObject(
            {pdf_name("/Logo"): write_logo(writer, picture)}
        )
    if layout.lines:
        resources[pdf_name("/Font")] = DictionaryObject(
            {pdf_name("/F1"): _write_font(writer, font, layout)}
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
    return writer.add_object(StreamObject(form, stream_data=_content(layout, font)))


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
        return pdf + write_increment(revision, pdf)


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


def _content(layout: StampLayout, font: EmbeddedFont) -> bytes:
    """The operators that draw border and text."""
    size = layout.font_size_pt
    pen = min(_BORDER * size, layout.width / 4, layout.height / 4)
    red, green, blue = layout.color
    border = tuple(1 - _TINT * (1 - part) for part in layout.color)
    out = [
        "q",
        f"{border[0]:.3f} {border[1]:.3f} {border[2]:.3f} RG {pen:.3f} w",
        # Wholly inside the box: readers clip what lies on its very edge.
        f"{pen:.3f} {pen:.3f}",
        f"{layout.width - 2 * pen:.3f} {layout.height - 2 * pen:.3f} re S",
        *logo_content(layout),
        *qr_content(layout),
    ]
    if layout.lines:
        leading = LINE_HEIGHT * size
        baseline = _first_baseline(layout, font)
        out += [
            f"BT /F1 {size:.3f} Tf {leading:.3f} TL",
            f"{red:.3f} {green:.3f} {blue:.3f} rg",
            f"{layout.text_x:.3f} {baseline:.3f} Td",
            *(f"<{_glyphs(line, font)}> Tj T*" for line in layout.lines),
            "ET",
        ]
    out.append("Q")
    return "\n".join(out).encode("ascii")


def _first_baseline(layout: StampLayout, font: EmbeddedFont) -> float:
    """Height of the first baseline; each line stands in the middle of its row."""
    ascent = font.metrics.ascent / UNITS_PER_EM
    descent = font.metrics.descent / UNITS_PER_EM
    above = (LINE_HEIGHT - ascent - descent) / 2 + ascent
    return layout.height - layout.text_y - above * layout.font_size_pt


def _glyphs(line: str, font: EmbeddedFont) -> str:
    """A line as glyph numbers, four hexadecimal digits each."""
    return "".join(f"{font.glyphs[char]:04X}" for char in line)


def _write_font(
    writer: IncrementalPdfFileWriter, font: EmbeddedFont, layout: StampLayout
) -> IndirectObject:
    """Embed a font as Type0 with Identity-H.

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
            "/W": _widths(font, layout),
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
            "/Ascent": NumberObject(_thousandths(font.metrics.ascent)),
            "/Descent": NumberObject(-_thousandths(font.metrics.descent)),
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


def _thousandths(units: int) -> int:
    """Font units as 1/1000 em."""
    return round(units * 1000 / UNITS_PER_EM)


def _widths(font: EmbeddedFont, layout: StampLayout) -> ArrayObject:
    """Widths, in 1/1000 em, of the glyphs that this stamp shows."""
    shown = {font.glyphs[char]: char for line in layout.lines for char in line}
    out = ArrayObject()
    for glyph in sorted(shown):
        units = font.metrics.advances[shown[glyph]]
        out += [NumberObject(glyph), ArrayObject([_width(units)])]
    return out


@lru_cache(maxsize=4096)
def _width(units: int) -> FloatObject:
    """A width in 1/1000 em; fonts have few, and decimals are slow to make."""
    return FloatObject(round(units * 1000 / UNITS_PER_EM, 2))

"""Cuts the fonts of a stamp down to Latin, by fontTools.

Apart from `fonts`, whose processes need fontTools no more than once.
"""

import io
import zlib
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from appliance.domain.appearance.characters import CHARACTERS
from appliance.domain.appearance.font_metrics import UNITS_PER_EM, FontMetrics
from appliance.domain.vocab import FontName, FontStyle
from worker.pades.appearance.embedded_font import EmbeddedFont, FontsUnusableError

# Flags of a font descriptor (ISO 32000-2, table 121).
_FIXED_PITCH, _SERIF, _SYMBOLIC, _ITALIC = 1, 2, 4, 64
# Six capitals mark a subset; ours is the same for everybody.
_SUBSET_TAG = "RUBRIC"
_IN_USE = ("head", "hhea", "maxp", "hmtx", "loca", "glyf")


def cut_font(
    fonts_dir: Path, key: tuple[FontName, FontStyle], metrics: FontMetrics
) -> EmbeddedFont:
    """Read one font, and cut it down.

    Args:
        fonts_dir: folder of the Liberation 2 TrueType files.
        key: of `FONTS`.
        metrics: of the same font.

    Raises:
        FontsUnusableError: missing, unreadable, or of another version.
    """
    path = fonts_dir / metrics.file
    try:
        # Of thousands of glyphs, those that stay are unpacked; and the same file
        # comes out every time, whatever the clock says.
        file = io.BytesIO(path.read_bytes())
        font = TTFont(file, lazy=True, recalcTimestamp=False)
    except OSError as exc:
        raise FontsUnusableError(path, exc.strerror or "cannot be read") from exc
    except Exception as exc:  # fontTools raises many kinds on a broken file
        raise FontsUnusableError(path, "not a TrueType font") from exc
    options = subset.Options(
        hinting=False, layout_features=[], notdef_outline=True, legacy_kern=False
    )
    options.drop_tables += ["GPOS", "GSUB", "GDEF", "gasp", "FFTM"]
    cutter = subset.Subsetter(options)
    cutter.populate(text=CHARACTERS)
    cutter.subset(font)
    cmap, hmtx = font.getBestCmap(), font["hmtx"]
    if any(hmtx[cmap[ord(c)]][0] != metrics.advances[c] for c in CHARACTERS):
        raise FontsUnusableError(path, "its widths are not those of version 2")
    glyphs = {c: font.getGlyphID(cmap[ord(c)]) for c in CHARACTERS}
    return _embedded(key, metrics, font, glyphs)


def _embedded(
    key: tuple[FontName, FontStyle],
    metrics: FontMetrics,
    font: TTFont,
    glyphs: dict[str, int],
) -> EmbeddedFont:
    """Put together what is written into each PDF."""
    head, angle = font["head"], float(font["post"].italicAngle)
    cap_height = font["OS/2"].sCapHeight
    for table in [tag for tag in font.keys() if tag not in _IN_USE]:  # noqa: SIM118
        if table != "GlyphOrder":
            del font[table]
    file = io.BytesIO()
    font.save(file)
    family, style = key
    flags = _SYMBOLIC
    flags |= _SERIF if family is FontName.SERIF else 0
    flags |= _FIXED_PITCH if family is FontName.MONOSPACED else 0
    flags |= _ITALIC if angle else 0
    return EmbeddedFont(
        name=f"{_SUBSET_TAG}+{metrics.file.removesuffix('.ttf')}",
        metrics=metrics,
        glyphs=glyphs,
        program=zlib.compress(file.getvalue(), 9),
        program_length=len(file.getvalue()),
        to_unicode=zlib.compress(_to_unicode(glyphs), 9),
        bbox=(
            _thousandths(head.xMin),
            _thousandths(head.yMin),
            _thousandths(head.xMax),
            _thousandths(head.yMax),
        ),
        italic_angle=angle,
        ascent=_thousandths(metrics.ascent),
        descent=-_thousandths(metrics.descent),
        cap_height=_thousandths(cap_height),
        flags=flags,
        stem_v=140 if style in (FontStyle.BOLD, FontStyle.BOLD_ITALIC) else 80,
        cid_set=_all_bits(font["maxp"].numGlyphs),
    )


def _thousandths(units: int) -> int:
    """Font units as 1/1000 em."""
    return round(units * 1000 / UNITS_PER_EM)


def _all_bits(count: int) -> bytes:
    """So many bits, from the highest of the first byte on."""
    whole, rest = divmod(count, 8)
    return b"\xff" * whole + (bytes([0xFF00 >> rest & 0xFF]) if rest else b"")


def _to_unicode(glyphs: dict[str, int]) -> bytes:
    """The CMap by which a reader copies and searches the text.

    Source: ISO 32000-2, 9.10.3.
    """
    # Characters that share a glyph (space and no-break space): the first wins.
    first = {glyph: char for char, glyph in reversed(list(glyphs.items()))}
    rows = [f"<{glyph:04X}> <{ord(first[glyph]):04X}>" for glyph in sorted(first)]
    out = [
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def",
        "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
        "1 begincodespacerange <0000> <FFFF> endcodespacerange",
    ]
    for start in range(0, len(rows), 100):  # a block has at most 100 rows
        block = rows[start : start + 100]
        out += [f"{len(block)} beginbfchar", *block, "endbfchar"]
    out.append("endcmap CMapName currentdict /CMap defineresource pop end end")
    return "\n".join(out).encode("ascii")

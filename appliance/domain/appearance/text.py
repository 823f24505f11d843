"""The words of a stamp: who signs, when, and what for; pure functions.

Only characters that the stamp's fonts have come out of here.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.appearance.characters import CHARACTERS
from appliance.domain.appearance.details import StampDetails
from appliance.domain.appearance.font_metrics import FONTS, FontMetrics
from appliance.domain.people.identity import format_cuil
from appliance.domain.signing_command import SignParameters
from appliance.domain.text.civil_time import with_zone

WRAP_EM: Final = 20.0
"""Reason and place go on in another line past this width, or past the widest of the
other lines; a multiple of the font size."""

_KNOWN = frozenset(CHARACTERS)
_NAMED_AT_MOST: Final = 5
"""Characters that a refusal names."""
_SEEN: Final = "LNPS"
"""First letters of the general categories of what leaves a mark (UAX #44, 5.7.1)."""
_HIDDEN: Final = "\u2022"
_SHOWN_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class StampSigner:
    """Whom a stamp names."""

    name: str
    cuil: str
    """Eleven digits."""
    locale: str
    """`es` or another (English); the time is that of Argentina."""


def stamp_lines(
    name: str, cuil: str, at: datetime, locale: str, *, is_cuil_masked: bool = False
) -> tuple[str, ...]:
    """The stamp's words: who signs, under which number, and when.

    The words are neutral: what the law calls the signature depends on the
    certificate's chain. A character that the fonts lack becomes its compatible
    form without the unknown marks (`ǹ` → `n`, `ﬁ` → `fi`), else `?`; controls and
    runs of spaces become one space.

    Args:
        name: the signer's name.
        cuil: eleven digits.
        at: the signing time, aware.
        locale: `es` or another (English); the time is that of Argentina.
        is_cuil_masked: show three digits of the CUIL alone.

    Returns:
        Four lines, only of characters with known widths. All digits are equally
        wide, so the time does not change the stamp's size.
    """
    spanish = locale == "es"
    return (
        "Firmado por" if spanish else "Signed by",
        as_shown(name),
        f"CUIL {mask_cuil(cuil) if is_cuil_masked else format_cuil(cuil)}",
        with_zone(at, locale),
    )


def all_lines(
    params: SignParameters, signer: StampSigner, at: datetime, *, is_cuil_masked: bool
) -> tuple[str, ...]:
    """Every line of a stamp: those of `stamp_lines`, reason and place before the time.

    Args:
        params: the signing command's fields.
        signer: who signs.
        at: the signing time, aware.
        is_cuil_masked: show three digits of the CUIL alone.

    Returns:
        Lines, of which only the name's may be wider than `WRAP_EM`.
    """
    *who, when = stamp_lines(
        signer.name, signer.cuil, at, signer.locale, is_cuil_masked=is_cuil_masked
    )
    metrics = FONTS[params.font_name, params.font_style]
    width = max(WRAP_EM, *(metrics.width(line) for line in (*who, when)))
    said = [
        line
        for label, text in _said(params, signer)
        for line in wrap(f"{label}: {text}", metrics, width)
    ]
    return (*who, *said, when)


def stamp_text(
    params: SignParameters, signer: StampSigner, at: datetime, details: StampDetails
) -> tuple[str, ...]:
    """Every line of a stamp as its design arranges them.

    Args:
        params: the signing command's fields.
        signer: who signs.
        at: the signing time, aware.
        details: what it shows besides.

    Returns:
        Those of `all_lines`. Of a card unbroken, and with a QR code its page and its
        code as the last two.
    """
    is_masked = details.is_cuil_masked
    if details.is_classic:
        return all_lines(params, signer, at, is_cuil_masked=is_masked)
    *who, when = stamp_lines(
        signer.name, signer.cuil, at, signer.locale, is_cuil_masked=is_masked
    )
    said = [f"{label}: {text}" for label, text in _said(params, signer)]
    lines = (*who, *said, when)
    if details.qr is None:
        return lines
    check = "Verificá en" if signer.locale == "es" else "Verify at"
    return (*lines, f"{check} {details.address}", details.code)


def _said(params: SignParameters, signer: StampSigner) -> Iterator[tuple[str, str]]:
    """Reason and place, where they are given, with their labels."""
    spanish = signer.locale == "es"
    if params.reason is not None:
        yield "Motivo" if spanish else "Reason", as_shown(params.reason)
    if params.place is not None:
        yield "Lugar" if spanish else "Place", as_shown(params.place)


def spoken(
    params: SignParameters, signer: StampSigner, at: datetime, details: StampDetails
) -> str:
    """What stands for a signature's mark where it is not seen but read aloud.

    Args:
        params: the signing command's fields.
        signer: who signs.
        at: the signing time, aware.
        details: what the stamp shows besides.

    Returns:
        The stamp's words and the address in its QR code; of a signature without a
        stamp, who signs.
    """
    lines = all_lines(params, signer, at, is_cuil_masked=details.is_cuil_masked)
    if not params.visible:
        return " ".join(lines[:2])
    said = [" ".join(lines[:2]), *lines[2:]]
    return ", ".join(said if details.qr is None else [*said, details.qr])


def mask_cuil(cuil: str) -> str:
    """The CUIL with the last three digits of its number alone, as `••-•••••539-•`.

    Args:
        cuil: eleven digits.
    """
    shown = slice(10 - _SHOWN_DIGITS, 10)
    masked = [_HIDDEN] * len(cuil)
    masked[shown] = cuil[shown]
    return format_cuil("".join(masked))


def mask_name(name: str) -> str:
    """A name of which each word shows its first letter alone, as `A••• P•••`.

    Every word is as long, so that its length tells nothing.
    """
    return " ".join(word[0] + 3 * _HIDDEN for word in name.split())


def wrap(text: str, metrics: FontMetrics, width_em: float) -> Iterator[str]:
    """Break a text into lines, between words; a word that is too long within itself.

    Args:
        text: characters of `font_metrics.CHARACTERS`, single spaces.
        metrics: of the font.
        width_em: widest line, as a multiple of the font size; at least one
            character fits.
    """
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if metrics.width(longer) <= width_em:
            line = longer
            continue
        if line:
            yield line
        *full, line = _pieces(word, metrics, width_em)
        yield from full
    yield line


def _pieces(word: str, metrics: FontMetrics, width_em: float) -> Sequence[str]:
    """A word in pieces, each as wide as fits."""
    pieces, piece = [], ""
    for char in word:
        if piece and metrics.width(piece + char) > width_em:
            pieces.append(piece)
            piece = ""
        piece += char
    return [*pieces, piece]


def as_shown(text: str) -> str:
    """The text as a stamp shows it: in characters that the fonts have.

    Reason and place go into the signature in this form, whatever was typed: nothing
    is signed that the stamp leaves out.
    """
    shown = "".join(map(_showable_char, unicodedata.normalize("NFC", text)))
    return " ".join(shown.split())


def undrawn(text: str) -> str:
    """Name the characters of a text that no stamp shows as they are.

    Args:
        text: in NFC, of a bounded length.

    Returns:
        The first few, such as `Ω (U+03A9), U+200B`; empty where there are none.
    """
    strange = dict.fromkeys(
        char for char in text if char not in _KNOWN and not char.isspace()
    )
    named = [_named(char) for char in list(strange)[:_NAMED_AT_MOST]]
    return ", ".join([*named, "…"] if len(strange) > len(named) else named)


def _named(char: str) -> str:
    """A character by its number, and by itself where it leaves a mark."""
    number = f"U+{ord(char):04X}"
    is_seen = unicodedata.category(char)[0] in _SEEN
    return f"{char} ({number})" if is_seen else number


def _showable_char(char: str) -> str:
    """One composed character, or what stands for it."""
    if char in _KNOWN:
        return char
    if unicodedata.category(char)[0] in "ZC":
        return " "
    if unicodedata.combining(char):
        return ""
    parts = unicodedata.normalize("NFKD", char)
    known = "".join(part for part in parts if part in _KNOWN)
    return known.strip() or "?"

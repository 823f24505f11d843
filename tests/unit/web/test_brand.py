"""One look for every face: colours that can be read, from one file."""

import re
from itertools import product
from pathlib import Path

import pytest

import admin_ui.assets
import embed.assets
from appliance.api import pages
from appliance.web import brand
from embed.demo import host

ROOT = Path(__file__).resolve().parents[3]
STYLES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder in ("admin_ui", "embed", "embed/demo", "appliance/api")
    for path in (ROOT / folder / "static").glob("*.css")
}
"""The style sheets of console, frame, demo and public pages."""
TOKENS = brand.TOKENS.decode()
DEFINED = re.compile(r"(?<![\w(-])--([a-z-]+):")
USED = re.compile(r"var\(--([a-z-]+)")
LITERAL = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|rgba|hsl|hwb|lab|lch|oklab|oklch)\("
)

GROUNDS = ("ground", "paper", "sunk")
TEXT_ON = [
    *product(("ink", "quiet", "accent", "good", "bad", "warn"), GROUNDS),
    *((text, f"{text}-soft") for text in ("accent", "good", "bad", "warn")),
    *product(
        ("ink", "quiet"), [f"{n}-soft" for n in ("accent", "good", "bad", "warn")]
    ),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("on-bad", "bad-fill"),
    ("on-bad", "bad-strong"),
    ("on-ribbon", "ribbon"),
    ("page-ink", "page"),
    ("page-accent", "page"),
    ("paper", "ink"),
]
"""Text and what it stands upon."""
EDGE_ON = [
    *product(("edge", "accent", "bad"), GROUNDS),
    ("accent", "accent-soft"),
    ("bad-fill", "paper"),
]
"""Borders, rings and signs that tell something."""


def colours(scheme: str) -> dict[str, str]:
    """The colours of a scheme, as `#rrggbb`, by name."""
    light, _, dark = TOKENS.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", light))
    if scheme == "dark":
        found |= dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", dark))
    return found


def luminance(colour: str) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    """The extremes, and a grey that is known to be the first that passes."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "on"), TEXT_ON)
def test_text_can_be_read(scheme: str, text: str, on: str) -> None:
    """Every text on every background that it stands upon."""
    known = colours(scheme)
    assert contrast(known[text], known[on]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("edge", "on"), EDGE_ON)
def test_edges_can_be_seen(scheme: str, edge: str, on: str) -> None:
    """Every border of a control, and the ring of the focus."""
    known = colours(scheme)
    assert contrast(known[edge], known[on]) >= 3


def test_both_schemes_have_every_colour() -> None:
    """What the dark says, the light says too; paper of documents has no dark."""
    dark = TOKENS.partition("@media (prefers-color-scheme: dark)")[2]
    of_dark = set(DEFINED.findall(dark))
    in_light = set(colours("light"))
    assert of_dark - {"shade", "veil"} <= in_light
    apart = {name for name in in_light if name.startswith(("page", "on-bad"))}
    assert in_light - of_dark == apart


@pytest.mark.parametrize("name", STYLES)
def test_style_has_no_colours_of_its_own(name: str) -> None:
    """A colour is a token, or the one file would not be the one."""
    assert LITERAL.findall(STYLES[name]) == []


@pytest.mark.parametrize("name", STYLES)
def test_every_property_is_defined(name: str) -> None:
    """A custom property that nobody defines drops its whole declaration."""
    known = {*DEFINED.findall(TOKENS), *DEFINED.findall(STYLES[name])}
    # Set by pdf.js and by the page's own script.
    known |= {"total-scale-factor", "scale-factor", "user-unit"}
    assert set(USED.findall(STYLES[name])) <= known


def test_faces_serve_the_same_file() -> None:
    """Console, frame, public pages and demo: the same bytes."""
    assert admin_ui.assets.ASSETS["console.css"].content.startswith(brand.TOKENS)
    assert embed.assets.load_assets().files["tokens.css"].content == brand.TOKENS
    assert host._FILES["/tokens.css"] == brand.TOKENS
    assert pages._files._files["tokens.css"][0] == brand.TOKENS


def test_mark_and_icon_are_one_line() -> None:
    """The sign in a header and the one of a tab are the same stroke."""
    line = re.compile(r' d="([^"]+)"')
    assert line.findall(str(brand.MARK)) == line.findall(brand.ICON.decode())
    assert 'stroke="currentColor"' in str(brand.MARK)

"""The generated metrics and the prepared fonts against the font files."""

import shutil
from pathlib import Path

import psutil
import pytest
from fontTools.ttLib import TTFont

from appliance.domain.appearance.characters import CHARACTERS
from appliance.domain.appearance.font_metrics import DATA, FONTS, UNITS_PER_EM
from appliance.domain.vocab import FontName, FontStyle
from tests.tools.generate_font_metrics import generate
from worker.pades.appearance.embedded_font import FontsUnusableError
from worker.pades.appearance.fonts import begin_cutting, load_fonts

FONTS_DIR = Path("/usr/share/fonts/truetype/liberation2")


@pytest.mark.parametrize("key", FONTS)
def test_metrics_are_those_of_the_file(key: tuple[FontName, FontStyle]) -> None:
    """Every width, ascent and descent is the file's."""
    metrics = FONTS[key]

    with TTFont(FONTS_DIR / metrics.file) as font:
        cmap, hmtx = font.getBestCmap(), font["hmtx"]
        widths = {char: hmtx[cmap[ord(char)]][0] for char in CHARACTERS}
        assert widths == dict(metrics.advances)
        assert font["head"].unitsPerEm == UNITS_PER_EM
        assert font["hhea"].ascent == metrics.ascent
        assert font["hhea"].descent == -metrics.descent


def test_metrics_are_as_generated() -> None:
    """Nobody has edited them by hand."""
    assert DATA.read_text("utf-8") == generate(FONTS_DIR)


def test_there_is_a_font_for_each_name_and_style() -> None:
    """Three families of four styles, all different files."""
    assert set(FONTS) == {(name, style) for name in FontName for style in FontStyle}
    assert len({metrics.file for metrics in FONTS.values()}) == 12


def test_fonts_that_are_loaded_are_not_cut_again() -> None:
    """No child is left that has them, and whom nobody asks."""
    fonts = load_fonts(FONTS_DIR)
    before = psutil.Process().children()

    begin_cutting(FONTS_DIR)

    assert psutil.Process().children() == before
    assert load_fonts(FONTS_DIR) is fonts


def test_fonts_are_refused_when_a_file_is_missing(tmp_path: Path) -> None:
    """The error names the file and the package."""
    shutil.copytree(FONTS_DIR, tmp_path, dirs_exist_ok=True)
    (tmp_path / "LiberationMono-Bold.ttf").unlink()

    with pytest.raises(FontsUnusableError) as caught:
        load_fonts(tmp_path)

    assert str(tmp_path / "LiberationMono-Bold.ttf") in str(caught.value)
    assert "fonts-liberation2" in str(caught.value)


def test_fonts_are_refused_when_a_file_is_no_font(tmp_path: Path) -> None:
    """A file of another kind is named too."""
    (tmp_path / "LiberationSerif-Regular.ttf").write_bytes(b"no font")

    with pytest.raises(FontsUnusableError, match="not a TrueType font"):
        load_fonts(tmp_path)


def test_fonts_are_refused_when_widths_differ(tmp_path: Path) -> None:
    """Another font under a right name would make stamps of another size."""
    wrong = FONTS_DIR / "LiberationSans-Bold.ttf"
    shutil.copy(wrong, tmp_path / "LiberationSerif-Regular.ttf")

    with pytest.raises(FontsUnusableError, match="widths"):
        load_fonts(tmp_path)

"""Sentences end with one full stop, whatever the name that ends them."""

import re

import pytest

from appliance.domain.text.sentences import fill
from appliance.web import i18n

NAME = "Mi Tienda S.A."
FILES = ("rubrica", "frame")


@pytest.mark.parametrize(
    ("sentence", "name", "told"),
    [
        ("Tell {who}.", NAME, "Tell Mi Tienda S.A."),
        ("Tell {who}.", "Sur", "Tell Sur."),
        ("Tell {who}. Then go.", NAME, "Tell Mi Tienda S.A. Then go."),
        ("{who} has it.", NAME, "Mi Tienda S.A. has it."),
        ("Of {who}…", NAME, "Of Mi Tienda S.A.…"),
        ("Of {who}...", NAME, "Of Mi Tienda S.A...."),
        ("{who}.", "{who}.", "{who}."),
    ],
)
def test_name_that_ends_with_a_dot_brings_the_full_stop(
    sentence: str, name: str, told: str
) -> None:
    """Once, and nothing else is taken away."""
    assert fill(sentence, {"who": name}) == told


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("lang", i18n.LANGUAGES)
def test_no_sentence_of_ours_doubles_it(lang: str, file: str) -> None:
    """Every sentence of the catalogues that has places, filled as pages fill them."""
    seen = 0
    for msgid in known(file):
        told = i18n.translate(lang, msgid, file)
        places = dict.fromkeys(re.findall(r"\{(\w+)\}", told), NAME)
        if places:
            seen += 1
            assert f"{NAME}." not in told.format(**places), told
    assert seen > 10


def known(file: str) -> list[str]:
    """The msgids of a catalogue that are filled by name."""
    found = i18n.catalogue("es", file)
    listed = getattr(found, "_catalog", {})
    return [key for key in listed if isinstance(key, str) and key]

"""What a signer reads of a batch says how many they sign and how many they opened."""

from pathlib import Path
from typing import Final

import pytest

from appliance.web import i18n
from tests.unit.embedding.page_modules import copy_modules, play_scene

SCENES: Final = Path(__file__).with_name("batch_words.mjs")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's modules, where Node takes them for modules."""
    return copy_modules(tmp_path_factory.mktemp("page"))


def test_consent_counts_as_people_do(modules: Path) -> None:
    """One document is no plural, and nothing opened is no number."""
    said = play_scene(SCENES, modules, "consent")

    one, none = said["oneUnopened"], said["noneOpened"]
    assert one == "With your password you sign 1 document, which you have not opened."
    assert none.endswith("opened none.")
    assert said["one"].endswith("1 document, which you have opened.")
    assert said["someOpened"].endswith("opened 2.")
    assert i18n.translate("es", one).endswith("1 documento, que no abriste.")


def test_one_document_is_not_signed_together(modules: Path) -> None:
    """It is not called opened either, where nobody had to open it and nobody did."""
    said = play_scene(SCENES, modules, "whatToDo")

    optional = "ACME asks you to sign it. Open it if you want to read it;"
    assert said["oneOfNone"].startswith(optional)
    assert said["oneOutsideTheSample"].startswith(optional)
    assert said["oneOpened"].startswith("You have opened it.")
    assert said["oneDemanded"].startswith("Open it first;")
    assert said["more"].startswith("ACME asks you to sign them together.")

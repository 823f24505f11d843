"""Words that people read: states are said in words, and one thing has one word."""

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

import admin_ui
import appliance
import embed
from appliance.domain.errors import SENTENCES, ApplianceError, ErrorCode
from appliance.domain.errors.sentences import BATCH_STATE
from appliance.domain.text.state_words import STATE_WORDS
from appliance.domain.vocab import (
    BatchState,
    CredentialState,
    PersonState,
    RequestState,
)
from appliance.system.catalogues import LANGUAGES, translate
from appliance.web import i18n
from tests.tools.messages import CATALOGUE, translated

_LOCALE: Final = CATALOGUE.parent
_ROOTS: Final = [
    Path(str(each.__file__)).parent for each in (admin_ui, appliance, embed)
]
_STATES: Final[dict[ErrorCode, type[StrEnum]]] = {
    ErrorCode.STATE: RequestState,
    ErrorCode.PERSON_STATE: PersonState,
    ErrorCode.CREDENTIAL_STATE: CredentialState,
}
"""Errors whose sentence names a state, and whose state that is."""
_STORED: Final = re.compile(
    "|".join(
        rf"\b{state.value}\b"
        for kind in (RequestState, BatchState)
        for state in kind
        if "_" in state.value
    )
)
"""Stored values that are no words of any language."""


def _told() -> Iterator[tuple[ErrorCode, str, str | None]]:
    for code, kind in _STATES.items():
        yield from ((code, state.value, None) for state in kind)
    yield from ((ErrorCode.STATE, state.value, BATCH_STATE) for state in BatchState)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(("code", "state", "sentence"), [*_told()])
def test_error_says_the_state_in_words(
    code: ErrorCode, state: str, sentence: str | None, lang: str
) -> None:
    """In the reader's language, whichever door it came through."""
    params: dict[str, object] = {"estado": state, "state": state}
    error = ApplianceError(code, params=params, sentence=sentence)

    told = i18n.said(error, lang)

    assert f"({translate(lang, STATE_WORDS[state])})" in told
    assert not _STORED.search(told)
    if lang != "en":
        assert STATE_WORDS[state] not in told


def test_every_sentence_with_a_state_is_looked_at() -> None:
    """A new one belongs to the list above."""
    with_state = {
        code for code, text in SENTENCES.items() if re.search(r"{(estado|state)}", text)
    }
    assert with_state == _STATES.keys()


def test_errors_are_said_by_one_function() -> None:
    """Whoever fills a translated sentence by another way would show stored values."""
    found = [
        f"{path}: {line.strip()}"
        for root in _ROOTS
        for path in root.rglob("*.py")
        if "vendor" not in path.parts
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"\.told\(.*translate\(lang", line) and path.name != "i18n.py"
    ]
    assert found == []


@pytest.mark.parametrize("name", ["console", "frame", "mail", "rubrica"])
def test_no_message_has_a_stored_state(name: str) -> None:
    """Neither the msgid nor its translation; in code marks it is the API's word."""
    for msgid, text in translated(_LOCALE / f"{name}.po").items():
        for each in (msgid, *([text] if isinstance(text, str) else [])):
            assert not _STORED.search(re.sub("`[^`]*`", "", str(each))), each


def test_no_template_shows_a_state_as_it_is_stored() -> None:
    """Each goes through a table of words."""
    shown = re.compile(r">[^<]*{{ *[\w.]*state(\.value)? *}}")
    pages = [path for root in _ROOTS for path in root.rglob("templates/**/*.html")]
    assert len(pages) > 50
    for path in pages:
        text = path.read_text("utf-8")
        assert not shown.search(text), path
        assert not _STORED.search(re.sub(r"{[{%].*?[}%]}", "", text)), path


_ENROLMENT: Final = re.compile(
    r"registrar(te|se)\b|(te|se) registr(aste|ó|aron)\b|[Tt]u registro\b"
    r"|[Rr]egistro completad",
)
"""Enrolment by another word than *alta* (docs/glossary.md)."""


@pytest.mark.parametrize("name", ["console", "frame", "mail", "rubrica"])
def test_enrolment_has_one_word(name: str) -> None:
    """*Alta*; *registro* is a log or a record."""
    text = (_LOCALE / f"{name}.po").read_text("utf-8")
    assert [line for line in text.splitlines() if _ENROLMENT.search(line)] == []

"""The catalogue of errors tells of every code, in both languages."""

import pytest

from appliance.developer_docs.error_catalogue import WHO, catalogue, told_codes
from appliance.domain.errors import SENTENCES, ErrorCode
from appliance.system.catalogues import LANGUAGES, translate


def test_every_code_has_one_entry() -> None:
    """A new code says here what its cause is, and who mends it."""
    assert sorted(told_codes()) == sorted(map(str, ErrorCode))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_entry_is_whole(lang: str) -> None:
    """The sentence of the tree, cause, who and what to do: whole sentences each."""
    entries = [entry for group in catalogue(lang) for entry in group.entries]

    assert len(entries) == len(ErrorCode)
    for entry in entries:
        assert entry.sentence == str(translate(lang, SENTENCES[entry.code]))
        assert set(entry.who) <= {str(translate(lang, each)) for each in WHO.values()}
        assert entry.who
        for told in (entry.cause, entry.fix):
            assert told.endswith("."), entry.code
            assert told[0].isupper() or told.startswith("<code>"), entry.code


def test_languages_tell_different_texts() -> None:
    """None was left in the other's."""
    spanish, english = (
        {entry.code: entry for group in catalogue(lang) for entry in group.entries}
        for lang in LANGUAGES
    )
    for code in ErrorCode:
        assert spanish[code].cause != english[code].cause
        assert spanish[code].fix != english[code].fix

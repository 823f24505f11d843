"""API keys as text: their form, checksum and environment."""

import re

from appliance.domain.integrators.api_keys import new_api_key, read_api_key
from appliance.domain.integrators.integrators import NewKey
from appliance.domain.vocab import Environment

PREPROD, PROD = Environment.PREPROD, Environment.PROD


def test_new_key_has_the_decided_form() -> None:
    """Kind, id, and 256 bits of secret with a checksum."""
    key = new_api_key(PREPROD)

    assert re.fullmatch(r"rbk_test_[0-9a-z]{12}_[0-9A-Za-z]{49}", key.text)
    assert key.text.split("_")[2] == key.id
    assert new_api_key(PROD).text.startswith("rbk_live_")


def test_new_keys_differ() -> None:
    """No two keys share their id or their secret."""
    keys = [new_api_key(PREPROD) for _ in range(50)]

    assert len({key.id for key in keys}) == 50
    assert len({key.text for key in keys}) == 50


def test_key_is_read_back() -> None:
    """What was made is read, with its id."""
    key = new_api_key(PROD)

    assert read_api_key(key.text, PROD) == key


def test_key_of_the_other_environment_is_none() -> None:
    """A test key is no key in PROD, nor a live one in PREPROD."""
    assert read_api_key(new_api_key(PREPROD).text, PROD) is None
    assert read_api_key(new_api_key(PROD).text, PREPROD) is None


def test_changed_key_is_none_by_its_checksum() -> None:
    """Any one letter changed, in any place, makes it no key."""
    text = new_api_key(PREPROD).text

    for place in range(len(text)):
        other = "a" if text[place] != "a" else "b"
        assert read_api_key(text[:place] + other + text[place + 1 :], PREPROD) is None


def test_text_that_is_no_key_is_none() -> None:
    """Other texts are refused by their form."""
    for text in ("", "rbk_", "rbk_test__", "á" * 70, new_api_key(PREPROD).text + "\n"):
        assert read_api_key(text, PREPROD) is None


def test_key_never_shows_in_repr() -> None:
    """Neither the text nor a new key's secret is in a repr."""
    key = new_api_key(PREPROD)

    assert key.text not in repr(key)
    assert key.text not in repr(NewKey(None, key.text))  # type: ignore[arg-type]  # about the secret
    assert key.hint == f"rbk_test_…{key.text[-4:]}"

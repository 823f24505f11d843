"""The console's words: every sentence in Spanish, every value with a word."""

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import pytest

from admin_ui import assets, audit_words, times, words
from appliance.domain.documents.inspected import FindingKind
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import new_id
from appliance.domain.integrators.integrators import FlagReason
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.domain.signing.activation import SIGNING_PASSWORD
from appliance.domain.text.civil_time import day_and_time, with_zone
from appliance.domain.vocab import (
    ActivationState,
    CredentialState,
    EventKind,
    PersonState,
    RequestState,
    RevocationReason,
    TaskKind,
    VouchedBy,
)
from appliance.identity.login import FACTORS
from appliance.web import brand
from tests.tools import messages

_PLACES = re.compile(r"%\((\w+)\)s")
NOON = datetime(2026, 5, 25, 15, 0, 0, tzinfo=UTC)


def _texts(message: messages.Message) -> tuple[str, ...]:
    return (message,) if isinstance(message, str) else message


def test_every_sentence_of_the_console_has_spanish() -> None:
    """What sources say is in a catalogue, with the same places; nothing is idle."""
    console = messages.translated(messages.CATALOGUE)
    known = {**console, **messages.translated(messages.SHARED)}
    said = set(messages.said())

    assert len(said) > 300
    assert said - known.keys() == set()
    assert console.keys() - said == set()
    for message in said:
        spanish = _texts(known[message])
        assert all(spanish), message
        assert len(spanish) == len(_texts(message)), message
        wanted = {tuple(sorted(_PLACES.findall(text))) for text in _texts(message)}
        given = {tuple(sorted(_PLACES.findall(text))) for text in spanish}
        assert wanted == given, message


def test_spanish_is_argentine() -> None:
    """Sentences address the reader as vos."""
    spanish = " ".join(
        text.lower()
        for message in messages.translated(messages.CATALOGUE).values()
        for text in _texts(message)
    )

    for peninsular in ("tú ", "usted", "puedes", "tienes", "elige una", "vosotros"):
        assert peninsular not in spanish
    for argentine in ("elegí", "copiá", "podés", "revisá"):
        assert argentine in spanish


@pytest.mark.parametrize(
    ("vocabulary", "table"),
    [
        (EventKind, audit_words.EVENTS),
        (RequestState, words.REQUEST_STATES),
        (PersonState, words.PERSON_STATES),
        (CredentialState, words.CREDENTIAL_STATES),
        (VouchedBy, words.VOUCHED),
        (FlagReason, words.FLAGS),
    ],
)
def test_every_value_has_a_word(
    vocabulary: type[StrEnum], table: dict[StrEnum, object]
) -> None:
    """A value added to a vocabulary gets its word here."""
    assert table.keys() == set(vocabulary)


def test_times_have_one_form() -> None:
    """Argentina's civil time; English in a form that is no other day for anybody."""
    assert day_and_time(NOON, "es") == "25/05/2026 12:00"
    assert day_and_time(NOON, "en") == "2026-05-25 12:00"
    assert day_and_time(NOON, "es", seconds=True) == "25/05/2026 12:00:00"
    assert with_zone(NOON, "es") == "25/05/2026 12:00 (UTC-3)"
    assert times.machine(NOON) == "2026-05-25T12:00:00-03:00"


def test_relative_times_are_in_words() -> None:
    """How long ago, and in how long, in both languages."""
    ago, soon = NOON - timedelta(minutes=5), NOON + timedelta(days=3)

    assert times.relative(ago, NOON, "es") == "hace 5 minutos"
    assert times.relative(soon, NOON, "es") == "dentro de 3 días"
    assert times.relative(ago, NOON, "en") == "5 minutes ago"
    just_ended = NOON - timedelta(milliseconds=20)
    assert times.relative(just_ended, NOON, "es") == "ahora"
    assert times.relative(NOON, NOON, "en") == "now"


def test_day_of_a_filter_begins_in_argentina() -> None:
    """A day begins at three in the morning, UTC."""
    assert times.read_since("2026-05-25", "since") == NOON - timedelta(hours=12)
    assert times.read_since("", "since") is None
    for wrong in ("25/05/2026", "2026-02-30", "hoy"):
        with pytest.raises(ApplianceError):
            times.read_since(wrong, "since")


def test_style_is_small_and_layered() -> None:
    """The whole style is under 35 KB, every rule but the tokens in a layer."""
    whole = assets.ASSETS["console.css"].content

    assert len(whole) <= 35_000
    assert whole.startswith(brand.TOKENS)
    style = whole.removeprefix(brand.TOKENS).decode()
    assert style.startswith("@layer reset, base, layout, components, utilities;")
    depth, outside = 0, ""
    for char in style.split("\n", 1)[1]:
        depth += {"{": 1, "}": -1}.get(char, 0)
        outside += char if depth == 0 else ""
    assert set(outside.replace("}", "").split()) <= {
        "@layer",
        *("reset", "base", "layout", "components", "utilities"),
    }


def test_every_value_of_a_story_has_a_word() -> None:
    """What a request goes through, and who proved what, is no raw word."""
    for key, vocabulary in (
        ("was", ActivationState),
        ("now", ActivationState),
        ("state", ActivationState),
        ("state", RequestState),
        ("state", CredentialState),
        ("state", PersonState),
        ("kind", TaskKind),
        ("kind", ExpiringKind),
        ("reason", RevocationReason),
        ("findings", FindingKind),
    ):
        assert set(audit_words.VALUES[key]) >= {one.value for one in vocabulary}
    assert set(audit_words.VALUES["factors"]) >= {*FACTORS, SIGNING_PASSWORD}


def test_chains_that_began_together_have_names_of_their_own() -> None:
    """Ids begin with the time, which all processes of one start share."""
    ids = [new_id() for _ in range(500)]

    assert len({each[:8] for each in ids}) <= 2
    assert len({audit_words.chain_name(each) for each in ids}) == len(ids)


def test_webhook_that_is_off_has_one_word() -> None:
    """It is turned off and on, apagado y encendido, wherever the console says so."""
    told = {
        f"{english} = {spanish}"
        for english, spanish in messages.translated(messages.CATALOGUE).items()
        if "webhook" in f"{english}{spanish}".lower()
    }

    assert len(told) > 30
    others = re.compile(r"deshabilit|desactiv|suspend|disabled|enabled", re.IGNORECASE)
    assert [each for each in told if others.search(each)] == []

"""No code of the record or of an error is ever read by a person at the console."""

import re
from collections.abc import AsyncIterator
from enum import StrEnum

import pytest
from quart import Quart, g

from admin_ui import audit_words, words
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import (
    ActivationState,
    CertificateState,
    CredentialState,
    EventKind,
    PersonState,
    RequestState,
)
from appliance.signing.signing_order import PROCESS_ENDED
from appliance.web import i18n

CODE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_RAW = {
    "state": "en_proceso",
    "estado": "en_proceso",
    "field": "vouched_by",
    "kinds": "javascript",
}
_WIRE = re.compile(r"\b(en_proceso|en_espera|vouched_by|[a-z]+_[a-z_]+)\b")
LANGUAGES = sorted(i18n.LANGUAGES)


@pytest.fixture(params=LANGUAGES)
async def spoken(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A page in one of the languages."""
    async with Quart(__name__).test_request_context("/"):
        g.lang = request.param
        yield request.param


@pytest.mark.parametrize("code", ErrorCode)
async def test_error_is_a_sentence(spoken: str, code: ErrorCode) -> None:
    """With whatever its places are filled; Spanish is not English."""
    del spoken
    told = words.error(ApplianceError(code, params=dict(_RAW)))

    assert told.endswith((".", "?")), told
    assert not CODE.search(told), told
    assert not _WIRE.search(told), told


@pytest.mark.parametrize("code", [*(one.value for one in ErrorCode), PROCESS_ENDED])
async def test_reason_is_a_sentence(spoken: str, code: str) -> None:
    """Why a request, a task or an upkeep ended, for every code it can stand for."""
    del spoken
    told = words.reason(code)

    assert told.endswith("."), told
    assert "{" not in told
    assert not CODE.search(told), told
    assert audit_words.value("reason", code) == told


async def test_sentences_are_translated() -> None:
    """What is said of every code differs between the languages."""
    said: dict[str, list[str]] = {}
    for spoken in LANGUAGES:
        async with Quart(__name__).test_request_context("/"):
            g.lang = spoken
            said[spoken] = [
                *(words.error(ApplianceError(code)) for code in ErrorCode),
                *(words.reason(code.value) for code in ErrorCode),
                *(audit_words.event(kind) for kind in EventKind),
            ]
    for english, spanish in zip(said["en"], said["es"], strict=True):
        assert english != spanish


async def test_unknown_code_is_no_code(spoken: str) -> None:
    """Of a code of a later version at least that much is said."""
    del spoken
    assert words.reason("NOT_THOUGHT_OF").endswith(".")


@pytest.mark.parametrize(
    ("key", "vocabulary"),
    [
        ("state", RequestState),
        ("state", PersonState),
        ("state", CredentialState),
        ("state", CertificateState),
        ("was", ActivationState),
    ],
)
async def test_states_in_details_have_words(
    spoken: str, key: str, vocabulary: type[StrEnum]
) -> None:
    """Of every state that a row of the audit can name."""
    del spoken
    for state in vocabulary:
        assert audit_words.value(key, state.value), state


@pytest.mark.parametrize(
    "name", ["api", "embed", "admin", "signing", "chores", "operator"]
)
async def test_role_of_a_process_is_in_words(spoken: str, name: str) -> None:
    """The name that the record has is nobody's word; host and number stand behind."""
    del spoken
    told = words.role(name)

    assert told.lower() != name
    assert words.role(f"{name}/firma-1/2") == f"{told} (firma-1, 2)"

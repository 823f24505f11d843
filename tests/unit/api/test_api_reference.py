"""docs/api.md says what the code does: codes, fields, addresses."""

import re
from pathlib import Path

import pytest
from quart import Quart

from appliance.api import (
    auth,
    clave,
    credenciales,
    lotes,
    pki,
    public,
    sessions,
    solicitudes,
    tsa,
)
from appliance.api.integration import batches as integration_batches
from appliance.api.integration import diagnose as integration_diagnose
from appliance.api.integration import documents as integration_documents
from appliance.api.integration import limits as integration_limits
from appliance.api.integration import requests as integration_requests
from appliance.api.integration import sessions as integration_sessions
from appliance.api.integration import signers as integration_signers
from appliance.api.integration import signers_for_tests
from appliance.api.integration import webhooks as integration_webhooks
from appliance.api.wire import fields, requests, webhooks
from appliance.api.wire.presets import (
    ANCHOR_LENGTH,
    FARTHEST_PT,
    OCCURRENCES_MOST,
    STAMP_FIELDS,
)
from appliance.domain.errors import SENTENCES, ErrorCode
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    CuilDisplay,
    FontName,
    FontStyle,
    Restriction,
    WebhookEvent,
)
from appliance.web.app import Digits
from appliance.web.problems import ANSWERS

_ASKED = ("<path:encoded>", "{request}")
_DOCS = Path(__file__).parents[3] / "docs"
TEXT = (_DOCS / "api.md").read_text(encoding="utf-8")
INTEGRATION = (_DOCS / "integration.md").read_text(encoding="utf-8")
WEBHOOKS = (_DOCS / "webhooks.md").read_text(encoding="utf-8")
_BACKEND = "/api/integration/"


def section(title: str) -> str:
    """The text of one section."""
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row whose first cell is a code span."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


def test_reference_lists_every_error() -> None:
    """The table of errors is the mapping, row by row."""
    expected = [
        [
            f"`{code}`",
            str(ANSWERS[code].status.value),
            f"`{ANSWERS[code].category}`",
            SENTENCES[code],
        ]
        for code in ErrorCode
    ]

    assert rows(section("Errors")) == expected


def test_reference_lists_every_field_of_firmar() -> None:
    """The fields of the signing command, in their order, with their defaults."""
    told = [
        (row[0].strip("`"), row[2].strip("`*"))
        for row in rows(section("Sign").split("The answer:")[0])
    ]
    defaults = SignParameters().to_wire()
    shown = {"None": "by itself", "True": "true"}
    absent = dict.fromkeys(("campo", "motivo", "lugar"), "none")
    absent |= dict.fromkeys(("cuil", "qr", "logo"), "by setting")

    expected = []
    for name in requests.SIGN_FIELDS:
        default = str(defaults.get(name, absent.get(name, "required")))
        expected.append((name, shown.get(default, default)))
    assert sorted(told) == sorted(expected)


def test_reference_lists_every_field_of_a_look_and_place() -> None:
    """All of firmar's, and what only the document can tell."""
    text = section("The look and place of a signature")
    table = text.split("| Field of `ancla`")[0]
    told = [name for row in rows(table) for name in row[0].replace("`", "").split(", ")]

    assert sorted(told) == sorted(STAMP_FIELDS)
    assert f"1 to {ANCHOR_LENGTH} characters" in text
    assert f"1 to {OCCURRENCES_MOST}: which" in text
    assert f"-{FARTHEST_PT} to {FARTHEST_PT} points" in text


def test_batch_has_the_fields_of_firmar() -> None:
    """All of them, for every request of it."""
    assert requests.BATCH_FIELDS[:2] == ("solicitudIds", "loteId")
    assert requests.BATCH_FIELDS[2:] == requests.SIGN_FIELDS[1:]


@pytest.mark.parametrize(
    "word", [*fields.COLORS, *FontName, *FontStyle, *Restriction, *CuilDisplay], ids=str
)
def test_reference_names_every_word(word: str) -> None:
    """Each word that a field may be stands in the table."""
    assert f"`{word}`" in section("Sign")


def test_reference_lists_every_address() -> None:
    """The table of addresses is the URL map."""
    app = Quart("x", static_folder=None)
    app.url_map.converters["digits"] = Digits
    # All but the pages: they are for people, and link to one another.
    for face in (
        solicitudes,
        lotes,
        clave,
        credenciales,
        auth,
        sessions,
        pki,
        tsa,
        public,
    ):
        app.register_blueprint(face.blueprint)
    served = {
        (method, re.sub(r"<[^>]+>", "{id}", rule.rule.replace(*_ASKED)))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }

    told = set(re.findall(r"^\| \[`(\w+) (\S+)`\]", TEXT, re.MULTILINE))

    assert told == served


def test_integration_page_lists_every_address() -> None:
    """The table is what backends can call; each address has its curl line."""
    app = Quart("reference")
    for face in (
        integration_requests,
        integration_batches,
        integration_sessions,
        integration_signers,
        signers_for_tests,
        integration_documents,
        integration_limits,
        integration_diagnose,
        integration_webhooks,
    ):
        app.register_blueprint(face.blueprint)
    served = {
        (method, re.sub(r"<[^>]+>", "{}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith(_BACKEND)
    }
    lines = " ".join(re.findall(r"```sh\n(.*?)```", INTEGRATION + WEBHOOKS, re.DOTALL))

    told = set(re.findall(r"^\| `(\w+) (\S+)`", INTEGRATION, re.MULTILINE))

    assert {(m, re.sub(r"\{\w+\}", "{}", path)) for m, path in told} == served
    called = [re.sub(r"\{\w+\}", "$", path) for _, path in told]
    written = re.sub(r"\$[A-Z]+\b(?!\w)", "$", lines.replace("$WEB_URL", ""))
    assert [path for path in called if path not in written] == []


def test_webhooks_page_has_every_word() -> None:
    """Types, states, failures and why one is off, as answers spell them."""
    told = set(re.findall(r"`([\w.]+)`", WEBHOOKS))

    answered = {
        *WebhookEvent,
        *webhooks.STATES.values(),
        *webhooks.FAILURES.values(),
        *webhooks.WHY_DISABLED.values(),
    }
    assert answered - told == set()


def test_reference_has_curl_line_for_every_address() -> None:
    """Each address has its curl line."""
    lines = " ".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL))
    told = re.findall(r"^\| \[`\w+ (\S+)`\]", TEXT, re.MULTILINE)

    called = [path.replace("{id}", "7").replace("{request}", "$ASKED") for path in told]
    missing = [path for path in called if path not in lines]

    assert missing == []

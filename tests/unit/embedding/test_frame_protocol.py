"""The frame's protocol: one table, and everything made from it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from appliance.web import i18n
from embed import generate
from embed.assets import sentences
from embed.fields import Field, Kind, first_fault
from embed.machine import TABLE, State
from embed.protocol import (
    COMPLETED_FIELDS,
    DOCUMENT_FIELDS,
    INIT_FIELDS,
    MESSAGES,
    USER_FIELDS,
    Direction,
    message,
)

STATIC = Path(generate.__file__).parent / "static"
CONTRACT = (Path(generate.__file__).parents[1] / "docs/contract.md").read_text()


def test_generated_files_are_current() -> None:
    """The page's module and the schemas say what the table says."""
    assert generate.main(["--check"]) == 0


def test_messages_of_the_contract_are_exactly_its_six() -> None:
    """No message of the contract is missing, and none is claimed to be."""
    told = set(re.findall(r"^\| `svc\.([a-z.]+)` \|", CONTRACT, re.MULTILINE))
    ours = {item.name for item in MESSAGES if item.contract}

    assert ours == told
    assert len(ours) == 6


def test_directions_are_those_of_the_contract() -> None:
    """Who sends what."""
    to_frame = {
        item.name
        for item in MESSAGES
        if item.contract and item.direction is Direction.TO_FRAME
    }

    assert to_frame == {"init", "load.file"}


def names(fields: tuple[Field, ...], prefix: str = "") -> set[str]:
    """Paths of all fields."""
    found = set()
    for field in fields:
        found.add(prefix + field.name)
        found |= names(field.fields, f"{prefix}{field.name}.")
    return found


def rows_under(heading: str) -> set[str]:
    """First cells of the table under a heading of the contract."""
    part = CONTRACT.split(f"### {heading}")[1].split("\n###")[0].split("\n## ")[0]
    cells = re.findall(r"^\| ([A-Za-z0-9.]+) \|", part, re.MULTILINE)
    return set(cells) - {"Field"}


@pytest.mark.parametrize(
    ("heading", "fields"),
    [
        ("Iframe init message payload (`svc.init`)", INIT_FIELDS),
        ("Document object", DOCUMENT_FIELDS),
        ("Signature-completed payload (`svc.signature.completed`)", COMPLETED_FIELDS),
    ],
)
def test_fields_are_exactly_those_of_the_contract(
    heading: str, fields: tuple[Field, ...]
) -> None:
    """Each row of the contract's table is a field, and no other field is claimed."""
    leaves = {
        path
        for path in names(fields)
        if not any(other.startswith(f"{path}.") for other in names(fields))
        or path == "autoLoadFile"
    }
    leaves -= {path for path in leaves if path.startswith("autoLoadFile.")}

    assert leaves == rows_under(heading)


def test_state_table_is_closed_and_reachable() -> None:
    """Every state has a row, every way leads to a state, and all are reached."""
    rows = {row.state: row for row in TABLE}
    assert set(rows) == set(State)
    reached, todo = {State.BOOT}, [State.BOOT]
    while todo:
        for state in rows[todo.pop()].leads:
            if state not in reached:
                reached.add(state)
                todo.append(state)

    assert reached == set(State)


def test_state_table_names_messages_of_the_protocol() -> None:
    """What a state accepts and emits exists, in its direction."""
    for row in TABLE:
        for name in row.accepts:
            assert message(name).direction is Direction.TO_FRAME
        for name in row.emits:
            assert message(name).direction is Direction.TO_HOST


@pytest.mark.parametrize("state", State)
def test_signed_is_left_by_a_new_session_alone(state: State) -> None:
    """A signature is never undone by what happens in the frame."""
    row = next(row for row in TABLE if row.state is State.SIGNED)

    assert (state in row.leads) == (state is State.CONNECTED)


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ({}, "email"),
        ({"email": None}, "email"),
        ({"email": ""}, "email"),
        ({"email": "a@b.example"}, None),
        ({"email": "a@b.example", "dni": ""}, None),
        ({"email": "a@b.example", "dni": None, "extra": [1]}, None),
        ({"email": "a@b.example", "gender": "x"}, "gender"),
        ({"email": "a@b.example", "phone": "11234567890"}, "phone"),
        ({"email": "a@b.example", "phone": "1123456789\n"}, "phone"),
        ({"email": "a@b.example", "name": "\U0001f600" * 101}, "name"),
        ({"email": ["a@b.example"]}, "email"),
    ],
)
def test_first_fault_is_found(payload: dict[str, Any], fault: str | None) -> None:
    """Missing, of another type, too long, of another form."""
    assert first_fault(payload, USER_FIELDS) == fault


def test_fields_of_fields_are_named_by_their_path() -> None:
    """A host reads where its mistake is."""
    init = {"nonce": "n", "sessionToken": "t", "userData": {"email": 1}}

    assert first_fault(init, INIT_FIELDS) == "userData.email"
    assert first_fault({**init, "userData": 1}, INIT_FIELDS) == "userData"


def test_kinds_are_told_apart() -> None:
    """A boolean is no integer."""
    fields = (Field("n", Kind.INTEGER, "n"), Field("b", Kind.BOOLEAN, "b"))

    assert first_fault({"n": True}, fields) == "n"
    assert first_fault({"n": 1, "b": 1}, fields) == "b"
    assert first_fault({"n": 1, "b": False}, fields) is None


def test_schemas_are_strict_about_what_is_required() -> None:
    """The schemas carry required fields, and one of dni and cuil."""
    schemas = json.loads((STATIC / "messages.schema.json").read_text())["$defs"]
    init = schemas["init"]["properties"]["payload"]

    assert set(init["required"]) == {"nonce", "sessionToken", "userData"}
    assert init["properties"]["userData"]["anyOf"] == [
        {"required": ["dni"]},
        {"required": ["cuil"]},
    ]


@pytest.mark.parametrize("sentence", sentences())
def test_every_sentence_of_the_frame_has_spanish(sentence: str) -> None:
    """Whatever the page says, it says in Spanish, with the same places."""
    spanish = i18n.translate("es", sentence)

    assert spanish != sentence or sentence == "CUIL"
    places = re.compile(r"{(\w+)}")
    assert sorted(places.findall(spanish)) == sorted(places.findall(sentence))


def test_page_says_sentences_as_literals() -> None:
    """`t(` is followed by a text: only then is the sentence found and translated."""
    for path in STATIC.glob("*.js"):
        text = path.read_text()
        calls = re.findall(r"\bt\((?!\s*\")[^)]*\)", text)
        own = [call for call in calls if call != "t(msgid, values = {})"]
        assert own == [], path.name


def test_modules_never_make_markup_of_data() -> None:
    """No way from a text to HTML or code, and no storage."""
    banned = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        r"|localStorage|sessionStorage|indexedDB|document\.cookie|setAttribute\(\"style"
        r"|postMessage\([^)]*[\"']\*[\"']"
    )
    for path in STATIC.glob("*.js"):
        assert banned.findall(path.read_text()) == [], path.name


def test_state_table_of_the_docs_is_current() -> None:
    """docs/frame.md shows the table that the page obeys."""
    page = (Path(generate.__file__).parents[1] / "docs/frame.md").read_text()

    assert generate.render_states() in page


def test_guide_has_every_message() -> None:
    """The table of docs/embedding.md: each message once, by who sends it."""
    guide = (Path(generate.__file__).parents[1] / "docs/embedding.md").read_text()
    rows = re.findall(r"^\| `svc\.([a-z.]+)` \| (iframe|you) \|", guide, re.MULTILINE)

    senders = {Direction.TO_HOST: "iframe", Direction.TO_FRAME: "you"}
    expected = sorted((item.name, senders[item.direction]) for item in MESSAGES)
    assert sorted(rows) == expected

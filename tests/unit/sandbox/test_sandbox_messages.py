"""The words between sandbox and client: what goes in comes out, or is refused."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from appliance.domain import sandbox
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import (
    EmptyField,
    FindingKind,
    FoundText,
    Inspection,
    PageBox,
    SigningFacts,
    TextSearch,
)
from appliance.domain.documents.verification import (
    YES,
    Answer,
    CheckCode,
    FilledField,
    SignatureReport,
    VerificationReport,
    refuted,
    unchecked,
)
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.sandbox import LENGTH, MessageInvalidError
from appliance.domain.vocab import FontName, FontStyle

INSPECTION = Inspection(
    size_bytes=1234,
    pages=(PageBox(0, 0.5, 595, 842, 90), PageBox(-1, -2, 3, 4, 0)),
    findings=(FindingKind.DAMAGED, FindingKind.JAVASCRIPT),
    signatures=2,
    docmdp=3,
    signing=SigningFacts(
        permitted=2,
        new_locked=True,
        empty=(
            EmptyField(
                "a.b",
                1,
                (1, 2, 3, 4.5),
                closes=True,
                certifies=0,
                permits=1,
                locks=True,
            ),
            EmptyField("c", locked=True, needs=("Cert",), digests=("sha512",)),
        ),
        signed=("Firma-1",),
    ),
)
SIGNATURE = SignatureReport(
    field="Firma1",
    integrity=YES,
    identity=YES,
    trust=unchecked(CheckCode.NO_CERTIFICATE_CHAIN_FOUND, "not trusted here"),
    revocation=YES,
    time=YES,
    coverage=YES,
    changes=refuted(CheckCode.CHANGED, "page 2 was changed"),
    signer="Ada Núñez",
    signer_serial="CUIL 20267565393",
    signed_at="2026-11-20T17:03:11+00:00",
    filled=(FilledField("Cliente", "", "Ada"),),
    certificates=("ab" * 32, "cd" * 32),
    serial="1f",
)
REPORT = VerificationReport(
    signatures=(SIGNATURE,), ending=YES, text_covered=Answer.YES, covered_pages=(1,),
    pages_compared=1, pages_changed=2, unproven=("TSA ajena",),
)  # fmt: skip
REVOKED = RevokedTsa("ab" * 32, datetime(2026, 11, 20, tzinfo=UTC), "keyCompromise")
LAYOUT = StampLayout(
    page=1,
    lines=("Ada Núñez",),
    font_name=FontName.SERIF,
    font_style=FontStyle.BOLD_ITALIC,
    font_size_pt=11.5,
    color=(0.5, 0, 1),
    text_x=6,
    text_y=6,
    x=10,
    y=20,
    width=100,
    height=50,
    rect=(10, 20, 110, 70),
    rotate=270,
)
FOUND = TextSearch(FoundText(2, (1.5, 2, 30, 40)))

Codec = tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]
CODECS: list[Codec] = [
    (INSPECTION, sandbox.inspection_to_json, sandbox.inspection_from_json),
    (REPORT, sandbox.report_to_json, sandbox.report_from_json),
    (LAYOUT, sandbox.layout_to_json, sandbox.layout_from_json),
    (FOUND, sandbox.search_to_json, sandbox.search_from_json),
    (TextSearch(None, whole=False), sandbox.search_to_json, sandbox.search_from_json),
    (
        ("Firma", 2, None),
        lambda wanted: sandbox.wanted_to_json(*wanted),
        sandbox.wanted_from_json,
    ),
]


@pytest.mark.parametrize(("value", "write", "read"), CODECS)
def test_value_is_the_same_after_the_wire(
    value: object, write: Callable[[Any], Any], read: Callable[[Any], Any]
) -> None:
    """Through bytes and back, nothing is lost."""
    message = sandbox.encode(write(value))

    assert read(sandbox.decode(message[LENGTH.size :])) == value


@pytest.mark.parametrize(("value", "write", "read"), CODECS)
def test_answer_without_a_field_is_no_answer(
    value: object, write: Callable[[Any], Any], read: Callable[[Any], Any]
) -> None:
    """Every field is asked for."""
    whole = write(value)

    for missing in whole:
        rest = {key: entry for key, entry in whole.items() if key != missing}
        with pytest.raises(MessageInvalidError):
            read(rest)


@pytest.mark.parametrize(
    "altered",
    [
        {"signatures": "2"},
        {"signatures": True},
        {"docmdp": 4},
        {"findings": ["nonsense"]},
        {"pages": [[0, 0, 1]]},
        {"pages": [[0, 0, "x", 1, 0]]},
        {"pages": [[0, 0, 1, 1, 0.5]]},
        {"pages": [[0, 0, float("nan"), 1, 0]]},
        {"pages": [[0, 0, 1, 1, 45]]},
        {"pages": [[5, 0, 1, 1, 0]]},
        {"pages": []},
        {"pages": 7},
    ],
)
def test_inspection_of_another_shape_is_refused(altered: dict[str, object]) -> None:
    """A job that was taken over cannot put anything else in our hands."""
    message = {**sandbox.inspection_to_json(INSPECTION), **altered}

    with pytest.raises(MessageInvalidError):
        sandbox.inspection_from_json(message)


@pytest.mark.parametrize(
    "altered",
    [
        {"whole": 1},
        {"found": []},
        {"found": "2"},
        {"found": [1, 0, 0, 1]},
        {"found": [1.5, 0, 0, 1, 1]},
        {"found": [True, 0, 0, 1, 1]},
        {"found": [1, 1, 0, 0, 1]},
        {"found": [1, 0, 0, float("nan"), 1]},
        {"found": [1, 0, 0, float("inf"), 1]},
        {"found": [1, 0, 0, 1e7, 1]},
        {"found": [1, 0, 0, "x", 1]},
    ],
)
def test_search_of_another_shape_is_refused(altered: dict[str, object]) -> None:
    """Nor can it have a stamp lie where no page is."""
    with pytest.raises(MessageInvalidError):
        sandbox.search_from_json({**sandbox.search_to_json(FOUND), **altered})


@pytest.mark.parametrize(
    "altered",
    [
        {"text": ""},
        {"text": 7},
        {"text": "x" * 1001},
        {"occurrence": 0},
        {"occurrence": True},
        {"page": 0},
        {"page": "2"},
    ],
)
def test_question_of_another_shape_is_refused(altered: dict[str, object]) -> None:
    """A job looks for what can be looked for."""
    with pytest.raises(MessageInvalidError):
        sandbox.wanted_from_json({**sandbox.wanted_to_json("a", 1, None), **altered})


def test_refusal_is_the_same_after_the_wire() -> None:
    """Code, reason and values for the sentence arrive."""
    refusal = DocumentRefusedError(
        ErrorCode.DOCUMENT_TOO_LARGE, "why", params={"limit": 5, "other": object()}
    )

    read = sandbox.refusal_from_json(sandbox.refusal_to_json(refusal))

    assert (read.code, read.reason, read.params) == (refusal.code, "why", {"limit": 5})


@pytest.mark.parametrize("code", ["INTERNAL", "LOGIN_FAILED", "nonsense", 5, None])
def test_refusal_by_a_foreign_code_is_no_refusal(code: object) -> None:
    """The sandbox speaks of documents only."""
    with pytest.raises(MessageInvalidError):
        sandbox.refusal_from_json({"refused": code, "reason": "", "params": {}})


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b"\xff", b"[" * 100_000])
def test_message_that_is_no_object_is_refused(body: bytes) -> None:
    """Only a JSON object is a message."""
    with pytest.raises(MessageInvalidError):
        sandbox.decode(body)


def test_revoked_tsas_are_the_same_after_the_wire() -> None:
    """As part of a question; what is of another shape is none."""
    written = sandbox.revoked_to_json([REVOKED])
    (body,) = sandbox.decode(sandbox.encode({"r": written})[LENGTH.size :]).values()

    assert sandbox.revoked_from_json(body) == (REVOKED,)
    wrong: object
    for wrong in (None, {}, [["a"]], [["a", "no time", ""]], [["a", 7, ""]], [7]):
        with pytest.raises(MessageInvalidError):
            sandbox.revoked_from_json(wrong)

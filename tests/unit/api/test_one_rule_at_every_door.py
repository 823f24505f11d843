"""One value has one rule, wherever it comes in: REST API, frame and console."""

from collections.abc import Callable
from typing import Final
from uuid import uuid4

import pytest

from appliance.api.declaring import codes
from appliance.api.wire import documents, orders, signers
from appliance.api.wire.processes import NewRequest
from appliance.domain.errors import (
    SENTENCES,
    ApplianceError,
    ErrorCode,
    Faults,
    SeveralFaultsError,
)
from appliance.identity.people import checked_person
from appliance.requests.intake import check_file_name
from embed.wire import claim, init_order

CUIL: Final = "20267565393"
EMAIL: Final = "ana@example.com"
PDF: Final = "JVBERi0xLjcK"
Door = Callable[[str], str]


def init(**user: str) -> dict[str, object]:
    """What a host sends to the frame."""
    told = {
        "nonce": str(uuid4()),
        "sessionToken": "t" * 43,
        "userData": {"email": EMAIL, "cuil": CUIL, **user},
    }
    return {"page": "p-1-1", "init": told}


def vouched(email: str) -> str:
    """The address of somebody whom a backend vouches for."""
    identity = {"metodo": "DNI", "responsable": "M", "cuando": "2026-11-27T12:00:00Z"}
    body = {"nombre": "Ana Paz", "email": email, "identidad": identity}
    order = signers.vouch(CUIL, body)
    return checked_person(CUIL, order.name, order.email, "es")[1]


ADDRESS_DOORS: Final[dict[str, Door]] = {
    "request": lambda email: orders.named_signer({"email": email}, "firmante.").value,
    "vouch": vouched,
    "console": lambda email: checked_person(CUIL, "Ana Paz", email, "es")[1],
    "init": lambda email: init_order(init(email=email)).claim.email,
    "identify": lambda email: claim({"email": email, "cuil": CUIL}).email,
}
CUIL_DOORS: Final[dict[str, Door]] = {
    "request": lambda cuil: orders.named_signer({"cuil": cuil}, "firmante.").value,
    "console": lambda cuil: checked_person(cuil, "Ana Paz", EMAIL, "es")[0].cuil,
    "init": lambda cuil: str(init_order(init(cuil=cuil)).claim.cuil),
    "identify": lambda cuil: str(claim({"email": EMAIL, "cuil": cuil}).cuil),
}
TYPED_DOORS: Final = {"console", "identify"}
"""Where a person types it."""


def named(name: str) -> str:
    """The document of a request, as a call names it."""
    document = orders.SentDocument.read({"nombre": name, "contenido": PDF})
    assert document.name is not None
    return check_file_name(document.name)


NAME_DOORS: Final[dict[str, Door]] = {
    "request": named,
    "upload": lambda name: check_file_name(
        str(documents.UploadBody.read({"nombre": name, "contenido": PDF}).nombre)
    ),
    # Of a part, of a header, and in the frame.
    "file": check_file_name,
}


def verdict(door: Door, value: str) -> str | None:
    """What a door makes of a value; None: it is refused."""
    try:
        return door(value)
    except ApplianceError:
        return None


@pytest.mark.parametrize("door", ADDRESS_DOORS.values(), ids=ADDRESS_DOORS)
@pytest.mark.parametrize("typed", [EMAIL, f"  {EMAIL}", f"{EMAIL}   ", f" {EMAIL} "])
def test_blanks_around_an_address_do_not_count(door: Door, typed: str) -> None:
    """Nobody is told that an address is wrong for what cannot be seen."""
    assert verdict(door, typed) == EMAIL


@pytest.mark.parametrize(
    "door",
    [each for name, each in ADDRESS_DOORS.items() if name != "request"],
    ids=[name for name in ADDRESS_DOORS if name != "request"],
)
@pytest.mark.parametrize(
    "typed", ["", " ", "ana", "ana@", "@example.com", "ana @example.com", "a@b@c.com"]
)
def test_what_is_no_address_is_refused(door: Door, typed: str) -> None:
    """A request finds nobody by it, which is told otherwise."""
    assert verdict(door, typed) is None


@pytest.mark.parametrize("door", CUIL_DOORS.values(), ids=CUIL_DOORS)
@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("20-26756539-3", CUIL),
        ("20267565393", CUIL),
        (" 20-26756539-3", CUIL),
        ("20267565393  ", CUIL),
        ("20-267565393", CUIL),
        ("2026756539", None),
        ("20-26756539-2", None),
        ("33-69345023-9", None),
        ("２０267565393", None),  # noqa: RUF001 (digits that are none)
        ("20_26756539_3", None),
    ],
)
def test_cuil_is_read_alike(door: Door, typed: str, read: str | None) -> None:
    """Dashes and blanks around do not count; what is none is none anywhere."""
    assert verdict(door, typed) == read


@pytest.mark.parametrize("door", CUIL_DOORS)
@pytest.mark.parametrize(
    "typed", ["20 26756539 3", "20.26756539.3", "20-26756539-3-", "20-26756539-3\n"]
)
def test_people_write_a_cuil_as_they_like(door: str, typed: str) -> None:
    """Programs send it as the contract has it, whose schemas say so."""
    read = CUIL if door in TYPED_DOORS else None
    assert verdict(CUIL_DOORS[door], typed) == read


@pytest.mark.parametrize("door", NAME_DOORS.values(), ids=NAME_DOORS)
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("contrato.pdf", "contrato.pdf"),
        (" contrato.pdf ", "contrato.pdf"),
        ("CONTRATO.PDF", "CONTRATO.PDF"),
        ("an\u0303o 2026.pdf", "año 2026.pdf"),
        ("contrato", None),
        ("contrato.pdf.exe", None),
        (".pdf", None),
        ("../contrato.pdf", None),
        ("contra\u202eto.pdf", None),
        ("contra\ufffdto.pdf", None),
        ("contra\tto.pdf", None),
        (f"{'á' * 126}.pdf", None),
    ],
)
def test_file_name_is_read_alike(door: Door, given: str, kept: str | None) -> None:
    """One rule says what a file may be called."""
    assert verdict(door, given) == kept


@pytest.mark.parametrize(
    "content",
    [
        f"data:application/pdf;base64,{PDF}",
        "JVBERi0xLjcK\n",
        "JVBERi0x Ljc K",
        "JVBERi0xLjc",
        "JVBERi0xLjd=",
        "_-__",
        "ñ",
    ],
)
def test_fault_of_base64_says_what_is_wrong(content: str) -> None:
    """As the frame does, though not by its code."""
    told = []
    for read in (
        lambda: orders.SentDocument.read({"contenido": content}),
        lambda: documents.UploadBody.read({"contenido": content}),
    ):
        with pytest.raises(ApplianceError) as refused:
            read()
        told.append((refused.value.code, refused.value.told(refused.value.sentence)))

    assert {code for code, _ in told} == {ErrorCode.FIELD_INVALID}
    for _, sentence in told:
        assert "plain Base64" in sentence
        assert "data: prefix" in sentence
        assert "plain Base64" in SENTENCES[ErrorCode.BASE64_INVALID]


def test_all_that_is_wrong_is_told_with_its_reason() -> None:
    """Among other faults too."""
    faults = Faults()
    signer = {"cuil": CUIL}
    NewRequest.read_all({"firmantes": [signer], "nivel": "X", "otro": 1}, faults)
    orders.SentDocument.read_all({"contenido": "data:x"}, faults)

    with pytest.raises(SeveralFaultsError) as several:
        faults.demand_none()
    sentences = [each.told(each.sentence) for each in several.value.faults]
    assert any("plain Base64" in each for each in sentences)


_OURS: Final = {
    ErrorCode.SANDBOX_UNAVAILABLE,
    ErrorCode.STORAGE_FULL,
    ErrorCode.DOCUMENT_QUOTA,
    ErrorCode.FILENAME,
}
"""Of these there is nothing to be done with the file; of a name it says what it is."""


@pytest.mark.parametrize("code", sorted(codes.EXAMINED - _OURS))
def test_refusal_of_a_document_says_what_to_do(code: ErrorCode) -> None:
    """What is wrong, and then the next step."""
    wrong, _, next_step = SENTENCES[code].partition(". ")

    assert wrong
    assert next_step.endswith(".")

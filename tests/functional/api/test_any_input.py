"""Whatever anybody sends: an answer of ours, never a 500, and nothing is signed.

What is sent is made up by hypothesis; `test_bad_input.py` has the cases that are
known by name.
"""

import secrets
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from asn1crypto import algos, core, tsp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from appliance.api.wire.requests import BATCH_FIELDS, PARAMETER_FIELDS, SIGN_FIELDS
from appliance.domain.errors import ErrorCode
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import state_of
from tests.support.documents import pdfs

NOBODYS = 2**53 - 1
FEW = settings(max_examples=60)
"""Each example is a call over HTTP."""

# What a JSON body can carry: lone surrogates are refused before any field is read.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=600)
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)
# Fitting ones too, or no call would come past the first check.
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "fontColor": st.sampled_from(["BLACK", "#00FF7F"]),
    "fontName": st.sampled_from(["Serif", "Monospaced"]),
    "fontStyle": st.just("BOLD"),
    "fontSize": st.integers(4, 72),
    "zoomPercent": st.integers(10, 400),
    "page": st.integers(1, 2),
    "x": st.integers(-10, 900),
    "y": st.integers(-10, 900),
    "restriccion": st.sampled_from(["NO_VALUE", "FORM_FILLING"]),
    "visible": st.booleans(),
    "campo": TEXT,
    "motivo": TEXT,
    "lugar": TEXT,
    "cuil": st.sampled_from(["COMPLETO", "ENMASCARADO", "completo"]),
    "qr": st.booleans(),
    "logo": st.booleans(),
}
PARAMETERS = st.fixed_dictionaries(
    {}, optional={name: FITTING.get(name, ANY) | ANY for name in PARAMETER_FIELDS}
)


@pytest.fixture(scope="module")
def foreign(appliance: Appliance, other_signer: TestPerson) -> Iterator[int]:
    """A request of somebody else, which nothing here may move."""
    request = appliance.new_request(other_signer, pdfs.one_page())
    yield request
    with appliance.client(other_signer) as client:
        assert state_of(client, request) == "pendiente"


@pytest.fixture(scope="module")
def own(appliance: Appliance, signer: TestPerson) -> Iterator[int]:
    """A request of the caller's own, which nothing here signs."""
    request = appliance.new_request(signer, pdfs.one_page())
    yield request
    with appliance.client(signer) as client:
        assert state_of(client, request) == "pendiente"


def told(answer: httpx.Response) -> str:
    """The code of a refusal, which is one of ours in our shape."""
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    return ErrorCode(answer.json()["code"])


@FEW
@given(
    parameters=PARAMETERS,
    request=st.sampled_from([NOBODYS, "foreign"]) | ANY,
    # One that is none is refused before it is tried; a wrong one would count.
    password=st.just("right") | ANY.filter(lambda word: not isinstance(word, str)),
    more=st.booleans(),
)
def test_any_command(
    client: httpx.Client,
    signer: TestPerson,
    foreign: int,
    parameters: dict[str, Any],
    request: Any,
    password: Any,
    *,
    more: bool,
) -> None:
    """`firmar`: of nobody's request, somebody else's, or what is no request."""
    body = {
        **parameters,
        **({"extra": 1} if more else {}),
        "solicitudId": foreign if request == "foreign" else request,
        "password": signer.signing_password if password == "right" else password,
    }

    told(client.post("/solicitudes/firmar", json=body))


@FEW
@given(
    parameters=PARAMETERS,
    ids=st.lists(st.sampled_from([NOBODYS, "foreign", "own"]) | ANY, max_size=210),
    batch=st.dictionaries(
        st.just("loteId"), st.just("01900000-0000-7000-8000-000000000000") | ANY
    ),
    password=st.none() | st.integers() | st.just("corta"),
)
@example(parameters={}, ids=["foreign"] * 2, batch={}, password=None)
@example(parameters={}, ids=[NOBODYS - n for n in range(201)], batch={}, password=None)
def test_any_batch(
    client: httpx.Client,
    signer: TestPerson,
    foreign: int,
    own: int,
    parameters: dict[str, Any],
    ids: list[Any],
    batch: dict[str, Any],
    password: Any,
) -> None:
    """`firmar/lote`: any list, any batch, any parameters; the right password for none.

    No request here is the caller's own where the password is right.
    """
    known = {"foreign": foreign, "own": own}
    named = [known.get(each, each) if isinstance(each, str) else each for each in ids]
    body = {**parameters, "solicitudIds": named, "password": password}
    told(client.post("/solicitudes/firmar/lote", json=body))

    others = [each for each in named if each is not own]
    right = {**body, "solicitudIds": others, "password": signer.signing_password}
    if batch:
        alone = {**parameters, **batch, "password": signer.signing_password}
        told(client.post("/solicitudes/firmar/lote", json=alone))
        told(client.post("/solicitudes/firmar/lote", json={**right, **batch}))
    answer = client.post("/solicitudes/firmar/lote", json=right)
    if answer.status_code == 200:
        results = answer.json()["resultados"]
        assert {each["status"] for each in results} == {"error"}
    else:
        told(answer)


@FEW
@given(parameters=PARAMETERS)
def test_any_preview(
    client: httpx.Client, own: int, parameters: dict[str, Any]
) -> None:
    """`vista-previa`: a picture, or what is wrong with the parameters."""
    answer = client.post(f"/solicitudes/{own}/vista-previa", json=parameters)

    if answer.status_code != 200:
        told(answer)


@FEW
@given(content=st.binary(max_size=400), lote=st.booleans())
def test_any_bytes(client: httpx.Client, content: bytes, *, lote: bool) -> None:
    """No JSON at all."""
    path = "/solicitudes/firmar" + "/lote" * lote
    headers = {"Content-Type": "application/json"}

    told(client.post(path, content=content, headers=headers))


@FEW
@given(lote=TEXT.filter(lambda text: text not in {"", ".", ".."}))
def test_any_batch_number(client: httpx.Client, lote: str) -> None:
    """Of a batch that is nobody's."""
    answer = client.get(f"/solicitudes/lotes/{quote(lote[:80], safe='')}")

    assert told(answer).endswith("NOT_FOUND")


@settings(max_examples=25)
@given(code=TEXT.filter(lambda text: text not in {"", ".", ".."}))
def test_any_code_to_verify(limited_appliance: Appliance, code: str) -> None:
    """`/verificar/…`: a page that knows nothing, until there are too many."""
    with limited_appliance.client() as anyone:
        answer = anyone.get(f"/verificar/{quote(code[:80], safe='')}")

    assert answer.status_code in {404, 429}


def _question() -> bytes:
    """A question that is right."""
    imprint = tsp.MessageImprint(
        {
            "hash_algorithm": algos.DigestAlgorithm({"algorithm": "sha256"}),
            "hashed_message": secrets.token_bytes(32),
        }
    )
    asked = {"version": "v1", "message_imprint": imprint, "cert_req": True}
    der: bytes = tsp.TimeStampReq({**asked, "nonce": core.Integer(7)}).dump()
    return der


@settings(max_examples=25)
@given(
    content=st.binary(max_size=60)
    | st.builds(
        lambda at, byte: _question()[:at] + byte + _question()[at + 1 :],
        st.integers(0, 60),
        st.binary(max_size=2),
    )
)
def test_any_question_to_the_tsa(limited_appliance: Appliance, content: bytes) -> None:
    """`/tsa`: an answer of RFC 3161, or a refusal of ours."""
    with limited_appliance.client() as anyone:
        headers = {"Content-Type": "application/timestamp-query"}
        answer = anyone.post("/tsa", content=content, headers=headers)

    if answer.status_code == 200:
        assert answer.headers["Content-Type"] == "application/timestamp-reply"
    else:
        told(answer)


def test_fields_are_all_tried() -> None:
    """A field that is new here is sent as well."""
    assert {*SIGN_FIELDS, *BATCH_FIELDS} == {
        *PARAMETER_FIELDS,
        "solicitudId",
        "solicitudIds",
        "loteId",
        "password",
    }
    assert set(FITTING) <= set(PARAMETER_FIELDS)

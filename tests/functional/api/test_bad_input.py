"""What no honest client sends: each has its answer, and none is a 500.

Source: RFC 9112; RFC 9110; RFC 8259; decisions "errors", "Limits".
"""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    RawAnswer,
    command,
    head,
    problem,
    raw,
    state_of,
)
from tests.support.documents import pdfs

SIGN = "/solicitudes/firmar"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def pending(appliance: Appliance, signer: TestPerson) -> Iterator[int]:
    """A request that nothing here may move."""
    request = appliance.new_request(signer, pdfs.one_page())
    yield request
    with appliance.client(signer) as client:
        assert state_of(client, request) == "pendiente"


def _post(appliance: Appliance, *lines: str, body: bytes = b"") -> list[RawAnswer]:
    """Sign in with a raw request."""
    return raw(appliance, head(appliance, "POST /auth/login HTTP/1.1", *lines) + body)


# -- transport ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "status", "code"),
    [
        ([], 401, "TOKEN_MISSING"),
        (["Authorization:"], 401, "TOKEN_MISSING"),
        (["Authorization: Bearer"], 401, "TOKEN_MISSING"),
        (["Authorization: Basic YTpi"], 401, "TOKEN_MISSING"),
        (["Authorization: bearer x"], 401, "TOKEN_INVALID"),
        (["Authorization: Bearer x y"], 401, "TOKEN_INVALID"),
        (["Authorization: Bearer \xf1"], 401, "TOKEN_INVALID"),
        (["Authorization: Bearer x", "Authorization: Bearer x"], 400, "BAD_HEADER"),
        (["Host: evil.example"], 400, "BAD_HEADER"),
        (["Content-Length: 0", "Content-Length: 0"], 400, "BAD_HEADER"),
        (["Content-Length: 1", "Content-Length: 2"], 400, "BAD_HEADER"),
        (["Content-Length: -1"], 400, "BAD_HEADER"),
        (["Transfer-Encoding: gzip, chunked"], 501, "BAD_HEADER"),
        ([f"X-{n}: 1" for n in range(101)], 400, "BAD_HEADER"),
        ([f"X-Huge: {'x' * 200_000}"], 431, "BAD_HEADER"),
        (["X Bad: 1"], 400, "BAD_HEADER"),
        (["X-Nul: a\x00b"], 400, "BAD_HEADER"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, list) else "",
)
def test_headers(
    appliance: Appliance, lines: list[str], status: int, code: str
) -> None:
    """Doubled, bad or too many headers: one answer, by the parser or by us."""
    answers = raw(appliance, head(appliance, "GET /solicitudes HTTP/1.1", *lines))

    assert [(answer.status, answer.code) for answer in answers] == [(status, code)]


def test_two_lengths_are_one_request_refused(appliance: Appliance) -> None:
    """A request inside another's body is never answered as one of its own.

    Source: RFC 9112, 6.3 and 11.2.
    """
    inner = head(appliance, "GET /healthz HTTP/1.1")
    body = b"0\r\n\r\n" + inner

    answers = _post(
        appliance,
        JSON,
        f"Content-Length: {len(body)}",
        "Transfer-Encoding: chunked",
        body=body,
    )

    assert (answers[0].status, answers[0].code) == (400, "BAD_HEADER")
    assert len(answers) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /solicitudes\r\n\r\n",
        b"GET  /solicitudes HTTP/1.1\r\n\r\n",
        b"GET /sol icitudes HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /solicitudes HTTP/1.1\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 64 + b"\r\n\r\n",
    ],
    ids=["tls", "no_version", "two_spaces", "space", "host", "long", "nul"],
)
def test_bytes_that_are_no_request(appliance: Appliance, data: bytes) -> None:
    """Refused by the parser, and the connection ends."""
    answers = raw(appliance, data)

    assert {answer.status for answer in answers} <= {400, 414, 431, 505}
    assert len(answers) <= 1


@pytest.mark.parametrize(
    "target",
    [
        "/%",
        "/%zz",
        "/solicitudes/%00",
        "/solicitudes/%ff",
        "/../etc/passwd",
        "/?%ff",
    ],
)
def test_strange_addresses(appliance: Appliance, target: str) -> None:
    """An address that means nothing is not found."""
    (answer,) = raw(appliance, head(appliance, f"GET {target} HTTP/1.1"))

    assert (answer.status, answer.code) == (404, "NOT_FOUND")


def test_bare_line_feeds_are_read_as_one_request(appliance: Appliance) -> None:
    """A lenient reading is allowed for a head, as long as it is one reading.

    Source: RFC 9112, 2.2.
    """
    data = head(appliance, "GET /solicitudes HTTP/1.1").replace(b"\r\n", b"\n")

    answers = raw(appliance, data)

    assert [answer.status for answer in answers] in ([400], [401])


@pytest.mark.parametrize("size", [b"zz", b"-1", b"f" * 21, b"0x5"])
def test_chunk_of_impossible_size(appliance: Appliance, size: bytes) -> None:
    """Bad framing ends the connection, answered 400 or not at all."""
    answers = _post(
        appliance, JSON, "Transfer-Encoding: chunked", body=size + b"\r\n{}\r\n"
    )

    assert {answer.status for answer in answers} <= {400}


def test_chunked_body_is_read_like_any(appliance: Appliance) -> None:
    """A body in chunks is a body."""
    body = b'{"usuario":"a","password":"b"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"

    (answer,) = _post(appliance, JSON, "Transfer-Encoding: chunked", body=chunks)

    assert (answer.status, answer.code) == (401, "LOGIN_FAILED")


def test_chunked_body_over_the_limit(appliance: Appliance) -> None:
    """Without a declared length the limit holds while it arrives."""
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    answers = _post(appliance, JSON, "Transfer-Encoding: chunked", body=chunk * 32)

    assert [(answer.status, answer.code) for answer in answers] == [
        (413, "BODY_TOO_LARGE")
    ]


def test_declared_length_over_the_limit(appliance: Appliance) -> None:
    """Refused before a byte of it has come."""
    (answer,) = _post(appliance, JSON, "Content-Length: 999999999999")

    assert (answer.status, answer.code) == (413, "BODY_TOO_LARGE")
    assert answer.headers["connection"] == "close"


def test_upgrade_to_websocket_refused(appliance: Appliance) -> None:
    """No face speaks WebSocket."""
    (answer,) = raw(
        appliance,
        head(
            appliance,
            "GET /solicitudes HTTP/1.1",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
    )

    assert (answer.status, answer.code) == (400, "BAD_HEADER")


@pytest.mark.long
def test_head_that_never_ends_is_given_up(appliance: Appliance) -> None:
    """A head that trickles in is cut off; it holds a connection for 30 s at most."""
    start = head(appliance, "GET /healthz HTTP/1.1")[:-2]

    assert raw(appliance, start, wait_s=40) == []


# -- bodies --------------------------------------------------------------------------

BODIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "BODY_NOT_OBJECT"),
    "array": (b"[1]", 400, "BODY_NOT_OBJECT"),
    "text": (b'"x"', 400, "BODY_NOT_OBJECT"),
    "null": (b"null", 400, "BODY_NOT_OBJECT"),
    "number": (b"1", 400, "BODY_NOT_OBJECT"),
    "cut": (b'{"solicitudId":', 400, "JSON_INVALID"),
    "two_values": (b"{}{}", 400, "JSON_INVALID"),
    "comment": (b"{}//", 400, "JSON_INVALID"),
    "single_quotes": (b"{'solicitudId':1}", 400, "JSON_INVALID"),
    "bad_utf8": (b'{"password":"\xff\xfe"}', 400, "JSON_INVALID"),
    "utf16": ('{"solicitudId":1}'.encode("utf-16"), 400, "JSON_INVALID"),
    "byte_order_mark": (b'\xef\xbb\xbf{"solicitudId":1}', 400, "JSON_INVALID"),
    "lone_surrogate": (b'{"password":"\\ud800"}', 400, "JSON_INVALID"),
    "nul": (b'{"password":"a\\u0000bcdefgh"}', 400, "JSON_INVALID"),
    "nan": (b'{"x":NaN}', 400, "JSON_INVALID"),
    "infinity": (b'{"x":-Infinity}', 400, "JSON_INVALID"),
    "overflow": (b'{"x":1e999}', 400, "JSON_INVALID"),
    "twice": (b'{"solicitudId":1,"solicitudId":2}', 400, "JSON_INVALID"),
    "long_number": (b'{"x":' + b"9" * 4301 + b"}", 400, "JSON_INVALID"),
    "deep": (b'{"x":' + b"[" * 33 + b"]" * 33 + b"}", 400, "JSON_INVALID"),
    "very_deep": (b'{"x":' + b"[" * 200_000, 400, "JSON_INVALID"),
    "unknown": (b'{"solicitudId":1,"pasword":"x"}', 400, "FIELD_UNKNOWN"),
    "prototype": (b'{"__proto__":{}}', 400, "FIELD_UNKNOWN"),
    "nothing": (b"{}", 400, "FIELD_MISSING"),
    "large": (b"{" + b" " * 1_048_576 + b"}", 413, "BODY_TOO_LARGE"),
}


@pytest.mark.parametrize("name", [*BODIES])
def test_body(client: httpx.Client, name: str) -> None:
    """One text has one meaning or is refused."""
    content, status, code = BODIES[name]

    answer = client.post(
        SIGN, content=content, headers={"Content-Type": "application/json"}
    )

    problem(answer, status, code)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "text/json"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "br"},
        {"Content-Type": "multipart/form-data"},
    ],
    ids=lambda headers: "-".join(headers.values()) or "none",
)
def test_body_of_another_type(
    client: httpx.Client, headers: dict[str, str], signer: TestPerson, pending: int
) -> None:
    """Only JSON in UTF-8, unpacked, or a multipart body with its boundary."""
    content = json.dumps(command(signer, pending)).encode()

    problem(client.post(SIGN, content=content, headers=headers), 415, "CONTENT_TYPE")


@pytest.mark.parametrize(
    "parts",
    [
        b"",
        b"--b\r\n",
        b"--b--\r\n",
        b"--c\r\nContent-Disposition: form-data; name=file\r\n\r\nx\r\n--c--\r\n",
        b"--b\r\n\r\nx\r\n--b--\r\n",
        b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="options"\r\n\r\n{}\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="extra"\r\n\r\n{}\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n' * 2
        + b"--b--\r\n",
        b"--b\r\n" + b"X-Long: " + b"x" * 100_000,
    ],
    ids=[
        "nothing",
        "begun",
        "ended",
        "other_boundary",
        "nameless",
        "file_alone",
        "options_alone",
        "unknown_part",
        "part_twice",
        "endless_header",
    ],
)
def test_multipart_that_is_none(client: httpx.Client, parts: bytes) -> None:
    """Each way in which parts are missing or not closed is the client's fault."""
    answer = client.post(
        SIGN,
        content=parts,
        headers={"Content-Type": "multipart/form-data; boundary=b"},
    )

    assert answer.status_code == 400, answer.text
    assert answer.json()["code"] in {"FIELD_INVALID", "FIELD_MISSING", "FIELD_UNKNOWN"}


INVALID: dict[str, list[object]] = {
    "solicitudId": [None, "5", 5.0, True, -1, 0, 2**63, 10**30, [5], {"id": 5}],
    "page": [0, -1, "1", 1.0, True],
    "x": ["1", 1.5, True, [], 2**60],
    "fontSize": [3, 73, "12", 12.0],
    "zoomPercent": [9, 401, "100"],
    "visible": ["true", 1],
    "motivo": [None, "", "  ", "x" * 121, "a\nb", 5, ["x"]],
    "lugar": [None, "", "x" * 61, "a\x85b"],
    "cuil": [None, "", "completo", True],
    "qr": [None, "true", 1],
    "logo": [None, 0],
    "fontColor": ["BLACK ", "#1234567"],
    "fontName": [["Serif"]],
    "password": [None, "", "corta", 12345678, "x" * 1025, "ñ" * 600, ["x" * 9]],
}
FIELDS: list[tuple[str, object, int, str]] = [
    *(
        (field, value, 400, "FIELD_INVALID")
        for field, values in INVALID.items()
        for value in values
    ),
    ("solicitudId", 2**53 - 1, 404, "SOLICITUD_NOT_FOUND"),
    ("page", 10**9, 422, "PAGE_OUT_OF_RANGE"),
    ("x", -1, 422, "POSITION_OUT_OF_PAGE"),
    ("y", 842, 422, "POSITION_OUT_OF_PAGE"),
]


@pytest.mark.parametrize(
    ("field", "value", "status", "code"),
    FIELDS,
    ids=[f"{field}-{str(value)[:12]}" for field, value, _, _ in FIELDS],
)
def test_field_out_of_its_domain(
    client: httpx.Client,
    signer: TestPerson,
    pending: int,
    field: str,
    value: object,
    status: int,
    code: str,
) -> None:
    """Types are exact and ranges are kept; the refusal never shows the value."""
    # x and y come together.
    body = {**command(signer, pending, x=0, y=0), field: value}

    answer = client.post(SIGN, json=body)

    members = problem(answer, status, code)
    if code == "FIELD_INVALID":
        assert members["field"] == field
    if field == "password" and value:
        assert str(value) not in answer.text


def test_ten_megabytes_of_password(client: httpx.Client, pending: int) -> None:
    """Refused by its size before anything is hashed."""
    body = {"solicitudId": pending, "password": "x" * 10_000_000}

    problem(client.post(SIGN, json=body), 413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("text", ["0", "007", "9" * 17, "9" * 5000, "9007199254740993"])
def test_number_in_the_address_that_is_no_request(
    client: httpx.Client, text: str
) -> None:
    """What can be no number of a request is no request."""
    problem(client.get(f"/solicitudes/{text}"), 404, "SOLICITUD_NOT_FOUND")


@pytest.mark.parametrize("text", ["-1", "1.0", "1e3", "abc", "١٢", "1/2", "0x1", " 1"])
def test_word_in_the_address_is_not_found(client: httpx.Client, text: str) -> None:
    """An address that is not digits leads nowhere."""
    problem(client.get(f"/solicitudes/{text}"), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    "body",
    [
        {"usuario": "a"},
        {"password": "b"},
        {"usuario": 20, "password": "b"},
        {"usuario": "", "password": "b"},
        {"usuario": "a", "password": ""},
        {"usuario": "a\x00", "password": "b"},
        {"usuario": "a" * 321, "password": "b"},
        {"usuario": "a", "password": "b" * 1025},
        {"usuario": "a", "password": None},
        {"usuario": "a", "password": "b", "codigo": "000000"},
    ],
    ids=range(10),
)
def test_sign_in_of_another_form(client: httpx.Client, body: dict[str, object]) -> None:
    """What cannot be a sign-in is told as such, not as a wrong one."""
    answer = client.post("/auth/login", json=body)

    assert answer.status_code == 400
    assert answer.json()["code"] in {
        "FIELD_INVALID",
        "FIELD_MISSING",
        "FIELD_UNKNOWN",
        "JSON_INVALID",
    }

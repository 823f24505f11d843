"""Readers of outside bytes, each with the worst that is known of its kind.

    for name, reader in READERS.items():
        given = reader.make(reader.n)
        reader.read(given)

A reader takes what it is given or refuses it as it refuses anything, with no other
error. Bodies of requests are `tests.support.documents.body_readers`.
"""

import asyncio
import base64
import contextlib
import json
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from quart import Quart, request

from appliance.api.wire import query, requests
from appliance.domain import sandbox, strict_json
from appliance.domain.errors import ApplianceError
from appliance.domain.integrators.api_keys import LOOKS_LIKE_ONE, read_api_key
from appliance.domain.integrators.origins import parse_origin
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.people.identity import parse_cuil
from appliance.domain.pki.timestamps import TimestampQuestion
from appliance.domain.sandbox import MessageInvalidError
from appliance.domain.vocab import Environment
from appliance.identity.access_tokens import read_token
from appliance.integrators.api_keys import words
from appliance.keys.signing_password import normalize
from appliance.pki.ocsp_responder import _parse as read_ocsp_request
from appliance.pki.tsa.tsp_messages import read_question
from appliance.pki.validation.certificate_rules import read_one, read_pem
from appliance.requests.intake import check_file_name
from appliance.web import content_negotiation, i18n
from appliance.web.server.client_address import Proxies
from embed.wire import file_name
from tests.support.factories.fakes import NOON, MovingClock
from tests.support.pki.long_term_pki import LongTermPki
from worker.network.crl import checked_list
from worker.network.ocsp import checked_answer
from worker.network.revocation_check import BadStatusError
from worker.network.tsa_response import BadTimestampError, checked_token

_MARKS: Final = "\u0301\u0316"
"""Combining marks that canonical ordering has to change places of."""
_HEADER_BYTES: Final = 15_000
"""Twice this still fits into a request's head."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader and what is hard for it."""

    read: Callable[[Any], object]
    make: Callable[[int], Any]
    """Something hard of a size; twice the number is twice as much."""
    n: int


def _refusing(
    read: Callable[[Any], object], *errors: type[Exception]
) -> Callable[[Any], object]:
    """The reader, whose own refusals are an answer."""

    def reading(given: Any) -> object:
        with contextlib.suppress(ApplianceError, *errors):
            return read(given)
        return None

    return reading


def _json(text: str) -> Reader:
    """JSON that repeats a text after a beginning."""
    head, _, again = text.partition("…")
    return Reader(
        _refusing(strict_json.parse),
        lambda n: (head + again * n + "[" * 33).encode(),
        20_000,
    )


def _flat_der(n: int) -> bytes:
    """A SEQUENCE of so many small INTEGERs."""
    return _der(0x30, b"\x02\x01\x01" * n)


def _deep_der(n: int) -> bytes:
    """So many SEQUENCEs, one in another."""
    head = b""
    length = 0
    for _ in range(n):
        one = _der_head(0x30, length)
        head = one + head
        length += len(one)
    return head


def _der(tag: int, content: bytes) -> bytes:
    return _der_head(tag, len(content)) + content


def _der_head(tag: int, length: int) -> bytes:
    size = length.to_bytes(4, "big")
    return bytes([tag, 0x84]) + size


@cache
def _pki() -> LongTermPki:
    return LongTermPki(MovingClock(NOON))


@cache
def _crl(entries: int) -> bytes:
    """A good CRL with so many entries."""
    pki = LongTermPki(MovingClock(NOON), revoked=set(range(1, entries + 1)))
    return pki.crl()


def _read_crl(der: bytes) -> object:
    return checked_list(der, _pki().ca, _pki().ca, NOON)


def _read_ocsp(der: bytes) -> object:
    return checked_answer(der, _pki().ca, _pki().root, b"nonce", NOON)


def _read_timestamp(der: bytes) -> object:
    asked = TimestampQuestion(b"\0" * 32, DigestAlgorithm.SHA256, nonce=1)
    return checked_token(der, asked, None, (), NOON)


def _of_request(read: Callable[[], object]) -> Callable[[Any], object]:
    """A reader of a request's head: given its headers, or its query as `?`."""
    app = Quart("readers")

    async def reading(given: Mapping[str, str]) -> None:
        headers = {name: value for name, value in given.items() if name != "?"}
        path = f"/?{given.get('?', '')}"
        async with app.test_request_context(path, headers=headers):
            _refusing(lambda _: read())(None)

    return lambda given: asyncio.run(reading(given))


def _head(name: str, again: str) -> Callable[[int], dict[str, str]]:
    return lambda n: {name: again * (n // len(again))}


def _forwarded(header: str) -> Callable[[Any], object]:
    proxies = Proxies(("10.0.0.0/8", "2001:db8::/32"), header)
    name = header.encode()
    return lambda value: proxies.client("10.0.0.1", [(name, value.encode("latin-1"))])


_SANDBOX_ERRORS: Final = (MessageInvalidError,)
_inspection = _refusing(
    lambda raw: sandbox.inspection_from_json(sandbox.decode(raw)), *_SANDBOX_ERRORS
)
_report = _refusing(
    lambda raw: sandbox.report_from_json(sandbox.decode(raw)), *_SANDBOX_ERRORS
)


def _readers() -> Iterator[tuple[str, Reader]]:
    yield from _texts()
    yield from _heads()
    yield from _ders()
    yield from _messages()


def _texts() -> Iterator[tuple[str, Reader]]:
    for name, text in {
        "endless string": '{"a":"…\\"',
        "quotes": '{"a":…"',
        "words": '{"a":"…ab',
        "brackets": '{"a":…[]',
        "members": '{"a":[0…,0',
        "escapes": '{"a":"…\\u00e1',
    }.items():
        yield f"JSON, {name}", _json(text)
    yield (
        "JSON, names twice",
        Reader(
            _refusing(strict_json.parse),
            lambda n: json.dumps({f"n{i}": 0 for i in range(n)}).encode(),
            20_000,
        ),
    )
    yield (
        "JSON, long numbers",
        Reader(
            _refusing(strict_json.parse),
            lambda n: b"[" + b",".join([b"9" * 4300] * n) + b"]",
            60,
        ),
    )
    jwt = _refusing(read_token)
    yield "JWT, dots", Reader(jwt, lambda n: "." * n, 4000)
    yield "JWT, header", Reader(jwt, lambda n: _jwt(b'{"alg":"' + b'\\"' * n), 1400)
    yield "API key", Reader(_api_key, lambda n: "rbk_test_" * n, 20_000)
    password = _refusing(normalize)
    yield "password, marks", Reader(password, lambda n: "a" + _MARKS * n, 8000)
    yield (
        "file name, marks",
        Reader(_refusing(check_file_name), lambda n: "a" + _MARKS * n + ".pdf", 8000),
    )
    yield (
        "name of a key, marks",
        Reader(
            _refusing(lambda t: words(t, "x", 80)), lambda n: "a" + _MARKS * n, 8000
        ),
    )
    yield (
        "signing command",
        Reader(
            _refusing(
                lambda fields: requests.sign_command(fields, requests.Conditions())
            ),
            lambda n: {"solicitudId": 1, "password": "a" + _MARKS * n},
            8000,
        ),
    )
    yield "CUIL", Reader(_refusing(parse_cuil), lambda n: "20-" * n, 20_000)
    yield (
        "origin",
        Reader(
            _refusing(lambda text: parse_origin(text, Environment.PROD)),
            lambda n: "https://" + "a." * n,
            20_000,
        ),
    )
    pem = _refusing(read_pem)
    yield "PEM, beginnings", Reader(pem, lambda n: b"-----BEGIN " * n, 20_000)
    yield (
        "PEM, never ending",
        Reader(pem, lambda n: b"-----BEGIN CERTIFICATE-----\n" * n, 2000),
    )


def _heads() -> Iterator[tuple[str, Reader]]:
    languages = _of_request(i18n.requested)
    accepts = _of_request(
        lambda: content_negotiation.prefers("application/pdf", "text/html")
    )
    kinds = _of_request(lambda: (request.mimetype, request.mimetype_params))
    cookies = _of_request(lambda: dict(request.cookies))
    listing = _of_request(query.list_query)
    n = _HEADER_BYTES
    for name, again in {"commas": "a,", "weights": "a;q=0.1,", "quotes": '"\\'}.items():
        yield (
            f"Accept-Language, {name}",
            Reader(languages, _head("Accept-Language", again), n),
        )
        yield f"Accept, {name}", Reader(accepts, _head("Accept", again), n)
    for name, again in {"params": "a/b; c=d", "quotes": '; a="\\', "semi": ";"}.items():
        yield f"Content-Type, {name}", Reader(kinds, _head("Content-Type", again), n)
    for name, again in {"pairs": "a=b; ", "quotes": 'a="\\', "names": "=;"}.items():
        yield f"Cookie, {name}", Reader(cookies, _head("Cookie", again), n)
    for name, again in {"pairs": "limite=1&", "escapes": "%c3", "plus": "+"}.items():
        yield f"query, {name}", Reader(listing, _head("?", again), n)
    yield (
        "X-File-Name",
        Reader(_of_request(file_name), _head("X-File-Name", "%cc%81%cc%96"), n),
    )
    for header, again in {
        "x-forwarded-for": "10.0.0.1, ",
        "forwarded": 'for="[2001:db8::1]";',
    }.items():
        read = _forwarded(header)
        yield header, Reader(read, partial(operator.mul, again), 4000)
        yield f"{header}, quotes", Reader(read, lambda n: ';for="' * n, 4000)
        yield f"{header}, blanks", Reader(read, lambda n: "; " + " " * n, 20_000)


def _ders() -> Iterator[tuple[str, Reader]]:
    status, stamps = BadStatusError, BadTimestampError
    for name, read, most in (
        ("OCSP request", read_ocsp_request, 1300),
        ("timestamp query", read_question, 600),
        ("OCSP answer", _refusing(_read_ocsp, status), 10_000),
        ("CRL", _refusing(_read_crl, status), 50_000),
        ("timestamp answer", _refusing(_read_timestamp, stamps), 10_000),
        ("certificate", _refusing(read_one), 10_000),
    ):
        yield f"{name}, flat", Reader(read, _flat_der, most)
        yield f"{name}, deep", Reader(read, _deep_der, min(most, 5000))
    yield "CRL, entries", Reader(_refusing(_read_crl, status), _crl, 1000)


def _messages() -> Iterator[tuple[str, Reader]]:
    page = [[0, 0, 595, 842], 0]
    yield (
        "sandbox, pages",
        Reader(_inspection, lambda n: json.dumps({"pages": [page] * n}).encode(), 5000),
    )
    yield "sandbox, brackets", Reader(_inspection, lambda n: b"[" * n, 20_000)
    yield (
        "sandbox, signatures",
        Reader(
            _report,
            lambda n: json.dumps({"signatures": [{}] * n, "ending": {}}).encode(),
            20_000,
        ),
    )


def _jwt(header: bytes) -> str:
    part = base64.urlsafe_b64encode(header).rstrip(b"=").decode()
    return f"{part}.e30.AA"


def _api_key(text: str) -> object:
    return LOOKS_LIKE_ONE.search(text), read_api_key(text, Environment.PREPROD)


READERS: Final[dict[str, Reader]] = dict(_readers())
"""By a name for people."""

"""Limits that the operator sets."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests import pdfs
from tests.functional.calls import command, head, problem, raw
from tests.parts.appliance import Appliance, TestPerson

LIMIT = 65_536
"""`documents.limit_bytes` of the second appliance."""


def _call(client: httpx.Client, file: bytes, options: object) -> httpx.Response:
    return client.post(
        "/solicitudes/firmar",
        files={
            "file": ("grande.pdf", file, "application/pdf"),
            "options": (None, json.dumps(options), "application/json"),
        },
    )


def test_document_over_limit_refused(
    tight: Appliance, tight_signer: TestPerson
) -> None:
    """One byte over the limit is refused by name; the limit itself is looked at.

    Source: decisions "Limits".
    """
    request = tight.new_request(tight_signer, pdfs.one_page())
    options = command(tight_signer, request)

    with tight.client(tight_signer) as client:
        over = _call(client, b"x" * (LIMIT + 1), options)
        far_over = _call(client, b"x" * (LIMIT * 100), options)
        at = _call(client, b"x" * LIMIT, options)

    assert str(LIMIT) in problem(over, 413, "DOCUMENT_TOO_LARGE")["detail"]
    assert far_over.status_code == 413
    problem(at, 422, "DOCUMENT_MISMATCH")


def test_document_over_limit_is_not_taken_in(
    tight: Appliance, tight_signer: TestPerson
) -> None:
    """Nor does it get in through an operator's hands."""
    with pytest.raises(Exception, match="DOCUMENT_TOO_LARGE"):
        tight.new_request(tight_signer, pdfs.one_page() + b" " * LIMIT)


def test_body_that_stalls_is_given_up(tight: Appliance) -> None:
    """A body that stops coming is answered 408 after `web.body_timeout_s`."""
    start = head(
        tight,
        "POST /auth/login HTTP/1.1",
        "Content-Type: application/json",
        "Content-Length: 50",
    )

    (answer,) = raw(tight, start, b'{"usuario":')

    assert (answer.status, answer.code) == (408, "BODY_TIMEOUT")


def test_answer_before_the_body_is_read(appliance: Appliance) -> None:
    """A client that is still sending gets its answer, and can go on after it.

    Source: RFC 9112, 9.6.
    """

    def much() -> Iterator[bytes]:
        for _ in range(320):
            yield b" " * 65_536

    with appliance.client() as client:
        refused = client.post("/solicitudes/firmar", content=much())
        after = client.get("/healthz")

    problem(refused, 401, "TOKEN_MISSING")
    assert refused.headers["Connection"] == "close"
    assert after.status_code == 200

"""Limits that the operator sets."""

import hashlib
import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import command, head, problem, raw
from tests.support.documents import pdfs
from tests.support.faults.small_disk import fill, small_disk

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
    limited_appliance: Appliance, limited_signer: TestPerson
) -> None:
    """One byte over the limit is refused by name; the limit itself is looked at.

    Source: decisions "Limits".
    """
    request = limited_appliance.new_request(limited_signer, pdfs.one_page())
    options = command(limited_signer, request)

    with limited_appliance.client(limited_signer) as client:
        over = _call(client, b"x" * (LIMIT + 1), options)
        far_over = _call(client, b"x" * (LIMIT * 100), options)
        at = _call(client, b"x" * LIMIT, options)

    assert str(LIMIT) in problem(over, 413, "DOCUMENT_TOO_LARGE")["detail"]
    assert far_over.status_code == 413
    problem(at, 422, "DOCUMENT_MISMATCH")


def test_document_over_limit_is_not_taken_in(
    limited_appliance: Appliance, limited_signer: TestPerson
) -> None:
    """Nor does it get in through an operator's hands."""
    with pytest.raises(Exception, match="DOCUMENT_TOO_LARGE"):
        limited_appliance.new_request(limited_signer, pdfs.one_page() + b" " * LIMIT)


def test_body_that_stalls_is_given_up(limited_appliance: Appliance) -> None:
    """A body that stops coming is answered 408 after `web.body_timeout_s`."""
    start = head(
        limited_appliance,
        "POST /auth/login HTTP/1.1",
        "Content-Type: application/json",
        "Content-Length: 50",
    )

    (answer,) = raw(limited_appliance, start, b'{"usuario":')

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


def test_full_disk_is_507_before_the_key_is_used(
    limited_appliance: Appliance, limited_signer: TestPerson
) -> None:
    """The request waits for its signer, who succeeds when there is room again.

    Source: reliability F19.
    """
    with small_disk(limited_appliance.settings.documents_dir, 4_194_304) as made:
        if not made:
            pytest.skip("mounting a tmpfs needs root")
        request = limited_appliance.new_request(limited_signer, pdfs.one_page())
        filler = fill(limited_appliance.settings.documents_dir)
        with limited_appliance.client(limited_signer) as client:
            refused = _settled(client, command(limited_signer, request))
            intents = limited_appliance.intents(request)
            filler.unlink()
            signed = _settled(client, command(limited_signer, request))
            pdf = client.get(signed.json()["documentoFirmado"])

    assert problem(refused, 507, "STORAGE_FULL")["category"] == "retry"
    assert refused.headers["Retry-After"] == "60"
    assert intents == []
    assert signed.status_code == 200
    assert hashlib.sha256(pdf.content).hexdigest() == signed.json()["sha256"]


def _settled(client: httpx.Client, body: object) -> httpx.Response:
    """The signing call's own answer, asked for until it is no 202."""
    while True:
        answer = client.post("/solicitudes/firmar", json=body)
        if answer.status_code != 202:
            return answer

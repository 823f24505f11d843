"""One call is followed by its ids from the front's line to the worker's."""

import re
import time

import httpx

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign
from tests.support.documents.pdfs import one_page

_SOON_S = 60


def test_call_is_followed_to_the_worker(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """The answer's id stands in the front's line, whose activation the worker names."""
    request = appliance.new_request(signer, one_page())
    answer = sign(client, signer, request)
    assert answer.status_code == 200, answer.text
    asked = answer.headers["X-Request-Id"]

    front = _line(appliance, f"requestId={asked}", "route=/solicitudes/firmar")
    (activation,) = re.findall(r"activation=(\S+)", front)
    worker = _line(appliance, f"activation={activation}", "document.signed")
    assert f"request={request}" in worker
    assert "role=signing" in worker
    assert "unlisted=" not in appliance.log.read_text()


def _line(appliance: Appliance, *wanted: str) -> str:
    """The line of the log that has all of these."""
    deadline = time.monotonic() + _SOON_S
    while True:
        for line in appliance.log.read_text().splitlines():
            if all(each in line for each in wanted):
                return line
        assert time.monotonic() < deadline, wanted

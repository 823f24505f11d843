"""What the host is told, field by field, after one signature in a browser.

Source: spec "Signature-completed payload", "Events"; decisions "`svc.error`".
"""

import base64
import hashlib
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.support.appliance.appliance import Appliance
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs

NAME = "Contrato de locación.pdf"


@dataclass(frozen=True, slots=True)
class Story:
    """One signature: what the host sent, and every message that it got."""

    init: dict[str, Any]
    completed: dict[str, Any]
    messages: list[dict[str, Any]]
    request: int
    states: list[tuple[int, str]]


@pytest.fixture(scope="module")
async def story(appliance: Appliance, chromium: Browser) -> Story:
    """A signature, told once for all the tests of this file."""
    person = appliance.new_person()
    opener = Opener(chromium, None)
    with HostPage() as host:
        site = FrameSite(appliance, host)
        page = await opener()
        file = file_of(pdfs.one_page(), NAME)
        init = await site.open(page, person, autoLoadFile=file)
        await ceremony.whole(site.frame(page), person)
        completed = await site.wait(page, "signature.completed")
        messages = await site.log(page)
        states = site.requests(person)
    await opener.close()
    opener.watch.check()
    return Story(init, completed, messages, states[0][0], states)


def _signed(story: Story) -> bytes:
    return base64.b64decode(story.completed["delivery"]["fileBase64"], validate=True)


FIELDS: dict[str, Callable[[Story, Any], bool]] = {
    "eventId": lambda _, value: str(uuid.UUID(value)) == value,
    "idemKey": lambda story, value: value == story.init["idemKey"],
    "signedDocId": lambda story, value: value == str(story.request),
    "document.fileName": lambda _, value: value == NAME,
    "document.sha256": lambda story, value: (
        value == hashlib.sha256(_signed(story)).hexdigest()
    ),
    "document.size": lambda story, value: value == len(_signed(story)),
    "document.mime": lambda _, value: value == "application/pdf",
    "delivery.mode": lambda _, value: value == "binary",
    "delivery.fileBase64": lambda story, value: (
        re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", value) is not None
        and _signed(story).startswith(b"%PDF-")
    ),
}


@pytest.mark.parametrize("field", FIELDS)
async def test_completed_field(story: Story, field: str) -> None:
    """Each field of the payload is there and says the truth."""
    value: Any = story.completed
    for name in field.split("."):
        value = value[name]

    assert FIELDS[field](story, value)


async def test_completed_has_no_field_that_the_contract_lacks(story: Story) -> None:
    """Only `delivery.url` is there beside the contract's, as decided."""
    assert set(story.completed) == {
        "eventId",
        "idemKey",
        "signedDocId",
        "document",
        "delivery",
    }
    assert set(story.completed["document"]) == {"fileName", "sha256", "size", "mime"}
    assert set(story.completed["delivery"]) == {"mode", "fileBase64", "url"}


async def test_states_and_transitions_are_those_of_the_contract(story: Story) -> None:
    """Loaded → ready → connected → signed, each with its message."""
    told = [message["type"] for message in story.messages]
    order = [
        told.index("svc.ready"),
        told.index("svc.handshake.ack"),
        told.index("svc.document.loaded"),
        told.index("svc.signature.completed"),
    ]

    assert order == sorted(order)
    assert story.states == [(story.request, "firmada")]


async def test_every_message_is_type_and_payload(story: Story) -> None:
    """An envelope of exactly two members, the payload an object."""
    for message in story.messages:
        assert isinstance(message["type"], str)
        assert isinstance(message["payload"], dict)


async def test_error_payload_has_the_decided_fields(
    site: FrameSite, page: Page
) -> None:
    """The decided ones, and of the field at fault its path and what it must be."""
    token = await site.ready(page)
    await site.send(page, "init", site.init(token, None))
    error = await site.wait(page, "error")

    assert set(error) == {
        "code",
        "message",
        "category",
        "retryable",
        "requestId",
        "field",
        "fieldType",
    }
    assert error["code"] == "INIT_INVALID"
    assert error["fieldType"] == "string"
    assert error["retryable"] is False
    assert error["message"].startswith("Al mensaje inicial le falta")


async def test_error_of_the_server_has_the_same_fields(
    site: FrameSite, page: Page
) -> None:
    """One shape, whoever found the mistake; requestId is that of the log."""
    token = await site.ready(page)
    wrong = {"email": "a@b.example", "cuil": "20-26756539-2"}
    await site.send(page, "init", site.init(token, None, userData=wrong))
    error = await site.wait(page, "error")

    assert error["field"] == "userData.cuil"
    assert f"requestId={error['requestId']}" in Path(site.appliance.log).read_text()


async def test_host_that_knows_the_contract_alone_never_trips(story: Story) -> None:
    """All other messages are of types that the contract does not use."""
    contract = {"ready", "handshake.ack", "signature.completed", "error"}
    extra = {
        message["type"].removeprefix("svc.")
        for message in story.messages
        if message["type"].removeprefix("svc.") not in contract
    }

    assert extra <= {"state", "document.loaded", "resize", "session.expiring"}

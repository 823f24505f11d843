"""What the host sends wrongly, and every error a frame can get: nobody waits for ever.

Source: decisions "no document", "repeated init", "svc.error"; spec "Errors".
"""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import Error, Frame, Page, Route, expect

from appliance.domain.errors import ErrorCode
from appliance.web.problems import ANSWERS
from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.answered_frame import Turn, answer_each
from tests.support.browsers.browsers import choose_file
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs

PDF = pdfs.one_page()
NO_PDF = b"<html>not a pdf</html>"
REFERENCE = "Referencia: "


MADE_BY_THE_PAGE = {
    ErrorCode.BODY_NOT_OBJECT: "no pidió bien la firma",
    ErrorCode.BODY_TOO_LARGE: "no pidió bien la firma",
    ErrorCode.CONTENT_TYPE: "no pidió bien la firma",
    ErrorCode.FIELD_INVALID: "no pidió bien la firma",
    ErrorCode.FIELD_MISSING: "no pidió bien la firma",
    ErrorCode.FIELD_UNKNOWN: "no pidió bien la firma",
    ErrorCode.HANDSHAKE_REQUIRED: "no pidió bien la firma",
    ErrorCode.IDEMKEY_CONFLICT: "no pidió bien la firma",
    ErrorCode.INIT_INVALID: "no pidió bien la firma",
    ErrorCode.JSON_INVALID: "no pidió bien la firma",
    ErrorCode.LEGACY_CREDENTIALS: "no pidió bien la firma",
    ErrorCode.BASE64_INVALID: "no llegó bien",
    ErrorCode.DOCUMENT_EMPTY: "no llegó bien",
    ErrorCode.FILENAME: "no llegó bien",
    ErrorCode.MIME: "no llegó bien",
    ErrorCode.SESSION_IN_USE: "pidió otra firma",
}
"""Whose sentence is for a developer, and what the signer reads instead."""


async def refused(site: FrameSite, page: Page, error: dict[str, Any]) -> Frame:
    """Demand that the frame says an error to its signer, and no way around it."""
    frame = site.frame(page)
    await ceremony.at(frame, "refused")
    body = frame.locator("#panel")
    plain = MADE_BY_THE_PAGE.get(ErrorCode(error["code"]))
    await expect(body).to_contain_text(plain or error["message"])
    if plain is not None:
        await expect(body).not_to_contain_text(error["message"])
    await expect(body).to_contain_text(REFERENCE + error["requestId"])
    await expect(frame.locator("input[type=file]")).to_have_count(0)
    await expect(frame.locator(".spinner")).to_have_count(0)
    return frame


@pytest.mark.parametrize("way", ["autoLoadFile", "load.file"])
async def test_refused_document_leaves_no_picker(
    site: FrameSite, person: TestPerson, page: Page, way: str
) -> None:
    """The refusal is shown, and the host's next document is signed."""
    if way == "autoLoadFile":
        await site.open(page, person, autoLoadFile=file_of(NO_PDF))
    else:
        await site.open(page, person)
        await ceremony.at(site.frame(page), "pick")
        await site.send(page, "load.file", file_of(NO_PDF))
    error = await site.wait(page, "error")
    assert error["code"] == "PDF_MALFORMED"
    prefix = "autoLoadFile." if way == "autoLoadFile" else ""
    assert error["field"] == f"{prefix}base64"
    frame = await refused(site, page, error)

    await site.send(page, "load.file", file_of(PDF))
    await ceremony.whole(frame, person)
    await site.wait(page, "signature.completed")


async def test_refused_replacement_does_not_leave_the_earlier_document(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The host wants another one signed: not the one that it replaced."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await ceremony.at(site.frame(page), "read")
    await site.send(page, "load.file", file_of(NO_PDF))

    frame = await refused(site, page, await site.wait(page, "error"))
    await expect(frame.locator(".page")).to_have_count(0)
    assert await site.payloads(page, "signature.completed") == []


async def test_reloaded_frame_knows_that_the_host_sent_a_document(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The picker stays away though the page forgot what was refused."""
    init = await site.open(page, person)
    async with page.expect_response("**/embed/api/sent"):
        await site.send(page, "load.file", {**file_of(PDF), "mime": "image/png"})
        await site.wait(page, "error")
    await site.frame(page).evaluate("location.reload()")
    await site.wait(page, "ready", 2)
    await site.send(page, "init", {**init, "nonce": "after the reload"})

    frame = site.frame(page)
    await ceremony.at(frame, "refused")
    await expect(frame.locator("input[type=file]")).to_have_count(0)


async def test_document_of_the_host_takes_the_place_of_the_signers(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A signer's own file is not signed once the host has sent one, even a bad one."""
    await site.open(page, person)
    frame = site.frame(page)
    await ceremony.at(frame, "pick")
    await choose_file(frame.locator("#file"), "propio.pdf", PDF)
    await ceremony.at(frame, "read")
    await site.send(page, "load.file", file_of(NO_PDF))

    await refused(site, page, await site.wait(page, "error"))


WRONG_FILES: list[tuple[dict[str, Any], str, str]] = [
    ({"mime": "image/png"}, "MIME", "mime"),
    ({"fileName": None}, "INIT_INVALID", "fileName"),
    ({"fileName": 7}, "INIT_INVALID", "fileName"),
    ({"base64": "data:application/pdf;base64,JVBERi0x"}, "BASE64_INVALID", "base64"),
    ({"base64": "JVBE\nRi0x"}, "BASE64_INVALID", "base64"),
    ({"base64": "JVBERi0_"}, "BASE64_INVALID", "base64"),
]


@pytest.mark.parametrize("prefix", ["autoLoadFile.", ""])
async def test_every_wrong_document_is_shown_and_can_be_mended(
    site: FrameSite, person: TestPerson, page: Page, prefix: str
) -> None:
    """Message and reference in the frame, the path in `field`; a right one goes on."""
    init = await site.open(page, person)
    wrong = [*WRONG_FILES]
    if prefix:
        wrong += [({"base64": ""}, "INIT_INVALID", "base64")]
    else:
        wrong += [({"base64": ""}, "DOCUMENT_EMPTY", "base64")]
    for count, (change, code, field) in enumerate(wrong, 1):
        file = {**file_of(PDF), **change}
        if prefix:
            key = {"idemKey": f"key {count}", "autoLoadFile": file}
            await site.send(page, "init", {**init, **key})
        else:
            await site.send(page, "load.file", file)
        error = await site.wait(page, "error", count)
        assert (error["code"], error["field"]) == (code, prefix + field)
        if code == "INIT_INVALID":
            assert error["fieldType"] == "string"
        await refused(site, page, error)

    await site.send(page, "load.file", file_of(PDF))
    await site.wait(page, "document.loaded")
    await ceremony.at(site.frame(page), "read")


async def test_prefix_and_blanks_are_told_apart(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Two mistakes, two sentences, for each is mended otherwise."""
    await site.open(page, person)
    said = []
    for count, base64 in enumerate(("data:;base64,JVBERi0x", "JVBE Ri0x"), 1):
        await site.send(page, "load.file", {**file_of(PDF), "base64": base64})
        said.append((await site.wait(page, "error", count))["message"])

    assert "data:" in said[0]
    assert "espacios" in said[1]


async def test_empty_document_of_init_is_named(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """It is no init without a document: something was meant to be there."""
    init = await site.open(page, person)
    empty: tuple[Any, ...] = ({}, "x", [], 7)
    for count, file in enumerate(empty, 1):
        wrong = {**init, "idemKey": f"key {count}", "autoLoadFile": file}
        await site.send(page, "init", wrong)
        error = await site.wait(page, "error", count)
        assert error["code"] == "INIT_INVALID"
        assert error["field"].startswith("autoLoadFile")
        await refused(site, page, error)


async def test_init_that_names_no_content_preloads_nothing(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The contract: it is preloaded if `base64` is present."""
    named = {"fileName": "contrato.pdf", "mime": "application/pdf"}
    await site.open(page, person, autoLoadFile=named)

    await ceremony.at(site.frame(page), "pick")
    assert await site.errors(page) == []


async def test_wrong_init_is_shown_and_a_right_one_goes_on(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The frame says what the host was told, and forgets it with the next init."""
    token = await site.ready(page)
    good = site.init(token, person, autoLoadFile=file_of(PDF))
    wrong: tuple[dict[str, Any], ...] = (
        {"nonce": ""},
        {"userData": {}},
        {"apiKey": "rbk_test_x"},
    )
    for count, change in enumerate(wrong, 1):
        await site.send(page, "init", {**good, **change})
        error = await site.wait(page, "error", count)
        await refused(site, page, error)
    await site.send(page, "init", good)

    await site.wait(page, "document.loaded")
    await ceremony.at(site.frame(page), "read")


async def test_init_is_acked_while_a_document_is_being_opened(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Hosts that repeat init until the ack get each ack before the upload's answer."""
    uploaded = asyncio.Event()
    go_on = asyncio.Event()

    async def held(route: Route) -> None:
        uploaded.set()
        await go_on.wait()
        await route.continue_()

    await page.route("**/embed/api/document", held)
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await uploaded.wait()
    await site.send(page, "init", {**init, "nonce": "again"})
    await site.wait(page, "handshake.ack", 2)
    await site.send(page, "init", {**init, "idemKey": "another key"})
    await site.wait(page, "handshake.ack", 3)
    assert await site.payloads(page, "document.loaded") == []

    go_on.set()
    await site.wait(page, "document.loaded")
    await ceremony.at(site.frame(page), "read")


async def test_cancel_is_heard_while_a_document_is_being_opened(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """It gives the upload up, and that changes nothing any more."""
    uploaded = asyncio.Event()
    go_on = asyncio.Event()

    async def held(route: Route) -> None:
        uploaded.set()
        await go_on.wait()
        with suppress(Error):
            await route.continue_()

    await page.route("**/embed/api/document", held)
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await uploaded.wait()
    async with page.expect_event("requestfailed") as ended:
        await site.send(page, "cancel", {})
    assert (await ended.value).url.endswith("/embed/api/document")
    await site.wait(page, "cancelled")
    go_on.set()

    await site.send(page, "init", {})  # The answer to this comes after all that.
    await site.wait(page, "error")
    await ceremony.at(site.frame(page), "cancelled")


# -- every code ------------------------------------------------------------------------


ENDS = {"SESSION_TOKEN_EXPIRED", "SESSION_TOKEN_INVALID", "SESSION_SUPERSEDED"}
ENDS |= {"TOKEN_MISSING"}
"""After these nothing goes on in the session."""


def turn_of(code: ErrorCode, *, typed: bool = False, **how: Any) -> Turn:
    """An answer with a code, as a route of the frame gives it, and what is read then.

    Args:
        code: of the error.
        typed: to what the signer typed, who then mends a wrong field.
        **how: more of the turn.
    """
    wanted = MADE_BY_THE_PAGE.get(code, code.value)
    if typed and code is ErrorCode.FIELD_INVALID:
        wanted = code.value
    if code is ErrorCode.SESSION_TOKEN_EXPIRED:
        wanted = "La sesión terminó"
    answer = ANSWERS[code]
    body = {
        "code": code.value,
        "category": answer.category.value,
        "detail": f"Pasó {code.value}.",
        "requestId": f"r-{code.value}",
    }
    return Turn(code.value, answer.status.value, json.dumps(body), wanted, **how)


async def told_to_the_host(
    site: FrameSite, page: Page, codes: Sequence[ErrorCode]
) -> None:
    """Demand that the host was told of these errors, in order, and of no other."""
    if codes:
        await site.wait(page, "error", len(codes))
    errors = await site.payloads(page, "error")
    assert [error["code"] for error in errors] == [*codes]
    assert [error["requestId"] for error in errors] == [f"r-{code}" for code in codes]


@pytest.mark.parametrize("path", ["init", "document"])
async def test_every_code_of_opening_is_told_to_signer_and_host(
    site: FrameSite, person: TestPerson, page: Page, path: str
) -> None:
    """Whatever the service answers, and a right message goes on after each."""
    init = await site.open(page, person)
    frame = site.frame(page)
    await ceremony.at(frame, "pick")
    turns = []
    for count, code in enumerate(ANSWERS, 1):
        message: dict[str, Any] = {"type": "svc.load.file", "payload": file_of(PDF)}
        if path == "init":
            payload = {**init, "idemKey": f"key {count}"}
            message = {"type": "svc.init", "payload": payload}
        again = {"type": "svc.init", "payload": {**init, "idemKey": f"again {count}"}}
        ended = again if code.value in ENDS else None
        turns.append(turn_of(code, message=message, again=ended))
    await answer_each(frame, path, site.origin, turns, ["pick|refused"])
    await told_to_the_host(site, page, [*ANSWERS])

    await site.send(page, "init", {**init, "autoLoadFile": file_of(PDF)})
    await site.wait(page, "document.loaded")
    await ceremony.at(frame, "read")


MENDED_HERE = {"OTP_INVALID", "SIGN_PASSWORD_WRONG", "RATE_LIMITED", "FIELD_INVALID"}
MENDED_HERE |= {"BUSY"}
"""The signer mends these in the frame: no business of the host's."""
FAILS = {"SIGNING_FAILED", "STATE", "PDF_LOCKED"}
"""After these this document cannot be signed."""
ASKED_FOR = {"IN_PROGRESS", "ALREADY_SIGNED"}
"""Another call makes this signature: the frame asks what became of it."""
READ_ANEW = {"DOCUMENT_CHANGED"}
"""Another one has signed: what is there now is shown (test_frame_for_request)."""
WAYS = {
    "identify": (["read"], {}),
    "otp": (["read", "code"], {"code": "000000"}),
    "sign": (["place", "password"], {"password": "una contraseña"}),
}
"""Steps from an init to the one that calls a route, and what is typed there."""


@pytest.mark.parametrize("path", WAYS)
async def test_every_code_of_a_step_is_told(
    site: FrameSite, person: TestPerson, page: Page, path: str
) -> None:
    """Whatever a step is answered, it is said, and it goes on from there."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    way, fields = WAYS[path]
    if path == "sign":
        await ceremony.read(frame)
        await ceremony.give_code(frame, person)
    for step in way:
        await ceremony.at(frame, step)
        if step != way[-1]:
            await ceremony.go(frame)
    turns, told = [], []
    for code in ANSWERS:
        if path == "sign" and code.value in ASKED_FOR | FAILS | READ_ANEW:
            continue
        unknown = path == "identify" and code is ErrorCode.IDENTITY_MISMATCH
        # What was asked for with that key is settled: another key goes on.
        conflict = path == "otp" and code is ErrorCode.IDEMKEY_CONFLICT
        anew = {"idemKey": "another key"} if conflict else {}
        payload = {**init, **anew, "nonce": f"after {code}"}
        again = {"type": "svc.init", "payload": payload}
        turn = turn_of(
            code,
            typed=True,
            back="Volver" if unknown else "",
            again=again if conflict or code.value in ENDS else None,
        )
        if conflict:
            turn = replace(turn, wanted="Todavía no se puede seguir")
        turns.append(replace(turn, wanted="No te encontramos") if unknown else turn)
        if code.value not in MENDED_HERE and not unknown:
            told.append(code)
    await answer_each(frame, path, site.origin, turns, way, fields)

    await told_to_the_host(site, page, told)


async def test_code_that_ends_a_signature_is_told(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The document cannot be signed: it is said, and stays so until a reload."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    _, fields = WAYS["sign"]
    told = [ErrorCode(code) for code in sorted(FAILS)]
    for count, code in enumerate(told, 1):
        await ceremony.at(frame, "place")
        await ceremony.go(frame)
        await ceremony.at(frame, "password")
        await answer_each(frame, "sign", site.origin, [turn_of(code)], [], fields)
        await told_to_the_host(site, page, told[:count])
        await ceremony.at(frame, "failed")
        # To the page the same init says nothing new; after a reload it does.
        await frame.evaluate("location.reload()")
        await site.wait(page, "ready", 1 + count)
        await site.send(page, "init", {**init, "nonce": f"after {code}"})
        await ceremony.read(frame)
    await ceremony.at(frame, "place")

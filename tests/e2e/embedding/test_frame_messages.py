"""The conversation between host and frame: order, envelope, origins, repetition.

Source: spec "Events", "Browser messages"; decisions "Iframe".
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.lent_person import lend
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, until
from tests.support.browsers.frame_host import FrameSite, file_of, user_data
from tests.support.browsers.host_page import HostPage
from tests.support.documents import pdfs

PDF = pdfs.one_page()
OTHER = pdfs.pages(3)
FORGE_INIT = """([host, init, target]) =>
  window[host].frames[0].postMessage({ type: "svc.init", payload: init }, target)"""
"""Sent by a window that is not the frame's parent."""


async def not_heard(site: FrameSite, page: Page) -> None:
    """Check that nothing sent so far was heard: what is sent now is answered first."""
    await site.send(page, "load.file", file_of(PDF))

    assert (await site.wait(page, "error"))["code"] == "HANDSHAKE_REQUIRED"
    assert await site.types(page) == ["svc.ready", "svc.error"]


async def test_messages_keep_the_order_of_the_contract(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Ready, ack after init, completed after the signature, and nothing else."""
    await site.open(page, person)
    await site.send(page, "load.file", file_of(PDF))
    await ceremony.whole(site.frame(page), person)
    await site.wait(page, "signature.completed")

    assert await site.types(page) == [
        "svc.ready",
        "svc.handshake.ack",
        "svc.signature.completed",
    ]


async def test_envelope_is_type_and_payload_from_the_iframe_origin(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Each message is `{type, payload}`, an object, from {iframe_url}."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    messages = await site.log(page)

    assert all(isinstance(message["payload"], dict) for message in messages)
    assert all(message["type"].startswith("svc.") for message in messages)
    assert {message["origin"] for message in messages} == {site.iframe_url}


async def test_ready_comes_once_and_tells_no_secret(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """`svc.ready` is said once, and neither token nor key is in any message."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    told = str(await site.log(page))

    assert len(await site.payloads(page, "ready")) == 1
    assert init["sessionToken"] not in told
    assert site.key not in told


async def test_token_leaves_the_address_of_the_frame(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Neither the frame's address nor its requests carry the token on."""
    later: list[str] = []
    await site.visit(page)
    token = site.token()
    await site.mount(page, token)
    await site.wait(page, "ready")
    page.on("request", lambda request: later.append(request.url))
    await site.send(page, "init", site.init(token, person, autoLoadFile=file_of(PDF)))
    await site.wait(page, "document.loaded")

    frame = site.frame(page)
    assert "sessionToken" not in frame.url
    assert await frame.evaluate("location.search") == f"?s={frame.url.split('=')[1]}"
    assert later
    assert not [url for url in later if token in url]


async def test_init_before_ready_is_answered(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A host that begins on `onload`, or sooner, is acked once the frame is ready."""
    await site.visit(page)
    token = site.token()
    await page.evaluate(
        """([src, payload, target]) => {
          const frame = mount(src);
          // `onload` is when the document has come; its modules may be on the way.
          frame.addEventListener("load", () =>
            frame.contentWindow.postMessage({ type: "svc.init", payload }, target));
        }""",
        [site.src(token), site.init(token, person), site.iframe_url],
    )

    await site.wait(page, "handshake.ack")
    assert (await site.types(page))[0] == "svc.ready"


async def test_init_while_modules_load_is_kept(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """What comes before the page's modules have come is judged when they have."""
    sent = asyncio.Event()

    async def late(route: Any) -> None:
        await sent.wait()
        await route.continue_()

    await page.route("**/main.js", late)
    await site.visit(page)
    token = site.token()
    await site.mount(page, token)
    inside = page.frame_locator("iframe").locator("#title")
    await inside.wait_for(state="attached")
    await site.send(page, "init", site.init(token, person))
    sent.set()

    await site.wait(page, "handshake.ack")
    assert await site.types(page) == ["svc.ready", "svc.handshake.ack"]


async def test_same_init_again_is_acked_and_changes_nothing(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Hosts retry with new nonces: each is answered, the document stays open."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    await site.send(page, "init", init)
    await site.send(page, "init", {**init, "nonce": "another one"})
    await site.wait(page, "handshake.ack", 3)
    # Had an init loaded its document again, that one would be there before this one.
    await site.send(page, "load.file", {**file_of(PDF), "fileName": "después.pdf"})
    await site.wait(page, "document.loaded", 2)

    loaded = await site.payloads(page, "document.loaded")
    assert [one["fileName"] for one in loaded][1:] == ["después.pdf"]
    assert await site.errors(page) == []


async def test_new_content_before_authorising_replaces(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Another document in a later init is the one that is shown."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await site.wait(page, "document.loaded")
    changed = {**init, "nonce": "n2", "autoLoadFile": file_of(OTHER, "otro.pdf")}
    await site.send(page, "init", changed)

    loaded = await site.wait(page, "document.loaded", 2)
    assert loaded["fileName"] == "otro.pdf"
    assert loaded["pages"] == 3
    assert len(await site.payloads(page, "handshake.ack")) == 2


async def test_new_content_after_authorising_is_session_in_use(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """It is acked, as every valid init, and refused: what is being signed stays."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    changes: tuple[dict[str, Any], ...] = (
        {"autoLoadFile": file_of(OTHER)},
        {"idemKey": "another key"},
        {"userData": {**user_data(person), "name": "Otra"}},
    )
    for count, change in enumerate(changes, start=1):
        await site.send(page, "init", {**init, **change})

        error = await site.wait(page, "error", count)
        assert error["code"] == "SESSION_IN_USE", change
        assert len(await site.payloads(page, "handshake.ack")) == 1 + count
        await ceremony.at(frame, "place")


async def test_load_file_after_authorising_is_session_in_use(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The document that is being authorised cannot be swapped."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    await site.send(page, "load.file", file_of(OTHER))

    assert (await site.wait(page, "error"))["code"] == "SESSION_IN_USE"
    assert len(await site.payloads(page, "document.loaded")) == 1


async def test_load_file_before_the_ack_loads_nothing(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The document stays unloaded and the host is told HANDSHAKE_REQUIRED."""
    token = await site.ready(page)
    await site.send(page, "load.file", file_of(PDF))

    assert (await site.wait(page, "error"))["code"] == "HANDSHAKE_REQUIRED"
    await site.send(page, "init", site.init(token, person))
    await site.wait(page, "handshake.ack")
    await ceremony.at(site.frame(page), "pick")
    assert await site.payloads(page, "document.loaded") == []


async def test_load_file_replaces_the_document(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """After the ack a document is loaded, and another one takes its place."""
    await site.open(page, person)
    await site.send(page, "load.file", file_of(PDF))
    await site.wait(page, "document.loaded")
    await site.send(page, "load.file", file_of(OTHER, "otro.pdf"))

    loaded = await site.wait(page, "document.loaded", 2)
    assert loaded["fileName"] == "otro.pdf"
    await ceremony.at(site.frame(page), "read")
    assert await site.frame(page).locator("h1").inner_text() == "otro.pdf"


NOT_BASE64 = [
    "JVBERi0x\nLjcK",
    "JVBERi0xLjcK=",
    "JVBERi0xLjc",
    "JVBERi0x LjcK",
    "JVBERi0_",
    "JVBE=i0xLjcK",
    "JVBE====",
    "JVBERi0xLjcK!",
    "JVBERi0xLjcK\0\0\0\0",
    "JVBERi0xLjcñ",
    "QR==",
    "",
]
"""What is no Base64, or none of anything."""


@dataclass(frozen=True, slots=True)
class Connected:
    """A frame that was acked and has no document: one that is refused leaves it so."""

    site: FrameSite
    page: Page
    init: dict[str, Any]

    async def give(self, way: str, file: dict[str, str]) -> dict[str, Any]:
        """Send a document that is refused, by either message; the error."""
        earlier = len(await self.site.payloads(self.page, "error"))
        if way == "autoLoadFile":
            key = {"idemKey": f"key {earlier}", "autoLoadFile": file}
            await self.site.send(self.page, "init", {**self.init, **key})
        else:
            await self.site.send(self.page, "load.file", file)
        return await self.site.wait(self.page, "error", earlier + 1)


@pytest.fixture(scope="module")
async def connected(
    appliance: Appliance, people: dict[Appliance, TestPerson], chromium: Browser
) -> AsyncIterator[Connected]:
    """A connected frame that tests share."""
    opener = Opener(chromium, None)
    with HostPage() as host:
        site = FrameSite(appliance, host)
        page = await opener()
        init = await site.open(page, lend(appliance, people))
        yield Connected(site, page, init)
        assert await site.payloads(page, "document.loaded") == []
        await opener.close()
    opener.watch.check()


@pytest.mark.parametrize("way", ["autoLoadFile", "load.file"])
async def test_data_prefix_is_base64_invalid(connected: Connected, way: str) -> None:
    """A `data:` prefix is told, whichever way the document came; nothing loads."""
    wrong = file_of(PDF)
    wrong["base64"] = f"data:application/pdf;base64,{wrong['base64']}"
    site, page = connected.site, connected.page

    error = await connected.give(way, wrong)
    assert error["code"] == "BASE64_INVALID"
    assert error["field"] == ("base64" if way == "load.file" else f"{way}.base64")
    assert await site.payloads(page, "document.loaded") == []


async def test_base64_is_read_strictly(connected: Connected) -> None:
    """Blanks, other alphabets, wrong padding, junk and stray bits are all refused."""
    for base64 in NOT_BASE64:
        told = await connected.give("load.file", {**file_of(PDF), "base64": base64})
        assert told["code"] == ("BASE64_INVALID" if base64 else "DOCUMENT_EMPTY")
    assert await connected.site.payloads(connected.page, "document.loaded") == []


async def test_other_mime_is_refused(connected: Connected) -> None:
    """Only application/pdf is taken."""
    told = await connected.give("load.file", {**file_of(PDF), "mime": "image/png"})

    assert told["code"] == "MIME"


@pytest.mark.parametrize("way", ["autoLoadFile", "load.file"])
async def test_name_of_a_document_is_refused_at_its_field(
    connected: Connected, way: str
) -> None:
    """The service does not see the message; the frame says which field it was."""
    file = {**file_of(PDF), "fileName": "../contrato.pdf"}

    error = await connected.give(way, file)
    prefix = "autoLoadFile." if way == "autoLoadFile" else ""
    assert (error["code"], error["field"]) == ("FILENAME", f"{prefix}fileName")


async def test_document_that_cannot_be_signed_is_told(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The sandbox's verdict reaches the host with the REST API's own code."""
    await site.open(page, person, autoLoadFile=file_of(b"<html>not a pdf</html>"))

    error = await site.wait(page, "error")
    assert error["code"] == "PDF_MALFORMED"
    assert error.keys() >= {"code", "message", "category", "retryable", "requestId"}
    await ceremony.at(site.frame(page), "refused")


async def test_sibling_frame_cannot_forge_init(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Of the right origin, but not the frame's parent: nobody answers."""
    token = await site.ready(page)
    site.host.put("/sibling", "<!doctype html><title>sibling</title>")
    await page.evaluate(
        """() => { const f = document.createElement("iframe"); f.name = "sibling";
                   f.src = "/sibling"; document.body.append(f);
                   return new Promise((done) => { f.onload = done; }); }"""
    )
    sibling = page.frame("sibling")
    assert sibling is not None
    await sibling.evaluate(
        FORGE_INIT, ["parent", site.init(token, person), site.iframe_url]
    )

    await not_heard(site, page)


async def test_popup_cannot_forge_init(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A window that the host opened reaches the frame, and is not heard."""
    token = await site.ready(page)
    site.host.put("/popup", "<!doctype html><title>popup</title>")
    async with page.expect_popup() as opened:
        await page.evaluate("void open('/popup')")
    popup = await opened.value
    await popup.evaluate(
        FORGE_INIT, ["opener", site.init(token, person), site.iframe_url]
    )

    await not_heard(site, page)


async def test_unknown_and_foreign_messages_are_ignored(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Other types, prefixes and shapes leave the frame as it was."""
    token = await site.ready(page)
    await page.evaluate(
        """(target) => {
          const deep = {}; let at = deep;
          for (let i = 0; i < 2000; i += 1) { at.a = {}; at = at.a; }
          for (const data of ["svc.init", null, 7, [], {}, { type: 3 },
               { type: "svc.unknown", payload: {} }, { type: "other.init" },
               { type: "svc.ready", payload: {} }, { type: "svc.constructor" },
               { type: "svc.__proto__" }, { type: "svc.cancel", payload: deep }])
            frames[0].contentWindow.postMessage(data, target);
        }""",
        site.iframe_url,
    )
    await site.send(page, "init", site.init(token, person))

    await site.wait(page, "handshake.ack")
    assert await site.types(page) == ["svc.ready", "svc.handshake.ack"]


@pytest.fixture(scope="module")
async def waiting(
    appliance: Appliance, chromium: Browser
) -> AsyncIterator[tuple[FrameSite, Page]]:
    """A frame that waits for an init: one that is not valid leaves it so."""
    opener = Opener(chromium, None)
    with HostPage() as host:
        site = FrameSite(appliance, host)
        page = await opener()
        await site.ready(page)
        yield site, page
        await opener.close()
    opener.watch.check()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nonce": None}, "nonce"),
        ({"sessionToken": None}, "sessionToken"),
        ({"userData": None}, "userData"),
        ({"userData": {"cuil": "20-26756539-3"}}, "userData.email"),
        ({"userData": {"email": "a@b.example"}}, "userData.cuil"),
        (
            {"userData": {"email": "a@b.example", "cuil": "20-26756539-2"}},
            "userData.cuil",
        ),
        ({"userData": {"email": "a@b.example", "dni": "123"}}, "userData.dni"),
        ({"idemKey": "x" * 200}, "idemKey"),
        ({"nonce": 7}, "nonce"),
    ],
)
async def test_init_that_is_not_valid_names_its_field(
    waiting: tuple[FrameSite, Page], changes: dict[str, Any], field: str
) -> None:
    """No ack; INIT_INVALID says which field."""
    site, page = waiting
    earlier = len(await site.payloads(page, "error"))
    good = {"userData": {"email": "a@b.example", "cuil": "20-26756539-3"}}
    token = site.token()
    await site.send(page, "init", site.init(token, None, **{**good, **changes}))

    error = await site.wait(page, "error", earlier + 1)
    assert (error["code"], error.get("field")) == ("INIT_INVALID", field)
    assert await site.payloads(page, "handshake.ack") == []


async def test_api_key_in_init_is_refused_and_administrators_are_warned(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """The key goes nowhere: not in any request of the page, only that it came."""
    page = await open_page()
    sent: list[str] = []
    page.on("request", lambda r: sent.append(f"{r.url} {r.post_data or ''}"))
    token = await site.ready(page)
    await site.send(page, "init", site.init(token, person, apiKey=site.key))

    assert (await site.wait(page, "error"))["code"] == "LEGACY_CREDENTIALS"
    # The whole of a right handshake comes after it.
    await site.send(page, "init", site.init(token, person))
    await site.wait(page, "handshake.ack")
    await until(lambda: "integrator.legacy_credentials" in site.audit())
    assert not [line for line in sent if site.key in line]


async def test_integrator_id_beside_the_token_is_ignored(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A host that still sends the older field connects."""
    await site.open(page, person, integratorId=site.code)

    assert await site.errors(page) == []


async def test_token_of_another_integrator_is_refused(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A token cannot be used past its own integrator's list of origins."""
    with HostPage() as other_host:
        other = FrameSite(site.appliance, other_host)
        stolen = other.token()
    await site.visit(page)
    await site.mount(page, site.token())
    await site.wait(page, "ready")
    await site.send(page, "init", site.init(stolen, person))

    error = await site.wait(page, "error")
    assert (error["code"], error["field"]) == ("INIT_INVALID", "sessionToken")


async def test_reload_of_the_frame_takes_up_the_work(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """After a reload the same init restores the document and the proven signer."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    await frame.evaluate("location.reload()")
    await site.wait(page, "ready", 2)
    await site.send(page, "init", {**init, "nonce": "after the reload"})

    frame = site.frame(page)
    # Drawn anew, it is read anew.
    await ceremony.read(frame)
    await ceremony.choose_place(frame)
    await ceremony.sign(frame, person)
    await site.wait(page, "signature.completed")
    assert len(site.requests(person)) == 1

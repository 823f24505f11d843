"""Hosts as they are: impatient, repeating, mounting twice; and what goes wrong.

Source: spec "Errors"; decisions "repeated init".
"""

from collections.abc import Iterator

import pytest
from playwright.async_api import Page, expect

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, until
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.browsers.host_page import HostPage, Reply
from tests.support.documents import pdfs
from tests.support.processes.second_embed_role import second_frame

PDF = pdfs.one_page()


async def test_host_that_repeats_with_new_nonces_until_acked_gets_one_signature(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """300 ms after mount and every 500 ms, as hosts without `ready` do."""
    token = site.token()
    init = site.init(token, person, autoLoadFile=file_of(PDF))
    await site.visit(page)
    await page.evaluate(
        """([src, init, target]) => {
          const frame = mount(src);
          const acked = () => log.some((m) => m.type === "svc.handshake.ack");
          const say = () => {
            if (acked()) return;
            const payload = { ...init, nonce: crypto.randomUUID() };
            // Until the frame has its origin the browser drops this with a warning.
            frame.contentWindow.postMessage({ type: "svc.init", payload }, target);
            setTimeout(say, 500);
          };
          setTimeout(say, 300);
        }""",
        [site.src(token), init, site.iframe_url],
    )
    await site.wait(page, "handshake.ack")
    await ceremony.whole(site.frame(page), person)
    await site.wait(page, "signature.completed")

    assert site.states(person) == ["firmada"]
    assert len(await site.payloads(page, "document.loaded")) == 1
    assert await site.errors(page) == []


async def test_host_that_starts_on_load_gets_one_signature(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """`onload` instead of `ready`."""
    token = site.token()
    init = site.init(token, person, autoLoadFile=file_of(PDF))
    await site.visit(page)
    await page.evaluate(
        """([src, payload, target]) => {
          const frame = mount(src);
          frame.addEventListener("load", () =>
            frame.contentWindow.postMessage({ type: "svc.init", payload }, target));
        }""",
        [site.src(token), init, site.iframe_url],
    )
    await site.wait(page, "handshake.ack")
    await ceremony.whole(site.frame(page), person)
    await site.wait(page, "signature.completed")

    assert site.states(person) == ["firmada"]


@pytest.mark.parametrize("keep", [True, False], ids=["both stay", "first removed"])
async def test_host_that_mounts_twice_gets_one_signature(
    site: FrameSite, person: TestPerson, page: Page, *, keep: bool
) -> None:
    """The second frame takes the session over; the first cannot sign with it."""
    token = site.token()
    init = site.init(token, person, autoLoadFile=file_of(PDF))
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "ready")
    await site.send(page, "init", init)
    await site.wait(page, "handshake.ack")
    await site.wait(page, "document.loaded")
    if not keep:
        await page.evaluate("frames[0].remove()")
    await site.mount(page, token)
    await site.wait(page, "ready", 2)
    await site.send(page, "init", {**init, "nonce": "second mount"})
    await site.wait(page, "handshake.ack", 2)
    if keep:
        first = site.frame(page, 0)
        await ceremony.at(first, "read")
        await ceremony.go(first)
        await ceremony.at(first, "blocked")
        await expect(first.locator("#panel")).to_contain_text("Seguí en esa ventana.")
        # The frame shows it before its message has come to the page.
        await site.wait(page, "error")
        assert await site.errors(page) == ["SESSION_SUPERSEDED"]
    await ceremony.whole(site.frame(page), person)
    await site.wait(page, "signature.completed")

    assert site.states(person) == ["firmada"]


@pytest.fixture(scope="module")
def renamed_frame(appliance: Appliance) -> Iterator[str]:
    """A frame whose messages have another prefix."""
    with second_frame(appliance, event_prefix="firma-sur") as url:
        yield url


async def test_host_under_another_prefix_gets_one_signature(
    appliance: Appliance,
    renamed_frame: str,
    host: HostPage,
    person: TestPerson,
    page: Page,
) -> None:
    """The prefix is a setting, and the same everywhere."""
    site = FrameSite(appliance, host, prefix="firma-sur", iframe_url=renamed_frame)
    init = await site.open(page, person)
    await site.send(page, "load.file", file_of(PDF))
    await ceremony.whole(site.frame(page), person)
    completed = await site.wait(page, "signature.completed")

    assert completed["idemKey"] == init["idemKey"]
    assert await site.types(page) == [
        "firma-sur.ready",
        "firma-sur.handshake.ack",
        "firma-sur.signature.completed",
    ]


async def test_two_integrators_have_each_their_prefix(
    appliance: Appliance, host: HostPage, person: TestPerson, open_page: Opener
) -> None:
    """In one installation, at one frame: both people sign, neither hears the other."""
    other_person = appliance.new_person()
    with HostPage() as other_host:
        one = FrameSite(appliance, host, prefix="firma-sur")
        two = FrameSite(appliance, other_host, prefix="rubricar")
        for site, who in ((one, person), (two, other_person)):
            site.set_prefix(site.prefix)
            page = await open_page()
            await site.open(page, who, autoLoadFile=file_of(PDF))
            await ceremony.whole(site.frame(page), who)
            await site.wait(page, "signature.completed")
            prefixes = {kind.partition(".")[0] for kind in await site.types(page)}
            assert prefixes == {site.prefix}
            assert site.states(who) == ["firmada"]


@pytest.mark.parametrize("mistake", ["prefix", "text"])
async def test_init_that_is_not_heard_is_warned_of_once(
    site: FrameSite, person: TestPerson, open_page: Opener, mistake: str
) -> None:
    """Another prefix, or JSON as text: the browser's console says what is wanted."""
    page = await open_page()
    token = await site.ready(page)
    init = site.init(token, person)
    kind = "acme.init" if mistake == "prefix" else "svc.init"
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text))
    for _ in range(2):
        await page.evaluate(
            """([type, payload, asText, target]) => {
              const init = { type, payload };
              const data = asText ? JSON.stringify(init) : init;
              frames[0].contentWindow.postMessage(data, target);
            }""",
            [kind, init, mistake == "text", site.iframe_url],
        )
    await site.send(page, "init", init)
    await site.wait(page, "handshake.ack")

    warned = [line for line in said if "svc.init" in line]
    assert len(warned) == 1
    assert token not in warned[0]


async def test_host_that_isolates_itself_can_embed_the_frame(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A page with COOP and COEP frames only what is isolated too: the frame is."""
    site.host.on("GET", "/isolated", lambda _: _isolated(site))
    await page.goto(site.host.url("/isolated"))
    assert await page.evaluate("crossOriginIsolated")
    token = site.token()
    await site.mount(page, token)
    await site.wait(page, "ready")
    init = site.init(token, person, autoLoadFile=file_of(PDF))
    await site.send(page, "init", init)

    # pdf.js runs in a worker, which has to be isolated as well.
    await site.wait(page, "document.loaded")
    assert await site.frame(page).locator(".page canvas").count() == 1


def _isolated(site: FrameSite) -> Reply:
    headers = {
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Embedder-Policy": "require-corp",
    }
    return Reply(site.page().encode(), headers=headers)


async def test_unregistered_domain_is_blocked_and_noted(
    appliance: Appliance, host: HostPage, open_page: Opener
) -> None:
    """The frame does not load, and the integrator's list names who tried."""
    site = FrameSite(appliance, host, register=False)
    page = await open_page()
    await site.visit(page)
    await site.mount(page, site.token())
    await until(lambda: "frame-ancestors" in "".join(open_page.watch.console))

    # The browser has thrown the answer away: nothing is left that could speak.
    assert site.blocked() == [site.origin]
    assert await site.log(page) == []


async def test_another_port_of_a_registered_host_is_blocked(
    site: FrameSite, open_page: Opener
) -> None:
    """Origins are exact: scheme, host and port."""
    with HostPage() as elsewhere:
        elsewhere.put("/", site.page())
        page = await open_page()
        await page.goto(elsewhere.url())
        await site.mount(page, site.token())
        await until(lambda: "frame-ancestors" in "".join(open_page.watch.console))

        assert site.blocked() == [elsewhere.origin()]
        assert await site.log(page) == []


async def test_registered_domain_is_seen(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A page that may show the frame is noted as seen."""
    await site.open(page, person)

    assert site.seen() == [site.origin]


async def test_policy_of_the_host_keeps_ready_away(
    site: FrameSite, open_page: Opener
) -> None:
    """A Content-Security-Policy of the host blocks the frame: no `ready` comes."""
    site.host.put(
        "/strict", site.page(), policy="frame-src 'none'; script-src 'unsafe-inline'"
    )
    page = await open_page()
    await page.goto(site.host.url("/strict"))
    await site.mount(page, site.token())
    await until(lambda: open_page.watch.violations)

    open_page.watch.expect_violation("frame-src")
    assert await site.log(page) == []


async def test_wrong_target_origin_gets_no_handshake(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A message to another origin than the iframe's never arrives."""
    token = await site.ready(page)
    wrong = site.iframe_url.replace("localhost", "127.0.0.1")
    await site.send(page, "init", site.init(token, person), wrong)
    # What is sent later and answered shows that the first was not heard.
    await site.send(page, "load.file", file_of(PDF))

    assert (await site.wait(page, "error"))["code"] == "HANDSHAKE_REQUIRED"
    assert await site.types(page) == ["svc.ready", "svc.error"]


async def test_expired_token_is_told_inside_and_outside(
    site: FrameSite, open_page: Opener
) -> None:
    """HTTP 401, `svc.ready`, `svc.error` SESSION_TOKEN_EXPIRED, words for people."""
    page = await open_page()
    token = site.token()
    site.expire(token)
    statuses: list[int] = []
    page.on(
        "response",
        lambda r: statuses.append(r.status) if "/embed/?" in r.url else None,
    )
    await site.visit(page)
    await site.mount(page, token)

    error = await site.wait(page, "error")
    assert statuses == [401]
    assert error["code"] == "SESSION_TOKEN_EXPIRED"
    assert error["category"] == "new_session"
    assert (await site.types(page))[0] == "svc.ready"
    title = page.frame_locator("iframe").locator("h1")
    await expect(title).to_have_text("La sesión terminó")


async def test_new_token_revives_a_frame_that_opened_expired(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The host asks its backend for another token and sends init: it connects.

    What it sent on `ready` is not told a second time what the frame said by itself.
    """
    token = site.token()
    site.expire(token)
    await site.visit(page)
    await site.mount(page, token)
    await site.wait(page, "error")
    async with page.expect_response("**/embed/api/init"):
        await site.send(page, "init", site.init(token, person))
    fresh = site.init(site.token(), person, autoLoadFile=file_of(PDF))
    await site.send(page, "init", fresh)

    await site.wait(page, "handshake.ack")
    await site.wait(page, "document.loaded")
    assert await site.errors(page) == ["SESSION_TOKEN_EXPIRED"]


async def test_unknown_token_shows_words_and_runs_no_script(
    site: FrameSite, page: Page
) -> None:
    """Anybody may frame it: there is nothing in it, and it says nothing."""
    await site.visit(page)
    await site.mount(page, "A" * 43)
    title = page.frame_locator("iframe").locator("h1")

    await expect(title).to_have_text("Esta sesión no existe")
    # Without a script it cannot speak, now or later.
    assert await site.frame(page).locator("script").count() == 0
    assert await site.log(page) == []

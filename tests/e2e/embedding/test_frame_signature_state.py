"""One signature and the truth about it: expiry, renewal, repetition, lost networks.

Source: decisions "no idemKey", "expired or unknown token"; research 4.10.
"""

import asyncio

import pytest
from playwright.async_api import Page, Route, expect

from appliance.domain.errors import ErrorCode, RequestFailedError
from appliance.web import problems
from tests.support.appliance.appliance import TestPerson
from tests.support.browsers import ceremony
from tests.support.browsers.browsers import Opener, until
from tests.support.browsers.frame_host import FrameSite, file_of
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import execute

PDF = pdfs.one_page()
OTHER = pdfs.pages(2)


async def reach(site: FrameSite, page: Page, person: TestPerson, step: str) -> None:
    """Go on with the ceremony until a step is on the screen."""
    frame = site.frame(page)
    await ceremony.read(frame)
    await ceremony.at(frame, "code")
    if step == "code":
        return
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "place")
    if step == "password":
        await ceremony.go(frame)
        await ceremony.at(frame, "password")


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("read", marks=pytest.mark.long),
        "code",
        pytest.param("place", marks=pytest.mark.long),
        "password",
    ],
)
async def test_token_that_ends_meanwhile_is_renewed_and_work_is_kept(
    site: FrameSite, person: TestPerson, page: Page, step: str
) -> None:
    """Expired at any step: told, renewed by the host, signed to the end."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    if step != "read":
        await reach(site, page, person, step)
    else:
        await ceremony.at(frame, "read")
    site.expire(init["sessionToken"])
    if step == "code":
        await frame.fill("#code", person.totp.now())
    if step == "password":
        await frame.fill("#password", person.signing_password)
    await ceremony.go(frame)
    assert (await site.wait(page, "error"))["code"] == "SESSION_TOKEN_EXPIRED"
    await ceremony.at(frame, "blocked")
    await site.send(page, "session.renew", {"sessionToken": site.token()})
    if step in {"read", "code"}:
        await ceremony.read(frame)
        await ceremony.give_code(frame, person)
    await ceremony.choose_place(frame)
    await ceremony.sign(frame, person)
    await site.wait(page, "signature.completed")

    assert site.states(person) == ["firmada"]


async def test_init_with_an_expired_token_is_not_acked(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Expired between ready and init: an error instead of the ack."""
    token = await site.ready(page)
    site.expire(token)
    await site.send(page, "init", site.init(token, person))

    assert (await site.wait(page, "error"))["code"] == "SESSION_TOKEN_EXPIRED"
    assert await site.payloads(page, "handshake.ack") == []


async def test_end_of_the_session_is_announced(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """At one minute from the end host and signer are told; a renewal ends that."""
    token = await site.ready(page)
    site.expire(token, seconds_left=62)
    await site.send(page, "init", site.init(token, person))
    told = await site.wait(page, "session.expiring")
    if told["secondsLeft"] > 60:
        told = await site.wait(page, "session.expiring", 2)

    # Less where opening it took longer than the two seconds before that minute.
    assert 0 < told["secondsLeft"] <= 60
    frame = site.frame(page)
    await expect(frame.locator("#notice")).to_have_text(
        "Te queda 1 minuto para firmar."
    )
    await site.send(page, "session.renew", {"sessionToken": site.token()})
    await expect(frame.locator("#notice")).to_be_hidden()


async def test_session_that_ends_soon_is_announced_at_once(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Less than five minutes are left when the frame opens: told then, and how much."""
    token = await site.ready(page)
    site.expire(token, seconds_left=200)
    await site.send(page, "init", site.init(token, person))

    told = await site.wait(page, "session.expiring")
    assert 60 < told["secondsLeft"] <= 200
    await expect(site.frame(page).locator("#notice")).to_contain_text("minutos")


async def test_signature_that_was_submitted_ends_after_the_token_did(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """What was begun in time is finished and told, though the time is over."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)

    async def expire_first(route: Route) -> None:
        answer = await route.fetch()
        await asyncio.to_thread(site.expire, init["sessionToken"])
        del answer
        await route.abort()

    await page.route("**/embed/api/sign", expire_first)
    await ceremony.whole(frame, person)
    completed = await site.wait(page, "signature.completed")

    assert completed["delivery"]["fileBase64"]


async def test_used_token_cannot_renew(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A session that another frame opened is not taken over by a renewal."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    other = await page.context.new_page()
    elsewhere = await site.open(other, person)
    await site.send(page, "session.renew", {"sessionToken": elsewhere["sessionToken"]})

    assert (await site.wait(page, "error"))["code"] == "SESSION_IN_USE"


async def test_double_click_makes_one_signature(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Two presses of the button are one."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await reach(site, page, person, "password")
    await frame.fill("#password", person.signing_password)
    await frame.locator("#bar .primary").dblclick()
    await site.wait(page, "signature.completed")

    assert site.states(person) == ["firmada"]
    (request,) = [number for number, _ in site.requests(person)]
    assert len(site.appliance.intents(request)) == 1


async def test_two_tabs_with_one_key_make_one_signature(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Two sessions, one idempotency key: the same request, the same event."""
    one, two = await open_page(), await open_page()
    init = await site.open(one, person, autoLoadFile=file_of(PDF))
    await site.open(two, person, autoLoadFile=file_of(PDF), idemKey=init["idemKey"])
    await reach(site, one, person, "password")
    await ceremony.sign(site.frame(one), person)
    first = await site.wait(one, "signature.completed")
    await ceremony.read(site.frame(two))
    await site.next_code(person)
    await ceremony.give_code(site.frame(two), person)
    second = await site.wait(two, "signature.completed")

    assert second["eventId"] == first["eventId"]
    assert second["document"] == first["document"]
    assert site.states(person) == ["firmada"]


async def test_two_tabs_that_sign_at_once_make_one_signature(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Both are past the code when the first one signs, at another place."""
    one, two = await open_page(), await open_page()
    init = await site.open(one, person, autoLoadFile=file_of(PDF))
    await site.open(two, person, autoLoadFile=file_of(PDF), idemKey=init["idemKey"])
    await reach(site, one, person, "password")
    await ceremony.read(site.frame(two))
    await site.next_code(person)
    await ceremony.give_code(site.frame(two), person)
    await ceremony.choose_place(site.frame(two), "topRight")
    await asyncio.gather(
        ceremony.sign(site.frame(one), person), ceremony.sign(site.frame(two), person)
    )
    first = await site.wait(one, "signature.completed")
    second = await site.wait(two, "signature.completed")

    assert second["eventId"] == first["eventId"]
    assert site.states(person) == ["firmada"]


async def test_key_of_a_rejected_document_signs_nothing(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """A later session with the key shows the refusal, and tells the host again."""
    one, two = await open_page(), await open_page()
    init = await site.open(one, person, autoLoadFile=file_of(PDF))
    await reach(site, one, person, "place")
    await site.frame(one).get_by_role("button", name="Rechazar…").click()
    await ceremony.refuse(site.frame(one))
    await site.wait(one, "rejected")
    await site.open(two, person, autoLoadFile=file_of(PDF), idemKey=init["idemKey"])
    await ceremony.read(site.frame(two))
    await site.next_code(person)
    await ceremony.give_code(site.frame(two), person)

    assert await site.wait(two, "rejected") == {"idemKey": init["idemKey"]}
    await ceremony.at(site.frame(two), "rejected")
    assert site.states(person) == ["rechazada"]


async def test_document_that_was_rejected_in_another_tab_is_not_signed(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """Who comes to the password there is shown the refusal, and no error."""
    one, two = await open_page(), await open_page()
    init = await site.open(one, person, autoLoadFile=file_of(PDF))
    await site.open(two, person, autoLoadFile=file_of(PDF), idemKey=init["idemKey"])
    await reach(site, one, person, "password")
    await ceremony.read(site.frame(two))
    await site.next_code(person)
    await ceremony.give_code(site.frame(two), person)
    await ceremony.at(site.frame(two), "place")
    await site.frame(two).get_by_role("button", name="Rechazar…").click()
    await ceremony.refuse(site.frame(two))
    await site.wait(two, "rejected")
    await ceremony.sign(site.frame(one), person)

    assert await site.wait(one, "rejected") == {"idemKey": init["idemKey"]}
    assert site.states(person) == ["rechazada"]
    assert await site.errors(one) == []


async def test_same_key_with_another_file_is_a_conflict(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """The key stands for the document that it was first used with."""
    one, two = await open_page(), await open_page()
    init = await site.open(one, person, autoLoadFile=file_of(PDF))
    await ceremony.whole(site.frame(one), person)
    await site.wait(one, "signature.completed")
    await site.open(two, person, autoLoadFile=file_of(OTHER), idemKey=init["idemKey"])

    error = await site.wait(two, "error")
    assert (error["code"], error["field"]) == ("IDEMKEY_CONFLICT", "idemKey")
    assert site.states(person) == ["firmada"]


async def test_key_that_was_used_meanwhile_is_a_conflict_at_the_code(
    site: FrameSite, person: TestPerson, open_page: Opener
) -> None:
    """The same screen: no other code mends it, so none is asked for."""
    one, two = await open_page(), await open_page()
    init = await site.open(one, person, autoLoadFile=file_of(PDF))
    await site.open(two, person, autoLoadFile=file_of(OTHER), idemKey=init["idemKey"])
    frame = site.frame(two)
    await ceremony.at(frame, "read")
    await ceremony.whole(site.frame(one), person)
    await site.next_code(person)
    await ceremony.read(frame)
    await ceremony.give_code(frame, person)
    await ceremony.at(frame, "refused")

    error = await site.wait(two, "error")
    assert (error["code"], error["field"]) == ("IDEMKEY_CONFLICT", "idemKey")
    panel = frame.locator("#panel")
    await expect(panel).to_contain_text("Todavía no se puede seguir")
    await expect(panel).to_contain_text(f"Referencia: {error['requestId']}")
    await expect(frame.locator("#code")).to_have_count(0)
    await expect(frame.locator("#bar .primary")).to_have_count(0)


async def test_completed_is_told_again_with_the_same_event(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A repeated init after the signature, and a reload, replay the event."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    await ceremony.whole(site.frame(page), person)
    first = await site.wait(page, "signature.completed")
    await site.send(page, "init", {**init, "nonce": "again"})
    second = await site.wait(page, "signature.completed", 2)
    await site.frame(page).evaluate("location.reload()")
    await site.wait(page, "ready", 2)
    await site.send(page, "init", {**init, "nonce": "reloaded"})
    third = await site.wait(page, "signature.completed", 3)

    assert first["eventId"] == second["eventId"] == third["eventId"]
    assert first["document"] == third["document"]
    await ceremony.at(site.frame(page), "done")


async def test_session_without_key_omits_it(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """`idemKey` is in the event only when init had one."""
    await site.open(page, person, autoLoadFile=file_of(PDF), idemKey=None)
    await ceremony.whole(site.frame(page), person)

    assert "idemKey" not in await site.wait(page, "signature.completed")


async def test_answer_that_is_lost_is_asked_for_again(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A cut after the password was sent ends in the outcome, never in "failed"."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)

    async def cut(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/embed/api/sign", cut)
    await ceremony.whole(frame, person)
    await site.wait(page, "signature.completed")

    assert await site.errors(page) == []


async def test_call_that_never_arrived_leads_back_to_the_password(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Nothing was begun: the signer is told so and signs after all."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await page.route("**/embed/api/sign", lambda route: route.abort(), times=1)
    await reach(site, page, person, "password")
    await ceremony.sign(frame, person)
    await expect(frame.locator("#alert")).to_contain_text("No se firmó")
    await ceremony.sign(frame, person)
    await site.wait(page, "signature.completed")

    assert site.states(person) == ["firmada"]


async def test_upload_survives_a_cut(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The host's document is sent again when the network is back."""
    await page.route("**/embed/api/document", lambda route: route.abort(), times=2)
    await site.open(page, person, autoLoadFile=file_of(PDF))

    await site.wait(page, "document.loaded")
    assert await site.errors(page) == []


async def test_frame_that_is_removed_while_signing_leaves_a_signature(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """The host takes the frame away right after the password was sent."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await reach(site, page, person, "password")
    await ceremony.sign(site.frame(page), person)
    # As soon as the call has arrived: one that never left cannot sign.
    await reached(site, person, {"en_proceso", "firmada"})
    await page.evaluate("frames[0].remove()")

    await reached(site, person, {"firmada"})


async def reached(site: FrameSite, person: TestPerson, wanted: set[str]) -> None:
    """Wait until somebody's one request is in one of some states."""

    def is_reached() -> bool:
        states = {state for _, state in site.requests(person)}
        return bool(states) and states <= wanted

    await until(is_reached)


async def test_unsigned_request_of_a_session_is_over_with_it(
    site: FrameSite, page: Page
) -> None:
    """It is not listed to its signer, and becomes `vencida` at the session's end."""
    person = site.appliance.new_person()
    await site.open(page, person, autoLoadFile=file_of(PDF))
    await reach(site, page, person, "place")
    with site.appliance.client(person) as client:
        listed = client.get("/solicitudes").json()
    ((request, state),) = site.requests(person)
    assert state == "pendiente"
    assert listed == []

    site.end_request(request)
    await reached(site, person, {"vencida"})


@pytest.mark.parametrize("who", ["signer", "host"])
async def test_process_that_is_left_signs_and_rejects_nothing(
    site: FrameSite, person: TestPerson, page: Page, who: str
) -> None:
    """`svc.cancelled` says who left; the request goes on waiting."""
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await reach(site, page, person, "place")
    if who == "signer":
        await ceremony.leave(frame)
    else:
        await site.send(page, "cancel", {})

    assert await site.wait(page, "cancelled") == {"reason": who}
    await ceremony.at(frame, "cancelled")
    assert site.states(person) == ["pendiente"]


@pytest.mark.parametrize("step", ["read", "place", "password"])
async def test_signer_rejects_for_good(
    site: FrameSite, person: TestPerson, page: Page, step: str
) -> None:
    """Asked again, with a reason; `svc.rejected` tells it, and `rechazada`."""
    init = await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    if step == "read":
        await ceremony.at(frame, "read")
    else:
        await reach(site, page, person, step)
    await frame.get_by_role("button", name="Rechazar…").click()
    if step == "read":
        await ceremony.give_code(frame, person)
    await ceremony.at(frame, "reject")
    await frame.get_by_role("button", name="Volver").click()
    await ceremony.at(frame, step)
    assert site.states(person) == ["pendiente"]
    await frame.get_by_role("button", name="Rechazar…").click()
    await frame.get_by_label("Motivo (opcional)").fill("Falta el anexo")
    await ceremony.refuse(frame)

    assert await site.wait(page, "rejected") == {
        "idemKey": init["idemKey"],
        "reason": "Falta el anexo",
    }
    await ceremony.at(frame, "rejected")
    assert site.states(person) == ["rechazada"]
    assert await site.payloads(page, "cancelled") == []
    await frame.evaluate("location.reload()")
    await site.wait(page, "ready", 2)
    await site.send(page, "init", {**init, "nonce": "after the reload"})
    await ceremony.at(site.frame(page), "rejected")


async def test_revoked_key_ends_the_session(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """A key that is revoked takes its unfinished sessions along.

    One code stands for this and for time that ran out, and one sentence that is true.
    """
    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await ceremony.at(frame, "read")
    site.revoke()
    await ceremony.go(frame)
    await ceremony.at(frame, "blocked")

    await expect(frame.locator("#title")).to_have_text("La sesión terminó")
    why = "Se terminó su tiempo o la cerraron."
    await expect(frame.locator("#panel")).to_contain_text(why)
    assert (await site.wait(page, "error"))["code"] == "SESSION_TOKEN_EXPIRED"


async def test_request_that_failed_for_good_is_over_in_the_frame(
    site: FrameSite, person: TestPerson, page: Page
) -> None:
    """Its code else passes; nobody is sent back to the password, nor told to retry."""
    answer = problems.problem(RequestFailedError(ErrorCode.TSA_UNAVAILABLE), "r", "es")

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503, json=answer)

    await site.open(page, person, autoLoadFile=file_of(PDF))
    frame = site.frame(page)
    await reach(site, page, person, "password")
    execute(
        site.appliance,
        "UPDATE signature_request SET state = 'fallida', reason = 'TSA_UNAVAILABLE' "  # noqa: S608 (ours)
        f"WHERE person = '{person.id}'",
    )
    await page.route("**/embed/api/sign", refuse)
    await ceremony.sign(frame, person)

    await ceremony.at(frame, "failed")
    await expect(frame.locator("#panel")).to_contain_text("solicitud nueva")
    told = await site.wait(page, "error")
    assert (told["code"], told["category"]) == ("TSA_UNAVAILABLE", "terminal")
    assert told["retryable"] is False

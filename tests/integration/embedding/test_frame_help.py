"""A signer who cannot go on asks for help within the frame."""

from typing import Any

import pytest

from appliance.domain.vocab import EventKind, HelpTopic
from appliance.identity.help_requests import HelpDesk
from tests.support.installation.frame import Frame, problem


@pytest.fixture
def desk(frame: Frame) -> HelpDesk:
    """Where officers see requests."""
    services = frame.services.services
    return HelpDesk(services.store, services.clock)


async def test_matched_signer_asks_without_typing_who_they_are(
    frame: Frame, desk: HelpDesk
) -> None:
    """The session knows; the officer reads that no code came before."""
    someone = await frame.services.add_person()
    bearer, _ = await frame.opened()
    body = {"cuil": someone.cuil, "email": someone.email}
    assert (await frame.call("identify", bearer, body)).status_code == 200

    answer = await frame.call("help", bearer, {"topic": "phone"})

    assert (answer.status_code, await answer.get_json()) == (200, {})
    (shown,) = await desk.newest(9)
    assert (shown.person, shown.topic, shown.proven) == (
        someone.id,
        HelpTopic.PHONE,
        False,
    )
    assert shown.integrator_name is not None


async def test_right_code_before_it_is_told_to_the_officer(
    frame: Frame, desk: HelpDesk
) -> None:
    """Whoever forgot the password still has the phone."""
    someone = await frame.services.add_person()
    bearer, _ = await frame.opened()
    body = {"cuil": someone.cuil, "email": someone.email}
    await frame.call("identify", bearer, body)
    await frame.call("otp", bearer, {"code": frame.services.code(someone)})

    answer = await frame.call("help", bearer, {"topic": "password"})

    assert answer.status_code == 200
    (shown,) = await desk.newest(9)
    assert (shown.topic, shown.proven) == (HelpTopic.PASSWORD, True)
    (event,) = await frame.services.services.audited(EventKind.HELP_ASKED)
    assert event.actor == f"person:{someone.id}"


async def test_session_of_nobody_files_nothing(frame: Frame, desk: HelpDesk) -> None:
    """There is the public page for who is not known yet."""
    bearer, _ = await frame.opened()

    answer = await frame.call("help", bearer, {"topic": "phone"})

    assert await problem(answer) == (403, "IDENTITY_MISMATCH")
    assert await desk.newest(9) == []


@pytest.mark.parametrize("topic", ["", "PHONE", 7, None, "x" * 99])
async def test_topic_is_one_of_the_list(frame: Frame, topic: Any) -> None:
    """No text of the page's goes into a request."""
    bearer, _ = await frame.opened()

    answer = await frame.call("help", bearer, {"topic": topic})

    assert await problem(answer) == (400, "FIELD_INVALID")

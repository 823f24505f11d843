"""Documents that a session of the frame brings: one at a time, within its share."""

import asyncio
from typing import Any

from appliance.web.body import Budget
from tests.support.installation.console import PDF
from tests.support.installation.frame import Frame, problem

_NAME = {"X-File-Name": "a.pdf", "Content-Type": "application/pdf"}


def _begin(frame: Frame, bearer: str) -> Any:
    """An upload whose body has not come yet."""
    headers = {
        **_NAME,
        "Authorization": f"Bearer {bearer}",
        "Content-Length": str(len(PDF)),
    }
    return frame.client.request("/embed/api/document", method="POST", headers=headers)


async def _reading(budget: Budget) -> None:
    """Wait until a body is being read."""
    while not budget.held:  # noqa: ASYNC110 (a budget tells nobody)
        await asyncio.sleep(0)


async def test_one_document_at_a_time(frame: Frame) -> None:
    """A second one is refused before it is read; another session's is not."""
    bearer, _ = await frame.opened()
    other, _ = await frame.opened()
    async with _begin(frame, bearer) as first:
        await first.send(PDF[:5])
        await _reading(frame.app.extensions["rubrica.budget"])
        second = await frame.call("document", bearer, data=PDF, headers=_NAME)
        theirs = await frame.call("document", other, data=PDF, headers=_NAME)
        await first.send(PDF[5:])
        await first.send_complete()
    taken = await first.as_response()
    third = await frame.call("document", bearer, data=PDF, headers=_NAME)

    assert await problem(second) == (409, "IN_PROGRESS")
    assert [one.status_code for one in (theirs, taken, third)] == [200, 200, 200]
    assert frame.app.extensions["rubrica.budget"].held == 0


async def test_document_is_read_by_ranges(frame: Frame) -> None:
    """Page by page as it is needed; of no document but the one that the page knows."""
    bearer, _ = await frame.opened()
    taken = await frame.call("document", bearer, data=PDF, headers=_NAME)
    sha256 = (await taken.get_json())["document"]["sha256"]
    tagged = {"If-Range": f'"{sha256}"'}

    first = await frame.call("document", bearer, headers={"Range": "bytes=0-3"})
    rest = await frame.call("document", bearer, headers={"Range": "bytes=4-", **tagged})
    changed = await frame.call("document", bearer, data=PDF + b"\n", headers=_NAME)
    other = await frame.call(
        "document", bearer, headers={"Range": "bytes=4-", **tagged}
    )

    assert [first.status_code, rest.status_code, changed.status_code] == [206, 206, 200]
    parts = [await each.get_data(as_text=False) for each in (first, rest)]
    assert b"".join(parts) == PDF
    assert first.headers["ETag"] == rest.headers["ETag"] == tagged["If-Range"]
    assert first.headers["Content-Range"] == f"bytes 0-3/{len(PDF)}"
    # The whole of it, and by another tag: nothing is put together of two documents.
    assert other.status_code == 200
    assert other.headers["ETag"] != tagged["If-Range"]


async def test_session_and_integrator_hold_the_body(frame: Frame) -> None:
    """It counts as the session's and as its integrator's."""
    bearer, _ = await frame.opened()
    frame.app.extensions["rubrica.budget"] = budget = Budget(1000, 100)
    async with _begin(frame, bearer) as upload:
        await _reading(budget)
        held = dict(budget._held)
        await upload.send(PDF)
        await upload.send_complete()

    assert sorted(name.split()[0] for name in held) == ["integrator", "session"]
    assert set(held.values()) == {len(PDF)}

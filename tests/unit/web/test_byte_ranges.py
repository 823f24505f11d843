"""One range of a document: what is understood, and what is passed over."""

import pytest
from quart import Quart
from werkzeug.datastructures import Headers

from appliance.web import byte_ranges

SIZE = 1000
TAG = '"ab"'


async def offsets(value: str, method: str = "GET") -> tuple[int, int] | str | None:
    """What a header asks for of a document of `SIZE` bytes."""
    headers = Headers({"Range": value})
    async with Quart("ranges").test_request_context(
        "/", method=method, headers=headers
    ):
        wanted = byte_ranges.asked()
    return "whole" if wanted is None else wanted.within(SIZE)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-499", (0, 500)),
        ("bytes=500-", (500, 1000)),
        ("bytes=999-5000", (999, 1000)),
        ("bytes=-1", (999, 1000)),
        ("bytes=-5000", (0, 1000)),
        ("BYTES= 3-4 ", (3, 5)),
        ("bytes=0-999999999999999999", (0, 1000)),
    ],
)
async def test_range_is_cut_to_the_document(value: str, found: tuple[int, int]) -> None:
    """From an offset, up to one, or the last bytes."""
    assert await offsets(value) == found


@pytest.mark.parametrize("value", ["bytes=1000-", "bytes=1000-1001", "bytes=-0"])
async def test_range_past_the_end_has_no_byte(value: str) -> None:
    """It is refused, not passed over."""
    assert await offsets(value) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=5-4",
        "bytes=a-b",
        "bytes=+1-2",
        "bytes=\u0661-\u0662",
        "bytes=1-2-3",
        "bytes=0-1,3-4",
        "bytes=" + ",".join(f"{at}-{at}" for at in range(1000)),
        "bytes=0-1, ",
        "pages=1-2",
        "bytes=0-1000000000000000000",
        "bytes=" + " " * 9 + "0-1",
    ],
)
async def test_other_ranges_are_passed_over(value: str) -> None:
    """Several, another unit, malformed: the answer is the whole document."""
    assert await offsets(value) == "whole"


async def test_range_is_of_get_alone() -> None:
    """HEAD says how long the document is."""
    assert await offsets("bytes=0-1", "HEAD") == "whole"


@pytest.mark.parametrize(
    ("given", "holds"),
    [(None, True), (TAG, True), ('"cd"', False), (f"W/{TAG}", False)],
)
async def test_condition_is_the_strong_tag(given: str | None, *, holds: bool) -> None:
    """Of another document no part is given in the place of this one's."""
    headers = Headers({"If-Range": given} if given else {})
    async with Quart("ranges").test_request_context("/", headers=headers):
        assert byte_ranges.still_holds(TAG) is holds

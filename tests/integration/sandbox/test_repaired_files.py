"""Appended bytes that make a reader repair the file, or that only a repair finds.

Source: ISO 32000-2, 7.5.5 (/Size) and 7.5.8.
"""

import zlib
from collections.abc import Callable

import pytest

from appliance.domain.documents.verification import Answer
from tests.support.documents.pdf_revisions import Row, SignedFile
from tests.support.documents.signed_bases import base, makers
from worker.sandbox.verify.verify import verify


@pytest.mark.parametrize("name", ["B-B", "xref streams", "P1"])
@pytest.mark.parametrize(
    "trick", ["/Size too small", "unlisted object", "object in a stream"]
)
def test_what_a_repair_would_find_is_told(name: str, trick: str) -> None:
    """MuPDF repairs a file whose /Size is too small, and takes any object it finds."""
    file = SignedFile(base(name))
    free = file.free
    tricks: dict[str, Callable[[], bytes]] = {
        "/Size too small": lambda: file.append(
            {free: b"null"}, trailer={b"/Size": b"%d" % (free - 2)}
        ),
        "unlisted object": lambda: file.append(
            {free: b"null", free + 9: b"null"}, unlisted=[free + 9]
        ),
        "object in a stream": lambda: file.append(
            {free: file.stream(free, b"\n900 0 obj\n<</Type/Catalog>>\nendobj\n", b"")}
        ),
    }
    words = {
        "/Size too small": f"/Size {free - 2} leaves out object",
        "unlisted object": f"no section lists object {free + 9}",
        "object in a stream": "an object 900 is hidden",
    }[trick]

    report = verify(tricks[trick](), [makers().root])

    assert report.verdict is not Answer.YES
    assert words in report.signatures[0].changes.reason


@pytest.mark.parametrize("gap", [0, 2])
def test_object_stream_begins_with_its_first_object(gap: int) -> None:
    """Poppler reads each object as many bytes earlier as there are before the first."""
    file = SignedFile(base("xref streams"))
    number, holder = file.free, file.free + 1
    head = b"%d %d " % (number, gap)
    data = zlib.compress(head + b" " * gap + b"null")
    body = b"<</Type/ObjStm/N 1/First %d/Filter/FlateDecode/Length %d>>stream\n" % (
        len(head),
        len(data),
    )
    stream = body + data + b"\nendstream"

    pdf = file.append_rows(
        {holder: stream},
        lambda at: [Row(number, 2, holder), Row(holder, 1, at[holder])],
    )

    wanted = Answer.NO if gap else Answer.YES
    report = verify(pdf, [makers().root])
    assert report.verdict is wanted, report.signatures[0].changes

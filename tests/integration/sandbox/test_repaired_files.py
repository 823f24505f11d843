"""What begins a repair, and what a reader that repairs would find, is told.

Source: ISO 32000-2, 7.5.5 (/Size) and 7.5.8.
"""

from collections.abc import Callable

import pytest

from appliance.domain.verification import Answer
from tests.support.documents.pdf_revisions import SignedFile
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

"""Parts of an upload: how large they are, and how many.

Source: Amazon S3 User Guide, "Multipart upload limits".
"""

import contextlib
import hashlib
import io
from collections.abc import Mapping
from typing import cast

import pytest

from appliance.documents.s3 import multipart_upload
from appliance.documents.s3.multipart_upload import PartedUpload
from appliance.documents.s3.signed_requests import (
    Answer,
    Body,
    BucketRequests,
    RefusedError,
)


class Store:
    """Takes parts, and fails as it is told to."""

    def __init__(self, *faults: OSError) -> None:
        self.parts: list[bytes] = []
        self.faults = list(faults)
        self.asked = 0

    def key(self, name: str) -> str:
        """As it is."""
        return name

    def ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str],
        body: Body = b"",
        more: object = None,
        **_: float,
    ) -> Answer:
        """Take a part."""
        assert more is None
        self.asked += 1
        if self.faults:
            raise self.faults.pop(0)
        self.parts.append(bytes(body))
        return Answer(200, {"etag": f"{method} {key} {query['partNumber']}"}, b"")


def upload_to(store: Store, retry_s: float = 0) -> PartedUpload:
    """An upload that was begun."""
    return PartedUpload(cast("BucketRequests", store), "name", retry_s)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes a part, two more after each three, eight parts at most."""
    monkeypatch.setattr(multipart_upload, "PART_BYTES", 2)
    monkeypatch.setattr(multipart_upload, "_GROWS_EACH", 3)
    monkeypatch.setattr(multipart_upload, "_MOST_PARTS", 8)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 6, 17, 29, 30])
def test_parts_are_all_of_it(size: int) -> None:
    """In order; the last one is shorter, or is none where the one before was full."""
    store, content = Store(), bytes(range(size))
    upload = upload_to(store)

    upload.take(io.BytesIO(content))

    assert b"".join(store.parts) == content
    full = [2, 2, 2, 4, 4, 4, 6, 6]
    sizes = [len(part) for part in store.parts]
    assert sizes[:-1] == full[: len(sizes) - 1]
    assert upload.size == size
    assert upload.sha256 == hashlib.sha256(content).hexdigest()


def test_more_than_a_store_takes_is_told() -> None:
    """And no part beyond the last one is sent."""
    store = Store()

    with pytest.raises(OSError, match="is larger than a store takes"):
        upload_to(store).take(io.BytesIO(bytes(31)))

    assert len(store.parts) == 8


@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        (TimeoutError("timed out"), 2),
        (RefusedError("busy", 503, "SlowDown"), 2),
        (RefusedError("no", 403, "AccessDenied"), 1),
        (RefusedError("no", 501, "NotImplemented"), 1),
    ],
)
def test_what_may_pass_is_tried_again(fault: OSError, asked: int) -> None:
    """And nothing else; a part that was sent twice is there once."""
    store = Store(fault)
    upload = upload_to(store, retry_s=60)
    ends = contextlib.nullcontext() if asked > 1 else pytest.raises(type(fault))
    with ends:
        upload.take(io.BytesIO(b"x"))
    assert store.asked == asked
    assert len(store.parts) == asked - 1


class JoinsForLong(Store):
    """It makes an object of its parts, or does not, and says nothing in time."""

    def __init__(self, *, is_there: bool) -> None:
        super().__init__()
        self.is_there = is_there
        self.asked_for: Mapping[str, str] = {}

    def ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str],
        body: Body = b"",
        more: object = None,
        **_: float,
    ) -> Answer:
        """Answer as far as that."""
        if "uploads" in query:
            self.asked_for = cast("Mapping[str, str]", more)
            return Answer(200, {}, b"<r><UploadId>1</UploadId></r>")
        if method == "PUT":
            return super().ask(method, key, query, body, more)
        if method == "POST":
            raise TimeoutError
        if not self.is_there:
            raise RefusedError("no", 404, "")
        size = str(sum(map(len, self.parts)))
        return Answer(200, {**self.asked_for, "content-length": size}, b"")


@pytest.mark.parametrize("is_there", [True, False])
def test_silence_at_the_end_is_looked_into(*, is_there: bool) -> None:
    """What was put together is no failed backup, though its answer came too late."""
    upload = upload_to(JoinsForLong(is_there=is_there))
    upload.begin()
    upload.take(io.BytesIO(b"abc"))
    ends = contextlib.nullcontext() if is_there else pytest.raises(TimeoutError)

    with ends:
        upload.complete()

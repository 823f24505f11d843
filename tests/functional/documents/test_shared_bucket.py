"""Appliances that know nothing of each other, with their documents in one bucket.

Each has a record, keys and a name of its own. With a prefix each they are as apart as
in two buckets; on one prefix the second one is refused.

Source: docs/storage.md "In an S3-compatible store".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.documents.local.folder_mark import FILE
from appliance.domain.errors import DocumentsAwayError
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.bucket_appliance import (
    BucketAppliance,
    running_bucket_appliance,
)
from tests.support.appliance.http_calls import signed_pdf
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.factories.document_storage import BucketStorage
from tests.support.faults.fault_injection import until
from tests.support.installation.settings import toml
from tests.support.patience import CALL_S
from tests.support.processes.plain_http import NO_TLS
from tests.support.processes.scratch import short_folder

PREFIX: Final = "rubrica"
"""Of `running_bucket_appliance`."""
BESIDE: Final = "rubrica2"
"""One that begins as the first one's does."""
OTHERS: Final = "otra"
LAST: Final = "tercera"
LATER: Final = timedelta(days=1)


@pytest.fixture(scope="module")
def first() -> Iterator[BucketAppliance]:
    """An installation on the prefix `rubrica`, and its bucket."""
    with running_bucket_appliance() as made:
        yield made


@pytest.fixture(scope="module")
def second(first: BucketAppliance) -> Iterator[Appliance]:
    """An installation beside it."""
    with another(first, BESIDE) as made:
        made.set_up()
        made.start()
        yield made


@contextmanager
def another(first: BucketAppliance, prefix: str) -> Iterator[Appliance]:
    """Another installation on a prefix of that bucket, neither set up nor started."""
    with short_folder() as folder:
        appliance = Appliance(
            folder, installation="segunda", more=documents(first, prefix)
        )
        try:
            yield appliance
        finally:
            appliance.close()


def documents(first: BucketAppliance, prefix: str) -> str:
    """Settings for a prefix of that bucket."""
    return toml({"documents": first.server.tables(bucket(first, prefix))})


def bucket(first: BucketAppliance, prefix: str) -> str:
    """A prefix of that bucket, as the settings name it."""
    of_first = first.place.settings.bucket
    assert of_first is not None
    return f"{of_first[0]}/{prefix}"


def sign_one(appliance: Appliance, pdf: bytes) -> bytes:
    """Have somebody new sign a document; what is signed, found valid."""
    person = appliance.new_person()
    request = appliance.new_request(person, pdf)
    with appliance.client(person) as client:
        signed = signed_pdf(client, person, request)
    assert pdfsig(signed)[0].valid
    assert pyhanko_valid(signed, appliance.roots)
    return signed


def hashes(names: set[str]) -> set[str]:
    """Of the documents among those names."""
    return {Path(name).stem for name in names if name.endswith(".pdf")}


def found_old(appliance: Appliance) -> set[str]:
    """SHA-256 of all that it would look at for removal, were it all old."""

    async def look(front: ServiceRegistry) -> set[str]:
        pages = front.core.documents.older(datetime.now(UTC) + LATER)
        return {sha256 async for _, names in pages for sha256 in names}

    return appliance.do(look)


def clear(appliance: Appliance) -> int:
    """Have it remove uploads that nobody finished, however new; how many."""
    before = datetime.now(UTC) + LATER
    return appliance.do(lambda front: front.core.documents.clear(before))


def begin_upload(first: BucketAppliance, prefix: str) -> None:
    """Begin an upload below a prefix that nobody goes on with."""
    address = f"{first.server.tables('any')['endpoint']}/{bucket(first, prefix)}"
    begun = httpx.post(f"{address}/part.pdf?uploads", verify=NO_TLS, timeout=CALL_S)
    assert begun.status_code == 200, begun.text


def assert_clean(appliance: Appliance) -> None:
    """By its ledger."""
    place = BucketStorage(appliance.settings.documents)
    place.copy_to(appliance.settings.documents_dir)
    assert read_ledger(appliance).faults() == []


def test_two_installations_have_a_prefix_each(
    first: BucketAppliance, second: Appliance
) -> None:
    """The same document in both is two; neither finds, lists or clears the other's."""
    pdf = pdfs.one_page("de los dos")
    place = BucketStorage(second.settings.documents)
    for appliance in (first.appliance, second, second):
        sign_one(appliance, pdf)

    ours, theirs = set(first.place.names()), set(place.names())
    assert first.place.read(FILE) != place.read(FILE)
    assert len(hashes(ours) & hashes(theirs)) == 1
    assert found_old(first.appliance) == hashes(ours)
    assert found_old(second) == hashes(theirs)
    for prefix in (PREFIX, BESIDE):
        begin_upload(first, prefix)
    assert clear(second) == 1
    assert clear(first.appliance) == 1
    for appliance in (first.appliance, second):
        done = appliance.rubrica("documents", "check")
        assert (done.returncode, done.stderr) == (0, "")
        assert_clean(appliance)


def test_second_installation_on_a_prefix_is_refused(
    first: BucketAppliance, second: Appliance
) -> None:
    """By `migrate`; none of its roles writes there, and the first one signs on."""
    pdf = pdfs.one_page("de uno solo")
    mark, person = first.place.read(FILE), second.new_person()
    second.stop()
    right = second.configure(more=documents(first, PREFIX))

    assert_refused(second)
    second.start(unready=True)
    assert_keeps_off(first, second, person)
    sign_one(first.appliance, pdf)
    second.stop()

    second.configure(**right)
    second.start()
    sign_one(second, pdf)
    assert first.place.read(FILE) == mark
    for appliance in (first.appliance, second):
        assert_clean(appliance)


def test_prefix_is_somebodys_before_its_first_document(first: BucketAppliance) -> None:
    """A new installation does not take it over, and is set up on one of its own."""
    place = BucketStorage(first.server.settings(bucket(first, OTHERS)))
    place.write(FILE, b"somebody's\n")
    with another(first, OTHERS) as new:
        assert new.rubrica("init", "--trial", str(new.folder)).returncode == 0
        for _ in range(2):
            assert_refused(new)
        assert place.read(FILE) == b"somebody's\n"
        assert place.names() == [FILE]

        new.configure(more=documents(first, LAST))
        done = new.rubrica("migrate")
        assert done.returncode == 0, done.stderr
        assert "marked s3://" in done.stdout


def assert_refused(appliance: Appliance) -> None:
    """Its documents are to be where another installation's are."""
    refused = appliance.rubrica("migrate")
    assert refused.returncode == 78
    assert "is another installation's" in refused.stderr
    assert "Traceback" not in refused.stderr


def assert_keeps_off(
    first: BucketAppliance, second: Appliance, person: TestPerson
) -> None:
    """It says that it is not ready, and takes no document in."""

    def told() -> str:
        with httpx.Client(
            base_url=second.base_url, timeout=CALL_S, verify=NO_TLS
        ) as web:
            try:
                checks: dict[str, str] = web.get("/readyz").json()["checks"]
            except httpx.TransportError:
                return ""
            return checks["documents"]

    until(lambda: told() == "DOCUMENTS_AWAY")
    before = first.place.names()
    with pytest.raises(DocumentsAwayError):
        second.new_request(person, pdfs.one_page("de otro"))
    assert first.place.names() == before

"""An appliance whose documents are in a bucket of an S3-compatible store.

Source: docs/storage.md "In an S3-compatible store".
"""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.documents.document_files import MAGIC
from appliance.documents.local.folder_mark import FILE
from appliance.domain.ids import IntegratorId
from appliance.domain.vocab import RequestState
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backups import RestorableAppliance, backed_up
from tests.support.appliance.bucket_appliance import (
    BucketAppliance,
    running_bucket_appliance,
)
from tests.support.appliance.http_calls import problem, signed_pdf
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import until
from tests.support.faults.retrying_callers import BROKEN, Crowd
from tests.support.installation.settings import toml
from tests.support.patience import CALL_S
from tests.support.services.s3 import SECRET_KEY

CUT_S = 30


@pytest.fixture(scope="module")
def bucket_appliance() -> Iterator[BucketAppliance]:
    """One that no test loses; leases are short."""
    with running_bucket_appliance(signing="lease_s = 2") as made:
        yield made


@pytest.fixture(scope="module")
def lost(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[BucketAppliance, RestorableAppliance]]:
    """One with backups, which tests lose: the last of them for good."""
    places = tmp_path_factory.mktemp("places")
    with (
        running_bucket_appliance() as bucket,
        backed_up(bucket.appliance, places) as backups,
    ):
        yield bucket, backups


def checks(appliance: Appliance) -> dict[str, str]:
    """What `/readyz` says of each part."""
    with httpx.Client(base_url=appliance.base_url, timeout=CALL_S) as client:
        found: dict[str, str] = client.get("/readyz").json()["checks"]
        return found


def assert_valid(appliance: Appliance, pdf: bytes) -> None:
    """By pdfsig and by pyHanko."""
    assert pdfsig(pdf)[0].valid
    assert pyhanko_valid(pdf, appliance.roots)


def test_documents_are_signed_in_a_bucket(bucket_appliance: BucketAppliance) -> None:
    """By the API; what lies there is encrypted, and another host reads it as well."""
    appliance, person = (
        bucket_appliance.appliance,
        bucket_appliance.appliance.new_person(),
    )
    pdf = pdfs.one_page("balde")
    request = appliance.new_request(person, pdf)
    with appliance.client(person) as client:
        signed = signed_pdf(client, person, request)
        original = client.get(f"/solicitudes/{request}/original").content
        sha256 = client.get(f"/solicitudes/{request}").json()["sha256"]

    assert original == pdf
    assert_valid(appliance, signed)
    names = [name for name in bucket_appliance.place.names() if name != FILE]
    assert len(names) >= 2
    assert all(bucket_appliance.place.read(name).startswith(MAGIC) for name in names)
    assert list(appliance.settings.documents_dir.rglob("*.pdf")) == []
    (owner,) = {IntegratorId(name.partition("/")[0]) for name in names}

    async def read(front: ServiceRegistry) -> bytes:
        return await front.core.documents.get(owner, sha256)

    assert appliance.do(read) == pdf
    assert SECRET_KEY not in appliance.log.read_text()


def test_commands_look_at_the_bucket(bucket_appliance: BucketAppliance) -> None:
    """`check`, `encrypt` and `migrate`; another's is refused with its name."""
    appliance = bucket_appliance.appliance
    done = appliance.rubrica("documents", "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("/rubrica: good\n")
    assert not any(".probe" in name for name in bucket_appliance.place.names())
    assert "0 documents" in appliance.rubrica("documents", "encrypt").stdout
    assert appliance.rubrica("check-config").returncode == 0

    mark = bucket_appliance.place.read(FILE)
    bucket_appliance.place.write(FILE, b"another's\n")
    refused = appliance.rubrica("migrate")
    bucket_appliance.place.write(FILE, mark)
    assert refused.returncode == 78
    assert "another installation's" in refused.stderr
    with bucket_appliance.link.cut():
        for command in ("check", "encrypt", "recover"):
            away = appliance.rubrica("documents", command)
            assert away.returncode == 75, away.stdout
            assert "s3://" in away.stderr
            assert "Traceback" not in away.stderr + refused.stderr
    # For whoever comes next: the workers found it away too.
    until(lambda: set(checks(appliance).values()) == {"ok"})


@pytest.mark.full
def test_nothing_is_lost_while_the_link_is_cut(
    bucket_appliance: BucketAppliance,
) -> None:
    """Silently, for half a minute, amid signatures: nothing fails that need not."""
    appliance = bucket_appliance.appliance
    people = [appliance.new_person() for _ in range(3)]
    before = appliance.new_request(people[0], pdfs.one_page("antes"))
    with appliance.client(people[0]) as client:
        signed = signed_pdf(client, people[0], before)
        crowd = Crowd(appliance, people, pdfs.one_page("corte"), 6, at_least=30)
        with crowd.calling():
            with bucket_appliance.link.cut():
                ends = time.monotonic() + CUT_S
                until(lambda: checks(appliance)["documents"] == "DOCUMENTS_AWAY")
                began = time.monotonic()
                answer = client.get(f"/solicitudes/{before}/documento")
                problem(answer, 503, "STORE_UNAVAILABLE")
                # Known to be away, it is not asked, nor waited for.
                limit_s = appliance.settings.documents.request_timeout_s
                assert time.monotonic() - began < limit_s
                until(lambda: time.monotonic() > ends)
            mended = time.monotonic()
            until(lambda: set(checks(appliance).values()) == {"ok"})
            assert "unlisted=" not in appliance.log.read_text()
            well_again_s = time.monotonic() - mended
        assert client.get(f"/solicitudes/{before}/documento").content == signed

    assert all(call.signed for call in crowd.calls), crowd.answers
    allowed = {"200", "202", BROKEN}
    assert {each for each in crowd.answers if each[:3] != "503"} <= allowed
    until(lambda: not read_ledger(appliance).with_state(RequestState.IN_PROGRESS))
    bucket_appliance.copy_to_folder()
    ledger = read_ledger(appliance)
    assert not ledger.with_state(RequestState.FAILED)
    assert ledger.faults() == []
    print(f"well again after {well_again_s:.1f} s; {crowd.answers}")  # noqa: T201


def test_folder_becomes_a_bucket(tmp_path: Path) -> None:
    """Its files, copied under their names: what was signed is there; more is signed."""
    with running_bucket_appliance(in_bucket=False) as bucket_appliance:
        appliance, person = (
            bucket_appliance.appliance,
            bucket_appliance.appliance.new_person(),
        )
        first = appliance.new_request(person, pdfs.one_page("carpeta"))
        waiting = appliance.new_request(person, pdfs.one_page("después"))
        with appliance.client(person) as client:
            signed = signed_pdf(client, person, first)
        appliance.stop()
        folder = appliance.settings.documents_dir
        bucket_appliance.copy_to_bucket(folder)
        folder.rename(tmp_path / "away")
        documents = bucket_appliance.place.settings.model_dump(
            exclude_unset=True, mode="json"
        )
        appliance.configure(more=toml({"documents": documents}))
        assert appliance.rubrica("migrate").stdout == "current\n"
        appliance.start()

        with appliance.client(person) as client:
            again = client.get(f"/solicitudes/{first}/documento").content
            later = signed_pdf(client, person, waiting)
        assert again == signed
        assert_valid(appliance, later)


def test_drill_looks_at_the_list_of_a_bucket(
    lost: tuple[BucketAppliance, RestorableAppliance],
) -> None:
    """What the record names is in it; the bucket itself is not asked."""
    bucket, site = lost
    site.sign()
    site.back_up_all()
    with bucket.link.cut():
        secrets = str(site.files("secrets")[-1])
        done = site.restore("--drill", "--secrets", secrets)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 listed; they are in a bucket, and are not opened" in done.stdout


def test_record_is_restored_beside_its_bucket(
    lost: tuple[BucketAppliance, RestorableAppliance],
) -> None:
    """The backup lists the documents; what was signed since is given back."""
    _, site = lost
    appliance, person = site.appliance, site.person
    first, signed = site.sign()
    since = appliance.new_request(person, pdfs.one_page("después"))
    site.back_up_all()
    with appliance.client(person) as client:
        later = signed_pdf(client, person, since)
    site.lose()

    told = site.restore_all()

    assert told.returncode == 0, told.stdout + told.stderr
    site.migrate()
    found = appliance.rubrica("documents", "recover")
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"is the signed document of request {since}\n" in found.stdout
    site.take_over()
    appliance.start()
    assert site.signed(first) == signed
    assert site.signed(since) == later
    _, more = site.sign()
    assert_valid(appliance, more)


def test_document_that_left_its_bucket_is_named(
    lost: tuple[BucketAppliance, RestorableAppliance],
) -> None:
    """By the restore, with status 1; an archive of files is not poured into one."""
    bucket, site = lost
    site.sign()
    site.back_up_all()
    site.lose()
    gone = next(name for name in bucket.place.names() if name.endswith(".pdf"))
    bucket.place.remove(gone)

    told = site.restore_all()

    assert told.returncode == 1
    assert f"MISSING  {gone.partition('/')[0]}/{Path(gone).name}" in told.stdout

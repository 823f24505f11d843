"""What was signed after the backup that was brought back: found, and not signed twice.

Source: docs/backup.md "What was signed after the dump".
"""

import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from pyhanko.pdf_utils.generic import StreamObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.vocab import RequestState
from tests import pdfs
from tests.functional.calls import problem, sign, signed_pdf
from tests.ledger import read_ledger
from tests.parts.appliance import TestPerson
from tests.parts.backups import Site, site_with_backups
from tests.parts.harm import until
from tests.validators import pdfsig, pyhanko_valid


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """An appliance of the test's own, which is lost in it."""
    url = "sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    with site_with_backups(tmp_path, url) as made:
        yield made


def bring_back(site: Site) -> str:
    """Lose all but the documents, restore, and give back; what the command said."""
    documents = site.appliance.settings.documents_dir
    lost = site.lose()
    was = lost / documents.relative_to(site.appliance.folder)
    shutil.copytree(was, documents)
    restored = site.restore_all()
    assert restored.returncode == 0, restored.stdout + restored.stderr
    site.migrate()
    return recover(site)


def recover(site: Site, status: int = 0) -> str:
    """Run `rubrica documents recover`."""
    done = site.appliance.rubrica("documents", "recover")
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def state(client: httpx.Client, request: int) -> str:
    """`estado` of a request."""
    return str(client.get(f"/solicitudes/{request}").json()["estado"])


def signed_by(site: Site, person: TestPerson, request: int) -> bytes:
    """Have somebody sign a request."""
    with site.appliance.client(person) as client:
        return signed_pdf(client, person, request)


def kept_of(site: Site, person: TestPerson, request: int) -> bytes:
    """The signed document of a request that is `firmada`."""
    with site.appliance.client(person) as client:
        assert state(client, request) == "firmada"
        return client.get(f"/solicitudes/{request}/documento").content


def test_signed_since_the_backup_is_found(site: Site) -> None:
    """Alone, in turn, and twice the same document: each gets its own, once."""
    appliance, one = site.appliance, site.person
    two = appliance.new_person("Segunda Firmante")
    alone, untouched = (
        appliance.new_request(one, pdfs.one_page(text)) for text in ("A", "B")
    )
    same = pdfs.pages(2)
    shared = [appliance.new_request(who, same) for who in (one, two)]
    turns = appliance.new_process([one, two], pdfs.one_page("C"))
    site.back_up_all()
    whose = {alone: one, shared[1]: two, turns[0]: one, turns[1]: two}
    signed = {request: signed_by(site, who, request) for request, who in whose.items()}
    signed_by(site, one, appliance.new_request(one, pdfs.pages(3)))

    told = bring_back(site)

    for request in signed:
        assert f"is the signed document of request {request}\n" in told
    assert f"{len(signed)} of {len(signed) + 2} files" in told
    assert "0 of 2 files" in recover(site)
    site.go_on()
    for request, pdf in signed.items():
        assert kept_of(site, whose[request], request) == pdf
        with appliance.client(whose[request]) as client:
            problem(sign(client, whose[request], request), 409, "ALREADY_SIGNED")
    with appliance.client(one) as client:
        assert state(client, untouched) == state(client, shared[0]) == "pendiente"
    later = signed_by(site, one, shared[0])
    assert pdfsig(later)[0].valid
    assert pyhanko_valid(later, appliance.roots)
    assert appliance.rubrica("audit", "verify").returncode == 0


def test_signature_under_way_at_the_backup_is_found(site: Site) -> None:
    """Its activation was claimed by nobody yet; it uses no key any more."""
    appliance, person = site.appliance, site.person
    request = appliance.new_request(person, pdfs.one_page())
    workers = appliance.children("signing")
    for worker in workers:
        worker.suspend()
    with appliance.client(person) as client:
        assert sign(client, person, request).status_code == 202
        site.back_up_all()
        _go_on(workers)
        until(lambda: state(client, request) == "firmada")
        pdf = client.get(f"/solicitudes/{request}/documento").content

    assert f"is the signed document of request {request}\n" in bring_back(site)

    site.go_on()
    until(lambda: not _under_way(site))
    assert kept_of(site, person, request) == pdf
    assert appliance.intents(request) == []
    assert appliance.rubrica("audit", "verify").returncode == 0


def test_what_is_nobodys_stays_as_it_is(site: Site) -> None:
    """Altered, or of a key that is gone: told of, status 1, and the rest goes on."""
    appliance, person = site.appliance, site.person
    request = appliance.new_request(person, pdfs.one_page())
    site.back_up_all()
    pdf = signed_by(site, person, request)
    (shelf,) = appliance.settings.documents_dir.glob("*/")
    for name in ("a" * 64, "b" * 64):
        (shelf / name[:2]).mkdir(exist_ok=True)
        content = b"%PDF-1.7 not a document" if name[0] == "a" else os.urandom(500)
        (shelf / name[:2] / f"{name}.pdf").write_bytes(content)

    documents = appliance.settings.documents_dir
    lost = site.lose()
    shutil.copytree(lost / documents.relative_to(appliance.folder), documents)
    assert site.restore_all().returncode == 0
    site.migrate()
    told = recover(site, status=1)

    assert told.count("STORE_UNAVAILABLE; left as it is") == 2
    assert "1 of 3 files" in told
    for name in ("a" * 64, "b" * 64):
        assert (documents / shelf.name / name[:2] / f"{name}.pdf").is_file()
    site.go_on()
    assert kept_of(site, person, request) == pdf


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_signature_on_a_later_version_is_not_given_to_an_earlier_one(
    site: Site,
) -> None:
    """It begins with the same bytes, and its signer signed something else."""
    appliance, person = site.appliance, site.person
    first = pdfs.one_page()
    request = appliance.new_request(person, first)
    site.back_up_all()
    signed_by(site, person, appliance.new_request(person, _next_version(first)))

    told = bring_back(site)

    assert "0 of 2 files" in told
    site.go_on()
    with appliance.client(person) as client:
        assert state(client, request) == "pendiente"


def _next_version(pdf: bytes) -> bytes:
    """The document with something more on its page, saved as an increment."""
    writer, out = IncrementalPdfFileWriter(io.BytesIO(pdf)), io.BytesIO()
    drawn = StreamObject(stream_data=b"0 0 1 rg 99 99 99 99 re f")
    writer.add_stream_to_page(0, writer.add_object(drawn))
    writer.write(out)
    assert out.getvalue().startswith(pdf)
    return out.getvalue()


def _go_on(workers: list[psutil.Process]) -> None:
    for worker in workers:
        worker.resume()


def _under_way(site: Site) -> bool:
    """Whether an activation is not at its end."""
    ledger = read_ledger(site.appliance)
    assert not ledger.with_state(RequestState.PENDING)
    return any(
        row.state not in {"done", "failed", "expired"}
        for row in ledger.rows["activation"]
    )

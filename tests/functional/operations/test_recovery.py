"""What was signed after the backup that was brought back: found, and not signed twice.

One loss on each database, with all that may have happened by then; each test looks at
what became of a part of it.

Source: docs/backup.md "What was signed after the dump".
"""

import io
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pytest
from pyhanko.pdf_utils.generic import StreamObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.vocab import RequestState
from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backups import RestorableAppliance, appliance_with_backups
from tests.support.appliance.http_calls import (
    being_signed,
    problem,
    sign,
    signed_pdf,
    state_of,
)
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import held, until
from tests.support.services.postgres import PostgresServer

NOBODYS: Final = {"a" * 64: b"%PDF-1.7 not a document", "b" * 64: os.urandom(500)}
"""An altered file, and one of a key that is gone."""


@dataclass(frozen=True)
class Scene:
    """An installation that was lost after all this, brought back, and goes on."""

    site: RestorableAppliance
    signed: dict[int, tuple[TestPerson, bytes]]
    """Signed since the backup: alone, in turn, and by one of two."""
    shared: int
    """The same document for the other of them, who had not signed it."""
    untouched: int
    under_way: int
    """What was being signed at the backup."""
    under_way_pdf: bytes
    earlier: int
    """Not signed; a later version of its document was, since the backup."""
    told: str
    """By `documents recover`, with status 1 because of what is nobody's."""
    told_again: str
    """The same without that, with status 0."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """One loss, and what was brought back after it."""
    places = tmp_path_factory.mktemp("places")
    if request.param == "sqlite":
        with appliance_with_backups(places, "sqlite") as restorable_appliance:
            yield _played(restorable_appliance)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database()
    with appliance_with_backups(places, server.url(name)) as restorable_appliance:
        yield _played(restorable_appliance)
    server.drop_database(name)


def _played(restorable_appliance: RestorableAppliance) -> Scene:
    appliance, one = restorable_appliance.appliance, restorable_appliance.person
    two = appliance.new_person("Segunda Firmante")
    alone, untouched, under_way = (
        appliance.new_request(one, pdfs.one_page(text)) for text in ("A", "B", "D")
    )
    same, first = pdfs.pages(2), pdfs.one_page()
    shared = [appliance.new_request(who, same) for who in (one, two)]
    turns = appliance.new_process([one, two], pdfs.one_page("C"))
    earlier = appliance.new_request(one, first)
    under_way_pdf = _backed_up_amid(restorable_appliance, under_way)
    whose = {alone: one, shared[1]: two, turns[0]: one, turns[1]: two}
    signed = {
        request: (who, signed_by(restorable_appliance, who, request))
        for request, who in whose.items()
    }
    for pdf in (pdfs.pages(3), _next_version(first)):
        signed_by(restorable_appliance, one, appliance.new_request(one, pdf))
    told, told_again = _brought_back(restorable_appliance)
    restorable_appliance.go_on()
    return Scene(
        restorable_appliance,
        signed,
        shared[0],
        untouched,
        under_way,
        under_way_pdf,
        earlier,
        told,
        told_again,
    )


def _backed_up_amid(restorable_appliance: RestorableAppliance, request: int) -> bytes:
    """Make the backups while nobody has claimed an activation; its document."""
    with restorable_appliance.appliance.client(restorable_appliance.person) as client:
        with ExitStack() as still:
            still.enter_context(held(restorable_appliance.appliance))
            with being_signed(client, restorable_appliance.person, request):
                restorable_appliance.back_up_all()
                still.close()
        until(lambda: state_of(client, request) == "firmada")
        return client.get(f"/solicitudes/{request}/documento").content


def _brought_back(restorable_appliance: RestorableAppliance) -> tuple[str, str]:
    """Lose all but the documents, restore, and give back; what the command said."""
    documents = restorable_appliance.appliance.settings.documents_dir
    lost = restorable_appliance.lose()
    (lost / documents.relative_to(restorable_appliance.appliance.folder)).rename(
        documents
    )
    (shelf,) = documents.glob("*/")
    nobodys = {shelf / name[:2] / f"{name}.pdf": NOBODYS[name] for name in NOBODYS}
    for path, content in nobodys.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    restored = restorable_appliance.restore_all()
    assert restored.returncode == 0, restored.stdout + restored.stderr
    restorable_appliance.migrate()
    told = recover(restorable_appliance, status=1)
    for path, content in nobodys.items():
        assert path.read_bytes() == content
        path.unlink()
    return told, recover(restorable_appliance)


def recover(restorable_appliance: RestorableAppliance, status: int = 0) -> str:
    """Run `rubrica documents recover`."""
    done = restorable_appliance.appliance.rubrica("documents", "recover")
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def signed_by(
    restorable_appliance: RestorableAppliance, person: TestPerson, request: int
) -> bytes:
    """Have somebody sign a request."""
    with restorable_appliance.appliance.client(person) as client:
        return signed_pdf(client, person, request)


def kept_of(
    restorable_appliance: RestorableAppliance, person: TestPerson, request: int
) -> bytes:
    """The signed document of a request that is `firmada`."""
    with restorable_appliance.appliance.client(person) as client:
        assert state_of(client, request) == "firmada"
        return client.get(f"/solicitudes/{request}/documento").content


def test_signed_since_the_backup_is_found(scene: Scene) -> None:
    """Alone, in turn, and twice the same document: each gets its own, once."""
    site, appliance, one = scene.site, scene.site.appliance, scene.site.person
    for request, (who, pdf) in scene.signed.items():
        assert f"is the signed document of request {request}\n" in scene.told
        assert kept_of(site, who, request) == pdf
        with appliance.client(who) as client:
            problem(sign(client, who, request), 409, "ALREADY_SIGNED")
    # Of two requests since the backup, original and signed document belong to nothing.
    found, nothings = len(scene.signed) + 1, 4
    assert f"{found} of {found + nothings + len(NOBODYS)} files" in scene.told
    assert f"0 of {nothings} files" in scene.told_again
    with appliance.client(one) as client:
        assert state_of(client, scene.untouched) == "pendiente"
        assert state_of(client, scene.shared) == "pendiente"
    later = signed_by(site, one, scene.shared)
    assert pdfsig(later)[0].valid
    assert pyhanko_valid(later, appliance.roots)
    assert appliance.rubrica("audit", "verify").returncode == 0


def test_signature_under_way_at_the_backup_is_found(scene: Scene) -> None:
    """Its activation was claimed by nobody yet; it uses no key any more."""
    site, appliance, request = scene.site, scene.site.appliance, scene.under_way
    assert f"is the signed document of request {request}\n" in scene.told
    until(lambda: not _under_way(site, request))
    assert kept_of(site, site.person, request) == scene.under_way_pdf
    assert appliance.intents(request) == []
    assert appliance.rubrica("audit", "verify").returncode == 0


def test_what_is_nobodys_stays_as_it_is(scene: Scene) -> None:
    """Altered, or of a key that is gone: told of, status 1, and the rest goes on."""
    assert scene.told.count("DOCUMENT_DAMAGED; left as it is") == len(NOBODYS)
    assert "DOCUMENT_DAMAGED" not in scene.told_again
    for request, (who, pdf) in scene.signed.items():
        assert kept_of(scene.site, who, request) == pdf


def test_signature_on_a_later_version_is_not_given_to_an_earlier_one(
    scene: Scene,
) -> None:
    """It begins with the same bytes, and its signer signed something else."""
    with scene.site.appliance.client(scene.site.person) as client:
        assert state_of(client, scene.earlier) == "pendiente"


def _next_version(pdf: bytes) -> bytes:
    """The document with something more on its page, saved as an increment."""
    writer, out = IncrementalPdfFileWriter(io.BytesIO(pdf)), io.BytesIO()
    drawn = StreamObject(stream_data=b"0 0 1 rg 99 99 99 99 re f")
    writer.add_stream_to_page(0, writer.add_object(drawn))
    writer.write(out)
    assert out.getvalue().startswith(pdf)
    return out.getvalue()


def _under_way(restorable_appliance: RestorableAppliance, request: int) -> bool:
    """Whether an activation is not at its end."""
    ledger = read_ledger(restorable_appliance.appliance)
    pending = {row.id for row in ledger.with_state(RequestState.PENDING)}
    assert request not in pending
    return any(
        row.state not in {"done", "failed", "expired"}
        for row in ledger.rows["activation"]
    )

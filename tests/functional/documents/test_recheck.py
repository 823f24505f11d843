"""`rubrica documents recheck`, over documents that an appliance has signed."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Final

import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.domain.ids import RequestId
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import RevocationReason, SignatureLevel, TimestampPolicy
from appliance.requests.request_store import RequestStore
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import signed_pdf
from tests.support.appliance.manual import run_lines
from tests.support.documents import pdfs
from tests.support.documents.forgeries import FORGERIES
from tests.support.faults.fault_injection import until
from tests.support.processes.scratch import short_folder

FORGERY: Final = "key twice: page /Contents"
TAKEN_IN: Final = "entry: 21 bytes"
"""One that is told at intake, and refused nowhere."""
_LEVELS: Final = (SignatureLevel.B_B, SignatureLevel.B_T, SignatureLevel.B_LT)


@dataclass(frozen=True)
class Scene:
    """An appliance and what it has signed."""

    appliance: Appliance
    signed: dict[int, bytes]

    def recheck(self, *arguments: str, status: int) -> list[dict[str, Any]]:
        """Run the command; the JSON objects that it wrote."""
        done = self.command("--json", *arguments)
        assert done.returncode == status, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def command(self, *arguments: str) -> CompletedProcess[str]:
        """Run the command, over the documents of this scene unless others are named."""
        if not {"--request", "--before"}.intersection(arguments):
            arguments = ("--before", str(max(self.signed) + 1), *arguments)
        return self.appliance.rubrica("documents", "recheck", *arguments)

    @contextmanager
    def replaced(self, request: int, content: bytes) -> Iterator[str]:
        """Have a request's signed document be another one, as an insider would."""
        before = self.sha256_of(request)
        sha256 = self.appliance.do(lambda front: _stored(front, request, content))
        self._name(request, sha256)
        try:
            yield sha256
        finally:
            self._name(request, before)

    def _name(self, request: int, sha256: str) -> None:
        """Have the newest version of a request's signed document be that file."""
        statement = (
            "UPDATE signed_document SET sha256 = ? WHERE request = ? AND version = "
            "(SELECT max(version) FROM signed_document WHERE request = ?)"
        )
        path = self.appliance.folder / "rubrica.db"
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            changed = connection.execute(statement, (sha256, request, request))
            assert changed.rowcount == 1
            connection.commit()

    def file_of(self, request: int) -> Path:
        """File of a request's signed document."""
        name = f"{self.sha256_of(request)}.pdf"
        (found,) = self.appliance.settings.documents_dir.rglob(name)
        return found

    def sha256_of(self, request: int) -> str:
        """SHA-256 of the newest version, by the database."""
        path = self.appliance.folder / "rubrica.db"
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            row = connection.execute(
                "SELECT sha256 FROM signed_document WHERE request = ? "
                "ORDER BY version DESC LIMIT 1",
                (request,),
            ).fetchone()
        return str(row[0])


async def _stored(front: ServiceRegistry, request: int, content: bytes) -> str:
    """Store a document for the integrator of a request."""
    async with front.core.store.read() as transaction:
        view = await RequestStore(transaction).get(RequestId(request))
    assert view is not None
    return await front.core.documents.put(view.integrator, content)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """Three levels, two signers, a batch, and a certificate that is revoked since."""
    with short_folder() as folder, Appliance.made(folder) as appliance:
        one, two = appliance.new_person(), appliance.new_person("Segunda Firmante")
        signed: dict[int, bytes] = {}
        with appliance.client(one) as client, appliance.client(two) as other:
            for level in _LEVELS:
                wishes = ProfileWishes(level, TimestampPolicy.PREFERRED)
                request = appliance.new_request(one, pdfs.one_page(), wishes=wishes)
                signed[request] = signed_pdf(client, one, request)
            turns = appliance.new_process([one, two], pdfs.pages(2))
            signed[turns[0]] = signed_pdf(client, one, turns[0])
            signed[turns[1]] = signed_pdf(other, two, turns[1])
            batch = appliance.new_requests(one, pdfs.one_page("Lote"), 3)
            body = {"solicitudIds": batch, "password": one.signing_password}
            client.post("/solicitudes/firmar/lote", json=body).raise_for_status()
            for request in batch:
                address = f"/solicitudes/{request}/documento"
                until(lambda at=address: client.get(at).status_code == 200)  # type: ignore[misc]  # bound now
                signed[request] = client.get(address).content

        async def revoke(front: ServiceRegistry) -> None:
            (held,) = await front.credentials.of(two.id)
            await front.credentials.revoke(
                held.id, RevocationReason.KEY_COMPROMISE, "operator"
            )

        appliance.do(revoke)
        yield Scene(appliance, signed)


def test_all_are_whole_and_newest_first(scene: Scene) -> None:
    """A revoked certificate is no matter of wholeness; pages go on where one ended."""
    (counts,) = scene.recheck(status=0)
    (below,) = scene.recheck("--before", str(sorted(scene.signed)[2]), status=0)
    (one,) = scene.recheck("--request", str(max(scene.signed)), status=0)
    (none,) = scene.recheck("--since", "2999-01-01", status=0)

    assert counts == {"counts": {"whole": len(scene.signed)}}
    assert below == {"counts": {"whole": 2}}
    assert one == {"counts": {"whole": 1}}
    assert none == {"counts": {}}


def test_forged_document_is_listed_and_nothing_else(scene: Scene) -> None:
    """A second /Contents in an appended revision, in JSON and in words."""
    request = sorted(scene.signed)[3]
    forged = FORGERIES[FORGERY](scene.signed[request])

    with scene.replaced(request, forged) as sha256:
        listed, counts = scene.recheck(status=1)
        words = scene.command()

    assert listed["request"] == request
    assert (listed["sha256"], listed["outcome"]) == (sha256, "broken")
    assert {each["question"] for each in listed["signatures"]} == {"changes"}
    assert all(each["field"] and each["reason"] for each in listed["signatures"])
    assert counts["counts"] == {"broken": 1, "whole": len(scene.signed) - 1}
    assert words.returncode == 1
    first, second, *_, last = words.stdout.splitlines()
    assert first == f"request {request}: a signature made here is NO LONGER WHOLE"
    assert sha256 in second
    total = len(scene.signed)
    assert last == f"{total} documents: {total - 1} whole, 1 no longer whole"


def test_forged_document_that_was_signed_once_more_is_listed(scene: Scene) -> None:
    """It came in by another request, as findings of earlier verifiers did."""
    first = sorted(scene.signed)[3]
    forged = FORGERIES[TAKEN_IN](scene.signed[first])
    person = scene.appliance.new_person("Tercera Firmante")
    request = scene.appliance.new_request(person, forged)
    with scene.appliance.client(person) as client:
        signed_pdf(client, person, request)

    listed, counts = scene.recheck("--request", str(request), status=1)

    assert {each["field"] for each in listed["signatures"]} == {f"Firma-{first}"}
    assert counts == {"counts": {"broken": 1}}
    scene.recheck(status=0)


def test_unsigned_document_in_its_place_is_listed(scene: Scene) -> None:
    """The signature that the record tells of is not in the file."""
    request = min(scene.signed)

    with scene.replaced(request, pdfs.one_page("Otro")):
        listed, _ = scene.recheck("--request", str(request), status=1)

    (fault,) = listed["signatures"]
    assert fault["question"] == "presence"


def test_missing_and_altered_files_are_told_apart(scene: Scene) -> None:
    """Neither is said to be no longer whole: nobody has seen them."""
    missing, altered = sorted(scene.signed)[-2:]
    paths = {each: scene.file_of(each) for each in (missing, altered)}
    kept = {each: path.read_bytes() for each, path in paths.items()}
    paths[missing].unlink()
    paths[altered].write_bytes(kept[altered][:-1] + b"x")

    listed = scene.recheck(status=3)

    *rows, counts = listed
    assert {row["request"]: row["outcome"] for row in rows} == {
        missing: "missing",
        altered: "altered",
    }
    assert counts["counts"]["whole"] == len(scene.signed) - 2
    for each, path in paths.items():
        path.write_bytes(kept[each])
    scene.recheck(status=0)


def test_request_without_a_signed_document_is_a_wrong_command(scene: Scene) -> None:
    """It says why there is nothing to verify, by the request's state."""
    person = scene.appliance.new_person()
    pending = scene.appliance.new_request(person, pdfs.one_page())

    unknown = scene.command("--request", "999999")
    unsigned = scene.command("--request", str(pending))
    of_later = scene.command(
        "--request", str(max(scene.signed)), "--since", "9000-01-01"
    )

    said = [each.stderr for each in (unknown, unsigned, of_later)]
    assert [each.returncode for each in (unknown, unsigned, of_later)] == [2, 2, 2]
    assert "there is no request 999999" in said[0]
    assert f"request {pending} is pendiente" in said[1]
    assert "of the days that were asked for" in said[2]
    assert all("nothing was verified" in each for each in said)


def test_lines_of_the_manual_run(scene: Scene) -> None:
    """With a number of this appliance; others may list what a test has forged."""

    def run(line: str) -> int:
        return scene.appliance.rubrica(*line.split()[1:]).returncode

    done = run_lines(
        "verification.md",
        "Checking what was signed before",
        0,
        run,
        ("--request 12", f"--request {max(scene.signed)}"),
    )

    everything, since, one, below = done.values()
    assert one == 0
    assert {everything, since, below} <= {0, 1}

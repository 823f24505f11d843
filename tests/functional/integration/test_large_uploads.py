"""A hundred megabytes that a backend uploads: no role holds them in its heap.

Source: docs/integration.md "Documents of a backend"; docs/limits.md.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import httpx
import psutil
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    TestBackend,
    backend_of,
    ready_batch,
)
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import until
from tests.support.processes.scratch import short_folder

MB: Final = 1_000_000
PATH: Final = "/api/integration/documents"
ROLES: Final = ("api", "embed", "admin", "signing", "chores", "metrics")
"""Those that stay; a job of the sandbox is a process of its own, and ends."""


@pytest.fixture(scope="module")
def backend() -> Iterator[TestBackend]:
    """A backend of an appliance that takes documents of 100 MB."""
    limits = f"[documents]\nlimit_bytes = {101 * MB}\nintake_room_bytes = 0\n"
    with (
        short_folder() as folder,
        Appliance.made(folder, more=limits) as appliance,
        backend_of(appliance) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def large() -> bytes:
    """A PDF of 100 MB."""
    return pdfs.heavy(10, 100 * MB)


class Watch:
    """The memory that processes take, watched while something happens."""

    def __init__(self, appliance: Appliance) -> None:
        self._processes = [
            process for role in ROLES for process in appliance.children(role)
        ]
        self._before = {each.pid: each.memory_info().rss for each in self._processes}
        self._most = dict(self._before)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def grown(self) -> dict[str, int]:
        """By process: bytes more than before, at the most."""
        return {
            f"{each.name()} {each.pid}": self._most[each.pid] - self._before[each.pid]
            for each in self._processes
        }

    def _look(self) -> None:
        while not self._over.wait(0.02):
            for each in self._processes:
                rss = each.memory_info().rss
                self._most[each.pid] = max(self._most[each.pid], rss)


def in_pieces(pdf: bytes, until_byte: int | None = None) -> Iterator[bytes]:
    """A body that comes bit by bit, and may break off."""
    for start in range(0, len(pdf), MB):
        if until_byte is not None and start >= until_byte:
            msg = "the caller is gone"
            raise ConnectionError(msg)
        yield pdf[start : start + MB]


@pytest.mark.parametrize("form", ["as it is", "as a part", "for a request"])
def test_no_role_grows_by_what_is_uploaded(
    backend: TestBackend, large: bytes, form: str
) -> None:
    """Each by less than 20 MB, in any form; what is kept is what came."""
    person = backend.appliance.new_person()
    # What a first call loads is not what is measured.
    assert backend.ask(pdfs.one_page(form), person).status_code == 201
    with Watch(backend.appliance) as watch:
        if form == "as it is":
            answer = backend.client.post(
                PATH,
                content=in_pieces(large),
                headers={"Content-Type": "application/pdf"},
            )
        elif form == "as a part":
            answer = backend.client.post(PATH, files={"file": ("a.pdf", large)})
        else:
            answer = backend.ask(large, person)

    assert answer.status_code == 201, answer.text
    told = answer.json()
    told = told if "sha256" in told else told["documento"]
    assert told["sha256"] == hashlib.sha256(large).hexdigest()
    assert told["tamano"] == len(large)
    grown = watch.grown()
    assert len(grown) >= len(ROLES)
    assert {name: size for name, size in grown.items() if size >= 20 * MB} == {}


def test_upload_that_breaks_off_leaves_nothing(
    backend: TestBackend, large: bytes
) -> None:
    """At 60 of 100 MB: no file, no row, no memory."""
    appliance = backend.appliance
    (api,) = appliance.children("api")
    files, ids = stored(appliance), backend.client.get(PATH).json()

    with (
        Watch(appliance) as watch,
        contextlib.suppress(httpx.TransportError, ConnectionError),
    ):
        backend.client.post(
            PATH,
            content=in_pieces(large, until_byte=60 * MB),
            headers={"Content-Type": "application/pdf"},
        )

    until(lambda: memory_files(api) == [])
    assert stored(appliance) == files
    assert backend.client.get(PATH).json() == ids
    assert {name: size for name, size in watch.grown().items() if size > 20 * MB} == {}


def stored(appliance: Appliance) -> set[Path]:
    """All files of documents."""
    return set(appliance.settings.documents_dir.rglob("*"))


def memory_files(process: psutil.Process) -> list[str]:
    """What a process has open that lies in memory."""
    found = []
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            name = str(link.readlink())
            if name.startswith("/memfd:document"):
                found.append(name)
    return found


def test_no_role_grows_by_the_documents_of_a_batch(backend: TestBackend) -> None:
    """A hundred megabytes in four parts of one call: each by less than 20 MB."""
    person = backend.appliance.new_person()
    first = sent_together(backend, person, [pdfs.one_page("a")])
    ready_batch(backend.client, first)
    documents = [pdfs.heavy(10 + n, 25 * MB) for n in range(4)]
    with Watch(backend.appliance) as watch:
        answer = sent_together(backend, person, documents)
        made = ready_batch(backend.client, answer)

    told = [each["documento"]["sha256"] for each in made["solicitudes"]]
    assert told == [hashlib.sha256(pdf).hexdigest() for pdf in documents]
    grown = watch.grown()
    assert {name: size for name, size in grown.items() if size >= 20 * MB} == {}


def test_batch_that_breaks_off_leaves_nothing(
    backend: TestBackend, large: bytes
) -> None:
    """In its second part: no file, no row, no memory."""
    appliance = backend.appliance
    (api,) = appliance.children("api")
    files, lots = stored(appliance), backend.client.get(BATCHES).json()
    with contextlib.suppress(httpx.TransportError, ConnectionError):
        backend.client.post(
            BATCHES,
            content=broken_off(pdfs.one_page(), large),
            headers={"Content-Type": "multipart/form-data; boundary=x"},
        )

    until(lambda: memory_files(api) == [])
    assert stored(appliance) == files
    assert backend.client.get(BATCHES).json() == lots


def sent_together(
    backend: TestBackend, person: TestPerson, documents: list[bytes]
) -> httpx.Response:
    """A batch whose documents come with the call."""
    told = {"firmante": {"cuil": person.cuil}, "documentos": [{}] * len(documents)}
    parts = {f"d{n}": ("a.pdf", pdf) for n, pdf in enumerate(documents)}
    options = {"options": json.dumps(told)}
    return backend.client.post(BATCHES, files=parts, data=options)


def broken_off(whole: bytes, large: bytes) -> Iterator[bytes]:
    """A body of parts: one of them whole, the next one not."""
    for name, pdf in (("a", whole), ("b", large)):
        head = f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        yield head.encode()
        yield from in_pieces(pdf, until_byte=60 * MB)
        yield b"\r\n"

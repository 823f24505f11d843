"""The folder of documents is away, or another one stands in its place.

Source: docs/storage.md "The folder's mark"; research "faults".
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from appliance.domain.errors import DocumentsAwayError
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    being_signed,
    problem,
    sign,
    signed_pdf,
    state_of,
)
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import harmed, held, until
from tests.support.patience import CALL_S


@pytest.fixture(scope="module")
def own() -> Iterator[Appliance]:
    """One whose folders the tests may move; leases are short."""
    with harmed(signing="lease_s = 2") as appliance:
        yield appliance


@contextmanager
def elsewhere(path: Path) -> Iterator[None]:
    """Have a file or folder be somewhere else; an empty folder stands for one."""
    away = path.rename(path.with_name(f"{path.name}-away"))
    if away.is_dir():
        path.mkdir()
    try:
        yield
    finally:
        if away.is_dir():
            assert list(path.iterdir()) == []
            path.rmdir()
        away.rename(path)


def checks(appliance: Appliance) -> dict[str, str]:
    """What `/readyz` says of each part."""
    with httpx.Client(base_url=appliance.base_url, timeout=CALL_S) as client:
        found: dict[str, str] = client.get("/readyz").json()["checks"]
        return found


def assert_signed(appliance: Appliance, person: TestPerson, request: int) -> None:
    """It comes to its end by itself, by one use of the key."""
    with appliance.client(person) as client:
        until(lambda: state_of(client, request) == "firmada")
        pdf = client.get(f"/solicitudes/{request}/documento").content
    assert pdfsig(pdf)[0].valid
    assert pyhanko_valid(pdf, appliance.roots)
    assert len(appliance.intents(request)) == 1


def test_nothing_fails_while_the_folder_is_away(own: Appliance) -> None:
    """Not ready; nothing is written beside it; what was under way is done after it."""
    person = own.new_person()
    signed, under_way = (own.new_request(person, pdfs.one_page(t)) for t in "AB")
    with own.client(person) as client, ExitStack() as still:
        signed_pdf(client, person, signed)
        still.enter_context(held(own))
        with (
            being_signed(client, person, under_way),
            elsewhere(own.settings.documents_dir),
        ):
            still.close()
            until(lambda: checks(own)["documents"] == "DOCUMENTS_AWAY")
            until(lambda: checks(own)["hsm"] == "HSM_UNAVAILABLE")
            answer = client.get(f"/solicitudes/{signed}/documento")
            told = problem(answer, 503, "STORE_UNAVAILABLE")
            assert "donde se guardan los documentos" in told["detail"]
            with pytest.raises(DocumentsAwayError):
                own.new_request(person, pdfs.one_page("C"))
            assert state_of(client, under_way) == "en_proceso"
            assert own.intents(under_way) == []

    assert_signed(own, person, under_way)
    until(lambda: set(checks(own).values()) == {"ok"})
    with own.client(person) as client:
        signed_pdf(client, person, own.new_request(person, pdfs.one_page("D")))


@pytest.mark.parametrize("is_missing", [True, False])
def test_damaged_original_is_named_as_that(own: Appliance, *, is_missing: bool) -> None:
    """It is told at once, and no key is used; with the file back it is signed."""
    person = own.new_person()
    request = own.new_request(person, pdfs.one_page(f"original {is_missing}"))
    with own.client(person) as client:
        sha256 = client.get(f"/solicitudes/{request}").json()["sha256"]
        (path,) = own.settings.documents_dir.rglob(f"{sha256}.pdf")
        with elsewhere(path):
            if not is_missing:
                path.write_bytes(b"%PDF-1.7 another one")
            problem(sign(client, person, request), 503, "DOCUMENT_DAMAGED")
            shown = client.get(f"/solicitudes/{request}/original")
            problem(shown, 503, "DOCUMENT_DAMAGED")
            assert state_of(client, request) == "pendiente"
            assert own.intents(request) == []
            assert set(checks(own).values()) == {"ok"}
            if not is_missing:
                path.unlink()
        signed_pdf(client, person, request)
    assert len(own.intents(request)) == 1


def test_migrate_marks_no_folder_that_may_be_anothers(own: Appliance) -> None:
    """It says what is amiss, and the roles go on once the folder is back."""
    own.new_request(own.new_person(), pdfs.one_page("E"))
    with elsewhere(own.settings.documents_dir):
        done = own.rubrica("migrate")
        assert done.returncode == 78
        assert "is it mounted?" in done.stderr
        assert "Traceback" not in done.stderr
    assert own.rubrica("migrate").returncode == 0
    until(lambda: set(checks(own).values()) == {"ok"})

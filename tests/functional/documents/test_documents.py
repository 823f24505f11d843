"""Documents: seen, previewed, signed, fetched, and what the audit says of them."""

import asyncio
import hashlib
import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from PIL import Image, ImageChops

from appliance.bootstrap import ServiceRegistry
from appliance.cli import main
from appliance.domain.audit.record import AuditRow, first_break
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.sandbox import DIED
from appliance.domain.vocab import EventKind
from tests.support.appliance.appliance import Appliance, TestPerson, intake_order
from tests.support.appliance.http_calls import (
    command,
    problem,
    read_stamp,
    sign,
    signed_pdf,
    state_of,
)
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.documents.validators import pdfsig, pyhanko_verdicts
from tests.support.patience import CALL_S


class EarlierClock:
    """A clock that is an hour slow."""

    def now(self) -> datetime:
        """An hour ago."""
        return datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def request_id(appliance: Appliance, signer: TestPerson) -> int:
    """A fresh request."""
    return appliance.new_request(signer, pdfs.one_page(), "Año nuevo.pdf")


def test_link_downloads_the_signed_pdf(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """Without a bearer, as an attachment that nobody stores or sniffs.

    Source: decisions "documentoFirmado".
    """
    answer = sign(client, signer, request_id).json()

    download = httpx.get(answer["documentoFirmado"], timeout=CALL_S)

    assert download.status_code == 200
    assert download.headers["Content-Type"] == "application/pdf"
    assert download.headers["Cache-Control"] == "no-store"
    assert download.headers["X-Content-Type-Options"] == "nosniff"
    disposition = download.headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="A_o nuevo')
    assert "filename*=UTF-8''A%C3%B1o%20nuevo" in disposition
    assert hashlib.sha256(download.content).hexdigest() == answer["sha256"]
    assert download.headers["ETag"] == f'"{answer["sha256"]}"'
    assert httpx.head(answer["documentoFirmado"], timeout=CALL_S).content == b""


def test_wrong_or_absent_clave_opens_nothing(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """Another key, one of another document, or none: as if no key had come."""
    link = sign(client, signer, request_id).json()["documentoFirmado"]
    second = appliance.new_request(signer, pdfs.one_page())
    other_link = sign(client, signer, second).json()["documentoFirmado"]
    plain, _, clave = link.partition("?clave=")

    for wrong in (
        f"{plain}?clave={clave[:-1]}",
        f"{plain}?clave={'A' * 43}",
        f"{plain}?clave={other_link.partition('?clave=')[2]}",
        f"{plain}?clave=%00",
    ):
        told = problem(httpx.get(wrong, timeout=CALL_S), 401, "TOKEN_MISSING")
        assert "enlace de descarga" in str(told["detail"])
    for none in (plain, f"{plain}?clave=", f"{plain}?Clave={clave}"):
        told = problem(httpx.get(none, timeout=CALL_S), 401, "TOKEN_MISSING")
        assert "token bearer" in str(told["detail"])
    refused = httpx.get(
        f"{plain}?clave=x", headers={"Authorization": "Bearer x"}, timeout=CALL_S
    )
    problem(refused, 401, "TOKEN_INVALID")
    assert httpx.get(link, timeout=CALL_S).status_code == 200


def test_stored_reference_outlives_its_clave(
    appliance: Appliance,
    signer: TestPerson,
    other_signer: TestPerson,
    client: httpx.Client,
    request_id: int,
) -> None:
    """After its time the same address answers its signer's bearer, for ever."""
    fresh = sign(client, signer, request_id).json()["documentoFirmado"]

    async def mint(front: ServiceRegistry) -> str:
        return await front.links.mint(RequestId(request_id))

    clave = appliance.do(mint, EarlierClock())
    stored = f"{appliance.base_url}/solicitudes/{request_id}/documento?clave={clave}"

    problem(httpx.get(stored, timeout=CALL_S), 401, "TOKEN_MISSING")
    assert client.get(stored).content == httpx.get(fresh, timeout=CALL_S).content
    with appliance.client(other_signer) as theirs:
        problem(theirs.get(stored), 404, "SOLICITUD_NOT_FOUND")


def test_json_alone_gives_the_signer_a_fresh_link(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """`Accept: application/json` at the document's address; a link cannot renew."""
    first = sign(client, signer, request_id).json()
    accept = {"Accept": "application/json"}

    again = client.get(f"/solicitudes/{request_id}/documento", headers=accept).json()

    assert again["documentoFirmado"] != first["documentoFirmado"]
    assert {**again, "documentoFirmado": ""} == {**first, "documentoFirmado": ""}
    assert httpx.get(again["documentoFirmado"], timeout=CALL_S).status_code == 200
    renewed = httpx.get(first["documentoFirmado"], headers=accept, timeout=CALL_S)
    problem(renewed, 401, "TOKEN_MISSING")


def test_firmar_answers_the_pdf_when_accepted(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """`Accept: application/pdf` gives the signed bytes themselves."""
    accept = {"Accept": "application/pdf"}

    answer = client.post(
        "/solicitudes/firmar", json=command(signer, request_id), headers=accept
    )
    repeated = sign(client, signer, request_id)

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/pdf"
    digest = hashlib.sha256(answer.content).hexdigest()
    assert repeated.json()["sha256"] == digest
    (signature,) = pdfsig(answer.content)
    assert signature.valid


@pytest.mark.parametrize(
    "accept", ["*/*", "application/pdf;q=0.1, application/json", "text/html", ""]
)
def test_firmar_answers_json_otherwise(
    signer: TestPerson, client: httpx.Client, request_id: int, accept: str
) -> None:
    """Whoever does not prefer a PDF by name gets the answer of the spec."""
    answer = client.post(
        "/solicitudes/firmar",
        json=command(signer, request_id),
        headers={"Accept": accept},
    )

    assert answer.json()["status"] == "success"


def test_signed_pdf_is_valid_for_pdfsig_and_pyhanko(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """Two validators that are not ours agree: PAdES, valid, nothing else after it."""
    pdf = signed_pdf(client, signer, request_id)

    (seen,) = pdfsig(pdf)
    assert (seen.signer, seen.subfilter) == (signer.name, "ETSI.CAdES.detached")
    assert seen.valid
    (verdict,) = pyhanko_verdicts(pdf, appliance.roots)
    assert verdict.good, verdict.details
    assert (verdict.coverage, verdict.changes) == ("ENTIRE_REVISION", "LTA_UPDATES")


def test_rubrica_verify_agrees(
    appliance: Appliance,
    signer: TestPerson,
    client: httpx.Client,
    request_id: int,
    tmp_path: Path,
) -> None:
    """The command line says the same; of an altered file it says no."""
    pdf = signed_pdf(client, signer, request_id)
    good, bad = tmp_path / "good.pdf", tmp_path / "bad.pdf"
    good.write_bytes(pdf)
    bad.write_bytes(pdf.replace(b"/MediaBox", b"/mediaBox", 1))

    assert appliance.rubrica("verify", str(good)).returncode == 0
    assert appliance.rubrica("verify", str(bad)).returncode != 0


@pytest.mark.parametrize(
    ("code", "reason", "told"),
    [
        (
            ErrorCode.PDF_TOO_COMPLEX,
            "MemoryError",
            "it takes more memory or time than a job has",
        ),
        (
            ErrorCode.PDF_MALFORMED,
            f"{DIED} -11",
            "the program that reads it broke down",
        ),
    ],
)
def test_rubrica_verify_of_what_no_job_can_read_is_no_no(
    appliance: Appliance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: ErrorCode,
    reason: str,
    told: str,
) -> None:
    """It could not be checked, which has its own status."""

    async def refused(*_: object) -> NoReturn:
        raise DocumentRefusedError(code, reason)

    monkeypatch.setattr("appliance.cli.verify.report_on", refused)
    large = tmp_path / "large.pdf"
    large.write_bytes(pdfs.one_page())

    status = main(["--settings", str(appliance.settings_file), "verify", str(large)])

    assert status == 3
    assert capsys.readouterr().out.splitlines() == [
        f"{large}: INDETERMINATE",
        f"  nothing was checked: {told}",
    ]


def _audit(appliance: Appliance, request: int) -> list[AuditRow]:
    async def read(front: ServiceRegistry) -> list[AuditRow]:
        async with front.core.store.read() as transaction:
            return await transaction.audit.of_request(request)

    return appliance.do(read)


def test_audit_holds_intent_and_use_of_the_key(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """Consent, then the exact digest before the key is used, then its use.

    Source: design §3; spec "The signed PDF can be verified and audited".
    """
    pdf = signed_pdf(client, signer, request_id)

    rows = [row.event for row in _audit(appliance, request_id)]

    kinds = [event.event for event in rows]
    order = [
        EventKind.REQUEST_CREATED,
        EventKind.ACTIVATION_CREATED,
        EventKind.ACTIVATION_CLAIMED,
        EventKind.KEY_INTENDED,
        EventKind.KEY_USED,
        EventKind.REQUEST_SIGNED,
        EventKind.LINK_CREATED,
    ]
    assert [kind for kind in kinds if kind in order] == order
    by_kind = {event.event: event for event in rows}
    consent = by_kind[EventKind.ACTIVATION_CREATED]
    assert consent.actor == f"person:{signer.id}"
    assert consent.detail["factors"] == ["pwd", "otp", "sign-pwd"]
    intended = by_kind[EventKind.KEY_INTENDED]
    used = by_kind[EventKind.KEY_USED]
    assert intended.activation == used.activation == consent.activation
    (intent,) = appliance.intents(request_id)
    assert intended.detail["digest"] == intent.digest
    assert intent.state.value == "completada"
    digest = hashlib.sha256(pdf).hexdigest()
    assert digest in json.dumps(by_kind[EventKind.REQUEST_SIGNED].detail)


def test_audit_hangs_together(appliance: Appliance) -> None:
    """No writer's rows have a hole, and each hangs on the one before."""

    async def read(front: ServiceRegistry) -> dict[str, list[AuditRow]]:
        async with front.core.store.read() as transaction:
            return {
                writer: await transaction.audit.of_writer(writer)
                for writer in await transaction.audit.writers()
            }

    writers = appliance.do(read)

    assert len(writers) >= 3
    assert {
        w: first_break(rows) for w, rows in writers.items() if first_break(rows)
    } == {}


def test_original_is_what_came_in(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """The original's bytes, before and after signing, with the ETag of the detail."""
    before = client.get(f"/solicitudes/{request_id}/original")
    assert sign(client, signer, request_id).status_code == 200
    after = client.get(f"/solicitudes/{request_id}/original")

    assert before.content == after.content == pdfs.one_page()
    digest = hashlib.sha256(pdfs.one_page()).hexdigest()
    assert before.headers["ETag"] == f'"{digest}"'
    assert before.headers["Content-Disposition"].startswith("attachment")


def test_no_document_before_it_is_signed(client: httpx.Client, request_id: int) -> None:
    """Until there is one it is 409, to be asked again when a person may have signed."""
    answer = client.get(f"/solicitudes/{request_id}/documento")

    assert problem(answer, 409, "NOT_SIGNED_YET")["retryAfter"] == 60
    assert answer.headers["Retry-After"] == "60"


def _reds(png: bytes) -> tuple[int, int, int, int] | None:
    """The box of what is red, in pixels."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    red, green, blue = image.split()
    low = ImageChops.lighter(green, blue).point(lambda value: 255 * (value < 130))
    high = red.point(lambda value: 255 * (value > 200))
    return ImageChops.multiply(low, high).getbbox()


def test_preview_shows_the_stamp_where_it_will_be(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """The picture has the stamp in the box that the JSON names, and so has the PDF."""
    fields: dict[str, object] = {"fontColor": "RED", "x": 90, "y": 300, "fontSize": 14}
    url = f"/solicitudes/{request_id}/vista-previa"

    told = client.post(url, json=fields).json()
    picture = client.post(url, json=fields, headers={"Accept": "image/png"})

    box = told["sello"]
    assert (box["x"], box["y"], box["tamanoLetra"]) == (90, 300, 14)
    assert signer.name in box["texto"]
    assert picture.headers["Content-Type"] == "image/png"

    image = Image.open(io.BytesIO(picture.content))
    assert image.size == pytest.approx((595 * 96 / 72, 842 * 96 / 72), abs=1.5)
    seen = _reds(picture.content)
    assert seen is not None
    points = [side * 72 / 96 for side in seen]
    assert points[0] >= 90
    assert points[1] >= 300
    assert points[2] <= 90 + box["ancho"] + 1
    assert points[3] <= 300 + box["alto"] + 1
    assert points[2] - points[0] > 0.8 * box["ancho"]
    assert state_of(client, request_id) == "pendiente"
    stamp = read_stamp(signed_pdf(client, signer, request_id, **fields))
    assert stamp is not None
    place = (stamp.x, stamp.y, stamp.width, stamp.height)
    assert place == pytest.approx((90, 300, box["ancho"], box["alto"]), abs=0.01)


def test_preview_of_invisible_signature_has_no_stamp(
    client: httpx.Client, request_id: int
) -> None:
    """No box, and a page without anything of ours."""
    fields = {"fontColor": "RED", "visible": False}
    url = f"/solicitudes/{request_id}/vista-previa"

    assert client.post(url, json=fields).json()["sello"] is None
    png = client.post(url, json=fields, headers={"Accept": "image/png"}).content
    assert _reds(png) is None


def test_preview_refuses_what_firmar_refuses(
    client: httpx.Client, request_id: int
) -> None:
    """The same checks in the same words."""
    url = f"/solicitudes/{request_id}/vista-previa"

    problem(client.post(url, json={"page": 2}), 422, "PAGE_OUT_OF_RANGE")
    out = client.post(url, json={"x": 590, "y": 0})
    members = problem(out, 422, "POSITION_OUT_OF_PAGE")
    assert members["page"] == {"x": 0, "y": 0, "width": 595, "height": 842}
    problem(client.post(url, json={"fontSize": 3}), 400, "FIELD_INVALID")
    problem(client.post(url, json={"password": "x" * 9}), 400, "FIELD_UNKNOWN")


def _multipart(
    client: httpx.Client,
    file: bytes,
    options: object,
    accept: str = "*/*",
) -> httpx.Response:
    return client.post(
        "/solicitudes/firmar",
        files={
            "file": ("contrato.pdf", file, "application/pdf"),
            "options": (None, json.dumps(options), "application/json"),
        },
        headers={"Accept": accept},
    )


def test_document_in_the_call_answered_by_the_pdf(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """Parts `file` and `options`; unknown options are left aside."""
    options = {**command(signer, request_id), "certificateOptions": {"a": 1}}

    pdf = _multipart(client, pdfs.one_page(), options)
    told = _multipart(client, pdfs.one_page(), options, "application/json")

    assert pdf.headers["Content-Type"] == "application/pdf"
    assert pdf.content.startswith(pdfs.one_page())
    assert told.json()["sha256"] == hashlib.sha256(pdf.content).hexdigest()


def test_damaged_document_is_signed_as_its_repaired_copy(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """The copy is told of, shown and signed; the file as it came is known again.

    Source: docs/documents.md.
    """
    damaged = pdfs.junk_after_end()
    request = appliance.new_request(signer, damaged)

    told = client.get(f"/solicitudes/{request}").json()
    copy = client.get(f"/solicitudes/{request}/original").content
    options = {**command(signer, request), "visible": False}
    signed = _multipart(client, damaged, options)

    assert [each["codigo"] for each in told["avisos"]] == ["repaired"]
    repair = told["reparacion"]
    assert repair["sha256Original"] == hashlib.sha256(damaged).hexdigest()
    codes = [each["codigo"] for each in repair["danos"]]
    assert codes == ["cross_references", "surroundings"]
    assert all(each["texto"] for each in repair["danos"])
    assert hashlib.sha256(copy).hexdigest() == told["sha256"]
    assert b"PK\x03\x04" not in copy
    assert signed.status_code == 200
    assert signed.content.startswith(copy)
    (signature,) = pdfsig(signed.content)
    assert signature.valid


def test_hostile_documents_harm_nobody_else(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """Each is refused by its code while somebody else's document is signed.

    Source: reliability F33.
    """
    too_complex = [
        hostile_pdfs.xref_stream_bomb(),
        hostile_pdfs.content_bomb(),
        hostile_pdfs.many_pages(5_001),
        hostile_pdfs.deep_tree(),
    ]

    async def flood(front: ServiceRegistry) -> list[object]:
        order = intake_order(signer)
        return await asyncio.gather(
            *(front.intake.create_request(order, pdf) for pdf in too_complex),
            front.intake.create_request(order, hostile_pdfs.nested_arrays()),
            return_exceptions=True,
        )

    with ThreadPoolExecutor(1) as pool:
        flooding = pool.submit(appliance.do, flood)
        signed = signed_pdf(client, signer, request_id, visible=False)
        refused = flooding.result()

    assert signed.startswith(pdfs.one_page())
    codes = [getattr(each, "code", each) for each in refused]
    assert codes == [*["PDF_TOO_COMPLEX"] * len(too_complex), "PDF_MALFORMED"]


def test_sound_document_was_not_repaired(client: httpx.Client, request_id: int) -> None:
    """Nothing is said of a repair."""
    assert client.get(f"/solicitudes/{request_id}").json()["reparacion"] is None


def test_other_document_in_the_call_refused(
    signer: TestPerson, client: httpx.Client, request_id: int
) -> None:
    """A file that is not the request's is never signed."""
    options = command(signer, request_id)

    answer = _multipart(client, pdfs.pages(2), options)

    problem(answer, 422, "DOCUMENT_MISMATCH")
    problem(_multipart(client, b"", options), 422, "DOCUMENT_EMPTY")
    assert state_of(client, request_id) == "pendiente"

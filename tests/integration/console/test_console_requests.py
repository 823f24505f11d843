"""Requests made in the console, for one signer or several, and their refusals."""

import hashlib
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
from sqlalchemy import update

from appliance.database.tables import credential, signature_request
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.vocab import CredentialState, EventKind, RequestState
from appliance.requests.request_store import RequestStore
from tests.integration.console.forms import (
    ANA,
    LUIS,
    audited,
    failed_request,
    open_acme_console,
)
from tests.support.factories.fake_sandbox import BAD_PDF, DAMAGED_PDF
from tests.support.installation.console import NAME, PDF, Console


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


async def test_request_is_made_from_a_file(console: Console) -> None:
    """The page after it tells the document's findings and the request's story."""
    await console.person()

    answer = await console.upload(
        "/admin/requests",
        PDF,
        "Señal «uno».pdf",
        integrator="acme",
        cuil=ANA,
        days="30",
    )

    assert answer.location == "/admin/requests/1"
    page = (await console.get(answer.location)).text
    assert "Señal «uno».pdf" in page
    assert "El documento contiene JavaScript." in page
    assert "Solicitud creada" in page
    assert f"{NAME} (consola)" in page
    event = await audited(console, EventKind.REQUEST_CREATED)
    assert event.request == 1


async def test_request_of_a_damaged_file_tells_of_the_copy(console: Console) -> None:
    """The page names the file as it came, and what was wrong; so does the story."""
    await console.person()

    answer = await console.upload(
        "/admin/requests", DAMAGED_PDF, "a.pdf", integrator="acme", cuil=ANA, days=""
    )

    page = (await console.get(answer.location)).text
    original = hashlib.sha256(DAMAGED_PDF).hexdigest()
    assert page.count(original) == 2
    assert "El documento llegó dañado o se podía leer de más de una manera." in page
    assert "El largo de su contenido estaba mal." in page
    assert "Tenía bytes antes de su comienzo o después de su final." in page
    event = await audited(console, EventKind.REQUEST_CREATED)
    assert event.detail["damage"] == ["streams", "surroundings"]


async def test_request_of_several_signers(console: Console) -> None:
    """One request each, in the order typed; every page shows them all."""
    await console.person()
    await console.person(LUIS)

    answer = await console.upload(
        "/admin/requests", PDF, "a.pdf", integrator="acme", cuil=ANA, then=LUIS, days=""
    )

    assert answer.location == "/admin/requests/1"
    for number in (1, 2):
        page = (await console.get(f"/admin/requests/{number}")).text
        assert "Firmantes en orden" in page
        assert 'href="/admin/requests/1"' in page
        assert 'href="/admin/requests/2"' in page
        assert "En espera de otro firmante" in page
    events = await console.services.audited(EventKind.REQUEST_CREATED)
    assert [event.request for event in events] == [1, 2]
    assert events[1].detail["predecessor"] == 1


async def test_shared_turn_is_shown(console: Console) -> None:
    """Beside each signer; whoever takes one back is told that all of it end."""
    await console.person()
    await console.person(LUIS)
    await console.upload(
        "/admin/requests", PDF, "a.pdf", integrator="acme", cuil=ANA, then=LUIS, days=""
    )
    shared = {"turn": 1, "state": RequestState.PENDING.value}
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(update(signature_request).values(**shared))

    page = (await console.get("/admin/requests/1")).text
    assert page.count('<td data-label="Turno">1</td>') == 2
    asked = (await console.get("/admin/requests/1/cancel")).text
    assert "quienes comparten el turno o siguen" in asked


@pytest.mark.parametrize(
    ("cuil", "then", "told"),
    [
        (
            ANA,
            ANA,
            "20-05536168-2 está más de una vez: cada persona firma una sola vez.",
        ),
        (ANA, f"{LUIS}, {LUIS}", "está más de una vez"),
        (ANA, ",".join([LUIS] * 60), "Son 61 firmantes"),
        (ANA, "1, 2", "separados por comas"),
    ],
)
async def test_signers_are_refused_for_what_they_are(
    console: Console, cuil: str, then: str, told: str
) -> None:
    """Well-written CUILs are not said to be written wrong."""
    await console.person()
    await console.person(LUIS)
    typed = {"integrator": "acme", "cuil": cuil, "then": then, "days": ""}

    answer = await console.upload("/admin/requests", PDF, "a.pdf", **typed)

    assert answer.status == 422
    assert told in answer.fault_of("then")


@pytest.mark.parametrize(
    ("content", "name", "fields", "field"),
    [
        (PDF, "a.pdf", {"then": ANA}, "then"),
        (PDF, "a.pdf", {"then": LUIS}, "then"),
        (PDF, "a.pdf", {"then": "1, 2"}, "then"),
        (PDF, "a.pdf", {"cuil": "1"}, "cuil"),
        (PDF, "a.pdf", {"cuil": LUIS}, "cuil"),
        (PDF, "a.pdf", {"integrator": "nadie"}, "integrator"),
        (PDF, "a.pdf", {"integrator": ""}, "integrator"),
        (PDF, "a.pdf", {"days": "0"}, "days"),
        (PDF, "a.pdf", {"days": "4000"}, "days"),
        (PDF, "a.pdf", {"days": "٣"}, "days"),
        (PDF, "a.exe", {}, "file"),
        (BAD_PDF, "a.pdf", {}, "file"),
        (b"", "a.pdf", {}, "file"),
    ],
)
async def test_request_refused(
    console: Console, content: bytes, name: str, fields: dict[str, str], field: str
) -> None:
    """Each fault stands at its field, and nothing is recorded."""
    await console.person()
    typed = {"integrator": "acme", "cuil": ANA, "days": "", **fields}

    answer = await console.upload("/admin/requests", content, name, **typed)

    assert answer.status == 422
    assert answer.fault_of(field)
    assert await console.services.audited(EventKind.REQUEST_CREATED) == []


async def test_request_needs_a_file(console: Console) -> None:
    """A form without a file is told so, multipart or not."""
    answer = await console.post("/admin/requests", integrator="acme", cuil=ANA, days="")

    assert answer.fault_of("file")


async def test_request_tells_all_its_faults_at_once(console: Console) -> None:
    """What was left out and what is wrong, each at its field and in its words."""
    answer = await console.post("/admin/requests", cuil=ANA, days="x")

    assert answer.fault_of("file") == "Elegí un archivo PDF."
    wanted = "Escribí el código o el nombre del integrador."
    assert answer.fault_of("integrator") == wanted
    assert "de 1 a 3650" in answer.fault_of("days")
    empty = await console.post("/admin/requests")
    assert empty.fault_of("cuil") == "Falta el CUIL."
    assert empty.fault_of("file")


async def test_request_knows_the_only_integrator(console: Console) -> None:
    """Where there is one alone it is in its field; of several nobody guesses."""
    filled = 'name="integrator" type="search" list="l-integrator" value="acme"'
    assert filled in (await console.get("/admin/requests/new")).text

    await console.post("/admin/integrators", code="beta", name="Beta")

    assert filled not in (await console.get("/admin/requests/new")).text


@pytest.mark.parametrize("number", ["7", "9" * 16, "9" * 400])
async def test_request_that_is_not_there(console: Console, number: str) -> None:
    """An unknown number is a page in words."""
    answer = await console.get(f"/admin/requests/{number}")

    assert answer.status == 404
    assert "SOLICITUD_NOT_FOUND" in answer.text


async def test_story_says_factors_and_states_in_words(console: Console) -> None:
    """On the request's page and in the audit; a word that is none stays as it is."""
    await console.person()
    request = RequestId(await console.request(ANA.replace("-", "")))
    async with console.services.store.write() as transaction:
        for kind, detail in (
            (EventKind.ACTIVATION_CREATED, {"factors": ["pwd", "otp", "sign-pwd"]}),
            (EventKind.ACTIVATION_EXPIRED, {"was": "keying", "now": "<odd>"}),
        ):
            transaction.audit.add(
                AuditEvent(kind, "system", request=request, detail={**detail})
            )

    for path in (f"/admin/requests/{request}", f"/admin/audit?request={request}"):
        page = (await console.get(path)).text
        assert (
            "contraseña de ingreso, código de un solo uso, contraseña de firma" in page
        )
        assert "firmándose con la clave" in page
        assert "&lt;odd&gt;" in page
        assert "keying" not in page
        assert ">pwd<" not in page


async def test_rejection_is_one_entry_of_the_history(console: Console) -> None:
    """Also where an earlier version recorded that the signer left, right before."""
    await console.person()
    request = RequestId(await console.request(ANA.replace("-", "")))
    async with console.services.store.write() as transaction:
        for kind in (
            EventKind.SESSION_CANCELLED,
            EventKind.SESSION_CANCELLED,
            EventKind.REQUEST_REJECTED,
        ):
            transaction.audit.add(AuditEvent(kind, "system", request=request))

    page = (await console.get(f"/admin/requests/{request}")).text
    kept = (await console.get(f"/admin/audit?request={request}")).text

    left = "El firmante canceló la sesión"
    rejected = "El firmante rechazó la solicitud"
    assert (page.count(left), page.count(rejected)) == (1, 1)
    assert kept.count(left) == page.count(left) + 1 + kept.count(f">{left}</option>")


async def test_reason_is_a_sentence_with_its_remedy(console: Console) -> None:
    """Not the code that stands recorded; what a signer wrote is quoted."""
    await console.person()
    number = await console.request("20055361682")
    async with console.services.store.write() as transaction:
        await RequestStore(transaction).move(
            RequestId(number),
            RequestState.PENDING,
            RequestState.CANCELLED,
            "SIGNING_FAILED",
        )
    text = (await console.get(f"/admin/requests/{number}")).text
    assert "SIGNING_FAILED" not in text
    assert "volvé a pedir la firma" in text


async def test_what_failed_for_good_is_not_told_as_tried_again(
    console: Console,
) -> None:
    """Whatever its code: the page says why, and offers to ask again."""
    await console.person()
    request = await failed_request(console)
    for code in ErrorCode:
        async with console.services.store.write() as transaction:
            await transaction.connection.execute(
                update(signature_request).values(reason=code.value)
            )
        page = unescape((await console.get(f"/admin/requests/{request}")).text)
        assert not re.search("(?<!No )se reintenta", page), code
        assert "Pedir de nuevo" in page


async def test_failed_request_names_its_tsa_and_what_it_said(console: Console) -> None:
    """As the audit has it from the moment of the failure."""
    await console.person()
    request = await failed_request(console)
    async with console.services.store.write() as transaction:
        why: dict[str, object] = {"reason": "TSA_UNAVAILABLE", "tsa": "sello"}
        why["cause"] = "HTTP status 503"
        transaction.audit.add(
            AuditEvent(EventKind.REQUEST_FAILED, "system", request=request, detail=why)
        )

    page = unescape((await console.get(f"/admin/requests/{request}")).text)

    assert "No se pudo obtener un sello de tiempo dentro del plazo" in page
    assert "Autoridad de sellado de tiempo: sello." in page
    assert "Dijo: HTTP status 503" in page


async def test_failed_request_is_asked_again(console: Console) -> None:
    """A new request of the same document to the same signers, which leads to it."""
    await console.person()
    await console.person(LUIS)
    await console.upload(
        "/admin/requests",
        PDF,
        "a.pdf",
        integrator="acme",
        cuil=ANA,
        then=LUIS,
        days="9",
    )
    store = console.services.store
    async with store.write() as transaction:
        for number, reason in ((1, "TSA_UNAVAILABLE"), (2, "PROCESS_ENDED")):
            await transaction.connection.execute(
                update(signature_request)
                .where(signature_request.c.id == number)
                .values(state=RequestState.FAILED.value, reason=reason)
            )
    assert "Pedir de nuevo" not in (await console.get("/admin/requests/2")).text

    answer = await console.post("/admin/requests/1/again")

    assert answer.location == "/admin/requests/3"
    assert "reemplaza a la que falló" in (await console.get(answer.location)).text
    async with store.read() as transaction:
        views = [await RequestStore(transaction).get(RequestId(n)) for n in range(1, 5)]
    old, _, first, second = [view for view in views if view is not None]
    assert (first.state, second.state) == (RequestState.PENDING, RequestState.WAITING)
    assert (first.sha256, first.document_name) == (old.sha256, old.document_name)
    assert first.expires == old.expires
    assert first.process == second.process != old.process


@pytest.mark.parametrize("state", [RequestState.PENDING, RequestState.CANCELLED])
async def test_only_what_failed_is_asked_again(
    console: Console, state: RequestState
) -> None:
    """Else the page says so, and nothing is made."""
    await console.person()
    request = await console.request("20055361682")
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request).values(state=state.value)
        )
    answer = await console.post(f"/admin/requests/{request}/again")
    assert answer.status == 409
    assert (await console.get("/admin/requests/2")).status == 404


async def test_request_whose_signer_cannot_sign_says_so(console: Console) -> None:
    """Once the certificate is revoked, with what to do; not before, nor when signed."""
    person = await console.person()
    request = await console.request("20055361682")
    said, path = "Esta solicitud no se puede firmar", f"/admin/requests/{request}"
    assert said not in (await console.get(path)).text
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(credential)
            .where(credential.c.person == person)
            .values(state=CredentialState.REVOKED.value)
        )
    assert said in (await console.get(path)).text


async def test_pending_request_is_cancelled_after_being_asked(console: Console) -> None:
    """Only where the move is legal; said by whom; the rest of its signers too."""
    await console.person()
    number = await console.request("20055361682")
    here = f"/admin/requests/{number}"
    page = (await console.get(here)).text
    assert f'href="{here}/cancel"' in page
    assert "Vence" in page
    assert "Ana María Núñez ya no va" in (await console.get(f"{here}/cancel")).text

    done = await console.post(f"{here}/cancel")

    assert done.location == here
    page = (await console.get(here)).text
    assert "Cancelada" in page
    assert f"{here}/cancel" not in page
    assert "Vence" not in page
    await audited(console, EventKind.REQUEST_CANCELLED)
    assert "La solicitud quedó cancelada." in page
    again = await console.post(f"{here}/cancel")
    assert again.location == here
    await audited(console, EventKind.REQUEST_CANCELLED)
    shown = await console.get(f"{here}/cancel")
    assert shown.status == 409
    assert "ya no lo permite" in shown.text
    assert 'data-kind="danger"' not in shown.text
    assert (await console.post("/admin/requests/999/cancel")).status == 404


async def test_original_is_downloaded_and_recorded(console: Console) -> None:
    """To be saved under its name, byte for byte; who took it stands in the audit."""
    await console.person()
    number = await console.request("20055361682", "Señal «uno».pdf")

    answer = await console.get(f"/admin/requests/{number}/original")

    assert answer.status == 200
    assert answer.text.encode() == PDF
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith("attachment; ")
    assert "Se%C3%B1al%20%C2%ABuno%C2%BB.pdf" in disposition
    event = await audited(console, EventKind.DOCUMENT_DOWNLOADED)
    assert event.request == number
    assert event.detail == {"documentSha256": hashlib.sha256(PDF).hexdigest()}
    unsigned = await console.get(f"/admin/requests/{number}/signed")
    assert unsigned.status == 409
    assert (await console.get("/admin/requests/999/original")).status == 404


async def test_copy_and_file_as_received_are_both_downloaded(console: Console) -> None:
    """Each by its own name on the page, and by its own hash in the audit."""
    await console.person()
    number = await console.request("20055361682", pdf=DAMAGED_PDF)
    here = f"/admin/requests/{number}"
    page = (await console.get(here)).text

    assert "Descargar el original" not in page
    for label, path, is_whole in (
        ("Descargar la copia que se firma", "original", False),
        ("Descargar el archivo tal como llegó", "received", True),
    ):
        assert f'href="{here}/{path}">{label}' in page
        got = (await console.get(f"{here}/{path}")).text.encode()
        assert (got == DAMAGED_PDF) == is_whole
        *_, event = await console.services.audited(EventKind.DOCUMENT_DOWNLOADED)
        assert event.detail == {"documentSha256": hashlib.sha256(got).hexdigest()}


async def test_integrator_is_written_or_chosen(console: Console) -> None:
    """By its code or its whole name; not by a part, be it of one or of two."""
    await console.person()
    for code, name in (("sur-1", "Estudio Sur"), ("sur-2", "Estudio Sur Dos")):
        await console.front.integrators.create("operator", code, name)
    options = (await console.get("/admin/integrators/options?integrator=sur")).text
    assert options.count("<option") == 2
    assert "<html" not in options

    for typed in (
        "acme",
        "ACME s.a.",
        "Estudio Sur",
        "estudio sur dos",
        "sur-2",
    ):
        made = await console.upload(
            "/admin/requests", PDF, "a.pdf", integrator=typed, cuil=ANA, days=""
        )
        assert made.status == 303, typed
    for typed in ("acm", "sur", "nadie", ""):
        made = await console.upload(
            "/admin/requests", PDF, "a.pdf", integrator=typed, cuil=ANA, days=""
        )
        assert made.fault_of("integrator"), typed
    asked = await console.upload(
        "/admin/requests", PDF, "a.pdf", integrator="acm", cuil=ANA, days=""
    )
    assert "ACME S.A. (acme)" in asked.fault_of("integrator")
    assert 'list="l-integrator" value="acme"' in asked.text
    # A form that comes again has its fields, but never its file.
    again = "Elegilo de nuevo"
    assert again in asked.text
    assert again not in (await console.get("/admin/requests/new")).text
    listed = await console.get("/admin/requests?integrator=estudio+sur")
    assert listed.text.count("Estudio Sur</a>") == 1

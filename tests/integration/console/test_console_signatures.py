"""How an integrator's signatures are made and look, in the console."""

import html
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.levels import ProfileWishes, Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import EventKind, RequestState, SignatureLevel
from appliance.requests.request_store import RequestStore
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from tests.support.installation.console import PDF, Console
from tests.support.installation.installation import Installation
from tests.support.installation.record import begin_request

HERE = "/admin/integrators/acme"
USUAL = {"name": "ACME S.A.", "deliveryLimitBytes": 8_000_000, "mayVouch": False}
CHOSEN = {"level": "B-LTA", "timestampPolicy": "required", "digest": "sha384"}
PROFILE, STAMP = f"{HERE}/profile", f"{HERE}/stamp"


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with Installation(tmp_path).console() as made:
        await made.sign_in()
        await made.post("/admin/integrators", code="acme", name="ACME S.A.")
        yield made


async def test_profile_is_chosen_and_taken_back(console: Console) -> None:
    """Each change is audited with what was before; what the record has is shown."""
    await console.post(PROFILE, level="B-LTA", policy="required", digest="sha384")
    shown = (await console.get(PROFILE)).text
    view = await console.front.integrators.get("acme")
    answer = await console.post(PROFILE, level="", policy="", digest="")

    assert (view.level, view.digest) == ("B-LTA", "sha384")
    assert 'value="B-LTA" checked' in shown
    assert "Como la instalación: B-LT" in shown
    assert answer.status == 303
    chosen, back = await console.services.audited(EventKind.INTEGRATOR_CHANGED)
    for shown_in in (chosen.detail["after"], back.detail["before"]):
        assert shown_in == USUAL | CHOSEN
    assert chosen.detail["before"] == back.detail["after"] == USUAL


async def test_every_change_is_told(console: Console) -> None:
    """Once, at the top of the page that follows."""
    changes = [
        (f"{HERE}/profile", {"level": "B-B", "policy": "", "digest": ""}, "guardado"),
        (f"{HERE}/prefix", {"event_prefix": "acme"}, "guardado"),
        (f"{HERE}/name", {"name": "ACME"}, "guardado"),
        (f"{HERE}/domains", {"origin": "https://app.example"}, "quedó autorizado"),
        (f"{HERE}/disable", {}, "El integrador quedó deshabilitado."),
        (f"{HERE}/enable", {}, "El integrador quedó habilitado de nuevo."),
    ]
    for path, fields, told in changes:
        answer = await console.post(path, **fields)
        notice = (await console.get(answer.location)).text.partition("<main")[2]
        assert '<div class="notice" role="status">' in notice, path
        assert told in notice, path
        assert 'class="notice"' not in (await console.get(answer.location)).text


async def test_profile_of_no_list_is_refused(console: Console) -> None:
    """Nothing changes."""
    answer = await console.post(PROFILE, level="B-Z", policy="", digest="")

    assert answer.status == 422
    assert await console.services.audited(EventKind.INTEGRATOR_CHANGED) == []


async def test_request_tells_its_level_versions_and_what_is_due(
    console: Console,
) -> None:
    """The level wished for, then the one reached and the one to come."""
    await console.person()
    fields = {"integrator": "acme", "cuil": "20-05536168-2", "days": "30"}
    refused = await console.upload(
        "/admin/requests", PDF, "a.pdf", level="B-Z", **fields
    )
    made = await console.upload(
        "/admin/requests", PDF, "a.pdf", level="B-LTA", **fields
    )
    before = await console.get(made.location)
    number = RequestId(int(made.location.rpartition("/")[2]))
    async with console.services.store.write() as transaction:
        view = await RequestStore(transaction).get(number)
        assert view is not None
        await begin_request(transaction, number, "ff" * 32)
        at = console.clock.now()
        for version, level in enumerate(("B-B", "B-T"), 1):
            signed = SignedDocumentView(
                number, view.integrator, "a.pdf", f"{version:064x}", 50, level, version
            )
            await DocumentStore(transaction).sealed(number, signed, at)
        await RequestStore(transaction).move(
            number, RequestState.IN_PROGRESS, RequestState.SIGNED
        )
        due = Upkeep(SignatureLevel.B_LTA, at + timedelta(minutes=1))
        await LevelMaintenanceStore(transaction).add(
            number, IntegratorId(view.integrator), due, at
        )
    after = await console.get(made.location)

    assert refused.status == 422
    assert view.wishes == ProfileWishes(SignatureLevel.B_LTA)
    assert "B-LTA: " in before.text
    assert "<b>B-T</b>" in after.text
    assert "versión 2" in after.text
    assert "Va a subir a B-LTA" in after.text


async def test_stamp_is_tried_out(console: Console) -> None:
    """The picture, its words, and the fields to copy; what cannot be is said."""
    usual = await console.get(STAMP)
    tried = await console.get(
        f"{STAMP}?fontColor=%23aa0000&fontSize=20&motivo=Visto&qr=yes"
    )
    wrong = await console.get(f"{STAMP}?fontColor=rojo")
    size = await console.get(f"{STAMP}?fontSize=73")

    assert "data:image/png;base64," in usual.text
    assert "fontColor&#34;" not in usual.text
    for part in ('"fontColor": "#AA0000"', '"motivo": "Visto"', '"qr": true'):
        assert part in html.unescape(tried.text)
    assert "Motivo: Visto" in tried.text
    assert wrong.status == size.status == 422
    assert wrong.fault_of("fontColor")
    assert size.fault_of("fontSize")


async def test_logo_is_shown_and_dropped(console: Console) -> None:
    """From a file; one that is no picture is refused at its field."""
    await console.get(STAMP)
    refused = await console.upload(f"{STAMP}/logo", PDF, "logo.png")
    await console.upload(f"{STAMP}/logo", b"picture", "logo.png")
    own = await console.front.stamp_samples.logo("acme")
    shown = await console.get(STAMP)
    await console.post(f"{STAMP}/logo/remove")

    assert refused.status == 422
    assert refused.fault_of("file")
    assert own is not None
    assert own.is_own
    assert "2 por 1 píxeles" in shown.text
    assert await console.front.stamp_samples.logo("acme") is None
    assert len(await console.services.audited(EventKind.LOGO_CHANGED)) == 2

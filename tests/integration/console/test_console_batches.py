"""Batches in the lists of requests, on both databases."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from appliance.console import views as console_views
from appliance.database import tables
from appliance.domain.audit.record import AuditEvent
from appliance.domain.console.lists import RequestFilter
from appliance.domain.ids import RequestBatchId, RequestId, new_id
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.process import ProcessNote
from appliance.domain.vocab import EventKind, RequestState
from appliance.integrators.integrator_store import IntegratorStore
from appliance.requests.request_batch_store import RequestBatchStore
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation

ANA, LUIS = "20055361682", "20267565393"
REFERENCE = "recibos-2026-11"


@dataclass
class Batches:
    """A console with a batch of three, one of its requests signed, and one beside."""

    site: Console
    lote: RequestBatchId
    within: list[RequestId]
    beside: RequestId

    async def listed(self, text: str = "", **wanted: Any) -> list[RequestId]:
        """Numbers on the first page."""
        asked = RequestFilter(text=text, **wanted)
        page = await self.site.front.views.requests(asked)
        return [row.id for row in page.rows]

    async def batch(
        self, *numbers: int, reference: str | None = REFERENCE, code: str = "acme"
    ) -> RequestBatchId:
        """Have requests be a batch."""
        lote, request = RequestBatchId(new_id()), tables.signature_request
        self.site.clock.forward(1)
        async with self.site.services.store.write() as transaction:
            whose = await IntegratorStore(transaction).get(code)
            assert whose is not None
            note = ProcessNote("k", reference)
            new = RequestBatch(lote, whose.id, self.site.clock.now(), note)
            await RequestBatchStore(transaction).add(new)
            named = update(request).where(request.c.id.in_(numbers))
            await transaction.connection.execute(named.values(batch=lote))
        return lote


@pytest.fixture
async def batches(tmp_path: Path, each_url: str) -> AsyncIterator[Batches]:
    """Requests of two people; the one beside is the newest, and is no batch's."""
    async with Installation(tmp_path, each_url).console() as site:
        await site.front.integrators.create("operator", "acme", "ACME S.A.")
        await site.front.integrators.create("operator", "otra", "Otra S.R.L.")
        await site.person(ANA, "Ana María Núñez")
        await site.person(LUIS, "Luis Ángel Peña")
        names = [f"recibo {n}.pdf" for n in range(3)]
        within = [RequestId(await site.request(ANA, name)) for name in names]
        beside = RequestId(await site.request(LUIS, f"sobre {REFERENCE}.pdf"))
        made = Batches(site, RequestBatchId(""), within, beside)
        made.lote = await made.batch(*within)
        request = tables.signature_request
        signed = update(request).where(request.c.id == within[0])
        async with site.services.store.write() as transaction:
            await transaction.connection.execute(
                signed.values(state=RequestState.SIGNED.value)
            )
        yield made


async def test_batch_is_found(batches: Batches) -> None:
    """By its id alone, in either case; by its reference, before names that have it."""
    newest = batches.within[::-1]

    assert await batches.listed(batches.lote) == newest
    assert await batches.listed(f" {batches.lote.upper()} ") == newest
    assert await batches.listed(REFERENCE) == [*newest, batches.beside]
    assert await batches.listed(REFERENCE, state=RequestState.SIGNED) == newest[2:]
    assert await batches.listed(batches.lote, integrator="otra") == []
    assert await batches.listed(REFERENCE, integrator="otra") == []
    assert await batches.listed(new_id()) == []
    assert await batches.listed(REFERENCE[:-1]) == [batches.beside]


async def test_filter_lists_a_batch_alone(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page by page, with other filters, and no other's batch."""
    views, wanted = batches.site.front.views, RequestFilter(batch=batches.lote)
    other = await batches.batch(batches.beside)

    assert await batches.listed(batch=other) == [batches.beside]
    assert await batches.listed("recibo 1", batch=batches.lote) == batches.within[1:2]
    assert await batches.listed(other, batch=batches.lote) == []
    monkeypatch.setattr(console_views, "PAGE", 2)
    first = await views.requests(wanted)
    assert first.following is not None
    rest = await views.requests(wanted, first.following)
    assert rest.following is None
    found = [row.id for row in (*first.rows, *rest.rows)]
    assert found == batches.within[::-1]


async def test_reference_of_several_batches(
    batches: Batches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest batch comes first; what a page has no room for comes on no other."""
    other = await batches.batch(batches.beside)
    views, wanted = batches.site.front.views, RequestFilter(text=REFERENCE)

    named = await views.batches(wanted)
    assert [batch.id for batch in named] == [other, batches.lote]
    assert [batch.total for batch in named] == [1, 3]
    assert await batches.listed(REFERENCE) == [batches.beside, *batches.within[::-1]]
    monkeypatch.setattr(console_views, "PAGE", 2)
    page = await views.requests(wanted)
    assert [row.id for row in page.rows] == [batches.beside, batches.within[2]]
    assert page.following is None


async def test_list_shows_its_batch(batches: Batches) -> None:
    """How many of it are in which state, each a link; the filter can be taken off."""
    await batches.site.sign_in()
    searched = (await batches.site.get(f"/admin/requests?q={REFERENCE}")).text
    address = f"/admin/requests?batch={batches.lote}"
    assert f'<a href="{address}">{REFERENCE}</a>' in searched
    assert "3 solicitudes" in searched

    shown = (await batches.site.get(address)).text

    assert f'href="{address}&amp;state=firmada">Firmada: 1<' in shown
    assert f'href="{address}&amp;state=pendiente">Pendiente: 2<' in shown
    assert f'href="/admin/requests">Lote: <b>{REFERENCE}</b>' in shown
    assert f'<input type="hidden" name="batch" value="{batches.lote}">' in shown
    assert "recibo 2.pdf" in shown
    assert f"sobre {REFERENCE}.pdf" not in shown


async def test_history_tells_which_request_a_session_went_on_to(
    batches: Batches,
) -> None:
    """In words, with a link to each."""
    first, second, _ = batches.within
    detail = {"before": first, "after": second, "session": "s"}
    async with batches.site.services.store.write() as transaction:
        transaction.audit.add(
            AuditEvent(
                EventKind.SESSION_REQUEST, "system", request=second, detail=detail
            )
        )
    await batches.site.sign_in()

    shown = (await batches.site.get(f"/admin/requests/{second}")).text

    for label, number in (
        ("solicitud anterior de la sesión", first),
        ("solicitud", second),
    ):
        link = f'<a href="/admin/requests/{number}">#{number}</a>'
        assert f"<dt>{label}</dt><dd>{link}</dd>" in shown
    assert "<dt>antes</dt>" not in shown


async def test_batch_without_a_reference(batches: Batches) -> None:
    """Is called by its id; one that is not there lists nothing."""
    lote = await batches.batch(batches.beside, reference=None)
    await batches.site.sign_in()

    shown = (await batches.site.get(f"/admin/requests?batch={lote}")).text
    assert f"Lote: <b>{lote}</b>" in shown
    assert f"sobre {REFERENCE}.pdf" in shown
    for unknown in (new_id(), "nada", "%00"):
        answer = await batches.site.get(f"/admin/requests?batch={unknown}")
        assert answer.status in {200, 400}, unknown
        assert "recibo" not in answer.text

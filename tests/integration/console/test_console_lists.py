"""Lists of the console on both databases: filters, pages, the audit's chain."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update

from appliance.console import views as console_views
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.audit.record import AuditEvent
from appliance.domain.console.lists import AuditFilter, PeopleFilter, RequestFilter
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestBatchId, RequestId, new_id
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.process import ProcessNote
from appliance.domain.vocab import EventKind, HelpTopic, PersonState, RequestState
from appliance.record import audit_check
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from tests.integration.console.forms import failed_request
from tests.support.factories.held_credential import hold
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation

ANA, LUIS, EVA = "20055361682", "20267565393", "27301234568"
NAMES = {ANA: "Ana María Núñez", LUIS: "Luis ÁNGEL Peña", EVA: "Eva 100% O_O"}


@pytest.fixture
async def console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console on either database, with three people and an integrator."""
    async with Installation(tmp_path, each_url).console() as made:
        await made.front.integrators.create("operator", "acme", "ACME S.A.")
        for cuil, name in NAMES.items():
            await made.person(cuil, name, enrolled=cuil != EVA)
        yield made


async def found(console: Console, **wanted: Any) -> list[str]:
    """Names of the people that a filter finds, newest first."""
    page = await console.front.views.people(replace(PeopleFilter(), **wanted))
    return [row.name for row in page.rows]


async def execute(console: Console, statement: object) -> None:
    """Change the record behind everybody's back."""
    engines = open_engines(console.services.settings)
    async with engines.writer.begin() as connection:
        await connection.execute(statement)  # type: ignore[call-overload]  # any statement
    await engines.dispose()


async def test_people_are_found_as_typed(console: Console) -> None:
    """By part of a name without accents or case, of a CUIL, or a whole address."""
    cases = {
        "": [EVA, LUIS, ANA],
        "nunez": [ANA],
        "NÚÑEZ": [ANA],
        "maría nú": [ANA],
        "maria n": [ANA],
        "ángel": [LUIS],
        "PENA": [LUIS],
        "100%": [EVA],
        "%": [EVA],
        "o_o": [EVA],
        "_": [EVA],
        "\\": [],
        "20-05536168-2": [ANA],
        "0553": [ANA],
        f"{LUIS}@DEMO.example": [LUIS],
        "luis@demo.example": [],
    }

    for text, cuils in cases.items():
        assert await found(console, text=text) == [NAMES[cuil] for cuil in cuils], text


async def test_people_are_filtered_by_state_and_lock(console: Console) -> None:
    """Each filter narrows, and both together."""
    assert await found(console, state=PersonState.INVITED) == [NAMES[EVA]]
    assert await found(console, locked=True) == []
    assert len(await found(console, state=PersonState.ACTIVE)) == 2


async def test_pages_hold_everybody_once(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cursors lead through all rows without a gap or a repeat, equal times too."""
    monkeypatch.setattr(console_views, "PAGE", 2)
    await execute(console, update(tables.person).values(created=console.clock.now()))
    seen, cursor = [], ""
    for _ in range(5):
        page = await console.front.views.people(PeopleFilter(), cursor)
        seen += [row.id for row in page.rows]
        if page.following is None:
            break
        cursor = page.following

    assert len(seen) == len(set(seen)) == 3
    assert seen == sorted(seen, reverse=True)


async def test_made_up_cursor_is_refused(console: Console) -> None:
    """A cursor that is none is the request's fault."""
    views = console.front.views
    for cursor in ("x", "20260101T000000~y", "~", "é", "1" * 300):
        for listed in (
            views.people(PeopleFilter(), cursor),
            views.requests(RequestFilter(), cursor),
            views.audit(AuditFilter(), cursor),
        ):
            with pytest.raises(ApplianceError) as raised:
                await listed
            assert raised.value.code is ErrorCode.QUERY_INVALID


async def test_requests_are_filtered(console: Console) -> None:
    """By text, number, state, integrator, signer and day."""
    await console.front.integrators.create("operator", "otro", "Otro")
    first = await console.request(ANA, "Señal.pdf")
    second = await console.request(LUIS, "contrato_2.pdf", "otro")
    views = console.front.views
    (ana,) = (await views.people(PeopleFilter(text="nunez"))).rows
    now = console.clock.now()
    cases = {
        RequestFilter(): [second, first],
        RequestFilter(text="senal"): [first],
        RequestFilter(text=str(second)): [second],
        RequestFilter(text="9" * 30): [],
        RequestFilter(state=RequestState.PENDING): [second, first],
        RequestFilter(state=RequestState.SIGNED): [],
        RequestFilter(integrator="otro"): [second],
        RequestFilter(person=ana.id): [first],
        RequestFilter(since=now): [second],
        RequestFilter(before=now): [first],
        RequestFilter(integrator="otro", person=ana.id): [],
    }

    for wanted, numbers in cases.items():
        page = await views.requests(wanted)
        assert [row.id for row in page.rows] == numbers, wanted


async def test_requests_are_found_by_their_integrators_reference(
    console: Console,
) -> None:
    """Exactly, each once; their page shows it, with what was written to the signers."""
    other, called = await console.request(ANA), await console.request(LUIS)
    note = ProcessNote(reference="EXP/17", message="Vence\nel viernes")
    async with console.services.store.write() as transaction:
        view = await RequestStore(transaction).get(RequestId(called))
        assert view is not None
        await ProcessStore(transaction).change(view.process, note)

    async def listed(text: str) -> list[RequestId]:
        page = await console.front.views.requests(RequestFilter(text=text))
        return [row.id for row in page.rows]

    assert await listed("EXP/17") == [called]
    assert await listed("EXP/1") == []
    assert await listed(str(other)) == [other]
    await console.sign_in()
    shown = await console.get(f"/admin/requests/{called}")
    assert "EXP/17" in shown.text
    assert "Vence\nel viernes" in shown.text


async def test_request_names_its_batch(console: Console) -> None:
    """The batch that it was asked for with, and the integrator's name for that."""
    number, lote = await console.request(ANA), RequestBatchId(new_id())
    async with console.services.store.write() as transaction:
        view = await RequestStore(transaction).get(RequestId(number))
        assert view is not None
        note = ProcessNote("k", "recibos-2026-11")
        batch = RequestBatch(lote, view.integrator, view.created, note)
        await RequestBatchStore(transaction).add(batch)
        named = update(tables.signature_request).where(
            tables.signature_request.c.id == number
        )
        await transaction.connection.execute(named.values(batch=lote))

    await console.sign_in()
    shown = await console.get(f"/admin/requests/{number}")

    assert "<dt>Lote</dt>" in shown.text
    assert lote in shown.text
    assert "recibos-2026-11" in shown.text
    assert f'<a href="/admin/requests?batch={lote}">' in shown.text


async def test_audit_is_filtered(console: Console) -> None:
    """By event, actor, request, integrator and process."""
    number = await console.request(ANA)
    views = console.front.views

    async def kinds(**wanted: Any) -> set[EventKind]:
        page = (await views.audit(replace(AuditFilter(), **wanted))).page
        return {row.event.event for row in page.rows}

    assert await kinds(event=EventKind.PERSON_INVITED) == {EventKind.PERSON_INVITED}
    assert EventKind.REQUEST_CREATED in await kinds(integrator="acme")
    assert await kinds(integrator="nadie") == set()
    assert await kinds(request=RequestId(number)) == {EventKind.REQUEST_CREATED}
    assert await kinds(actor="operator") == {
        EventKind.INTEGRATOR_CREATED,
        EventKind.CONSOLE_USER_CREATED,
    }
    assert await kinds(since=console.clock.now()) == {
        EventKind.REQUEST_CREATED,
        # The integrator's first document is the first that needs its key.
        EventKind.DOCUMENT_KEY_CREATED,
    }
    assert await kinds(writer="x") == set()


async def test_audit_pages_hold_every_row_once(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one instant and several processes are neither lost nor repeated."""
    async with console.services.store.write() as transaction:
        for _ in range(7):
            transaction.audit.add(AuditEvent(EventKind.LINK_CREATED, "system"))
    monkeypatch.setattr(console_views, "PAGE", 3)
    seen, cursor = [], ""
    while True:
        page = (await console.front.views.audit(AuditFilter(), cursor)).page
        seen += [(row.at, row.writer, row.n) for row in page.rows]
        if page.following is None:
            break
        cursor = page.following

    async with console.services.store.read() as transaction:
        writers = await transaction.audit.writers()
        total = sum([len(await transaction.audit.of_writer(w)) for w in writers])
    assert len(seen) == len(set(seen)) == total
    assert seen == sorted(seen, reverse=True)


async def test_audit_names_people_and_administrators(console: Console) -> None:
    """Ids in rows come with words; integrators with their code."""
    await console.sign_in()
    (row,) = (await console.front.views.people(PeopleFilter(text="nunez"))).rows

    names = (await console.front.views.audit(AuditFilter())).names

    assert names.people[row.id] == NAMES[ANA]
    assert "marta" in names.administrators.values()
    assert "acme" in names.integrators.values()


async def test_whole_chain_is_said_to_be_whole(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row of a process is read again, in steps."""
    monkeypatch.setattr(audit_check, "_STEP", 2)
    writer = await _writer(console)

    view = await console.front.views.chain(writer)

    assert view.whole
    assert view.checked == view.writer.n > 3


@pytest.mark.parametrize(
    ("change", "broken_at"),
    [("detail", 2), ("actor", 2), ("gone", 2), ("last", 5)],
)
async def test_altered_chain_is_said_to_be_broken(
    console: Console, change: str, broken_at: int
) -> None:
    """A changed or missing row is found, the last one too."""
    async with console.services.store.write() as transaction:
        for _ in range(2):
            transaction.audit.add(AuditEvent(EventKind.LINK_CREATED, "system"))
    writer = await _writer(console)
    whole = await console.front.views.chain(writer)
    row = tables.audit_event
    number = whole.writer.n if change == "last" else 2
    here = (row.c.writer == writer) & (row.c.n == number)
    statements = {
        "detail": update(row).where(here).values(detail={"otro": 1}),
        "actor": update(row).where(here).values(actor="nadie"),
        "gone": delete(row).where(here),
        "last": delete(row).where(here),
    }
    await execute(console, statements[change])

    view = await console.front.views.chain(writer)

    assert view.broken_at == (number if change == "last" else broken_at)
    assert view.checked == view.broken_at - 1


async def test_chain_of_nobody(console: Console) -> None:
    """A process that wrote nothing is not there."""
    with pytest.raises(ApplianceError) as raised:
        await console.front.views.chain("x")

    assert raised.value.code is ErrorCode.NOT_FOUND


async def test_numbers_are_those_of_their_lists(console: Console) -> None:
    """Each number of the home page is the length of the list it leads to."""
    await console.sign_in()
    await console.request(ANA)
    made = await console.front.integrators.create_key("operator", "acme", "a")
    await console.services.api_keys.flag_in_url([made.secret])
    await console.services.sessions.note_blocked("acme", "https://otro.example")
    ana = (await console.front.views.people(PeopleFilter(text=ANA))).rows[0]
    acme = (await console.front.integrators.get("acme")).id
    ask = console.services.help_requests.ask_in_frame
    await ask(ana.id, HelpTopic.PHONE, acme, proven=False)
    # The one that was asked for again is counted no more, and in its place waits one.
    again = await failed_request(console, cuil=ANA)
    await console.front.request_again.ask(again, "console:a", "consola")
    await failed_request(console, cuil=ANA)
    for cuil, days in ((ANA, 20), (LUIS, 40)):
        end = console.clock.now() + timedelta(days=days)
        (held,) = (await console.front.views.people(PeopleFilter(text=cuil))).rows
        now = console.clock.now()
        await hold(console.services.store, held.id, cuil, now, not_after=end)
    text = (await console.get("/admin/")).text
    links = re.findall(r'class="number" href="([^"]+)"[^>]*>\s*<b>(\d+)</b>', text)

    assert len(links) == 11
    for address, number in links:
        path, _, section = address.replace("&amp;", "&").partition("#")
        listed = (await console.get(path)).text
        # The rows of the health page are workers; what is listed there has a section.
        row = f'aria-labelledby="{section}"' if section else r'<tr>\s*<th scope="row">'
        assert len(re.findall(row, listed)) == int(number), path
    counts = dict(links)
    assert counts.pop("/admin/requests?state=pendiente") == "2"
    assert counts["/admin/certificates?days=30"] == "1"
    assert set(counts.values()) == {"0", "1"}


async def test_made_up_filters_are_refused_in_words(console: Console) -> None:
    """No address whatsoever is a fault of ours."""
    await console.sign_in()
    for path in (
        "/admin/people?state=x",
        "/admin/people?state=active&state=active",
        "/admin/people?cursor=x",
        "/admin/requests?person=x",
        "/admin/audit?event=x",
        "/admin/people?state=" + "a" * 201,
        "/admin/audit?cursor=x",
    ):
        assert (await console.get(path)).status in {400, 404}, path


@pytest.mark.parametrize(
    ("path", "field", "kept"),
    [
        ("/admin/people?state=active&q=" + "a" * 3000, "q", "state"),
        ("/admin/integrators?only=blocked&q=" + "a" * 201, "q", "only"),
        ("/admin/certificates?q=a%09b", "q", ""),
        ("/admin/requests?state=firmada&since=ayer", "since", "state"),
        ("/admin/requests?state=firmada&until=2026-13-01", "until", "state"),
        ("/admin/requests?state=firmada&q=%00", "q", "state"),
        ("/admin/requests?q=a&integrator=" + "a" * 201, "integrator", "q"),
        ("/admin/audit?q=ana&request=abc", "request", "q"),
        ("/admin/audit?q=ana&request=" + "9" * 400, "request", "q"),
        ("/admin/integrators/acme/stamp?qr=yes&motivo=" + "a" * 201, "motivo", ""),
        ("/admin/integrators/acme/stamp?qr=yes&motivo=%E6%88%91", "motivo", ""),
    ],
)
async def test_wrong_filter_is_marked_and_others_stay(
    console: Console, path: str, field: str, kept: str
) -> None:
    """The list's own page comes again: what is wrong is told where it was typed."""
    await console.sign_in()
    await console.post("/admin/integrators", code="acme", name="ACME S.A.")

    answer = await console.get(path)

    assert answer.status == 422
    assert answer.fault_of(field)
    assert f'href="#f-{field}"' in answer.text
    assert "Nada coincide" not in answer.text
    if kept:
        assert '<ul class="chips"' in answer.text
        assert f"?{kept}=" not in answer.text.partition('class="chips"')[2][:200]


@pytest.mark.parametrize("address", ["/admin/requests", "/admin/audit"])
async def test_any_day_can_be_asked_for(console: Console, address: str) -> None:
    """The first and the last day that there are; the wrong way round at both fields."""
    await console.request(ANA)
    await console.sign_in()
    days = ("", "0001-01-01", "9999-12-31")
    for since in days:
        for until in days:
            answer = await console.get(f"{address}?since={since}&until={until}")

            if since and until and since > until:
                assert answer.status == 422
                told = [answer.fault_of(name) for name in ("since", "until")]
                assert told == ["El día «Hasta» es anterior al día «Desde»."] * 2
                continue
            assert answer.status == 200, (since, until)
            found = since != "9999-12-31" and until != "0001-01-01"
            assert ("Nada coincide" in answer.text) is not found, (since, until)


async def test_filters_show_as_chips_that_come_off(console: Console) -> None:
    """Each chip leads to the list without it; the next page keeps all."""
    await console.sign_in()

    text = (await console.get("/admin/people?q=a&state=active&locked=yes")).text

    chips = re.findall(r'class="chip" href="([^"]+)"', text)
    assert chips == [
        "/admin/people?state=active&amp;locked=yes",
        "/admin/people?q=a&amp;locked=yes",
        "/admin/people?q=a&amp;state=active",
    ]
    assert "Nada coincide con estos filtros" in text


async def test_long_lists_have_pages(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page leads to older rows and back to the newest, filters kept."""
    await console.sign_in()
    monkeypatch.setattr(console_views, "PAGE", 1)

    first = (await console.get("/admin/people?state=active")).text
    (following,) = re.findall(r'href="([^"]+)" rel="next"', first)
    second = (await console.get(following.replace("&amp;", "&"))).text

    assert "state=active" in following
    assert NAMES[LUIS] in first
    assert NAMES[ANA] in second
    assert 'rel="next"' not in second


async def test_unknown_person_in_a_filter(console: Console) -> None:
    """A filter by somebody who is not there is told so."""
    with pytest.raises(ApplianceError) as raised:
        await console.front.views.person(PersonId("x"))

    assert raised.value.code is ErrorCode.PERSON_NOT_FOUND


async def _writer(console: Console) -> str:
    """The process that wrote most."""
    async with console.services.store.read() as transaction:
        writers = await transaction.audit.writers()
        sizes = {w: len(await transaction.audit.of_writer(w)) for w in writers}
    return max(sizes, key=lambda writer: sizes[writer])

"""What one box of a list finds, among thousands of rows, on both databases."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from appliance.console import views as console_views
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.audit.record import AuditEvent
from appliance.domain.console.lists import (
    AuditFilter,
    IntegratorFilter,
    PeopleFilter,
    RequestFilter,
    RequestRow,
    read_search,
)
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.keys.credentials import CredentialView
from appliance.domain.vocab import EventKind, RevocationReason
from tests.support.installation.console import Console
from tests.support.installation.installation import Installation

ANA, LUIS = "20055361682", "20267565393"
MANY = 5_000


@dataclass
class Crowd:
    """A console with thousands of requests, all of Luis but one."""

    site: Console
    ana: PersonId
    luis: PersonId
    anas: int
    """Number of the one of Ana, an old one."""

    async def requests(self, text: str, **wanted: Any) -> list[RequestRow]:
        """The first page that a text finds."""
        page = await self.site.front.views.requests(RequestFilter(text=text, **wanted))
        return list(page.rows)


async def execute(console: Console, *statements: Any) -> list[Any]:
    """Change the record behind everybody's back; rows of the last statement."""
    engines = open_engines(console.services.settings)
    async with engines.writer.begin() as connection:
        for statement, *values in statements:
            result = await connection.execute(statement, *values)
        rows = list(result) if result.returns_rows else []
    await engines.dispose()
    return rows


@pytest.fixture
async def crowd(tmp_path: Path, each_url: str) -> AsyncIterator[Crowd]:
    """Requests numbered to 5,000, whose documents have numbers in their names."""
    async with Installation(tmp_path, each_url).console() as console:
        await console.front.integrators.create("operator", "acme", "ACME S.A.")
        ana = await console.person(ANA, "Ana María Núñez")
        luis = await console.person(LUIS, "Luis Ángel Peña")
        anas = await console.request(ANA, "poder.pdf")
        first = await console.request(LUIS, "factura 1.pdf")
        request = tables.signature_request
        found = await execute(console, (select(request).where(request.c.id == first),))
        like = dict(found[0]._mapping)
        rows = [
            {**like, "id": n, "seq": n, "name": f"factura {n}.pdf"}
            for n in range(first + 1, MANY + 1)
        ]
        await execute(console, (insert(request), rows))
        yield Crowd(console, ana, luis, anas)


def numbers(rows: list[RequestRow]) -> list[int]:
    """Of requests, in order."""
    return [row.id for row in rows]


async def test_number_comes_first(crowd: Crowd) -> None:
    """Of all that have 17 in them the request 17 is the first, and stands once."""
    for text in ("17", "#17", " 17 "):
        found = numbers(await crowd.requests(text))
        assert found[0] == 17
        assert found.count(17) == 1
    assert numbers(await crowd.requests("17"))[1] == 4_917
    page = await crowd.site.front.views.requests(RequestFilter(text="17"))
    seen = list(page.rows)
    while page.following:
        page = await crowd.site.front.views.requests(
            RequestFilter(text="17"), page.following
        )
        seen += page.rows
    wanted = {n for n in range(1, MANY + 1) if "17" in str(n)} - {crowd.anas}
    assert sorted(numbers(seen)) == sorted(wanted)
    assert numbers(await crowd.requests("99999999999999999999")) == []


async def test_request_is_found_by_its_signer(crowd: Crowd) -> None:
    """By part of the name, the CUIL however written, the serial number."""
    (held,) = await crowd.site.front.credentials.of(crowd.ana)
    serial = held.serial
    colons = ":".join(serial[at : at + 2] for at in range(0, len(serial), 2))
    for text in (
        "nunez",
        "María N",
        ANA,
        "20-05536168-2",
        "05536168",
        serial,
        serial.upper(),
        colons if len(serial) % 2 == 0 else serial,
    ):
        assert numbers(await crowd.requests(text)) == [crowd.anas], text
    assert numbers(await crowd.requests("nadie")) == []
    luis = await crowd.requests("20-26756539-3")
    assert {row.person for row in luis} == {crowd.luis}
    assert len(luis) == console_views.PAGE


@pytest.mark.parametrize(
    ("text", "is_anas"),
    [
        ("Núñez Ana", True),
        ("nunez  ANA", True),
        ("ana poder", True),
        ("poder.pdf 05536168", True),
        ("maria 20-05536168-2", True),
        ("a b c d e f g h ana maria", False),
        ("ana factura", False),
        ("ana pena", False),
    ],
)
async def test_request_holds_each_word_of_the_text(
    crowd: Crowd, text: str, is_anas: bool
) -> None:
    """In any order, in the document's name or the signer's; all of them, not some."""
    wanted = [crowd.anas] if is_anas else []
    assert numbers(await crowd.requests(text)) == wanted


async def test_every_box_finds_what_holds_both_words(crowd: Crowd) -> None:
    """People, certificates, audit and integrators, whichever word comes first."""
    views, expiry = crowd.site.front.views, crowd.site.front.expiry
    for text in ("nunez ana", "ana nunez", "05536168 ana"):
        people = await views.people(PeopleFilter(text=text))
        assert [row.id for row in people.rows] == [crowd.ana], text
        ends = await expiry.signers(text=text)
        assert [row.person for row in ends.rows] == [crowd.ana], text
        audit = (await views.audit(AuditFilter(text=text))).page.rows
        assert EventKind.PERSON_INVITED in {row.event.event for row in audit}, text
    for text in ("nunez pena", "ana angel"):
        assert (await views.people(PeopleFilter(text=text))).rows == ()
        assert (await expiry.signers(text=text)).rows == ()
        assert (await views.audit(AuditFilter(text=text))).page.rows == ()
    for text, codes in (("s.a. acme", ["acme"]), ("acme otra", [])):
        found = (await views.listed_integrators(IntegratorFilter(text=text))).rows
        assert [row.code for row in found] == codes, text


async def test_other_filters_hold_for_the_number_too(crowd: Crowd) -> None:
    """A number of somebody else's request is not shown among somebody's."""
    assert numbers(await crowd.requests(str(crowd.anas), person=crowd.ana)) == [
        crowd.anas
    ]
    assert numbers(await crowd.requests(str(crowd.anas), person=crowd.luis))[:1] != [
        crowd.anas
    ]


async def test_outside_certificate_is_found_by_its_serial(crowd: Crowd) -> None:
    """Though it stands in no list of what was issued here."""
    (held,) = await crowd.site.front.credentials.of(crowd.ana)
    await execute(crowd.site, (delete(tables.certificate),))

    assert numbers(await crowd.requests(held.serial)) == [crowd.anas]


async def test_page_looks_at_so_many_rows_and_the_next_goes_on(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that nothing new has costs no more, and is found further on."""
    monkeypatch.setattr(console_views, "SPAN", 2_000)
    views = crowd.site.front.views
    wanted = RequestFilter(text="poder")
    pages, cursor = [], ""
    while True:
        page = await views.requests(wanted, cursor)
        pages.append(numbers(list(page.rows)))
        if page.following is None:
            break
        cursor = page.following

    assert pages == [[], [], [crowd.anas]]
    await crowd.site.sign_in()
    text = (await crowd.site.get("/admin/requests?q=poder")).text
    assert "Seguir buscando" in text
    assert "cursor=3001" in text


async def test_people_and_certificates_are_found(crowd: Crowd) -> None:
    """By the same words; certificates whenever they end."""
    (held,) = await crowd.site.front.credentials.of(crowd.ana)
    views, expiry = crowd.site.front.views, crowd.site.front.expiry
    for text in ("nunez", ANA, "20-05536168-2", "05536168", held.serial):
        people = await views.people(PeopleFilter(text=text))
        assert [row.id for row in people.rows] == [crowd.ana], text
        ends = await expiry.signers(text=text)
        assert [row.person for row in ends.rows] == [crowd.ana], text
    assert (await expiry.signers(text="nadie")).rows == ()


async def test_people_are_looked_through_in_spans(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older of two is found on the second page of one row."""
    monkeypatch.setattr(console_views, "SPAN", 1)
    views = crowd.site.front.views

    first = await views.people(PeopleFilter(text="ana"))
    assert first.rows == ()
    assert first.following
    second = await views.people(PeopleFilter(text="ana"), first.following)
    assert [row.id for row in second.rows] == [crowd.ana]


async def test_revoked_certificates_are_found_and_paged(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The latest first, each once; by name and serial number among all of them."""
    site, views = crowd.site, crowd.site.front.views
    held: list[CredentialView] = []
    for person in (crowd.luis, crowd.ana):
        (one,) = await site.front.credentials.of(person)
        await site.front.credentials.revoke(
            one.id, RevocationReason.SUPERSEDED, "operator"
        )
        now = site.clock.now() + timedelta(minutes=len(held))
        await execute(
            site,
            (
                update(tables.certificate)
                .where(tables.certificate.c.credential == one.id)
                .values(revoked_at=now, reason=RevocationReason.SUPERSEDED.value),
            ),
        )
        held.append(one)
    monkeypatch.setattr(console_views, "PAGE", 1)

    first = await views.revoked()
    assert first.following is not None
    second = await views.revoked("", first.following)
    assert [row.person for row in (*first.rows, *second.rows)] == [
        crowd.ana,
        crowd.luis,
    ]
    assert second.following is None
    assert first.rows[0].serial == held[1].serial
    assert first.rows[0].reason is RevocationReason.SUPERSEDED
    for text in ("nunez ana", held[1].serial):
        assert [row.person for row in (await views.revoked(text)).rows] == [crowd.ana]
    assert (await views.revoked("nadie")).rows == ()


async def test_audit_tells_what_somebody_did_and_had_done(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By actor, by request, and where a detail names them; nothing of others."""
    site = crowd.site
    async with site.services.store.write() as transaction:
        transaction.audit.add(
            AuditEvent(EventKind.LOGIN_COMPLETED, f"person:{crowd.ana}")
        )
        transaction.audit.add(
            AuditEvent(
                EventKind.PERSON_DISABLED, "operator", detail={"person": crowd.ana}
            )
        )
        transaction.audit.add(
            AuditEvent(EventKind.LOGIN_OTP_WRONG, f"person:{crowd.luis}")
        )

    async def kinds(text: str) -> set[EventKind]:
        page = (await site.front.views.audit(AuditFilter(text=text))).page
        return {row.event.event for row in page.rows}

    for text in ("nunez", "20-05536168-2"):
        found = await kinds(text)
        assert {
            EventKind.LOGIN_COMPLETED,
            EventKind.PERSON_DISABLED,
            EventKind.REQUEST_CREATED,
            EventKind.PERSON_INVITED,
        } <= found, text
        assert EventKind.LOGIN_OTP_WRONG not in found, text
    assert await kinds(str(crowd.anas)) == {EventKind.REQUEST_CREATED}
    assert await kinds("marta") == {EventKind.CONSOLE_USER_CREATED}
    assert await kinds("nadie") == set()
    monkeypatch.setattr(console_views, "SPAN", 3)
    page = (await site.front.views.audit(AuditFilter(text="marta"))).page
    seen = list(page.rows)
    while page.following:
        page = (
            await site.front.views.audit(AuditFilter(text="marta"), page.following)
        ).page
        seen += page.rows
    assert [row.event.event for row in seen] == [EventKind.CONSOLE_USER_CREATED]


async def test_integrators_are_found_and_paged(crowd: Crowd) -> None:
    """Hundreds by code, 50 a page, each once; by part of name or code."""
    now = crowd.site.clock.now()
    rows = [
        {
            "id": str(uuid.uuid4()),
            "code": f"estudio-{n:03}",
            "name": f"Estudio Ñandú {n:03}",
            "delivery_limit_bytes": 1,
            "may_vouch": False,
            "created": now + timedelta(seconds=n),
        }
        for n in range(500)
    ]
    await execute(crowd.site, (insert(tables.integrator), rows))
    listed = crowd.site.front.views.listed_integrators
    seen, cursor = [], ""
    while True:
        page = await listed(IntegratorFilter(), cursor)
        assert len(page.rows) <= console_views.PAGE
        seen += [row.code for row in page.rows]
        if page.following is None:
            break
        cursor = page.following

    assert seen == sorted(["acme", *(str(row["code"]) for row in rows)])
    for text in ("nandu 017", "ESTUDIO-017"):
        page = await listed(IntegratorFilter(text=text))
        assert [row.code for row in page.rows] == ["estudio-017"], text
    await crowd.site.sign_in()
    text = (await crowd.site.get("/admin/integrators?q=estudio")).text
    assert "cursor=estudio-049" in text


@pytest.mark.parametrize(
    ("text", "number", "cuil", "serial"),
    [
        ("17", 17, "", ""),
        ("#17", 17, "", ""),
        ("²", None, "", ""),
        ("1" * 16, None, "", "1" * 16),
        ("20-05536168-2", None, "20055361682", "20055361682"),
        ("20055361682", 20055361682, "20055361682", "20055361682"),
        ("00:AB:cd:01:02", None, "", "abcd0102"),
        ("deadbeef", None, "", ""),
        ("contrato", None, "", ""),
    ],
)
def test_text_is_read(text: str, number: int | None, cuil: str, serial: str) -> None:
    """What a text may mean; a word of letters alone is no serial number."""
    search = read_search(text)

    assert (search.number, search.cuil, search.serial) == (number, cuil, serial)
    assert RequestId(search.number or 0) == (number or 0)


async def test_search_looks_at_everybody_whom_it_names(crowd: Crowd) -> None:
    """A thousand of one name stand in the record before the one who was revoked."""
    site = crowd.site
    found = await execute(
        site, (select(tables.person).where(tables.person.c.id == crowd.luis),)
    )
    like = dict(found[0]._mapping)
    rows = [
        {
            **like,
            "id": f"0000{n:04}-0000-7000-8000-000000000000",
            "cuil": f"{20_000_000_000 + n}",
            "email_index": f"{n:064}",
            "name": "Eva Paz",
        }
        for n in range(1_000)
    ]
    await execute(site, (insert(tables.person), rows))
    eva = await site.person("27301234568", "Eva Paz")
    request = tables.signature_request
    theirs = update(request).where(request.c.id == crowd.anas).values(person=eva)
    await execute(site, (theirs,))
    views, expiry = site.front.views, site.front.expiry
    (held,) = await site.front.credentials.of(eva)
    assert [row.person for row in (await expiry.signers(text="eva")).rows] == [eva]

    await site.front.credentials.revoke(held.id, RevocationReason.SUPERSEDED, "o")
    async with site.services.store.write() as transaction:
        transaction.audit.add(AuditEvent(EventKind.LOGIN_COMPLETED, f"person:{eva}"))

    assert [row.person for row in (await views.revoked("eva")).rows] == [eva]
    audit = (await views.audit(AuditFilter(text="eva"))).page.rows
    assert {
        EventKind.LOGIN_COMPLETED,
        EventKind.REQUEST_CREATED,
        EventKind.PERSON_INVITED,
        EventKind.REVOCATION_ASKED,
    } == {row.event.event for row in audit}


@pytest.mark.parametrize("text", ["5 536 168", "05 536 168", "05.536.168", "5-536 168"])
async def test_dni_in_groups_is_found_in_every_list(crowd: Crowd, text: str) -> None:
    """As people write it; its groups are words that nobody's name has."""
    views, expiry = crowd.site.front.views, crowd.site.front.expiry
    (held,) = await crowd.site.front.credentials.of(crowd.ana)

    assert numbers(await crowd.requests(text)) == [crowd.anas]
    people = await views.people(PeopleFilter(text=text))
    assert [row.id for row in people.rows] == [crowd.ana]
    ends = await expiry.signers(text=text)
    assert [row.person for row in ends.rows] == [crowd.ana]
    audit = (await views.audit(AuditFilter(text=text))).page.rows
    assert EventKind.PERSON_INVITED in {row.event.event for row in audit}

    await crowd.site.front.credentials.revoke(
        held.id, RevocationReason.SUPERSEDED, "operator"
    )
    assert [row.person for row in (await views.revoked(text)).rows] == [crowd.ana]


@pytest.mark.parametrize(
    "name", ["Ana D'Angelo Pérez", "Ana D\u2019Angelo Pérez", "Ana D\u00b4Angelo Pérez"]
)
@pytest.mark.parametrize(
    "text", ["d'angelo", "D\u2019ANGELO", "pe\u0301rez", "d\u02bcangelo\u00a0perez"]
)
async def test_apostrophe_blank_and_accent_are_found_however_typed(
    crowd: Crowd, name: str, text: str
) -> None:
    """As a telephone types them, and as the record has them."""
    person = tables.person
    named = update(person).where(person.c.id == crowd.ana).values(name=name)
    await execute(crowd.site, (named,))

    people = await crowd.site.front.views.people(PeopleFilter(text=text))

    assert [row.id for row in people.rows] == [crowd.ana]


async def test_file_name_in_decomposed_form_is_found(crowd: Crowd) -> None:
    """Some systems write an accent as a character of its own."""
    request = tables.signature_request
    name = "constancia de inscripcio\u0301n\u00a0final.pdf"
    named = update(request).where(request.c.id == crowd.anas).values(name=name)
    await execute(crowd.site, (named,))

    for text in ("inscripción final", "INSCRIPCION", "inscripcio\u0301n"):
        assert numbers(await crowd.requests(text)) == [crowd.anas], text

"""Download links over real storage."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import insert

from appliance.domain.ids import RequestId
from appliance.domain.vocab import EventKind
from appliance.storage import tables
from tests.web_parts import Parts, open_parts

ONE, TWO = RequestId(1), RequestId(2)


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    """Storage with two requests."""
    async with open_parts(tmp_path) as made:
        person, _ = await made.add_person()
        now = made.clock.now()
        async with made.store._engines.writer.begin() as connection:
            await connection.execute(
                insert(tables.integrator).values(
                    id="i", code="demo", name="Demo", created=now
                )
            )
            await connection.execute(
                insert(tables.document).values(
                    id="d",
                    integrator="i",
                    sha256="00",
                    size_bytes=1,
                    inspection={},
                    created=now,
                )
            )
            for number in (ONE, TWO):
                await connection.execute(
                    insert(tables.signing_process).values(
                        id=str(number), integrator="i", created=now
                    )
                )
                await connection.execute(
                    insert(tables.signature_request).values(
                        id=number,
                        process=str(number),
                        seq=0,
                        person=person,
                        integrator="i",
                        document="d",
                        name="a.pdf",
                        state="firmada",
                        reason="",
                        origin="operador",
                        created=now,
                    )
                )
        yield made


async def test_link_opens_its_request_alone(parts: Parts) -> None:
    """A link leads to one document."""
    clave = await parts.links.mint(ONE)

    assert await parts.links.open(clave, ONE)
    assert not await parts.links.open(clave, TWO)


@pytest.mark.parametrize(("after_s", "opens"), [(899, True), (900, False)])
async def test_link_ends_with_its_time(parts: Parts, after_s: int, opens: bool) -> None:
    """A link opens for 15 minutes."""
    clave = await parts.links.mint(ONE)

    parts.clock.forward(after_s)

    assert await parts.links.open(clave, ONE) is opens


@pytest.mark.parametrize(
    "clave", ["", "x", "é" * 43, "A" * 43, "A" * 10_000, "\0" * 43]
)
async def test_link_refused_when_unknown(parts: Parts, clave: str) -> None:
    """What is no link opens nothing."""
    await parts.links.mint(ONE)

    assert not await parts.links.open(clave, ONE)


async def test_link_stored_as_hash(parts: Parts, tmp_path: Path) -> None:
    """The database never holds the secret of a link, and each is new."""
    one, two = await parts.links.mint(ONE), await parts.links.mint(ONE)
    await parts.store.close()

    stored = b"".join(
        path.read_bytes() for path in tmp_path.iterdir() if path.is_file()
    )

    assert one != two
    assert len(one) == 43
    assert one.encode() not in stored


async def test_link_audited(parts: Parts) -> None:
    """Making a link is told by the audit, without its secret."""
    clave = await parts.links.mint(ONE, "person:x")

    async with parts.store.read() as records:
        (row,) = await records.audit.of_request(ONE)

    assert (row.event.event, row.event.actor) == (EventKind.LINK_CREATED, "person:x")
    assert clave not in repr(row)


async def test_sweep_forgets_ended_links(parts: Parts) -> None:
    """Ended links are deleted, living ones stay."""
    await parts.links.mint(ONE)
    parts.clock.forward(901)
    clave = await parts.links.mint(ONE)

    assert await parts.links.sweep() == 1
    assert await parts.links.open(clave, ONE)

"""The lists of a batch in the frame: at every width, by keyboard, with many."""

from pathlib import Path

from playwright.async_api import Page, expect

from tests.support.appliance.appliance import TestPerson
from tests.support.appliance.backends import TestBackend
from tests.support.browsers import ceremony
from tests.support.browsers.batches import (
    asked,
    listed,
    read_all,
    shown,
    token_for,
)
from tests.support.browsers.browsers import axe, resize, tab_to
from tests.support.browsers.frame_host import FrameSite
from tests.support.browsers.frame_layout import ROWS


async def test_it_is_seen_at_every_width(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """Nothing stands beside the frame; what is pressed is as high as a finger."""
    made = asked(backend, person)
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)

    async def looked(name: str) -> None:
        for width, height in ((1280, 800), (390, 844)):
            await resize(page, (width, height), frame)
            beside = await frame.evaluate(
                "document.documentElement.scrollWidth - innerWidth"
            )
            assert beside <= 0, (name, width)
            assert await frame.evaluate(ROWS) <= 1, (name, width)
            if pictures is not None:
                await page.screenshot(path=pictures / f"batch-{name}-{width}.png")

    await looked("list")
    await ceremony.go(frame)
    await ceremony.at(frame, "read")
    await ceremony.go(frame)
    await expect(frame.locator("#title")).to_have_text("febrero.pdf")
    await looked("read")
    await frame.get_by_role("button", name="Ver todos").click()
    await ceremony.at(frame, "documents")
    await looked("half")
    await read_all(frame, 1)
    await looked("password")
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")
    await looked("done")


async def test_what_is_done_stays_on_the_screen(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """However many documents there are: their list scrolls by itself."""
    made = asked(backend, person, tuple(f"recibo-{n:02}.pdf" for n in range(30)))
    frame = await shown(site, page, token_for(backend, made["loteId"]), person)
    await listed(frame, person)
    below = (
        "document.querySelector('#bar').getBoundingClientRect().bottom - innerHeight"
    )

    for width, height in ((1280, 720), (1280, 900), (390, 720)):
        await resize(page, (width, height), frame)
        if pictures is not None:
            await page.screenshot(path=pictures / f"batch-many-{width}-{height}.png")
        assert await frame.evaluate(below) <= 0, (width, height)
    await frame.wait_for_selector(".batch[data-more]")
    await frame.evaluate("document.querySelector('.batch').scrollTop = 1e6")
    await frame.wait_for_selector(".batch:not([data-more])")


_ROWS = """() => {
  const box = document.querySelector(".results").getBoundingClientRect();
  const rows = [...document.querySelectorAll(".results li")];
  return rows.filter((row) => row.getBoundingClientRect().bottom <= box.bottom).length;
}"""
_RING = """(button) => {
  const { outlineWidth, outlineOffset } = getComputedStyle(button);
  const ring = parseFloat(outlineWidth) + parseFloat(outlineOffset);
  const list = button.closest(".results");
  const right = list.getBoundingClientRect().left + list.clientLeft + list.clientWidth;
  return right - button.getBoundingClientRect().right - ring;
}"""


async def test_long_list_is_passed_over_by_keyboard(
    site: FrameSite,
    person: TestPerson,
    page: Page,
    backend: TestBackend,
    pictures: Path | None,
) -> None:
    """Twelve documents, and the main action two keys away; what became of them."""
    names = tuple(f"recibo-{n:02}.pdf" for n in range(12))
    made = asked(backend, person, names)
    for each in made["solicitudes"][1:]:
        asked_for = f"/api/integration/requests/{each['procesoId']}/cancel"
        assert backend.client.post(asked_for, json={}).status_code == 200
    token = token_for(backend, made["loteId"])
    frame = await shown(site, page, token, person)
    await listed(frame, person)
    skip = frame.get_by_role("button", name="Saltar la lista")
    main = frame.locator("#bar .primary")
    await tab_to(page, skip, most=1)
    assert await axe(frame) == []
    if pictures is not None:
        await page.screenshot(path=pictures / "batch-skip.png")
    await page.keyboard.press("Enter")
    await expect(main).to_be_focused()
    await page.keyboard.press("Enter")
    await ceremony.at(frame, "read")
    await ceremony.go(frame)
    await ceremony.sign(frame, person)
    await ceremony.at(frame, "done")
    await site.wait(page, "batch.completed")

    await resize(page, (1280, 900), frame)
    await frame.wait_for_selector(".results[data-more]")
    assert await frame.evaluate(_ROWS) >= 6
    if pictures is not None:
        await page.screenshot(path=pictures / "batch-results-1280.png")
    await resize(page, (390, 844), frame)
    save = frame.get_by_role("button", name="Descargar recibo-00")
    await tab_to(page, save)
    if pictures is not None:
        await page.screenshot(path=pictures / "batch-results-390.png")
    assert await save.evaluate(_RING) >= 0
    assert await axe(frame) == []

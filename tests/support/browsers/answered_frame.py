"""A frame that gets many answers of the service in turn, inside its own page.

    told = await answer_each(frame, "otp", answers, fields={"code": "000000"}, …)

A call of the browser's driver for every press and look is what makes a test of all
error codes slow: here one script presses, looks and goes on. The page's modules,
screen and messages to the host are the real ones; what comes from the service and
from the host comes by the page's own `fetch` and message event.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from playwright.async_api import Frame

from tests.support.browsers.browsers import PATIENCE_MS

_SCRIPT = """async ({ path, origin, turns, fields, way, patience }) => {
  const byId = (id) => document.getElementById(id);
  const step = () => document.body.dataset.step;
  const press = () => document.querySelector("#bar .primary").click();
  const hear = (data) =>
    dispatchEvent(new MessageEvent("message", { data, origin, source: parent }));
  const until = (what, holds) => new Promise((done, failed) => {
    if (holds()) { done(); return; }
    const end = (then) => { watch.disconnect(); clearTimeout(late); then(); };
    const watch = new MutationObserver(() => { if (holds()) end(done); });
    const late = setTimeout(() => end(() =>
      failed(new Error(`${what} never came: ${document.body.innerText}`))), patience);
    watch.observe(document.documentElement,
      { subtree: true, childList: true, attributes: true, characterData: true });
  });
  // A press while another is being worked on does nothing.
  const rests = () => byId("panel").getAttribute("aria-busy") !== "true";
  const shows = (text) => document.querySelector(".spinner") === null
    && [...document.querySelectorAll("#alert:not([hidden]), #panel")]
      .some((e) => e.checkVisibility() && e.textContent.includes(text));
  const comeTo = async (names) => {
    for (const [number, name] of names.entries()) {
      if (number) press();
      await until(name, () => name.split("|").includes(step()) && rests());
    }
  };
  const real = window.fetch;
  try {
    for (const { name, status, body, wanted, message, back, again } of turns) {
      let answered = 0;
      window.fetch = (address, how) => {
        if (address !== `/embed/api/${path}`) return real(address, how);
        answered += 1;
        const headers = { "Content-Type": "application/problem+json" };
        return Promise.resolve(new Response(body, { status, headers }));
      };
      if (message) {
        // What is on the screen after it was put there after it.
        for (const id of ["title", "body", "alert"]) byId(id).replaceChildren();
        hear(message);
      } else {
        for (const [id, value] of Object.entries(fields)) byId(id).value = value;
        press();
      }
      await until(name, () => answered > 0 && shows(wanted) && rests());
      window.fetch = real;
      const buttons = [...document.querySelectorAll("button")];
      if (back) buttons.find((button) => button.textContent === back).click();
      if (again) hear(again);
      if (back || again) await comeTo(way);
    }
  } finally {
    window.fetch = real;
  }
}"""


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer, what is to be seen then, and how it goes on."""

    name: str
    status: int
    body: str
    wanted: str
    """In the words that are seen then, with nothing turning any more."""
    message: dict[str, Any] | None = field(default=None, repr=False)
    """Of the host, which asks for the answer; else the main button is pressed."""
    back: str = ""
    """Words of a button that leads back, where one is needed."""
    again: dict[str, Any] | None = field(default=None, repr=False)
    """Message of the host that takes a session up again that had ended."""


async def answer_each(
    frame: Frame,
    path: str,
    origin: str,
    turns: Sequence[Turn],
    way: Sequence[str],
    fields: dict[str, str] | None = None,
) -> None:
    """Give a frame answers, and demand what each has it show.

    Args:
        frame: that stands where the first turn begins.
        path: of the call that is answered, below `/embed/api/`.
        origin: of the host.
        turns: one after the other.
        way: steps from where a session is taken up to where a turn begins, the main
            button pressed between them; names of one place stand with `|` between.
        fields: values by id, typed before the button is pressed.

    Raises:
        playwright.async_api.Error: something was not shown, with what was.
    """
    given = {
        "path": path,
        "origin": origin,
        "turns": [asdict(turn) for turn in turns],
        "fields": fields or {},
        "way": [*way],
        "patience": PATIENCE_MS,
    }
    await frame.evaluate(_SCRIPT, given)

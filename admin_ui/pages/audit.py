"""The audit: every row, and whether a process's rows hang together."""

from quart import Blueprint, Response

from admin_ui import audit_words, lists, words
from admin_ui.core import core
from admin_ui.render import page
from appliance.domain.console.lists import AuditFilter, AuditPage, Names, Page
from appliance.domain.ids import RequestId
from appliance.domain.vocab import EventKind

blueprint = Blueprint("audit", __name__, url_prefix="/admin/audit")


def _say_event(value: str) -> str:
    return audit_words.event(EventKind(value))


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/audit`; filters in the address."""
    asked = lists.asked(
        "audit.show",
        *("q", "event", "actor", "request", "integrator", "writer", "since", "until"),
    )
    number = asked.number("request")
    wanted = AuditFilter(
        text=asked.text("q"),
        event=asked.word("event", EventKind),
        actor=asked.text("actor"),
        request=None if number is None else RequestId(number),
        integrator=await lists.integrator_code(asked),
        writer=asked.text("writer"),
        since=asked.since("since"),
        before=asked.until("until"),
    )
    asked.refuse_backwards(wanted.since, wanted.before)
    found = AuditPage(Page((), None), Names({}, {}, {}))
    if not asked.wrong:
        found = await core().views.audit(wanted, lists.cursor())
    named = [
        ("q", words.say("Search"), lists.plain),
        ("event", words.say("Event"), _say_event),
        ("actor", words.say("Who"), lists.plain),
        ("request", words.say("Request"), lists.plain),
        ("integrator", words.say("Integrator"), lists.plain),
        ("writer", words.say("Process"), audit_words.chain_name),
        ("since", words.say("From"), lists.plain),
        ("until", words.say("Until"), lists.plain),
    ]
    return await lists.show(
        "audit.html",
        asked,
        named,
        found.page.following,
        found=found,
        kinds=sorted(EventKind, key=audit_words.event),
    )


@blueprint.get("/chains")
async def chains() -> Response:
    """`GET /admin/audit/chains`: the chains of all processes, checked page by page."""
    found = await core().views.chains(lists.cursor())
    checked = [chain for _, chain in found.rows]
    return await page(
        "audit_chains.html",
        found=found,
        broken=sum(1 for chain in checked if chain and not chain.whole),
        unchecked=sum(1 for chain in checked if chain is None),
        following=lists.asked("audit.chains").after(found.following),
        paged=bool(lists.cursor()),
    )


@blueprint.get("/writers/<writer>")
async def chain(writer: str) -> Response:
    """`GET /admin/audit/writers/{id}`: read its rows again and check them."""
    return await page("audit_chain.html", chain=await core().views.chain(writer))

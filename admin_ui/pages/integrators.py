"""Integrators: the list, a new one, and one of them at a glance."""

from dataclasses import dataclass, replace
from typing import Any, Final

from quart import Blueprint, Response, url_for

from admin_ui import lists, session, words
from admin_ui.core import core
from admin_ui.render import NONE, again, faults_of, faults_of_each, go, page
from appliance.domain.console.lists import IntegratorFilter, IntegratorNumbers, Page
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.integrators.integrators import IntegratorView
from appliance.integrators.integrators import (
    check_code,
    check_sign_url,
    checked_name,
    checked_reminders,
)

blueprint = Blueprint("integrators", __name__, url_prefix="/admin/integrators")
_OFFERED = 20
"""Integrators that the box offers while somebody types."""
_NOTHING = IntegratorNumbers(0, 0, 0, 0, None)
_ONLY: Final[dict[str, str]] = {
    "blocked": words.N_("blocked origins"),
    "flagged": words.N_("exposed keys"),
}
_NAME = words.N_(
    "Write a name of up to 120 characters, in one line and without invisible "
    "characters."
)
_MAIL_FIELDS: Final = {"reminder_days": "reminder_days", "sign_url": "sign_url"}
_MAIL_SENTENCES: Final = {
    "reminder_days": words.N_("Write up to five numbers from 1 to 60, such as 3, 7."),
    "sign_url": words.N_(
        "Write an address that begins with https://; in braces it may have "
        "procesoId, solicitudId and loteId alone."
    ),
}
_FIELDS = {"code": "code", "name": "name", "ALREADY_EXISTS": "code"}


@dataclass(frozen=True, slots=True)
class _MailForm:
    """Fields of the form of an integrator's mails; the box is `yes` or empty."""

    mails_signers: str
    reminder_days: str
    """Numbers of days, separated by commas."""
    sign_url: str


def _say_only(value: str) -> str:
    return words.say(_ONLY.get(value, value))


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/integrators`; `?q=`, `?only=blocked` or `?only=flagged`."""
    asked = lists.asked("integrators.show", "q", "only")
    only = asked.text("only")
    wanted = IntegratorFilter(
        text=asked.text("q"), blocked=only == "blocked", flagged=only == "flagged"
    )
    found: Page[IntegratorView] = Page((), None)
    if not asked.wrong:
        found = await core().views.listed_integrators(wanted, lists.cursor())
    numbers = await core().views.integrators()
    named = [
        ("q", words.say("Search"), lists.plain),
        ("only", words.say("Only with"), _say_only),
    ]
    rows = [(view, numbers.get(view.id, _NOTHING)) for view in found.rows]
    return await lists.show(
        "integrators.html", asked, named, found.following, rows=rows
    )


@blueprint.get("/options")
async def options() -> Response:
    """`GET /admin/integrators/options?integrator=`: those that a text may name."""
    asked = lists.asked("integrators.options", "integrator")
    wanted = IntegratorFilter(text=asked.text("integrator")[: lists.LONGEST])
    found = (await core().views.listed_integrators(wanted)).rows
    return await page("parts/integrator_options.html", found=found[:_OFFERED])


@blueprint.get("/new")
async def new() -> Response:
    """`GET /admin/integrators/new`."""
    return await page("integrator_new.html", faults=NONE, code="", name="")


@blueprint.post("")
async def create() -> Response:
    """`POST /admin/integrators`."""
    sent = session.form()
    code, name = sent.text("code"), sent.text("name")
    faults = faults_of_each(
        lambda: check_code(code),
        lambda: checked_name(name),
        names=_FIELDS,
        sentences={"name": _NAME},
    )
    if faults:
        return await again("integrator_new.html", faults, code=code, name=name)
    try:
        made = await core().integrators.create(session.actor(), code, name)
    except ApplianceError as exc:
        faults = faults_of(exc, _FIELDS, {"name": _NAME})
        if exc.code is ErrorCode.ALREADY_EXISTS:
            there = await core().integrators.get(code)
            to = words.say("See %(name)s", name=there.name)
            link = (to, url_for("integrators.summary", code=code))
            faults = replace(faults, links={"code": link})
        return await again("integrator_new.html", faults, code=code, name=name)
    return go("integrators.summary", code=made.code, done="integrator-created")


@blueprint.get("/<code>")
async def summary(code: str) -> Response:
    """`GET /admin/integrators/{code}`: what is missing, and what to copy."""
    view = await core().integrators.get(code)
    chosen = view.event_prefix or ""
    context = await _summary(view)
    return await page("integrator.html", faults=NONE, chosen=chosen, **context)


@blueprint.post("/<code>/prefix")
async def set_prefix(code: str) -> Response:
    """`POST /admin/integrators/{code}/prefix`; empty: the installation's."""
    chosen = session.form().text("event_prefix")
    try:
        await core().integrators.change(session.actor(), code, event_prefix=chosen)
    except ApplianceError as exc:
        context = await _summary(await core().integrators.get(code))
        told = faults_of(exc, {"event_prefix": "event_prefix"})
        return await again("integrator.html", told, chosen=chosen, **context)
    return go("integrators.summary", code=code, done="saved")


async def _summary(view: IntegratorView) -> dict[str, Any]:
    usual = core().settings.event_prefix
    return {
        "view": view,
        "numbers": (await core().views.integrators()).get(view.id, _NOTHING),
        "web": core().settings.web,
        "prefix": view.event_prefix or usual,
        "usual": usual,
    }


@blueprint.get("/<code>/name")
async def ask_name(code: str) -> Response:
    """`GET /admin/integrators/{code}/name`."""
    view = await core().integrators.get(code)
    return await page("integrator_name.html", faults=NONE, view=view, name=view.name)


@blueprint.post("/<code>/name")
async def rename(code: str) -> Response:
    """`POST /admin/integrators/{code}/name`: what signers read; the code stays."""
    name = session.form().text("name")
    try:
        await core().integrators.change(session.actor(), code, name=name)
    except ApplianceError as exc:
        view = await core().integrators.get(code)
        faults = faults_of(exc, _FIELDS, {"name": _NAME})
        return await again("integrator_name.html", faults, view=view, name=name)
    return go("integrators.summary", code=code, done="saved")


@blueprint.get("/<code>/vouch")
async def ask_vouch(code: str) -> Response:
    """`GET /admin/integrators/{code}/vouch`: what its word would count for."""
    view = await core().integrators.get(code)
    return await page("integrator_vouch.html", view=view)


@blueprint.post("/<code>/vouch")
async def set_vouch(code: str) -> Response:
    """`POST /admin/integrators/{code}/vouch`: whether it may vouch for people."""
    allow = session.form().text("allow") == "yes"
    await core().integrators.change(session.actor(), code, may_vouch=allow)
    return go("integrators.summary", code=code, done="saved")


@blueprint.get("/<code>/disable")
async def ask_disable(code: str) -> Response:
    """`GET /admin/integrators/{code}/disable`: what it means."""
    view = await core().integrators.get(code)
    return await page("integrator_disable.html", view=view)


@blueprint.post("/<code>/disable")
async def disable(code: str) -> Response:
    """`POST /admin/integrators/{code}/disable`."""
    await core().integrators.disable(session.actor(), code)
    return go("integrators.summary", code=code, done="integrator-disabled")


@blueprint.post("/<code>/enable")
async def enable(code: str) -> Response:
    """`POST /admin/integrators/{code}/enable`."""
    await core().integrators.enable(session.actor(), code)
    return go("integrators.summary", code=code, done="integrator-enabled")


@blueprint.get("/<code>/mail")
async def ask_mail(code: str) -> Response:
    """`GET /admin/integrators/{code}/mail`."""
    view = await core().integrators.get(code)
    return await page(
        "integrator_mail.html", faults=NONE, view=view, typed=_mail_of(view)
    )


@blueprint.post("/<code>/mail")
async def set_mail(code: str) -> Response:
    """`POST /admin/integrators/{code}/mail`: all three."""
    typed = session.typed(_MailForm)
    faults = faults_of_each(
        lambda: checked_reminders(_days(typed.reminder_days)),
        lambda: check_sign_url(typed.sign_url),
        names=_MAIL_FIELDS,
        sentences=_MAIL_SENTENCES,
    )
    if faults:
        view = await core().integrators.get(code)
        return await again("integrator_mail.html", faults, view=view, typed=typed)
    try:
        await core().integrators.set_mail(
            session.actor(),
            code,
            mails_signers=typed.mails_signers == "yes",
            reminder_days=_days(typed.reminder_days),
            sign_url=typed.sign_url,
        )
    except ApplianceError as exc:
        view = await core().integrators.get(code)
        faults = faults_of(exc, _MAIL_FIELDS, _MAIL_SENTENCES)
        return await again("integrator_mail.html", faults, view=view, typed=typed)
    return go("integrators.ask_mail", code=code, done="saved")


def _days(text: str) -> list[int]:
    """Numbers with commas between them.

    Raises:
        FieldInvalidError: `reminder_days`.
    """
    try:
        return [int(each) for each in text.split(",") if each.strip()]
    except ValueError as exc:
        raise FieldInvalidError("reminder_days", "such as 3, 7") from exc


def _mail_of(view: IntegratorView) -> _MailForm:
    return _MailForm(
        mails_signers="yes" if view.mails_signers else "",
        reminder_days=", ".join(map(str, view.reminder_days)),
        sign_url=view.sign_url or "",
    )

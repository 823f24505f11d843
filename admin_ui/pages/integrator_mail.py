"""Whether the appliance writes to an integrator's signers, and how."""

from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import session, words
from admin_ui.core import core
from admin_ui.render import NONE, again, faults_of, go, page
from appliance.domain.errors import ApplianceError, FieldInvalidError
from appliance.domain.integrators.integrators import IntegratorView

blueprint = Blueprint(
    "integrator_mail", __name__, url_prefix="/admin/integrators/<code>/mail"
)
_FIELDS: Final = {"reminder_days": "reminder_days", "sign_url": "sign_url"}
_SENTENCES: Final = {
    "reminder_days": words.N_("Write up to five numbers from 1 to 60, such as 3, 7."),
    "sign_url": words.N_(
        "Write an address that begins with https://; in braces it may have "
        "procesoId and solicitudId alone."
    ),
}


@blueprint.get("")
async def show(code: str) -> Response:
    """`GET /admin/integrators/{code}/mail`."""
    view = await core().integrators.get(code)
    return await page("integrator_mail.html", faults=NONE, **_context(view))


@blueprint.post("")
async def change(code: str) -> Response:
    """`POST /admin/integrators/{code}/mail`: all three."""
    sent = session.form()
    typed = {
        "mails_signers": sent.text("mails_signers"),
        "reminder_days": sent.text("reminder_days"),
        "sign_url": sent.text("sign_url"),
    }
    try:
        await core().integrators.set_mail(
            session.actor(),
            code,
            mails_signers=typed["mails_signers"] == "yes",
            reminder_days=_days(typed["reminder_days"]),
            sign_url=typed["sign_url"],
        )
    except ApplianceError as exc:
        view = await core().integrators.get(code)
        faults = faults_of(exc, _FIELDS, _SENTENCES)
        context = {**_context(view), "typed": typed}
        return await again("integrator_mail.html", faults, **context)
    return go("integrator_mail.show", code=code, done="saved")


def _days(text: str) -> list[int]:
    """Numbers with commas between them.

    Raises:
        FieldInvalidError: `reminder_days`.
    """
    try:
        return [int(each) for each in text.split(",") if each.strip()]
    except ValueError as exc:
        raise FieldInvalidError("reminder_days", "such as 3, 7") from exc


def _context(view: IntegratorView) -> dict[str, Any]:
    return {
        "view": view,
        "mail_is_on": core().settings.mail.is_on,
        "typed": {
            "mails_signers": "yes" if view.mails_signers else "",
            "reminder_days": ", ".join(map(str, view.reminder_days)),
            "sign_url": view.sign_url or "",
        },
    }

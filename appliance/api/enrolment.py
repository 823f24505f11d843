"""The page behind an enrolment link: passwords, one-time codes, and the result.

Plain HTML that needs no script. A link that is over says so in words.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import segno
from quart import Blueprint, Response, request

from appliance.api import pages, revocar
from appliance.api.core import core
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import TaskId
from appliance.domain.integration import EnrolmentView
from appliance.domain.person import format_cuil
from appliance.services.enrolment import Choice
from appliance.web import body
from appliance.web.auth import public

blueprint = Blueprint("enrolment", __name__)
_FIELDS: Final = (
    "login_password",
    "login_password_again",
    "signing_password",
    "signing_password_again",
    "totp_code",
)
_ISSUE_WAIT_S: Final = 20.0
_GROUP: Final = 4
_DIFFER: Final = "The two entries are not the same."
_BY_ERROR: Final = {
    "login_password": "Use 8 characters or more.",
    "signing_password": "Use 8 characters or more, and not the login password.",
}


@blueprint.route("/alta/<code>", methods=["GET", "POST"])
@public
async def enrol(code: str) -> Response:
    """`/alta/{code}`: the form, while the link is good; by POST, what was typed."""
    if request.method == "POST":
        return await _complete(code)
    return _form(await core().enrolment.look(code), {})


async def _complete(code: str) -> Response:
    """Take what the person chose, once.

    Raises:
        ApplianceError: what the form cannot mend, for `refuse`.
    """
    view = await core().enrolment.look(code)
    fields = await body.read_fields(*_FIELDS)
    errors = _entries_differ(fields)
    if errors:
        return _form(view, errors)
    choice = Choice(
        fields["login_password"], fields["signing_password"], fields["totp_code"]
    )
    try:
        enrolled = await core().enrolment.complete(code, choice)
    except FieldInvalidError as error:
        return _form(view, {error.field: _BY_ERROR[error.field]})
    except ApplianceError as error:
        if error.code is not ErrorCode.OTP_INVALID:
            raise
        return _form(view, {"totp_code": error.sentence})
    return pages.show(
        "alta_hecha.html",
        HTTPStatus.OK,
        state=await _issued(enrolled.task),
        view=view,
        pin=enrolled.revocation_pin,
        revocation_url=f"{core().settings.web.base_url}{revocar.PATH}",
    )


@blueprint.errorhandler(ApplianceError)
async def refuse(error: ApplianceError) -> Response:
    """Say in words, on a page, what a person cannot mend in the form.

    Args:
        error: raised by a view of this page.
    """
    link = error.code.value.startswith("ENROLMENT_")
    return pages.refuse(error, "alta_error.html", link=link)


def _entries_differ(fields: Mapping[str, str]) -> dict[str, str]:
    return {
        f"{name}_again": _DIFFER
        for name in ("login_password", "signing_password")
        if fields[name] != fields[f"{name}_again"]
    }


def _form(view: EnrolmentView, errors: Mapping[str, str]) -> Response:
    """The form; what was typed is not sent back, being secret."""
    seed = view.totp_secret
    groups = [seed[at : at + _GROUP] for at in range(0, len(seed), _GROUP)]
    qr = segno.make(view.totp_uri, error="m").svg_inline(
        scale=5, border=4, dark="#000", light="#fff", omitsize=True
    )
    return pages.show(
        "alta.html",
        HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK,
        view=view,
        cuil=format_cuil(view.cuil),
        qr=qr,
        seed=" ".join(groups),
        errors=errors,
    )


async def _issued(task: TaskId) -> str:
    """Whether key and certificate are made: `done`, `pending` or `failed`."""
    try:
        await core().tasks.wait(task, _ISSUE_WAIT_S)
    except ApplianceError as error:
        return "failed" if error.code is ErrorCode.TASK_FAILED else "pending"
    return "done"

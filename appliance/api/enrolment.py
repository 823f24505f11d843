"""The page behind an enrolment link: passwords, one-time codes, and the result.

Plain HTML that needs no script. A link that is over says so in words.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import segno
from quart import Blueprint, Response, request

from appliance.api import pages
from appliance.api.core import core
from appliance.domain.errors import (
    SENTENCES,
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.errors.sentences import OTHERS_CHOICE, OWN_DATA
from appliance.domain.ids import PersonId, TaskId
from appliance.domain.integrators.integrators import EnrolmentView
from appliance.domain.people.identity import Person, format_cuil
from appliance.identity.enrolment import Choice, Fault, Issued
from appliance.pki.kept_pins import LIFE
from appliance.requests.waiting_documents import Waiting
from appliance.web import forms
from appliance.web.auth import public
from appliance.web.server.client_address import client_address

blueprint = Blueprint("enrolment", __name__)
_FIELDS: Final = (
    "login_password",
    "login_password_again",
    "signing_password",
    "signing_password_again",
    "totp_code",
)
_OPENING: Final = "opening"
"""The hidden field that says which seed the form shows."""
_COOKIE: Final = "__Host-rubrica-alta"
"""The same for a reload, or another language, in this browser."""
_COOKIE_S: Final = 1800
"""Long enough to reload; a machine that others use shall not keep it."""
_PIN_COOKIE: Final = "__Host-rubrica-pin"
"""The new revocation PIN, sealed: shown again in this browser until it is kept."""
_PIN_COOKIE_S: Final = int(LIFE.total_seconds())
_ISSUE_WAIT_S: Final = 20.0
_GROUP: Final = 4
_DIFFER: Final = "The two entries do not match."
_WRONG: Final = SENTENCES[ErrorCode.SIGN_PASSWORD_WRONG]
"""Also of one that is too short or long to be any."""
_BY_FAULT: Final = {
    Fault.SHORT: "Use 8 characters or more.",
    Fault.UNUSABLE: "That password is too long.",
    Fault.COMMON: OTHERS_CHOICE,
    Fault.OWN: OWN_DATA,
    Fault.SAME: "This is the login password: choose another one to sign with.",
    Fault.NO_CODE: "The code has 6 digits.",
    Fault.WRONG_CODE: SENTENCES[ErrorCode.OTP_INVALID],
}
"""What is wrong with a field, as msgids."""


@blueprint.route("/alta/<code>", methods=["GET", "POST"])
@public
async def enrol(code: str) -> Response:
    """`/alta/{code}`: the form, while the link is good; by POST, what was typed.

    Who enrolled by it and got no key is asked for the signing password once more;
    who has one, or is getting it, is told so.

    Raises:
        ApplianceError: the link is over, for `refuse`.
    """
    posted = request.method == "POST"
    try:
        view = await core().enrolment.look(code, request.cookies.get(_COOKIE, ""))
    except ApplianceError as error:
        if error.code is not ErrorCode.ENROLMENT_USED:
            raise
        person, issued = await core().enrolment.standing(code)
        if issued is not Issued.FAILED:
            # Reloaded, or sent twice: it is told as it stands, and nothing is done.
            return await _done(code, issued.value, person)
        return await _again(code, person) if posted else await _again_form(code, person)
    return await _complete(code) if posted else _form(view, {})


@blueprint.post("/alta/<code>/guardado")
@public
async def keep(code: str) -> Response:
    """`POST /alta/{code}/guardado`: the person has kept the PIN, so forget it here.

    Nothing else changes, so any code will do.
    """
    where = f"{_path(code)}{pages.language_query()}"
    response = pages.answer(b"", pages.reader_language(), HTTPStatus.SEE_OTHER)
    response.headers["Location"] = where
    if _PIN_COOKIE in request.cookies:
        _set_cookie(response, _PIN_COOKIE, "", 0)
    return response


async def _again(code: str, person: Person) -> Response:
    """Ask for the key once more, with the signing password that was chosen.

    Raises:
        ApplianceError: what the form cannot mend, for `refuse`.
    """
    fields = await forms.read_fields("signing_password")
    try:
        enrolled = await core().enrolment.again(code, fields["signing_password"])
    except FieldInvalidError:
        return await _again_form(code, person, _WRONG)
    except ApplianceError as error:
        if error.code is not ErrorCode.SIGN_PASSWORD_WRONG:
            raise
        return await _again_form(code, person, error.sentence)
    state = await _issued(enrolled.task)
    return await _done(code, state, person)


async def _again_form(code: str, person: Person, error: str | None = None) -> Response:
    return pages.show(
        "alta_otra_vez.html",
        HTTPStatus.OK if error is None else HTTPStatus.UNPROCESSABLE_ENTITY,
        error=error,
        **_person(code, person, await _kept_pin(person)),
    )


async def _complete(code: str) -> Response:
    """Take what the person chose, once.

    Raises:
        ApplianceError: what the form cannot mend, for `refuse`.
    """
    fields = await forms.read_fields(*_FIELDS, _OPENING)
    view = await core().enrolment.look(code, fields[_OPENING])
    choice = Choice(
        fields["login_password"],
        fields["signing_password"],
        fields["totp_code"],
        view.opening,
    )
    wrong = await core().enrolment.faults(code, choice)
    told = {name: _BY_FAULT[fault] for name, fault in wrong.items()}
    told |= _entries_differ(fields)
    if told:
        return _form(view, {name: told[name] for name in _FIELDS if name in told})
    try:
        enrolled = await core().enrolment.complete(code, choice, client_address())
    except ApplianceError as error:
        # The code can be over by now.
        if error.code is not ErrorCode.OTP_INVALID:
            raise
        return _form(view, {"totp_code": error.sentence})
    state = await _issued(enrolled.task)
    # Shown from here, and not from the cookie, which a browser may refuse.
    response = await _done(code, state, view, enrolled.revocation_pin)
    _set_cookie(response, _PIN_COOKIE, enrolled.kept_pin, _PIN_COOKIE_S)
    return response


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
    """The form; what was typed is not sent back, being secret.

    The cookie is for a reload alone, of this browser: the form works without it.
    """
    seed = view.totp_secret
    groups = [seed[at : at + _GROUP] for at in range(0, len(seed), _GROUP)]
    qr = segno.make(view.totp_uri, error="m").svg_inline(
        scale=5, border=4, dark="#000", light="#fff", omitsize=True
    )
    response = pages.show(
        "alta.html",
        HTTPStatus.UNPROCESSABLE_ENTITY if errors else HTTPStatus.OK,
        view=view,
        cuil=format_cuil(view.cuil),
        qr=qr,
        seed=" ".join(groups),
        errors=errors,
    )
    _set_cookie(response, _COOKIE, view.opening, _COOKIE_S)
    return response


def _set_cookie(response: Response, name: str, value: str, age_s: int) -> None:
    # Lax: the link is followed from a mailbox, which is another site.
    response.set_cookie(
        name,
        value,
        max_age=age_s,
        path="/",
        secure=True,
        httponly=True,
        samesite="Lax",
    )


async def _done(
    code: str, state: str, person: EnrolmentView | Person, pin: str = ""
) -> Response:
    """Build the page at the end.

    Args:
        code: of the link.
        state: of key and certificate, as `Issued` names it.
        person: who enrolled; a view where they just did.
        pin: the new PIN of a view. Of others it is the one that this browser keeps.
    """
    if isinstance(person, EnrolmentView):
        person_id, shown = person.person, pin
    else:
        person_id, shown = person.id, await _kept_pin(person)
    is_done = state == Issued.DONE.value
    return pages.show(
        "alta_hecha.html",
        HTTPStatus.OK,
        state=state,
        # A browser that refuses cookies loses a new PIN by it.
        is_reloadable=not pin,
        waiting=await _waiting(person_id) if is_done else [],
        **_person(code, person, shown),
    )


async def _waiting(person: PersonId) -> list[Waiting]:
    try:
        return await core().waiting_documents.of(person)
    except ApplianceError:
        # The page has a PIN to show, which comes first.
        return []


def _person(code: str, person: EnrolmentView | Person, pin: str) -> dict[str, object]:
    """Values of a page that shows a person and their PIN."""
    return {
        "name": person.name,
        "cuil": format_cuil(person.cuil),
        "pin": pin,
        "pin_minutes": _PIN_COOKIE_S // 60,
        "keep_url": f"{_path(code)}/guardado{pages.language_query()}",
        "revocation_url": core().settings.revocation_url,
    }


def _path(code: str) -> str:
    """Path of the page behind a link."""
    return f"{pages.base_path()}/alta/{quote(code, safe='')}"


async def _kept_pin(person: Person) -> str:
    """The PIN that this browser keeps; empty if it keeps none of this person."""
    sealed = request.cookies.get(_PIN_COOKIE, "")
    return await core().kept_pins.open(person.id, sealed)


async def _issued(task: TaskId) -> str:
    """Whether key and certificate are made: `done`, `pending` or `failed`."""
    try:
        await core().tasks.wait(task, _ISSUE_WAIT_S)
    except ApplianceError as error:
        return "failed" if error.code is ErrorCode.TASK_FAILED else "pending"
    return "done"

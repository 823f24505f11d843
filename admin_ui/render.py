"""Pages, whole or in part, and what is said when something went wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from quart import (
    Response,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)

from admin_ui import edits, kept_form, notices, words
from admin_ui.session import form, is_partial, known
from appliance.domain.errors import (
    ApplianceError,
    ChangedMeanwhileError,
    FieldInvalidError,
)
from appliance.web import problems

_OURS: Final = 500
_SUBJECTS: Final[dict[str, tuple[str, tuple[str, ...], str]]] = {
    "person_id": ("person.show", ("person_id",), words.N_("Go to the person's page")),
    "number": ("requests.one", ("number",), words.N_("Go to the request")),
    "key_id": ("keys.show", ("code",), words.N_("Go to the API keys")),
    "domain_id": ("domains.show", ("code",), words.N_("Go to the domains")),
    "webhook": ("webhooks.one", ("code", "webhook"), words.N_("Go to the webhook")),
    "code": ("integrators.summary", ("code",), words.N_("Go to the integrator")),
    "anchor_id": ("trust.show", (), words.N_("Go to the trust store")),
    "name": ("administrators.one", ("name",), words.N_("Go to the administrator")),
}
"""Where to go from an error, by what the address names, the nearest first: endpoint,
arguments of its address, label."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with a form: a sentence for each field, and for the whole."""

    fields: Mapping[str, str] = field(default_factory=dict)
    general: str = ""
    links: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What helps with a field: the words and address of a link."""

    def of(self, name: str) -> str:
        """The sentence for a field; empty when nothing is wrong with it.

        Args:
            name: of the field.
        """
        return self.fields.get(name, "")

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.fields or self.general)


NONE: Final = Faults()


def faults_of(
    error: ApplianceError,
    names: Mapping[str, str] | None = None,
    sentences: Mapping[str, str] | None = None,
) -> Faults:
    """Say an error where it belongs in a form.

    Args:
        error: a service's refusal of what was typed.
        names: the form's field for the field or code that the error names;
            without one, what is said stands above the form.
        sentences: msgids by the error's field, in the place of `words.FIELDS`.

    Raises:
        ApplianceError: the error itself, when the form is not at fault.
    """
    is_ours = problems.ANSWERS[error.code].status >= _OURS
    if is_ours or isinstance(error, ChangedMeanwhileError):
        raise error
    named = str(error.extras.get("field", ""))
    found = (names or {}).get(named) or (names or {}).get(error.code.value)
    told = words.error(error)
    if isinstance(error, FieldInvalidError):
        is_empty = named in words.MISSING and not form().raw(found or named).strip()
        if is_empty:
            told = words.say(words.MISSING[named])
        elif named in (sentences or {}):
            told = words.say((sentences or {})[named])
    return Faults({found: told}) if found else Faults(general=told)


def faults_of_each(
    *checks: Callable[[], object],
    names: Mapping[str, str],
    sentences: Mapping[str, str] | None = None,
) -> Faults:
    """Try each field of a form by itself, since a service stops at the first fault.

    What several checks find in one field is said one after the other.

    Args:
        *checks: each raises what is wrong with one field.
        names: as of `faults_of`.
        sentences: as of `faults_of`.

    Raises:
        ApplianceError: an error that is not the form's fault.
    """
    found: dict[str, str] = {}
    for check in checks:
        try:
            check()
        except ApplianceError as exc:
            for name, told in faults_of(exc, names, sentences).fields.items():
                before = found.get(name)
                found[name] = told if before in {None, told} else f"{before} {told}"
    return Faults(found)


async def page(
    template: str, status: HTTPStatus = HTTPStatus.OK, **context: Any
) -> Response:
    """Render a template.

    Args:
        template: its name.
        status: of the answer.
        context: for the template.
    """
    notice = notices.told() if status is HTTPStatus.OK else ""
    text = await render_template(template, notice=notice, **context)
    response = await make_response(text)
    response.status_code = status
    if notice:
        notices.forget(_response(response))
    kept_form.forget(_response(response))
    response.headers["Content-Language"] = words.lang()
    response.headers["Vary"] = "Accept-Language, Cookie, HX-Request"
    return _response(response)


async def again(template: str, faults: Faults, **context: Any) -> Response:
    """Show a form again with what is wrong in it.

    Args:
        template: of the page with the form.
        faults: what is wrong.
        context: for the template.
    """
    return await page(
        template, HTTPStatus.UNPROCESSABLE_ENTITY, faults=faults, **context
    )


def go(endpoint: str, *, done: str = "", **values: Any) -> Response:
    """Send the browser on after a change.

    Args:
        endpoint: where to.
        done: the word in `notices` of what the page there tells; empty for nothing.
        values: for its address.
    """
    response = _response(redirect(url_for(endpoint, **values), HTTPStatus.SEE_OTHER))
    if done:
        notices.tell(response, done)
    return response


async def error_page(error: ApplianceError) -> Response:
    """Show an error that no form can show.

    Args:
        error: what happened.
    """
    status = problems.ANSWERS[error.code].status
    if "console" not in g:
        # Nothing was asked of the session yet: there is no such address.
        g.console = await known()
    if edits.conflict(error, _way_back()):
        return await _changed_page()
    template = "parts/error.html" if is_partial() else "error.html"
    response = await page(
        template,
        status,
        title=words.say(problems.TITLES[status]),
        told=words.error(error),
        code=error.code.value,
        request_id=g.request_id,
        back=None if status is HTTPStatus.NOT_FOUND else _way_back(),
    )
    retry = error.extras.get("retryAfter", problems.ANSWERS[error.code].retry_after_s)
    if retry is not None:
        response.headers["Retry-After"] = str(retry)
    return response


async def _changed_page() -> Response:
    """Show the page of a form that came too late, with what was typed in it."""
    view = current_app.view_functions[edits.FORMS[request.endpoint or ""].page]
    response = None
    try:
        shown = await current_app.ensure_async(view)(**(request.view_args or {}))
        response = _response(await make_response(shown))
    except ApplianceError:
        # What it is about is gone, or such that the form has no place any more.
        pass
    if response is None or response.status_code != HTTPStatus.OK:
        edits.without_form()
        response = await page("changed.html", back=_way_back())
    response.status_code = HTTPStatus.PRECONDITION_FAILED
    return response


def _way_back() -> tuple[str, str] | None:
    """Address and label of the page of what was asked about; None for nothing."""
    about = request.view_args or {}
    if g.console is None:
        return None
    for name, (endpoint, arguments, label) in _SUBJECTS.items():
        if name in about:
            named = {argument: about[argument] for argument in arguments}
            return url_for(endpoint, **named), words.say(label)
    if request.blueprint == "account":
        return url_for("account.show"), words.say("Go to my account")
    return None


def _response(made: Any) -> Response:
    """What the framework made, which is always one of its own responses."""
    response: Response = made
    return response

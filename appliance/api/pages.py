"""What the pages of this address share: their look, and errors in words."""

from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from quart import Blueprint, Response, g, request

from appliance.api.core import core
from appliance.domain.errors import ApplianceError
from appliance.web import i18n, problems, request_log
from appliance.web.auth import public
from appliance.web.content_negotiation import wants_page
from appliance.web.pages import Pages, StaticFiles

files = Blueprint("files", __name__)
"""What pages load; its errors are those of the API."""

_DOWNLOAD: Final = "solicitudes.download_signed"
"""The route to which download links lead."""
_HERE: Final = Path(__file__).parent
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from elsewhere, no frame. Every page works without its
script, which keeps what was typed and helps to copy."""
_pages = Pages(_HERE / "templates", csp=_POLICY)
_files = StaticFiles(_HERE / "static", "alta.css", "alta.js", "docs.css")


def show(template: str, status: int, **values: object) -> Response:
    """Answer with a page.

    Args:
        template: file name.
        status: HTTP status.
        values: what it needs.
    """
    lang = reader_language()
    return answer(render(template, lang, **values), lang, status)


def render(template: str, lang: str, **values: object) -> str:
    """Fill a template.

    Args:
        template: file name.
        lang: `es` or `en`.
        values: what it needs besides what every page has.
    """
    settings = core().settings
    return _pages.render(
        template,
        lang,
        base=base_path(),
        environment=settings.environment.value,
        trial=settings.trial,
        installation=settings.installation,
        contact=settings.contact,
        contact_href=settings.contact_href,
        **values,
    )


def answer(html: str | bytes, lang: str, status: int = HTTPStatus.OK) -> Response:
    """Answer with a page that was made before.

    Args:
        html: as `render` makes it.
        lang: `es` or `en`.
        status: HTTP status.
    """
    return _pages.answer(html, lang, status)


def refuse(error: ApplianceError, template: str, **values: object) -> Response:
    """Say in words, on a page, what a person cannot mend in a form.

    Args:
        error: raised by a view of a page.
        template: file name; it gets `title` and `told`.
        values: what else it needs.
    """
    request_log.note(code=error.code.value)
    lang = reader_language()
    answer = problems.ANSWERS[error.code]
    response = show(
        template,
        answer.status,
        title=i18n.translate(lang, problems.TITLES[answer.status]),
        told=i18n.said(error, lang),
        **values,
    )
    wait_s = error.extras.get("retryAfter", answer.retry_after_s)
    if wait_s is not None:
        response.headers["Retry-After"] = str(wait_s)
    return response


async def refuse_anybody(error: ApplianceError) -> Response:
    """Answer to an error: a page for a person's browser, else the usual problem.

    Args:
        error: raised anywhere at this address.
    """
    problem = problems.render(error, g.request_id, i18n.requested())
    if request.method not in {"GET", "HEAD"} or not wants_page():
        return problem
    lang = reader_language()
    link = request.endpoint == _DOWNLOAD and "clave" in request.args
    page = show(
        "error.html",
        problem.status_code,
        title=i18n.translate(lang, problems.TITLES[HTTPStatus(problem.status_code)]),
        told=i18n.said(error, lang),
        link_over=link and problem.status_code == HTTPStatus.UNAUTHORIZED,
        programs=problem.status_code == HTTPStatus.UNAUTHORIZED,
        reference=g.request_id,
    )
    for name in ("Retry-After", "WWW-Authenticate"):
        if name in problem.headers:
            page.headers[name] = problem.headers[name]
    return page


def reader_language() -> str:
    """The language of a page: that of its `?lang=`, else the browser's."""
    chosen = request.args.get("lang", "")
    return chosen if chosen in i18n.LANGUAGES else i18n.requested()


def language_query() -> str:
    """What keeps a choice of language in the address of another page."""
    chosen = request.args.get("lang", "")
    return f"?lang={chosen}" if chosen in i18n.LANGUAGES else ""


def base_path() -> str:
    """The path that stands before ours in the public address; usually none."""
    return urlsplit(core().settings.web.base_url).path.rstrip("/")


@files.get("/static/<name>")
@public
async def static_file(name: str) -> Response:
    """`GET /static/{name}`: what the pages load."""
    return _files.serve(name)

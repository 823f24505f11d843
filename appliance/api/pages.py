"""What the pages of this address share: their look, and errors in words."""

from pathlib import Path
from typing import Final

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.domain.errors import ApplianceError
from appliance.web import language, log, problems
from appliance.web.auth import public
from appliance.web.pages import Pages, StaticFiles

files = Blueprint("files", __name__)
"""What pages load; its errors are those of the API."""

_HERE: Final = Path(__file__).parent
_pages = Pages(_HERE / "templates")
_files = StaticFiles(_HERE / "static", "alta.css")


def show(template: str, status: int, **values: object) -> Response:
    """Answer with a page.

    Args:
        template: file name.
        status: HTTP status.
        values: what it needs.
    """
    settings = core().settings
    return _pages.show(
        template,
        language.requested(),
        status,
        environment=settings.environment.value,
        trial=settings.trial,
        installation=settings.installation,
        **values,
    )


def refuse(error: ApplianceError, template: str, **values: object) -> Response:
    """Say in words, on a page, what a person cannot mend in a form.

    Args:
        error: raised by a view of a page.
        template: file name; it gets `title` and `told`.
        values: what else it needs.
    """
    log.note(code=error.code.value)
    lang = language.requested()
    answer = problems.ANSWERS[error.code]
    response = show(
        template,
        answer.status,
        title=language.translate(lang, problems.TITLES[answer.status]),
        told=error.told(language.translate(lang, error.sentence)),
        **values,
    )
    wait_s = error.extras.get("retryAfter", answer.retry_after_s)
    if wait_s is not None:
        response.headers["Retry-After"] = str(wait_s)
    return response


@files.get("/static/<name>")
@public
async def static_file(name: str) -> Response:
    """`GET /static/{name}`: what the pages load."""
    return _files.serve(name)

"""The documentation for developers, at {web_url}/docs: no script, nothing from outside.

Each page is made once and kept: there are as many as languages times pages.
"""

import hashlib
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, current_app, request

from appliance.api import pages
from appliance.api.core import core
from appliance.api.openapi import routes as openapi
from appliance.developer_docs import markdown
from appliance.developer_docs.error_catalogue import catalogue
from appliance.developer_docs.pages import DOWNLOADS, PAGES, SAMPLES, page_text
from appliance.developer_docs.reference import reference
from appliance.developer_docs.webhook_vectors import vectors_file
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web import i18n, sdk
from appliance.web.auth import public
from appliance.web.made_once import MadeOnce
from appliance.web.problems import ANSWERS
from appliance.web.responses import file_response

blueprint = Blueprint("developer_docs", __name__)

KEPT: Final = "rubrica.developer_docs"
"""Where the application keeps the pages that were made."""
_OF_CODE: Final = {"errors": "docs_errors.html", "reference": "docs_reference.html"}
"""Templates of pages that are made of more than their text."""
_VECTORS: Final = "webhook-vectors.json"
_NAMES: Final = frozenset(page.name for page in PAGES)
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page as it is sent."""

    html: bytes
    tag: str
    """Its ETag."""


@blueprint.get("/docs")
@public
async def choose_language() -> Response:
    """`GET /docs`: lead to the pages in the reader's language."""
    answer = Response(b"", HTTPStatus.SEE_OTHER)
    # There is no page in it.
    del answer.headers["Content-Type"]
    # Relative: whatever path stands before ours in the public address.
    answer.headers["Location"] = f"./docs/{i18n.requested()}/"
    answer.headers["Vary"] = "Accept-Language"
    del answer.headers["Content-Type"]
    return answer


@blueprint.get("/docs/<lang>/")
@public
async def index(lang: str) -> Response:
    """`GET /docs/{lang}/`: where to begin."""
    return await _show(lang, "")


@blueprint.get("/docs/<lang>/<name>")
@public
async def page(lang: str, name: str) -> Response:
    """`GET /docs/{lang}/{page}`: one page, in one language."""
    return await _show(lang, name)


@blueprint.get("/docs/files/<name>")
@public
async def file(name: str) -> Response:
    """`GET /docs/files/{name}`: a sample or the vectors, to be saved.

    Raises:
        ApplianceError: `NOT_FOUND`.
    """
    if name == _VECTORS:
        return file_response(vectors_file(), "application/json", name)
    if name not in DOWNLOADS:
        raise ApplianceError(ErrorCode.NOT_FOUND)
    return file_response(SAMPLES[name], _TEXT, name)


async def _show(lang: str, name: str) -> Response:
    """Answer with a page, or with 304 to who has it.

    Raises:
        ApplianceError: `NOT_FOUND`.
    """
    if lang not in i18n.LANGUAGES or name not in _NAMES:
        raise ApplianceError(ErrorCode.NOT_FOUND)
    kept: MadeOnce[tuple[str, str], MadePage] = current_app.extensions[KEPT]
    made = await kept.get((lang, name), partial(_make, lang, name))
    is_known = made.tag in request.headers.get("If-None-Match", "")
    answer = pages.answer(b"" if is_known else made.html, lang)
    if is_known:
        answer.status_code = HTTPStatus.NOT_MODIFIED
        del answer.headers["Content-Length"]
    answer.headers["ETag"] = made.tag
    answer.headers["Cache-Control"] = "no-cache"
    return answer


def _integrity() -> str:
    """The hash of the JavaScript SDK that is served; dots where none was built."""
    built = sdk.built()
    return "sha384-…" if built is None else built.files[sdk.MODULE].integrity


def _make(lang: str, name: str) -> MadePage:
    settings = core().settings
    text = page_text(
        lang,
        name,
        {
            "web_url": settings.web.web_url,
            "iframe_url": settings.web.iframe_url,
            "base_url": settings.web.base_url,
            "environment": settings.environment.value,
            "integrity": _integrity(),
        },
    )
    contents = markdown.headings(text)
    more: dict[str, object] = {}
    if name == "errors":
        groups = list(catalogue(lang))
        contents += [markdown.Heading(each.name, each.title) for each in groups]
        more = {"groups": groups, "answers": ANSWERS}
    elif name == "reference":
        told = reference(openapi.document_of(settings, lang))
        contents += [markdown.Heading(f"group-{each}", each) for each in told.groups]
        more = {"reference": told}
    html = pages.render(
        _OF_CODE.get(name, "docs.html"),
        lang,
        name=name,
        menu=PAGES,
        title=markdown.title(text),
        headings=contents,
        body=markdown.render(text),
        **more,
    ).encode()
    return MadePage(html, f'"{hashlib.sha256(html).hexdigest()[:32]}"')

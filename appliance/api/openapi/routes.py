"""Where the document is had: `{web_url}/docs/openapi.json`.

It is made when it is first asked for, in each process, and kept.
"""

import hashlib
import json
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from quart import Blueprint, Response, current_app, request

from appliance.api import pages
from appliance.api.core import core
from appliance.api.openapi.document import openapi_document
from appliance.domain.vocab import Environment
from appliance.settings import Settings
from appliance.web.auth import public
from appliance.web.made_once import MadeOnce
from appliance.web.responses import JSON

blueprint = Blueprint("openapi", __name__)

PATH: Final = "/docs/openapi.json"
KEPT: Final = "rubrica.openapi"
"""Where the application keeps it, by its language."""
_MAX_AGE_S: Final = 300


@blueprint.get(PATH)
@public
async def show() -> Response:
    """`GET /docs/openapi.json`: for programs, and pages of any origin."""
    lang = pages.reader_language()
    kept: MadeOnce[str, bytes] = current_app.extensions[KEPT]
    content = await kept.get(lang, partial(_content, core().settings, lang))
    tag = f'"{hashlib.sha256(content).hexdigest()}"'
    is_known = tag in request.headers.get("If-None-Match", "")
    response = Response(b"" if is_known else content)
    if is_known:
        response.status_code = HTTPStatus.NOT_MODIFIED
    response.headers["Content-Type"] = JSON
    response.headers["ETag"] = tag
    response.headers["Vary"] = "Accept-Language"
    response.headers["Cache-Control"] = f"public, max-age={_MAX_AGE_S}"
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


def document_of(settings: Settings, lang: str) -> dict[str, Any]:
    """The document of an installation, for JSON.

    Args:
        settings: of the installation.
        lang: of its summaries, `es` or `en`.
    """
    return openapi_document(
        lang,
        web_url=settings.web.web_url,
        base_url=settings.web.base_url,
        has_test_mode=settings.environment is Environment.PREPROD,
    )


def _content(settings: Settings, lang: str) -> bytes:
    """The same as bytes."""
    document = document_of(settings, lang)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

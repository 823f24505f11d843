"""Where the document is had: `{web_url}/docs/openapi.json`.

It is made when it is first asked for, in each process, and kept.
"""

import asyncio
import hashlib
import json
from functools import cache
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from appliance.api import pages
from appliance.api.core import core
from appliance.domain.vocab import Environment
from appliance.web.auth import public
from appliance.web.responses import JSON

blueprint = Blueprint("openapi", __name__)

PATH: Final = "/docs/openapi.json"
_MAX_AGE_S: Final = 300


@blueprint.get(PATH)
@public
async def show() -> Response:
    """`GET /docs/openapi.json`: for programs, and pages of any origin."""
    web = core().settings.web
    # Off the event loop: it takes a third of a second.
    content = await asyncio.to_thread(
        _content,
        pages.reader_language(),
        web.web_url,
        web.base_url,
        core().settings.environment,
    )
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


@cache
def _content(lang: str, web_url: str, base_url: str, environment: Environment) -> bytes:
    from appliance.api.openapi.document import (  # noqa: PLC0415 (seldom needed)
        openapi_document,
    )

    document = openapi_document(
        lang,
        web_url=web_url,
        base_url=base_url,
        has_test_mode=environment is Environment.PREPROD,
    )
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

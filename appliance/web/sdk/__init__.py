"""The SDKs that the appliance serves to integrators.

    app.register_blueprint(sdk.blueprint)

`sdk/build.py` makes the files, when the machine is set up or the package is built;
its `index.json` names each with its SRI. Nothing outside that list is ever handed out,
and where nothing was built every address below `/sdk/` is absent.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from quart import Blueprint, Response, request

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web.auth import public
from appliance.web.responses import JSON

FILES: Final = Path(__file__).resolve().parent / "files"
"""Where the built files are; Git ignores it."""
INDEX: Final = "index.json"
MODULE: Final = "rubrica-embed.js"
"""The JavaScript SDK as a module."""
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".json": JSON,
    ".tgz": "application/gzip",
    ".whl": "application/zip",
}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"
_NOT_BUILT: Final = (
    "There is nothing at this address: the SDKs were not built on this installation."
)
"""A msgid."""

blueprint = Blueprint("sdk", __name__, url_prefix="/sdk")


@dataclass(frozen=True, slots=True)
class Served:
    """A file, ready to be sent."""

    content: bytes = field(repr=False)
    media_type: str
    integrity: str
    """As pages give it: `sha384-…`."""


@dataclass(frozen=True, slots=True)
class Built:
    """What was built."""

    version: str
    index: bytes = field(repr=False)
    """The list of the files, JSON."""
    files: dict[str, Served] = field(repr=False)
    """By name."""


@cache
def built(folder: Path = FILES) -> Built | None:
    """Read what was built, once: an upgrade replaces files while a role runs.

    Args:
        folder: where it is.

    Returns:
        None where nothing is, or not all of it.
    """
    try:
        index = (folder / INDEX).read_bytes()
        told = json.loads(index)
        files = {
            row["nombre"]: Served(
                (folder / row["nombre"]).read_bytes(),
                _TYPES[Path(row["nombre"]).suffix],
                row["integridad"],
            )
            for row in told["archivos"]
        }
        return Built(told["version"], index, files)
    except (OSError, ValueError, KeyError):
        return None


@blueprint.get("/")
@public
async def listing() -> Response:
    """`GET /sdk/`: the files with their sizes and SRI.

    Raises:
        ApplianceError: `NOT_FOUND`: nothing was built.
    """
    return _open(Response(_all().index, headers={"Content-Type": JSON}), _ASK_AGAIN)


@blueprint.get("/<name>")
@public
async def file(name: str) -> Response:
    """`GET /sdk/{name}`: a file, as this version of the appliance has it.

    Raises:
        ApplianceError: `NOT_FOUND`.
    """
    return _file(name, _ASK_AGAIN)


@blueprint.get("/<version>/<name>")
@public
async def file_of_version(version: str, name: str) -> Response:
    """`GET /sdk/{version}/{name}`: the same, of one version alone.

    Raises:
        ApplianceError: `NOT_FOUND`: also of any other version.
    """
    present = _all().version
    if version != present:
        raise ApplianceError(ErrorCode.NOT_FOUND)
    # A version in the making may be built again.
    return _file(name, _ASK_AGAIN if "dev" in present else _FOR_GOOD)


def _all() -> Built:
    """Everything that was built.

    Raises:
        ApplianceError: `NOT_FOUND`: nothing was.
    """
    found = built()
    if found is None:
        raise ApplianceError(ErrorCode.NOT_FOUND, sentence=_NOT_BUILT)
    return found


def _file(name: str, cache_control: str) -> Response:
    """Answer with a file, or that the caller has it.

    Raises:
        ApplianceError: `NOT_FOUND`.
    """
    served = _all().files.get(name)
    if served is None:
        raise ApplianceError(ErrorCode.NOT_FOUND)
    response = Response(served.content, headers={"Content-Type": served.media_type})
    tag = f'"{served.integrity}"'
    if tag in request.headers.get("If-None-Match", ""):
        response = Response(b"", HTTPStatus.NOT_MODIFIED)
        del response.headers["Content-Length"]
        del response.headers["Content-Type"]
    response.headers["ETag"] = tag
    return _open(response, cache_control)


def _open(response: Response, cache_control: str) -> Response:
    """Let pages of any origin read an answer: there is nothing of anybody in it."""
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.headers["Cache-Control"] = cache_control
    return response

"""Style and script: read once, served under the hash of their content.

The address changes with the content, so that a browser may keep each for ever
and never mixes two versions.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quart import Blueprint, Response, url_for

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web import brand
from appliance.web.auth import public
from appliance.web.vendor import vendor_path

_FOLDER: Final = Path(__file__).resolve().parent / "static"
_LAYERS: Final = ("reset", "base", "layout", "components", "utilities")
"""Layers of the style, one file each, in their order."""
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FOR_EVER: Final = "public, max-age=31536000, immutable"

blueprint = Blueprint("assets", __name__, url_prefix="/admin/static")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file for browsers."""

    content: bytes = field(repr=False)
    media_type: str
    digest: str
    """First 16 hex digits of its SHA-256."""


def load() -> dict[str, Asset]:
    """Every asset by name.

    Raises:
        VendorError: htmx was not fetched; the text says the remedy.
    """
    order = f"@layer {', '.join(_LAYERS)};\n".encode()
    style = b"".join((_FOLDER / f"{name}.css").read_bytes() for name in _LAYERS)
    files = {
        "console.css": brand.TOKENS + order + style,
        "console.js": (_FOLDER / "console.js").read_bytes(),
        "htmx.js": vendor_path("htmx/htmx.min.js").read_bytes(),
        "icon.svg": brand.ICON,
    }
    return {name: _asset(name, content) for name, content in files.items()}


def _asset(name: str, content: bytes) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:16]
    media_type = _TYPES[Path(name).suffix]
    return Asset(content, f"{media_type}; charset=utf-8", digest)


ASSETS: Final = load()


def address(name: str) -> str:
    """Where an asset is.

    Args:
        name: one of `ASSETS`.
    """
    return url_for("assets.serve", digest=ASSETS[name].digest, name=name)


@blueprint.get("/<digest>/<name>")
@public
async def serve(digest: str, name: str) -> Response:
    """`GET /admin/static/{digest}/{name}`.

    Raises:
        ApplianceError: `NOT_FOUND`, also for another version.
    """
    asset = ASSETS.get(name)
    if asset is None or asset.digest != digest:
        raise ApplianceError(ErrorCode.NOT_FOUND)
    response = Response(asset.content, headers={"Content-Type": asset.media_type})
    response.headers["Cache-Control"] = _FOR_EVER
    return response

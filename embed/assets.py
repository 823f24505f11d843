"""The files that the frame's page loads: our modules, and pdf.js.

All are read once, at the start, and served under an address that names their
content: a browser keeps them for good, and a new version is another address.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from appliance.domain.errors import DOCUMENTS_AWAY, FAILED_FOR_GOOD, SENTENCES
from appliance.web import brand, i18n
from appliance.web.vendor import check_files, manifest, vendor_path

_STATIC: Final = Path(__file__).resolve().parent / "static"
_TEMPLATES: Final = _STATIC.parent / "templates"
FIRST_SCRIPT: Final = "boot.js"
"""Runs while the page is parsed; no module."""
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
_PLAIN: Final = "application/octet-stream"
_POLICIES: Final = {
    "pdfjs/pdf.worker.min.mjs": "default-src 'none'; script-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'"
}
"""Of a worker's script, which is held to its own policy and not to its page's: pdf.js
loads decoders of pictures as scripts, and character maps of fonts."""
_PACKED: Final = frozenset({".js", ".mjs", ".css", ".json", ".svg"})
_PACK_AT_LEAST: Final = 1024
_packed: Final[dict[bytes, bytes]] = {}
"""What was packed, by the content's SHA-256."""
_SENTENCE = re.compile(r'\bt\(\s*"((?:[^"\\]|\\.)*)"')
"""A sentence that a module says: `t("…")`, its msgid as a literal."""
_INSTEAD: Final = {
    "DOCUMENTS_AWAY": DOCUMENTS_AWAY,
    "FAILED_FOR_GOOD": FAILED_FOR_GOOD,
}
"""Sentences that stand in the place of a code's own, by the names that `failure.js`
knows them by."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, ready to be sent."""

    plain: bytes | None = field(repr=False)
    """None where it is packed: it is kept once."""
    packed: bytes | None = field(repr=False)
    """The content by gzip, where that is worth it."""
    media_type: str
    policy: str | None = None
    """Its `Content-Security-Policy`, where it is not the usual one."""

    @property
    def content(self) -> bytes:
        """The file, unpacked for those few who do not read gzip."""
        return gzip.decompress(self.packed or b"") if self.plain is None else self.plain


@dataclass(frozen=True, slots=True)
class Assets:
    """Every file by its name below the versioned address."""

    version: str
    """Names the content of all of them."""
    files: dict[str, Asset] = field(repr=False)

    @property
    def modules(self) -> tuple[str, ...]:
        """The page's own modules: with the page they are asked for all at once."""
        return tuple(
            name
            for name in self.files
            if name.endswith(".js") and "/" not in name and name != FIRST_SCRIPT
        )

    @property
    def base(self) -> str:
        """Path below which they are."""
        return f"/embed/v/{self.version}"


def load_assets() -> Assets:
    """Read, check and pack every file.

    Raises:
        VendorError: pdf.js is missing or another one; the text says the remedy.
    """
    check_files()
    contents = dict(_contents())
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    files = {name: _asset(name, content) for name, content in contents.items()}
    return Assets(digest.hexdigest()[:16], files)


def _contents() -> Iterator[tuple[str, bytes]]:
    for path in sorted(_STATIC.iterdir()):
        yield path.name, path.read_bytes()
    yield from brand.FILES.items()
    for name in manifest():
        if name.startswith("pdfjs/"):
            yield name, vendor_path(name).read_bytes()
    for lang in i18n.LANGUAGES:
        yield f"strings/{lang}.json", _strings(lang)


def _asset(name: str, content: bytes) -> Asset:
    suffix = Path(name).suffix
    packed = None
    if suffix in _PACKED and len(content) >= _PACK_AT_LEAST:
        packed = _packed_once(content)
    media_type = _TYPES.get(suffix, _PLAIN)
    plain = content if packed is None else None
    return Asset(plain, packed, media_type, _POLICIES.get(name))


def _packed_once(content: bytes) -> bytes:
    digest = hashlib.sha256(content).digest()
    if digest not in _packed:
        _packed[digest] = gzip.compress(content, 6, mtime=0)
    return _packed[digest]


def sentences() -> tuple[str, ...]:
    """Every msgid that our modules and templates say."""
    found = {
        json.loads(f'"{text}"')
        for path in [*_STATIC.glob("*.js"), *_TEMPLATES.glob("*.html")]
        for text in _SENTENCE.findall(path.read_text(encoding="utf-8"))
    }
    return tuple(sorted(found))


def _strings(lang: str) -> bytes:
    """What the page says in a language: its own sentences, and those of errors."""
    told = {
        "messages": {msgid: i18n.translate(lang, msgid) for msgid in sentences()},
        "errors": {
            code.value: i18n.translate(lang, sentence)
            for code, sentence in SENTENCES.items()
        }
        | {name: i18n.translate(lang, said) for name, said in _INSTEAD.items()},
    }
    return json.dumps(told, ensure_ascii=False).encode()

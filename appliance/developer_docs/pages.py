"""The pages: their order, their texts, and what is filled into these.

    text = page_text("es", "guide", {"web_url": "https://firma.example", …})

A text is Markdown with `{name}` for what an installation knows, and lines
`{include FILE}` for a file of `samples`, which becomes a block of code.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.developer_docs.webhook_vectors import as_message, vectors
from appliance.system.catalogues import LANGUAGES

_HERE: Final = Path(__file__).parent
_INCLUDE: Final = re.compile(r"^\{include (\S+)\}$", re.MULTILINE)
_FENCES: Final = {
    ".sh": "sh",
    ".py": "python",
    ".mjs": "js",
    ".php": "php",
    ".java": "java",
    ".html": "html",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page; its address is below that of its language."""

    name: str
    """What its address ends in; the first page's is empty."""
    label: str
    """In the menu: a msgid."""


PAGES: Final = (
    Page("", "Overview"),
    Page("guide", "Ten-minute guide"),
    Page("samples", "Samples"),
    Page("reference", "Reference"),
    Page("webhooks", "Webhooks"),
    Page("iframe", "The iframe"),
    Page("errors", "Errors"),
    Page("sdk", "SDKs"),
)
_TEXTS: Final = {
    (lang, page.name): (_HERE / lang / f"{page.name or 'index'}.md").read_text("utf-8")
    for lang in LANGUAGES
    for page in PAGES
}
"""Read as a role starts: an upgrade replaces files while it runs."""
SAMPLES: Final = {
    path.relative_to(_HERE / "samples").as_posix(): path.read_bytes()
    for path in sorted((_HERE / "samples").rglob("*"))
    if path.suffix in _FENCES
}
"""Files that pages show, by name."""
DOWNLOADS: Final = frozenset(
    name for name in SAMPLES if "/" not in name and not name.endswith(".html")
)
"""Those that are whole programs, to be saved."""


def page_text(lang: str, name: str, known: Mapping[str, str]) -> str:
    """The Markdown of a page, filled in.

    Args:
        lang: `es` or `en`.
        name: of one of `PAGES`.
        known: what stands for `{web_url}`, `{iframe_url}`, `{base_url}`,
            `{environment}` and `{integrity}`.
    """
    text = _INCLUDE.sub(_included, _TEXTS[lang, name])
    shown = {f"vector_{each.name}": as_message(each) for each in vectors()}
    for each, value in {**shown, **known}.items():
        text = text.replace(f"{{{each}}}", value)
    return text


def _included(found: re.Match[str]) -> str:
    name = found[1]
    code = SAMPLES[name].decode().rstrip("\n")
    return f"```{_FENCES[Path(name).suffix]}\n{code}\n```"

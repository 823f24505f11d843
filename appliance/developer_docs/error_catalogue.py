"""Every code of the error tree, with its cause, who mends it, and how.

    for group in catalogue("es"):
        for entry in group.entries: …

What an error says is the sentence of the tree and its catalogue; what is added here, in
`errors/*.toml`, is for developers: one file for each group of codes, both languages.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from appliance.developer_docs.markdown import inline
from appliance.domain.errors import SENTENCES, ErrorCode
from appliance.system.catalogues import translate

_FOLDER: Final = Path(__file__).parent / "errors"
GROUPS: Final = (
    "request",
    "identity",
    "integrators",
    "requests",
    "documents",
    "webhooks",
    "certificates",
    "appliance",
    "console",
    "commands",
)
"""Files, in the order in which a developer meets their codes."""
WHO: Final = {
    "integrator": "the integrator",
    "signer": "the signer",
    "operator": "whoever runs the installation",
}
"""Who mends an error: the word of the files, and its msgid."""


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One code in one language; texts that may have code in them are HTML."""

    code: ErrorCode
    sentence: str
    """With places such as `{field}`."""
    who: tuple[str, ...]
    cause: Markup
    fix: Markup


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Codes about one thing."""

    name: str
    title: str
    entries: tuple[ErrorEntry, ...]


_TEXTS: Final = {name: (_FOLDER / f"{name}.toml").read_text("utf-8") for name in GROUPS}
"""Read as a role starts: an upgrade replaces files while it runs."""


def told_codes() -> list[str]:
    """Every code that the files tell of, as often as they do."""
    return [
        code
        for group in _told().values()
        for code, told in group.items()
        if isinstance(told, dict)
    ]


def catalogue(lang: str) -> Iterator[ErrorGroup]:
    """All codes in a language, group by group.

    Args:
        lang: `es` or `en`.
    """
    for name, group in _told().items():
        entries = tuple(
            _entry(ErrorCode(code), told, lang)
            for code, told in group.items()
            if isinstance(told, dict)
        )
        yield ErrorGroup(name, group[lang], entries)


def _told() -> dict[str, dict[str, Any]]:
    return {name: tomllib.loads(text) for name, text in _TEXTS.items()}


def _entry(code: ErrorCode, told: dict[str, Any], lang: str) -> ErrorEntry:
    return ErrorEntry(
        code,
        str(translate(lang, SENTENCES[code])),
        tuple(str(translate(lang, WHO[each])) for each in told["who"]),
        inline(told[f"cause_{lang}"]),
        inline(told[f"fix_{lang}"]),
    )

"""What the console's pages say, taken from its sources: every msgid.

`python -m tests.tools.messages` prints those that `console.po` lacks, and those
that it has for nothing.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from babel.messages.extract import extract_from_dir, extract_from_file
from babel.messages.pofile import read_po

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = ROOT / "admin_ui"
HEALTH: Final = ROOT / "appliance/operations/health/words.py"
"""Words that the console shares with commands."""
CATALOGUE: Final = ROOT / "appliance/locale/es/LC_MESSAGES/console.po"
SHARED: Final = CATALOGUE.with_name("rubrica.po")
_METHODS: Final = [
    ("**.py", "python"),
    ("templates/**.html", "jinja2"),
    ("templates/**.txt", "jinja2"),
]
_OPTIONS: Final = {
    name: {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}
    for name in ("templates/**.html", "templates/**.txt")
}
_KEYWORDS: Final = {
    "_": None,
    "N_": None,
    "gettext": None,
    "say": None,
    "ngettext": (1, 2),
}

Message = str | tuple[str, ...]
"""A msgid, or a msgid and its plural."""


def said() -> Iterator[Message]:
    """Every msgid of the console's sources."""
    found = extract_from_dir(
        SOURCES, _METHODS, _OPTIONS, keywords=_KEYWORDS, comment_tags=()
    )
    for _, _, message, _, _ in found:
        yield tuple(message[:2]) if isinstance(message, tuple | list) else message
    shared = extract_from_file("python", HEALTH, keywords=_KEYWORDS)
    yield from (message for _, message, _, _ in shared if isinstance(message, str))


def translated(path: Path) -> dict[Message, Message]:
    """A catalogue's translations by msgid."""
    with path.open("rb") as file:
        catalogue = read_po(file, locale="es", abort_invalid=True)
    return {_key(m.id): _key(m.string or "") for m in catalogue if m.id}


def _key(text: Message | list[str]) -> Message:
    return text if isinstance(text, str) else tuple(text)


def main() -> int:
    """Print what is missing and what is left over; 1 if anything is."""
    known = translated(CATALOGUE) if CATALOGUE.exists() else {}
    shared = translated(SHARED)
    sources = set(said())
    missing = sorted(map(repr, sources - known.keys() - shared.keys()))
    idle = sorted(map(repr, known.keys() - sources))
    sys.stdout.writelines(f"missing {line}\n" for line in missing)
    sys.stdout.writelines(f"idle {line}\n" for line in idle)
    return 1 if missing or idle else 0


if __name__ == "__main__":
    sys.exit(main())

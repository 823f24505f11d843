r"""Markdown as the pages for developers use it, made HTML.

    body = render("# Guía\n\nCon `curl` y **una clave**.\n")

Headings, paragraphs, quotes, lists of one level, tables, fenced code; in a line code,
bold and links. What is written otherwise is text, and all text is escaped: no HTML
comes through. It loads no library, because roles import what they need as they start.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from markupsafe import Markup

_FENCE: Final = "```"
_HEADING: Final = re.compile(r"(#{1,4}) (.+)")
_ITEM: Final = re.compile(r"(?:(-)|\d+\.) +(.*)")
_INLINE: Final = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?P<bold>.+?)\*\*"
    r"|\[(?P<words>(?:`[^`]*`|[^\]`])+)\]\((?P<href>[^)\s]+)\)"
)
_TOLD: Final = re.compile(r"`([^`]*)`|\[([^\]]+)\]\([^)]*\)|\*\*")
_OUTSIDE: Final = re.compile(r"[a-z]+:")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the second level."""

    anchor: str
    text: str


def render(text: str) -> Markup:
    r"""Make a page's HTML.

    Args:
        text: Markdown; lines end with `\n`.
    """
    lines = text.split("\n")
    out: list[str] = []
    at = 0
    while at < len(lines):
        at = _block(lines, at, out)
    return Markup("\n".join(out))  # noqa: S704 (each part was escaped as it was made)


def inline(text: str) -> Markup:
    """Make the HTML of a sentence: code, bold and links.

    Args:
        text: Markdown without blocks.
    """
    return Markup(_inline(text))  # noqa: S704 (each part was escaped as it was made)


def headings(text: str) -> list[Heading]:
    """The headings of the second level, for a table of contents.

    Args:
        text: as of `render`.
    """
    found = (_HEADING.fullmatch(line) for line in _outside_fences(text))
    return [
        Heading(anchor(match[2]), _plain(match[2]))
        for match in found
        if match and match[1] == "##"
    ]


def title(text: str) -> str:
    """What stands in the heading of the first level.

    Args:
        text: as of `render`.
    """
    return _plain(text.partition("\n")[0].removeprefix("# "))


def anchor(heading: str) -> str:
    """Where a link to a heading leads: small letters, digits, hyphens.

    Args:
        heading: its text, as it is written.
    """
    words = re.sub(r"[^\w\s-]", "", _plain(heading).lower())
    return re.sub(r"\s+", "-", words.strip())


def _outside_fences(text: str) -> Iterator[str]:
    inside = False
    for line in text.split("\n"):
        if line.startswith(_FENCE):
            inside = not inside
        elif not inside:
            yield line


def _plain(text: str) -> str:
    return _TOLD.sub(lambda found: found[1] or found[2] or "", text)


def _block(lines: list[str], at: int, out: list[str]) -> int:
    """Make the block that begins at a line; the line after it."""
    line = lines[at]
    if not line.strip():
        return at + 1
    if line.startswith(_FENCE):
        return _fence(lines, at, out)
    if heading := _HEADING.fullmatch(line):
        level = len(heading[1])
        name = f' id="{escape(anchor(heading[2]))}"' if level > 1 else ""
        out.append(f"<h{level}{name}>{_inline(heading[2])}</h{level}>")
        return at + 1
    if _ITEM.fullmatch(line):
        return _list(lines, at, out)
    make = _BLOCKS.get(line[0], _paragraph)
    return make(lines, at, out)


def _quote(lines: list[str], at: int, out: list[str]) -> int:
    end = _while(lines, at, lambda each: each.startswith(">"))
    told = " ".join(each.removeprefix(">").strip() for each in lines[at:end])
    out.append(f'<p class="note">{_inline(told)}</p>')
    return end


def _paragraph(lines: list[str], at: int, out: list[str]) -> int:
    end = _while(lines, at, lambda each: bool(each.strip()) and not _begins(each))
    out.append(f"<p>{_inline(' '.join(lines[at:end]))}</p>")
    return end


def _begins(line: str) -> bool:
    """Whether a line begins a block by itself, in the middle of a paragraph."""
    return line.startswith((_FENCE, *_BLOCKS)) or bool(
        _HEADING.fullmatch(line) or _ITEM.fullmatch(line)
    )


def _while(lines: list[str], at: int, holds: Callable[[str], bool]) -> int:
    end = at + 1
    while end < len(lines) and holds(lines[end]):
        end += 1
    return end


def _fence(lines: list[str], at: int, out: list[str]) -> int:
    end = _while(lines, at, lambda each: each != _FENCE)
    language = escape(lines[at].removeprefix(_FENCE))
    code = escape("\n".join(lines[at + 1 : end]), quote=False)
    # It can be scrolled by keys where it is wider than the page.
    out.append(
        f'<pre tabindex="0"><code class="language-{language}">{code}\n</code></pre>'
    )
    return end + 1


def _table(lines: list[str], at: int, out: list[str]) -> int:
    end = _while(lines, at, lambda each: each.startswith("|"))
    head, _, *rows = lines[at:end]
    out.append('<div class="table" tabindex="0"><table><thead><tr>')
    out.extend(f'<th scope="col">{_inline(cell)}</th>' for cell in _cells(head))
    out.append("</tr></thead><tbody>")
    for row in rows:
        cells = "".join(f"<td>{_inline(cell)}</td>" for cell in _cells(row))
        out.append(f"<tr>{cells}</tr>")
    out.append("</tbody></table></div>")
    return end


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _list(lines: list[str], at: int, out: list[str]) -> int:
    first = _ITEM.fullmatch(lines[at])
    tag = "ul" if first and first[1] else "ol"
    end = _while(
        lines, at, lambda each: bool(_ITEM.fullmatch(each)) or each.startswith("  ")
    )
    items: list[str] = []
    for line in lines[at:end]:
        if item := _ITEM.fullmatch(line):
            items.append(item[2])
        else:
            items[-1] += f" {line.strip()}"
    out.append(f"<{tag}>")
    out.extend(f"<li>{_inline(item)}</li>" for item in items)
    out.append(f"</{tag}>")
    return end


_BLOCKS: Final = {"|": _table, ">": _quote}
"""By the first letter of their lines."""


def _inline(text: str) -> str:
    parts: list[str] = []
    at = 0
    for found in _INLINE.finditer(text):
        parts.extend((escape(text[at : found.start()], quote=False), _span(found)))
        at = found.end()
    parts.append(escape(text[at:], quote=False))
    return "".join(parts)


def _span(found: re.Match[str]) -> str:
    if (code := found["code"]) is not None:
        return f"<code>{escape(code, quote=False)}</code>"
    if (bold := found["bold"]) is not None:
        return f"<strong>{_inline(bold)}</strong>"
    rel = ' rel="noreferrer"' if _OUTSIDE.match(found["href"]) else ""
    return f'<a href="{escape(found["href"])}"{rel}>{_inline(found["words"])}</a>'

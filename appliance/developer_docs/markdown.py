r"""Markdown as the pages for developers use it, made HTML.

    body = render("# Guía\n\nCon `curl` y **una clave**.\n")

CommonMark and tables, by markdown-it. HTML in a text is escaped like any other text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

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
    html: str = _MARKDOWN.render(text)
    return Markup(html)  # noqa: S704 (the library escapes text, and takes no HTML)


def inline(text: str) -> Markup:
    """Make the HTML of a sentence: code, bold and links.

    Args:
        text: Markdown without blocks.
    """
    html = _MARKDOWN.renderInline(text)
    return Markup(html)  # noqa: S704 (the library escapes text, and takes no HTML)


def headings(text: str) -> list[Heading]:
    """The headings of the second level, for a table of contents.

    Args:
        text: as of `render`.
    """
    told = _headings(text, "h2")
    return [Heading(anchor(each), each) for each in told]


def title(text: str) -> str:
    """What stands in the heading of the first level.

    Args:
        text: as of `render`.
    """
    return next(iter(_headings(text, "h1")), "")


def anchor(heading: str) -> str:
    """Where a link to a heading leads: small letters, digits, hyphens.

    Args:
        heading: its text, without marks.
    """
    words = re.sub(r"[^\w\s-]", "", heading.lower())
    return re.sub(r"\s+", "-", words.strip())


def _headings(text: str, tag: str) -> list[str]:
    """The texts of all headings of a level."""
    tokens = _MARKDOWN.parse(text)
    return [
        _plain(tokens[at + 1])
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == tag
    ]


def _plain(line: Token) -> str:
    """The text of an inline token, without marks."""
    return "".join(each.content for each in line.children or ())


def _set_attributes(state: StateCore) -> None:
    """Give elements what our pages have: anchors, scopes, notes, no referrer."""
    for at, token in enumerate(state.tokens):
        if token.type == "heading_open" and token.tag != "h1":
            token.attrSet("id", anchor(_plain(state.tokens[at + 1])))
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type in {"blockquote_open", "blockquote_close"}:
            token.tag = "div"
            if token.nesting == 1:
                token.attrSet("class", "note")
        for each in token.children or ():
            if each.type == "link_open" and _OUTSIDE.match(str(each.attrGet("href"))):
                each.attrSet("rel", "noreferrer")


class _PageRenderer(RendererHTML):
    """HTML in which what is wider than the page can be scrolled, also by keys.

    The library calls the method that has the name of a token's type.
    """

    def fence(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        made: str = super().fence(tokens, idx, options, env)
        return made.replace("<pre>", '<pre tabindex="0">', 1)

    def table_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        table: str = self.renderToken(tokens, idx, options, env)
        return f'<div class="table" tabindex="0">{table}'

    def table_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f"{self.renderToken(tokens, idx, options, env).rstrip()}</div>\n"


_MARKDOWN: Final = MarkdownIt(
    "commonmark", {"html": False}, renderer_cls=_PageRenderer
).enable("table")
_MARKDOWN.core.ruler.push("attributes", _set_attributes)

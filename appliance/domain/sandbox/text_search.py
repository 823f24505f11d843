"""What text is looked for in a document, and where it was found."""

from collections.abc import Mapping
from typing import Any, Final

from appliance.domain.documents.inspected import FoundText, TextSearch
from appliance.domain.sandbox.messages import MessageInvalidError
from appliance.domain.text.untrusted_json import boolean, integer, rect, text

EDGE_MOST: Final = 1e6
"""Farthest coordinate that is told, in units of user space; beyond it is no page."""
_TEXT_MOST: Final = 1000
_OCCURRENCE_MOST: Final = 1_000_000


def wanted_to_json(text: str, occurrence: int, page: int | None) -> dict[str, Any]:
    """Write what is looked for."""
    return {"text": text, "occurrence": occurrence, "page": page}


def wanted_from_json(message: Mapping[str, Any]) -> tuple[str, int, int | None]:
    """Read what is looked for: the text, which of several, and the only page.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        wanted, occurrence = text(message["text"]), integer(message["occurrence"])
        page = None if message["page"] is None else integer(message["page"])
    except (KeyError, TypeError) as exc:
        raise MessageInvalidError from exc
    if not 1 <= len(wanted) <= _TEXT_MOST or not 1 <= occurrence <= _OCCURRENCE_MOST:
        raise MessageInvalidError
    if page is not None and page < 1:
        raise MessageInvalidError
    return wanted, occurrence, page


def search_to_json(search: TextSearch) -> dict[str, Any]:
    """Write what was found: a page and a box, or nothing."""
    found = search.found
    return {
        "found": None if found is None else [found.page, *found.rect],
        "whole": search.whole,
    }


def search_from_json(message: Mapping[str, Any]) -> TextSearch:
    """Read what was found, distrusting who wrote it.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        whole, row = boolean(message["whole"]), message["found"]
        if row is None:
            return TextSearch(None, whole)
        page, *edges = row
        if any(abs(float(edge)) > EDGE_MOST for edge in edges):
            raise MessageInvalidError
        return TextSearch(FoundText(integer(page), rect(edges)), whole)
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc

"""Puts a page tree right in a repaired copy; in a confined job only.

qpdf gives each page what it inherits from the nodes that list it. What is left to do is
what `tree_form` demands: one node above each page that is really its parent, and
entries of their kinds. Of what programs read differently PDFium's reading is kept,
where it is known, as that is what a signer is shown.

Source: ISO 32000-2, 7.7.3 and 7.8.3.
"""

from decimal import Decimal
from typing import Any, Final

import pikepdf

from appliance.domain.documents.inspected import Damage
from worker.sandbox.inspect.pages import UNIT_MOST
from worker.sandbox.inspect.tree_form import (
    CATEGORIES,
    OF_PAGES,
    QUARTER,
    is_box,
    is_turn,
)

_LETTER: Final = (0, 0, 612, 792)
_OF_STREAMS: Final = ("/Length", "/Filter", "/DecodeParms")
_NODES_A_PAGE: Final = 4
_NODES_BESIDES: Final = 256


def mend_tree(opened: pikepdf.Pdf) -> set[Damage]:
    """Make the tree of a document's pages one that all programs read alike.

    Args:
        opened: the copy that is made; each page has what it inherits.

    Returns:
        What was wrong.
    """
    found = set()
    pages = [page.obj for page in opened.pages]
    if not _is_plain(opened, len(pages)):
        found.add(Damage.PAGE_TREE)
        _flatten(opened, pages)
    for page in pages:
        is_odd = mend_resources(page) | _mend_boxes(page)
        if is_odd | _mend_numbers(page) | _mend_contents(page):
            found.add(Damage.AMBIGUOUS)
    return found


def drop_missing_pages(opened: pikepdf.Pdf) -> bool:
    """Take out of the tree what stands in a page's place and is no dictionary.

    Args:
        opened: a file whose pages nobody has asked for yet.

    Returns:
        Whether anything was taken out.
    """
    found = False
    todo, seen = [opened.Root.get("/Pages")], pikepdf.ObjectSet()
    while todo:
        node = todo.pop()
        if not isinstance(node, pikepdf.Dictionary) or not seen.add(node):
            continue
        kids = node.get("/Kids")
        if not isinstance(kids, pikepdf.Array):
            continue
        kept = [each for each in kids.as_list() if isinstance(each, pikepdf.Dictionary)]
        if len(kept) < len(kids):
            found = True
            node.Kids = pikepdf.Array(kept)
        todo.extend(kept)
    return found


def _is_plain(opened: pikepdf.Pdf, pages: int) -> bool:
    """Return whether each node has the entries of its type and its parent."""
    root = opened.Root.get("/Pages")
    if not isinstance(root, pikepdf.Dictionary) or "/Parent" in root:
        return False
    todo: list[Any] = [root]
    left = _NODES_A_PAGE * pages + _NODES_BESIDES
    while todo:
        node = todo.pop()
        left -= 1
        kids = node.get("/Kids")
        if (
            left < 0
            or not node.is_indirect
            or node.get("/Type") != pikepdf.Name.Pages
            or not isinstance(kids, pikepdf.Array)
            or not len(kids)
            or not OF_PAGES.isdisjoint(node.keys())
        ):
            return False
        for kid in kids.as_list():
            parent = kid.get("/Parent") if isinstance(kid, pikepdf.Dictionary) else None
            if not isinstance(parent, pikepdf.Dictionary) or (
                parent.objgen != node.objgen
            ):
                return False
            if "/Kids" in kid:
                todo.append(kid)
            elif kid.get("/Type") != pikepdf.Name.Page:
                return False
    return True


def _flatten(opened: pikepdf.Pdf, pages: list[Any]) -> None:
    """Give all pages one node, which is their parent."""
    root = opened.make_indirect(
        pikepdf.Dictionary(
            Type=pikepdf.Name.Pages, Kids=pikepdf.Array(pages), Count=len(pages)
        )
    )
    for page in pages:
        page.Type = pikepdf.Name.Page
        page.Parent = root
        if "/Kids" in page:
            del page["/Kids"]
    opened.Root.Pages = root


def mend_resources(holder: Any) -> bool:
    """Make resources, and the categories in them, dictionaries.

    Args:
        holder: a page, or the stream of a form or pattern.

    Returns:
        Whether something was wrong.
    """
    if "/Resources" not in holder:
        return False
    found = _mend_dictionary(holder, "/Resources")
    resources = holder.get("/Resources")
    if isinstance(resources, pikepdf.Dictionary):
        for key in CATEGORIES:
            found |= _mend_dictionary(resources, key)
    return found


def _mend_dictionary(holder: Any, key: str) -> bool:
    """Make an entry a dictionary: that of a stream, none for anything else."""
    value = holder.get(key)
    if value is None or isinstance(value, pikepdf.Dictionary):
        return False
    if isinstance(value, pikepdf.Stream):
        kept = {
            name: each
            for name, each in value.stream_dict.items()
            if name not in _OF_STREAMS
        }
        holder[key] = pikepdf.Dictionary(kept)
    elif isinstance(holder, pikepdf.Stream):
        del holder[key]
    else:
        holder[key] = pikepdf.Dictionary()
    return True


def _mend_boxes(page: Any) -> bool:
    """Leave out boxes that are none; a page without any is of Letter's size."""
    found = False
    for key in ("/MediaBox", "/CropBox"):
        value = page.get(key)
        if value is None:
            continue
        edges = _items(value)
        if is_box([_number(each) for each in edges]):
            continue
        found = True
        if key == "/MediaBox":
            page[key] = pikepdf.Array(_LETTER)
        else:
            del page[key]
    return found


def _mend_numbers(page: Any) -> bool:
    """Turn a page by the quarters that PDFium does, and leave out what is no unit."""
    found = False
    turn, unit = page.get("/Rotate"), page.get("/UserUnit")
    if turn is not None and not (type(turn) is int and is_turn(turn)):
        found = True
        page.Rotate = int((_number(turn) or 0) / QUARTER) % 4 * QUARTER
    if unit is not None and not 0 < (_number(unit) or 0) <= UNIT_MOST:
        found = True
        del page["/UserUnit"]
    return found


def _mend_contents(page: Any) -> bool:
    """Make content one stream or a list of streams."""
    value = page.get("/Contents")
    if value is None or isinstance(value, pikepdf.Stream):
        return False
    listed = _items(value)
    kept = [each for each in listed if isinstance(each, pikepdf.Stream)]
    if isinstance(value, pikepdf.Array) and len(kept) == len(listed):
        return False
    page.Contents = pikepdf.Array(kept)
    return True


def _items(value: Any) -> list[Any]:
    """Return the elements of an array; none of anything else."""
    return [*value.as_list()] if isinstance(value, pikepdf.Array) else []


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else None

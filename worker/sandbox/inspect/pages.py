"""Finds a document's pages by walking its tree, and their visible boxes.

`/Count` and `/Parent` are what the file says of itself and are not relied upon: a
node with `/Kids` is inner, any other dictionary is a page unless it says that it
is something else. Trees that other programs may walk differently are found by
`tree_form`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, IndirectObject

from appliance.domain.documents.inspected import PageBox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    dictionary,
    entry,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)

Box = tuple[float, float, float, float]
"""x0 < x1, y0 < y1, in points."""

_LETTER: Final[Box] = (0.0, 0.0, 612.0, 792.0)
_DEPTH: Final = 100
_INHERITED: Final = ("/MediaBox", "/CropBox", "/Rotate", "/Resources")
_EDGE_PT: Final = 1e6  # coordinates beyond it are no page's
UNIT_MOST: Final = 75_000
"""Of readers in use."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page, as found by walking."""

    ref: IndirectObject | None
    """None for a page that stands in the tree itself, which nothing can update."""
    node: DictionaryObject
    inherited: dict[str, object]
    """Raw values of the inheritable keys, the page's own among them."""


@dataclass(slots=True)
class PageTree:
    """What walking found."""

    pages: list[Page] = field(default_factory=list)
    count_lies: bool = False
    """A `/Count` differs from the pages below its node."""
    gaps: bool = False
    """A kid is no page at all, and was passed over."""


@dataclass(slots=True)
class _Inner:
    """An inner node on the path from the root to where the walk stands."""

    key: Key | None
    node: DictionaryObject
    kids: Iterator[object]
    inherited: dict[str, object]
    pages_before: int


def walk_pages(catalog: DictionaryObject, limit: int) -> PageTree:
    """Find the pages of a document.

    Args:
        catalog: the document's root dictionary.
        limit: most pages that are taken.

    Returns:
        The tree's pages in order, at least one.

    Raises:
        DocumentRefusedError: `PDF_NO_PAGES`; `PDF_TOO_COMPLEX` past the limit;
            `PDF_MALFORMED` when a node is below itself.

    Source: ISO 32000-2, 7.7.3.
    """
    tree = PageTree()
    root = dictionary(catalog, "/Pages")
    if root is None:
        raise DocumentRefusedError(ErrorCode.PDF_NO_PAGES, "no page tree")
    budget = Budget(4 * limit + _DEPTH)
    path = [_enter(root, key_of(catalog.raw_get("/Pages")), {}, tree, limit)]
    while path:
        for raw in path[-1].kids:
            budget.take()
            below = _visit(raw, path, tree, limit)
            if below is not None:
                path.append(below)
                break
        else:
            _leave(path.pop(), tree)
    if not tree.pages:
        raise DocumentRefusedError(ErrorCode.PDF_NO_PAGES, "the page tree is empty")
    return tree


def _visit(
    raw: object, path: list[_Inner], tree: PageTree, limit: int
) -> _Inner | None:
    """Take one kid: keep a page, or return the inner node to walk next.

    Raises:
        DocumentRefusedError: too many pages, too deep, or a loop.
    """
    kid = resolve(raw)
    if not isinstance(kid, DictionaryObject):
        tree.gaps = True
        return None
    key, inherited = key_of(raw), path[-1].inherited
    if isinstance(entry(kid, "/Kids"), ArrayObject):
        if len(path) >= _DEPTH:
            raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "page tree depth")
        if key is not None and any(key == node.key for node in path):
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "page tree loop")
        return _enter(kid, key, inherited, tree, limit)
    if name(kid, "/Type") not in {None, "/Page"}:
        tree.gaps = True
        return None
    if len(tree.pages) >= limit:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many pages")
    ref = raw if isinstance(raw, IndirectObject) else None
    tree.pages.append(Page(ref, kid, _inherit(kid, inherited)))
    return None


def _enter(
    node: DictionaryObject,
    key: Key | None,
    inherited: dict[str, object],
    tree: PageTree,
    limit: int,
) -> _Inner:
    """Begin with an inner node.

    Raises:
        DocumentRefusedError: its kids alone are too many.
    """
    kids = entry(node, "/Kids")
    if isinstance(kids, ArrayObject) and len(kids) > limit:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too many pages")
    below = _inherit(node, inherited)
    return _Inner(key, node, raw_items(kids), below, len(tree.pages))


def _leave(inner: _Inner, tree: PageTree) -> None:
    """Compare an inner node's `/Count` with what was found below it."""
    if number(entry(inner.node, "/Count")) != len(tree.pages) - inner.pages_before:
        tree.count_lies = True


def _inherit(node: DictionaryObject, above: dict[str, object]) -> dict[str, object]:
    """Values that count below a node: its own before those from above."""
    own = {key: node.raw_get(key) for key in _INHERITED if key in node}
    return {**above, **own} if own else above


def page_box(page: Page) -> PageBox:
    """Compute the box that a reader shows, and its rotation.

    The CropBox clipped to the MediaBox, as every reader in use does it. A box
    that is missing, of other types or empty falls back: CropBox to MediaBox,
    MediaBox to Letter.

    Source: ISO 32000-2, 7.7.3.3 (UserUnit is not inherited) and 14.11.2.
    """
    media = read_box(page.inherited.get("/MediaBox")) or _LETTER
    crop = read_box(page.inherited.get("/CropBox")) or media
    x0, y0, x1, y1 = _clip(crop, media) or media
    # Readers cut to quarter turns, towards zero.
    turns = int((number(page.inherited.get("/Rotate")) or 0) / 90) % 4
    return PageBox(x0, y0, x1, y1, turns * 90, _unit(page.node))


def has_doubtful_box(page: Page) -> bool:
    """Whether programs take different parts of the plane for the page.

    One with an edge beyond what most of them read as a page's, or a CropBox that has
    nothing of the MediaBox.
    """
    raw = {key: page.inherited.get(key) for key in ("/MediaBox", "/CropBox")}
    edges = [number(item) for box in raw.values() for item in raw_items(resolve(box))]
    if any(edge is not None and abs(edge) > _EDGE_PT for edge in edges):
        return True
    media, crop = (read_box(box) for box in raw.values())
    return crop is not None and _clip(crop, media or _LETTER) is None


def _unit(node: DictionaryObject) -> float:
    """Points in a unit of the page's user space; what is no unit is a point."""
    unit = number(entry(node, "/UserUnit"))
    return unit if unit is not None and 0 < unit <= UNIT_MOST else 1.0


def read_box(raw: object) -> Box | None:
    """Read a rectangle given by any two opposite corners."""
    edges = [number(item) for item in raw_items(resolve(raw))]
    if len(edges) != 4:  # noqa: PLR2004 (two corners)
        return None
    known = [edge for edge in edges if edge is not None and abs(edge) <= _EDGE_PT]
    if len(known) != len(edges):
        return None
    xs, ys = sorted(known[0::2]), sorted(known[1::2])
    return _solid((xs[0], ys[0], xs[1], ys[1]))


def _clip(box: Box, to: Box) -> Box | None:
    """What two boxes share."""
    return _solid(
        (max(box[0], to[0]), max(box[1], to[1]), min(box[2], to[2]), min(box[3], to[3]))
    )


def _solid(box: Box) -> Box | None:
    """The box, unless it has no area."""
    return box if box[2] > box[0] and box[3] > box[1] else None

"""Form of the page tree, on which all programs find the same pages and resources.

Some programs tell a page from an inner node by `/Type`, others by `/Kids`; some take
what a page inherits from the node that lists it, others from its `/Parent`; some read
an entry of a wrong kind as none, others as empty, and others take from a stream what
its dictionary says. A tree of the form that is demanded here is one to all of them.

Source: ISO 32000-2, 7.7.3 and 7.8.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    StreamObject,
)

from worker.sandbox.inspect.pages import UNIT_MOST
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    entry,
    key_of,
    number,
    raw_items,
    resolve,
)

CATEGORIES: Final = (
    "/ExtGState",
    "/ColorSpace",
    "/Pattern",
    "/Shading",
    "/XObject",
    "/Font",
    "/Properties",
)
"""Entries of a resource dictionary that are dictionaries. Source: table 34."""
OF_PAGES: Final = frozenset(
    {
        "/AA",
        "/AF",
        "/Annots",
        "/ArtBox",
        "/B",
        "/BleedBox",
        "/BoxColorInfo",
        "/Contents",
        "/DPart",
        "/Dur",
        "/Group",
        "/ID",
        "/LastModified",
        "/Metadata",
        "/OutputIntents",
        "/PZ",
        "/PieceInfo",
        "/PresSteps",
        "/SeparationInfo",
        "/StructParents",
        "/Tabs",
        "/TemplateInstantiated",
        "/Thumb",
        "/Trans",
        "/TrimBox",
        "/UserUnit",
        "/VP",
    }
)
"""Entries of a page that no page inherits, though programs may. Source: table 31."""
_BOXES: Final = ("/MediaBox", "/CropBox")
_DIRECT: Final[Key] = (0, 0)
"""Stands for a node that is no object of its own: no /Parent can name it."""
_NODES_A_PAGE: Final = 4
_NODES_BESIDES: Final = 256
_PARTS_A_STEP: Final = 64
QUARTER: Final = 90
_DEGREES_MOST: Final = 3_600
_CORNERS: Final = 4


def is_box(edges: Sequence[float | None]) -> bool:
    """Return whether numbers are the corners of a box a point wide and high, or more.

    Args:
        edges: the elements of an array; None for what is no number.
    """
    known = [each for each in edges if each is not None]
    if len(edges) != _CORNERS or len(known) != _CORNERS:
        return False
    return abs(known[0] - known[2]) >= 1 <= abs(known[1] - known[3])


def is_turn(degrees: int) -> bool:
    """Return whether all programs turn a page by so much.

    Args:
        degrees: a whole number.
    """
    return degrees % QUARTER == 0 and abs(degrees) <= _DEGREES_MOST


class _OddError(Exception):
    """Programs may read the tree differently; the text says why."""


@dataclass(frozen=True, slots=True)
class _Node:
    """One node, and what lists it."""

    raw: object
    lister: Key | None
    """None for the root."""


@dataclass(frozen=True, slots=True)
class TreeForm:
    """Form of a page tree.

    Args:
        odd: what programs may read differently in it; None for nothing.
        contents: numbers of the objects that pages name as their content. Each of them
            is to be a stream.
    """

    odd: str | None
    contents: frozenset[int]


def tree_form(catalog: DictionaryObject, limit: int) -> TreeForm:
    """Look at the form of a page tree.

    Args:
        catalog: the document's root dictionary; `walk_pages` has walked its tree.
        limit: most pages that are taken.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`.
    """
    walk = _Walk(Budget(_NODES_A_PAGE * limit + _NODES_BESIDES))
    odd = None
    try:
        walk.run(catalog)
    except _OddError as exc:
        odd = str(exc)
    return TreeForm(odd, frozenset(walk.contents))


class _Walk:
    """One walk over a tree."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.contents: set[int] = set()
        self._known: set[Key] = set()

    def run(self, catalog: DictionaryObject) -> None:
        """Walk it.

        Raises:
            _OddError: the first thing that is odd.
        """
        todo = [_Node(catalog.raw_get("/Pages"), None)]
        seen: set[Key] = set()
        while todo:
            one = todo.pop()
            self._budget.take()
            key = key_of(one.raw)
            if key is not None:
                if key in seen:
                    continue  # refused, as shared pages are
                seen.add(key)
            node = resolve(one.raw)
            if not _is_dictionary(node):
                raise _OddError("a node of the page tree is no dictionary")
            todo += self._visit(node, key, one)

    def _visit(
        self, node: DictionaryObject, key: Key | None, one: _Node
    ) -> Iterator[_Node]:
        """Look at one node, and yield those below it.

        Raises:
            _OddError: it is odd.
        """
        self._demand_parent(node, one)
        kind = entry(node, "/Type")
        is_page = "/Kids" not in node
        if not isinstance(kind, NameObject) or kind != ("/Pages", "/Page")[is_page]:
            raise _OddError("a node of the page tree is of another type than it looks")
        self._demand_inheritable(node)
        if is_page:
            self._demand_page(node)
            return
        kids = entry(node, "/Kids")
        if not isinstance(kids, ArrayObject) or len(kids) == 0:
            raise _OddError("a node of the page tree without kids")
        if not OF_PAGES.isdisjoint(node.keys()):
            raise _OddError("a node of the page tree with an entry of a page")
        for raw in raw_items(kids):
            yield _Node(raw, key or _DIRECT)

    def _demand_parent(self, node: DictionaryObject, one: _Node) -> None:
        if one.lister is None:
            if "/Parent" in node:
                raise _OddError("the root of the page tree has a /Parent")
            return
        parent = node.raw_get("/Parent") if "/Parent" in node else None
        if key_of(parent) != one.lister:
            raise _OddError("a /Parent that is not the node which lists it")

    def _demand_inheritable(self, node: DictionaryObject) -> None:
        """Demand that what is inherited is of its kind.

        Raises:
            _OddError: it is not.
        """
        if "/Resources" in node:
            self._demand_resources(node.raw_get("/Resources"))
        for key in _BOXES:
            if key in node and not _is_box(entry(node, key)):
                raise _OddError(f"a {key} that is no rectangle")
        if "/Rotate" in node:
            turn = entry(node, "/Rotate")
            if not isinstance(turn, NumberObject) or not is_turn(int(turn)):
                raise _OddError("a /Rotate that is no quarter turn")

    def _demand_resources(self, raw: object) -> None:
        """Demand that resources, and the categories in them, are dictionaries.

        Raises:
            _OddError: one is not.
        """
        key = key_of(raw)
        if key is not None:
            if key in self._known:
                return
            self._known.add(key)
        resources = resolve(raw)
        if not _is_dictionary(resources):
            raise _OddError("resources that are no dictionary")
        for category in CATEGORIES:
            if category in resources and not _is_dictionary(entry(resources, category)):
                raise _OddError(f"a {category} of resources that is no dictionary")

    def _demand_page(self, page: DictionaryObject) -> None:
        if "/UserUnit" in page:
            unit = number(entry(page, "/UserUnit"))
            if unit is None or not 0 < unit <= UNIT_MOST:
                raise _OddError("a /UserUnit that is none")
        if "/Contents" not in page:
            return
        raw = page.raw_get("/Contents")
        streams = self._listed(raw)
        parts = [raw] if streams is None else [*raw_items(streams)]
        self._budget.take(len(parts) // _PARTS_A_STEP)
        for each in parts:
            key = key_of(each)
            if key is None:
                raise _OddError("content that is no object of its own")
            self.contents.add(key[0])

    def _listed(self, raw: object) -> ArrayObject | None:
        """Return the array that content is; None for what is to be a stream.

        That it is one is known to the structural reader.
        """
        if isinstance(raw, ArrayObject):
            return raw
        key = key_of(raw)
        if key is None or key[0] in self.contents:
            return None
        value = resolve(raw)
        return value if isinstance(value, ArrayObject) else None


def _is_dictionary(value: object) -> TypeGuard[DictionaryObject]:
    return isinstance(value, DictionaryObject) and not isinstance(value, StreamObject)


def _is_box(value: object) -> bool:
    edges = [number(each) for each in raw_items(value)]
    return is_box(edges)

"""Finds scripts and other actions wherever the objects of a file have them.

`ActiveContent` looks where the format lists actions. Programs look in more places:
pdf.js lets a page inherit what an inner node of the page tree triggers, and takes the
events of a field's parent that no form lists. So whatever the trailer leads to counts.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import pikepdf

from appliance.domain.documents.inspected import FindingKind
from worker.sandbox.inspect.active_content import ACTIONS, ANNOTATIONS, CLICKS
from worker.sandbox.inspect.external_content import ObjectId, find_reached

_SCRIPT_ADDRESS: Final = "javascript:"
_NO_TAGS: Final = frozenset({"/JavaScript", "/Launch"})
"""Kinds of tags have the names that a producer gives them; these are no tag's."""
_PARTS_MOST: Final = 200_000
"""Arrays and dictionaries that are looked at, in objects with a sign of an action."""
_NOT_IN_ADDRESS: Final = re.compile(r"[\x00-\x20]+")
_WORDS: Final = sorted({*ACTIONS, *ANNOTATIONS, "/JS", "/EF", "/AA", "/Thread"})
# As qpdf writes it: each name by its plain letters. An address that begins with another
# letter than those of http, mailto, file, tel and www may be a script.
_SIGN: Final = re.compile(
    rb"(?:%s)(?=[\s()<>\[\]/]|\Z)" % "|".join(_WORDS).encode()
    + rb"|/URI (?:\((?![HFMTWhfmtw])|<|\d)"
)


class ScatteredActions:
    """Gathers actions among a file's objects.

    Args:
        known: findings that need no other place.
    """

    def __init__(self, known: set[FindingKind]) -> None:
        self._known = known
        self._places: dict[FindingKind, set[ObjectId]] = {}
        self._left = _PARTS_MOST

    def take(self, each: object) -> None:
        """Look at one object and what stands in it.

        Args:
            each: an indirect object; numbers, words and null are those of Python.

        Raises:
            pikepdf.PdfError, ValueError, TypeError: it cannot be looked at.
        """
        if not isinstance(each, pikepdf.Object):
            return
        top = each.stream_dict if isinstance(each, pikepdf.Stream) else each
        if _SIGN.search(top.unparse(resolved=True)) is None:
            return
        for kind in self._meanings(top):
            if kind not in self._known:
                self._places.setdefault(kind, set()).add(each.objgen)

    def judge(self, opened: pikepdf.Pdf) -> set[FindingKind]:
        """What the trailer leads to; all, where that is not known in time.

        Args:
            opened: the file whose objects were taken.
        """
        if not self._places:
            return set()
        reached = find_reached(opened, set().union(*self._places.values()))
        return {kind for kind, places in self._places.items() if places & reached}

    def _meanings(self, top: pikepdf.Object) -> Iterator[FindingKind]:
        """What an object and the direct ones in it are told as.

        Raises:
            ValueError: there are too many.
        """
        todo: list[Any] = [top]
        while todo:
            each = todo.pop()
            self._left -= 1
            if self._left < 0:
                msg = "too many parts"
                raise ValueError(msg)
            if isinstance(each, pikepdf.Name):
                # One that stands by itself is there to be referred to, as by an /S.
                if each.is_indirect and str(each) in ACTIONS:
                    yield ACTIONS[str(each)]
                continue
            if isinstance(each, pikepdf.Array):
                parts: list[Any] = list(each.as_list())
            elif isinstance(each, pikepdf.Dictionary):
                yield from _of_dictionary(each)
                parts = list(each.values())
            else:
                continue
            todo += [part for part in parts if _is_direct(part)]


def _is_direct(part: Any) -> bool:
    return isinstance(part, pikepdf.Dictionary | pikepdf.Array) and not part.is_indirect


def _of_dictionary(holder: Any) -> Iterator[FindingKind]:
    """What one dictionary is told as, be it an action or not."""
    if isinstance(holder.get("/JS"), pikepdf.String | pikepdf.Stream):
        yield FindingKind.JAVASCRIPT
    if isinstance(holder.get("/EF"), pikepdf.Dictionary | pikepdf.Stream):
        yield FindingKind.EMBEDDED_FILES
    action = _text(holder.get("/S"))
    is_tag = holder.get("/Type") == pikepdf.Name.StructElem
    if action in (_NO_TAGS if is_tag else ACTIONS):
        yield ACTIONS[action]
    if action == "/Thread" and "/F" in holder:
        yield FindingKind.EXTERNAL_LINK_ACTION
    kind = _text(holder.get("/Subtype")) if "/Rect" in holder else ""
    if kind in ANNOTATIONS:
        yield ANNOTATIONS[kind]
    address = _NOT_IN_ADDRESS.sub("", _text(holder.get("/URI")))
    if address.lower().startswith(_SCRIPT_ADDRESS):
        yield FindingKind.JAVASCRIPT
    if _opens_address(holder.get("/AA")):
        yield FindingKind.EXTERNAL_LINK_ACTION


def _opens_address(events: Any) -> bool:
    """Whether another event than a click opens a web address."""
    return isinstance(events, pikepdf.Dictionary) and any(
        event not in CLICKS
        and isinstance(triggered, pikepdf.Dictionary)
        and triggered.get("/S") == pikepdf.Name.URI
        for event, triggered in events.items()
    )


def _text(value: Any) -> str:
    """A name with its slash, or a string; empty for anything else."""
    return str(value) if isinstance(value, pikepdf.Name | pikepdf.String) else ""

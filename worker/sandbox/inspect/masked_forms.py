"""Forms that put off the soft mask under which they are drawn.

Some programs let a form end a mask that was set around it, others draw the whole form
under it. A form of a transparency group begins without a mask, and is none of those.

Source: ISO 32000-2, 8.10.1, 11.4.7 and 11.6.5.2.
"""

from collections.abc import Iterable
from typing import Any

import pikepdf

from worker.sandbox.inspect.content_grammar import ContentReading
from worker.sandbox.inspect.drawn_values import DoubtfulError, at

_Number = tuple[int, int]


class MaskedForms:
    """Keeps what forms draw, and under what mask, until all are known."""

    def __init__(self) -> None:
        self._masked: set[_Number] = set()
        self._unmasking: set[_Number] = set()
        self._within: dict[_Number, set[_Number]] = {}

    def note(self, content: Any, resources: Any, reading: ContentReading) -> None:
        """Take what one content draws.

        Args:
            content: a page, a form, a pattern or a glyph.
            resources: its own, which have all that it names.
            reading: of it.
        """
        states = {name for category, name in reading.names if category == "/ExtGState"}
        masks = {name: _mask(resources, name) for name in states}
        if False in masks.values():
            self._unmasking.add(content.objgen)
        for name, in_effect in reading.drawn:
            form = resources["/XObject"][name]
            if at(form, "/Subtype") != pikepdf.Name.Form or "/Group" in form:
                continue
            self._within.setdefault(content.objgen, set()).add(form.objgen)
            if _is_masked(masks[each] for each in reversed(in_effect)):
                self._masked.add(form.objgen)

    def demand_none(self) -> None:
        """Demand that no form under a mask ends it.

        Raises:
            DoubtfulError: one does.
        """
        todo, seen = [*self._masked], set(self._masked)
        while todo:
            form = todo.pop()
            if form in self._unmasking:
                raise DoubtfulError
            found = self._within.get(form, set()) - seen
            seen |= found
            todo.extend(found)


def _mask(resources: Any, name: str) -> bool | None:
    """Return whether a state sets a mask; None where it leaves the one that is."""
    mask = at(resources["/ExtGState"][name], "/SMask")
    return None if mask is None else isinstance(mask, pikepdf.Dictionary)


def _is_masked(masks: Iterable[bool | None]) -> bool:
    """Return what the last state says of a mask that says anything."""
    return next((each for each in masks if each is not None), False)

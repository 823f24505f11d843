"""Lines of a text field's drawing that make a border or the cells of a comb.

A line alone reads as a digit: `|000` shows 1000. So lines count as a border only if
they stand along all four edges, or along the lower one, and as a comb's only if each
cell ends by one; and none may look different from the others.
"""

import math
from dataclasses import dataclass, field
from typing import Final

LEFT, LOWER, RIGHT, UPPER = range(4)
"""Edges, in the order of a box's numbers."""
_BORDERS: Final = ({LOWER}, {LEFT, LOWER, RIGHT, UPPER})


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How a line is drawn.

    Args:
        width: in units of the drawing.
        colour: operands of its colour operator; as many as its colour space has.
    """

    width: float = 1.0
    colour: tuple[float, ...] = (0.0,)


@dataclass(slots=True)
class FieldLines:
    """The lines of one drawing.

    Args:
        cells: of a comb; 0: the field is none.
    """

    cells: int = 0
    _edges: dict[int, LineStyle] = field(default_factory=dict)
    _dividers: dict[int, LineStyle] = field(default_factory=dict)
    _is_double: bool = False
    shortest: float = math.inf
    """Length of the shortest line between cells."""

    def at_edge(self, edge: int, style: LineStyle) -> None:
        """Note a line along an edge, of the four above."""
        self._is_double |= edge in self._edges
        self._edges[edge] = style

    def after_cell(self, cell: int, style: LineStyle, length: float) -> None:
        """Note a line after a cell, which are counted from 1."""
        self.shortest = min(self.shortest, length)
        self._is_double |= cell in self._dividers
        self._dividers[cell] = style

    def are_none(self) -> bool:
        """Return whether there are none so far."""
        return not self._edges and not self._dividers

    def show_nothing(self) -> bool:
        """Return whether they are a border and dividers, and could be no digit."""
        return (
            not self._is_double
            and (not self._edges or set(self._edges) in _BORDERS)
            and (not self._dividers or set(self._dividers) == {*range(1, self.cells)})
            and len(set(self._edges.values())) <= 1
            and len(set(self._dividers.values())) <= 1
        )

"""Fields of a form by their objects, in one revision; for confined jobs only.

A name does not identify a field: two fields may share one, two names may look alike,
and a field may have none. An object number does. Oddities of a form, such as entries
that are no fields, are passed over: whether a step changes them is a question of its
own.
"""

from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject

from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    dictionary,
    entry,
    key_of,
    name,
    raw_items,
    resolve,
)

_NODES: Final = 500_000
"""Nodes of a form: more than any signed document has."""
_NAME_CHARS: Final = 4000


def partial_name(node: object) -> str | None:
    """Return the exact partial name of a field; None if it has none.

    Bytes that are no text string are read as Latin-1.

    Source: ISO 32000-2, 12.7.4.2.
    """
    text: object = entry(node, "/T")
    if isinstance(text, bytes):
        return text.decode("latin-1")
    return str(text) if isinstance(text, str) else None


def full_name(above: str, partial: str | None) -> str:
    """Join a partial name to the name of the field above.

    Args:
        above: full name of the field above; empty if there is none.
        partial: as `partial_name` returns it.
    """
    if partial is None:
        return above
    return f"{above}.{partial}"[-_NAME_CHARS:] if above else partial


@dataclass(slots=True)
class FormField:
    """A field with a name, terminal or not."""

    key: Key
    title: str
    """Exact full name."""
    kind: str | None
    """Field type, inherited or own, such as `/Tx`."""
    above: Key | None
    """Field above."""
    widgets: list[Key] = field(default_factory=list)
    """Kids without a name, each an object of its own."""


class FormTree:
    """Fields of a form; loops and shared nodes count once.

    Args:
        catalog: of the revision.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, past 500 000 nodes.

    Source: ISO 32000-2, 12.7.4.
    """

    def __init__(self, catalog: DictionaryObject) -> None:
        self.fields: dict[Key, FormField] = {}
        """In the order of the form."""
        self.owners: dict[Key, list[Key]] = {}
        """Objects that list each object among their kids."""
        self.names: dict[str, set[Key]] = {}
        """Fields of each full name."""
        self.groups: set[Key] = set()
        """Fields that have fields below them, which inherit their entries."""
        listed = raw_items(entry(dictionary(catalog, "/AcroForm"), "/Fields"))
        self.listed = list(listed)
        """Entries of the form's own list, as they stand there."""
        self._seen: set[Key] = set()
        budget = Budget(_NODES)
        todo: list[_Place] = [(raw, None, None) for raw in reversed(self.listed)]
        while todo:
            budget.take()
            todo += self._add(*todo.pop())

    def _add(
        self, raw: object, above: FormField | None, lister: Key | None
    ) -> list["_Place"]:
        """Add a node, and return its kids, the last first."""
        key, node = key_of(raw), resolve(raw)
        partial = partial_name(node)
        if above is not None and partial is not None:
            self.groups.add(above.key)
        if key is None:
            return []
        if lister is not None:
            self.owners.setdefault(key, []).append(lister)
        if not isinstance(node, DictionaryObject):
            return []
        if above is not None and partial is None:
            above.widgets.append(key)
        if key in self._seen:
            return []
        self._seen.add(key)
        own = above if partial is None else self._named(key, node, partial, above)
        kids = [*raw_items(entry(node, "/Kids"))]
        return [(kid, own, key) for kid in reversed(kids)]

    def _named(
        self,
        key: Key,
        node: DictionaryObject,
        partial: str,
        above: FormField | None,
    ) -> FormField:
        """Add a node that has a name of its own."""
        title, kind = full_name("", partial), name(node, "/FT")
        if above is not None:
            title, kind = full_name(above.title, partial), kind or above.kind
        found = FormField(key, title, kind, None if above is None else above.key)
        self.fields[key] = found
        self.names.setdefault(title, set()).add(key)
        return found


_Place = tuple[object, FormField | None, Key | None]
"""A listed node, the named field above it, and the object that lists it."""

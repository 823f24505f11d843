"""Puts a document's form right in a repaired copy; in a confined job only.

Only what validators raise errors for is touched: fields of one name beside one
another, fields that are none, names that are no names, and the words of an empty
signature field, which signing would take away. How a page looks does not change
otherwise, for that is drawn from widgets, which stay where they are.

Source: ISO 32000-2, 12.7.4.2 (names), 12.5.5 and 12.7.5.2 (appearances by state).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pikepdf

from worker.sandbox.inspect.field_looks import speaks

_FIELDS_MOST: Final = 200_000
_NAME_CHARS: Final = 1000
_ANCESTORS: Final = 32


@dataclass(frozen=True, slots=True)
class _Level:
    """Fields beside one another."""

    holder: pikepdf.Object
    key: str
    """Under which the holder lists them."""
    kind: object
    """`/FT` that they inherit."""


class FormMender:
    """Walks a form once, and puts right what is wrong.

    Args:
        opened: the copy that is made.
    """

    def __init__(self, opened: pikepdf.Pdf) -> None:
        self._opened = opened
        self._seen: set[tuple[int, int]] = set()
        self._left = _FIELDS_MOST
        self._found = False

    def mend(self) -> bool:
        """Do it; whether something was wrong."""
        root = self._opened.Root
        form: object = root.get("/AcroForm")
        if not isinstance(form, pikepdf.Dictionary):
            fields = [*self._fields_of_pages()]
            if not fields:
                is_there = "/AcroForm" in root
                if is_there:
                    del root["/AcroForm"]
                return is_there
            self._found = True
            form = root["/AcroForm"] = self._opened.make_indirect(
                pikepdf.Dictionary(Fields=pikepdf.Array(fields))
            )
        todo = [_Level(form, "/Fields", None)]
        while todo:
            todo.extend(self._mend_level(todo.pop()))
        return self._found

    def _fields_of_pages(self) -> Iterator[pikepdf.Object]:
        """Topmost nodes of the fields that pages show, each once.

        As of a page that was taken out of a form: PDFium draws fields of a form alone.
        """
        seen = set()
        for page in self._opened.pages:
            notes = page.obj.get("/Annots")
            for note in [*notes] if isinstance(notes, pikepdf.Array) else []:
                if (
                    not isinstance(note, pikepdf.Dictionary)
                    or note.get("/Subtype") != "/Widget"
                ):
                    continue
                top: Any = note if note.objgen[0] else None
                for _ in range(_ANCESTORS):
                    above = None if top is None else top.get("/Parent")
                    if not isinstance(above, pikepdf.Dictionary) or not above.objgen[0]:
                        break
                    top = above
                if top is not None and top.objgen not in seen:
                    seen.add(top.objgen)
                    yield top

    def _mend_level(self, level: _Level) -> Iterator[_Level]:
        """Put fields beside one another right; gives the levels below them."""
        listed = level.holder.get(level.key)
        if listed is None:
            return
        if not isinstance(listed, pikepdf.Array):
            self._found = True
            del level.holder[level.key]
            return
        kept: list[pikepdf.Object] = []
        names: set[str] = set()
        changed = False
        for raw in listed.as_list():
            self._left -= 1
            field = self._field(raw)
            if field is None or self._left < 0:
                changed = True
                continue
            changed |= field is not raw
            kept.append(field)
            if not self._has_type(field, level.kind):
                self._found = True
                del field["/T"]
            self._mend_look(field)
            if field.get("/FT", level.kind) == "/Sig":
                self._mend_empty(field)
            if "/T" in field:
                self._mend_name(field, names)
                kind = field.get("/FT", level.kind)
                yield _Level(field, "/Kids", kind)
        if changed:
            self._found = True
            level.holder[level.key] = pikepdf.Array(kept)
        if not kept and level.kind is None and "/T" in level.holder:
            # A name for nothing: neither a type nor a field below it is left.
            self._found = True
            del level.holder["/T"]

    def _field(self, raw: pikepdf.Object) -> pikepdf.Object | None:
        """A field that may be listed; None for none, and for one that stands twice."""
        if not isinstance(raw, pikepdf.Dictionary):
            return None
        field = raw if raw.objgen[0] else self._opened.make_indirect(raw)
        if field.objgen in self._seen:
            return None
        self._seen.add(field.objgen)
        return field

    def _has_type(self, field: pikepdf.Object, kind: object) -> bool:
        """Whether a named field has a type, its own or inherited, or fields below."""
        if "/T" not in field or field.get("/FT", kind) is not None:
            return True
        kids = field.get("/Kids")
        return isinstance(kids, pikepdf.Array) and len(kids) > 0

    def _mend_name(self, field: pikepdf.Object, names: set[str]) -> None:
        """Give a field a name that no field beside it has."""
        raw = field.T
        name = str(raw)[:_NAME_CHARS] if isinstance(raw, pikepdf.String) else "Campo"
        partial = name.replace(".", "_")
        unique, number = partial, 1
        while unique in names:
            number += 1
            unique = f"{partial}_{number}"
        names.add(unique)
        if not isinstance(raw, pikepdf.String) or unique != str(raw):
            self._found = True
            field.T = pikepdf.String(unique)

    def _mend_empty(self, field: pikepdf.Object) -> None:
        """Take the words out of an empty signature field, which a signer would read."""
        looks = field.get("/AP")
        drawn = looks.get("/N") if isinstance(looks, pikepdf.Dictionary) else None
        if "/V" in field or drawn is None:
            return
        drawings = [drawn] if isinstance(drawn, pikepdf.Stream) else drawn.values()
        if any(isinstance(each, pikepdf.Stream) and _speaks(each) for each in drawings):
            self._found = True
            del field["/AP"]

    def _mend_look(self, field: pikepdf.Object) -> None:
        """Name the state of a widget that has a drawing for each and shows none."""
        looks = field.get("/AP")
        drawn = looks.get("/N") if isinstance(looks, pikepdf.Dictionary) else None
        if isinstance(drawn, pikepdf.Dictionary) and not isinstance(
            field.get("/AS"), pikepdf.Name
        ):
            self._found = True
            field.AS = pikepdf.Name.Off


def _speaks(drawing: pikepdf.Object) -> bool:
    """Say whether a look may show words; one that cannot be decoded may."""
    try:
        return speaks(drawing.read_bytes())
    except pikepdf.PdfError:
        return True


def mend_annotations(opened: pikepdf.Pdf) -> bool:
    """Give each annotation of a page a number, and leave out what is none.

    Validators compare pages by the numbers of their annotations as soon as a later
    revision adds one, as each signature and document timestamp does.

    Args:
        opened: the copy that is made.

    Returns:
        Whether there was anything to do.
    """
    found = False
    for page in opened.pages:
        listed = page.obj.get("/Annots")
        if listed is None:
            continue
        if not isinstance(listed, pikepdf.Array):
            found = True
            del page.obj["/Annots"]
            continue
        # A list of its own: pikepdf's makes another object of an entry each time.
        notes = [*listed.as_list()]
        kept = [
            note if note.objgen[0] else opened.make_indirect(note)
            for note in notes
            if isinstance(note, pikepdf.Dictionary)
        ]
        if len(kept) < len(notes) or any(
            new is not old for new, old in zip(kept, notes, strict=False)
        ):
            found = True
            page.obj.Annots = pikepdf.Array(kept)
    return found

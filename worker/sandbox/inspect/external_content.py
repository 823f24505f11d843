"""Finds streams whose content is not in the file, or not what every program shows.

The data of a stream may be in an external file, and a form XObject may stand for a page
of another document. A signature covers neither: what is seen can change without a byte
of the signed file.

Source: ISO 32000-2, 7.3.8.2 (table 5), 8.9.5.4 and 8.10.4.
"""

import time
from collections.abc import Iterator
from typing import Final

import pikepdf

_CPU_S: Final = 1.0
"""As long as is asked whether the document leads to a stream."""
_CHECKED_EACH: Final = 256
"""Objects between two looks at the clock."""

ObjectId = tuple[int, int]
"""Number and generation of an indirect object."""


class ExternalContent:
    """Gathers such streams among a file's objects."""

    def __init__(self) -> None:
        self._external: set[ObjectId] = set()
        self._alternates: set[ObjectId] = set()
        self._lost_objects = False

    def take(self, stream: pikepdf.Object) -> None:
        """Look at one stream's dictionary.

        Args:
            stream: an indirect object, as every stream is.
        """
        if "/F" in stream and _names_file(stream.get("/F")):
            self._external.add(stream.objgen)
            # Its objects are elsewhere, whatever they are and whatever leads to them.
            self._lost_objects |= stream.get("/Type") == pikepdf.Name.ObjStm
        if "/Ref" in stream and _is_reference_xobject(stream):
            self._external.add(stream.objgen)
        if "/Alternates" in stream and _has_alternates(stream):
            self._alternates.add(stream.objgen)

    def judge(self, opened: pikepdf.Pdf) -> tuple[bool, bool]:
        """Return whether the document has external content, and alternate images.

        What no reference leads to is neither shown nor printed, and does not count.
        Where time ends before that is known, it counts.

        Args:
            opened: the file whose streams were taken.
        """
        if self._lost_objects:
            return True, bool(self._alternates)
        suspects = self._external | self._alternates
        if not suspects:
            return False, False
        reached = find_reached(opened, suspects)
        return bool(self._external & reached), bool(self._alternates & reached)


def _names_file(file: object) -> bool:
    """Return whether a stream's `/F` is a file specification, be it of a URL.

    A name is the abbreviation of `/Filter` that inline images have.
    """
    if isinstance(file, pikepdf.String):
        return bool(bytes(file))
    return isinstance(file, pikepdf.Dictionary) and len(file) > 0


def _is_reference_xobject(stream: pikepdf.Object) -> bool:
    """Return whether a form stands for a page elsewhere; many forms name no subtype."""
    reference = stream.get("/Ref")
    return (
        isinstance(reference, pikepdf.Dictionary)
        and len(reference) > 0
        and stream.get("/Subtype") in (None, pikepdf.Name.Form)
    )


def _has_alternates(stream: pikepdf.Object) -> bool:
    others = stream.get("/Alternates")
    return (
        isinstance(others, pikepdf.Array)
        and len(others) > 0
        and stream.get("/Subtype") in (None, pikepdf.Name.Image)
    )


def find_reached(opened: pikepdf.Pdf, suspects: set[ObjectId]) -> set[ObjectId]:
    """Return those that the trailer leads to; all, where that is not known in time.

    Args:
        opened: the file.
        suspects: indirect objects of it.
    """
    until = time.process_time() + _CPU_S
    reached: set[ObjectId] = set()
    seen: set[ObjectId] = set()
    todo: list[object] = [opened.trailer]
    steps = 0
    while todo and reached != suspects:
        steps += 1
        if steps % _CHECKED_EACH == 0 and time.process_time() > until:
            return suspects
        each = todo.pop()
        if not isinstance(each, pikepdf.Object):
            continue  # a number, or nothing
        key = each.objgen
        if key[0]:
            if key in seen:
                continue
            seen.add(key)
            if key in suspects:
                reached.add(key)
        try:
            todo += _parts(each)
        except UnicodeDecodeError:  # a key that is no text: what it leads to is hidden
            return suspects
    return reached


def _parts(each: pikepdf.Object) -> Iterator[object]:
    """What an object consists of, references followed."""
    if isinstance(each, pikepdf.Array):
        yield from each
    elif isinstance(each, pikepdf.Dictionary | pikepdf.Stream):
        yield from each.values()

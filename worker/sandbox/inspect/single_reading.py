"""Refusal of a document that programs may read in different ways.

What a signer is shown is drawn by one program, a signature is appended by another, and
whoever receives the file opens it with a third. So a document is taken in only if all
of them reach the same objects, now and after any revision that follows. A file that
holds no signature can be written anew, which leaves one reading.

Source: ISO 32000-2, 7.5; docs/documents.md "One reading".
"""

from typing import Final

from pyhanko.pdf_utils.crypt import AuthStatus

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.inspect.pages import walk_pages
from worker.sandbox.inspect.tree_form import TreeForm, tree_form
from worker.sandbox.structure import (
    APPENDED_ONLY,
    CheckedReader,
    DrawnStreams,
    read_structure,
)
from worker.sandbox.structure.checked_reader import ReadDifferentlyError

MOST_OBJECTS: Final = 8_388_607
"""Indirect objects of a file (ISO 32000-1, annex C.2). Others give up at a table that
says more."""
ROOM: Final = 10_000
"""Numbers that are left for what is appended: fifty signatures with the data and
timestamps of the highest level need a fifth of it."""
_STEPS: Final = 2_000_000
"""About 100,000 objects."""


def demand_single_reading(pdf: bytes, limit: int, *, signed: bool) -> int:
    """Demand that all programs read the same document.

    Of a signed file the parts that only a repair would find do not count, as they do
    not when its signatures are verified: they cannot be taken out.

    Args:
        pdf: the whole file; pyHanko can read it.
        limit: most pages that are taken.
        signed: whether a field of it holds a signature.

    Returns:
        The greatest number that the file lists, refers to or leaves room for in
        `/Size`. What is appended is numbered from there.

    Raises:
        DocumentRefusedError: `PDF_AMBIGUOUS`; `PDF_UNVERIFIABLE`, no numbers are left,
            or it goes beyond what all programs read; `PDF_TOO_COMPLEX`, it could not
            be examined to the end.
    """
    opened, tree = _walked(pdf, limit)
    structure = read_structure(
        pdf, opened, steps=_STEPS, appended_from=len(pdf), follow=tree.contents
    )
    for each in structure.ambiguities:
        if not signed or each.kind not in APPENDED_ONLY:
            raise _ambiguous(each.kind.value)
    references = structure.references
    if structure.used_up:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "its structure")
    if not structure.examined or references is None:
        raise _ambiguous("a stream of objects cannot be decoded")
    if not signed and references.dangling is not None:
        raise _ambiguous("refers to an object that it does not have")
    if not signed and references.greatest > references.listed:
        raise _ambiguous("/Size leaves numbers out")
    _demand_one_look(tree, structure.drawn)
    if references.greatest > MOST_OBJECTS - ROOM:
        reason = "objects numbered beyond what programs read"
        raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)
    return references.greatest


def _demand_one_look(tree: TreeForm, drawn: DrawnStreams | None) -> None:
    """Demand that programs find the same pages, resources and content.

    Raises:
        DocumentRefusedError: `PDF_AMBIGUOUS`; `PDF_UNVERIFIABLE`, it goes beyond what
            all programs read.
    """
    if tree.odd is not None:
        raise _ambiguous(tree.odd)
    if drawn is None:
        raise _ambiguous("its streams cannot be read")
    for words in drawn.odd.values():
        raise _ambiguous(f"a stream has {words}")
    if not tree.contents <= drawn.content:
        raise _ambiguous("content that is no stream")
    if drawn.odd_resources:
        raise _ambiguous("resources of a stream that are no dictionary")
    for is_beyond, reason in (
        (drawn.long_name, "a name longer than programs read"),
        (bool(drawn.long_strings), "a string longer than programs read"),
        (drawn.deep, "forms deeper in one another than programs draw"),
    ):
        if is_beyond:
            raise DocumentRefusedError(ErrorCode.PDF_UNVERIFIABLE, reason)


def _walked(pdf: bytes, limit: int) -> tuple[CheckedReader, TreeForm]:
    """Open the file and find its pages, by the reader that the engine's is.

    Raises:
        DocumentRefusedError: `PDF_AMBIGUOUS`, pyHanko reads other objects, or none.
    """
    try:
        opened = _opened(pdf)
        walk_pages(opened.root, limit)
        tree = tree_form(opened.root, limit)
    except (DocumentRefusedError, MemoryError):
        raise
    except ReadDifferentlyError as exc:
        raise _ambiguous("pyHanko reads another object") from exc
    except Exception as exc:
        # Other readers of the same file, less careful ones, came to an end with it.
        raise _ambiguous(type(exc).__name__) from exc
    return opened, tree


def _opened(pdf: bytes) -> CheckedReader:
    """Open the file, with the empty password if need be.

    Raises:
        DocumentRefusedError: `PDF_PASSWORD_NEEDED`.
        Exception: of any kind, for a file that cannot be read.
    """
    opened = CheckedReader(pdf)
    if opened.encrypted and opened.decrypt("").status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    return opened


def _ambiguous(reason: str) -> DocumentRefusedError:
    return DocumentRefusedError(ErrorCode.PDF_AMBIGUOUS, reason)

"""Pages whose objects a later revision changed; for confined jobs only.

Each object that a page needs to be drawn is read once a file. An object counts as
changed if any object that it reaches was changed, so that one number a page, the
newest revision that it reaches, answers for every signature.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DecryptedObjectProxy,
    DictionaryObject,
    EncryptedObjAccess,
    IndirectObject,
    PdfObject,
)
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.inspect.pages import Page, walk_pages
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    dictionary,
    entry,
    raw_items,
    resolve,
)
from worker.sandbox.verify.object_history import NEVER, ObjectHistory
from worker.sandbox.verify.raw_references import RawReferences

_PAGES_MOST: Final = 500_000
_STEPS: Final = 3_000_000
"""Values that are visited, over the whole file."""
_CPU_S: Final = 1.0
"""Processor time of the traversal, in seconds."""
_CLOCK_EVERY: Final = 64  # objects between two readings of the clock
_DEPTH: Final = 64
# Only references count, and not every string of an encrypted file is encrypted: the
# value of a signature is not (ISO 32000-2, 7.6.2).
_RAW: Final = EncryptedObjAccess.RAW
_DEFAULTS: Final = ("/DA", "/DR", "/NeedAppearances", "/Q", "/XFA")
# Keys that later signatures and validation data write. None is a key of a page or
# of resources, so that a page that uses such a dictionary is drawn as before.
_CATALOG_ADDITIONS: Final = {"/AcroForm", "/DSS", "/Extensions", "/Perms", "/Version"}
_FORM_ADDITIONS: Final = {"/Fields", "/SigFlags"}


class ChangedPages:
    """Pages of one file that reach an object of a later revision.

    Args:
        reader: the open file.
        history: revisions of its objects.
    """

    def __init__(self, reader: PdfFileReader, history: ObjectHistory) -> None:
        self._reader = reader
        self._history = history
        self._redefined: int | None = None
        self._traversal: _Traversal | None = None
        self._is_traversed = False

    @property
    def count(self) -> int | None:
        """Pages that the traversal found; None if there was none or it failed."""
        return None if self._traversal is None else len(self._traversal.pages)

    def after(self, revision: int) -> tuple[int, ...] | None:
        """Find the pages that may look different since a revision.

        A number that was undefined in the revision, is referenced there and is defined
        later is not looked for here: the rules for later revisions reject it.

        Args:
            revision: pyHanko's index of a revision.

        Returns:
            1-based page numbers in order. None for every page: the page tree, the
            layers or the defaults of the form were changed, or the objects could not
            be read within the limits.
        """
        if revision >= self._reader.total_revisions - 1:
            return ()
        try:
            return self._after(revision)
        except Exception:  # noqa: BLE001 (hostile objects raise anything)
            return None

    def may_change_content(self, page: int, revision: int) -> bool:
        """Return whether a page may differ in more than its annotations.

        Args:
            page: 1-based.
            revision: pyHanko's index of a revision.
        """
        try:
            return self._may_change_content(page, revision)
        except Exception:  # noqa: BLE001 (hostile objects raise anything)
            return True

    def _after(self, revision: int) -> tuple[int, ...] | None:
        """Find the pages, as `after` does.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        old, new = self._catalog(revision), self._reader.root
        if old is None or not _same(old, new, ("/Pages", "/OCProperties")):
            return None
        old_form = self._form_at(_raw(old, "/AcroForm"), revision)
        new_form = dictionary(new, "/AcroForm")
        if not _same(old_form, new_form, _DEFAULTS):
            return None
        if (
            self._newest_redefinition() <= revision
            and _differ_in(old, new, _CATALOG_ADDITIONS)
            and _differ_in(old_form, new_form, _FORM_ADDITIONS)
        ):
            return ()
        found = self._traversed()
        if found is None or found.shared > revision:
            return None
        pages = enumerate(found.pages, 1)
        return tuple(number for number, newest in pages if newest > revision)

    def _may_change_content(self, page: int, revision: int) -> bool:
        """Compare the page's dictionary, and the newest object of its content.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        found = self._traversed()
        if found is None or not 1 <= page <= len(found.pages):
            return True
        if max(found.shared, found.contents[page - 1]) > revision:
            return True
        number = found.numbers[page - 1]
        if number is None or self._history.newest(number) <= revision:
            return False
        new = self._reader.get_object(self._history.reference(number))
        return not _differ_in(self._at(number, revision), new, {"/Annots"})

    def _catalog(self, revision: int) -> object:
        """Return the catalog of a revision; None if it was another object."""
        number = self._reader.root_ref.idnum
        root = self._reader.trailer.raw_get("/Root", revision=revision)
        if not isinstance(root, IndirectObject) or root.idnum != number:
            return None
        return self._at(number, revision)

    def _form_at(self, raw: object, revision: int) -> object:
        """Return the form that an old catalog names, as it was in its revision."""
        if isinstance(raw, IndirectObject):
            return self._at(raw.idnum, revision)
        return raw

    def _at(self, number: int, revision: int) -> PdfObject:
        """Read an object as it was in a revision, past the reader's cache."""
        reference = self._history.reference(number)
        if self._history.newest(number) <= revision:
            return resolve(self._reader.get_object(reference)) or DictionaryObject()
        if self._reader.xrefs.get_historical_ref(reference, revision) is None:
            return DictionaryObject()  # not yet there, or of another generation
        found: PdfObject = self._reader.get_object(reference, revision)
        return found

    def _newest_redefinition(self) -> int:
        """Return the last revision that changed an object, catalog and form apart."""
        if self._redefined is None:
            known = {self._reader.root_ref.idnum}
            root = self._reader.root
            form = root.raw_get("/AcroForm") if "/AcroForm" in root else None
            if isinstance(form, IndirectObject):
                known.add(form.idnum)
            self._redefined = self._history.newest_redefinition(known)
        return self._redefined

    def _traversed(self) -> "_Traversal | None":
        """Traverse the objects on first use; None if that fails.

        Raises:
            Exception: any, from objects that cannot be read.
        """
        if not self._is_traversed:
            self._is_traversed = True
            self._traversal = _Traversal(self._reader, self._history)
        return self._traversal


class _Traversal:
    """Newest revision that each page reaches.

    Args:
        reader: the open file.
        history: revisions of its objects.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`, past the limits; others as in
            `walk_pages`.
    """

    def __init__(self, reader: PdfFileReader, history: ObjectHistory) -> None:
        self._reader = reader
        self._history = history
        self._budget = Budget(_STEPS)
        self._until = time.process_time() + _CPU_S
        self._newest: dict[int, int] = {}
        self._users: dict[int, list[int]] = {}
        self._todo: list[int] = []
        root = reader.root
        pages = walk_pages(root, _PAGES_MOST).pages
        tree = self._tree()
        # Pages are reached from links and beads of other pages, which draw nothing.
        self._barred = tree | {reader.root_ref.idnum}
        self._barred |= {page.ref.idnum for page in pages if page.ref is not None}
        self.numbers = [None if page.ref is None else page.ref.idnum for page in pages]
        """Object number of each page; None for one that stands in the tree itself."""
        count = len(pages)
        for at, page in enumerate(pages):
            self._add_page(-1 - at, -1 - at - count, page)
        form = dictionary(root, "/AcroForm")
        self._add(-1 - 2 * count, [(_raw(root, "/OCProperties"), False)])
        self._add(-2 - 2 * count, [(_raw(form, key), False) for key in _DEFAULTS])
        self._follow()
        reached = self._flood()
        self.pages = [reached[-1 - at] for at in range(count)]
        """Newest revision that each page reaches, its own dictionary included."""
        self.contents = [reached[-1 - at - count] for at in range(count)]
        """The same without its annotations and its own dictionary."""
        self.shared = max(
            reached[-1 - 2 * count],
            reached[-2 - 2 * count],
            *(history.newest(number) for number in tree),
            NEVER,
        )
        """Newest revision of the page tree, the layers and the form's defaults."""
        # A file may have a million objects, and these answers are all that is kept.
        self._newest.clear()
        self._users.clear()

    def _tree(self) -> set[int]:
        """Collect the numbers of the page tree: inner nodes and arrays of kids.

        Raises:
            DocumentRefusedError: past the budget.
        """
        found: set[int] = set()
        todo: list[object] = [_raw(self._reader.root, "/Pages")]
        while todo:
            self._budget.take()
            raw = todo.pop()
            node = resolve(raw)
            if not isinstance(entry(node, "/Kids"), ArrayObject):
                continue
            kids = _raw(node, "/Kids")
            numbers = {
                each.idnum for each in (raw, kids) if isinstance(each, IndirectObject)
            }
            if not numbers <= found or not isinstance(raw, IndirectObject):
                found |= numbers
                todo.extend(raw_items(resolve(kids)))
        return found

    def _add_page(self, whole: int, content: int, page: Page) -> None:
        """Add a page, and its content apart from its annotations."""
        own = [_raw(page.node, key) for key in page.node if key != "/Annots"]
        values = [*own, *page.inherited.values()]
        self._add(content, [(value, False) for value in values])
        self._add(whole, [(_raw(page.node, "/Annots"), False)])
        self._users.setdefault(content, []).append(whole)
        if page.ref is not None:
            self._newest[whole] = self._history.newest(page.ref.idnum)

    def _add(self, node: int, values: Iterable[tuple[object, bool]]) -> None:
        """Add a node that holds values, and the objects that these refer to.

        Args:
            node: its number.
            values: each with True if its key is `/Parent`.

        Raises:
            DocumentRefusedError: past the budget.
        """
        self._link(node, self._references(values))

    def _link(self, node: int, references: Iterable[tuple[int, bool]]) -> None:
        """Add a node that refers to objects.

        Objects have two nodes: 2n, and 2n + 1 for one that is reached as `/Parent`.
        Of the second the kids are left out: the field above a widget decides how it is
        drawn, and the field's other widgets do not.

        Args:
            node: its number.
            references: object numbers, each with True if its key is `/Parent`.
        """
        self._newest.setdefault(node, NEVER)
        for number, is_parent in references:
            if number in self._barred:
                continue
            target = 2 * number + is_parent
            self._users.setdefault(target, []).append(node)
            if target not in self._newest:
                self._newest[target] = self._history.newest(number)
                self._todo.append(target)

    def _references(
        self, values: Iterable[tuple[object, bool]]
    ) -> Iterator[tuple[int, bool]]:
        """Yield the numbers that direct values refer to.

        Raises:
            DocumentRefusedError: past the budget.
        """
        todo = [*values]
        while todo:
            self._budget.take()
            value, is_parent = todo.pop()
            if isinstance(value, IndirectObject):
                yield value.idnum, is_parent
            elif isinstance(value, DictionaryObject):
                todo.extend(
                    (value.raw_get(key, _RAW), key == "/Parent") for key in value
                )
            elif isinstance(value, ArrayObject):
                todo.extend(
                    (value.raw_get(at, _RAW), False) for at in range(len(value))
                )

    def _follow(self) -> None:
        """Read every object that is reached, each once.

        Raises:
            DocumentRefusedError: past the budget or the time.
        """
        raw = RawReferences(self._reader, self._history)
        done = 0
        while self._todo:
            self._budget.take()
            done += 1
            if not done % _CLOCK_EVERY and time.process_time() > self._until:
                raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "time")
            node = self._todo.pop()
            found = None if node % 2 else raw.of(node // 2)
            if found is None:
                self._parse(node)
            else:
                self._budget.take(len(found))
                self._link(node, found)

    def _parse(self, node: int) -> None:
        """Read an object by pyHanko.

        Raises:
            DocumentRefusedError: past the budget.
        """
        number = node // 2
        reference = self._history.reference(number)
        revision = self._history.last(number)
        if self._reader.xrefs.get_historical_ref(reference, revision) is None:
            return
        # By its revision, because the reader then keeps no copy of streams.
        key = reference.generation, reference.idnum
        value: object = self._reader.get_object(
            reference,
            None if key in self._reader.resolved_objects else revision,
            transparent_decrypt=False,
        )
        if isinstance(value, DecryptedObjectProxy):
            value = value.raw_object
        if node % 2 and isinstance(value, DictionaryObject):
            keys = [key for key in value if key != "/Kids"]
            self._add(
                node, [(value.raw_get(key, _RAW), key == "/Parent") for key in keys]
            )
        else:
            self._add(node, [(value, False)])

    def _flood(self) -> dict[int, int]:
        """Give each node the newest revision that it reaches, in linear time.

        The newest nodes come first and pass their revision on to all that use them, so
        that each node is visited once. Loops need no care that way.
        """
        reached: dict[int, int] = {}
        for node in sorted(self._newest, key=self._newest.__getitem__, reverse=True):
            newest = self._newest[node]
            todo = [node]
            while todo:
                at = todo.pop()
                if at not in reached:
                    reached[at] = newest
                    todo.extend(self._users.get(at, ()))
        return reached


def _raw(holder: object, key: str) -> object:
    """Return a dictionary's value as it stands there, or None."""
    if isinstance(holder, DictionaryObject) and key in holder:
        return holder.raw_get(key)
    return None


def _same(one: object, other: object, keys: Iterable[str]) -> bool:
    """Return whether two dictionaries have equal values for keys."""
    return all(_equal(_raw(one, key), _raw(other, key)) for key in keys)


def _differ_in(one: object, other: object, keys: set[str]) -> bool:
    """Return whether two dictionaries differ in no more than these keys."""
    known = {
        key for each in (one, other) if isinstance(each, DictionaryObject)
        for key in each
    }  # fmt: skip
    return _same(one, other, known - keys)


def _equal(one: object, other: object) -> bool:
    """Compare two direct values; references by number, and too deep ones as unequal.

    pyHanko's own comparison counts the reader of a reference, and compares the
    cipher text of strings.
    """
    todo = [(one, other, 0)]
    while todo:
        left, right, depth = todo.pop()
        if depth > _DEPTH:
            return False
        if isinstance(left, IndirectObject) and isinstance(right, IndirectObject):
            if left.idnum != right.idnum:
                return False
        elif isinstance(left, DictionaryObject) and isinstance(right, DictionaryObject):
            if set(left) != set(right):
                return False
            todo.extend((_raw(left, key), _raw(right, key), depth + 1) for key in left)
        elif isinstance(left, ArrayObject) and isinstance(right, ArrayObject):
            if len(left) != len(right):
                return False
            pairs = zip(raw_items(left), raw_items(right), strict=True)
            todo.extend((*pair, depth + 1) for pair in pairs)
        elif left != right:
            return False
    return True

"""Revisions of an open PDF, each as its readers saw it; for confined jobs only.

pyHanko's own historical views look every object up in all cross-reference sections,
parse it again in each view, and map all paths of the file for each comparison. With n
signatures that costs n² or more. Here every section is read once into an index.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DecryptedObjectProxy,
    DictionaryObject,
    EncryptedObjAccess,
    FloatObject,
    IndirectObject,
    NullObject,
    NumberObject,
    PdfObject,
    Reference,
    StreamObject,
    TrailerReference,
)
from pyhanko.pdf_utils.reader import HistoricalResolver, PdfFileReader
from pyhanko.pdf_utils.xref import XRefSectionData

from worker.pades.pdf.kept_values import ByteName
from worker.sandbox.inspect.pdf_objects import Budget, Key, entry, key_of

TRAILER: Final[Key] = (0, 0)
"""Key that stands for the trailer; object 0 is always free."""

Path = tuple[str | int, ...]
"""Keys and indices inside one object."""
Use = tuple[Key, Path]
"""Reference to an object: the object that holds it, and its place there."""
_NOTHING: Final[tuple[frozenset[int], frozenset[int]]] = frozenset(), frozenset()

_STEPS_AN_OBJECT: Final = 20
"""An element of a path takes about a microsecond, an object twenty."""
_NEAR: Final = 256
"""Revisions up to the newest one in which an object is looked for there."""


class Revisions:
    """Index of all cross-reference sections of a file.

    Args:
        reader: the open file; its decryption must be done.
    """

    def __init__(self, reader: PdfFileReader) -> None:
        self.reader = reader
        self.count: int = reader.xrefs.total_revisions
        self._defined: list[frozenset[Key]] = []
        self._freed: list[frozenset[int]] = []
        self._history: dict[Key, list[tuple[int, bool]]] = {}
        self._generations: dict[int, set[int]] = {}
        self._streams: dict[int, int] = {}
        self._trailers: list[dict[str, PdfObject]] = []
        self._views: dict[int, RevisionView] = {}
        self._parsed: dict[tuple[Key, int], PdfObject] = {}
        for revision in range(self.count):
            self._add(revision, _entries(reader.xrefs.get_xref_data(revision)))

    def _add(self, revision: int, entries: dict[Key, bool]) -> None:
        for key, in_use in entries.items():
            self._history.setdefault(key, []).append((revision, in_use))
            self._generations.setdefault(key[0], set()).add(key[1])
        self._defined.append(frozenset(key for key, used in entries.items() if used))
        # A hybrid file lists as free what its stream defines.
        used = {key[0] for key in self._defined[-1]}
        self._freed.append(frozenset(key[0] for key in entries) - used)
        for ref in self.reader.xrefs.object_streams_used_in(revision):
            self._streams.setdefault(ref.idnum, revision)

    def holds_objects(self, number: int, revision: int) -> bool:
        """Return whether a section up to a revision names an object stream so."""
        return self._streams.get(number, self.count) <= revision

    def defined_in(self, revision: int) -> frozenset[Key]:
        """Return the objects that a revision adds or replaces."""
        return self._defined[revision]

    def freed_in(self, revision: int) -> frozenset[int]:
        """Return the numbers that a revision lists as free, whatever the generation.

        pyHanko passes over free entries of generation 0; PDFium frees the object.
        """
        return self._freed[revision]

    def last_change(self, key: Key, revision: int) -> int | None:
        """Return the revision in which an object got its present value.

        Returns:
            None if the object is undefined or free at that revision.
        """
        history = self._history.get(key, [])
        at = bisect_right(history, (revision, True)) - 1
        return history[at][0] if at >= 0 and history[at][1] else None

    def changes(self, key: Key) -> list[int]:
        """Return the revisions in which an object got a value, the oldest first."""
        return [each for each, is_used in self._history.get(key, ()) if is_used]

    def keys_of(self, number: int) -> Iterator[Key]:
        """Yield a number with each generation that the file has of it."""
        return ((number, each) for each in self._generations.get(number, ()))

    def in_use(self, number: int, revision: int) -> bool:
        """Return whether a number has an object of any generation at a revision."""
        return any(
            self.last_change(key, revision) is not None for key in self.keys_of(number)
        )

    def raw(self, key: Key, revision: int) -> PdfObject:
        """Parse an object as it was at a revision, undecrypted; null if undefined."""
        changed = self.last_change(key, revision)
        ref = Reference(*key, pdf=self.reader)
        if changed is None:
            null = NullObject()
            null.container_ref = ref
            return null
        if (key, changed) not in self._parsed:
            # pyHanko's own cache spares parsing, but searches all later sections.
            is_newest = self.count - changed < _NEAR and (
                changed == self.last_change(key, self.count - 1)
            )
            self._parsed[key, changed] = self.reader.get_object(
                ref,
                revision=None if is_newest else changed,
                transparent_decrypt=False,
            )
        return self._parsed[key, changed]

    def trailer(self, revision: int) -> dict[str, PdfObject]:
        """Return the trailer at a revision, with entries of older ones it lacks.

        Source: ISO 32000-2, 7.5.5; pyHanko joins all of them for each revision.
        """
        own = self.reader.trailer._trailer_revisions  # noqa: SLF001 (no public way to one trailer)
        hidden = self.reader.trailer.non_trailer_keys
        while len(self._trailers) <= revision:
            before = self._trailers[-1] if self._trailers else {}
            later = dict.items(own[len(own) - 1 - len(self._trailers)])
            entries = {key: value for key, value in later if key not in hidden}
            self._trailers.append({**before, **entries})
        return self._trailers[revision]

    def view(self, revision: int) -> "RevisionView":
        """Open the file as it was at a revision."""
        if revision not in self._views:
            self._views[revision] = RevisionView(self, revision)
        return self._views[revision]

    def forget(self, revision: int) -> None:
        """Drop a view that is no longer needed, so that memory stays bounded."""
        self._views.pop(revision, None)


def _entries(data: XRefSectionData) -> dict[Key, bool]:
    """Return the objects that a section lists; true if in use.

    Source: ISO 32000-2, 7.5.4 and 7.5.8.4 (a hybrid file's stream comes second).
    """
    found = _entries(data.hybrid.xref_data) if data.hybrid is not None else {}
    found |= {(number, after - 1): False for number, after in data.freed.items()}
    hidden = [key for key in found if key[0] in data.standard_xrefs]
    for key in hidden:
        del found[key]
    found |= {(n, entry[0]): True for n, entry in data.standard_xrefs.items()}
    found |= {(number, 0): True for number in data.xrefs_in_objstm}
    return found


class RevisionView(HistoricalResolver):
    """One revision, with pyHanko's interface for its difference rules.

    Args:
        revisions: index of the file.
        revision: number of the revision, the oldest being 0.
    """

    def __init__(self, revisions: Revisions, revision: int) -> None:
        # pyHanko's own constructor joins all older trailers, which is quadratic.
        self.cache: dict[Reference, PdfObject] = {}
        self.reader = revisions.reader
        self.revision = revision
        self._decode_context = revisions.reader.decode_context.fresh()
        self.revisions = revisions
        # pyHanko leaves the trailer's references to the newest revision.
        self._trailer = DictionaryObject(
            {
                key: IndirectObject(value.idnum, value.generation, self)
                if isinstance(value, IndirectObject)
                else value
                for key, value in revisions.trailer(revision).items()
            }
        )
        self._trailer.container_ref = TrailerReference(self)

    @property
    def root_ref(self) -> Reference:
        """Reference to the catalog."""
        root = self._trailer.raw_get("/Root")
        return Reference(root.idnum, root.generation, self)

    def get_object(self, ref: Reference, as_metadata_stream: bool = False) -> Any:  # noqa: FBT001, FBT002 (pyHanko's signature)
        """Return an object at this revision, decrypted throughout.

        pyHanko decrypts container by container and compares a decrypted string with
        an undecrypted one where only one of the two is in an object stream.

        Args:
            ref: its reference.
            as_metadata_stream: unused; metadata is compared as any other stream.
        """
        del as_metadata_stream
        cached = self.cache.get(ref)
        if cached is None:
            raw = self.revisions.raw((ref.idnum, ref.generation), self.revision)
            cached = self.cache[ref] = _decrypted(self._own(raw, ref))
        return cached

    def _own(self, value: Any, holder: Reference) -> Any:
        """Copy an object, with references that lead to this revision.

        pyHanko's own copy makes a reference to the holder for each part of it.
        """
        if isinstance(value, IndirectObject):
            return IndirectObject(value.idnum, value.generation, self)
        if isinstance(value, DictionaryObject) and not isinstance(value, StreamObject):
            parts = dict.items(value)
            own: Any = DictionaryObject({k: self._own(v, holder) for k, v in parts})
        elif isinstance(value, ArrayObject):
            own = ArrayObject(self._own(each, holder) for each in list.__iter__(value))
        elif isinstance(value, StreamObject | DecryptedObjectProxy):
            return self._subsume_object(value)  # type: ignore[no-untyped-call]
        else:
            return value
        own.container_ref = holder
        return own

    def is_ref_unassignable(self, ref: Reference) -> bool:
        """Return whether a number had no object at this revision.

        pyHanko compares the number with /Size, which the file may state too low: an
        object of the signed revision then counts as new and may be replaced.
        """
        return not self.revisions.in_use(ref.idnum, self.revision)

    def _collect_indirect_references(
        self,
        obj: object,
        seen: set[Reference],
        since_revision: int | None = None,
    ) -> None:
        """Collect references; with `since_revision`, to objects new since then."""
        todo: list[object] = [obj]
        visited: set[Key] = set()
        while todo:
            for ref in references(todo.pop()):
                if ref in visited:
                    continue
                visited.add(ref)
                if since_revision is not None and (
                    self.revisions.last_change(ref, self.revision) is None
                    or self.revisions.in_use(ref[0], since_revision - 1)
                ):
                    continue
                seen.add(Reference(*ref, pdf=self))
                todo.append(self.revisions.raw(ref, self.revision))


def _decrypted(value: Any) -> Any:
    """Replace a decrypting proxy, and all below it, by plain objects.

    A signature's /Contents stays as it is: it is never encrypted.

    Source: ISO 32000-2, 7.6.2.
    """
    if isinstance(value, DecryptedObjectProxy):
        value = value.decrypted
    else:
        return value
    if isinstance(value, DictionaryObject):
        is_signature = "/ByteRange" in value
        for key in list(value):
            raw = value.raw_get(key, EncryptedObjAccess.PROXY)
            if is_signature and key == "/Contents":
                plain = value.raw_get(key, EncryptedObjAccess.RAW)
            else:
                plain = _decrypted(raw)
            dict.__setitem__(value, key, plain)
    elif isinstance(value, ArrayObject):
        for at in range(len(value)):
            plain = _decrypted(value.raw_get(at, EncryptedObjAccess.PROXY))
            list.__setitem__(value, at, plain)
    return value


def same(
    old: object, new: object, *, spelled: bool = True, reals: bool = False
) -> bool:
    """Return whether two decrypted objects are written alike, references unresolved.

    pyHanko's comparison raises `NotImplementedError` on proxies in arrays, which the
    views of this module replace. It also takes strings for equal that are the same
    text in two encodings: as the palette of an image they are other colours.

    Args:
        old: an object.
        new: another one.
        spelled: whether equal texts must have equal bytes, too.
        reals: whether real numbers of an array, as those of a box, may have become
            equal integers: many programs write 0.0 as 0.
    """
    todo = [(old, new, False)]
    while todo:
        a, b, is_item = todo.pop()
        if isinstance(a, DictionaryObject) and isinstance(b, DictionaryObject):
            if a.keys() != b.keys() or not _same_data(a, b):
                return False
            # Equal names may have other bytes (ISO 32000-2, 7.3.5).
            if byte_names(a) != byte_names(b):
                return False
            todo += ((a.raw_get(key), b.raw_get(key), False) for key in a)
        elif isinstance(a, ArrayObject) and isinstance(b, ArrayObject):
            if len(a) != len(b):
                return False
            items = zip(list.__iter__(a), list.__iter__(b), strict=True)
            todo += ((one, other, reals) for one, other in items)
        elif is_item and isinstance(a, FloatObject) and isinstance(b, NumberObject):
            if a != b:
                return False
        elif (
            type(a) is not type(b)
            or a != b
            or (spelled and _encoding(a) is not _encoding(b))
        ):
            return False
    return True


def differs_in_kind(old: object, new: object) -> bool:
    """Return whether two decrypted objects are equal to Python, and not to readers.

    pyHanko's rules compare values by `==`, by which the name `/OFF` is the string
    `(/OFF)`, and 90 is 90.0: Poppler ignores such a /Rotate. A real number that became
    an integer is none, for every reader takes one where a real number may stand, and
    pyHanko writes 300.0 as 300.
    """
    todo = [(old, new)]
    while todo:
        a, b = todo.pop()
        if isinstance(a, DictionaryObject) and isinstance(b, DictionaryObject):
            todo += ((a.raw_get(key), b.raw_get(key)) for key in a.keys() & b.keys())
        elif isinstance(a, ArrayObject) and isinstance(b, ArrayObject):
            todo += zip(list.__iter__(a), list.__iter__(b), strict=False)
        elif (
            type(a) is not type(b)
            and a == b
            and not (isinstance(a, FloatObject) and isinstance(b, NumberObject))
        ):
            return True
    return False


def byte_names(dictionary: DictionaryObject) -> set[str]:
    """Keys that are no UTF-8: others that are read alike are other names."""
    return {key for key in dictionary if isinstance(key, ByteName)}


def _encoding(value: object) -> object:
    """Return the encoding of a text string, which with the text gives its bytes."""
    return getattr(value, "autodetected_encoding", None)


def _same_data(a: DictionaryObject, b: DictionaryObject) -> bool:
    if isinstance(a, StreamObject) and isinstance(b, StreamObject):
        return bool(a.encoded_data == b.encoded_data)
    return not isinstance(a, StreamObject) and not isinstance(b, StreamObject)


def references(value: object, *, parents: bool = True) -> Iterator[Key]:
    """Yield the references in an object, undecrypted or not, and in all below it.

    Args:
        value: the object; a reference yields itself.
        parents: whether those of /Parent count, too.
    """
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, DecryptedObjectProxy):
            item = item.raw_object
        if isinstance(item, IndirectObject):
            yield item.idnum, item.generation
        elif isinstance(item, DictionaryObject):
            todo += (v for k, v in dict.items(item) if parents or k != "/Parent")
        elif isinstance(item, ArrayObject):
            todo += list.__iter__(item)


class ReferenceIndex:
    """Reverse references of one revision, moved forward revision by revision.

    Args:
        revisions: index of the file.
        revision: the first revision that is needed.
        budget: of objects and values that may be visited.
    """

    def __init__(self, revisions: Revisions, revision: int, budget: Budget) -> None:
        self._revisions = revisions
        self.revision = revision
        self.take = budget.take
        self.is_partial = False
        """An object that the document uses could not be read."""
        self._below: dict[Key, tuple[frozenset[int], frozenset[int]]] = {}
        self._above: dict[int, set[Key]] = {}
        self._above_by_parent: dict[int, set[Key]] = {}
        self._tree: PageNodes | None = None
        self._uses: dict[Key, dict[int, list[Path]]] = {}
        self._reachable: set[int] | None = None
        self._index([TRAILER])

    @property
    def view(self) -> RevisionView:
        """The revision at which the index stands."""
        return self._revisions.view(self.revision)

    @property
    def pages(self) -> "PageNodes":
        """Nodes of the page tree."""
        if self._tree is None:
            self._tree = PageNodes(self.view, self.take)
        return self._tree

    def advance(self) -> None:
        """Move on to the next revision."""
        changed = self._revisions.defined_in(self.revision + 1)
        freed = self._revisions.freed_in(self.revision + 1)
        if self._tree and (
            any(key in self._tree.inner for key in changed)
            or any(key[0] in freed for key in self._tree.nodes)
        ):
            self._tree = None
        self._revisions.forget(self.revision)
        self.revision += 1
        stale = [TRAILER, *changed]
        stale += (key for number in freed for key in self._revisions.keys_of(number))
        for key in stale:
            self._drop(key)
        self._index(stale)
        self._reachable = None

    def _drop(self, key: Key) -> None:
        self._uses.pop(key, None)
        below, by_parent = self._below.pop(key, (frozenset(), frozenset()))
        for number in below:
            self._above[number].discard(key)
        for number in by_parent:
            self._above_by_parent[number].discard(key)

    def _index(self, keys: Iterable[Key]) -> None:
        """Index objects, and all that they lead to and that is not indexed yet."""
        todo = list(keys)
        while todo:
            key = todo.pop()
            if key in self._below:
                continue
            self.take(_STEPS_AN_OBJECT)
            raw = self._raw(key)
            every = set(references(raw))
            below = frozenset(k[0] for k in references(raw, parents=False))
            by_parent = frozenset(k[0] for k in every) - below
            self._below[key] = below, by_parent
            for number in below:
                self._above.setdefault(number, set()).add(key)
            for number in by_parent:
                self._above_by_parent.setdefault(number, set()).add(key)
            todo += every - self._below.keys()

    def _raw(self, key: Key) -> object:
        if key == TRAILER:
            return self.view.trailer_view
        try:
            return self._revisions.raw(key, self.revision)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (a forged object raises anything)
            # Other readers may read it: what is refused without it stays refused.
            self.is_partial = True
            return None

    def referrers(self, number: int) -> Iterator[Key]:
        """Yield the objects that refer to a number, of whatever generation."""
        yield from self._above.get(number, ())
        yield from self._above_by_parent.get(number, ())

    def is_reachable(self, number: int) -> bool:
        """Return whether a number is referred to by anything below /Root."""
        root = self.view.root_ref.idnum
        seen, todo = {number}, [number]
        while todo:
            for key in self.referrers(todo.pop()):
                if key[0] == root:
                    return True
                if key != TRAILER and key[0] not in seen:
                    self.take()
                    seen.add(key[0])
                    todo.append(key[0])
        return False

    def page_of(self, number: int) -> int | None:
        """Return the page, from 1, that an object belongs to; None if to none.

        Of several pages the one that is fewest references away counts.
        """
        inner = {key[0] for key in self.pages.inner}
        if number in self.pages.numbers:
            return self.pages.numbers[number]
        # The first step counts /Parent: it may be what leads to the object.
        seen = {number, *(key[0] for key in self.referrers(number) if key != TRAILER)}
        row = [*(seen - inner)]
        while row:
            found = [self.pages.numbers[n] for n in row if n in self.pages.numbers]
            if found:
                return min(found)
            above = {
                key[0] for n in row for key in self._above.get(n, ()) if key != TRAILER
            }
            row = [*(above - seen - inner)]
            self.take(len(row))
            seen |= above
        return None

    def uses(self, number: int) -> list[Use]:
        """Return the places in other objects that refer to a number.

        Objects that the document no longer leads to count, too.

        Args:
            number: of the object, whatever the generation.
        """
        places: list[Use] = []
        for holder in {*self.referrers(number)}:
            if holder not in self._uses:
                self._uses[holder] = self._uses_in(holder)
            places += ((holder, path) for path in self._uses[holder].get(number, ()))
        return places

    def _uses_in(self, holder: Key) -> dict[int, list[Path]]:
        """Find the references in an object, by the number that they lead to."""
        found: dict[int, list[Path]] = {}
        todo: list[tuple[Any, Path]] = [(self._raw(holder), ())]
        while todo:
            value, path = todo.pop()
            self.take()
            if isinstance(value, DecryptedObjectProxy):
                value = value.raw_object
            if isinstance(value, IndirectObject):
                found.setdefault(value.idnum, []).append(path)
            elif isinstance(value, DictionaryObject):
                todo += ((item, (*path, key)) for key, item in dict.items(value))
            elif isinstance(value, ArrayObject):
                items = enumerate(list.__iter__(value))
                todo += ((item, (*path, at)) for at, item in items)
        return found

    def is_used(self, use: Use) -> bool:
        """Return whether the trailer leads to the object in which a use is."""
        if self._reachable is None:
            self._reachable = {TRAILER[0]}
            todo = [TRAILER]
            while todo:
                below, by_parent = self._below.get(todo.pop(), _NOTHING)
                for number in (below | by_parent) - self._reachable:
                    self.take()
                    self._reachable.add(number)
                    todo += self._revisions.keys_of(number)
        return use[0][0] in self._reachable


class PageNodes:
    """Nodes of a page tree; loops and shared nodes count once.

    Args:
        view: revision of the file.
        take: counts visited nodes.
    """

    def __init__(self, view: RevisionView, take: Any) -> None:
        self.nodes: set[Key] = set()
        """Nodes that are objects of their own, pages among them."""
        self.parents: dict[int, Key] = {}
        """Node above, by the number of the node below."""
        self.numbers: dict[int, int] = {}
        """Pages from 1, by the number of the object."""
        self.order: list[Key] = []
        """Pages in order; of a page within its /Kids, the node above."""
        self.inner: set[Key] = set()
        """Nodes that are no pages, and arrays of /Kids."""
        root = view.root.raw_get("/Pages")
        todo: list[tuple[Any, Key]] = [(root, _key(view.root_ref))]
        while todo:
            raw, above = todo.pop()
            take()
            key, node = key_of(raw) or above, raw.get_object()
            if not isinstance(node, DictionaryObject):
                continue
            if isinstance(raw, IndirectObject):
                if key in self.nodes:
                    continue
                self.nodes.add(key)
                self.parents[key[0]] = above
            kids = entry(node, "/Kids")
            if not isinstance(kids, ArrayObject):
                self.order.append(key)
                self.numbers.setdefault(key[0], len(self.order))
                continue
            self.inner.add(key)
            array = key_of(node.raw_get("/Kids"))
            if array is not None:
                self.inner.add(array)
                self.parents[array[0]] = key
            todo += [
                (kids.raw_get(at), array or key) for at in reversed(range(len(kids)))
            ]


def _key(ref: Reference) -> Key:
    return ref.idnum, ref.generation

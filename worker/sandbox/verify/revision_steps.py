"""Judgement of one revision against the one before it; for confined jobs only.

pyHanko's rules approve objects; what no rule approves is a change. This module applies
them to neighbouring revisions, with rules of its own where pyHanko is too lenient.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    Reference,
    StreamObject,
)
from pyhanko.pdf_utils.reader import HistoricalResolver, RawPdfPath
from pyhanko.sign.diff_analysis import (
    CatalogModificationRule,
    DocInfoRule,
    DSSCompareRule,
    MetadataUpdateRule,
    ModificationLevel,
    ObjectStreamRule,
    QualifiedWhitelistRule,
    ReferenceUpdate,
    SuspiciousModification,
    WhitelistRule,
    XrefStreamRule,
)
from pyhanko.sign.diff_analysis.constants import ROOT_EXEMPT_STRICT_COMPARISON
from pyhanko.sign.diff_analysis.form_rules_api import FormUpdate
from pyhanko.sign.diff_analysis.rules_api import (
    AbsoluteContext,
    ApprovalType,
    Context,
    RelativeContext,
)

from appliance.domain.documents.verification import FilledField
from worker.sandbox.inspect.pdf_objects import (
    Key,
    dictionary,
    entry,
    key_of,
    raw_items,
    resolve,
)
from worker.sandbox.verify.form_changes import FormNotes
from worker.sandbox.verify.form_rules import FormRule
from worker.sandbox.verify.new_annotations import NewAnnotations
from worker.sandbox.verify.page_entries import copied_entries, demand_same_entries
from worker.sandbox.verify.revisions import (
    TRAILER,
    PageNodes,
    ReferenceIndex,
    RevisionView,
    Use,
    differs_in_kind,
    references,
    same,
)
from worker.sandbox.verify.step_context import Objection, StepContext

_VERSION: Final = re.compile(r"/(\d)\.(\d)")
_Approval = tuple[ModificationLevel, ReferenceUpdate]


_METADATA: Final = "the metadata was changed after it, and is no plain XMP"


class UnexaminedError(Exception):
    """A change that could not be examined, with the obstacle in words.

    Args:
        reason: words for people, without text of the file.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Step:
    """Allowed changes from one revision to the next."""

    level: ModificationLevel
    """Strictest level that allows all of them."""
    locked: frozenset[str] = frozenset()
    """Fields, by the names that locks use, whose changes a lock forbids."""
    uncertified: frozenset[str] = frozenset()
    """Fields whose changes any DocMDP level forbids."""
    marks: tuple[tuple[Key, str], ...] = ()
    """New signature fields that can be seen, with their names: each must be signed in
    the end."""
    values: tuple[FilledField, ...] = ()
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Filled fields whose looks no text can be compared with, and why."""
    annotated: tuple[int, ...] = ()
    """1-based pages to which annotations were added."""


def judge(index: ReferenceIndex, new: RevisionView) -> Step:
    """Compare the revision at which an index stands with the next one.

    Args:
        index: the earlier revision.
        new: the later revision.

    Raises:
        UnexaminedError: a change cannot be examined.
        Objection: a change is not allowed.
        DocumentRefusedError: the budget of the index is used up.
    """
    revisions = new.revisions
    changed = revisions.defined_in(new.revision)
    step = StepContext(index, index.view, new, changed)
    _demand_readable(step)
    _demand_numbers_free(step)
    _demand_same_kinds(step)
    approvals: dict[Key, list[_Approval]] = {}
    for level, update in _approvals(step):
        _add(step, approvals, level, update)
    annotations = NewAnnotations(step)
    for level, update in annotations.apply():
        _add(step, approvals, level, update)
    if _keeps(step, [(step.old.root, step.new.root, "/AcroForm")]):
        try:
            found = _level(step, approvals)
            return Step(found, annotated=tuple(annotations.pages))
        except Objection:
            # The form may allow what is left.
            pass
    notes = FormNotes()
    locked: set[str] = set()
    uncertified: set[str] = set()
    for level, update in _form_approvals(step, notes):
        if not _add(step, approvals, level, update) or update.field_name is None:
            continue
        if not update.valid_when_locked:
            locked.add(str(update.field_name))
        if not update.valid_when_certifying:
            uncertified.add(str(update.field_name))
    return Step(
        _level(step, approvals),
        frozenset(locked),
        frozenset(uncertified),
        tuple(notes.marks.items()),
        tuple(notes.values),
        notes.doubts,
        tuple(annotations.pages),
    )


def _add(
    step: StepContext,
    approvals: dict[Key, list[_Approval]],
    level: ModificationLevel,
    update: ReferenceUpdate,
) -> bool:
    """Add an approval; false if the step does not change that object."""
    key = (update.updated_ref.idnum, update.updated_ref.generation)
    if key not in step.changed:
        return False
    approvals.setdefault(key, []).append((level, update))
    return True


def _level(
    step: StepContext, approvals: dict[Key, list[_Approval]]
) -> ModificationLevel:
    """Find the level at which all changes are allowed.

    Raises:
        Objection: an object was changed without approval.
    """
    fresh = {
        key
        for key in step.changed
        if not step.old.revisions.in_use(key[0], step.old.revision)
    }
    pending = step.changed - _orphans(step, fresh)
    level = ModificationLevel.LTA_UPDATES
    objections: list[Key] = []
    for key in sorted(pending):
        given = approvals.get(key, [])
        allowed = (
            min((each for each, _ in given), default=None)
            if key in fresh
            else _cleared(step, key, given)
        )
        if allowed is not None:
            level = max(level, allowed)
        elif key in fresh or not _is_same(step, key):
            objections.append(key)
    if objections:
        raise Objection(_reason(step, objections))
    return level


def _demand_readable(step: StepContext) -> None:
    """Demand that each replaced object can be read.

    Raises:
        Objection: one cannot; whatever it is, it is not what was signed.
    """
    revisions = step.old.revisions
    for key in sorted(step.changed):
        try:
            revisions.raw(key, step.new.revision)
        except MemoryError:
            raise
        except Exception as exc:
            if revisions.in_use(key[0], step.old.revision):
                raise Objection(_reason(step, [key])) from exc
            raise


def _demand_same_kinds(step: StepContext) -> None:
    """Demand that no value of a replaced object is another one for readers alone.

    Raises:
        Objection: a name became a string, or an integer a real number.
    """
    for key in sorted(step.changed):
        if step.old.revisions.last_change(key, step.old.revision) is None:
            continue
        old, new = (view(Reference(*key)) for view in (step.old, step.new))
        # A drawing or metadata stream is replaced as a whole.
        is_stream = isinstance(old, StreamObject) and isinstance(new, StreamObject)
        if not is_stream and differs_in_kind(old, new):
            raise Objection(_reason(step, [key]))


def _cleared(
    step: StepContext, key: Key, approvals: list[_Approval]
) -> ModificationLevel | None:
    """Find the level that approves each use of an object.

    A rule approves one place from which an object is referred to, and knows the
    object by that place. Any other place may give it another meaning, so that the
    places count and not the paths from the trailer, which grow without bound.

    Returns:
        None if a use remains that no rule expects.
    """
    left: set[Use | None] = {*step.index.uses(key[0])}
    level = ModificationLevel.NONE
    for each, update in approvals:
        level = max(level, each)
        if update.approval_type is not ApprovalType.BLANKET_APPROVE:
            left.discard(_place_of(step, update.context_checked))
        elif key in step.index.pages.nodes or key == _key(step.old.root_ref):
            # Links and the like refer to pages from everywhere.
            return level
        if not left:
            return level
    if approvals and not any(use and step.index.is_used(use) for use in left):
        return level
    return None


def _place_of(step: StepContext, context: object) -> Use | None:
    """Return the place that an approval names.

    Returns:
        None if there was none before, or if something else leads there, too.
    """
    root = _key(step.old.root_ref)
    if isinstance(context, RelativeContext):
        anchor = context.anchor
        above = _key(anchor) if isinstance(anchor, Reference) else TRAILER
        return above, tuple(context.relative_path.path)
    holder: Key = TRAILER
    within: list[str | int] = []
    value: object = step.old.trailer_view
    for part in context.path.path if isinstance(context, AbsoluteContext) else ():
        key = key_of(value)
        if key is not None:
            place = holder, tuple(within)
            if key != root and any(
                use != place and step.index.is_used(use)
                for use in step.index.uses(key[0])
            ):
                return None
            holder, within = key, []
            value = resolve(value)
        if isinstance(value, DictionaryObject) and isinstance(part, str):
            value = value.raw_get(part) if part in value else None
        elif isinstance(value, ArrayObject) and isinstance(part, int):
            if part >= len(value):
                return None
            value = value.raw_get(part)
        if value is None:
            return None
        within.append(part)
    return holder, tuple(within)


def _is_same(step: StepContext, key: Key) -> bool:
    """Return whether an object was written again as it was."""
    ref = Reference(*key)
    before = step.old.revisions.last_change(key, step.old.revision)
    if before is None:
        return False
    old, new = step.old(ref), step.new(ref)
    if key[0] in step.index.pages.numbers and isinstance(new, DictionaryObject):
        copied = copied_entries(step, key)
        new = DictionaryObject({k: v for k, v in dict.items(new) if k not in copied})
    return same(old, new)


def _orphans(step: StepContext, fresh: set[Key]) -> set[Key]:
    """Find the new objects that neither a replaced object nor the trailer leads to."""
    revisions, at = step.new.revisions, step.new.revision
    by_number: dict[int, list[Key]] = {}
    for key in fresh:
        by_number.setdefault(key[0], []).append(key)
    todo: list[object] = [step.new.trailer_view]
    todo += (revisions.raw(key, at) for key in step.changed - fresh)
    left = set(fresh)
    while todo and left:
        for key in references(todo.pop()):
            for one in by_number.pop(key[0], ()):
                left.discard(one)
                todo.append(revisions.raw(one, at))
    return left


def demand_same_trailer(old: RevisionView, new: RevisionView) -> None:
    """Demand that a later trailer leads to the same catalog with the same key.

    pyHanko takes a missing entry from an older trailer. Readers take the last one.

    Args:
        old: the earlier revision.
        new: the later revision.

    Raises:
        Objection: /Root, /Encrypt or the first element of /ID is different or gone.

    Source: ISO 32000-2, 7.5.5 and 14.4 (the first element of /ID never changes).
    """
    trailers = new.reader.trailer._trailer_revisions  # noqa: SLF001 (no public way to one trailer)
    now = trailers[len(trailers) - 1 - new.revision]
    had = old.trailer_view
    if key_of(_raw(now, "/Root")) != key_of(_raw(had, "/Root")):
        raise Objection("the trailer names another document catalog")
    before, after = (_raw(each, "/Encrypt") for each in (had, now))
    # `same` compares the numbers of two references.
    if (before is None) != (after is None) or not same(before, after):
        raise Objection("the encryption was changed after it")
    known, later = (list(raw_items(entry(each, "/ID"))) for each in (had, now))
    is_missing = not later and before is not None
    if known and (is_missing or (later and _octets(known[0]) != _octets(later[0]))):
        raise Objection("the file identifier was changed after it")


def _key(ref: Reference) -> Key:
    return ref.idnum, ref.generation


def _octets(value: object) -> object:
    return getattr(value, "original_bytes", value)


def _raw(holder: DictionaryObject, key: str) -> object:
    return holder.raw_get(key) if key in holder else None


def _demand_numbers_free(step: StepContext) -> None:
    """Demand that objects are replaced or added, not freed or referred to before.

    pyHanko calls an object without a path from the replaced ones an orphan. Where the
    signed revision refers to a number that it does not define, a later definition
    shows what was never signed. Only /Root counts: hybrid files of LibreOffice have
    other trailer entries that refer to undefined numbers.

    Source: ISO 32000-2, 7.3.10 (such a reference is to null).

    Raises:
        Objection: an object that anything refers to was freed, one got another
            generation, or fills such a gap; an object stream was replaced or freed.
    """
    revisions, at = step.old.revisions, step.old.revision
    for number in sorted(revisions.freed_in(step.new.revision)):
        if revisions.in_use(number, at) and (
            any(step.index.referrers(number)) or revisions.holds_objects(number, at)
        ):
            page = step.index.page_of(number)
            raise Objection(_gone(page, number))
    for key in sorted(step.changed):
        if revisions.holds_objects(key[0], at):
            # Nothing refers to such a stream, and all of its objects change with it.
            raise Objection(f"the object stream {key[0]} was replaced after it")
        if revisions.last_change(key, at) is not None:
            continue
        if revisions.in_use(key[0], at):
            # References name a generation, and many readers ignore it.
            raise Objection(f"object {key[0]} was given a second generation after it")
        if step.index.is_reachable(key[0]):
            page = step.index.page_of(key[0])
            where = "the document" if page is None else f"page {page}"
            raise Objection(
                f"{where} refers to object {key[0]}, which was added after it"
            )


def _gone(page: int | None, number: int) -> str:
    where = "" if page is None else f" of page {page}"
    return f"object {number}{where} was removed after it"


def _reason(step: StepContext, keys: list[Key]) -> str:
    """Name a changed page, or a changed object where no page is concerned."""
    nodes = step.index.pages
    places = []
    for key in keys:
        if key in nodes.inner:
            return _tree_reason(step, key[0])
        page = step.index.page_of(key[0])
        if page is not None:
            places.append((page, key[0] not in nodes.numbers, key[0]))
    if places:
        page, _, number = min(places)
        return f"page {page} was changed after it (object {number})"
    return f"object {keys[0][0]} was changed after it"


def _tree_reason(step: StepContext, changed: int) -> str:
    """Name the first page that was added, removed or replaced.

    Args:
        step: the two revisions.
        changed: number of a node of the page tree that the later one replaces.
    """
    before = step.index.pages.order
    after = PageNodes(step.new, step.index.take).order
    first = next(
        (
            at
            for at, pair in enumerate(zip(before, after, strict=False))
            if len({*pair}) > 1
        ),
        min(len(before), len(after)),
    )
    if len(before) == len(after) == first:
        return f"the page tree was changed after it (object {changed})"
    kind = "replaced"
    if len(before) != len(after):
        kind = "added" if len(after) > len(before) else "removed"
    return f"page {first + 1} was {kind} after it (object {changed})"


def _approvals(step: StepContext) -> Iterator[_Approval]:
    """Yield what the rules for all but the form approve.

    Raises:
        Objection: a rule objects; pyHanko's own words are replaced.
    """
    root = step.old.root_ref.idnum
    lta = ModificationLevel.LTA_UPDATES
    rules: list[tuple[QualifiedWhitelistRule, str]] = [
        (_CatalogRule(), f"the document catalog was changed after it (object {root})"),
        (DocInfoRule().as_qualified(lta), "the document information was replaced"),
        (_XrefStreams().as_qualified(lta), "a cross-reference stream was replaced"),
        (ObjectStreamRule().as_qualified(lta), "an object stream was replaced"),
        (
            _Unless(_keeps_dss, step, DSSCompareRule()).as_qualified(lta),
            f"validation data was removed after it (object {_object_of(step, '/DSS')})",
        ),
        (
            _Unless(_keeps_metadata, step, MetadataUpdateRule()).as_qualified(lta),
            _METADATA,
        ),
    ]
    for rule, reason in rules:
        try:
            yield from rule.apply_qualified(step.old, step.new)
        except Objection:
            raise
        except SuspiciousModification as exc:
            if reason is _METADATA and not all(
                _is_plain_xmp(each.root) for each in (step.old, step.new)
            ):
                raise UnexaminedError(reason) from exc
            raise Objection(reason) from exc


def _is_plain_xmp(catalog: DictionaryObject) -> bool:
    """Return whether pyHanko can read the metadata, or there is none.

    It reads XMP in UTF-8 with an `x:xmpmeta`. Both may be otherwise.

    Source: ISO 16684-1, 7.3.
    """
    raw = catalog.raw_get("/Metadata") if "/Metadata" in catalog else None
    if not isinstance(entry(catalog, "/Metadata"), StreamObject):
        return True
    if not isinstance(raw, IndirectObject):
        return True
    try:
        MetadataUpdateRule.is_well_formed_xml(raw.reference)
    except SuspiciousModification:
        return False
    return True


def _form_approvals(
    step: StepContext, notes: FormNotes
) -> Iterator[tuple[ModificationLevel, FormUpdate]]:
    """Yield what the rules for the form approve.

    Raises:
        Objection: a rule objects; pyHanko's own words are replaced.
    """
    if dictionary(step.old.root, "/AcroForm") is None and (
        dictionary(step.new.root, "/AcroForm") is None
    ):
        return
    try:
        yield from FormRule(step, notes).apply()
    except Objection:
        raise
    except SuspiciousModification as exc:
        at = _object_of(step, "/AcroForm")
        raise Objection(f"the form was changed after it (object {at})") from exc


class _Unless(WhitelistRule):
    """A rule of pyHanko, left out where the step does not concern it.

    Its rules read all validation data and parse all metadata again for each pair of
    revisions. Without the rule nothing is approved, so that this is never more lenient.

    Args:
        keeps: whether the step leaves untouched what the rule judges.
        step: the two revisions.
        rule: the rule.
    """

    def __init__(
        self,
        keeps: Callable[[StepContext], bool],
        step: StepContext,
        rule: WhitelistRule,
    ) -> None:
        self._keeps = keeps
        self._step = step
        self._rule = rule

    def apply(
        self, old: HistoricalResolver, new: HistoricalResolver
    ) -> Iterable[ReferenceUpdate]:
        """Yield what the rule approves.

        Args:
            old: the revision before.
            new: the revision after.
        """
        return () if self._keeps(self._step) else self._rule.apply(old, new)


def _object_of(step: StepContext, key: str) -> int:
    """Return the object of a catalog's entry before the step; else the catalog's."""
    root = step.old.root
    found = key_of(root.raw_get(key)) if key in root else None
    return int(step.old.root_ref.idnum) if found is None else found[0]


def _keeps(step: StepContext, holders: Iterable[tuple[object, object, str]]) -> bool:
    """Return whether entries are as they were, and their objects, too."""
    for before, after, key in holders:
        old, new = (
            _raw(each, key) if isinstance(each, DictionaryObject) else None
            for each in (before, after)
        )
        if key_of(new) in step.changed or not same(old, new):
            return False
    return True


def _keeps_dss(step: StepContext) -> bool:
    before, after = (dictionary(each.root, "/DSS") for each in (step.old, step.new))
    parts = ("/Certs", "/CRLs", "/OCSPs", "/VRI")
    return _keeps(
        step,
        [
            (step.old.root, step.new.root, "/DSS"),
            *((before, after, part) for part in parts),
        ],
    )


def _keeps_metadata(step: StepContext) -> bool:
    return _keeps(step, [(step.old.root, step.new.root, "/Metadata")])


class _CatalogRule(QualifiedWhitelistRule):
    """pyHanko's rule for the catalog, with values of the right kinds.

    pyHanko does not look at the entries that it lets change. /Extensions changes
    nothing that is shown. By /MarkInfo a reader takes the text of tags for the page's.
    A lower /Version makes a reader ignore newer features, layers and transparency
    among them.

    Source: ISO 32000-2, 7.7.2.
    """

    def apply_qualified(
        self, old: HistoricalResolver, new: HistoricalResolver
    ) -> Iterable[_Approval]:
        """Yield the catalog if its changes are allowed.

        Args:
            old: the revision before.
            new: the revision after.

        Raises:
            Objection: an entry is of another kind, was removed, or is lower.
        """
        before, after = old.root, new.root
        for key in ("/Extensions", "/MarkInfo", "/Metadata", "/Version"):
            if key in before and key not in after:
                raise Objection(f"{key} of the document catalog was removed after it")
        for key in ("/Extensions", "/MarkInfo"):
            if key in after and not isinstance(entry(after, key), DictionaryObject):
                raise Objection(f"{key} of the document catalog is no dictionary")
        # Some readers take the later of this and the header's, others this alone.
        header = new.reader._header_version or (0, 0)  # noqa: SLF001 (no public way)
        if not same(_raw(before, "/Version"), _raw(after, "/Version")) and (
            _version(after) < max(header, _version(before))
        ):
            raise Objection("the document's PDF version was lowered after it")
        if _marked(before) != _marked(after):
            raise Objection("the document's tags were switched on or off after it")
        demand_same_entries(before, after, ROOT_EXEMPT_STRICT_COMPARISON)
        rule = CatalogModificationRule()
        return rule.apply_qualified(old, new)


def _marked(catalog: DictionaryObject) -> list[bool]:
    """Return what /MarkInfo says of tags, if there are any.

    Source: ISO 32000-2, table 353.
    """
    if entry(catalog, "/StructTreeRoot") is None:
        return []
    marks = dictionary(catalog, "/MarkInfo")
    values = (entry(marks, key) for key in ("/Marked", "/UserProperties", "/Suspects"))
    return [isinstance(each, BooleanObject) and each.value for each in values]


def _version(catalog: DictionaryObject) -> tuple[int, int]:
    """Read /Version; (0, 0) if there is none.

    Raises:
        Objection: it is no version.
    """
    value = entry(catalog, "/Version")
    if value is None:
        return 0, 0
    found = _VERSION.fullmatch(value) if isinstance(value, NameObject) else None
    if found is None:
        raise Objection("/Version of the document catalog is no version")
    return int(found[1]), int(found[2])


class _XrefStreams(XrefStreamRule):
    """pyHanko's rule for cross-reference streams, with numbers that are used again.

    Some writers give each cross-reference stream the number of the one before, which
    nothing refers to.
    """

    def apply(
        self, old: HistoricalResolver, new: HistoricalResolver
    ) -> Iterable[ReferenceUpdate]:
        """Yield the later revision's cross-reference stream.

        Args:
            old: the revision before.
            new: the revision after.
        """
        yield from super().apply(old, new)
        xrefs = new.reader.xrefs
        ref = xrefs.get_xref_container_info(new.revision).stream_ref
        earlier = (
            xrefs.get_xref_container_info(new.revision - 1).stream_ref
            if new.revision
            else None
        )
        if ref is not None and ref == earlier:
            # Approved by no path at all: anything that refers to it remains.
            yield ReferenceUpdate(ref, Context.from_absolute(old, RawPdfPath()))

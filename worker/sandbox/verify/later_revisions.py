"""Changes that follow each signature of a file; for confined jobs only.

Each pair of neighbouring revisions is judged once, and the answer for a signature is
composed of the steps after its own revision. That costs time linear in revisions, where
pyHanko compares each signed revision with each later one.

The composed answer is no more lenient than pyHanko's, for these reasons:

- Each step allows a replaced object only where all its paths in the revision just
  before are approved, and leaves everything outside the form's values, validation data,
  metadata and lists of marks as it was. So that part is equal in all revisions, and a
  step's comparison of it is one with the signed revision.
- An object that a later revision adds is new for the step that adds it only. If the
  next revision replaces it, the step treats it as an existing object; pyHanko still
  treats it as new, and lets it be replaced by anything.
- Entries that may not be removed (/DSS, /VRI, /Fields and the like) are kept in each
  step, so over all steps.
- Levels, changed fields, and what locks and certifications forbid are facts of a step.
  They are joined over the steps, and each signature's permissions are applied to them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyhanko.pdf_utils.generic import DictionaryObject, Reference
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import FieldMDPSpec, enumerate_sig_fields
from pyhanko.sign.validation import EmbeddedPdfSignature

from appliance.domain.documents.verification import Answer, FilledField
from worker.sandbox.inspect.pdf_objects import (
    Budget,
    Key,
    dictionary,
    entry,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)
from worker.sandbox.verify.revision_steps import (
    Step,
    UnexaminedError,
    demand_same_trailer,
    judge,
)
from worker.sandbox.verify.revisions import ReferenceIndex, Revisions
from worker.sandbox.verify.step_context import Objection, title_of

_STEPS: Final = 5_000_000
"""Objects and path elements that are visited at most, in all revisions together."""
_ANNOTATIONS: Final = 3
"""DocMDP level that permits annotations."""
_REVISIONS: Final = 1_500
"""Revisions after a signature that are compared: three for each of 500 signatures.
pyHanko searches all trailers for each object that it reads."""


@dataclass(frozen=True, slots=True)
class LaterChanges:
    """Changes that follow one signature."""

    answer: Answer
    """Yes: only changes follow that the signature and earlier ones allow."""
    reason: str
    """Why the answer is not yes, in words; empty if it is."""
    fields: frozenset[str]
    """Form fields that were changed, filled in or signed."""
    filled: tuple[FilledField, ...]
    """Values that were filled in, in order of the fields' exact full names."""
    doubts: Mapping[str, str]
    """Exact full names of filled fields whose looks no text can be compared with, and
    why."""
    objects: frozenset[int]
    """Numbers of all objects that later revisions define."""
    annotated: frozenset[int] = frozenset()
    """1-based pages to which annotations were added, as permitted."""


@dataclass(frozen=True, slots=True)
class _Composed:
    """Steps from one revision to the newest."""

    answer: Answer
    reason: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Permissions:
    """Modifications that a signature and all earlier ones allow."""

    level: int | None
    """DocMDP level 1 to 3; None without restriction."""
    locks: list[FieldMDPSpec]


class LaterRevisions:
    """Judge of what follows each revision of one open file.

    Ask for signatures in the order of their revisions: the cost is then linear.

    Args:
        reader: the open file; its decryption must be done.
    """

    def __init__(self, reader: PdfFileReader) -> None:
        self._reader = reader
        self._revisions: Revisions | None = None
        self._index: ReferenceIndex | None = None
        self._budget = Budget(_STEPS)
        self._steps: dict[int, Step | Objection | str] = {}
        """Judgements, by the number of the later revision; text: unchecked."""
        self._signed: frozenset[Key | None] | None = None
        self._permissions: list[tuple[int, _Permissions]] | None = None

    def changes_after(self, signature: EmbeddedPdfSignature) -> LaterChanges:
        """Judge what follows a signature, by its own and all earlier permissions.

        The signature must cover its whole revision, by four byte offsets.

        Args:
            signature: any of the file.
        """
        return self.changes_after_revision(self._last_signed(signature))

    def _last_signed(self, signature: EmbeddedPdfSignature) -> int:
        """Return the last revision within the signed bytes.

        A linearized file has two cross-reference sections, and the signature is in
        the first of them.

        Source: ISO 32000-2, Annex F.
        """
        revision = int(signature.signed_revision)
        ranges = [number(each) for each in raw_items(signature.byte_range)]
        if len(ranges) != 4 or None in ranges:  # noqa: PLR2004 (two ranges)
            return revision
        end = (ranges[2] or 0) + (ranges[3] or 0)
        xrefs = self._reader.xrefs
        while revision + 1 < xrefs.total_revisions and (
            xrefs.get_xref_container_info(revision + 1).end_location <= end
        ):
            revision += 1
        return revision

    def changes_after_revision(self, revision: int) -> LaterChanges:
        """Judge what follows a signed revision.

        Args:
            revision: its number, the oldest being 0.
        """
        composed = self._compose(revision)
        objects = self._objects(revision)
        steps = composed.steps
        fields = frozenset(name for step in steps for name in step.locked)
        filled = _joined(steps)
        answer, reason = composed.answer, composed.reason
        if answer is Answer.YES and steps:
            try:
                reason = self._forbidden(steps, self._permissions_at(revision), filled)
                answer = Answer.NO if reason else Answer.YES
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 (forged permissions raise anything)
                answer = Answer.UNCHECKED
                reason = "the changes that the signatures permit cannot be read"
        annotated = frozenset(page for step in steps for page in step.annotated)
        if answer is Answer.YES and annotated:
            answer = Answer.UNCHECKED
            reason = (
                f"page {min(annotated)} got annotations, which it permits and which"
            )
            reason += " may hide what was signed"
        return LaterChanges(
            answer,
            reason,
            frozenset(title_of(each) for each in fields),
            filled,
            {name: why for step in steps for name, why in step.doubts.items()},
            objects,
            annotated if answer is Answer.UNCHECKED else frozenset(),
        )

    def is_last(self, revision: int) -> bool:
        """Return whether no revision follows.

        Args:
            revision: its number, the oldest being 0.
        """
        return revision >= int(self._reader.xrefs.total_revisions) - 1

    def page_of(self, number: int) -> int | None:
        """Return the page, from 1, that an object of the newest revision belongs to.

        Args:
            number: of the object.

        Returns:
            None if it belongs to none, or the objects cannot be read.
        """
        try:
            return self._index_at(self._opened().count - 1).page_of(number)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (forged objects raise anything)
            return None

    def _forbidden(
        self,
        steps: tuple[Step, ...],
        own: _Permissions,
        filled: tuple[FilledField, ...],
    ) -> str:
        """Say what the permissions do not allow; empty if they allow all."""
        for step in steps:
            for title in sorted(step.locked):
                if any(lock.is_locked(title) for lock in own.locks):
                    return f'the locked field "{title_of(title)}" was changed after it'
            for key, title in step.marks:
                if key not in self._signed_fields():
                    shown = title_of(title)
                    return f'the visible field "{shown}" was added and not signed'
            if reason := _beyond_level(step, own.level, filled):
                return reason
        return ""

    def _compose(self, revision: int) -> _Composed:
        """Join the steps after a revision; a refused one outweighs an unchecked one."""
        steps: list[Step] = []
        unchecked = ""
        try:
            count = self._opened().count
            if count - revision > _REVISIONS:
                unchecked = "too many revisions follow"
                return _Composed(Answer.UNCHECKED, unchecked, ())
            for later in range(revision + 1, count):
                found = self._step(later)
                if isinstance(found, Objection):
                    return _Composed(Answer.NO, found.reason, tuple(steps))
                if isinstance(found, str):
                    unchecked = unchecked or found
                else:
                    steps.append(found)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (forged cross-references raise anything)
            unchecked = "the file's cross-reference sections cannot be read"
        answer = Answer.UNCHECKED if unchecked else Answer.YES
        return _Composed(answer, unchecked, tuple(steps))

    def _opened(self) -> Revisions:
        if self._revisions is None:
            self._revisions = Revisions(self._reader)
        return self._revisions

    def _step(self, later: int) -> Step | Objection | str:
        """Judge a revision against the one before it, once."""
        if later not in self._steps:
            unchecked = f"revision {later + 1} cannot be compared with the one before"
            try:
                new = self._opened().view(later)
                demand_same_trailer(self._opened().view(later - 1), new)
                index = self._index_at(later - 1)
                found = judge(index, new)
                self._steps[later] = unchecked if index.is_partial else found
            except Objection as exc:
                self._steps[later] = exc
            except UnexaminedError as exc:
                self._steps[later] = exc.reason
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 (a forged revision raises anything)
                # Not a refusal: pyHanko's rules raise on some honest oddities.
                self._steps[later] = unchecked
        return self._steps[later]

    def _index_at(self, revision: int) -> ReferenceIndex:
        """Move the index to a revision, or make it again for an earlier one."""
        # An index that fails midway is useless: keep none until it stands.
        index, self._index = self._index, None
        if index is None or index.revision > revision:
            index = ReferenceIndex(self._opened(), revision, self._budget)
        while index.revision < revision:
            index.advance()
        self._index = index
        return index

    def _objects(self, revision: int) -> frozenset[int]:
        try:
            revisions = self._opened()
            return frozenset(
                key[0]
                for later in range(revision + 1, revisions.count)
                for key in revisions.defined_in(later)
            )
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 (forged cross-references raise anything)
            return frozenset()

    def _signed_fields(self) -> frozenset[Key | None]:
        """Return the fields with a signature, which has an answer of its own."""
        if self._signed is None:
            self._signed = frozenset(
                key_of(node)
                for _, value, node in enumerate_sig_fields(
                    self._reader, filled_status=True
                )
                if name(value.get_object(), "/Type") != "/DocTimeStamp"
            )
        return self._signed

    def _permissions_at(self, revision: int) -> _Permissions:
        """Join the permissions of the signatures up to a revision.

        A broken signature restricts later changes as any other.
        """
        if self._permissions is None:
            self._permissions = _permissions_of(self._reader)
        found = [p for at, p in self._permissions if at <= revision]
        levels = [each.level for each in found if each.level is not None]
        return _Permissions(
            min(levels, default=None), [lock for each in found for lock in each.locks]
        )


def _beyond_level(
    step: Step, level: int | None, filled: tuple[FilledField, ...]
) -> str:
    """Say what a DocMDP level does not allow; empty if it allows all.

    Args:
        step: the changes.
        level: 1 to 3; None without restriction.
        filled: values that were filled in by all steps.
    """
    if step.annotated and level != _ANNOTATIONS:
        return f"page {step.annotated[0]} got annotations after it"
    if level is None:
        return ""
    if step.uncertified:
        title = title_of(min(step.uncertified))
        return f'the visible field "{title}" was added, which it forbids'
    if step.level.value <= level:
        return ""
    names = [each.name for each in filled] or sorted(step.locked)
    if not names:
        return "the document was changed after it, which it forbids"
    return f'the field "{title_of(names[0])}" was changed after it, which it forbids'


def _permissions_of(reader: PdfFileReader) -> list[tuple[int, _Permissions]]:
    """Read what each signature permits, with the revision that it signed.

    Source: ISO 32000-2, 12.8.2.2 (DocMDP), 12.8.2.4 (FieldMDP), 12.7.5.5 (/Lock).
    """
    found: list[tuple[int, _Permissions]] = []
    for _, value, node in enumerate_sig_fields(reader, filled_status=True):
        signature, key = value.get_object(), key_of(value)
        if not isinstance(signature, DictionaryObject):
            continue
        at = 0
        if key is not None:
            at = reader.xrefs.get_last_change(Reference(*key, pdf=reader))
        lock = dictionary(resolve(node), "/Lock")
        levels = [number(entry(lock, "/P"))] if entry(lock, "/P") is not None else []
        locks = [] if lock is None or "/Action" not in lock else [lock]
        for raw in raw_items(entry(signature, "/Reference")):
            reference = resolve(raw)
            params = dictionary(reference, "/TransformParams")
            method = name(reference, "/TransformMethod")
            if method == "/DocMDP":
                level = entry(params, "/P")
                levels.append(2 if level is None else number(level))
            elif method == "/FieldMDP" and params is not None:
                locks.append(params)
        # A level that is none forbids at least what the strictest one does.
        known = [int(each) if each in {1, 2, 3} else 1 for each in levels]
        specs = [FieldMDPSpec.from_pdf_object(each) for each in locks]
        if known or specs:
            found.append((at, _Permissions(min(known, default=None), specs)))
    return found


def _joined(steps: Iterable[Step]) -> tuple[FilledField, ...]:
    """Join the changes of each field: its first value, and its last one."""
    found: dict[str, FilledField] = {}
    for step in steps:
        for each in step.values:
            first = found.get(each.name, each)
            found[each.name] = FilledField(each.name, first.before, each.after)
    return tuple(found[each] for each in sorted(found))

"""What earlier signatures and empty fields allow; runs in a confined job only.

Source: ISO 32000-2, 12.7.5.5, 12.8.2; `appliance.domain.documents.inspected`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyhanko.pdf_utils.generic import BooleanObject, DictionaryObject, StreamObject

from appliance.domain.documents.inspected import (
    FIELD_LOOK,
    FIELDS_KEPT,
    NAME_LENGTH,
    EmptyField,
    Rect,
    SigningFacts,
)
from worker.pades.pdf.form_fields import SignatureField, signature_fields, widget_rect
from worker.sandbox.inspect.field_looks import speaks
from worker.sandbox.inspect.pages import Page
from worker.sandbox.inspect.pdf_objects import (
    Key,
    dictionary,
    entry,
    key_of,
    name,
    number,
    raw_items,
    resolve,
)

_UNSEEN: Final = 0x01 | 0x02 | 0x20  # Invisible, Hidden, NoView
_NO_CHANGES: Final = 1
_DEFAULT_P: Final = 2
_VERSION: Final = 3  # of seed value dictionaries: PDF 2.0
# Bits of /Ff, ISO 32000-2, table 237; those of the certificate, table 238, that
# say who may sign rather than where to get a certificate.
_V, _REVOCATION, _DIGESTS = 4, 32, 64
_WHO: Final = 1 | 2 | 4 | 8 | 32
_TAKEN: Final = (
    (1, "/Filter", {"/Adobe.PPKLite"}),
    (2, "/SubFilter", {"/ETSI.CAdES.detached"}),
    # A lone full stop stands for: no reason at all.
    (8, "/Reasons", {"."}),
    (16, "/LegalAttestation", set[str]()),
    (128, "/LockDocument", {"/false"}),
    (256, "/AppearanceFilter", set[str]()),
)
"""Bits of /Ff, what they make binding, and which of the values we have."""


@dataclass(frozen=True, slots=True)
class _Lock:
    """A FieldMDP policy."""

    action: str
    names: tuple[str, ...]

    def covers(self, field: str) -> bool:
        """Whether it locks a field of that full name."""
        named = any(field == one or field.startswith(f"{one}.") for one in self.names)
        if self.action == "/Include":
            return named
        return not (self.action == "/Exclude" and named)

    @property
    def covers_new(self) -> bool:
        """Whether it locks fields whose names it cannot know."""
        return self.action != "/Include"


def signing_facts(catalog: DictionaryObject, pages: Sequence[Page]) -> SigningFacts:
    """Gather what the signature fields say.

    Args:
        catalog: of the document.
        pages: by walking.

    Raises:
        DocumentRefusedError: `PDF_TOO_COMPLEX`.
    """
    fields = [
        field
        for field in signature_fields(catalog)
        if len(field.name) <= NAME_LENGTH and field.name.isprintable()
    ][:FIELDS_KEPT]
    if not fields:
        return SigningFacts()
    signed = [field for field in fields if field.value is not None]
    levels = [level for field in signed for level in _levels(field)]
    locks = [lock for field in signed for lock in _locks(field)]
    empty = [field for field in fields if field.value is None]
    places = _places(pages) if empty else {}
    above = {part for field in empty for part in _with_parents(field.name)}
    return SigningFacts(
        permitted=min(levels, default=None),
        new_locked=any(lock.covers_new for lock in locks),
        empty=_bounded(_empty(field, locks, places, above) for field in empty),
        signed=tuple(field.name for field in signed),
    )


def _levels(field: SignatureField) -> Iterator[int]:
    """What a signature permits after it: its DocMDP, and the P of its lock.

    Acrobat writes the P of an approval signature into its FieldMDP parameters.
    """
    for reference in _references(field):
        parameters = dictionary(reference, "/TransformParams")
        level = number(entry(parameters, "/P"))
        if name(reference, "/TransformMethod") == "/DocMDP":
            yield _DEFAULT_P if level is None else _strict(level)
        elif level is not None:
            yield _strict(level)
    level = number(entry(dictionary(field.node, "/Lock"), "/P"))
    if level is not None:
        yield _strict(level)


def _strict(level: float) -> int:
    """P as it binds: an odd level forbids at least what the strictest one does."""
    return int(level) if level in {1, 2, 3} else _NO_CHANGES


def _locks(field: SignatureField) -> Iterator[_Lock]:
    """The policies that a signature's parameters and its field's lock state."""
    for reference in _references(field):
        if name(reference, "/TransformMethod") == "/FieldMDP":
            yield from _lock(dictionary(reference, "/TransformParams"))
    yield from _lock(dictionary(field.node, "/Lock"))


def _lock(policy: DictionaryObject | None) -> Iterator[_Lock]:
    action = name(policy, "/Action")
    if action is not None:
        yield _Lock(action, _words(policy, "/Fields"))


def _references(field: SignatureField) -> Iterator[object]:
    for raw in raw_items(entry(field.value, "/Reference")):
        yield resolve(raw)


def _places(pages: Sequence[Page]) -> dict[Key, int]:
    """The page on which each annotation hangs."""
    return {
        key: at
        for at, page in enumerate(pages, 1)
        for raw in raw_items(entry(page.node, "/Annots"))
        if (key := key_of(raw)) is not None
    }


def _with_parents(name: str) -> Iterator[str]:
    """A full name, and those of the fields above it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _bounded(fields: Iterable[EmptyField]) -> tuple[EmptyField, ...]:
    """Empty fields, whose locks name `FIELDS_KEPT` others together at most.

    A lock beyond that is taken for one of every field.
    """
    found, left = [], FIELDS_KEPT
    for field in fields:
        left -= len(field.shuts)
        kept = field if left >= 0 else replace(field, closes=True, shuts=())
        found.append(kept)
    return tuple(found)


def _empty(
    field: SignatureField,
    locks: list[_Lock],
    places: dict[Key, int],
    above: Collection[str],
) -> EmptyField:
    page, rect = _place(field, places)
    own = dictionary(field.node, "/Lock")
    level = number(entry(own, "/P"))
    permits = None if level is None else _strict(level)
    seeds = dictionary(field.node, "/SV")
    named = {
        name
        for lock in _lock(own)
        if not lock.covers_new
        for name in lock.names
        if name in above
    }
    return EmptyField(
        name=field.name,
        page=page,
        rect=rect,
        locked=field.read_only or any(lock.covers(field.name) for lock in locks),
        read_only=field.read_only,
        closes=any(lock.covers_new for lock in _lock(own)) or permits == _NO_CHANGES,
        needs=(
            *_needs(seeds),
            *(() if _is_clear(own) else ("Lock",)),
            # Poppler calls such a field unsigned, and pyHanko calls an earlier
            # signature invalid once its widget is drawn.
            *(() if _is_one_object(field) else ("Kids",)),
            # The stamp takes the place of what a signer has read there.
            *((FIELD_LOOK,) if any(map(_speaks, field.widgets)) else ()),
        ),
        digests=_digests(seeds),
        certifies=_certifies(seeds),
        permits=permits,
        locks=any(True for _ in _lock(own)),
        shuts=tuple(sorted(named)),
    )


def _speaks(widget: DictionaryObject) -> bool:
    """Say whether an empty field shows words or pictures."""
    looks = dictionary(widget, "/AP")
    drawn = dictionary(looks, "/N")
    if drawn is None:
        return False
    drawings = [drawn]
    if not isinstance(drawn, StreamObject):
        drawings = [dictionary(drawn, key) or drawn for key in drawn]
    return any(
        isinstance(each, StreamObject) and speaks(each.data) for each in drawings
    )


def _is_one_object(field: SignatureField) -> bool:
    """Whether a field has no widget that is an object of its own."""
    return all(widget is field.node for widget in field.widgets)


def _is_clear(lock: DictionaryObject | None) -> bool:
    """Whether a field's own lock, if there is one, says what it locks."""
    if lock is None:
        return True
    action, level = name(lock, "/Action"), number(entry(lock, "/P"))
    named = action in {"/Include", "/Exclude"} and entry(lock, "/Fields") is not None
    return (named or action == "/All") and level in {None, 1, 2, 3}


def _place(
    field: SignatureField, places: dict[Key, int]
) -> tuple[int | None, Rect | None]:
    """Page and box of the first widget that every program shows."""
    for widget, key in zip(field.widgets, field.keys, strict=True):
        page = places.get(key) if key is not None else None
        rect = widget_rect(widget)
        is_hidden = int(number(entry(widget, "/F")) or 0) & _UNSEEN or "/OC" in widget
        if page is not None and rect is not None and not is_hidden:
            return page, rect
    return None, None


def _needs(seeds: DictionaryObject | None) -> Iterator[str]:
    """Binding seed values that our signatures do not have.

    They have the usual handler, are ETSI.CAdES.detached, and bear no reason, legal
    attestation, named appearance or revocation data under the signature.
    """
    if seeds is None:
        return
    flags = _flags(seeds)
    for bit, key, taken in _TAKEN:
        values = _words(seeds, key)
        if flags & bit and values and not set(values) & taken:
            yield key[1:]
    if flags & _V and (number(entry(seeds, "/V")) or 0) > _VERSION:
        yield "V"
    added = entry(seeds, "/AddRevInfo")
    if flags & _REVOCATION and isinstance(added, BooleanObject) and added.value:
        yield "AddRevInfo"
    for key, bits in (("/Cert", _WHO), ("/TimeStamp", 1)):
        if _flags(dictionary(seeds, key)) & bits:
            yield key[1:]


def _flags(holder: DictionaryObject | None) -> int:
    return int(number(entry(holder, "/Ff")) or 0)


def _words(seeds: object, key: str) -> tuple[str, ...]:
    """Names and strings of an array; a lone one counts as an array of it."""
    value: object = entry(seeds, key)
    if isinstance(value, str):
        return (str(value),)
    found: list[object] = [resolve(raw) for raw in raw_items(value)]
    return tuple(str(one) for one in found if isinstance(one, str))


def _digests(seeds: DictionaryObject | None) -> tuple[str, ...]:
    """The digests that bind, in lower case without dashes."""
    if not _flags(seeds) & _DIGESTS:
        return ()
    return tuple(
        word.lower().replace("-", "") for word in _words(seeds, "/DigestMethod")
    )


def _certifies(seeds: DictionaryObject | None) -> int | None:
    """P of the seed values' MDP, which binds wherever it stands."""
    level = number(entry(dictionary(seeds, "/MDP"), "/P"))
    return int(level) if level in {0, 1, 2, 3} else None

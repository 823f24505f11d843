"""Streams of a file's last revision: their filters, and limits of what they draw.

What is looked at here concerns no reader of objects, but whoever shows them: data that
some programs decode and others do not, resources of a wrong kind, strings and names
that some cut, and forms within one another that some leave out.

Source: ISO 32000-2, 7.3.8, 7.4, 7.8 and 8.10; ISO 32000-1, annex C.2.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from worker.sandbox.structure.ambiguity import NoStepsError, Steps
from worker.sandbox.structure.filters import (
    CRYPT,
    KEYS_OF_INLINE_PICTURES,
    Decoder,
    Filter,
    OddStreamError,
    TooLongError,
    filters_of,
)
from worker.sandbox.structure.history import in_use
from worker.sandbox.structure.listed_objects import ListedObjects
from worker.sandbox.structure.long_strings import STRING_BYTES, has_long_string
from worker.sandbox.structure.object_streams import ObjectStreamReader
from worker.sandbox.structure.objects import IndirectObject
from worker.sandbox.structure.references import references_in
from worker.sandbox.structure.streams import UnreadableError
from worker.sandbox.structure.tokens import name_at
from worker.sandbox.structure.values import ObjectNumber, value_at

CONTENT_BYTES: Final = 268_435_456
"""Most bytes that what is drawn may unfold to, as of `content_bombs`."""
_OTHER_BYTES: Final = 67_108_864
"""Bytes to which pictures, fonts and files are unfolded; what more there is, is not."""
_NAME_BYTES: Final = 127
"""Bytes of a name from which on programs cut it, so that it may be another one."""
_LONG_NAME: Final = re.compile(rb"/[^\0\t\n\f\r ()<>\[\]{}/%]{127}")
_FORMS_DEEP: Final = 32
"""Forms within one another that all programs draw; PDFium draws some 40."""
_STEPS_A_STREAM: Final = 2
_STEPS_A_VALUE: Final = 20
_FOLLOWED: Final = 8
_CATEGORIES: Final = (
    "/ExtGState",
    "/ColorSpace",
    "/Pattern",
    "/Shading",
    "/XObject",
    "/Font",
    "/Properties",
)
_APART: Final = frozenset({b"Metadata", b"EmbeddedFile"})
"""Types of streams that may be encrypted otherwise than the others."""
_OWN_RULES: Final = frozenset({b"XRef", b"ObjStm"})
_LABELS: Final = (b"Type", b"Subtype")
_DRAWS: Final = re.compile(rb"Do(?![^\0\t\n\f\r ()<>\[\]{}/%])")
_NAME: Final = re.compile(rb"/[^\0\t\n\f\r ()<>\[\]{}/%]*+")


@dataclass(frozen=True, slots=True)
class DrawnStreams:
    """Result of looking at the streams.

    Args:
        content: numbers of those that are a page's content, or a form or pattern.
        odd: of those that programs may decode differently, each with what it has.
        odd_resources: numbers of those with resources of a wrong kind.
        long_strings: numbers of those with a string that some programs cut.
        long_name: whether any object has a name that some programs cut.
        deep: whether forms are nested deeper than all programs draw.
    """

    content: frozenset[int]
    odd: Mapping[int, str]
    odd_resources: frozenset[int]
    long_strings: frozenset[int]
    long_name: bool
    deep: bool


class DrawnStreamsReader:
    """Looks at the streams of one file's last revision.

    Args:
        pdf: the whole file.
        listed: its objects, checked.
        streams: reader of its object streams, which decrypts.
        steps: budget of the whole file.
        contents: numbers of what pages name as their content.
        roots: numbers that the trailer refers to.
    """

    def __init__(
        self,
        pdf: bytes,
        listed: ListedObjects,
        streams: ObjectStreamReader,
        steps: Steps,
        contents: Collection[int],
        roots: Collection[int],
    ) -> None:
        self._contents = contents
        self._roots = roots
        self._pdf = pdf
        self._listed = listed
        self._streams = streams
        self._steps = steps
        self._decoder = Decoder()
        self._content_left = CONTENT_BYTES
        self._others_left = _OTHER_BYTES
        self._values: dict[int, Any] = {}
        self._content: set[int] = set()
        self._odd: dict[int, str] = {}
        self._odd_resources: set[int] = set()
        self._long_strings: set[int] = set()
        self._live: dict[int, IndirectObject] = {}
        self._resources: dict[int, Any] = {}
        self._loose: set[int] = set()
        self._named: dict[int, dict[str, list[int]]] = {}

    def read(self) -> DrawnStreams:
        """Look at all of them.

        Raises:
            UsedUpError: the budget is used up, or content unfolds too far.
        """
        for each in self._streams_in_use():
            self._steps.take(_STEPS_A_STREAM)
            self._live[each.number] = each
            self._look(each)
        odd, odd_resources = self._odd, self._odd_resources
        if odd or odd_resources:
            reached = self._reached()
            odd = {number: odd[number] for number in odd.keys() & reached}
            odd_resources &= reached
        return DrawnStreams(
            content=frozenset(self._content),
            odd=odd,
            odd_resources=frozenset(odd_resources),
            long_strings=frozenset(self._long_strings),
            long_name=self._has_long_name(),
            deep=self._is_deep(),
        )

    def _streams_in_use(self) -> Iterator[IndirectObject]:
        """Yield the streams of the last revision."""
        for number, listings in self._listed.history.items():
            entry = listings[-1].entry
            if entry.kind == 1 and in_use(entry):
                found = self._listed.objects.read(entry.where)
                if found is not None and found.number == number and found.content:
                    yield found

    def _reached(self) -> set[int]:
        """Return the numbers that the trailer leads to: no other object is shown.

        Raises:
            UsedUpError: the budget is used up.
        """
        reached: set[int] = set()
        todo = [*self._roots]
        while todo:
            number = todo.pop()
            if number in reached:
                continue
            reached.add(number)
            self._steps.take(1)
            entry = self._listed.history.entry(number)
            if entry is not None and in_use(entry):
                place = self._listed.place(number, entry)
                if place is not None:
                    todo += references_in(*place, self._steps)
        return reached

    def _look(self, found: IndirectObject) -> None:
        """Look at one stream."""
        entries = found.tokens.entries or {}
        label, kind = (name_at(self._pdf, entries.get(key)) for key in _LABELS)
        if label in _OWN_RULES and found.number not in self._contents:
            return
        is_form = kind == b"Form" or b"PatternType" in entries
        is_picture = kind == b"Image" or (
            not is_form and b"Width" in entries and b"Height" in entries
        )
        is_content = is_form or found.number in self._contents
        if is_content:
            self._content.add(found.number)
            if b"Resources" in entries:
                self._look_at_resources(found.number, entries[b"Resources"])
        try:
            filters = self._filters(entries, is_picture=is_picture and not is_content)
            content = self._decoded(found, filters, label, is_content=is_content)
        except OddStreamError as exc:
            self._odd[found.number] = str(exc)
            return
        if (
            is_content
            and len(content) > STRING_BYTES
            and has_long_string(content, self._steps)
        ):
            self._long_strings.add(found.number)

    def _look_at_resources(self, number: int, at: int) -> None:
        """Look at the resources of a stream; the categories are dictionaries."""
        resources = self._resolved(self._value_at(at))
        self._resources[number] = resources
        if not isinstance(resources, dict) or any(
            not isinstance(self._resolved(resources[category]), dict)
            for category in _CATEGORIES
            if category in resources
        ):
            self._odd_resources.add(number)

    def _filters(
        self, entries: Mapping[bytes, int], *, is_picture: bool
    ) -> Sequence[Filter]:
        """Return a stream's filters.

        Raises:
            OddStreamError: programs may read them differently.
        """
        filters = self._value_at(entries.get(b"Filter"))
        parameters = self._value_at(entries.get(b"DecodeParms"))
        others = [
            self._value_at(entries[key])
            for key in KEYS_OF_INLINE_PICTURES
            if key in entries
        ]
        return filters_of(
            others,
            filters,
            parameters,
            self._resolved,
            is_picture=is_picture,
            is_encrypted=self._streams.encrypted,
        )

    def _decoded(
        self,
        found: IndirectObject,
        filters: Sequence[Filter],
        label: bytes | None,
        *,
        is_content: bool,
    ) -> bytes:
        """Decode a stream; of what is no content, up to a total alone.

        Raises:
            OddStreamError: its data have a fault.
            UsedUpError: it is content and unfolds too far.
        """
        start, end = found.content or (0, 0)
        if not is_content and (not filters or end - start > self._others_left):
            return b""
        raw = found.raw(self._pdf)
        if self._streams.encrypted:
            if label in _APART or any(each.name == CRYPT for each in filters):
                return b""  # encrypted otherwise, or not at all
            raw = self._decrypted(found, raw)
        most = self._content_left if is_content else self._others_left
        try:
            content = self._decoder.decoded(raw, filters, most, is_content=is_content)
        except TooLongError:
            if is_content:
                raise NoStepsError from None
            self._others_left = 0
            return b""
        if is_content:
            self._content_left -= len(content)
        else:
            self._others_left -= len(content)
        return content

    def _decrypted(self, found: IndirectObject, raw: bytes) -> bytes:
        """Decrypt a stream's data.

        Raises:
            OddStreamError: they cannot be.
        """
        decrypt = self._streams.decryption(found)
        if decrypt is None:
            return raw
        try:
            return decrypt(raw)
        except UnreadableError as exc:
            raise OddStreamError("data that cannot be decrypted") from exc

    def _value_at(self, at: int | None) -> Any:
        """Return the value at an offset of the file; None for none."""
        if at is None:
            return None
        self._steps.take(1)
        try:
            return value_at(self._pdf, at)[0]
        except ValueError:
            return None  # the object was found to be odd before

    def _resolved(self, value: Any) -> Any:
        """Follow references to the last revision; `STREAM` stands for a stream."""
        for _ in range(_FOLLOWED):
            if not isinstance(value, ObjectNumber):
                return value
            value = self._object(value[0])
        return None

    def _object(self, number: int) -> Any:
        """Return an object's value, read once."""
        if number not in self._values:
            self._steps.take(_STEPS_A_VALUE)
            entry = self._listed.history.entry(number)
            value: Any = None
            if entry is not None and in_use(entry):
                value = self._listed.value(number, entry)
            self._values[number] = value
        return self._values[number]

    def _has_long_name(self) -> bool:
        """Return whether an object has a name that programs cut."""
        for data, start, end in self._listed.values():
            if _LONG_NAME.search(data, start, end) is None:
                continue  # nor a string that looks as if it had one
            self._steps.take(_STEPS_A_VALUE)
            try:
                value = value_at(data, start)[0]
            except ValueError:
                continue
            if any(len(_bytes(each)) > _NAME_BYTES for each in _names_in(value)):
                return True
        return False

    def _is_deep(self) -> bool:
        """Return whether forms are nested too deeply, or a form is within itself.

        Forms without resources of their own take those of what draws them, which is
        not followed: each may lead to any other.
        """
        depths: dict[int, int] = {}
        for number in self._content:
            path = [(number, iter(self._drawn_by(number)))]
            deepest = [0]
            on_path = {number}
            while path and number not in depths:
                at, below = path[-1]
                each = next(below, None)
                if each is None:
                    depths[at] = 1 + deepest.pop()
                    path.pop()
                    on_path.discard(at)
                    if path:
                        deepest[-1] = max(deepest[-1], depths[at])
                elif each in on_path:
                    return True
                elif each in depths:
                    deepest[-1] = max(deepest[-1], depths[each])
                else:
                    path.append((each, iter(self._drawn_by(each))))
                    deepest.append(0)
                    on_path.add(each)
        longest = max(depths.values(), default=0)
        return longest * (1 + len(self._loose)) > _FORMS_DEEP

    def _drawn_by(self, number: int) -> list[int]:
        """Return the streams that the content of one draws."""
        resources = self._resources.get(number)
        if resources is None:
            entries = self._live[number].tokens.entries or {}
            if name_at(self._pdf, entries.get(b"Subtype")) == b"Form" and (
                _DRAWS.search(self._content_of(number))
            ):
                self._loose.add(number)
            return []
        if id(resources) not in self._named:  # which `_resources` keeps
            self._named[id(resources)] = self._named_streams(resources)
        named = self._named[id(resources)]
        if not named:
            return []
        used = {
            value_at(each, 0)[0] for each in _NAME.findall(self._content_of(number))
        }
        self._steps.take(len(used))
        return [each for name in named.keys() & used for each in named[name]]

    def _content_of(self, number: int) -> bytes:
        """Decode content again; nothing where it cannot be."""
        if number in self._odd:
            return b""
        found = self._live[number]
        entries = found.tokens.entries or {}
        label = name_at(self._pdf, entries.get(b"Type"))
        try:
            filters = self._filters(entries, is_picture=False)
            self._content_left = CONTENT_BYTES  # it was counted before
            return self._decoded(found, filters, label, is_content=True)
        except OddStreamError:
            return b""

    def _named_streams(self, resources: Any) -> dict[str, list[int]]:
        """Return the streams that names of resources may have drawn."""
        named: dict[str, list[int]] = {}
        for category in ("/XObject", "/Pattern", "/ExtGState", "/Font"):
            held = self._entry(resources, category)
            for name, value in held.items() if isinstance(held, dict) else ():
                self._steps.take(1)
                found, is_font = [value], category == "/Font"
                if category == "/ExtGState":
                    mask = self._entry(self._resolved(value), "/SMask")
                    found = [mask.get("/G")] if isinstance(mask, dict) else []
                elif is_font:
                    found = self._glyphs(self._resolved(value))
                named.setdefault(name, []).extend(
                    each[0]
                    for each in found
                    if isinstance(each, ObjectNumber)
                    and each[0] in (self._live if is_font else self._content)
                )
        return {name: found for name, found in named.items() if found}

    def _glyphs(self, font: Any) -> list[Any]:
        """Return the glyphs of a Type 3 font, which take its resources."""
        glyphs = self._entry(font, "/CharProcs")
        if not isinstance(glyphs, dict):
            return []
        resources = self._entry(font, "/Resources")
        for each in glyphs.values():
            self._steps.take(1)
            if isinstance(each, ObjectNumber) and isinstance(resources, dict):
                self._resources.setdefault(each[0], resources)
        return [*glyphs.values()]

    def _entry(self, holder: Any, key: str) -> Any:
        """Return a dictionary's value for a key, references followed."""
        return self._resolved(holder.get(key)) if isinstance(holder, dict) else None


def _names_in(value: Any) -> Iterator[str]:
    """Yield the names of a value, keys among them."""
    todo = [value]
    while todo:
        each = todo.pop()
        if type(each) is str:
            yield each
        elif isinstance(each, dict):
            todo += each.keys()
            todo += each.values()
        elif isinstance(each, list):
            todo += each


def _bytes(name: str) -> bytes:
    """Return the bytes of a name with its slash, at least as many as there are."""
    return name.encode("utf-8", "replace")

"""Object streams.

Source: ISO 32000-2, 7.5.7.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyhanko.pdf_utils.reader import PdfFileReader

from worker.pades.pdf.integers import integers_of
from worker.sandbox.structure.ambiguity import (
    AmbiguityKind,
    Findings,
    Steps,
    UsedUpError,
)
from worker.sandbox.structure.objects import IndirectObject
from worker.sandbox.structure.streams import (
    AmbiguousError,
    UnreadableError,
    decoded,
)
from worker.sandbox.structure.tokens import TokenReader, integer_at, name_at

_STEPS_AN_OBJECT: Final = 5
_BLANKS: Final = b"\0\t\n\f\r "


@dataclass(frozen=True, slots=True)
class ObjectStream:
    """Contents of one object stream.

    Args:
        numbers: of its objects, by index.
        starts: offset of each within the decoded bytes.
        content: the decoded bytes.
        references: those to other generations than 0: number and generation.
    """

    numbers: Sequence[int]
    starts: Sequence[int]
    content: bytes
    references: Sequence[tuple[int, int]]


class ObjectStreamReader:
    """Reader of the object streams of one file.

    Args:
        pdf: the whole file.
        opened: the same file, opened; needed if it is encrypted.
        findings: takes what is wrong with a stream or with an object in it.
        steps: budget of the whole file.
    """

    def __init__(
        self,
        pdf: bytes,
        opened: PdfFileReader | None,
        findings: Findings,
        steps: Steps,
    ) -> None:
        self._pdf = pdf
        self._opened = opened
        self._findings = findings
        self._steps = steps
        self.encrypted = False

    def read(self, found: IndirectObject) -> ObjectStream | None:
        """Read an object stream; None if the object is none.

        Raises:
            UsedUpError: the budget is used up, or the stream cannot be decoded.
        """
        pdf, entries = self._pdf, dict(found.tokens.entries or {})
        count = integer_at(pdf, entries.get(b"N"))
        first = integer_at(pdf, entries.get(b"First"))
        if (
            found.content is None
            or count is None
            or first is None
            or name_at(pdf, entries.get(b"Type")) != b"ObjStm"
        ):
            return None
        try:
            content = decoded(
                pdf, entries, found.raw(pdf), self._steps, self.decryption(found)
            )
        except AmbiguousError as exc:
            self._say(found, found.number, f"has {exc}")
            return None
        except UnreadableError as exc:
            raise UsedUpError from exc
        header = integers_of(content[:first])
        self._steps.take(_STEPS_AN_OBJECT * count)
        if header is None or len(header) != 2 * count:
            self._say(found, found.number, "has another header than it says")
            return None
        if count and header[1]:
            # Poppler then reads each object from an earlier byte.
            self._say(found, found.number, "has bytes before its first object")
            return None
        numbers = header[::2]
        starts = [first + each for each in header[1::2]]
        if len(set(numbers)) != count:
            words = "holds a number twice"
            self._say(found, found.number, words, AmbiguityKind.LISTED_TWICE)
        references = self._objects(found, content, numbers, starts)
        return ObjectStream(numbers, starts, content, references)

    def _objects(
        self,
        found: IndirectObject,
        content: bytes,
        numbers: Sequence[int],
        starts: Sequence[int],
    ) -> list[tuple[int, int]]:
        """Read the objects; pdf.js reads them one after another, others by offset."""
        reader = TokenReader(content, self._steps)
        references: list[tuple[int, int]] = []
        for number, start, limit in zip(
            numbers, starts, [*starts[1:], len(content)], strict=True
        ):
            tokens = reader.read(min(start, len(content)))
            for fault in tokens.faults:
                words = f"object {number} {fault.words}"
                self._findings.add(fault.kind, found.at, number, words)
            references += [one[:2] for one in tokens.references]
            if tokens.end > limit or (
                tokens.complete and content[tokens.end : limit].strip(_BLANKS)
            ):
                words = f"does not hold object {number} where its header says"
                self._say(found, number, words)
        return references

    def decryption(self, found: IndirectObject) -> Callable[[bytes], bytes] | None:
        """Return what decrypts a stream; None if it is not encrypted.

        Args:
            found: the stream.

        Raises:
            UsedUpError: nothing does.
        """
        if not self.encrypted:
            return None
        opened = self._opened
        if opened is None or opened.security_handler is None:
            raise UsedUpError
        try:
            crypt_filter = opened.security_handler.get_stream_filter()
            key = crypt_filter.derive_object_key(found.number, found.generation)
        except Exception as exc:
            # Handlers raise anything for dictionaries that are not right.
            raise UsedUpError from exc

        def decrypt(raw: bytes) -> bytes:
            try:
                return bytes(crypt_filter.decrypt(key, raw))
            except Exception as exc:
                raise UnreadableError from exc  # a padding that is not right, for one

        return decrypt

    def _say(
        self,
        found: IndirectObject,
        number: int,
        words: str,
        kind: AmbiguityKind = AmbiguityKind.OBJECT_STREAM,
    ) -> None:
        named = f"object stream {found.number} {words}"
        self._findings.add(kind, found.at, number, named)

"""Indirect objects, and the ends of their streams.

Source: ISO 32000-2, 7.3.8 and 7.3.10.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from worker.sandbox.structure.ambiguity import AmbiguityKind, Findings, Steps
from worker.sandbox.structure.tokens import (
    BLANK,
    END,
    SPACE,
    Fault,
    TokenReader,
    Tokens,
    integer_at,
    reference_at,
)

HEADER: Final = re.compile(
    rb"(\d{1,10})" + BLANK + rb"++(\d{1,5})" + BLANK + rb"++obj" + END
)
STREAM: Final = re.compile(SPACE + rb"stream(\r\n|\n)?")
# Some writers count no trailing blank. Nothing can be hidden in so few of them.
END_STREAM: Final = re.compile(BLANK + rb"{0,4}endstream" + END)
_END_OBJECT: Final = re.compile(SPACE + rb"endobj" + END)
_BYTES_A_STEP: Final = 64
_STEPS_AN_OBJECT: Final = 10

LengthOf = Callable[[int, int], int | None]
"""Integer that is an object, as of the revision that lists an offset."""


@dataclass(slots=True)
class IndirectObject:
    """One indirect object.

    Args:
        at: offset of its number.
        end: offset after `endobj`, or of where reading stopped.
        number: its number.
        generation: its generation.
        tokens: of its value.
        content: offsets of the stream's content, from and to; None without a stream.
        length_number: number of the object that `/Length` refers to.
    """

    at: int
    end: int
    number: int
    generation: int
    tokens: Tokens
    content: tuple[int, int] | None = None
    length_number: int | None = None

    def raw(self, pdf: bytes) -> bytes:
        """Return the stream's content as it is in the file."""
        start, end = self.content or (0, 0)
        return pdf[start:end]


class ObjectReader:
    """Reader of the indirect objects of one file, each of them once.

    Args:
        pdf: the whole file.
        findings: takes what is wrong with an object, when it is reported.
        steps: budget of the whole file.
    """

    def __init__(self, pdf: bytes, findings: Findings, steps: Steps) -> None:
        self._pdf = pdf
        self._findings = findings
        self._steps = steps
        self._tokens = TokenReader(pdf, steps)
        self._read: dict[int, IndirectObject | None] = {}
        self.length_of: LengthOf = lambda _number, _at: None

    def read(self, at: int) -> IndirectObject | None:
        """Read the object at an offset; None if none begins exactly there.

        Raises:
            UsedUpError: the budget is used up.
        """
        if at not in self._read:
            # Before the object is read, so that a length within itself ends.
            self._read[at] = None
            self._read[at] = self._object(at)
        return self._read[at]

    def report(self, found: IndirectObject) -> None:
        """Report what is wrong with an object."""
        for fault in found.tokens.faults:
            words = f"object {found.number} {fault.words}"
            self._findings.add(fault.kind, fault.at, found.number, words)

    def _object(self, at: int) -> IndirectObject | None:
        pdf = self._pdf
        header = HEADER.match(pdf, at)
        self._steps.take(_STEPS_AN_OBJECT)
        if header is None or (at and pdf[at - 1 : at].isdigit()):
            return None
        tokens = self._tokens.read(header.end())
        found = IndirectObject(at, tokens.end, int(header[1]), int(header[2]), tokens)
        if not tokens.complete:
            return found
        if tokens.entries is not None:
            stream = STREAM.match(pdf, tokens.end)
            if stream is not None:
                self._stream(found, stream)
        ends = _END_OBJECT.match(pdf, found.end)
        if ends is None:
            fault = Fault(AmbiguityKind.SYNTAX, found.end, "does not end with endobj")
            tokens.faults.append(fault)
        else:
            found.end = ends.end()
        return found

    def _stream(self, found: IndirectObject, keyword: re.Match[bytes]) -> None:
        """Find the end of a stream."""
        entries = found.tokens.entries or {}
        start = keyword.end()
        at = entries.get(b"Length")
        length = integer_at(self._pdf, at)
        if length is None and (reference := reference_at(self._pdf, at)) is not None:
            found.length_number = reference[0]
            length = self.length_of(reference[0], found.at)
        ends = None
        if length is not None and length <= len(self._pdf) - start:
            ends = END_STREAM.match(self._pdf, start + length)
        if ends is None or keyword[1] is None:
            words = "is a stream of another length than it says"
            fault = Fault(AmbiguityKind.STREAM_LENGTH, found.at, words)
            found.tokens.faults.append(fault)
        if ends is not None and length is not None:
            found.content = (start, start + length)
            found.end = ends.end()
            return
        stop = self._pdf.find(b"endstream", start)
        end = len(self._pdf) if stop < 0 else stop
        self._steps.take((end - start) // _BYTES_A_STEP)
        found.content = (start, end)
        found.end = end if stop < 0 else stop + len(b"endstream")

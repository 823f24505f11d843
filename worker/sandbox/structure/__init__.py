"""Structure of a PDF file; in confined jobs only."""

from worker.sandbox.structure.ambiguity import (
    APPENDED_ONLY,
    Ambiguity,
    AmbiguityKind,
)
from worker.sandbox.structure.checked_reader import CheckedReader
from worker.sandbox.structure.drawn_streams import DrawnStreams
from worker.sandbox.structure.reader import Structure, read_structure

__all__ = [
    "APPENDED_ONLY",
    "Ambiguity",
    "AmbiguityKind",
    "CheckedReader",
    "DrawnStreams",
    "Structure",
    "read_structure",
]

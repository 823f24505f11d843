"""Structure of a PDF file; in confined jobs only."""

from worker.sandbox.structure.ambiguity import Ambiguity, AmbiguityKind
from worker.sandbox.structure.reader import Structure, read_structure

__all__ = ["Ambiguity", "AmbiguityKind", "Structure", "read_structure"]

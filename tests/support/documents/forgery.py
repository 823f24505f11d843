"""The form of a forgery: a revision that an attacker without a key appends.

@forgery("page: /Contents twice", "page 1 shows another price")
def contents_twice(f: SignedFile) -> bytes: ...
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.support.documents.contract_pdf import line
from tests.support.documents.pdf_revisions import SignedFile

Make = Callable[[SignedFile], bytes]
Applies = Callable[[SignedFile], bool]

PRICE: Final = b"1 0.9 0.9 rg 0 0 300 400 re f 0 g " + line(b"Precio: 900.000")
"""Content of a page that shows another price than the signed one."""


@dataclass(frozen=True, slots=True)
class Forgery:
    """A kind of appended revision.

    Args:
        name: of the kind, for people.
        change: what a reader then shows or reaches.
        make: appends the revision to a signed file.
        applies: return whether the kind has a meaning for a file.
    """

    name: str
    change: str
    make: Make
    applies: Applies

    def __call__(self, pdf: bytes) -> bytes:
        """Append the revision to a signed file.

        Raises:
            ValueError: the kind has no meaning for this file.
        """
        opened = SignedFile(pdf)
        if not self.applies(opened):
            raise ValueError(self.name)
        return self.make(opened)


def always(_: SignedFile) -> bool:
    """Return true: the kind has a meaning for every base."""
    return True


def has_table(f: SignedFile) -> bool:
    """Return whether the last section of a file is a classic table."""
    return not f.has_stream


def is_readable(f: SignedFile) -> bool:
    """Return whether a file is not encrypted."""
    return not f.qpdf.is_encrypted


class Collection(dict[str, Forgery]):
    """Forgeries by name, each added by a decorator."""

    def __call__(
        self, name: str, change: str, applies: Applies = always
    ) -> Callable[[Make], Make]:
        """Add the decorated function as a kind of forgery."""

        def add(make: Make) -> Make:
            assert name not in self, name
            self[name] = Forgery(name, change, make, applies)
            return make

        return add


def with_price(f: SignedFile) -> dict[int, bytes]:
    """Give the content stream of page 1 again, with another price."""
    return {f.content: f.stream(f.content, PRICE)}


def new_price(f: SignedFile) -> dict[int, bytes]:
    """Give a new stream, numbered `f.free`, with another price."""
    return {f.free: f.stream(f.free, PRICE)}

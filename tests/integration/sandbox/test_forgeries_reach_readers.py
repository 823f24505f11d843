"""Every kind of forgery makes some reader show or reach another document.

A kind that changes nothing for any reader would be no measure of the verifier.
"""

from functools import cache

import pytest

from tests.support.documents.forgeries import FORGERIES, bases_of
from tests.support.documents.forgery import Forgery
from tests.support.documents.reached import READERS
from tests.support.documents.signed_bases import BASES, base, makers
from tests.support.documents.validators import pyhanko_verdicts


@cache
def reached(name: str, reader: str) -> object:
    """Give the document that a reader reaches in a signed file."""
    return READERS[reader](base(name))


def misled(name: str, forged: bytes) -> list[str]:
    """Name the readers that reach another document in a forged file."""
    return [
        each for each, read in READERS.items() if read(forged) != reached(name, each)
    ]


@pytest.mark.full
@pytest.mark.parametrize("kind", FORGERIES)
def test_forgery_misleads_a_reader(kind: str) -> None:
    """The forged file begins with the signed one, and a reader is misled by it."""
    name = bases_of(kind)[0]

    forged = FORGERIES[kind](base(name))

    assert forged.startswith(base(name))
    assert misled(name, forged)


@pytest.mark.parametrize("reader", READERS)
def test_harmless_revision_misleads_no_reader(reader: str) -> None:
    """A new object that nothing refers to changes nothing for the comparison."""
    harmless = Forgery("", "", lambda f: f.append({f.free: b"null"}), lambda _: True)

    forged = harmless(base("B-B"))

    assert READERS[reader](forged) == reached("B-B", reader)


@pytest.mark.parametrize("name", BASES)
def test_base_is_a_good_signature(name: str) -> None:
    """For pyHanko, with the root of the makers and nothing else trusted."""
    verdicts = pyhanko_verdicts(base(name), [makers().root])

    assert verdicts
    assert all(each.good for each in verdicts)

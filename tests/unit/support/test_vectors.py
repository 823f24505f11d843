"""What an earlier tree wrote is read as before, and written to the same byte.

The vectors stand in tests/vectors; its README says how they are made.
"""

import json
from typing import Any

import pytest

from tests.vectors import kept
from tests.vectors.formats import FORMATS

_CASES = kept.every_case()


def _plain(value: object) -> Any:
    """A value as a file of JSON gives it back."""
    return json.loads(json.dumps(value))


def test_every_format_has_its_vectors() -> None:
    """None is forgotten, none stands for nothing."""
    assert {name for name, _ in _CASES} == FORMATS.keys()
    assert {(name, case) for name, form in FORMATS.items() for case in form.cases} <= {
        *_CASES
    }


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, case in _CASES if FORMATS[name].write is not None],
)
def test_same_bytes_are_written(name: str, case: str) -> None:
    """Of the same inputs, with the same random bytes."""
    vector, write = kept.cases_of(name)[case], FORMATS[name].write
    assert write is not None

    with kept.fixed():
        written = _plain(write(vector["given"]))

    assert written == vector["written"]


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, case in _CASES if FORMATS[name].read is not None],
)
def test_what_was_written_is_read(name: str, case: str) -> None:
    """To the same values."""
    vector, read = kept.cases_of(name)[case], FORMATS[name].read
    assert read is not None

    assert _plain(read(vector["given"], kept.stored(vector))) == vector["read"]


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, case in _CASES if FORMATS[name].seal is not None],
)
def test_what_is_sealed_now_is_read_alike(name: str, case: str) -> None:
    """Another ciphertext of the same length, the same content."""
    vector, form = kept.cases_of(name)[case], FORMATS[name]
    assert form.seal is not None
    assert form.read is not None

    sealed = _plain(form.seal(vector["given"]))

    assert sealed != vector["sealed"]
    assert len(sealed) == len(vector["sealed"])
    assert form.read(vector["given"], sealed) == vector["read"]

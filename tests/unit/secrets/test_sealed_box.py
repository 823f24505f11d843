"""Sealed values and keyed look-ups."""

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.secrets.sealed_box import LookupKey, SecretBox

PLACE = {"table": "login_secret", "row": "p1", "column": "totp_sealed"}


def test_sealed_value_opens_in_its_place() -> None:
    """What was sealed comes back; no two sealings are alike."""
    box = SecretBox(KeyRing.of(b"k" * 32))

    one, two = box.seal(b"seed", **PLACE), box.seal(b"seed", **PLACE)

    assert box.open(one, **PLACE) == b"seed"
    assert one != two
    assert b"seed" not in one


@pytest.mark.parametrize("changed", ["table", "row", "column"])
def test_sealed_value_refused_elsewhere(changed: str) -> None:
    """A value moved to another table, row or column does not open."""
    box = SecretBox(KeyRing.of(b"k" * 32))
    sealed = box.seal(b"seed", **PLACE)

    with pytest.raises(ApplianceError) as caught:
        box.open(sealed, **{**PLACE, changed: "other"})

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


@pytest.mark.parametrize("at", [0, 1, 13, -1])
def test_sealed_value_refused_when_altered(at: int) -> None:
    """A changed byte anywhere is noticed."""
    box = SecretBox(KeyRing.of(b"k" * 32))
    sealed = bytearray(box.seal(b"seed", **PLACE))
    sealed[at] ^= 1

    with pytest.raises(ApplianceError):
        box.open(bytes(sealed), **PLACE)


@pytest.mark.parametrize("sealed", [b"", b"\x01", b"\x01" + b"n" * 12])
def test_sealed_value_refused_when_cut(sealed: bytes) -> None:
    """Too short a value is refused like an altered one."""
    with pytest.raises(ApplianceError):
        SecretBox(KeyRing.of(b"k" * 32)).open(sealed, **PLACE)


def test_index_depends_on_key_purpose_and_value() -> None:
    """One index is never another's."""
    indexes = {
        LookupKey(KeyRing.of(b"k" * 32)).index("a", "b"),
        LookupKey(KeyRing.of(b"j" * 32)).index("a", "b"),
        LookupKey(KeyRing.of(b"k" * 32)).index("b", "b"),
        LookupKey(KeyRing.of(b"k" * 32)).index("a", "c"),
        LookupKey(KeyRing.of(b"k" * 32)).index("ab", ""),
    }

    assert len(indexes) == 5
    assert all(len(index) == 64 for index in indexes)


def test_sealed_value_names_the_version_of_its_key() -> None:
    """What an earlier version sealed opens while that is known, and not after."""
    old = KeyRing(1, {1: b"k" * 32, 2: b"m" * 32})
    new = KeyRing(2, {1: b"k" * 32, 2: b"m" * 32})

    sealed = [SecretBox(ring).seal(b"seed", **PLACE) for ring in (old, new)]

    assert [one[0] for one in sealed] == [1, 2]
    for ring in (old, new):
        assert [SecretBox(ring).open(one, **PLACE) for one in sealed] == [b"seed"] * 2
    alone = SecretBox(KeyRing(2, {2: b"m" * 32}))
    assert alone.open(sealed[1], **PLACE) == b"seed"
    with pytest.raises(ApplianceError):
        alone.open(sealed[0], **PLACE)


def test_index_names_the_version_of_its_key() -> None:
    """The stored one is the present version's; all known ones are looked for."""
    first = LookupKey(KeyRing.of(b"k" * 32)).index("a", "b")
    lookup = LookupKey(KeyRing(2, {1: b"k" * 32, 2: b"m" * 32, 3: b"n" * 32}))

    indexes = lookup.indexes("a", "b")

    assert lookup.index("a", "b") == indexes[0]
    assert indexes[0].startswith("2:")
    assert indexes[1].startswith("3:")
    assert indexes[2] == first
    assert {len(index) for index in indexes} == {64}

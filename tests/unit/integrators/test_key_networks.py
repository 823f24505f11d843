"""Networks of API keys: how they are read, and who is in them."""

import pytest

from appliance.domain.errors import (
    NETWORK_HOST_BITS,
    NETWORK_MALFORMED,
    NETWORKS_TOO_MANY,
    FieldInvalidError,
)
from appliance.domain.integrators.key_networks import (
    LOCAL,
    NETWORKS_AT_MOST,
    is_within,
    read_networks,
)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        (" 10.0.0.0/8 ", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("2001:0DB8:0:0::/32", "2001:db8::/32"),
        ("::/0", "::/0"),
        ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
    ],
)
def test_network_is_kept_in_one_form(typed: str, read: str) -> None:
    """However it was written."""
    assert read_networks([typed]) == (read,)


def test_networks_keep_their_order_and_come_once() -> None:
    """As typed, without those that are there already."""
    typed = ["10.0.0.0/8", "2001:db8::/32", "10.0.0.0/8", "192.0.2.7", "192.0.2.7/32"]

    assert read_networks(typed) == ("10.0.0.0/8", "2001:db8::/32", "192.0.2.7/32")
    assert read_networks([]) == ()


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "local",
        "unix",
        "10.0.0",
        "10.0.0.256",
        "010.0.0.1",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/8/8",
        "192.0.2.7:80",
        "[2001:db8::1]",
        "2001:db8::/129",
        "2001:db8:::1",
        "fe80::1%eth0",
        "firma.example",
        "10.0.0.1-10.0.0.9",
        "\u0661\u0660.0.0.1",
        "4294967295",
        "1" * 10_000,
    ],
)
def test_what_is_no_network_is_refused_as_it_was_typed(typed: str) -> None:
    """The sentence names it, and not more of it than somebody can read."""
    with pytest.raises(FieldInvalidError) as refused:
        read_networks(["10.0.0.0/8", typed])

    assert (refused.value.field, refused.value.sentence) == (
        "networks",
        NETWORK_MALFORMED,
    )
    assert refused.value.params["network"] == typed[:64]


@pytest.mark.parametrize(
    ("typed", "whole", "one"),
    [
        ("10.1.2.3/8", "10.0.0.0/8", "10.1.2.3"),
        ("192.0.2.7/0", "0.0.0.0/0", "192.0.2.7"),
        ("2001:db8::1/64", "2001:db8::/64", "2001:db8::1"),
    ],
)
def test_address_in_a_network_is_told_what_to_write(
    typed: str, whole: str, one: str
) -> None:
    """It may be meant either way: nobody guesses which."""
    with pytest.raises(FieldInvalidError) as refused:
        read_networks([typed])

    assert refused.value.sentence == NETWORK_HOST_BITS
    assert refused.value.extras["allowed"] == [whole, one]
    assert {whole, one, typed} <= {*refused.value.params.values()}
    assert read_networks([whole, one])


def test_networks_are_twenty_at_most() -> None:
    """Of one more, the number is told."""
    typed = [f"10.0.{number}.0/24" for number in range(NETWORKS_AT_MOST + 1)]

    assert len(read_networks(typed[1:])) == NETWORKS_AT_MOST == 20
    with pytest.raises(FieldInvalidError) as refused:
        read_networks(typed)

    assert refused.value.sentence == NETWORKS_TOO_MANY
    assert (refused.value.params["count"], refused.value.params["most"]) == (21, 20)


@pytest.mark.parametrize(
    ("address", "within"),
    [
        ("10.0.0.0", True),
        ("10.255.255.255", True),
        ("11.0.0.0", False),
        ("9.255.255.255", False),
        ("2001:db8::1", True),
        ("2001:db8::2", False),
        ("::", False),
        (LOCAL, False),
    ],
)
def test_caller_is_within_a_network_or_not(address: str, within: bool) -> None:
    """By the whole address; a Unix socket is in no network."""
    networks = read_networks(["10.0.0.0/8", "2001:db8::1"])

    assert is_within(address, networks) is within


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", LOCAL])
def test_caller_may_be_anywhere_without_networks(address: str) -> None:
    """A key that names none works from everywhere."""
    assert is_within(address, ())

"""Who asks, through proxies: whose word is taken, and whose is not."""

import pytest

from appliance.web.server.client_address import Proxies, counted, read_typed

PROXY = "10.0.0.1"
XFF = "x-forwarded-for"


def client(header: str, *lines: str, peer: str = PROXY, unix: bool = False) -> str:
    """Whom a call with those lines of that header comes from."""
    trusted = ["10.0.0.0/24", "fd00::/8", *(["unix"] if unix else [])]
    headers = [(header.title().encode(), line.encode("latin-1")) for line in lines]
    return Proxies(trusted, header).client(peer, headers)


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        (" 192.0.2.1 ", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("6.6.6.6, 192.0.2.1", "192.0.2.1"),
        ("6.6.6.6, 192.0.2.1, 10.0.0.9, fd00::2", "192.0.2.1"),
        ("10.0.0.7, 10.0.0.8", "10.0.0.7"),
        ("", PROXY),
        ("unknown", PROXY),
        ("6.6.6.6, nadie", PROXY),
        ("6.6.6.6,", PROXY),
        ("\xff\xfe, ñ", PROXY),
        ("192.0.2.999", PROXY),
        ("," * 10_000, PROXY),
        ("1.1.1.1, " + "10.0.0.5, " * 5_000 + "10.0.0.6", "10.0.0.5"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_rightmost_untrusted_address(said: str, address: str) -> None:
    """What stands before it is the client's own word."""
    assert client(XFF, said) == address


def test_lines_of_the_header_are_one_list() -> None:
    """A proxy may add a line of its own."""
    assert client(XFF, "6.6.6.6", "192.0.2.1") == "192.0.2.1"


@pytest.mark.parametrize("header", [XFF, "forwarded"])
@pytest.mark.parametrize("peer", ["192.0.2.9", "11.0.0.1", "2001:db8::9", "", "x"])
def test_word_of_strangers_is_ignored(header: str, peer: str) -> None:
    """Whoever is no trusted proxy names nobody, over a Unix socket neither."""
    said = client(header, "1.2.3.4", "for=1.2.3.4", peer=peer)

    assert said == (peer if "." in peer or ":" in peer else "local")


def test_unix_socket_is_trusted_where_it_is_named() -> None:
    """Such a peer has no address: a word in the settings trusts it."""
    assert client(XFF, "192.0.2.1", peer="", unix=True) == "192.0.2.1"
    assert client(XFF, "x", peer="", unix=True) == "local"


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("for=192.0.2.1", "192.0.2.1"),
        ('For="192.0.2.1:4711";proto=https', "192.0.2.1"),
        ('by=10.0.0.1; FOR="[2001:db8::1]:80" ;host=a', "2001:db8::1"),
        ("for=6.6.6.6, for=192.0.2.1, for=10.0.0.8", "192.0.2.1"),
        ("for=unknown", PROXY),
        ("for=_oculto", PROXY),
        ("192.0.2.1", PROXY),
        ("notfor=192.0.2.1", PROXY),
        ('for="192.0.2.1', PROXY),
        (";;;===,,,", PROXY),
        ('for="' + "a" * 30_000, PROXY),
    ],
)
def test_forwarded(said: str, address: str) -> None:
    """RFC 7239, one element a hop."""
    assert client("forwarded", said) == address


def test_only_the_named_header_is_read() -> None:
    """A client could send the other one through a proxy that knows only its own."""
    headers = [(b"X-Forwarded-For", b"1.2.3.4"), (b"Forwarded", b"for=192.0.2.1")]

    assert Proxies(["10.0.0.1"], "forwarded").client(PROXY, headers) == "192.0.2.1"


def test_peers_of_a_double_listener_are_known() -> None:
    """A listener on `[::]` shows an IPv4 proxy as a mapped address."""
    assert client(XFF, "192.0.2.1", peer="::ffff:10.0.0.1") == "192.0.2.1"


def test_ipv6_is_counted_by_its_subscriber() -> None:
    """One subscriber has all of a /64."""
    assert counted("2001:db8:0:7:1::2") == "2001:db8:0:7::/64"
    assert (counted("192.0.2.1"), counted("local")) == ("192.0.2.1", "local")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (" 192.0.2.7 ", "192.0.2.7"),
        ("192.0.2.7:443", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::/64"),
        ("[2001:db8::7]:443", "2001:db8::/64"),
        ("mi casa", None),
        ("", None),
    ],
)
def test_typed_address_is_read_as_it_is_counted(text: str, address: str | None) -> None:
    """However somebody writes it, it is the one that calls from there have."""
    assert read_typed(text) == address

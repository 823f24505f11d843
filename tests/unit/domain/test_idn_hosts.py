"""Hosts with letters beyond ASCII, in both forms."""

import pytest

from appliance.domain.text.idn_hosts import ascii_host, host_in_letters


@pytest.mark.parametrize(
    ("typed", "stored", "shown"),
    [
        ("https://mañana.example", "https://xn--maana-pta.example", "mañana.example"),
        (
            "https://avisos.Ñandú.example:8443/a?b=ñ",
            "https://avisos.xn--and-6ma2c.example:8443/a?b=ñ",
            "avisos.ñandú.example",
        ),
        (
            "https://man\u0303ana.example",
            "https://xn--maana-pta.example",
            "mañana.example",
        ),
        ("https://app.example/x", "https://app.example/x", ""),
    ],
)
def test_host_has_both_forms(typed: str, stored: str, shown: str) -> None:
    """What is stored is DNS's form; the rest of the address stays as it is."""
    assert ascii_host(typed) == stored
    assert host_in_letters(stored) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mañana.example",
        "https://ñ_.example",
        "https://app\u3002example",
        "https://\uff41pp.example",
        "https://\u202eapp.example",
        "https://user@mañana.example",
        f"https://{'ñ' * 300}.example",
        "https://xn--a.ñ\n.example",
    ],
)
def test_what_is_no_such_host_stays_as_it_is(text: str) -> None:
    """Whoever reads the address refuses it."""
    assert ascii_host(text) == text


@pytest.mark.parametrize("text", ["https://xn--0.example", "xn--", "https://[xn--", ""])
def test_host_that_stands_for_nothing_has_no_letters(text: str) -> None:
    """Nothing is shown beside it."""
    assert host_in_letters(text) == ""

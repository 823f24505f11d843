"""The networks around an address."""

from appliance.domain.text.ip_networks import wider


def test_wider() -> None:
    """IPv6 alone has networks around it."""
    assert wider("2001:db8:1:2ff::/64") == ("2001:db8:1:200::/56", "2001:db8:1::/48")
    assert wider("192.0.2.7") == wider("local") == ()

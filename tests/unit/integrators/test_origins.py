"""Origins that may show the frame: exact ones, in the form browsers send."""

import pytest

from appliance.domain.errors import DomainInvalidError, ErrorCode
from appliance.domain.integrators.origins import parse_origin
from appliance.domain.vocab import Environment
from appliance.web import i18n


@pytest.mark.parametrize(
    ("typed", "origin"),
    [
        ("https://app.example", "https://app.example"),
        ("  HTTPS://App.Example/ ", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("https://app.example:8443", "https://app.example:8443"),
        ("https://intranet", "https://intranet"),
        ("https://xn--maana-pta.example", "https://xn--maana-pta.example"),
        ("https://Mañana.example:8443/", "https://xn--maana-pta.example:8443"),
        ("https://man\u0303ana.example", "https://xn--maana-pta.example"),
        ("https://a--b.example", "https://a--b.example"),
        ("https://127.example", "https://127.example"),
    ],
)
def test_origin_is_kept_as_browsers_send_it(typed: str, origin: str) -> None:
    """Case, the default port and a final slash do not count."""
    assert parse_origin(typed, Environment.PROD) == origin


@pytest.mark.parametrize(
    "typed",
    [
        "http://localhost:3000",
        "http://app.localhost:3000",
        "http://127.0.0.1:3000",
        "http://[::1]:3000",
        "https://localhost",
    ],
)
def test_local_origin_is_allowed_outside_prod_only(typed: str) -> None:
    """This machine's names serve for development, never in production."""
    assert parse_origin(typed, Environment.PREPROD) == typed
    if typed.startswith("http:"):
        with pytest.raises(DomainInvalidError):
            parse_origin(typed, Environment.PROD)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "null",
        "*",
        "app.example",
        "//app.example",
        "https://",
        "https:/app.example",
        "https:\\\\app.example",
        "http://app.example",
        "ws://app.example",
        "javascript://app.example",
        "chrome-extension://abcdefgh",
        "https://*.app.example",
        "https://*",
        "https://app.example.",
        "https://.app.example",
        "https://app..example",
        "https://-app.example",
        "https://app_1.example",
        "https://app.example/embed",
        "https://app.example//",
        "https://app.example?x",
        "https://app.example#x",
        "https://user@app.example",
        "https://user:pass@app.example",
        "https://app.example:0",
        "https://app.example:00443",
        "https://app.example:65536",
        "https://app.example:",
        "https://app.example:*",
        "https://10.0.0.1",
        "https://127.0.0.2",
        "http://127.1",
        "https://0x7f.1",
        "https://2130706433",
        "https://0x7f000001",
        "https://[2001:db8::1]",
        "http://[::ffff:127.0.0.1]",
        "https://app\u3002example",
        "https://\uff41pp.example",
        "https://xn--.example",
        "https://xn--abc-.example",
        "https://xn--0.example",
        "https://ab--c.example",
        "https://app.example; script-src *",
        "https://app.example,https://evil.example",
        "https://app.example https://evil.example",
        "https://app.example\n",
        "https://app\t.example",
        "https://localhost.",
        "http://localhost.evil.example",
        "http://evil-localhost",
        "https://" + "a" * 64 + ".example",
        "https://" + "a." * 130 + "example",
    ],
)
def test_trick_is_refused(typed: str) -> None:
    """Whatever is no exact origin, or could be read as another, is refused."""
    with pytest.raises(DomainInvalidError) as refused:
        parse_origin(typed, Environment.PREPROD)

    assert refused.value.code is ErrorCode.DOMAIN_INVALID
    reason = refused.value.reason
    assert i18n.translate("es", reason) != reason


def test_address_of_a_private_network_is_for_a_trials_own_site() -> None:
    """Outside PROD, by https, and only where the caller asks for it."""
    typed = "https://192.168.0.10:8090"

    assert parse_origin(typed, Environment.PREPROD, in_private_network=True) == typed
    for environment, asked in (
        (Environment.PREPROD, False),
        (Environment.PROD, True),
        (Environment.PROD, False),
    ):
        with pytest.raises(DomainInvalidError):
            parse_origin(typed, environment, in_private_network=asked)


@pytest.mark.parametrize(
    "typed",
    [
        "http://192.168.0.10:8090",
        "https://8.8.8.8",
        "https://192.168.0.010",
        "https://192.168.10",
        "https://0xc0a8000a",
        "https://[fd00::1]",
        "https://224.0.0.1",
        "https://192.168.0.10.example.",
    ],
)
def test_other_addresses_are_refused_there_too(typed: str) -> None:
    """Public ones, other spellings, IPv6, plain http."""
    with pytest.raises(DomainInvalidError):
        parse_origin(typed, Environment.PREPROD, in_private_network=True)

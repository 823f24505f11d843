"""An authenticator app's new entry as the console shows it: QR code, key and name."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import segno

_GROUP: Final = 4


@dataclass(frozen=True, slots=True)
class AuthenticatorEntry:
    """An entry that an authenticator app can take."""

    uri: str = field(repr=False)
    """`otpauth://…`."""
    qr: str = field(repr=False)
    """The same as a QR code, in SVG."""
    key: str = field(repr=False)
    """The seed in base32, in groups of four, to be typed."""
    issuer: str
    """Name of the service, as the app shows it."""
    account: str
    """Account name of the entry, as the app shows it."""


def authenticator_entry(uri: str) -> AuthenticatorEntry:
    """Describe an entry.

    Args:
        uri: as `appliance.identity.totp.provisioning_uri` makes it.

    Source: github.com/google/google-authenticator, "Key URI format".
    """
    address = urlsplit(uri)
    query = parse_qs(address.query)
    (seed,), (issuer,) = query["secret"], query["issuer"]
    label = unquote(address.path.removeprefix("/"))
    return AuthenticatorEntry(
        uri=uri,
        qr=segno.make(uri, error="m").svg_inline(
            scale=5, border=4, dark="#000", light="#fff", omitsize=True
        ),
        key=" ".join(seed[at : at + _GROUP] for at in range(0, len(seed), _GROUP)),
        issuer=issuer,
        account=label.removeprefix(f"{issuer}:"),
    )

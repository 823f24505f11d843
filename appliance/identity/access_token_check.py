"""Reading an access token: form, header and claims, each pinned exactly.

Pure checks without keys or clock of their own. The signature is checked by
`appliance.identity.access_tokens` between `read` and `check_claims`.
"""

import base64
import binascii
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.text import strict_json

ALGORITHM: Final = "ES256"
TYPE: Final = "at+jwt"
MAX_TOKEN: Final = 8192
"""Longest token, in characters; checked before anything is decoded."""
MAX_LIFETIME_S: Final = 900
LEEWAY_S: Final = 5
"""How far the clocks of two hosts may be apart; never added to `exp`."""
SECOND_FACTORS: Final = frozenset({"otp", "mfa", "hwk"})
_HEADER = frozenset({"alg", "typ", "kid"})
_MAX_TEXT = 256
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, where Python's calendar ends."""
_INVALID = ErrorCode.TOKEN_INVALID


@dataclass(frozen=True, slots=True)
class ReadToken:
    """A token's parts, not yet trusted."""

    kid: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says, all of it checked."""

    subject: str
    factors: tuple[str, ...]
    authenticated_at: datetime


def read(token: str) -> ReadToken:
    """Take a compact JWS apart and check its header.

    A header with any other name than alg, typ and kid is refused: an
    embedded or pointed-to key (jwk, jku, x5u, x5c), `crit`, `b64`, `zip`.

    Args:
        token: as it came.

    Raises:
        ApplianceError: `TOKEN_INVALID`.

    Source: RFC 7515, 5.2; RFC 8725, 3.1 and 3.11; RFC 9068, 4.
    """
    if len(token) > MAX_TOKEN or not token.isascii():
        raise ApplianceError(_INVALID)
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 (header, payload, signature)
        raise ApplianceError(_INVALID)
    raw_header, payload, _signature = (_decode(part) for part in parts)
    header = _object(raw_header)
    kid = header.get("kid")
    if (
        header.keys() != _HEADER
        or header["alg"] != ALGORITHM
        or header["typ"] != TYPE
        or not isinstance(kid, str)
    ):
        raise ApplianceError(_INVALID)
    return ReadToken(kid, payload)


def check_claims(payload: bytes, issuer: str, audience: str, now: datetime) -> Claims:
    """Check every claim of a token whose signature is right.

    Args:
        payload: the signed bytes.
        issuer: the only `iss`.
        audience: the only `aud`, alone.
        now: the time.

    Returns:
        What the token says.

    Raises:
        ApplianceError: `TOKEN_INVALID`, `TOKEN_EXPIRED`, `MFA_REQUIRED`.

    Source: RFC 9068, 2.2 and 4; RFC 8725, 3.8 and 3.9; decisions "JWT".
    """
    claims = _object(payload)
    if claims.get("iss") != issuer or claims.get("aud") not in (audience, [audience]):
        raise ApplianceError(_INVALID)
    subject = _text(claims, "sub")
    _text(claims, "client_id")
    _text(claims, "jti")
    issued, expires = _instant(claims, "iat"), _instant(claims, "exp")
    authenticated = _instant(claims, "auth_time")
    latest = math.floor(now.timestamp()) + LEEWAY_S
    if not 0 < expires - issued <= MAX_LIFETIME_S:
        raise ApplianceError(_INVALID)
    if issued > latest or authenticated > issued + LEEWAY_S:
        raise ApplianceError(_INVALID)
    if "nbf" in claims and _instant(claims, "nbf") > latest:
        raise ApplianceError(_INVALID)
    factors = _words(claims, "amr")
    if now.timestamp() >= expires:
        raise ApplianceError(ErrorCode.TOKEN_EXPIRED)
    if not SECOND_FACTORS.intersection(factors):
        raise ApplianceError(ErrorCode.MFA_REQUIRED)
    return Claims(subject, factors, datetime.fromtimestamp(authenticated, UTC))


def _decode(part: str) -> bytes:
    """Base64url in its one canonical form: no padding, no stray bits.

    Raises:
        ApplianceError: `TOKEN_INVALID`.
    """
    try:
        raw = base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ApplianceError(_INVALID) from exc
    if not raw or base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise ApplianceError(_INVALID)
    return raw


def _object(raw: bytes) -> dict[str, object]:
    """One JSON object, read as strictly as a body.

    Raises:
        ApplianceError: `TOKEN_INVALID`.
    """
    try:
        value = strict_json.parse(raw)
    except ApplianceError as exc:
        raise ApplianceError(_INVALID) from exc
    if not isinstance(value, dict):
        raise ApplianceError(_INVALID)
    return value


def _text(claims: dict[str, object], name: str) -> str:
    """A claim that must be a string of 1 to 256 characters.

    Raises:
        ApplianceError: `TOKEN_INVALID`.
    """
    value = claims.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= _MAX_TEXT:
        raise ApplianceError(_INVALID)
    return value


def _instant(claims: dict[str, object], name: str) -> int:
    """A claim that must be a time in whole seconds, one a calendar can hold.

    Raises:
        ApplianceError: `TOKEN_INVALID`.
    """
    value = claims.get(name)
    if type(value) is not int or not 0 <= value <= _LAST_SECOND:
        raise ApplianceError(_INVALID)
    return value


def _words(claims: dict[str, object], name: str) -> tuple[str, ...]:
    """A claim that must be a list of strings; absent is empty.

    Raises:
        ApplianceError: `TOKEN_INVALID`.
    """
    value = claims.get(name, [])
    if not isinstance(value, list):
        raise ApplianceError(_INVALID)
    words = [word for word in value if isinstance(word, str)]
    if len(words) != len(value):
        raise ApplianceError(_INVALID)
    return tuple(words)

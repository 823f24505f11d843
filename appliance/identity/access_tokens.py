"""Access tokens: ES256 `at+jwt` as RFC 9068 has them, and the keys that sign them.

Private keys stand sealed in the database. A key signs for thirty days; its
successor is published a day before it takes over, and its own tokens are
accepted for a day after.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from appliance.domain import strict_json
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, new_id
from appliance.domain.people.login import JwtKeyRow
from appliance.domain.ports import Sealer
from appliance.domain.requests.request import Signer
from appliance.people.login_store import JwtKeyStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database
from appliance.settings import Settings

CLIENT: Final = "rubrica"
"""`client_id` of tokens from our own sign-in."""
SIGNS: Final = timedelta(days=30)
"""How long a key signs."""
OVERLAP: Final = timedelta(days=1)
"""How long it is published before, and accepted after."""
_REREAD: Final = timedelta(seconds=5)
"""Least time between two looks for keys of other processes."""
ALGORITHM: Final = "ES256"
TYPE: Final = "at+jwt"
MAX_TOKEN: Final = 8192
"""Longest token, in characters; checked before anything is decoded."""
MAX_LIFETIME_S: Final = 900
LEEWAY_S: Final = 5
"""How far the clocks of two hosts may be apart; never added to `exp`."""
SECOND_FACTORS: Final = frozenset({"otp", "mfa", "hwk"})
_HEADER: Final = frozenset({"alg", "typ", "kid"})
_LAST_SECOND: Final = 253_402_300_799
"""Of the year 9999, where Python's calendar ends."""
_INVALID: Final = ErrorCode.TOKEN_INVALID
_Text = Annotated[str, Field(min_length=1, max_length=256)]
_Seconds = Annotated[int, Field(ge=0, le=_LAST_SECOND)]


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new access token."""

    token: str
    expires_in_s: int

    def __repr__(self) -> str:
        """Never show the token."""
        return "IssuedToken(…)"


@dataclass(frozen=True, slots=True)
class _Key:
    row: JwtKeyRow
    public: ECKey


@dataclass(frozen=True, slots=True)
class ReadToken:
    """A token's parts, not yet trusted."""

    kid: str
    payload: bytes


class _Claims(BaseModel):
    """What a token has to say, each of exactly one type; what else it says is left."""

    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)

    iss: str
    aud: str | list[str]
    sub: _Text
    client_id: _Text
    jti: _Text
    iat: _Seconds
    exp: _Seconds
    auth_time: _Seconds
    nbf: _Seconds = 0
    amr: list[str] = []


class AccessTokens:
    """Issues and checks access tokens.

    Args:
        store: where keys and people are.
        sealer: keeps private keys.
        clock: the time.
        settings: issuer, audience, lifetimes.
    """

    def __init__(
        self, store: Database, sealer: Sealer, clock: Clock, settings: Settings
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._auth = settings.auth
        self._issuer = settings.auth.issuer or settings.web.base_url
        self._audience = settings.auth.audience or settings.web.base_url
        self._keys: dict[str, _Key] = {}
        self._read_at: datetime | None = None

    async def issue(
        self, person: PersonId, factors: tuple[str, ...], authenticated_at: datetime
    ) -> IssuedToken:
        """Make an access token for a person who has just signed in.

        Args:
            person: `sub`.
            factors: `amr`.
            authenticated_at: `auth_time`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.

        Source: RFC 9068, 2; decisions "login", "JWT".
        """
        key = await self._signing_key()
        now = int(self._clock.now().timestamp())
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": person,
            "client_id": CLIENT,
            "iat": now,
            "exp": now + self._auth.token_ttl_s,
            "jti": new_id(),
            "auth_time": int(authenticated_at.timestamp()),
            "amr": list(factors),
        }
        header = {
            "alg": ALGORITHM,
            "typ": TYPE,
            "kid": key.row.kid,
        }
        payload = json.dumps(claims, separators=(",", ":")).encode()
        token = jws.serialize_compact(
            header, payload, self._private(key), algorithms=[ALGORITHM]
        )
        return IssuedToken(token, self._auth.token_ttl_s)

    async def verify(
        self, token: str, named: Callable[[PersonId], None] | None = None
    ) -> Signer:
        """Turn an access token into the person it stands for.

        Args:
            token: as it came.
            named: told whom a genuine one names, before the record is asked whether it
                still holds; what it raises goes on.

        Raises:
            ApplianceError: `TOKEN_INVALID`, `TOKEN_EXPIRED`, `MFA_REQUIRED`,
                `STORE_UNAVAILABLE`.

        Source: RFC 9068, 4; decisions "JWT".
        """
        read, now = read_token(token), self._clock.now()
        if read.kid not in self._keys and self._may_reread(now):
            await self._reread(now)
        key = self._keys.get(read.kid)
        if key is None or key.row.valid_until <= now:
            # Nobody has it, or its time is over.
            raise ApplianceError(ErrorCode.TOKEN_INVALID)
        try:
            jws.deserialize_compact(token, key.public, algorithms=[ALGORITHM])
        except (JoseError, ValueError) as exc:
            raise ApplianceError(ErrorCode.TOKEN_INVALID) from exc
        claims = _check_claims(read.payload, self._issuer, self._audience, now)
        since = datetime.fromtimestamp(claims.auth_time, UTC)
        if named is not None:
            named(PersonId(claims.sub))
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(PersonId(claims.sub))
        if person is None or not person.may_go_on(since):
            raise ApplianceError(_INVALID)
        return Signer(person.id, f"person:{person.id}", tuple(claims.amr), since)

    def require_fresh(self, signer: Signer) -> None:
        """Demand that the second factor is young enough to sign.

        Args:
            signer: as `verify` gave it.

        Raises:
            ApplianceError: `STEP_UP`.

        Source: decisions "JWT" (factor age).
        """
        age = self._clock.now() - signer.authenticated_at
        if age >= timedelta(seconds=self._auth.factor_age_s):
            raise ApplianceError(ErrorCode.STEP_UP)

    async def jwks(self) -> dict[str, object]:
        """The public keys, as a JWK set.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.

        Source: RFC 7517, 5.
        """
        await self._signing_key()
        return {"keys": [key.row.public for key in self._keys.values()]}

    def _may_reread(self, now: datetime) -> bool:
        """Whether so much time has passed that made-up kids cost nothing."""
        return self._read_at is None or now - self._read_at >= _REREAD

    async def _reread(self, now: datetime) -> None:
        async with self._store.read() as transaction:
            self._take(await JwtKeyStore(transaction).valid(now), now)

    def _take(self, rows: list[JwtKeyRow], now: datetime) -> None:
        self._keys = {row.kid: _Key(row, ECKey.import_key(_jwk(row))) for row in rows}
        self._read_at = now

    async def _signing_key(self) -> _Key:
        """The key that signs now; a missing one or its successor is made."""
        now = self._clock.now()
        if self._lacks_key(now):
            await self._reread(now)
        if self._lacks_key(now):
            await self._add_key(now)
        # The newest whose turn it is; the order of `valid` is by time.
        return [key for key in self._keys.values() if key.row.valid_from <= now][-1]

    def _lacks_key(self, now: datetime) -> bool:
        """Whether no key would sign a day from now."""
        soon = now + OVERLAP
        starts = [key.row.valid_from for key in self._keys.values()]
        return not (
            any(start <= now < start + SIGNS for start in starts)
            and any(start <= soon < start + SIGNS for start in starts)
        )

    async def _add_key(self, now: datetime) -> None:
        """Make a key: for now, or to follow the one that ends within a day."""
        async with self._store.write() as transaction:
            await JwtKeyStore(transaction).lock()
            self._take(await JwtKeyStore(transaction).valid(now), now)
            # Another process may have made it meanwhile.
            if not self._lacks_key(now):
                return
            ends = [key.row.valid_from + SIGNS for key in self._keys.values()]
            begin = max([now, *(end for end in ends if end > now)])
            key = ECKey.generate_key("P-256", auto_kid=True)
            kid = str(key.kid)
            public = key.as_dict(private=False)
            row = JwtKeyRow(
                kid=kid,
                private_sealed=self._sealer.seal(
                    key.as_pem(private=True),
                    table="jwt_key",
                    row=kid,
                    column="private_sealed",
                ),
                public={**public, "use": "sig", "alg": ALGORITHM},
                valid_from=begin,
                valid_until=begin + SIGNS + OVERLAP,
            )
            await JwtKeyStore(transaction).add(row)
            rows = await JwtKeyStore(transaction).valid(now)
        self._take(rows, now)

    def _private(self, key: _Key) -> ECKey:
        """Open a key's private half, for one signature."""
        pem = self._sealer.open(
            key.row.private_sealed,
            table="jwt_key",
            row=key.row.kid,
            column="private_sealed",
        )
        return ECKey.import_key(pem)


def _jwk(row: JwtKeyRow) -> dict[str, str | list[str]]:
    """The public key alone, as the library takes it."""
    return {name: str(row.public[name]) for name in ("kty", "crv", "x", "y")}


def read_token(token: str) -> ReadToken:
    """Take a compact JWS apart and check its header, without any key.

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
    try:
        header = strict_json.parse_object(raw_header)
    except ApplianceError as exc:
        raise ApplianceError(_INVALID) from exc
    kid = header.get("kid")
    if (
        header.keys() != _HEADER
        or header["alg"] != ALGORITHM
        or header["typ"] != TYPE
        or not isinstance(kid, str)
    ):
        raise ApplianceError(_INVALID)
    return ReadToken(kid, payload)


def _check_claims(payload: bytes, issuer: str, audience: str, now: datetime) -> _Claims:
    """Check every claim of a token whose signature is right.

    Args:
        payload: the signed bytes.
        issuer: the only `iss`.
        audience: the only `aud`, alone.
        now: the time.

    Raises:
        ApplianceError: `TOKEN_INVALID`, `TOKEN_EXPIRED`, `MFA_REQUIRED`, the first of
            these where several hold.

    Source: RFC 9068, 2.2 and 4; RFC 8725, 3.8 and 3.9; decisions "JWT".
    """
    # joserfc's `JWTClaimsRegistry` would let more in: one leeway for `exp` and the
    # others, our audience among several, times with a fraction; and of an expired
    # token that is wrong besides it tells whichever claim comes first.
    try:
        claims = _Claims.model_validate(strict_json.parse_object(payload))
    except (ApplianceError, ValidationError) as exc:
        raise ApplianceError(_INVALID) from exc
    latest = math.floor(now.timestamp()) + LEEWAY_S
    if (
        claims.iss != issuer
        or claims.aud not in (audience, [audience])
        or not 0 < claims.exp - claims.iat <= MAX_LIFETIME_S
        or max(claims.iat, claims.nbf) > latest
        or claims.auth_time > claims.iat + LEEWAY_S
    ):
        raise ApplianceError(_INVALID)
    if now.timestamp() >= claims.exp:
        raise ApplianceError(ErrorCode.TOKEN_EXPIRED)
    if not SECOND_FACTORS.intersection(claims.amr):
        raise ApplianceError(ErrorCode.MFA_REQUIRED)
    return claims


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

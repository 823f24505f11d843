"""Access tokens: ES256 `at+jwt` as RFC 9068 has them, and the keys that sign them.

Private keys stand sealed in the database. A key signs for thirty days; its
successor is published a day before it takes over, and its own tokens are
accepted for a day after.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from appliance.core.unit_of_work import Database
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, new_id
from appliance.domain.login import JwtKeyRow
from appliance.domain.ports import Sealer
from appliance.domain.requests.request import Signer
from appliance.identity import access_token_check
from appliance.identity.login_store import JwtKeyStore
from appliance.identity.person_store import PersonStore
from appliance.settings import Settings

CLIENT: Final = "rubrica"
"""`client_id` of tokens from our own sign-in."""
SIGNS: Final = timedelta(days=30)
"""How long a key signs."""
OVERLAP: Final = timedelta(days=1)
"""How long it is published before, and accepted after."""
_REREAD: Final = timedelta(seconds=5)
"""Least time between two looks for keys of other processes."""


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


class Tokens:
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
            "alg": access_token_check.ALGORITHM,
            "typ": access_token_check.TYPE,
            "kid": key.row.kid,
        }
        payload = json.dumps(claims, separators=(",", ":")).encode()
        token = jws.serialize_compact(
            header,
            payload,
            self._private(key),
            algorithms=[access_token_check.ALGORITHM],
        )
        return IssuedToken(token, self._auth.token_ttl_s)

    async def verify(self, token: str) -> Signer:
        """Turn an access token into the person it stands for.

        Args:
            token: as it came.

        Raises:
            ApplianceError: `TOKEN_INVALID`, `TOKEN_EXPIRED`, `MFA_REQUIRED`,
                `STORE_UNAVAILABLE`.

        Source: RFC 9068, 4; decisions "JWT".
        """
        read = access_token_check.read(token)
        key = await self._key(read.kid)
        try:
            jws.deserialize_compact(
                token, key.public, algorithms=[access_token_check.ALGORITHM]
            )
        except (JoseError, ValueError) as exc:
            raise ApplianceError(ErrorCode.TOKEN_INVALID) from exc
        claims = access_token_check.check_claims(
            read.payload, self._issuer, self._audience, self._clock.now()
        )
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(PersonId(claims.subject))
        if person is None or not person.may_go_on(claims.authenticated_at):
            raise ApplianceError(ErrorCode.TOKEN_INVALID)
        return Signer(
            person.id, f"person:{person.id}", claims.factors, claims.authenticated_at
        )

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

    async def _key(self, kid: str) -> _Key:
        """The key of a `kid`, looked for once more when it is not known yet.

        Raises:
            ApplianceError: `TOKEN_INVALID`: nobody has it, or its time is over.
        """
        now = self._clock.now()
        if kid not in self._keys and self._may_reread(now):
            await self._reread(now)
        key = self._keys.get(kid)
        if key is None or key.row.valid_until <= now:
            raise ApplianceError(ErrorCode.TOKEN_INVALID)
        return key

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
                public={**public, "use": "sig", "alg": access_token_check.ALGORITHM},
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

"""Tokens that we did not issue, or no longer stand by: none of them signs anybody in.

Source: decisions "JWT"; RFC 8725.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from joserfc import jwe
from joserfc.jwk import ECKey, OctKey
from sqlalchemy import update

from appliance.database import tables
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import PersonState
from appliance.people.login_store import JwtKeyStore
from tests.support.installation.api import BASE_URL, ApiServices


def b64(raw: bytes | str | dict[str, Any]) -> str:
    """Unpadded base64url of bytes, text or JSON."""
    if isinstance(raw, dict):
        raw = json.dumps(raw)
    data = raw.encode() if isinstance(raw, str) else raw
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Forge:
    """Makes tokens by hand, with the appliance's own key where wanted."""

    def __init__(
        self, key: ec.EllipticCurvePrivateKey, kid: str, api_services: ApiServices
    ) -> None:
        self.key = key
        self.header: dict[str, Any] = {"alg": "ES256", "typ": "at+jwt", "kid": kid}
        now = int(api_services.clock.now().timestamp())
        self.now = now
        self.claims: dict[str, Any] = {
            "iss": BASE_URL,
            "aud": BASE_URL,
            "sub": "",
            "client_id": "rubrica",
            "iat": now,
            "exp": now + 900,
            "jti": "1",
            "auth_time": now,
            "amr": ["pwd", "otp"],
        }

    def sign(self, signed: str) -> bytes:
        """ES256 with the appliance's key."""
        r, s = decode_dss_signature(
            self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
        )
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def make(self, header: Any = None, claims: Any = None) -> str:
        """A token, rightly signed, of any header and claims."""
        head = self.header if header is None else header
        body = self.claims if claims is None else claims
        signed = f"{b64(head)}.{b64(body)}"
        return f"{signed}.{b64(self.sign(signed))}"

    def without(self, name: str) -> str:
        """A token that lacks a claim."""
        return self.make(None, {k: v for k, v in self.claims.items() if k != name})

    def with_claims(self, **changed: Any) -> str:
        """A token with other claims."""
        return self.make(None, {**self.claims, **changed})

    def with_header(self, **changed: Any) -> str:
        """A token with another header."""
        return self.make({**self.header, **changed})


@pytest.fixture
async def forge(api_services: ApiServices) -> Forge:
    """A forger who has got hold of the real key, for a real person."""
    person, _ = await api_services.add_person()
    await api_services.tokens.jwks()
    async with api_services.store.read() as transaction:
        row = (await JwtKeyStore(transaction).valid(api_services.clock.now()))[0]
    pem = api_services.sealer.open(
        row.private_sealed, table="jwt_key", row=row.kid, column="private_sealed"
    )
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    made = Forge(key, row.kid, api_services)
    made.claims["sub"] = person
    return made


async def code_of(api_services: ApiServices, token: str) -> ErrorCode:
    """The error that a token gives."""
    with pytest.raises(ApplianceError) as caught:
        await api_services.tokens.verify(token)
    return caught.value.code


async def test_hand_made_token_verifies(
    api_services: ApiServices, forge: Forge
) -> None:
    """The forger's tokens fail for their faults, not for their making."""
    signer = await api_services.tokens.verify(forge.make())
    in_list = await api_services.tokens.verify(forge.with_claims(aud=[BASE_URL]))

    assert signer.person == in_list.person == forge.claims["sub"]


def hs256(forge: Forge, secret: bytes) -> str:
    """A token signed by HMAC with something that is public."""
    signed = f"{b64({**forge.header, 'alg': 'HS256'})}.{b64(forge.claims)}"
    mac = hmac.HMAC(secret, hashes.SHA256())
    mac.update(signed.encode())
    return f"{signed}.{b64(mac.finalize())}"


def public_pem(forge: Forge) -> bytes:
    """The public key as anybody can have it."""
    return forge.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def rs256(forge: Forge) -> str:
    """A token signed with an RSA key of the forger's own."""
    signed = f"{b64({**forge.header, 'alg': 'RS256'})}.{b64(forge.claims)}"
    key = rsa.generate_private_key(65537, 2048)
    made = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{b64(made)}"


def own_key(forge: Forge, **header: Any) -> str:
    """A token signed with an EC key of the forger's own."""
    other = Forge.__new__(Forge)
    other.key = ec.generate_private_key(ec.SECP256R1())
    other.header, other.claims = {**forge.header, **header}, forge.claims
    return other.make()


def embedded(forge: Forge) -> str:
    """A token that brings the forger's public key along."""
    other = ec.generate_private_key(ec.SECP256R1())
    jwk = ECKey.import_key(
        other.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    ).as_dict(private=False)
    made = Forge.__new__(Forge)
    made.key, made.claims = other, forge.claims
    made.header = {**forge.header, "jwk": jwk}
    return made.make()


def encrypted(forge: Forge, **header: Any) -> str:
    """A JWE, perhaps with compression."""
    key = OctKey.generate_key(256)
    return jwe.encrypt_compact(
        {"alg": "dir", "enc": "A256GCM", "kid": forge.header["kid"], **header},
        json.dumps(forge.claims),
        key,
    )


def parts_of(token: str) -> list[str]:
    """Header, payload, signature."""
    return token.split(".")


def raw_header(forge: Forge, text: str) -> str:
    """A token with a header of any text, rightly signed."""
    signed = f"{b64(text)}.{b64(forge.claims)}"
    return f"{signed}.{b64(forge.sign(signed))}"


def raw_claims(forge: Forge, text: str) -> str:
    """A token with claims of any text, rightly signed."""
    signed = f"{b64(forge.header)}.{b64(text)}"
    return f"{signed}.{b64(forge.sign(signed))}"


def _der(forge: Forge) -> str:
    signed = f"{b64(forge.header)}.{b64(forge.claims)}"
    made = forge.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
    return f"{signed}.{b64(made)}"


def _swapped(forge: Forge) -> str:
    head, _body, signature = parts_of(forge.make())
    return f"{head}.{b64({**forge.claims, 'sub': 'other'})}.{signature}"


def _stray_bits(forge: Forge) -> str:
    """The same signature bytes in a text that is not canonical."""
    token = forge.make()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet.index(token[-1])
    return token[:-1] + alphabet[last ^ 1]


ATTACKS: dict[str, Callable[[Forge], str]] = {
    # Algorithms
    "none": lambda f: f"{b64({**f.header, 'alg': 'none'})}.{b64(f.claims)}.",
    "None": lambda f: f"{b64({**f.header, 'alg': 'None'})}.{b64(f.claims)}.",
    "nOnE_signed": lambda f: f.with_header(alg="nOnE"),
    "hs256_of_pem": lambda f: hs256(f, public_pem(f)),
    "hs256_of_empty": lambda f: hs256(f, b""),
    "rs256": rs256,
    "es384_named": lambda f: f.with_header(alg="ES384"),
    "es256_lower": lambda f: f.with_header(alg="es256"),
    "alg_list": lambda f: f.with_header(alg=["ES256"]),
    "own_key": own_key,
    # Keys that come along
    "jwk": embedded,
    "jku": lambda f: own_key(f, jku="https://evil.example/jwks.json"),
    "x5u": lambda f: own_key(f, x5u="https://evil.example/cert.pem"),
    "x5c": lambda f: own_key(f, x5c=["MIIB"]),
    "jku_on_right_token": lambda f: f.with_header(jku="https://evil.example/"),
    "kid_unknown": lambda f: f.with_header(kid="unknown"),
    "kid_path": lambda f: f.with_header(kid="../../../../dev/null"),
    "kid_sql": lambda f: f.with_header(kid="' OR 1=1 --"),
    "kid_array": lambda f: f.with_header(kid=[f.header["kid"]]),
    "kid_null": lambda f: f.with_header(kid=None),
    "kid_missing": lambda f: f.make({"alg": "ES256", "typ": "at+jwt"}),
    # Extensions and kinds
    "crit": lambda f: f.with_header(crit=["exp"]),
    "crit_unknown": lambda f: f.with_header(crit=["x"], x=1),
    "b64": lambda f: f.with_header(b64=False, crit=["b64"]),
    "zip": lambda f: f.with_header(zip="DEF"),
    "typ_jwt": lambda f: f.with_header(typ="JWT"),
    "typ_session": lambda f: f.with_header(typ="session+jwt"),
    "typ_missing": lambda f: f.make({"alg": "ES256", "kid": f.header["kid"]}),
    # Claims
    **{
        f"without_{name}": lambda f, name=name: f.without(name)  # type: ignore[misc]  # a loop's name
        for name in (
            "iss",
            "aud",
            "sub",
            "client_id",
            "iat",
            "exp",
            "jti",
            "auth_time",
        )
    },
    "exp_text": lambda f: f.with_claims(exp=str(f.now + 900)),
    "exp_bool": lambda f: f.with_claims(exp=True),
    "exp_float": lambda f: f.with_claims(exp=f.now + 0.5),
    "exp_nan": lambda f: raw_claims(f, json.dumps({**f.claims, "exp": float("nan")})),
    "exp_inf": lambda f: raw_claims(f, json.dumps({**f.claims, "exp": float("inf")})),
    "exp_huge": lambda f: f.with_claims(exp=10**30),
    "exp_901": lambda f: f.with_claims(exp=f.now + 901),
    "exp_before_iat": lambda f: f.with_claims(exp=f.now - 1),
    "exp_negative": lambda f: f.with_claims(exp=-1),
    "iat_future": lambda f: f.with_claims(iat=f.now + 60, exp=f.now + 600),
    "nbf_future": lambda f: f.with_claims(nbf=f.now + 60),
    "nbf_text": lambda f: f.with_claims(nbf="0"),
    "auth_time_future": lambda f: f.with_claims(auth_time=f.now + 60),
    "aud_with_others": lambda f: f.with_claims(aud=[BASE_URL, "https://b.example"]),
    "aud_other": lambda f: f.with_claims(aud="https://b.example"),
    "aud_twice": lambda f: f.with_claims(aud=[BASE_URL, BASE_URL]),
    "aud_empty": lambda f: f.with_claims(aud=[]),
    "iss_other": lambda f: f.with_claims(iss="https://b.example"),
    "iss_slash": lambda f: f.with_claims(iss=f"{BASE_URL}/"),
    "sub_number": lambda f: f.with_claims(sub=5),
    "sub_object": lambda f: f.with_claims(sub={"id": f.claims["sub"]}),
    "sub_empty": lambda f: f.with_claims(sub=""),
    "sub_unknown": lambda f: f.with_claims(sub="9f1c8f0e-0000-4000-8000-000000000000"),
    "jti_number": lambda f: f.with_claims(jti=1),
    "amr_text": lambda f: f.with_claims(amr="otp"),
    "amr_mixed": lambda f: f.with_claims(amr=["otp", 1]),
    "claims_twice": lambda f: raw_claims(f, '{"iss":"a",' + json.dumps(f.claims)[1:]),
    "claims_array": lambda f: raw_claims(f, json.dumps([f.claims])),
    "claims_no_json": lambda f: raw_claims(f, "hola"),
    "header_twice": lambda f: raw_header(
        f, '{"alg":"none",' + json.dumps(f.header)[1:]
    ),
    "header_array": lambda f: raw_header(f, "[]"),
    # Form
    "four_parts": lambda f: f.make() + "." + b64("x"),
    "two_parts": lambda f: ".".join(parts_of(f.make())[:2]),
    "one_part": lambda f: parts_of(f.make())[0],
    "empty": lambda _: "",
    "dots": lambda _: "..",
    "no_signature": lambda f: ".".join(parts_of(f.make())[:2]) + ".",
    "padding": lambda f: f.make() + "==",
    "space_inside": lambda f: f.make().replace(".", ". ", 1),
    "newline": lambda f: f.make() + "\n",
    "unicode": lambda f: f.make() + "é",
    "standard_base64": lambda f: f.make()[:-1] + "+",
    "huge": lambda _: "A" * 10_000_000,
    "cut_signature": lambda f: f.make()[:-4],
    "der_signature": _der,
    "zero_signature": lambda f: ".".join([*parts_of(f.make())[:2], b64(bytes(64))]),
    "swapped_claims": _swapped,
    "stray_bits": _stray_bits,
    # Encryption
    "jwe": encrypted,
    "jwe_zip": lambda f: encrypted(f, zip="DEF"),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_forged_token_refused(
    api_services: ApiServices, forge: Forge, attack: Callable[[Forge], str]
) -> None:
    """Every forgery is `TOKEN_INVALID` and nothing else."""
    assert await code_of(api_services, attack(forge)) is ErrorCode.TOKEN_INVALID


@pytest.mark.parametrize(("after_s", "accepted"), [(899, True), (900, False)])
async def test_token_expires_sharply(
    api_services: ApiServices, forge: Forge, after_s: int, *, accepted: bool
) -> None:
    """A token is good until the second of its `exp`, with no leeway."""
    token = forge.make()
    api_services.clock.forward(after_s)

    if accepted:
        assert (await api_services.tokens.verify(token)).person == forge.claims["sub"]
    else:
        assert await code_of(api_services, token) is ErrorCode.TOKEN_EXPIRED


@pytest.mark.parametrize("amr", [[], ["pwd"], ["OTP"]])
async def test_token_without_second_factor_refused(
    api_services: ApiServices, forge: Forge, amr: list[str]
) -> None:
    """Without otp, mfa or hwk there is no second factor."""
    assert (
        await code_of(api_services, forge.with_claims(amr=amr))
        is ErrorCode.MFA_REQUIRED
    )


@pytest.mark.parametrize("amr", [["otp"], ["mfa"], ["pwd", "hwk"]])
async def test_token_with_second_factor_accepted(
    api_services: ApiServices, forge: Forge, amr: list[str]
) -> None:
    """Any of the three counts."""
    signer = await api_services.tokens.verify(forge.with_claims(amr=amr))

    assert signer.factors == tuple(amr)


async def test_token_of_disabled_person_refused(
    api_services: ApiServices, forge: Forge
) -> None:
    """A person who was disabled is nobody, at once."""
    token = forge.make()
    async with api_services.store._engines.writer.begin() as connection:
        await connection.execute(
            update(tables.person).values(state=PersonState.DISABLED.value)
        )

    assert await code_of(api_services, token) is ErrorCode.TOKEN_INVALID

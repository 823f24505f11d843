"""Access tokens: what is accepted, and every forgery that is not."""

import base64
import json

import pytest
from sqlalchemy import select

from appliance.database import tables
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.requests.request import Signer
from appliance.identity.access_tokens import AccessTokens
from tests.support.installation.api import BASE_URL, ApiServices

FACTORS = ("pwd", "otp")


async def test_issued_token_verifies(api_services: ApiServices) -> None:
    """A token that was issued stands for its person and factors."""
    person, _ = await api_services.add_person()

    issued = await api_services.tokens.issue(person, FACTORS, api_services.clock.now())

    assert await api_services.tokens.verify(issued.token) == Signer(
        person, f"person:{person}", FACTORS, api_services.clock.now()
    )
    assert issued.token not in repr(issued)


async def test_issued_token_has_the_decided_claims(api_services: ApiServices) -> None:
    """Header and claims are those of RFC 9068 and decisions."""
    person, _ = await api_services.add_person()

    issued = await api_services.tokens.issue(person, FACTORS, api_services.clock.now())

    head, body, _signature = issued.token.split(".")
    header = json.loads(base64.urlsafe_b64decode(head + "=="))
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    now = int(api_services.clock.now().timestamp())
    published = (await api_services.tokens.jwks())["keys"]
    assert header == {"alg": "ES256", "typ": "at+jwt", "kid": published[0]["kid"]}  # type: ignore[index]  # a list of keys
    assert claims.pop("jti")
    assert claims == {
        "iss": BASE_URL,
        "aud": BASE_URL,
        "sub": person,
        "client_id": "rubrica",
        "iat": now,
        "exp": now + 900,
        "auth_time": now,
        "amr": ["pwd", "otp"],
    }


@pytest.mark.parametrize(("age_s", "fresh"), [(28_799, True), (28_800, False)])
async def test_signing_needs_young_factor(
    api_services: ApiServices, age_s: int, *, fresh: bool
) -> None:
    """Eight hours after `auth_time` a signer signs in again."""
    now = api_services.clock.now()
    signer = Signer(PersonId("p"), "person:p", FACTORS, now)
    api_services.clock.forward(age_s)

    code = None
    try:
        api_services.tokens.require_fresh(signer)
    except ApplianceError as exc:
        code = exc.code

    assert code is (None if fresh else ErrorCode.STEP_UP)


async def kids(tokens: AccessTokens) -> list[str]:
    """The published keys."""
    published = (await tokens.jwks())["keys"]
    assert isinstance(published, list)
    return [key["kid"] for key in published]


async def test_keys_published_without_private_half(api_services: ApiServices) -> None:
    """The key set holds public members alone."""
    published = (await api_services.tokens.jwks())["keys"]

    assert isinstance(published, list)
    assert [sorted(key) for key in published] == [
        ["alg", "crv", "kid", "kty", "use", "x", "y"]
    ]


async def test_key_kept_across_processes(api_services: ApiServices) -> None:
    """Another process signs with the same key, and each accepts the other's."""
    person, _ = await api_services.add_person()
    other = AccessTokens(
        api_services.store,
        api_services.sealer,
        api_services.clock,
        api_services.settings,
    )
    here = await api_services.tokens.issue(person, FACTORS, api_services.clock.now())
    there = await other.issue(person, FACTORS, api_services.clock.now())

    assert (await other.verify(here.token)).person == person
    assert (await api_services.tokens.verify(there.token)).person == person
    assert await kids(other) == await kids(api_services.tokens)


async def test_next_key_published_before_it_signs(api_services: ApiServices) -> None:
    """A successor is published a day ahead; the old key signs until its end."""
    first = await kids(api_services.tokens)
    api_services.clock.forward(29 * 86_400 + 60)

    both = await kids(api_services.tokens)
    person, _ = await api_services.add_person()
    issued = await api_services.tokens.issue(person, FACTORS, api_services.clock.now())

    head = json.loads(base64.urlsafe_b64decode(issued.token.split(".")[0] + "=="))
    assert both[:1] == first
    assert len(both) == 2
    assert head["kid"] == first[0]


async def test_old_key_accepted_for_a_day(api_services: ApiServices) -> None:
    """Tokens of the old key live on after the change; then it is forgotten."""
    (old,) = await kids(api_services.tokens)
    person, _ = await api_services.add_person()
    api_services.clock.forward(30 * 86_400 - 30)
    issued = await api_services.tokens.issue(person, FACTORS, api_services.clock.now())
    api_services.clock.forward(60)

    assert (await api_services.tokens.verify(issued.token)).person == person
    api_services.clock.forward(86_400)
    fresh = AccessTokens(
        api_services.store,
        api_services.sealer,
        api_services.clock,
        api_services.settings,
    )
    assert old not in await kids(fresh)


async def test_private_keys_sealed(api_services: ApiServices) -> None:
    """No private key stands in clear in the database."""
    await api_services.tokens.jwks()

    async with api_services.store._engines.reader.connect() as connection:
        (row,) = (await connection.execute(select(tables.jwt_key))).all()

    assert b"PRIVATE KEY" not in row.private_sealed
    assert "d" not in row.public

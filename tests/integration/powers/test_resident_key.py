"""The HSM session uses a user's key on the token by its certified public key alone.

A CKA_ID comes from a row of the database; whose key it names, the token says.
"""

import hashlib
from collections.abc import AsyncIterator

import pkcs11
import pytest

from appliance.domain.errors import (
    CredentialRefusedError,
    ErrorCode,
    HsmRefusedError,
    KeyNotFoundError,
)
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    SignatureScheme,
    TokenRole,
)
from appliance.domain.vocab import StatementFault
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.master_keys import label_of
from hsm_config.provisioning import generation
from tests.support.hsm.hsm_installation import KEY, OWN_KEYS, HsmInstallation, verify
from tests.vectors.names import hsm_objects
from worker.hsm.session import HsmSession

PKCS1 = SignatureScheme.RSA_PKCS1
DIGEST = hashlib.sha256(b"a document").digest()
OTHER = KeyReference(TokenRole.FIRMA, b"\x02credential")
OWN_IDS = [
    *sorted(ref.cka_id for ref in OWN_KEYS),
    *(label_of(version).encode() for version in (1, 999_999_999)),
    b"rubrica-generation-7.0a1b",
    b"rubrica-tsa-2",
    b"rubrica-check-00000000",
]


@pytest.fixture
async def session(hsm_with_key: HsmInstallation) -> AsyncIterator[HsmSession]:
    """An open session of a token with one user's key."""
    async with hsm_with_key.session() as opened:
        yield opened


async def test_key_with_its_public_key_signs(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """Twice: the second time by the handle that is kept."""
    for _ in range(2):
        verify(user_key.spki, await session.sign(user_key, DIGEST, PKCS1), DIGEST)


async def test_key_of_another_signs_nothing(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """Before and after its owner signed with it, and it stays their key."""
    theirs = await session.generate(OTHER, KeyAlgorithm.RSA_2048)
    for thief in (
        ResidentKey(KEY.cka_id, theirs),
        ResidentKey(OTHER.cka_id, user_key.spki),
        ResidentKey(KEY.cka_id, b""),
        ResidentKey(KEY.cka_id, user_key.spki + b"\0"),
    ):
        for _ in range(2):
            with pytest.raises(CredentialRefusedError) as caught:
                await session.sign(thief, DIGEST, PKCS1)
            assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE
            assert caught.value.fault is StatementFault.RESIDENT
            await session.sign(user_key, DIGEST, PKCS1)


async def test_key_that_was_made_again_is_another(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """No handle of before is used for it."""
    await session.sign(user_key, DIGEST, PKCS1)
    await session.destroy(KEY)
    spki = await session.generate(KEY, KeyAlgorithm.RSA_2048)
    with pytest.raises(CredentialRefusedError):
        await session.sign(user_key, DIGEST, PKCS1)
    later = ResidentKey(KEY.cka_id, spki)
    verify(spki, await session.sign(later, DIGEST, PKCS1), DIGEST)


async def test_half_a_pair_signs_nothing(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """Without its public half nothing says whose it is."""
    with hsm_with_key.raw(TokenRole.FIRMA) as raw:
        (public,) = [
            each
            for each in objects.find(raw, KEY.cka_id)
            if isinstance(each, pkcs11.PublicKey)
        ]
        public.destroy()
    async with hsm_with_key.session() as session:
        with pytest.raises(KeyNotFoundError):
            await session.sign(user_key, DIGEST, PKCS1)


@pytest.mark.parametrize("cka_id", OWN_IDS, ids=bytes.decode)
async def test_own_key_is_never_a_users(session: HsmSession, cka_id: bytes) -> None:
    """With its right public key, too; and nobody's row has it destroyed or made."""
    ref = KeyReference(TokenRole.FIRMA, cka_id)
    try:
        spki = await session.public_key(ref)
    except KeyNotFoundError:
        spki = b"a public key"
    with pytest.raises(CredentialRefusedError) as caught:
        await session.sign(ResidentKey(cka_id, spki), DIGEST, PKCS1)
    assert caught.value.fault is StatementFault.RESIDENT
    for token in TokenRole:
        there = KeyReference(token, cka_id)
        with pytest.raises(HsmRefusedError):
            await session.destroy(there)
        with pytest.raises(HsmRefusedError):
            await session.generate(there, KeyAlgorithm.RSA_2048)


async def test_users_key_is_not_used_by_its_place_alone(
    session: HsmSession,
) -> None:
    """Whoever forgets the public key gets no signature, neither way."""
    with pytest.raises(HsmRefusedError):
        await session.sign(KEY, DIGEST, PKCS1)
    with pytest.raises(HsmRefusedError):
        await session.with_private_key(KEY, lambda key: key.key_size)


def test_own_keys_have_a_name_space_of_their_own() -> None:
    """Every CKA_ID that this version or an earlier one gives to a key of its own."""
    named = hsm_objects()
    ids = [
        *(
            KeyReference(TokenRole(token), name.encode())
            for token, name, _ in named["keys"].values()
        ),
        KeyReference(TokenRole.FIRMA, str(named["master 3"]).encode()),
        KeyReference(TokenRole.FIRMA, named["generation"][1].encode()),
    ]
    assert all(ref.is_own for ref in ids)
    assert all(ref.is_own for ref in OWN_KEYS)
    assert KeyReference(TokenRole.FIRMA, generation.LABEL.encode()).is_own
    assert not KEY.is_own

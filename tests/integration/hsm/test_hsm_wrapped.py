"""Wrapped keys through `HsmSession`: made, used once, rewrapped, refused."""

import dataclasses
import hashlib
from collections.abc import AsyncIterator

import pkcs11
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from appliance.domain.errors import (
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
    TokenRole,
    WrapMethod,
    WrappedKey,
    scheme_for,
)
from hsm_config.pkcs11 import key_pairs, objects, signatures
from hsm_config.pkcs11.master_keys import MasterKeys, label_of
from hsm_config.provisioning.init import provision
from hsm_config.provisioning.signing_token import identity_path
from tests.support.hsm.hsm_installation import HsmInstallation, lose_module
from worker.hsm.connection import HsmStatus
from worker.hsm.session import HsmSession

MESSAGE = b"what is signed"
DIGEST = hashlib.sha256(MESSAGE).digest()


@pytest.fixture
async def session(initialised_hsm: HsmInstallation) -> AsyncIterator[HsmSession]:
    """An open session that probes often."""
    async with initialised_hsm.session(probe_s=0.2) as opened:
        yield opened


async def _objects(session: HsmSession) -> int:
    """How many objects the firma token shows, session objects among them."""
    return await session._call(
        lambda link: len(list(link.session(TokenRole.FIRMA).get_objects()))
    )


def _altered(blob: bytes) -> bytes:
    return blob[:20] + bytes([blob[20] ^ 1]) + blob[21:]


@pytest.mark.parametrize("algorithm", [*KeyAlgorithm])
async def test_wrapped_key_of_each_kind_signs(
    session: HsmSession, algorithm: KeyAlgorithm
) -> None:
    """The value verifies by the public key that came with it."""
    scheme = scheme_for(algorithm)

    key = await session.generate_wrapped(algorithm)
    signature = await session.sign(key, DIGEST, scheme)

    public = key_pairs.load_spki(key.spki)
    assert key_pairs.algorithm_of(public) is algorithm
    signatures.verify(public, signature, DIGEST, scheme)
    with pytest.raises(InvalidSignature):
        signatures.verify(public, signature, bytes(32), scheme)


@pytest.mark.parametrize("digest_algorithm", [*DigestAlgorithm])
@pytest.mark.parametrize("scheme", [*SignatureScheme])
async def test_each_scheme_signs_each_digest(
    session: HsmSession, scheme: SignatureScheme, digest_algorithm: DigestAlgorithm
) -> None:
    """PKCS#1, PSS, and ECDSA with digests longer than the curve's order."""
    is_ec = scheme is SignatureScheme.ECDSA
    algorithm = KeyAlgorithm.EC_P256 if is_ec else KeyAlgorithm.RSA_2048
    key = await session.generate_wrapped(algorithm)
    digest = hashlib.new(digest_algorithm, MESSAGE).digest()

    signature = await session.sign(key, digest, scheme, digest_algorithm)

    public = key_pairs.load_spki(key.spki)
    signatures.verify(public, signature, digest, scheme, digest_algorithm)


async def test_making_and_signing_leave_nothing_in_the_hsm(
    session: HsmSession,
) -> None:
    """Neither after success nor after a refusal."""
    before = await _objects(session)

    key = await session.generate_wrapped(KeyAlgorithm.EC_P256)
    for _ in range(3):
        await session.sign(key, DIGEST, SignatureScheme.ECDSA)
    bad = dataclasses.replace(key, blob_k=_altered(key.blob_k))
    for wrong, scheme in ((bad, SignatureScheme.ECDSA), (key, SignatureScheme.RSA_PSS)):
        with pytest.raises(HsmRefusedError):
            await session.sign(wrong, DIGEST, scheme)

    assert await _objects(session) == before


@pytest.mark.parametrize("which", ["w", "k"])
async def test_altered_blob_is_refused_and_the_hsm_stays_ready(
    session: HsmSession, which: str
) -> None:
    """SoftHSM calls it a general error; a healthy token is not called lost."""
    key = await session.generate_wrapped(KeyAlgorithm.EC_P256)
    bad = (
        dataclasses.replace(key, blob_w=_altered(key.blob_w))
        if which == "w"
        else dataclasses.replace(key, blob_k=_altered(key.blob_k))
    )

    with pytest.raises(HsmRefusedError) as caught:
        await session.sign(bad, DIGEST, SignatureScheme.ECDSA)

    assert caught.value.code is ErrorCode.SIGNING_FAILED
    assert session.status is HsmStatus.READY


async def test_another_keys_w_does_not_open(session: HsmSession) -> None:
    """Blobs of two credentials cannot be mixed."""
    one = await session.generate_wrapped(KeyAlgorithm.EC_P256)
    two = await session.generate_wrapped(KeyAlgorithm.EC_P256)

    with pytest.raises(HsmRefusedError):
        await session.sign(
            dataclasses.replace(one, blob_w=two.blob_w), DIGEST, SignatureScheme.ECDSA
        )


async def test_vanished_token_is_unavailable_for_wrapped_keys(
    initialised_hsm: HsmInstallation, session: HsmSession
) -> None:
    """It is not taken for a blob that does not open."""
    key = await session.generate_wrapped(KeyAlgorithm.EC_P256)
    initialised_hsm.tokens.rename(initialised_hsm.away)

    with pytest.raises(HsmUnavailableError):
        await session.sign(key, DIGEST, SignatureScheme.ECDSA)


async def test_lost_session_heals_inside_the_call_for_wrapped_keys(
    session: HsmSession,
) -> None:
    """What signs with them goes with the session that it was made for."""
    key = await session.generate_wrapped(KeyAlgorithm.EC_P256)
    await session.sign(key, DIGEST, SignatureScheme.ECDSA)
    await lose_module(session)

    signature = await session.sign(key, DIGEST, SignatureScheme.ECDSA)

    public = key_pairs.load_spki(key.spki)
    signatures.verify(public, signature, DIGEST, SignatureScheme.ECDSA)


async def test_wrapped_key_signs_after_a_restart_of_the_session(
    initialised_hsm: HsmInstallation,
) -> None:
    """Nothing of it lives in a session."""
    async with initialised_hsm.session() as first:
        key = await first.generate_wrapped(KeyAlgorithm.RSA_2048)

    async with initialised_hsm.session() as second:
        signature = await second.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)

    public = key_pairs.load_spki(key.spki)
    signatures.verify(public, signature, DIGEST, SignatureScheme.RSA_PKCS1)


def test_blobs_do_not_show_themselves() -> None:
    """Wrapped or not, key material stays out of logs."""
    kwp = WrapMethod.AES_KWP
    key = WrappedKey(KeyAlgorithm.EC_P256, b"spki", 1, b"blob-w", kwp, b"blob-k", kwp)

    assert "blob-" not in repr(key)


# Master keys


async def test_rewrapped_key_signs_under_the_new_master(
    initialised_hsm: HsmInstallation,
) -> None:
    """Only `blob_w` changes; with the old master gone the new one opens it."""
    with initialised_hsm.raw(TokenRole.FIRMA) as raw:
        MasterKeys(raw).make(2)
    async with initialised_hsm.session() as session:
        assert await session.master_versions() == (1, 2)
        key = await session.generate_wrapped(KeyAlgorithm.EC_P256)
        assert key.master == 2
        blob_w, method_w = await session.rewrap(key.blob_w, key.method_w, 2, 1)
        moved = dataclasses.replace(key, blob_w=blob_w, method_w=method_w, master=1)
    with initialised_hsm.raw(TokenRole.FIRMA) as raw:
        MasterKeys(raw).get(2).destroy()

    async with initialised_hsm.session() as session:
        signature = await session.sign(moved, DIGEST, SignatureScheme.ECDSA)
        with pytest.raises(KeyNotFoundError):
            await session.sign(key, DIGEST, SignatureScheme.ECDSA)

    public = key_pairs.load_spki(key.spki)
    signatures.verify(public, signature, DIGEST, SignatureScheme.ECDSA)


async def test_rewrapping_an_altered_blob_is_refused(session: HsmSession) -> None:
    """A bad row stops at itself."""
    key = await session.generate_wrapped(KeyAlgorithm.EC_P256)

    with pytest.raises(HsmRefusedError):
        await session.rewrap(_altered(key.blob_w), key.method_w, 1, 1)


async def test_twins_of_a_master_key_are_refused(
    initialised_hsm: HsmInstallation,
) -> None:
    """Of two master keys with one label neither is chosen."""
    with initialised_hsm.raw(TokenRole.FIRMA) as raw:
        raw.generate_key(
            pkcs11.KeyType.AES,
            256,
            label=label_of(1),
            store=True,
            template={pkcs11.Attribute.WRAP: True, pkcs11.Attribute.UNWRAP: True},
        )

    with pytest.raises(HsmRefusedError) as caught:
        provision(initialised_hsm.settings)
    assert caught.value.reason == "2 keys are labelled rubrica-mwk-1"
    async with initialised_hsm.session() as session:
        assert session.status is HsmStatus.UNAVAILABLE
        assert "rubrica-mwk-1" in session.reason


def test_master_key_only_wraps_and_cannot_leave(
    initialised_hsm: HsmInstallation,
) -> None:
    """Sensitive, not extractable; it neither encrypts nor decrypts."""
    with initialised_hsm.raw(TokenRole.FIRMA) as raw:
        master = MasterKeys(raw).get(1)
        attribute = pkcs11.Attribute
        for name in ("TOKEN", "PRIVATE", "SENSITIVE", "WRAP", "UNWRAP"):
            assert master[attribute[name]], name
        for name in ("EXTRACTABLE", "ENCRYPT", "DECRYPT", "SIGN", "DERIVE"):
            assert not master[attribute[name]], name
        with pytest.raises(HsmRefusedError, match="already"):
            MasterKeys(raw).make(1)


async def test_hsm_without_a_master_key_is_not_ready(
    initialised_hsm: HsmInstallation,
) -> None:
    """Installed before this version: `hsm init` makes what is missing."""
    with initialised_hsm.raw(TokenRole.FIRMA) as raw:
        MasterKeys(raw).get(1).destroy()

    async with initialised_hsm.session() as session:
        assert session.status is HsmStatus.UNAVAILABLE
        assert "hsm init" in session.reason


# The worker identity


async def test_identity_signs_what_the_pinned_key_verifies(
    initialised_hsm: HsmInstallation, session: HsmSession
) -> None:
    """The file that fronts pin holds the public half."""
    spki, signature = await session.identity_statement(MESSAGE)

    signatures.verify(
        key_pairs.load_spki(spki), signature, DIGEST, SignatureScheme.ECDSA
    )
    pinned = load_pem_public_key(identity_path(initialised_hsm.settings).read_bytes())
    assert pinned == key_pairs.load_spki(spki)


def test_pinned_identity_of_another_token_is_refused(
    initialised_hsm: HsmInstallation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A file from elsewhere is not written over."""
    path = identity_path(initialised_hsm.settings)
    other = HsmInstallation.ready(tmp_path_factory.mktemp("other"), name="other")
    path.write_bytes(identity_path(other.settings).read_bytes())

    with pytest.raises(HsmRefusedError, match="pins another key"):
        provision(initialised_hsm.settings)


def test_lost_identity_is_refused_while_it_is_pinned(
    initialised_hsm: HsmInstallation,
) -> None:
    """A new identity is the operator's word: the file is removed first."""
    path = identity_path(initialised_hsm.settings)
    before = path.read_bytes()
    with initialised_hsm.raw(TokenRole.FIRMA) as raw:
        objects.destroy(raw, objects.IDENTITY_KEY.cka_id)

    with pytest.raises(HsmRefusedError, match="its key is not"):
        provision(initialised_hsm.settings)
    path.unlink()
    report = provision(initialised_hsm.settings)

    assert "worker identity" in report.made
    assert path.read_bytes() != before

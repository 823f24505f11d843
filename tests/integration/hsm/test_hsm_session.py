"""`HsmSession` on a real SoftHSM: signing, keeping keys, losing the token."""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator

import pkcs11
import pytest
from cryptography.exceptions import InvalidSignature
from structlog.contextvars import bound_contextvars, get_contextvars

from appliance.domain.errors import (
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    SignatureScheme,
    TokenRole,
)
from hsm_config.pkcs11 import objects
from tests.support.hsm.hsm_installation import (
    KEY,
    OWN_KEYS,
    HsmInstallation,
    lose_module,
    until,
    verify,
)
from worker.hsm.connection import HsmStatus
from worker.hsm.session import HsmSession

PKCS1 = SignatureScheme.RSA_PKCS1
DIGEST = hashlib.sha256(b"a document").digest()
OTHER = KeyReference(TokenRole.FIRMA, b"\x02credential")
NOBODYS = ResidentKey(OTHER.cka_id, b"a public key")
PATIENCE_S = 60.0


@pytest.fixture
async def session(hsm_with_key: HsmInstallation) -> AsyncIterator[HsmSession]:
    """An open session that probes often."""
    async with hsm_with_key.session(probe_s=0.2) as opened:
        yield opened


# Signing and keeping keys


async def test_thousand_signatures_verify(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """A thousand concurrent signatures are all right."""
    public = await session.public_key(KEY)
    digests = [hashlib.sha256(b"%d" % n).digest() for n in range(1000)]

    signatures = await asyncio.gather(
        *(session.sign(user_key, digest, PKCS1) for digest in digests)
    )

    for digest, signature in zip(digests, signatures, strict=True):
        verify(public, signature, digest)


async def test_signature_is_of_that_digest_alone(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """Another digest does not verify."""
    public = await session.public_key(KEY)

    signature = await session.sign(user_key, DIGEST, PKCS1)

    with pytest.raises(InvalidSignature):
        verify(public, signature, hashlib.sha256(b"another").digest())


async def test_what_is_no_digest_is_refused(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """Only 32 bytes are signed."""
    with pytest.raises(HsmRefusedError, match="INTERNAL"):
        await session.sign(user_key, b"short", PKCS1)


async def test_generated_key_passes_its_self_test(session: HsmSession) -> None:
    """Generate, self-test, and the public key is the one returned."""
    spki = await session.generate(OTHER, KeyAlgorithm.RSA_2048)

    await session.self_test(OTHER)

    assert await session.public_key(OTHER) == spki


async def test_generated_key_can_only_sign(hsm_with_key: HsmInstallation) -> None:
    """Resident, private, sensitive, never extractable; no decrypting."""
    async with hsm_with_key.session() as session:
        await session.generate(OTHER, KeyAlgorithm.RSA_2048)

    with hsm_with_key.raw(TokenRole.FIRMA) as raw:
        key = objects.private_key(raw, OTHER.cka_id)
        attribute = pkcs11.Attribute
        for name in ("TOKEN", "PRIVATE", "SENSITIVE", "NEVER_EXTRACTABLE", "SIGN"):
            assert key[attribute[name]], name
        for name in ("EXTRACTABLE", "DECRYPT", "UNWRAP", "DERIVE"):
            assert not key[attribute[name]], name
        assert key.label == f"rubrica-{OTHER.cka_id.hex()}"


async def test_generate_under_a_taken_id_is_refused(session: HsmSession) -> None:
    """No twin is ever keyed."""
    with pytest.raises(HsmRefusedError) as caught:
        await session.generate(KEY, KeyAlgorithm.RSA_2048)

    assert caught.value.code is ErrorCode.ALREADY_EXISTS
    await session.self_test(KEY)


async def test_generated_ec_key_signs(session: HsmSession) -> None:
    """A resident key may be on a curve too."""
    spki = await session.generate(OTHER, KeyAlgorithm.EC_P256)

    await session.self_test(OTHER)

    assert await session.public_key(OTHER) == spki


@pytest.mark.parametrize("ref", sorted(OWN_KEYS, key=repr))
async def test_own_keys_are_out_of_reach(
    session: HsmSession, ref: KeyReference
) -> None:
    """None of the installation's own keys is keyed or destroyed at run time."""
    with pytest.raises(HsmRefusedError, match="hsm init"):
        await session.destroy(ref)
    with pytest.raises(HsmRefusedError, match="hsm init"):
        await session.generate(ref, KeyAlgorithm.RSA_2048)


async def test_destroyed_key_is_not_found(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """Also where its handle was in use before; the HSM stays ready."""
    await session.sign(user_key, DIGEST, PKCS1)

    assert await session.destroy(KEY) == 2

    with pytest.raises(KeyNotFoundError):
        await session.sign(user_key, DIGEST, PKCS1)
    assert session.status is HsmStatus.READY


async def test_unknown_key_is_not_found_on_a_healthy_hsm(session: HsmSession) -> None:
    """A missing key is told apart from a missing HSM."""
    with pytest.raises(KeyNotFoundError) as caught:
        await session.sign(NOBODYS, DIGEST, PKCS1)

    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE
    assert session.status is HsmStatus.READY


async def test_empty_id_names_no_key(session: HsmSession) -> None:
    """An empty CKA_ID would match any key; it destroys none."""
    nothing = KeyReference(TokenRole.FIRMA, b"")

    with pytest.raises(HsmRefusedError):
        await session.destroy(nothing)

    await session.self_test(KEY)


async def test_twins_are_refused(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """Of two keys with one CKA_ID neither signs."""
    with hsm_with_key.raw(TokenRole.FIRMA) as raw:
        objects.generate(raw, KEY.cka_id, "twin", KeyAlgorithm.RSA_2048)

    async with hsm_with_key.session() as session:
        with pytest.raises(HsmRefusedError) as caught:
            await session.sign(user_key, DIGEST, PKCS1)

    assert "2 keys share CKA_ID" in caught.value.reason


# Losing the HSM


async def test_vanished_token_is_unavailable_not_without_keys(
    hsm_with_key: HsmInstallation, session: HsmSession, user_key: ResidentKey
) -> None:
    """A key used before and one never used get the same answer."""
    await session.sign(user_key, DIGEST, PKCS1)
    hsm_with_key.tokens.rename(hsm_with_key.away)

    for key in (user_key, NOBODYS):
        with pytest.raises(HsmUnavailableError) as caught:
            await session.sign(key, DIGEST, PKCS1)
        assert caught.value.code is ErrorCode.HSM_UNAVAILABLE
    assert session.status is HsmStatus.UNAVAILABLE
    assert session.reason


async def test_key_never_looked_up_on_a_vanished_token_is_unavailable(
    hsm_with_key: HsmInstallation, session: HsmSession, user_key: ResidentKey
) -> None:
    """SoftHSM answers an empty list here, which is not believed."""
    hsm_with_key.tokens.rename(hsm_with_key.away)

    with pytest.raises(HsmUnavailableError):
        await session.sign(user_key, DIGEST, PKCS1)


async def test_destroy_on_a_vanished_token_is_unavailable(
    hsm_with_key: HsmInstallation, session: HsmSession
) -> None:
    """It does not say "nothing there" of a token that is away."""
    hsm_with_key.tokens.rename(hsm_with_key.away)

    with pytest.raises(HsmUnavailableError):
        await session.destroy(KEY)


async def test_open_breaker_answers_at_once(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """While the HSM is away, nobody waits for it."""
    async with hsm_with_key.session(probe_s=60) as session:
        hsm_with_key.tokens.rename(hsm_with_key.away)
        with pytest.raises(HsmUnavailableError):
            await session.sign(user_key, DIGEST, PKCS1)

        # What waited for the HSM would stand behind this.
        busy = threading.Event()
        thread = session._thread
        assert thread is not None
        waiting = asyncio.create_task(thread._in_thread(busy.wait))
        try:
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(100):
                    with pytest.raises(HsmUnavailableError):
                        await session.sign(user_key, DIGEST, PKCS1)
        finally:
            busy.set()
            await waiting


async def test_returned_token_heals_without_restart(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """With the probe as it is by default."""
    async with hsm_with_key.session() as session:
        public = await session.public_key(KEY)
        hsm_with_key.tokens.rename(hsm_with_key.away)
        with pytest.raises(HsmUnavailableError):
            await session.sign(user_key, DIGEST, PKCS1)
        hsm_with_key.away.rename(hsm_with_key.tokens)

        await until(lambda: session.status is HsmStatus.READY)

        verify(public, await session.sign(user_key, DIGEST, PKCS1), DIGEST)


async def test_token_that_came_back_blank_heals_inside_the_call(
    hsm_with_key: HsmInstallation, session: HsmSession, user_key: ResidentKey
) -> None:
    """SoftHSM shows no keys after an absence that it noticed."""
    public = await session.public_key(KEY)
    thread = session._thread
    assert thread is not None
    raw = thread._connections[0].first.session(TokenRole.FIRMA)
    hsm_with_key.tokens.rename(hsm_with_key.away)
    seen = await thread._in_thread(lambda: list(raw.get_objects()))
    hsm_with_key.away.rename(hsm_with_key.tokens)

    signature = await session.sign(user_key, DIGEST, PKCS1)

    assert seen == []
    verify(public, signature, DIGEST)


async def test_lost_session_heals_inside_the_call(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """The module is started anew, and the caller has its signature."""
    public = await session.public_key(KEY)
    await session.sign(user_key, DIGEST, PKCS1)
    await lose_module(session)

    verify(public, await session.sign(user_key, DIGEST, PKCS1), DIGEST)


async def test_session_lost_before_a_look_up_heals_inside_the_call(
    session: HsmSession,
) -> None:
    """The same where the key's handle was not known yet."""
    await lose_module(session)

    await session.self_test(KEY)


async def test_idle_session_notices_by_itself(hsm_with_key: HsmInstallation) -> None:
    """The keep-alive signature finds out before a person does."""
    hsm = hsm_with_key.settings.hsm.model_copy(update={"keep_alive_s": 0.2})
    async with HsmSession(hsm, hsm_with_key.profile, probe_s=0.1) as session:
        hsm_with_key.tokens.rename(hsm_with_key.away)
        await until(lambda: session.status is HsmStatus.UNAVAILABLE)

        hsm_with_key.away.rename(hsm_with_key.tokens)
        await until(lambda: session.status is HsmStatus.READY)

        await session.keep_alive()


async def test_open_while_the_hsm_is_away_heals_later(
    hsm_with_key: HsmInstallation,
) -> None:
    """A worker starts all the same, and signs when the HSM comes."""
    hsm_with_key.tokens.rename(hsm_with_key.away)
    async with hsm_with_key.session(probe_s=0.2) as session:
        assert session.status is HsmStatus.UNAVAILABLE

        hsm_with_key.away.rename(hsm_with_key.tokens)
        await until(lambda: session.status is HsmStatus.READY)

        await session.self_test(KEY)


async def test_hsm_without_our_own_keys_is_not_ready(
    hsm_with_key: HsmInstallation,
) -> None:
    """An `hsm init` that was cut off is named as the reason."""
    with hsm_with_key.raw(TokenRole.FIRMA) as raw:
        objects.destroy(raw, objects.KEEP_ALIVE_KEY.cka_id)

    async with hsm_with_key.session() as session:
        assert session.status is HsmStatus.UNAVAILABLE
        assert "hsm init" in session.reason


async def test_closed_session_is_unavailable(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """Before and after, callers are told."""
    session = hsm_with_key.session()
    with pytest.raises(HsmUnavailableError):
        await session.sign(user_key, DIGEST, PKCS1)
    await session.open()
    await session.close()

    with pytest.raises(HsmUnavailableError):
        await session.sign(user_key, DIGEST, PKCS1)


async def test_lines_of_the_thread_name_whom_they_are_for(session: HsmSession) -> None:
    """Two callers at once: each line has the ids that were bound by its caller."""

    async def call(task: str) -> object:
        with bound_contextvars(task=task):
            return await session._call(lambda _link: get_contextvars()["task"])

    assert list(await asyncio.gather(call("a"), call("b"))) == ["a", "b"]

"""Several digests signed by one use of a key, on real SoftHSM behind a shim.

Source: docs/signing.md "Several documents at once"; docs/hsm-faults.md.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import pytest

from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.keys.hsm_keys import KeyAlgorithm, SignatureScheme, WrappedKey
from tests.support.hsm.hsm_installation import HsmInstallation, until, verify
from tests.support.hsm.pkcs11_shim import FUNCTIONS, Pkcs11Shim
from worker.hsm.session import HsmSession

DIGESTS = [hashlib.sha256(bytes([number])).digest() for number in range(6)]
RSA = SignatureScheme.RSA_PKCS1
SESSION_CLOSED, MECHANISM_INVALID, DEVICE_REMOVED = 0xB0, 0x70, 0x32


@pytest.fixture
async def session(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> AsyncIterator[HsmSession]:
    """An open session, whose first signatures are made."""
    async with initialised_hsm.session(module=shim.path, probe_s=0.2) as opened:
        yield opened


@pytest.fixture
async def key(session: HsmSession) -> WrappedKey:
    """A key that the database would keep."""
    return await session.generate_wrapped(KeyAlgorithm.RSA_2048)


def counts(shim: Pkcs11Shim) -> dict[str, int]:
    """Calls of each function so far."""
    return {name: shim.count(name) for name in FUNCTIONS}


async def test_key_is_unwrapped_once_for_all(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """Each value is the digest's own, in order; one more takes two calls more."""
    before = counts(shim)

    done = await session.sign_all(key, DIGESTS, RSA)

    made = {name: count - before[name] for name, count in counts(shim).items()}
    assert {name: count for name, count in made.items() if count} == {
        "C_UnwrapKey": 2,
        "C_SignInit": len(DIGESTS),
        "C_Sign": len(DIGESTS),
        "C_DestroyObject": 2,
    }
    assert done.failed is None
    for digest, value in zip(DIGESTS, done.values, strict=True):
        verify(key.spki, value, digest)


async def test_slow_hsm_is_given_back_after_its_time(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """Who has one digest waits for no more of a group than `hsm.group_ms`."""
    made: list[bytes] = []
    with shim.fault("C_Sign", "delay", 60):
        group = asyncio.create_task(
            session.sign_all(key, DIGESTS, RSA, made=made.append)
        )
        await until(lambda: bool(made))
        value = await session.sign(key, DIGESTS[0], RSA)
        before_it = len(made)
        done = await group

    assert before_it < len(DIGESTS)
    assert (len(done.values), done.failed) == (len(DIGESTS), None)
    verify(key.spki, value, DIGESTS[0])
    # The next group is as small as such an HSM wants it.
    assert session.group_size < len(DIGESTS)


@pytest.mark.parametrize("code", [SESSION_CLOSED, DEVICE_REMOVED])
async def test_lost_session_goes_on_where_it_was_lost(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim, code: int
) -> None:
    """On a fresh one; what is signed is not signed again."""
    made: list[bytes] = []

    def lose(value: bytes) -> None:
        made.append(value)
        if len(made) == 2:
            shim.order("C_Sign", "code", code, times=1)

    before = len(shim.signed())
    done = await session.sign_all(key, DIGESTS, RSA, made=lose)

    assert done.failed is None
    assert done.values == made
    for digest, value in zip(DIGESTS, made, strict=True):
        verify(key.spki, value, digest)
    # A new start makes its own test signature.
    assert len(shim.signed()) - before == len(DIGESTS) + 1


async def test_refusal_keeps_what_was_made(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """The values before it are given, and the reason beside them."""
    made: list[bytes] = []

    def refuse(value: bytes) -> None:
        made.append(value)
        if len(made) == 2:
            shim.order("C_Sign", "code", MECHANISM_INVALID, times=1)

    done = await session.sign_all(key, DIGESTS, RSA, made=refuse)

    assert isinstance(done.failed, HsmRefusedError)
    assert not isinstance(done.failed, HsmUnavailableError)
    assert done.values == made
    assert len(made) == 2
    verify(key.spki, made[1], DIGESTS[1])

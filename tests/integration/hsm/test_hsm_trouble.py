"""What `HsmSession` does when its token answers badly, each answer injected.

Source: research on reliability, F10, F12, F17; docs/hsm-faults.md.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest
from pkcs11.exceptions import PKCS11Error

from appliance.domain.errors import (
    ActivationInvalidError,
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    ResidentKey,
    SignatureScheme,
    TokenRole,
    WrappedKey,
)
from appliance.runtime.hang_watchdog import CallWatch
from hsm_config.pkcs11.return_values import ERRORS, error_of
from tests.support.hsm.hsm_installation import HsmInstallation, probed, until, verify
from tests.support.hsm.pkcs11_shim import FUNCTIONS, Pkcs11Shim
from worker.hsm.connection import HsmConnection, HsmStatus
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.signing.document_signer import DocumentSigner

DIGEST = hashlib.sha256(b"a document").digest()
DEVICE_ERROR, DEVICE_REMOVED, MECHANISM_INVALID = 0x30, 0x32, 0x70
SESSION_HANDLE_INVALID = 0xB3
LOST = {
    "SESSION_CLOSED": 0xB0,
    "SESSION_HANDLE_INVALID": SESSION_HANDLE_INVALID,
    "OBJECT_HANDLE_INVALID": 0x82,
    "KEY_HANDLE_INVALID": 0x60,
    "USER_NOT_LOGGED_IN": 0x101,
    "DEVICE_ERROR": DEVICE_ERROR,
    "DEVICE_REMOVED": DEVICE_REMOVED,
    "TOKEN_NOT_PRESENT": 0xE0,
    "CRYPTOKI_NOT_INITIALIZED": 0x190,
    "VENDOR_DEFINED": 0x80000001,
}


@pytest.fixture
async def session(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> AsyncIterator[HsmSession]:
    """An open session that probes often."""
    async with initialised_hsm.session(module=shim.path, probe_s=0.2) as opened:
        assert opened.reason == ""
        yield opened


@pytest.fixture
async def key(session: HsmSession) -> WrappedKey:
    """A user's key."""
    return await session.generate_wrapped(KeyAlgorithm.RSA_2048)


async def sign(session: HsmSession, key: WrappedKey) -> None:
    """A signature that verifies."""
    signature = await session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
    verify(key.spki, signature, DIGEST)


@pytest.mark.parametrize("function", ["C_UnwrapKey", "C_SignInit", "C_Sign"])
@pytest.mark.parametrize("code", LOST.values(), ids=LOST.keys())
async def test_lost_session_is_healed_inside_the_call(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim, function: str, code: int
) -> None:
    """Everything dropped, started anew once, done once more: the caller signs."""
    starts = shim.count("C_Initialize")
    with shim.fault(function, "code", code, times=1):
        await sign(session, key)

    # A vague code may have been asked about by a test signature before.
    assert shim.count("C_Initialize") <= starts + 1
    assert session.reason == ""


async def test_one_use_of_a_key_is_six_calls(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """Nothing is looked up or asked besides: each question costs as much."""
    before = {name: shim.count(name) for name in FUNCTIONS}

    await sign(session, key)

    made = {name: shim.count(name) - count for name, count in before.items()}
    assert {name: count for name, count in made.items() if count} == {
        "C_UnwrapKey": 2,
        "C_SignInit": 1,
        "C_Sign": 1,
        "C_DestroyObject": 2,
    }


async def test_return_values_are_named_as_the_binding_does(
    session: HsmSession, shim: Pkcs11Shim
) -> None:
    """Calls that go past the binding fail by its own exceptions."""

    def ask(link: HsmConnection) -> type[Exception] | None:
        try:
            link.session(TokenRole.FIRMA).generate_random(64)
        except PKCS11Error as exc:
            return type(exc)
        return None

    for value, error in {**ERRORS, 0x80000001: PKCS11Error}.items():
        with shim.fault("C_GenerateRandom", "code", value, times=1):
            assert await session._call(ask) is error is type(error_of(value))


async def test_lost_twice_opens_the_breaker(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """One repetition, then callers are told at once; it closes by itself."""
    with shim.fault("C_Sign", "code", SESSION_HANDLE_INVALID, at="firma") as rule:
        with pytest.raises(HsmUnavailableError):
            await sign(session, key)
        assert session.status is HsmStatus.UNAVAILABLE
        assert session.status_of(TokenRole.PKI) is HsmStatus.READY
        tried = shim.used(rule)
        for _ in range(100):
            with pytest.raises(HsmUnavailableError) as caught:
                await session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
        assert caught.value.code is ErrorCode.HSM_UNAVAILABLE
        # A probe may have come between; a hundred callers did not.
        assert shim.used(rule) - tried < 50

    await until(lambda: session.reason == "")
    await sign(session, key)


async def test_refusal_is_told_and_harms_nothing(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """A healthy token that says no is not started anew."""
    starts = shim.count("C_Initialize")
    with (
        shim.fault("C_SignInit", "code", MECHANISM_INVALID, times=1),
        pytest.raises(HsmRefusedError) as caught,
    ):
        await sign(session, key)

    assert caught.value.code is ErrorCode.SIGNING_FAILED
    assert "MechanismInvalid" in caught.value.reason
    assert shim.count("C_Initialize") == starts
    await sign(session, key)


async def test_refusal_to_sign_is_told_apart_from_a_key_that_does_not_open(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """Of a mechanism that is refused no new password is asked for."""
    none = cast("Any", None)
    signer = DocumentSigner(
        none,
        none,
        none,
        none,
        session,
        none,
        none,
        none,
        "x",
        cast("GenerationCheck", _Served()),
        *(none, none, none),
    )
    method = cast("Any", _Method)
    altered = replace(key, blob_k=key.blob_k[:-1] + bytes([key.blob_k[-1] ^ 1]))

    for function in ("C_SignInit", "C_Sign"):
        with shim.fault(function, "code", MECHANISM_INVALID, times=1):
            values, failed = await signer._sign_digests(key, method, [DIGEST])
        assert values == []
        assert isinstance(failed, HsmUnavailableError)
        assert failed.reason
    _, failed = await signer._sign_digests(altered, method, [DIGEST])
    assert isinstance(failed, ActivationInvalidError)
    assert failed.layer == "hsm"
    values, failed = await signer._sign_digests(key, method, [DIGEST])
    assert (len(values), failed) == (1, None)


class _Served:
    """Of this record's generation."""

    async def demand(self) -> None:
        """It is."""


class _Method:
    scheme = SignatureScheme.RSA_PKCS1
    digest = DigestAlgorithm.SHA256


async def test_missing_key_starts_nothing_anew_each_time(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """It is looked for once on a fresh start; all others sign on."""
    starts = shim.count("C_Initialize")
    missing = ResidentKey(b"nobody's", b"a public key")
    for wanted in (missing, replace(key, master=key.master + 1), missing):
        with pytest.raises(KeyNotFoundError):
            await session.sign(wanted, DIGEST, SignatureScheme.RSA_PKCS1)
    assert shim.count("C_Initialize") == starts + 1
    await sign(session, key)


@pytest.mark.parametrize("code", [0xA0, 0xA4], ids=["PIN_INCORRECT", "PIN_LOCKED"])
async def test_refused_pin_is_tried_once(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim, code: int
) -> None:
    """No start, no probe and no call leads to a second C_Login."""
    with shim.fault("C_Login", "code", code, at="firma") as rule:
        async with initialised_hsm.session(module=shim.path, probe_s=0.02) as session:
            await probed(session)
            assert session.status is HsmStatus.PIN
            assert session.status_of(TokenRole.PKI) is HsmStatus.READY
            with pytest.raises(HsmUnavailableError):
                await session.identity_statement(b"")
            assert shim.used(rule) == 1

    # A corrected PIN helps at the next start and not before.
    async with initialised_hsm.session(module=shim.path) as session:
        assert session.status is HsmStatus.READY


async def test_pki_that_is_away_stops_no_signer(
    session: HsmSession, key: WrappedKey, shim: Pkcs11Shim
) -> None:
    """Users' keys sign on while the CA's token is probed; then it is back."""
    with shim.fault("*", "code", DEVICE_REMOVED, at="pki"):
        with pytest.raises(HsmUnavailableError):
            await session.keep_alive()
        assert session.status_of(TokenRole.PKI) is HsmStatus.UNAVAILABLE
        probing = asyncio.create_task(probed(session))
        while not probing.done():
            await sign(session, key)
        assert session.status is HsmStatus.READY
        assert session.reason.startswith("pki: ")

    await until(lambda: session.reason == "")
    await session.keep_alive()


async def test_idle_tokens_are_kept_alive(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """A test signature each `keep_alive_s`, and a look at the CA's key."""
    hsm = initialised_hsm.settings.hsm.model_copy(
        update={"keep_alive_s": 0.1, "module": shim.path}
    )
    async with HsmSession(hsm, initialised_hsm.profile, probe_s=0.05) as session:
        signed = len(shim.signed())
        searches = shim.count("C_FindObjectsInit")

        # Each token is looked after by itself, at its own pace.
        await until(lambda: len(shim.signed()) >= signed + 3)
        await until(lambda: shim.count("C_FindObjectsInit") >= searches + 3)

        assert {bytes.fromhex(one.key) for one in shim.signed()} == {
            b"rubrica-keep-alive"
        }
        assert session.reason == ""


async def test_start_is_tried_again(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """Of processes that start at once some are told CKR_GENERAL_ERROR."""
    with shim.fault("C_Initialize", "code", 0x05, times=3) as rule:
        async with initialised_hsm.session(module=shim.path) as session:
            assert session.reason == ""
            assert shim.used(rule) >= 4


async def test_running_call_is_shown_to_the_watch(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """From its start to its end, with the token it goes to."""
    watch = CallWatch()
    async with initialised_hsm.session(module=shim.path, watch=watch) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        with shim.fault("C_Sign", "delay", 700, times=1):
            signing = asyncio.create_task(sign(session, key))
            await until(lambda: watch.running_s() > 0.3)
            await signing

        assert watch.running_s() == 0

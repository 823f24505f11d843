"""`HsmSession` on a real SoftHSM: signing, losing the token, PINs, processes."""

import asyncio
import dataclasses
import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pkcs11
import pytest
import structlog
from cryptography.exceptions import InvalidSignature

from appliance.domain.errors import (
    ErrorCode,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.hsm import (
    KeyAlgorithm,
    KeyReference,
    SignatureScheme,
    TokenRole,
)
from appliance.settings import SettingsError
from hsm_config import objects
from hsm_config.module import log_in
from hsm_config.pin import Pin
from tests.parts.hsm import HsmInstallation, verify
from worker import hsm_connection
from worker.hsm_connection import HsmStatus
from worker.hsm_session import HsmSession

KEY = KeyReference(TokenRole.FIRMA, b"\x01credential")
OTHER = KeyReference(TokenRole.FIRMA, b"\x02credential")
PKCS1 = SignatureScheme.RSA_PKCS1
PATIENCE_S = 60.0
DIGEST = hashlib.sha256(b"a document").digest()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """An installation after `hsm init`, with one user's key, to copy."""
    installation = HsmInstallation.ready(tmp_path_factory.mktemp("template"))
    with installation.raw(TokenRole.FIRMA) as session:
        objects.generate(session, KEY.cka_id, "user", KeyAlgorithm.RSA_2048)
    return installation


@pytest.fixture
def made(template: HsmInstallation, tmp_path: Path) -> HsmInstallation:
    """An installation of the test's own."""
    return template.copy(tmp_path)


@pytest.fixture
async def session(made: HsmInstallation) -> AsyncIterator[HsmSession]:
    """An open session that probes often."""
    async with made.session(probe_s=0.2) as opened:
        yield opened


async def _until(condition: Callable[[], bool]) -> None:
    """Wait for something, however long it takes."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (it sets no event)
            await asyncio.sleep(0.02)


async def _lose(session: HsmSession) -> None:
    """Take the module away under an open session."""
    thread = session._thread
    assert thread is not None
    library = thread._connections[0].module.library
    assert library is not None
    await thread._in_thread(library.finalize)


# Signing and keeping keys


async def test_thousand_signatures_verify(session: HsmSession) -> None:
    """A thousand concurrent signatures are all right."""
    public = await session.public_key(KEY)
    digests = [hashlib.sha256(b"%d" % n).digest() for n in range(1000)]

    signatures = await asyncio.gather(
        *(session.sign(KEY, digest, PKCS1) for digest in digests)
    )

    for digest, signature in zip(digests, signatures, strict=True):
        verify(public, signature, digest)


async def test_signature_is_of_that_digest_alone(session: HsmSession) -> None:
    """Another digest does not verify."""
    public = await session.public_key(KEY)

    signature = await session.sign(KEY, DIGEST, PKCS1)

    with pytest.raises(InvalidSignature):
        verify(public, signature, hashlib.sha256(b"another").digest())


async def test_what_is_no_digest_is_refused(session: HsmSession) -> None:
    """Only 32 bytes are signed."""
    with pytest.raises(HsmRefusedError, match="INTERNAL"):
        await session.sign(KEY, b"short", PKCS1)


async def test_generated_key_passes_its_self_test(session: HsmSession) -> None:
    """Generate, self-test, and the public key is the one returned."""
    spki = await session.generate(OTHER, KeyAlgorithm.RSA_2048)

    await session.self_test(OTHER)

    assert await session.public_key(OTHER) == spki


async def test_generated_key_can_only_sign(made: HsmInstallation) -> None:
    """Resident, private, sensitive, never extractable; no decrypting."""
    async with made.session() as session:
        await session.generate(OTHER, KeyAlgorithm.RSA_2048)

    with made.raw(TokenRole.FIRMA) as raw:
        key = objects.private_key(raw, OTHER.cka_id)
        attribute = pkcs11.Attribute
        for name in ("TOKEN", "PRIVATE", "SENSITIVE", "NEVER_EXTRACTABLE", "SIGN"):
            assert key[attribute[name]], name
        for name in ("EXTRACTABLE", "DECRYPT", "UNWRAP", "DERIVE"):
            assert not key[attribute[name]], name
        assert key.label == f"rubrica-{OTHER.cka_id.hex()}"


async def test_generate_under_a_taken_id_is_refused(session: HsmSession) -> None:
    """No twin is ever made."""
    with pytest.raises(HsmRefusedError) as caught:
        await session.generate(KEY, KeyAlgorithm.RSA_2048)

    assert caught.value.code is ErrorCode.ALREADY_EXISTS
    await session.self_test(KEY)


async def test_generated_ec_key_signs(session: HsmSession) -> None:
    """A resident key may be on a curve too."""
    spki = await session.generate(OTHER, KeyAlgorithm.EC_P256)

    await session.self_test(OTHER)

    assert await session.public_key(OTHER) == spki


@pytest.mark.parametrize("ref", sorted(objects.OWN_KEYS, key=repr))
async def test_own_keys_are_out_of_reach(
    session: HsmSession, ref: KeyReference
) -> None:
    """None of the installation's own keys is made or destroyed at run time."""
    with pytest.raises(HsmRefusedError, match="hsm init"):
        await session.destroy(ref)
    with pytest.raises(HsmRefusedError, match="hsm init"):
        await session.generate(ref, KeyAlgorithm.RSA_2048)


async def test_destroyed_key_is_not_found(session: HsmSession) -> None:
    """Also where its handle was in use before; the HSM stays ready."""
    await session.sign(KEY, DIGEST, PKCS1)

    assert await session.destroy(KEY) == 2

    with pytest.raises(KeyNotFoundError):
        await session.sign(KEY, DIGEST, PKCS1)
    assert session.status is HsmStatus.READY


async def test_unknown_key_is_not_found_on_a_healthy_hsm(session: HsmSession) -> None:
    """A missing key is told apart from a missing HSM."""
    with pytest.raises(KeyNotFoundError) as caught:
        await session.sign(OTHER, DIGEST, PKCS1)

    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE
    assert session.status is HsmStatus.READY


async def test_empty_id_names_no_key(session: HsmSession) -> None:
    """An empty CKA_ID would match any key; it destroys none."""
    nothing = KeyReference(TokenRole.FIRMA, b"")

    with pytest.raises(HsmRefusedError):
        await session.destroy(nothing)

    await session.self_test(KEY)


async def test_twins_are_refused(made: HsmInstallation) -> None:
    """Of two keys with one CKA_ID neither signs."""
    with made.raw(TokenRole.FIRMA) as raw:
        objects.generate(raw, KEY.cka_id, "twin", KeyAlgorithm.RSA_2048)

    async with made.session() as session:
        with pytest.raises(HsmRefusedError) as caught:
            await session.sign(KEY, DIGEST, PKCS1)

    assert "2 keys share CKA_ID" in caught.value.reason


# Losing the HSM


async def test_vanished_token_is_unavailable_not_without_keys(
    made: HsmInstallation, session: HsmSession
) -> None:
    """A key used before and one never used get the same answer."""
    await session.sign(KEY, DIGEST, PKCS1)
    made.tokens.rename(made.away)

    for ref in (KEY, OTHER):
        with pytest.raises(HsmUnavailableError) as caught:
            await session.sign(ref, DIGEST, PKCS1)
        assert caught.value.code is ErrorCode.HSM_UNAVAILABLE
    assert session.status is HsmStatus.UNAVAILABLE
    assert session.reason


async def test_key_never_looked_up_on_a_vanished_token_is_unavailable(
    made: HsmInstallation, session: HsmSession
) -> None:
    """SoftHSM answers an empty list here, which is not believed."""
    made.tokens.rename(made.away)

    with pytest.raises(HsmUnavailableError):
        await session.sign(KEY, DIGEST, PKCS1)


async def test_destroy_on_a_vanished_token_is_unavailable(
    made: HsmInstallation, session: HsmSession
) -> None:
    """It does not say "nothing there" of a token that is away."""
    made.tokens.rename(made.away)

    with pytest.raises(HsmUnavailableError):
        await session.destroy(KEY)


async def test_open_breaker_answers_at_once(
    made: HsmInstallation,
) -> None:
    """While the HSM is away, nobody waits for it."""
    async with made.session(probe_s=60) as session:
        made.tokens.rename(made.away)
        with pytest.raises(HsmUnavailableError):
            await session.sign(KEY, DIGEST, PKCS1)

        # What waited for the HSM would stand behind this.
        busy = threading.Event()
        thread = session._thread
        assert thread is not None
        waiting = asyncio.create_task(thread._in_thread(busy.wait))
        try:
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(100):
                    with pytest.raises(HsmUnavailableError):
                        await session.sign(KEY, DIGEST, PKCS1)
        finally:
            busy.set()
            await waiting


async def test_returned_token_heals_without_restart(made: HsmInstallation) -> None:
    """With the probe as it is by default."""
    async with made.session() as session:
        public = await session.public_key(KEY)
        made.tokens.rename(made.away)
        with pytest.raises(HsmUnavailableError):
            await session.sign(KEY, DIGEST, PKCS1)
        made.away.rename(made.tokens)

        await _until(lambda: session.status is HsmStatus.READY)

        verify(public, await session.sign(KEY, DIGEST, PKCS1), DIGEST)


async def test_token_that_came_back_blank_heals_inside_the_call(
    made: HsmInstallation, session: HsmSession
) -> None:
    """SoftHSM shows no keys after an absence that it noticed."""
    public = await session.public_key(KEY)
    thread = session._thread
    assert thread is not None
    raw = thread._connections[0].session(TokenRole.FIRMA)
    made.tokens.rename(made.away)
    seen = await thread._in_thread(lambda: list(raw.get_objects()))
    made.away.rename(made.tokens)

    signature = await session.sign(KEY, DIGEST, PKCS1)

    assert seen == []
    verify(public, signature, DIGEST)


async def test_lost_session_heals_inside_the_call(session: HsmSession) -> None:
    """The module is started anew, and the caller has its signature."""
    public = await session.public_key(KEY)
    await session.sign(KEY, DIGEST, PKCS1)
    await _lose(session)

    verify(public, await session.sign(KEY, DIGEST, PKCS1), DIGEST)


async def test_session_lost_before_a_look_up_heals_inside_the_call(
    session: HsmSession,
) -> None:
    """The same where the key's handle was not known yet."""
    await _lose(session)

    await session.self_test(KEY)


async def test_idle_session_notices_by_itself(
    template: HsmInstallation, tmp_path: Path
) -> None:
    """The keep-alive signature finds out before a person does."""
    copied = template.copy(tmp_path)
    hsm = copied.settings.hsm.model_copy(update={"keep_alive_s": 0.2})
    async with HsmSession(hsm, copied.profile, probe_s=0.1) as session:
        copied.tokens.rename(copied.away)
        await _until(lambda: session.status is HsmStatus.UNAVAILABLE)

        copied.away.rename(copied.tokens)
        await _until(lambda: session.status is HsmStatus.READY)

        await session.keep_alive()


async def test_open_while_the_hsm_is_away_heals_later(made: HsmInstallation) -> None:
    """A worker starts all the same, and signs when the HSM comes."""
    made.tokens.rename(made.away)
    async with made.session(probe_s=0.2) as session:
        assert session.status is HsmStatus.UNAVAILABLE

        made.away.rename(made.tokens)
        await _until(lambda: session.status is HsmStatus.READY)

        await session.self_test(KEY)


async def test_hsm_without_our_own_keys_is_not_ready(made: HsmInstallation) -> None:
    """An `hsm init` that was cut off is named as the reason."""
    with made.raw(TokenRole.FIRMA) as raw:
        objects.destroy(raw, objects.KEEP_ALIVE_KEY.cka_id)

    async with made.session() as session:
        assert session.status is HsmStatus.UNAVAILABLE
        assert "hsm init" in session.reason


async def test_closed_session_is_unavailable(made: HsmInstallation) -> None:
    """Before and after, callers are told."""
    session = made.session()
    with pytest.raises(HsmUnavailableError):
        await session.sign(KEY, DIGEST, PKCS1)
    await session.open()
    await session.close()

    with pytest.raises(HsmUnavailableError):
        await session.sign(KEY, DIGEST, PKCS1)


# PINs


async def test_wrong_pin_is_tried_once(
    made: HsmInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No probe, no call and no corrected file leads to a second try."""
    right = made.pin(TokenRole.FIRMA)
    made.settings.hsm.firma.pin_file.write_text("9182736455\n")
    tried: list[str] = []

    def counted(token: pkcs11.Token, pin: Pin) -> pkcs11.Session:
        tried.append(token.label)
        return log_in(token, pin)

    monkeypatch.setattr(hsm_connection, "log_in", counted)
    async with made.session(probe_s=0.05) as session:
        made.settings.hsm.firma.pin_file.write_text(f"{right}\n")
        await asyncio.sleep(0.5)
        with pytest.raises(HsmUnavailableError):
            await session.sign(KEY, DIGEST, PKCS1)

        assert session.status is HsmStatus.PIN
        assert tried.count("firma") == 1


async def test_pin_changed_meanwhile_latches(made: HsmInstallation) -> None:
    """A PIN that is refused after a lost session is not tried again either."""
    async with made.session(probe_s=0.05) as session:
        assert session._thread is not None
        one = session._thread._connections[0]
        one.token = dataclasses.replace(one.token, pin=Pin("9182736455"))
        await _lose(session)
        with pytest.raises(HsmUnavailableError):
            await session.sign(KEY, DIGEST, PKCS1)

        await asyncio.sleep(0.3)

        assert session.status is HsmStatus.PIN


async def test_missing_pin_file_refuses_to_open(made: HsmInstallation) -> None:
    """A fault of the settings ends the start; no login is tried."""
    made.settings.hsm.pki.pin_file.unlink()

    with pytest.raises(SettingsError, match="PIN file cannot be read"):
        await made.session().open()


async def test_pin_shows_nowhere(made: HsmInstallation) -> None:
    """Not in reprs, reasons, errors or log events, right or wrong."""
    pins = [made.pin(role) for role in TokenRole]
    seen: list[str] = []
    with structlog.testing.capture_logs() as logs:
        session = made.session(probe_s=60)
        await session.open()
        thread = session._thread
        assert thread is not None
        seen += [repr(session), repr(thread), repr(vars(thread._connections[0]))]
        made.tokens.rename(made.away)
        with pytest.raises(HsmUnavailableError) as away:
            await session.sign(KEY, DIGEST, PKCS1)
        await session.close()
        made.away.rename(made.tokens)
        made.settings.hsm.firma.pin_file.write_text("9182736455\n")
        async with made.session() as wrong:
            seen += [wrong.reason, repr(vars(wrong))]
            with pytest.raises(HsmUnavailableError) as refused:
                await wrong.sign(KEY, DIGEST, PKCS1)
    seen += [repr(logs), repr(away.value), str(away.value), repr(refused.value)]

    everything = "\n".join(seen)
    for pin in [*pins, "9182736455"]:
        assert pin not in everything
    assert "PinIncorrect" in everything


# Processes

_OPEN_AND_SIGN = """\
import asyncio, hashlib, sys
from pathlib import Path
from appliance.domain.hsm import KeyReference, TokenRole
from appliance.settings import load_settings
from hsm_config.profile import load_profile
from worker.hsm_session import HsmSession

async def main():
    settings = load_settings(Path(sys.argv[1]))
    session = HsmSession(settings.hsm, load_profile("softhsm2"))
    sys.stdin.read(1)
    await session.open()
    assert session.status == "ready", session.reason
    ref = KeyReference(TokenRole.FIRMA, b"\\x01credential")
    await session.self_test(ref)
    await session.close()

asyncio.run(main())
"""


def test_eight_processes_at_once_all_open(made: HsmInstallation) -> None:
    """Those that disturb one another at the start try again."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _OPEN_AND_SIGN, made.file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(8)
    ]
    # Let all of them come to the brink before any opens.
    time.sleep(3)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()

    said = [process.communicate(timeout=60)[0] for process in processes]

    assert [process.returncode for process in processes] == [0] * 8, said


_FORK = """\
import asyncio, os, sys
from pathlib import Path
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.hsm import KeyReference, SignatureScheme, TokenRole
from appliance.settings import load_settings
from hsm_config.profile import load_profile
from worker.hsm_session import HsmSession

async def main():
    settings = load_settings(Path(sys.argv[1]))
    ref = KeyReference(TokenRole.FIRMA, b"\\x01credential")
    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        child = os.fork()
        if child == 0:
            signing = session.sign(ref, bytes(32), SignatureScheme.RSA_PKCS1)
            for call in (signing, session.close()):
                try:
                    call.send(None)  # refused before it waits for anything
                except HsmUnavailableError as exc:
                    sys.stdout.write(exc.reason + "\\n")
                else:
                    os._exit(1)
            sys.stdout.flush()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        await session.self_test(ref)

asyncio.run(main())
"""


def test_forked_child_cannot_use_the_session(made: HsmInstallation) -> None:
    """The child is refused at once, and the parent signs on."""
    result = subprocess.run(
        [sys.executable, "-c", _FORK, made.file],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.count("opened by another process") == 2

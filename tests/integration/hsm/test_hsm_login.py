"""`HsmSession` and who may open it, on a real SoftHSM: PINs and processes."""

import dataclasses
import hashlib
import subprocess
import sys

import pkcs11
import pytest
import structlog

from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.hsm_keys import ResidentKey, SignatureScheme, TokenRole
from appliance.settings import SettingsError
from hsm_config.pkcs11.module import log_in
from hsm_config.pkcs11.pin import Pin
from tests.support.hsm.hsm_installation import HsmInstallation, lose_module, probed
from tests.support.patience import CALL_S
from tests.support.processes.rubrica import run_rubrica
from worker.hsm import token_sessions
from worker.hsm.connection import HsmStatus

PKCS1 = SignatureScheme.RSA_PKCS1
DIGEST = hashlib.sha256(b"a document").digest()


# PINs


async def test_wrong_pin_is_tried_once(
    hsm_with_key: HsmInstallation,
    monkeypatch: pytest.MonkeyPatch,
    user_key: ResidentKey,
) -> None:
    """No probe, no call and no corrected file leads to a second try."""
    right = hsm_with_key.pin(TokenRole.FIRMA)
    hsm_with_key.settings.hsm.firma.pin_file.write_text("9182736455\n")
    tried: list[str] = []

    def counted(token: pkcs11.Token, pin: Pin) -> pkcs11.Session:
        tried.append(token.label)
        return log_in(token, pin)

    monkeypatch.setattr(token_sessions, "log_in", counted)
    async with hsm_with_key.session(probe_s=0.05) as session:
        hsm_with_key.settings.hsm.firma.pin_file.write_text(f"{right}\n")
        await probed(session)
        with pytest.raises(HsmUnavailableError):
            await session.sign(user_key, DIGEST, PKCS1)

        assert session.status is HsmStatus.PIN
        assert tried.count("firma") == 1


async def test_pin_changed_meanwhile_latches(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """A PIN that is refused after a lost session is not tried again either."""
    async with hsm_with_key.session(probe_s=0.05) as session:
        assert session._thread is not None
        one = session._thread._connections[0]
        one.token = dataclasses.replace(one.token, pin=Pin("9182736455"))
        await lose_module(session)
        with pytest.raises(HsmUnavailableError):
            await session.sign(user_key, DIGEST, PKCS1)

        await probed(session)

        assert session.status is HsmStatus.PIN


async def test_missing_pin_file_refuses_to_open(hsm_with_key: HsmInstallation) -> None:
    """A fault of the settings ends the start; no login is tried."""
    hsm_with_key.settings.hsm.pki.pin_file.unlink()

    with pytest.raises(SettingsError, match="PIN file is not there"):
        await hsm_with_key.session().open()


async def test_pin_shows_nowhere(
    hsm_with_key: HsmInstallation, user_key: ResidentKey
) -> None:
    """Not in reprs, reasons, errors or log events, right or wrong."""
    pins = [hsm_with_key.pin(role) for role in TokenRole]
    seen: list[str] = []
    with structlog.testing.capture_logs() as logs:
        session = hsm_with_key.session(probe_s=60)
        await session.open()
        thread = session._thread
        assert thread is not None
        seen += [repr(session), repr(thread), repr(vars(thread._connections[0]))]
        hsm_with_key.tokens.rename(hsm_with_key.away)
        with pytest.raises(HsmUnavailableError) as away:
            await session.sign(user_key, DIGEST, PKCS1)
        await session.close()
        hsm_with_key.away.rename(hsm_with_key.tokens)
        hsm_with_key.settings.hsm.firma.pin_file.write_text("9182736455\n")
        async with hsm_with_key.session() as wrong:
            seen += [wrong.reason, repr(vars(wrong))]
            with pytest.raises(HsmUnavailableError) as refused:
                await wrong.sign(user_key, DIGEST, PKCS1)
    seen += [repr(logs), repr(away.value), str(away.value), repr(refused.value)]

    everything = "\n".join(seen)
    for pin in [*pins, "9182736455"]:
        assert pin not in everything
    assert "PinIncorrect" in everything


# Processes

_OPEN_AND_SIGN = """\
import asyncio, hashlib, sys
from pathlib import Path
from appliance.domain.keys.hsm_keys import KeyReference, TokenRole
from appliance.settings import load_settings
from hsm_config.profile import load_profile
from worker.hsm.session import HsmSession

async def main():
    settings = load_settings(Path(sys.argv[1]))
    session = HsmSession(settings.hsm, load_profile("softhsm2"))
    print("here", flush=True)
    sys.stdin.read(1)
    await session.open()
    assert session.status == "ready", session.reason
    ref = KeyReference(TokenRole.FIRMA, b"\\x01credential")
    await session.self_test(ref)
    await session.close()

asyncio.run(main())
"""


def test_eight_processes_at_once_all_open(hsm_with_key: HsmInstallation) -> None:
    """Those that disturb one another at the start try again."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _OPEN_AND_SIGN, hsm_with_key.file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(8)
    ]
    # All of them come to the brink before any opens.
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()

    said = [process.communicate(timeout=CALL_S)[0] for process in processes]

    assert [process.returncode for process in processes] == [0] * 8, said


_FORK = """\
import asyncio, os, sys
from pathlib import Path
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.hsm_keys import (
    KeyReference, ResidentKey, SignatureScheme, TokenRole
)
from appliance.settings import load_settings
from hsm_config.profile import load_profile
from worker.hsm.session import HsmSession

async def main():
    settings = load_settings(Path(sys.argv[1]))
    ref = KeyReference(TokenRole.FIRMA, b"\\x01credential")
    key = ResidentKey(ref.cka_id, b"")
    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        child = os.fork()
        if child == 0:
            signing = session.sign(key, bytes(32), SignatureScheme.RSA_PKCS1)
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


def test_forked_child_cannot_use_the_session(hsm_with_key: HsmInstallation) -> None:
    """The child is refused at once, and the parent signs on."""
    result = subprocess.run(
        [sys.executable, "-c", _FORK, hsm_with_key.file],
        capture_output=True,
        text=True,
        timeout=CALL_S,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.count("opened by another process") == 2


def test_files_are_looked_at_before_a_pin_is_tried(
    initialised_hsm: HsmInstallation,
) -> None:
    """What is wrong with them ends a worker for good: no start after it tries a PIN."""
    settings = initialised_hsm.settings
    settings.hsm.firma.pin_file.write_text("9182736455\n")
    settings.run_dir.mkdir(exist_ok=True)
    settings.document_key_file.write_text(f"{'0' * 64}\n")
    content = settings.ca_file.read_bytes()

    def refused() -> str:
        words = ("--settings", str(initialised_hsm.file), "worker", "signing")
        done = run_rubrica(*words, environment=initialised_hsm.environment)
        assert done.returncode == 78, done
        assert "PinIncorrect" not in done.stdout + done.stderr
        return done.stderr

    settings.ca_file.unlink()
    assert f"{settings.ca_file}: is not there; run `rubrica hsm init`" in refused()
    # No mode keeps root, as whom tests may run, from a file; a folder does.
    settings.ca_file.mkdir()
    assert f"{settings.ca_file}: cannot be read (Is a directory)" in refused()
    settings.ca_file.rmdir()
    settings.ca_file.write_bytes(content[:99])
    assert f"{settings.ca_file}: holds no certificate" in refused()
    settings.ca_file.chmod(0o664)
    assert f"{settings.ca_file}: others may write it" in refused()

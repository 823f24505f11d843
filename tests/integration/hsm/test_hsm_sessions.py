"""Several sessions of a token in one process: `hsm.sessions`, on a real SoftHSM.

Source: docs/hsm.md, "Several sessions"; PKCS#11 v2.40, 5.4 and 5.6.
"""

import asyncio
import hashlib
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    ResidentKey,
    SignatureScheme,
    TokenRole,
    WrappedKey,
)
from appliance.metrics import metrics
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import SettingsError
from hsm_config.pkcs11.objects import KEEP_ALIVE_KEY
from tests.support.hsm.hsm_installation import (
    KEY,
    HsmInstallation,
    lose_module,
    until,
    verify,
)
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from worker.hsm.connection import HsmConnection, HsmStatus
from worker.hsm.session import HsmSession

PKCS1 = SignatureScheme.RSA_PKCS1
DIGEST = hashlib.sha256(b"a document").digest()
SESSION_HANDLE_INVALID, SESSION_COUNT, PIN_INCORRECT = 0xB3, 0xB1, 0xA0
PIN_LOCKED, DEVICE_REMOVED = 0xA4, 0x32
SESSIONS = 8


@pytest.fixture
def shim(hsm_with_key: HsmInstallation, monkeypatch: pytest.MonkeyPatch) -> Pkcs11Shim:
    """A shim around its module, for this process."""
    return hsm_with_key.shimmed(monkeypatch)


@pytest.fixture
async def session(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim
) -> AsyncIterator[HsmSession]:
    """Eight sessions a token, that probe often."""
    async with hsm_with_key.session(
        module=shim.path, probe_s=0.2, sessions=SESSIONS
    ) as opened:
        assert opened.reason == ""
        yield opened


async def sign(session: HsmSession, key: ResidentKey | WrappedKey) -> bytes:
    """A signature."""
    return await session.sign(key, DIGEST, PKCS1)


async def sign_often(
    session: HsmSession, keys: list[ResidentKey | WrappedKey], times: int
) -> list[bytes]:
    """So many signatures, the keys taking turns."""
    return await asyncio.gather(
        *(sign(session, keys[n % len(keys)]) for n in range(times))
    )


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.full)])
async def test_signatures_by_eight_threads(
    hsm_with_key: HsmInstallation, count: int, user_key: ResidentKey
) -> None:
    """SoftHSM itself with its mutexes on: each is right, by either kind of key."""
    before = faults()
    async with hsm_with_key.session(sessions=SESSIONS) as session:
        public = await session.public_key(KEY)
        wrapped = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        made = await sign_often(session, [user_key, wrapped], count)
        assert session.reason == ""

    # PKCS#1 v1.5 has one value for a key and a digest.
    for first, each in ((public, made[::2]), (wrapped.spki, made[1::2])):
        assert len(set(each)) == 1
        verify(first, each[0], DIGEST)
    assert faults() == before


def faults() -> float:
    """How often something went wrong at the HSM so far."""
    return sum(
        sample.value
        for family in metrics.HSM_FAULTS.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    )


async def test_keys_are_made_while_others_sign(hsm_with_key: HsmInstallation) -> None:
    """Neither looks at what the other has unwrapped and destroys again."""
    async with hsm_with_key.session(sessions=SESSIONS) as session:
        before = faults()
        wrapped = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        signing = asyncio.create_task(sign_often(session, [wrapped], 200))
        await asyncio.gather(
            *(session.generate_wrapped(KeyAlgorithm.EC_P256) for _ in range(40))
        )

        verify(wrapped.spki, (await signing)[-1], DIGEST)
        assert faults() == before


async def test_calls_are_made_at_once(session: HsmSession, shim: Pkcs11Shim) -> None:
    """Eight are in the module together: none waits for another's answer."""
    all_there = threading.Barrier(SESSIONS)

    def meet(link: HsmConnection) -> int:
        all_there.wait(30)
        return link.session(TokenRole.FIRMA).handle  # type: ignore[attr-defined, no-any-return]  # the stubs know of none

    used = await asyncio.gather(*(session._call(meet) for _ in range(SESSIONS)))

    assert len(set(used)) == SESSIONS
    assert shim.starts() == (0, 1)


async def test_one_session_is_as_ever(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """C_Initialize(NULL), and one session a token."""
    opened = shim.count("C_OpenSession")
    async with hsm_with_key.session(module=shim.path) as session:
        await sign_often(session, [user_key], 20)

    assert shim.starts() == (1, 0)
    assert shim.count("C_OpenSession") == opened + 2


async def test_one_login_a_token(
    session: HsmSession, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """The further sessions are opened beside it, without a PIN."""
    await sign_often(session, [user_key], 100)

    assert shim.count("C_Login") == len(TokenRole)
    assert shim.count("C_OpenSession") == len(TokenRole) * SESSIONS


@pytest.mark.usefixtures("session")
async def test_metrics_count_the_sessions() -> None:
    """All that the process has open."""
    gauge = metrics.HSM_SESSIONS.labels(TokenRole.FIRMA.value)

    await until(lambda: gauge._value.get() == SESSIONS)


async def test_lost_session_is_only_a_reconnect(
    session: HsmSession, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """One start more, and no caller notices."""
    logins = shim.count("C_Login")
    with shim.fault("C_Sign", "code", SESSION_HANDLE_INVALID, times=1) as rule:
        await sign_often(session, [user_key], 200)
        assert shim.used(rule) >= 200

    assert shim.starts() == (0, 2)
    assert shim.count("C_Login") == logins + len(TokenRole)
    assert session.reason == ""


async def test_lost_module_is_started_once_for_all(
    session: HsmSession, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """Every thread finds its session lost; one of them starts anew."""
    await sign_often(session, [user_key], 50)
    await lose_module(session)

    await sign_often(session, [user_key], 50)

    assert shim.starts() == (0, 2)
    assert session.reason == ""


async def test_start_waits_for_those_inside(
    session: HsmSession, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """C_Finalize pulls no session from under a call."""
    with shim.fault("C_Sign", "delay", 700, at="firma", times=SESSIONS - 1) as rule:
        slow = [
            asyncio.create_task(sign(session, user_key)) for _ in range(SESSIONS - 1)
        ]
        await until(lambda: shim.used(rule) == SESSIONS - 1)
        with shim.fault("C_SignInit", "code", SESSION_HANDLE_INVALID, times=1):
            await sign(session, user_key)

        # It waited, and so each of them had signed by its first try.
        await asyncio.gather(*slow)
        assert shim.used(rule) < SESSIONS + 4
    assert shim.starts() == (0, 2)


async def test_lost_for_good_opens_the_breaker_once(
    session: HsmSession, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """Of many who find the token away, one tries to start; all are told."""
    with shim.fault("*", "code", DEVICE_REMOVED, at="firma") as rule:
        outcomes = await asyncio.gather(
            *(sign(session, user_key) for _ in range(50)), return_exceptions=True
        )
        assert all(isinstance(one, HsmUnavailableError) for one in outcomes)
        assert session.status is HsmStatus.UNAVAILABLE
        tries = session._profile.quirks.start_tries
        assert sum(shim.starts()) <= 1 + tries + 4
        assert shim.used(rule) < 100

    await until(lambda: session.reason == "")
    await sign_often(session, [user_key], 20)


@pytest.mark.parametrize("code", [PIN_INCORRECT, PIN_LOCKED])
async def test_refused_pin_is_tried_once_and_not_by_each_thread(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim, code: int, user_key: ResidentKey
) -> None:
    """At the start, and after a session was lost."""
    with shim.fault("C_Login", "code", code, at="firma") as rule:
        async with hsm_with_key.session(
            module=shim.path, probe_s=0.02, sessions=SESSIONS
        ) as session:
            await refused(session, user_key)
            assert shim.used(rule) == 1

    async with hsm_with_key.session(
        module=shim.path, probe_s=0.02, sessions=SESSIONS
    ) as session:
        await sign_often(session, [user_key], 20)
        with shim.fault("C_Login", "code", code, at="firma") as rule:
            await lose_module(session)
            await refused(session, user_key)
            assert shim.used(rule) == 1


async def refused(session: HsmSession, user_key: ResidentKey) -> None:
    """The PIN was: callers are told, and a probe does not try."""
    outcomes = await asyncio.gather(
        *(sign(session, user_key) for _ in range(20)), return_exceptions=True
    )
    assert all(isinstance(one, HsmUnavailableError) for one in outcomes)
    looks = metrics.HSM_OPERATIONS.labels("pki", "done")._value.get() + 20
    while metrics.HSM_OPERATIONS.labels("pki", "done")._value.get() < looks:
        await session._call(HsmConnection.exercise, TokenRole.PKI)
    assert session.status is HsmStatus.PIN


async def test_hang_of_any_thread_is_seen(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """While the others sign on, the one that hangs is what the watch shows."""
    watch = CallWatch()
    async with hsm_with_key.session(
        module=shim.path, watch=watch, sessions=SESSIONS
    ) as session:
        with shim.fault("C_Sign", "delay", 2000, times=1) as rule:
            slow = asyncio.create_task(sign(session, user_key))
            await until(lambda: shim.used(rule) > 0)
            while watch.running_s() < 1:
                await sign_often(session, [user_key], 8)
            watch.note_hang()
            await slow
        assert watch.hangs(0)[0] == 1
        assert watch.hangs(1)[0] == 0
        assert watch.running_s() == 0


_HANG = """\
import asyncio, sys
from pathlib import Path
from appliance.domain.keys.hsm_keys import SignatureScheme
from appliance.runtime.hang_watchdog import CallWatch
from appliance.runtime.systemd_notify import ServiceManager
from appliance.settings import load_settings
from hsm_config.profile import load_profile
from tests.support.hsm.hsm_installation import read_user_key
from worker.hsm import watchdog
from worker.hsm.session import HsmSession

async def sign(session):
    key = read_user_key(load_settings(Path(sys.argv[1])))
    while True:
        await session.sign(key, bytes(32), SignatureScheme.RSA_PKCS1)

async def main():
    hsm = load_settings(Path(sys.argv[1])).hsm.model_copy(
        update={"sessions": 4, "module": Path(sys.argv[2])}
    )
    watch, watchdog._OUTSIDE_S = CallWatch(Path(sys.argv[3])), 1
    session = HsmSession(hsm, load_profile("softhsm2"), watch=watch)
    async with watchdog.calls_guarded(watch, 2, ServiceManager()), session:
        await asyncio.gather(*(sign(session) for _ in range(4)))

asyncio.run(main())
"""


def start_signing(
    installation: HsmInstallation, shim: Pkcs11Shim, words: Path
) -> "subprocess.Popen[bytes]":
    """A process that signs in four threads, and is ended when one of them hangs."""
    return subprocess.Popen(
        [sys.executable, "-c", _HANG, installation.file, shim.path, words],
        env=installation.environment | shim.environment,
    )


async def test_hang_of_one_thread_ends_the_process(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """Though three others sign on; the next start knows at which token it was."""
    words = hsm_with_key.folder / "words"
    with start_signing(hsm_with_key, shim, words) as process:
        await until(lambda: shim.count("C_Sign") > 40)
        with shim.fault("C_Sign", "hang", at="firma", times=1) as rule:
            await until(lambda: shim.used(rule) > 40)
            assert await asyncio.to_thread(process.wait, 60) == -signal.SIGKILL

    assert CallWatch(words).hangs(0)[0] == 1


async def test_closing_finishes_what_runs_and_waits(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """All that was asked for is signed; the module is not started again."""
    session = hsm_with_key.session(module=shim.path, sessions=SESSIONS)
    await session.open()
    with shim.fault("C_Sign", "delay", 20):
        signing = [asyncio.create_task(sign(session, user_key)) for _ in range(60)]
        await until(lambda: shim.count("C_Sign") > SESSIONS)
        await session.close()

    assert len(set(await asyncio.gather(*signing))) == 1
    assert shim.starts() == (0, 1)
    async with hsm_with_key.session(module=shim.path, sessions=SESSIONS) as again:
        assert again.reason == ""


async def test_closing_one_session_logs_nobody_out(session: HsmSession) -> None:
    """One that was opened beside the login ends alone."""
    thread = session._thread
    assert thread is not None
    links = thread._connections[0]._links
    await thread._in_thread(links[-1].session(TokenRole.FIRMA).close)

    def look(link: HsmConnection) -> object:
        return link.private_key(KEEP_ALIVE_KEY)

    for link in links[:-1]:
        assert await thread._in_thread(partial(look, link))


async def test_idle_sessions_are_kept_alive_one_by_one(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim, user_key: ResidentKey
) -> None:
    """Also those that a light load never comes to."""
    hsm = hsm_with_key.settings.hsm.model_copy(
        update={"keep_alive_s": 0.1, "module": shim.path, "sessions": 3}
    )
    async with HsmSession(hsm, hsm_with_key.profile, probe_s=0.05) as session:
        thread = session._thread
        assert thread is not None
        links = thread._connections[0]._links
        begun = [link.last_use for link in links]

        async with asyncio.timeout(30):
            while any(
                link.last_use == at for link, at in zip(links, begun, strict=True)
            ):
                await sign(session, user_key)

        assert session.reason == ""


async def test_destroyed_key_is_forgotten_in_every_session(
    session: HsmSession, user_key: ResidentKey
) -> None:
    """No session goes by a handle that another has made void."""
    await sign_often(session, [user_key], 100)
    thread = session._thread
    assert thread is not None
    links = thread._connections[0]._links

    await session.destroy(KEY)

    assert not any(user_key in link._residents for link in links)


async def test_token_with_fewer_sessions_says_so(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """The setting is named where the token's limit is reached."""
    with shim.fault("C_OpenSession", "code", SESSION_COUNT, at="pki"):
        async with hsm_with_key.session(module=shim.path, sessions=4) as session:
            assert session.status is HsmStatus.READY
            assert "pki: SessionCount (hsm.sessions = 4" in session.reason


async def test_make_that_does_not_say_that_it_locks_is_refused(
    hsm_with_key: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """Before anything is opened; and so is a module that cannot."""
    quirks = replace(hsm_with_key.profile.quirks, several_threads=False)
    hsm = hsm_with_key.settings.hsm.model_copy(update={"sessions": 2})
    with pytest.raises(SettingsError, match=r"hsm\.sessions: .*several_threads"):
        await HsmSession(hsm, replace(hsm_with_key.profile, quirks=quirks)).open()

    with shim.fault("C_Initialize", "code", 0x0A):
        async with hsm_with_key.session(module=shim.path, sessions=2) as session:
            assert session.status is HsmStatus.UNAVAILABLE
            assert "hsm.sessions: " in session.reason
            assert "CKR_CANT_LOCK" in session.reason


async def test_another_member_signs_for_all_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who find a member away go on at the other; then it is taken back."""
    installation = HsmInstallation.ready(tmp_path, members=2)
    shim = installation.shimmed(monkeypatch)
    async with installation.session(
        module=shim.path, probe_s=0.2, sessions=SESSIONS
    ) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        with shim.fault("*", "code", DEVICE_REMOVED, at="firma"):
            made = await sign_often(session, [key], 60)
            assert session.status is HsmStatus.READY
            assert session.reason.startswith("firma: ")
        await until(lambda: session.reason == "")
        made += await sign_often(session, [key], 20)

    assert len(set(made)) == 1
    verify(key.spki, made[0], DIGEST)
    assert {one.token for one in shim.signed()} == {"firma", "firma-2"}

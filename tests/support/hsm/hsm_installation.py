"""An installation's HSM on a private SoftHSM, made by `rubrica hsm init`.

python-pkcs11 starts a module once a process; who opens the tokens here closes
them before another folder's are opened.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pkcs11
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils

from appliance.database.engines import open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    TokenRole,
)
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import Settings, load_settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.module import find_token, log_in, members, opened, token_settings
from hsm_config.pkcs11.pin import obtain_pin
from hsm_config.profile import HsmProfile, load_profile
from hsm_config.provisioning.init import provision
from hsm_config.self_check.check import check
from hsm_config.self_check.report import CheckReport
from tests.support.factories.fakes import MovingClock
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.processes.forked_process import Running
from tests.support.processes.rubrica import run_rubrica, start_rubrica
from tests.support.processes.setup_cache import copy_installation, prepared
from worker.hsm.session import HsmSession
from worker.hsm.token_sessions import TokenSessions

KEY: Final = KeyReference(TokenRole.FIRMA, b"\x01credential")
"""Of a user, where a test wants one."""
OWN_KEYS: Final = frozenset(
    {
        objects.ROOT_KEY,
        objects.CA_KEY,
        objects.OCSP_KEY,
        objects.TSA_KEY,
        objects.KEEP_ALIVE_KEY,
        objects.IDENTITY_KEY,
    }
)
"""The installation's own pairs, made by `rubrica hsm init`."""
_DAY_S: Final = 86_400
_TOML: Final = """\
trial = {trial}
environment = "PREPROD"
installation = "prueba"
data_dir = "data"
run_dir = "run"

[hsm]
{hsm_lines}
keep_alive_s = {keep_alive_s}

[hsm.firma]
label = "firma"
pin_file = "secrets/firma.pin"

[hsm.pki]
label = "pki"
pin_file = "secrets/pki.pin"

[secrets]
pepper_file = "secrets/pepper"
data_key_file = "secrets/data"
document_key_file = "secrets/document"
lookup_key_file = "secrets/lookup"
"""
_REPLICA: Final = """\
[[hsm.replicas]]
label = "firma-{number}"
pin_file = "secrets/firma-{number}.pin"
"""

_USER_KEY: Final = "user-key.spki"
_MADE: Final = ("data", "hsm", "secrets")
"""Folders that `hsm init` fills."""

_COMMAND: Final = """\
import argparse, pathlib, sys
from hsm_config.cli import register

parser = argparse.ArgumentParser()
parser.add_argument("--settings", type=pathlib.Path)
register(parser.add_subparsers(required=True))
arguments = parser.parse_args()
sys.exit(arguments.run(arguments))
"""


class HsmInstallation:
    """A settings file whose HSM is a private folder; nothing is made yet.

    Args:
        folder: an existing private folder.
        trial: the setting of that name.
        keep_alive_s: the setting of that name.
        hsm_lines: what the settings say of the HSM besides; by default that it is
            a SoftHSM.
        environment: what the module wants besides in a command's environment.
        members: tokens behind the logical HSM "firma": `firma`, `firma-2`, …
    """

    def __init__(
        self,
        folder: Path,
        *,
        trial: bool = True,
        keep_alive_s: float = 60,
        hsm_lines: str = 'softhsm_conf = "hsm/softhsm2.conf"',
        environment: Mapping[str, str] | None = None,
        members: int = 1,
    ) -> None:
        self.folder = folder
        self.environment = {**os.environ, **(environment or {})}
        self.file = folder / "settings.toml"
        self._members = members
        text = _TOML.format(
            trial=str(trial).lower(), keep_alive_s=keep_alive_s, hsm_lines=hsm_lines
        )
        for number in range(2, members + 1):
            text += _REPLICA.format(number=number)
        self.file.write_text(text, "utf-8")
        self.settings: Settings = load_settings(self.file)
        self.profile: HsmProfile = load_profile(self.settings.hsm.profile)

    def copy(self, folder: Path) -> "HsmInstallation":
        """The same keys, PINs and certificate in another folder.

        Generating keys is what takes time: make one, copy it for each test.
        """
        copy_installation(self.folder, folder, _MADE)
        return HsmInstallation(folder, trial=self.settings.trial, members=self._members)

    @classmethod
    def ready(
        cls, folder: Path, *, members: int = 1, name: str = "first"
    ) -> "HsmInstallation":
        """An installation after `hsm init`: a copy of the one that a run makes.

        Args:
            folder: an existing private folder.
            members: as of this class.
            name: another one has other keys, PINs and certificates.
        """

        def make(place: Path) -> None:
            provision(cls(place, members=members).settings)

        source = prepared(f"hsm-{members}-{name}", make)
        if source is None:
            make(folder)
        else:
            copy_installation(source, folder, _MADE)
        return cls(folder, members=members)

    def shimmed(self, monkeypatch: pytest.MonkeyPatch) -> Pkcs11Shim:
        """A shim around its module, for this process as long as the test lasts."""
        tool = Pkcs11Shim(self.folder, self.profile.modules[0])
        for name, value in tool.environment.items():
            monkeypatch.setenv(name, value)
        return tool

    def make_user_key(self) -> None:
        """Have a user's `KEY` on the token, as an enrolment makes one."""
        with self.raw(KEY.token) as session:
            spki = objects.generate(session, KEY.cka_id, "user", KeyAlgorithm.RSA_2048)
        (self.settings.data_dir / _USER_KEY).write_bytes(spki)

    @property
    def user_key(self) -> ResidentKey:
        """`KEY` as credentials name it: with its public key."""
        return read_user_key(self.settings)

    @property
    def tokens(self) -> Path:
        """Folder of the tokens."""
        return self.folder / "hsm" / "tokens"

    @property
    def away(self) -> Path:
        """Where the folder goes that vanishes."""
        return self.folder / "hsm" / "away"

    def pin(self, role: TokenRole) -> str:
        """A token's PIN."""
        file = token_settings(self.settings.hsm, role).pin_file
        return file.read_text("utf-8").strip()

    def session(
        self,
        *,
        probe_s: float = 5.0,
        number: int = 1,
        module: Path | None = None,
        watch: CallWatch | None = None,
        sessions: int = 1,
    ) -> HsmSession:
        """A session, not yet opened.

        Args:
            probe_s: as of `HsmSession`.
            number: as of `HsmSession`.
            module: instead of that of the settings, for a shim.
            watch: as of `HsmSession`.
            sessions: the setting of that name.
        """
        hsm = self.settings.hsm
        hsm = hsm.model_copy(
            update={"module": module or hsm.module, "sessions": sessions}
        )
        return HsmSession(
            hsm, self.profile, probe_s=probe_s, number=number, watch=watch
        )

    @contextmanager
    def without(self, label: str) -> Iterator[None]:
        """Take one token away for a while, its folder moved elsewhere."""
        folder = folder_of_token(self.tokens, label)
        away = self.tokens.parent / "one-away"
        folder.rename(away)
        try:
            yield
        finally:
            away.rename(folder)

    @contextmanager
    def raw_members(self) -> Iterator[list[pkcs11.Session]]:
        """The binding's own sessions of firma's members, logged in."""
        with opened(self.settings.hsm, self.profile) as library:
            yield [
                log_in(
                    find_token(library, own.firma.label),
                    obtain_pin(own.firma, self.settings.environment),
                )
                for own in members(self.settings.hsm)
            ]

    @contextmanager
    def raw(self, role: TokenRole) -> Iterator[pkcs11.Session]:
        """The binding's own session of a token, logged in."""
        with opened(self.settings.hsm, self.profile) as library:
            wanted = token_settings(self.settings.hsm, role)
            pin = obtain_pin(wanted, self.settings.environment)
            yield log_in(find_token(library, wanted.label), pin)

    def command_line(self, *words: str) -> list[str]:
        """How `rubrica hsm …` is executed, without what other packages add to it."""
        begin = [sys.executable, "-c", _COMMAND, "--settings", str(self.file)]
        return [*begin, "hsm", *words]

    def start_command(self, *words: str) -> Running:
        """Start `rubrica hsm …` in a process of its own."""
        return start_rubrica(
            *self._arguments(words),
            environment=self.environment,
            stderr=subprocess.STDOUT,
        )

    def start_apart(self, *words: str) -> Running:
        """The same, its errors apart."""
        return start_rubrica(*self._arguments(words), environment=self.environment)

    def _arguments(self, words: Sequence[str]) -> list[str]:
        return ["--settings", str(self.file), "hsm", *words]

    async def audited(self) -> list[EventKind]:
        """What its audit has, in order."""
        store = Database(open_engines(self.settings), SystemClock(), "test")
        async with store.read() as transaction:
            writers = await transaction.audit.writers()
            rows = [
                row for w in writers for row in await transaction.audit.of_writer(w)
            ]
        await store.close()
        return [row.event.event for row in sorted(rows, key=lambda row: row.at)]

    async def rubrica(self, *words: str, status: int = 0) -> str:
        """Run `rubrica hsm …`; what it says."""
        done = await asyncio.to_thread(
            run_rubrica, *self._arguments(words), environment=self.environment
        )
        said = f"{done.stdout}{done.stderr}"
        assert done.returncode == status, said
        return said

    def check(self) -> CheckReport:
        """`hsm check` in this process, of two kinds of keys, without its figures."""
        kinds = (KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256)
        return check(self.settings, algorithms=kinds, processes=())

    def command(self, *words: str) -> tuple[int, str]:
        """Run `rubrica hsm …`: its exit code and all it said."""
        with self.start_command(*words) as process:
            said, _ = process.communicate(timeout=300)
        return process.returncode, said


def earlier_trial(folder: Path) -> HsmInstallation:
    """A trial after `hsm init`, dated before the tests' own time."""
    made = HsmInstallation(folder)
    early = MovingClock()
    early.forward(-_DAY_S)
    provision(made.settings, early)
    return made


def read_user_key(settings: Settings) -> ResidentKey:
    """The key that `HsmInstallation.make_user_key` made."""
    return ResidentKey(KEY.cka_id, (settings.data_dir / _USER_KEY).read_bytes())


async def probed(session: HsmSession, rounds: int = 2) -> None:
    """Wait until all tokens of a session were looked after so often from now on."""
    thread = session._thread
    assert thread is not None
    look_after, looks = thread._look_after, 0

    def counted(one: TokenSessions) -> None:
        nonlocal looks
        try:
            look_after(one)
        finally:
            looks += 1

    thread._look_after = counted  # type: ignore[method-assign]  # to know when
    await until(lambda: looks >= rounds * len(thread._connections))


async def until(true: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 (another thread's own pace)
            await asyncio.sleep(0.02)


def folder_of_token(tokens: Path, label: str) -> Path:
    """SoftHSM's folder of a token, told by the label in its file."""
    (folder,) = [
        file.parent
        for file in tokens.glob("*/token.object")
        if label.ljust(32).encode() in file.read_bytes()
    ]
    return folder


def verify(public: bytes | rsa.RSAPublicKey, signature: bytes, digest: bytes) -> None:
    """Check a PKCS#1 v1.5 signature over a SHA-256 digest; raises when bad."""
    key = (
        serialization.load_der_public_key(public)
        if isinstance(public, bytes)
        else public
    )
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(signature, digest, padding.PKCS1v15(), utils.Prehashed(hashes.SHA256()))


async def lose_module(session: HsmSession) -> None:
    """Take the module away under an open session."""
    thread = session._thread
    assert thread is not None
    library = thread._connections[0].module.library
    assert library is not None
    await thread._in_thread(library.finalize)

"""Users' keys follow to another HSM, and those that cannot are named."""

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from pkcs11 import Attribute
from sqlalchemy import update

from appliance.domain.clock import SystemClock
from appliance.domain.hsm import KeyAlgorithm
from appliance.settings import Settings, load_settings
from appliance.storage import tables
from appliance.storage.engines import open_engines
from appliance.storage.migrate import migrate
from hsm_config.masters import Masters
from hsm_config.module import find_token, log_in, opened
from hsm_config.pairs import load_spki
from hsm_config.pin import read_pin
from hsm_config.provision import provision
from hsm_config.signatures import verify
from tests.parts.hsm import HsmInstallation
from tests.parts.wrapped import SCHEME, add_keys, read_keys
from worker.hsm_session import HsmSession

MAIN = "import sys; from appliance.commands import main; sys.exit(main())"
DIGEST = hashlib.sha256(b"a document").digest()


def successor_of(hsm: HsmInstallation) -> Path:
    """A settings file with other tokens: in life, another HSM's."""
    text = hsm.file.read_text("utf-8")
    for old, new in (
        ('label = "firma"', 'label = "nueva"'),
        ('label = "pki"', 'label = "nueva-pki"'),
        ("secrets/firma.pin", "secrets/nueva.pin"),
        ("secrets/pki.pin", "secrets/nueva-pki.pin"),
        ('data_dir = "data"', 'data_dir = "data-2"'),
    ):
        assert old in text
        text = text.replace(old, new)
    path = hsm.folder / "new.toml"
    path.write_text(text, "utf-8")
    return path


async def move(hsm: HsmInstallation, to: Path, status: int) -> str:
    """Run `rubrica hsm move`; what it says."""
    words = ["--settings", str(hsm.file), "hsm", "move", "--to", str(to)]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", MAIN, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    said = f"{done.stdout}{done.stderr}"
    assert done.returncode == status, said
    return said


def masters(settings: Settings, hsm: HsmInstallation) -> tuple[tuple[int, ...], bool]:
    """The versions on a token, and whether the newest could leave."""
    own = settings.hsm.firma
    with opened(settings.hsm, hsm.profile) as library:
        pin = read_pin(own.pin_file, settings.environment)
        found = Masters(log_in(find_token(library, own.label), pin))
        newest = found.get(found.newest())
        return found.versions(), newest[Attribute.EXTRACTABLE]


@pytest.fixture
async def hsm(tmp_path: Path) -> HsmInstallation:
    """An HSM with six users' keys."""
    made = HsmInstallation.ready(tmp_path)
    await migrate(made.settings)
    async with made.session() as session:
        keys = [await session.generate_wrapped(KeyAlgorithm.EC_P256) for _ in "abc"]
    await add_keys(made.settings, SystemClock(), keys, 6)
    return made


async def test_keys_follow_to_the_new_hsm_and_sign_there(hsm: HsmInstallation) -> None:
    """By a master key that both hold and neither gives away; again changes nothing."""
    to = successor_of(hsm)
    successor = load_settings(to)
    provision(successor)

    said = await move(hsm, to, 0)
    again = await move(hsm, to, 0)

    assert "6 keys were moved under master key 2" in said
    assert "0 keys in force cannot follow" in said
    assert "0 keys were moved under master key 2" in again
    assert masters(hsm.settings, hsm) == ((1, 2), False)
    assert masters(successor, hsm) == ((1, 2), False)
    async with HsmSession(successor.hsm, hsm.profile) as session:
        for key in await read_keys(hsm.settings):
            value = await session.sign(key, DIGEST, SCHEME)
            verify(load_spki(key.spki), value, DIGEST, SCHEME)


async def test_keys_that_cannot_follow_are_named(hsm: HsmInstallation) -> None:
    """A key wrapped by what the new HSM does not know, and one that is resident."""
    to = successor_of(hsm)
    provision(load_settings(to))
    engines = open_engines(hsm.settings)
    column = tables.credential.c
    async with engines.writer.begin() as connection:
        for number, values in (
            (1, {"method_k": "aes-key-wrap-pad-3394"}),
            (2, {"master": None, "blob_w": None, "method_w": None, "method_k": None}),
        ):
            await connection.execute(
                update(tables.credential)
                .where(column.spki_sha256 == f"{number:064}")
                .values(**values)
            )
    await engines.dispose()

    said = await move(hsm, to, 1)

    assert "5 keys were moved under master key 2" in said
    assert "2 keys in force cannot follow" in said
    assert said.count("stays behind: credential") == 2
    assert ", resident" in said


async def test_move_waits_for_an_hsm_that_is_prepared(hsm: HsmInstallation) -> None:
    """Nothing is made before."""
    to = successor_of(hsm)
    said = await move(hsm, to, 1)

    assert "token nueva is away" in said
    assert masters(hsm.settings, hsm) == ((1,), False)

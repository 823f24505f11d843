"""Users' keys follow to another HSM, and those that cannot are named."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from pkcs11 import Attribute
from sqlalchemy import update

import hsm_config.profile
from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.domain.keys.hsm_keys import KeyAlgorithm, SignatureScheme, WrapMethod
from appliance.settings import Settings, load_settings
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.module import find_token, log_in, opened
from hsm_config.pkcs11.pin import read_pin
from hsm_config.pkcs11.signatures import verify
from hsm_config.provisioning.init import provision
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.nss import NssTokens
from tests.support.hsm.wrapped_keys import SCHEME, add_keys, read_keys
from tests.support.processes.rubrica import run_rubrica
from worker.hsm.session import HsmSession

pytestmark = pytest.mark.full

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
    # In this process's environment, which has what the other module wants.
    done = await asyncio.to_thread(run_rubrica, *words)
    said = f"{done.stdout}{done.stderr}"
    assert done.returncode == status, said
    return said


def masters(settings: Settings, hsm: HsmInstallation) -> tuple[tuple[int, ...], bool]:
    """The versions on a token, and whether the newest could leave."""
    own = settings.hsm.firma
    with opened(settings.hsm, hsm.profile) as library:
        pin = read_pin(own.pin_file, settings.environment)
        found = MasterKeys(log_in(find_token(library, own.label), pin))
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


@pytest.fixture
def nss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HsmInstallation:
    """An HSM of another make, prepared."""
    folder = tmp_path / "nss"
    folder.mkdir()
    tokens = NssTokens(folder)
    for name, value in tokens.shim.environment.items():
        monkeypatch.setenv(name, value)
    made = tokens.installation(folder)
    provision(made.settings)
    return made


async def signed_by_all(hsm: HsmInstallation, record: Settings) -> set[WrapMethod]:
    """Each key on a record signs in an HSM; how their W are wrapped."""
    keys = await read_keys(record)
    async with hsm.session() as session:
        for key in keys:
            ec = key.algorithm.is_ec
            scheme = SignatureScheme.ECDSA if ec else SignatureScheme.RSA_PKCS1
            value = await session.sign(key, DIGEST, scheme)
            verify(load_spki(key.spki), value, DIGEST, scheme)
    return {key.method_w for key in keys}


async def test_keys_follow_to_another_make_and_back(
    tmp_path: Path, nss: HsmInstallation
) -> None:
    """Each by its own profile: mechanisms, formats, EC templates all differ."""
    folder = tmp_path / "soft"
    folder.mkdir()
    soft = HsmInstallation.ready(folder)
    record = soft.settings
    await migrate(record)
    kinds = (KeyAlgorithm.EC_P256, KeyAlgorithm.EC_P384, KeyAlgorithm.RSA_2048)
    async with soft.session() as session:
        keys = [await session.generate_wrapped(kind) for kind in kinds]
    await add_keys(record, SystemClock(), keys, 3)

    said = await move(soft, nss.file, 0)

    assert "3 keys were moved under master key 2" in said
    assert await signed_by_all(nss, record) == {WrapMethod.AES_KEY_WRAP_PAD_5649}
    assert await signed_by_all(soft, record) == {WrapMethod.AES_KEY_WRAP_PAD_5649}

    # The settings have the new HSM now; keys are made in it, then it is left too.
    text = nss.file.read_text("utf-8")
    place = f'data_dir = "{record.data_dir}"'
    nss.file.write_text(text.replace('data_dir = "data"', place), "utf-8")
    nss.settings = load_settings(nss.file)
    async with nss.session() as session:
        keys = [await session.generate_wrapped(kind) for kind in kinds]
    await add_keys(record, SystemClock(), keys, 3, first=3)
    assert keys[0].method_k is WrapMethod.AES_KEY_WRAP_PAD_3394

    said = await move(nss, soft.file, 0)

    assert "6 keys were moved under master key 2" in said
    assert "0 keys in force cannot follow" in said
    assert await signed_by_all(soft, record) == {WrapMethod.AES_KEY_WRAP}
    assert await signed_by_all(nss, record) == {WrapMethod.AES_KEY_WRAP}
    assert masters(soft.settings, soft) == ((1, 2), False)
    assert masters(nss.settings, nss) == ((1, 2), False)

    # What it keeps for itself is of its own format again.
    assert "moved under master key 3" in await soft.rubrica("rotate-master")
    assert await signed_by_all(soft, record) == {WrapMethod.AES_KEY_WRAP_PAD_5649}


async def test_makes_without_a_format_in_common_are_told(
    hsm: HsmInstallation, nss: HsmInstallation
) -> None:
    """Before a master key is made that would travel for nothing."""
    own = Path(hsm_config.profile.__file__).parent / "profiles" / "nss-softokn.toml"
    text = own.read_text("utf-8").split("[keys.opens]", maxsplit=1)
    poor = hsm.folder / "poor.toml"
    poor.write_text(text[0] + text[1][text[1].index("# A second pair") :], "utf-8")
    settings = nss.file.read_text("utf-8").replace('"nss-softokn"', f'"{poor}"')
    nss.file.write_text(settings, "utf-8")

    said = await move(hsm, nss.file, 1)

    assert "nss-softokn opens nothing that softhsm2 wraps" in said
    assert masters(hsm.settings, hsm) == ((1,), False)


async def test_every_member_of_the_new_hsm_gets_the_master_key(
    hsm: HsmInstallation,
) -> None:
    """None of them could get it later."""
    to = successor_of(hsm)
    replica = '[[hsm.replicas]]\nlabel = "nueva-2"\npin_file = "secrets/nueva-2.pin"\n'
    to.write_text(to.read_text("utf-8") + replica, "utf-8")
    successor = load_settings(to)
    provision(successor)

    await move(hsm, to, 0)

    only = successor.hsm.model_copy(
        update={"firma": successor.hsm.replicas[0], "replicas": ()}
    )
    second = successor.model_copy(update={"hsm": only})
    assert masters(second, hsm) == ((1, 2), False)
    assert provision(successor).made == []


async def test_keys_that_cannot_follow_are_named(hsm: HsmInstallation) -> None:
    """A key wrapped by what the new HSM does not know, and one that is resident."""
    to = successor_of(hsm)
    provision(load_settings(to))
    engines = open_engines(hsm.settings)
    column = tables.credential.c
    async with engines.writer.begin() as connection:
        for number, values in (
            (1, {"method_k": "aes-cbc-pad"}),
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

"""A member that comes later to the logical HSM, or in the place of a lost one."""

import asyncio
import hashlib
import shutil
from pathlib import Path

import pytest
from pkcs11 import Attribute

from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.vocab import EventKind
from appliance.settings import load_settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_pairs import load_spki
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.signatures import verify
from hsm_config.provisioning import signing_token
from hsm_config.provisioning.init import provision
from tests.support.hsm.hsm_installation import HsmInstallation, folder_of_token
from tests.support.hsm.nss import NssTokens
from tests.support.hsm.wrapped_keys import SCHEME, add_keys, read_keys

pytestmark = pytest.mark.full

DIGEST = hashlib.sha256(b"a document").digest()
MEMBER_EVENTS = (
    EventKind.MEMBER_JOINING,
    EventKind.MASTER_CREATED,
    EventKind.MASTER_APPLIED,
)


def held(hsm: HsmInstallation) -> list[tuple[int, ...]]:
    """The versions on each member, none of which may leave or be read."""
    with hsm.raw_members() as sessions:
        for session in sessions:
            keys = MasterKeys(session)
            for version in keys.versions():
                assert not keys.get(version)[Attribute.EXTRACTABLE]
                assert keys.get(version)[Attribute.SENSITIVE]
        return [MasterKeys(session).versions() for session in sessions]


def pinned(hsm: HsmInstallation) -> bool:
    """Whether the file pins the members' identities and no other."""
    with hsm.raw_members() as sessions:
        pems = [
            signing_token.pem_of(objects.public_key(one, objects.IDENTITY_KEY.cka_id))
            for one in sessions
        ]
    return signing_token.identity_path(hsm.settings).read_bytes() == b"".join(pems)


async def with_keys(hsm: HsmInstallation, count: int) -> HsmInstallation:
    """Users' keys on its record."""
    await migrate(hsm.settings)
    async with hsm.session() as session:
        keys = [await session.generate_wrapped(KeyAlgorithm.EC_P256) for _ in "ab"]
    await add_keys(hsm.settings, SystemClock(), keys, count)
    return hsm


async def signs(hsm: HsmInstallation, number: int) -> None:
    """Each of the keys signs in the worker of that number."""
    async with hsm.session(number=number) as session:
        for key in await read_keys(hsm.settings):
            value = await session.sign(key, DIGEST, SCHEME)
            verify(load_spki(key.spki), value, DIGEST, SCHEME)


async def test_member_joins_and_serves_alone(tmp_path: Path) -> None:
    """All keys come under a master key that both hold; again changes nothing."""
    await with_keys(HsmInstallation.ready(tmp_path), 6)
    both = HsmInstallation(tmp_path, members=2)

    said = await both.rubrica("join")
    again = await both.rubrica("join")

    assert "joining: firma-2" in said
    assert "made  master key 2 on token firma-2" in said
    assert "6 keys were moved under master key 2" in said
    assert "joining" not in again
    assert "0 keys were moved under master key 2" in again
    assert held(both) == [(1, 2), (2,)]
    assert pinned(both)
    with both.without("firma"):
        await signs(both, 2)
    told = [kind for kind in await both.audited() if kind in MEMBER_EVENTS]
    assert told == [*MEMBER_EVENTS, EventKind.MASTER_APPLIED]

    # From here on it is a member as any other.
    assert provision(both.settings).made == []
    report = both.check()
    assert report.good, report.table()
    assert "it joined after 1" in report.table()
    assert "destroyed on 1 token(s)" in await both.rubrica(
        "rotate-master", "--retire", "1"
    )
    assert held(both) == [(2,), (2,)]


async def test_lost_member_is_replaced_and_known_no_more(tmp_path: Path) -> None:
    """Here the first one: the other takes its name in the settings."""
    hsm = await with_keys(HsmInstallation.ready(tmp_path, members=2), 3)
    shutil.rmtree(folder_of_token(hsm.tokens, "firma"))
    text = hsm.file.read_text("utf-8").replace("firma-2", "firma-3")
    for line in ('label = "firma"', 'pin_file = "secrets/firma.pin"'):
        text = text.replace(line, line.replace("firma", "firma-2"))
    hsm.file.write_text(text, "utf-8")
    hsm.settings = load_settings(hsm.file)

    said = await hsm.rubrica("join")

    assert "joining: firma-3" in said
    assert "1 worker identities of other tokens are pinned no more" in said
    assert held(hsm) == [(1, 2), (2,)]
    assert pinned(hsm)
    with hsm.without("firma-2"):
        await signs(hsm, 1)


async def test_killed_join_is_gone_on_with(tmp_path: Path) -> None:
    """Before the master key travelled, and while keys moved: no further version."""
    alone = await with_keys(HsmInstallation.ready(tmp_path), 600)
    with alone.raw_members() as (session,):
        MasterKeys(session).make(2, to_travel=True)
    both = HsmInstallation(tmp_path, members=2)

    with both.start_apart("join") as process:
        assert process.stderr is not None
        await asyncio.to_thread(process.stderr.readline)
        process.kill()
    said = await both.rubrica("join")

    assert "going on with master key 2" in said
    assert held(both) == [(1, 2), (2,)]
    assert {key.master for key in await read_keys(both.settings)} == {2}


@pytest.mark.parametrize(
    ("version", "reason"),
    [(1, "holds another master key 1"), (5, "holds master key 5, which hsm.firma")],
)
async def test_another_installations_token_is_refused(
    tmp_path: Path, version: int, reason: str
) -> None:
    """Nothing is made that could leave."""
    await migrate(HsmInstallation.ready(tmp_path).settings)
    both = HsmInstallation(tmp_path, members=2)
    code, _ = both.command("init")
    assert code == 1  # its token is there now
    with both.raw_members() as (_, session):
        MasterKeys(session).make(version)

    said = await both.rubrica("join", status=1)

    assert f"token firma-2 {reason}" in said
    assert held(both) == [(1,), (version,)]


async def test_rotation_waits_for_who_has_not_joined(tmp_path: Path) -> None:
    """It names the command, and leaves no master key behind that could leave."""
    await migrate(HsmInstallation.ready(tmp_path).settings)
    both = HsmInstallation(tmp_path, members=2)
    both.command("init")

    said = await both.rubrica("rotate-master", status=1)

    assert "token firma-2 lacks master key 1" in said
    assert "`rubrica hsm join`" in said
    assert held(both) == [(1,), ()]
    # And it does not join either, where fronts would not know what it signs.
    signing_token.identity_path(both.settings).unlink()
    assert "run `rubrica hsm init`" in await both.rubrica("join", status=1)
    assert held(both) == [(1,), ()]


async def test_nobody_to_join_is_told(tmp_path: Path) -> None:
    """The settings name no other token."""
    hsm = HsmInstallation.ready(tmp_path)
    await migrate(hsm.settings)

    said = await hsm.rubrica("join", status=1)

    assert "hsm.replicas names no token that could join" in said
    assert held(hsm) == [(1,)]


async def test_member_joins_on_another_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NSS softokn, whose tokens the HSM's owner makes."""
    tokens = NssTokens(tmp_path, members=2)
    for name, value in tokens.shim.environment.items():
        monkeypatch.setenv(name, value)
    alone = tokens.installation(tmp_path)
    provision(alone.settings)
    await with_keys(alone, 3)
    both = tokens.installation(tmp_path, members=2)

    said = await both.rubrica("join")

    assert "3 keys were moved under master key 2" in said
    assert held(both) == [(1, 2), (2,)]
    assert pinned(both)
    await signs(both, 2)

"""Two tokens behind the logical HSM "firma": made alike, and each serves alone."""

import asyncio
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    load_der_public_key,
    load_pem_public_key,
)
from pkcs11 import Attribute

from appliance.domain.errors import HsmUnavailableError, KeyNotFoundError
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyReference,
    SignatureScheme,
    TokenRole,
    WrappedKey,
)
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import SettingsError, load_settings
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.provisioning import signing_token
from hsm_config.provisioning.init import provision
from tests.support.hsm.hsm_installation import HsmInstallation, until, verify
from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from worker.hsm.connection import HsmStatus
from worker.hsm.session import HsmSession

pytestmark = pytest.mark.full

DIGEST = hashlib.sha256(b"a document").digest()
UNKNOWN = KeyReference(TokenRole.FIRMA, b"\x03nobody's")
SESSION_HANDLE_INVALID, DEVICE_REMOVED = 0xB3, 0x32


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """An installation with two members after `hsm init`, to copy."""
    return HsmInstallation.ready(tmp_path_factory.mktemp("template"), members=2)


@pytest.fixture
def initialised_hsm(template: HsmInstallation, tmp_path: Path) -> HsmInstallation:
    """An installation of the test's own."""
    return template.copy(tmp_path)


@pytest.fixture
def shim(
    initialised_hsm: HsmInstallation, monkeypatch: pytest.MonkeyPatch
) -> Pkcs11Shim:
    """A shim around its module, for this process."""
    return initialised_hsm.shimmed(monkeypatch)


async def sign(session: HsmSession, key: WrappedKey) -> bytes:
    """A signature that verifies."""
    signature = await session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
    verify(key.spki, signature, DIGEST)
    return signature


def places(shim: Pkcs11Shim, key: WrappedKey) -> list[str]:
    """On which tokens a wrapped key signed; it has no id there."""
    del key
    return [one.token for one in shim.signed() if one.data.endswith(DIGEST)]


# Making them


def test_members_hold_one_master_key_and_it_stays(
    initialised_hsm: HsmInstallation,
) -> None:
    """Neither copy is extractable, readable, or good for anything else."""
    with initialised_hsm.raw_members() as sessions:
        for session in sessions:
            assert MasterKeys(session).versions() == (1,)
            master = MasterKeys(session).get(1)
            assert not master[Attribute.EXTRACTABLE]
            assert master[Attribute.SENSITIVE]
            assert not master[Attribute.DECRYPT]
            assert len(list(session.get_objects())) == 5  # two pairs besides


def test_every_identity_is_pinned(initialised_hsm: HsmInstallation) -> None:
    """Each member has its own; the file holds both."""
    pem = signing_token.identity_path(initialised_hsm.settings).read_bytes()
    with initialised_hsm.raw_members() as sessions:
        keys = [
            objects.public_key(session, objects.IDENTITY_KEY.cka_id)
            for session in sessions
        ]
    end = b"-----END PUBLIC KEY-----\n"
    pinned = [load_pem_public_key(part + end) for part in pem.split(end) if part]

    assert keys[0] != keys[1]
    assert pinned == keys


def test_second_init_changes_nothing(initialised_hsm: HsmInstallation) -> None:
    """All is looked at and found."""
    report = provision(initialised_hsm.settings)

    assert report.made == []
    assert "master key 1 on token firma-2" in report.kept


def test_killed_init_is_completed(tmp_path: Path) -> None:
    """The master key was made to travel, and no member has it yet."""
    alone = HsmInstallation.ready(tmp_path)
    with alone.raw(TokenRole.FIRMA) as session:
        MasterKeys(session).get(1).destroy()
        MasterKeys(session).make(1, to_travel=True)

    both = HsmInstallation(tmp_path, members=2)
    report = provision(both.settings)

    assert "master key 1 on token firma-2" in report.made
    with both.raw_members() as sessions:
        assert not any(
            MasterKeys(session).get(1)[Attribute.EXTRACTABLE] for session in sessions
        )


def test_sealed_master_key_is_not_copied(tmp_path: Path) -> None:
    """A member that comes later is refused, in words, and nothing is weakened."""
    HsmInstallation.ready(tmp_path)
    both = HsmInstallation(tmp_path, members=2)

    code, said = both.command("init")

    assert code == 1
    assert "token firma-2 lacks master key 1, which cannot leave" in said


def test_member_with_another_master_key_is_refused(
    initialised_hsm: HsmInstallation,
) -> None:
    """Of one version there is one key."""
    with initialised_hsm.raw_members() as (_, session):
        MasterKeys(session).get(1).destroy()
        MasterKeys(session).make(1)

    code, said = initialised_hsm.command("init")

    assert code == 1
    assert "token firma-2 holds another master key 1" in said


@pytest.mark.parametrize("line", ['label = "pki"', 'pin_file = "secrets/firma.pin"'])
def test_members_that_look_alike_are_refused(tmp_path: Path, line: str) -> None:
    """Label and PIN file are each token's own."""
    both = HsmInstallation(tmp_path, members=2)
    key = line.split(" = ", maxsplit=1)[0]
    lines = both.file.read_text().splitlines()
    at = max(n for n, text in enumerate(lines) if text.startswith(key))
    lines[at] = line
    both.file.write_text("\n".join(lines))

    code, said = both.command("init")

    assert code != 0
    assert "each token has a label and a PIN file of its own" in said


def test_resident_keys_and_members_do_not_go_together(tmp_path: Path) -> None:
    """A resident key is on one token, whatever the others hold."""
    both = HsmInstallation(tmp_path, members=2)
    text = both.file.read_text().replace("[hsm]\n", '[hsm]\nkey_mode = "resident"\n')
    both.file.write_text(text)

    with pytest.raises(SettingsError, match="a resident key is on one token alone"):
        load_settings(both.file)


@pytest.fixture
def apart(tmp_path: Path) -> HsmInstallation:
    """A second member in an HSM of its own: another module, another folder."""
    both = HsmInstallation(tmp_path, members=2)
    module = tmp_path / "another-softhsm.so"
    shutil.copy(both.profile.modules[0], module)
    more = f'module = "{module}"\nconfig = "{tmp_path}/hsm-2/softhsm2.conf"\n'
    both.file.write_text(both.file.read_text() + more)
    (tmp_path / "hsm-2").mkdir()
    both.settings = load_settings(both.file)
    return both


async def test_member_may_have_a_module_of_its_own(apart: HsmInstallation) -> None:
    """Made and used as any other; the loss of one does not touch the other."""
    code, said = apart.command("init")
    assert code == 0, said

    program = [sys.executable, "-c", _SIGN_ON_BOTH, str(apart.file)]
    done = await asyncio.to_thread(
        subprocess.run, program, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["firma:", "True"]


async def test_module_has_one_configuration(apart: HsmInstallation) -> None:
    """Two of them are a fault of the settings."""
    lines = apart.file.read_text().splitlines()
    apart.file.write_text(
        "\n".join(line for line in lines if "another-softhsm" not in line)
    )
    for role in ("firma", "pki", "firma-2"):
        file = apart.folder / "secrets" / f"{role}.pin"
        file.parent.mkdir(exist_ok=True)
        file.write_text("123456\n")
        file.chmod(0o600)
    apart.settings = load_settings(apart.file)

    with pytest.raises(SettingsError, match="has one configuration"):
        await apart.session().open()


_SIGN_ON_BOTH = """\
import asyncio, sys
from pathlib import Path
from appliance.domain.keys.hsm_keys import KeyAlgorithm, SignatureScheme
from appliance.settings import load_settings
from hsm_config.profile import load_profile
from worker.hsm.session import HsmSession

async def main():
    settings = load_settings(Path(sys.argv[1]))
    folder = settings.hsm.softhsm_conf.parent
    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        assert session.reason == "", session.reason
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        first = await session.sign(key, bytes(32), SignatureScheme.RSA_PKCS1)
        (folder / "tokens").rename(folder / "away")
        second = await session.sign(key, bytes(32), SignatureScheme.RSA_PKCS1)
        print(session.reason.split()[0], first == second)

asyncio.run(main())
"""


# Using them


async def test_wrapped_key_works_on_each_member(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """Worker n prefers member n; a key made on one signs on the other."""
    async with initialised_hsm.session(module=shim.path) as first:
        key = await first.generate_wrapped(KeyAlgorithm.RSA_2048)
        await sign(first, key)
    async with initialised_hsm.session(module=shim.path, number=2) as second:
        await sign(second, key)
    async with initialised_hsm.session(module=shim.path, number=3) as third:
        await sign(third, key)

    assert places(shim, key) == ["firma", "firma-2", "firma"]


async def test_vanished_member_is_replaced_inside_the_call(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """The other signs at once; taken back without a restart, the first does again."""
    async with initialised_hsm.session(module=shim.path, probe_s=0.2) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        await sign(session, key)
        with initialised_hsm.without("firma"):
            for _ in range(20):
                await sign(session, key)
            assert session.status is HsmStatus.READY
            assert "firma:" in session.reason
            assert set(places(shim, key)[1:]) == {"firma-2"}

        await until(lambda: session.reason == "")
        await sign(session, key)

        assert places(shim, key)[-1] == "firma"


async def test_statement_names_the_member_that_signed(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """Whichever it was: public key and signature belong together."""
    async with initialised_hsm.session(module=shim.path, probe_s=60) as session:
        first, _ = await session.identity_statement(b"a statement")
        with shim.fault("C_Sign", "code", DEVICE_REMOVED, at="firma", times=1):
            second, signature = await session.identity_statement(b"a statement")

    public = load_der_public_key(second)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(signature, b"a statement", ec.ECDSA(hashes.SHA256()))
    assert first != second


async def test_all_members_away_is_unavailable(
    initialised_hsm: HsmInstallation,
) -> None:
    """Only then; and each is named."""
    async with initialised_hsm.session(probe_s=0.2) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        initialised_hsm.tokens.rename(initialised_hsm.away)
        with pytest.raises(HsmUnavailableError):
            await session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
        with pytest.raises(HsmUnavailableError) as caught:
            await session.sign(key, DIGEST, SignatureScheme.RSA_PKCS1)
        initialised_hsm.away.rename(initialised_hsm.tokens)

        assert "firma: " in caught.value.reason
        assert "firma-2: " in caught.value.reason
        await until(lambda: session.reason == "")
        await sign(session, key)


async def test_device_that_is_gone_is_not_waited_for(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """CKR_DEVICE_REMOVED: no new start in the call, the other member signs."""
    async with initialised_hsm.session(module=shim.path, probe_s=60) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        starts = shim.count("C_Initialize")
        with shim.fault("C_UnwrapKey", "code", DEVICE_REMOVED, at="firma"):
            await sign(session, key)

        assert shim.count("C_Initialize") == starts
        assert places(shim, key) == ["firma-2"]


async def test_lost_result_is_signed_once_more_and_given_once(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """A signature that was made and lost does no harm: same digest, one answer."""
    async with initialised_hsm.session(module=shim.path) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        rule = ("C_Sign", "lose", DEVICE_REMOVED)
        with shim.fault(*rule, at="firma", times=1):  # type: ignore[arg-type]  # literals
            first = await sign(session, key)

        assert places(shim, key) == ["firma", "firma-2"]
        assert first == await sign(session, key)


async def test_key_that_no_member_has_is_not_found(
    initialised_hsm: HsmInstallation,
) -> None:
    """With all there it is believed; with one away it is not."""
    async with initialised_hsm.session() as session:
        with pytest.raises(KeyNotFoundError):
            await session.self_test(UNKNOWN)
        assert session.reason == ""

        with initialised_hsm.without("firma-2"), pytest.raises(HsmUnavailableError):
            await session.self_test(UNKNOWN)
        assert session.status is HsmStatus.READY


async def test_wrong_pin_of_one_member_latches_it_alone(
    initialised_hsm: HsmInstallation,
) -> None:
    """The other serves."""
    initialised_hsm.settings.hsm.replicas[0].pin_file.write_text("9182736455\n")
    async with initialised_hsm.session(probe_s=0.05, number=2) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        await sign(session, key)
        await until(lambda: "firma-2: token firma-2: PinIncorrect" in session.reason)

        assert session.status is HsmStatus.READY


async def test_member_at_which_a_call_hung_rests(
    initialised_hsm: HsmInstallation, shim: Pkcs11Shim
) -> None:
    """The start after the kill leaves it alone, where another serves."""
    watch = CallWatch()
    with watch.calling(0):
        watch.note_hang()
    async with initialised_hsm.session(
        module=shim.path, watch=watch, probe_s=0.1
    ) as session:
        key = await session.generate_wrapped(KeyAlgorithm.RSA_2048)
        await sign(session, key)
        await until(lambda: "a call hung 1 times in a row" in session.reason)

        assert places(shim, key) == ["firma-2"]


async def test_last_member_does_not_rest(initialised_hsm: HsmInstallation) -> None:
    """Where both hung, the one that hung first is tried."""
    watch = CallWatch()
    for number in (0, 1):
        with watch.calling(number):
            watch.note_hang()
    async with initialised_hsm.session(watch=watch) as session:
        assert session.status is HsmStatus.READY
        assert session.reason.startswith("firma-2:")
        assert watch.hangs(0)[0] == 0


async def test_pki_at_which_a_call_hung_rests(initialised_hsm: HsmInstallation) -> None:
    """It must not take the signers along."""
    watch = CallWatch()
    with watch.calling(2):
        watch.note_hang()
    async with initialised_hsm.session(watch=watch) as session:
        assert session.status is HsmStatus.READY
        assert session.status_of(TokenRole.PKI) is HsmStatus.UNAVAILABLE

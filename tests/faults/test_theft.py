"""The theft test: what was stolen signs nothing, and what stops it has a name.

Stolen are the database with its journal while ten signatures are under way, both
PINs and the contents of Redis; the thief may open the HSM and write to the
database. With the password (and the pepper) the loot signs: that is the control.
Without it every way ends at a layer that the audit, or the code, names.

Source: design §4 "Claim, exactly"; docs/keys.md.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import Executable, Row, insert, update

from appliance.database import tables
from appliance.domain.errors import ActivationInvalidError
from appliance.domain.keys.hsm_keys import SignatureScheme
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.people.identity import SigningSecret
from appliance.domain.signing.activation import ActivationFormat, key_statement
from appliance.domain.vocab import RequestState
from appliance.keys.credential_store import credential_of
from appliance.keys.key_encryption import open_outer, open_seal, signing_key
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, normalize
from appliance.secrets.key_files import read_key_ring
from hsm_config.profile import load_profile
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import Loot, read_rows, traces, write
from tests.support.faults.theft_scenario import (
    PEOPLE,
    Scene,
    changed_activation,
    changed_item,
    staged,
)
from tests.support.processes.event_loops import run_apart
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer
from worker.hsm.session import HsmSession

_A: Final = tables.activation
_ITEM: Final = tables.activation_item
_SEAL: Final = tables.activation_seal
_KEY: Final = tables.activation_key
_REQUEST: Final = tables.signature_request
_CLAIM_S: Final = 60
"""Long enough for the theft on any machine; one test waits for its end."""


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)],
)
def running(
    request: pytest.FixtureRequest, postgres_server: PostgresServer
) -> Iterator[Appliance]:
    """An appliance with one signing worker, whose calls do not wait."""
    signing = f"wait_s = 0.1\nworkers = 1\nclaim_s = {_CLAIM_S}"
    with short_folder() as folder:
        if request.param == "sqlite":
            with Appliance.made(folder, signing=signing) as appliance:
                yield appliance
            return
        name = postgres_server.create_database()
        url = postgres_server.url(name)
        with Appliance.made(folder, database=url, signing=signing) as appliance:
            yield appliance
        postgres_server.drop_database(name)


@pytest.fixture(scope="module")
def scene(running: Appliance) -> Iterator[Scene]:
    """What the thief left behind."""
    with staged(running) as scene:
        yield scene


def test_what_was_let_alone_was_signed(scene: Scene) -> None:
    """The control of all that follows: the worker went on and signed."""
    assert [scene.state(0), scene.state(1)] == [RequestState.SIGNED.value] * 2


@pytest.mark.parametrize(
    ("number", "layer"),
    [
        pytest.param(2, "seal", id="another document"),
        pytest.param(3, "seal", id="other parameters"),
        pytest.param(4, "seal", id="more factors than there were"),
        pytest.param(5, "seal", id="claimable for a day more"),
        pytest.param(6, "outer", id="a forged activation, sealed by the thief"),
        pytest.param(7, "seal", id="the seal of another activation"),
        pytest.param(8, "outer", id="another person's key under this certificate"),
        pytest.param(9, "hsm", id="another key's wrapping key"),
    ],
)
def test_an_altered_activation_signs_nothing(
    scene: Scene, number: int, layer: str
) -> None:
    """It goes back to its signer, and the audit says which layer held."""
    assert scene.state(number) == RequestState.PENDING.value
    detail = scene.returned(number)
    assert (detail["reason"], detail["layer"]) == ("ACTIVATION_INVALID", layer)


def _fence(scene: Scene, number: int) -> int:
    rows = read_rows(scene.appliance, _A)
    return int(next(r for r in rows if r.id == scene.activation(number).id).fence)


def _intents(scene: Scene, number: int) -> int:
    """How often the key was about to be used for a stolen activation."""
    identity = scene.activation(number).id
    rows = read_rows(scene.appliance, tables.intent)
    return sum(row.activation == identity for row in rows)


def test_no_key_was_about_to_be_used(scene: Scene) -> None:
    """No altered activation came as far as an intent, but for the HSM's own no."""
    assert [_intents(scene, number) for number in range(2, 9)] == [0] * 7
    assert _intents(scene, 9) <= 1


# -- what the thief publishes -----------------------------------------------------


def _published(
    host: str, epoch: int, public: bytes, identity: bytes, signature: bytes
) -> list[Executable]:
    """An activation key of the thief's, and a worker that seems alive."""
    now = datetime.now(UTC)
    beat = {"process": "0", "at": now, "hsm": "ready", "reason": ""}
    return [
        insert(_KEY).values(
            host=host,
            epoch=epoch,
            public=public,
            identity=hashlib.sha256(identity).hexdigest(),
            signature=signature,
            made=now,
        ),
        insert(tables.worker_status).values(slot=f"signing/{host}/1", **beat),
    ]


def _own_statement(statement: bytes) -> tuple[bytes, bytes]:
    """The thief's own key, and its signature."""
    own = ec.generate_private_key(ec.SECP256R1())
    spki = own.public_key().public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    return spki, own.sign(statement, ec.ECDSA(SHA256()))


async def _true_statement(
    appliance: Appliance, statement: bytes
) -> tuple[bytes, bytes]:
    """The worker identity's key, and its signature, with the stolen PIN."""
    async with _opened_hsm(appliance) as session:
        return await session.identity_statement(statement)


def _opened_hsm(appliance: Appliance) -> HsmSession:
    hsm = appliance.settings.hsm
    return HsmSession(hsm, load_profile(hsm.profile))


@pytest.mark.parametrize("kind", ["own worker key", "old epoch"])
def test_no_front_seals_to_a_key_of_the_thief(scene: Scene, kind: str) -> None:
    """Layer pinned identity: not the thief's. Layer epoch: not an old one's."""
    appliance, host = scene.appliance, kind.replace(" ", "-")
    public = X25519PrivateKey.generate().public_key().public_bytes_raw()
    epoch = ActivationFormat.WHOLE.epoch_at(datetime.now(UTC)) - (
        6 if kind == "old epoch" else 0
    )
    statement = key_statement(appliance.settings.installation, host, epoch, public)
    if kind == "old epoch":
        identity, signature = run_apart(_true_statement(appliance, statement))
    else:
        identity, signature = _own_statement(statement)
    write(appliance, *_published(host, epoch, public, identity, signature))
    person = scene.people[0]
    request = scene.appliance.new_request(person, pdfs.one_page())
    with held(scene.appliance):
        with scene.appliance.client(person) as client:
            assert sign(client, person, request).status_code == 202
        seals = read_rows(scene.appliance, _SEAL)
    activation = next(
        row.activation
        for row in read_rows(scene.appliance, _ITEM)
        if row.request == request
    )
    hosts = {row.host for row in seals if row.activation == activation}

    assert len(hosts) == 1
    assert host not in hosts


# -- what the thief computes ---------------------------------------------------


def _secret(row: Row[Any]) -> SigningSecret:
    return SigningSecret(row.salt, row.argon2, row.pepper_version, row.verifier_sha256)


async def _unlock(scene: Scene, number: int, password: str, pepper: KeyRing) -> bytes:
    """The unlock key that follows from a password and a pepper."""
    person = scene.people[number].id
    row = next(r for r in scene.loot.of(tables.signing_secret) if r.person == person)
    credential = scene.credential(number).id
    passwords = SigningPasswords(pepper, HashSlots())
    derived = await passwords.check(normalize(password), _secret(row), [credential])
    return derived.unlock.get(credential, secrets.token_bytes(32))


async def _sign_with(scene: Scene, number: int, unlock: bytes, digest: bytes) -> bytes:
    """Sign a digest of the thief's choice, with the loot and an unlock key."""
    credential = credential_of(scene.credential(number))
    installation = scene.appliance.settings.installation
    inner = open_outer(unlock, credential.outer, credential.aad(installation))
    async with _opened_hsm(scene.appliance) as session:
        return await session.sign(
            signing_key(credential, inner), digest, SignatureScheme.RSA_PKCS1
        )


def _pepper(scene: Scene) -> KeyRing:
    return read_key_ring(scene.appliance.settings.secrets.pepper_file)


def test_the_password_signs_from_the_loot(scene: Scene) -> None:
    """Positive control: nothing but the password and the pepper is missing."""
    digest = hashlib.sha256(b"of the thief's choice").digest()
    password = scene.people[4].signing_password
    unlock = run_apart(_unlock(scene, 4, password, _pepper(scene)))
    signature = run_apart(_sign_with(scene, 4, unlock, digest))

    certificate = x509.load_der_x509_certificate(scene.credential(4).certificate)
    public = certificate.public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    public.verify(signature, digest, padding.PKCS1v15(), utils.Prehashed(SHA256()))


def test_the_host_opens_the_seals_of_the_loot(scene: Scene) -> None:
    """The second control: seals are real, and open with the host's private half."""
    folder = scene.appliance.settings.activation_dir
    seal = scene.seal(4)
    private = (folder / f"{seal.epoch}.key").read_bytes()
    unlock = run_apart(
        _unlock(scene, 4, scene.people[4].signing_password, _pepper(scene))
    )

    assert open_seal(private, seal.sealed, scene.info(4)) == unlock


def test_the_password_without_the_pepper_signs_nothing(scene: Scene) -> None:
    """Layer pepper: whoever guesses passwords needs it first."""
    password = scene.people[4].signing_password
    unlock = run_apart(_unlock(scene, 4, password, KeyRing.of(secrets.token_bytes(32))))

    with pytest.raises(ActivationInvalidError) as refusal:
        run_apart(_sign_with(scene, 4, unlock, bytes(32)))
    assert refusal.value.layer == "outer"


def test_no_stored_value_is_or_makes_an_unlock_key(scene: Scene) -> None:
    """HKDF of every stored column, and every column as it is: layer outer."""
    candidates = scene.loot.values()
    assert len(candidates) > 500
    for number in range(PEOPLE):
        credential = credential_of(scene.credential(number))
        aad = credential.aad(scene.appliance.settings.installation)
        info = b"rubrica/unlock/1" + credential.id.encode()
        nonce, rest = credential.outer[:12], credential.outer[12:]
        for value in candidates:
            for key in _keys(value, info):
                with suppress(InvalidTag):
                    AESGCM(key).decrypt(nonce, rest, aad)
                    pytest.fail(f"a stored value opens credential {credential.id}")


def _keys(value: bytes, info: bytes) -> list[bytes]:
    """What a stored value gives as a key: itself, its hash, what HKDF makes of it."""
    derived = HKDF(SHA256(), 32, salt=None, info=info).derive(value)
    return [
        *([value] if len(value) == 32 else []),
        hashlib.sha256(value).digest(),
        derived,
    ]


# -- what lies about ---------------------------------------------------------------


def test_no_secret_in_what_was_stolen(scene: Scene) -> None:
    """Passwords, seeds, tokens and PINs: not plain, not in hex, not in Base64."""
    known = scene.secrets | _pins(scene.appliance)

    assert len(scene.loot.content) > 1000
    assert traces(known, scene.loot.content) == []
    assert traces(known, _flat(scene.loot)) == []


def _flat(loot: Loot) -> bytes:
    """All rows as text: what a dump of PostgreSQL shows."""
    return b"\n".join(
        value if isinstance(value, bytes) else str(value).encode()
        for rows in loot.rows.values()
        for row in rows
        for value in row
    )


def _pins(appliance: Appliance) -> set[str]:
    folder = appliance.folder / "secrets"
    files = [path for path in folder.iterdir() if path.is_file()]
    return {path.read_text().strip() for path in files}


def test_no_secret_in_any_file_of_the_installation(scene: Scene) -> None:
    """Logs, documents, sockets' folder, tokens: but for the secret files themselves."""
    appliance = scene.appliance
    known = scene.secrets | _pins(appliance)
    folders = [appliance.folder, appliance.settings.activation_dir]
    for path in (file for folder in folders for file in folder.rglob("*")):
        if path.is_file() and path.parent.name != "secrets":
            assert traces(known, path.read_bytes()) == [], path


def test_no_secret_in_a_journal_of_the_server(
    scene: Scene, postgres_server: PostgresServer
) -> None:
    """PostgreSQL's own files, its write-ahead log among them."""
    if scene.appliance.settings.database.url == "sqlite":
        pytest.skip("the SQLite journal is part of the loot")
    known = scene.secrets | _pins(scene.appliance)
    data = Path(postgres_server.execute("SHOW data_directory").strip())
    files = [path for path in (data / "pg_wal").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert traces(known, path.read_bytes()) == [], path.name


def test_no_secret_on_a_command_line_or_in_an_environment(scene: Scene) -> None:
    """Of any process of the appliance."""
    known = scene.secrets | _pins(scene.appliance)
    main = psutil.Process(scene.appliance.pid)
    for process in [main, *main.children(recursive=True)]:
        told = "\0".join(
            [*process.cmdline(), *map("=".join, process.environ().items())]
        )
        assert traces(known, told.encode()) == []


def test_a_replayed_activation_is_claimed_by_nobody(scene: Scene) -> None:
    """All rows of a signature that was made, put back after their time: layer time.

    With their time moved, they are bound to another one: layer seal (see above).
    One of the last tests, so that nobody waits for that time.
    """
    old = scene.activation(1)
    until(lambda: datetime.now(UTC) > old.claim_by)
    now = RequestState.IN_PROGRESS.value
    write(
        scene.appliance,
        changed_activation(
            scene, 1, state="waiting", lease_owner=None, lease_until=None
        ),
        changed_item(scene, 1, state="waiting", signature=None),
        insert(_SEAL).values(dict(scene.seal(1)._mapping)),
        update(_REQUEST).where(_REQUEST.c.id == scene.requests[1]).values(state=now),
    )
    fence = _fence(scene, 1)
    until(lambda: scene.state(1) != RequestState.IN_PROGRESS.value)

    assert scene.state(1) == RequestState.PENDING.value
    assert scene.returned(1)["reason"] == "ACTIVATION_EXPIRED"
    assert _intents(scene, 1) == 1
    assert _fence(scene, 1) == fence + 1  # by the sweep that ended it


def test_people_sign_on_after_the_theft(scene: Scene) -> None:
    """What was given back is signed by its owner at the next call."""
    for number in (3, 6, 8, 9):
        person, request = scene.people[number], scene.requests[number]
        with scene.appliance.client(person) as client:
            until(partial(_signed, client, person, request))


def _signed(client: httpx.Client, person: TestPerson, request: int) -> bool:
    return sign(client, person, request).status_code == 200

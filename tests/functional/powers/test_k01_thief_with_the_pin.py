"""K1, on a running appliance: database and signing PIN make no signing host.

The thief has the worker identity sign for a host of theirs, writes it into the
database, and waits for somebody to sign. Until now the victim's unlock key was sealed
to that host.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from sqlalchemy import insert

from appliance.database import tables
from appliance.domain.keys.host_statements import HostStatement
from appliance.domain.signing.activation import ActivationFormat, key_statement
from appliance.secrets.admitted_hosts import listed
from appliance.secrets.own_host import own_name
from hsm_config.profile import load_profile
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import held, until
from tests.support.faults.theft import read_rows, write
from tests.support.processes.event_loops import run_apart
from tests.support.processes.plain_http import answers
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer
from worker.hsm.session import HsmSession

FIRST, WHOLE = ActivationFormat.FIRST, ActivationFormat.WHOLE
THIEF = "aa-thief"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def running(
    request: pytest.FixtureRequest, postgres_server: PostgresServer
) -> Iterator[Appliance]:
    """An appliance with one signing worker, whose calls do not wait."""
    signing = "wait_s = 0.1\nworkers = 1"
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


@dataclass(frozen=True, slots=True)
class Forged:
    """A row of `activation_key`."""

    host: str
    epoch: int
    public: bytes
    identity: str
    signature: bytes
    host_signature: bytes | None


def forge(
    appliance: Appliance,
    host: str,
    kind: ActivationFormat,
    own: Ed25519PrivateKey | None = None,
) -> Forged:
    """Make a key of a host, with the stolen PIN and an own host key."""
    installation = appliance.settings.installation
    epoch = kind.epoch_at(datetime.now(UTC))
    public = X25519PrivateKey.generate().public_key().public_bytes_raw()
    own = own or Ed25519PrivateKey.generate()

    async def by_identity(statement: bytes) -> tuple[bytes, bytes]:
        hsm = appliance.settings.hsm
        async with HsmSession(hsm, load_profile(hsm.profile)) as session:
            return await session.identity_statement(statement)

    if kind is FIRST:
        statement = key_statement(installation, host, epoch, public)
        spki, signature = run_apart(by_identity(statement))
        identity = hashlib.sha256(spki).hexdigest()
        return Forged(host, epoch, public, identity, signature, None)
    mine = own.public_key().public_bytes_raw()
    unsigned = HostStatement(installation, host, mine, epoch, public, "")
    spki, signature = run_apart(by_identity(unsigned.by_identity()))
    identity = hashlib.sha256(spki).hexdigest()
    whole = HostStatement(installation, host, mine, epoch, public, identity)
    by_host = own.sign(whole.by_host())
    return Forged(host, epoch, public, identity, signature, by_host)


def plant(appliance: Appliance, forged: Forged) -> None:
    """Write the key, and a worker of its host that seems alive for long."""
    now = datetime.now(UTC)
    values = {
        "host": forged.host,
        "epoch": forged.epoch,
        "public": forged.public,
        "identity": forged.identity,
        "signature": forged.signature,
        "host_signature": forged.host_signature,
        "made": now,
    }
    write(
        appliance,
        insert(tables.activation_key).values(values),
        insert(tables.worker_status).values(
            slot=f"signing/{forged.host}/1",
            process="0",
            at=now,
            hsm="ready",
            reason="",
            activation_format=WHOLE.value,
        ),
    )


def hosts_sealed_to(appliance: Appliance, person: TestPerson) -> set[str]:
    """Have a person sign, and tell which hosts their unlock key was sealed to."""
    request = appliance.new_request(person, pdfs.one_page())
    with held(appliance):
        with appliance.client(person) as client:
            answer = sign(client, person, request)
            assert answer.status_code in {200, 202}, answer.text
        seals = read_rows(appliance, tables.activation_seal)
        items = read_rows(appliance, tables.activation_item)
    (activation,) = {row.activation for row in items if row.request == request}
    return {row.host for row in seals if row.activation == activation}


@pytest.mark.parametrize("kind", [WHOLE, FIRST], ids=["new", "old"])
def test_victims_unlock_key_is_sealed_to_no_thief(
    running: Appliance, kind: ActivationFormat
) -> None:
    """In the thief's own name; the key of the release before as well."""
    person = running.new_person()
    plant(running, forge(running, f"{THIEF}-{kind}", kind))

    assert hosts_sealed_to(running, person) == {own_name()}


def test_host_that_is_no_longer_admitted_signs_nothing(running: Appliance) -> None:
    """Readiness says so, with a word that doctor and console have a remedy for."""
    appliance = running
    hosts = listed(appliance.settings.signing_hosts_file)
    name = own_name()
    assert name in hosts
    done = appliance.rubrica("hsm", "admit", "--remove", name)
    assert done.returncode == 0, done.stderr
    until(lambda: not answers(f"{appliance.base_url}/readyz"))
    with appliance.client() as client:
        told = client.get("/readyz").json()["checks"]["hsm"]

    shown = appliance.rubrica("hsm", "host-key").stdout.splitlines()[-1].split()
    done = appliance.rubrica(*shown[1:])

    assert told == "HOST_NOT_ADMITTED"
    assert done.returncode == 0, done.stderr
    until(lambda: answers(f"{appliance.base_url}/readyz"))
    assert listed(appliance.settings.signing_hosts_file) == hosts

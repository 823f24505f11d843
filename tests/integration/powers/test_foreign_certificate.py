"""Whoever can write to the database has no other key certified by a renewal.

The CA certifies again what it certified before, for the same person, and nothing that
a row says (finding: a certificate over a foreign key, and a task to renew it).
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from sqlalchemy import update

from appliance.database import tables
from appliance.domain.errors import ApplianceError, CredentialRefusedError, ErrorCode
from appliance.domain.ids import CredentialId
from appliance.domain.pki.certificates import POLICIES
from appliance.domain.vocab import (
    EventKind,
    StatementFault,
    TaskKind,
    TaskState,
    VouchedBy,
)
from appliance.keys.credential_store import CredentialStore, join
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from tests.support.hsm.hsm_installation import HsmInstallation, earlier_trial
from tests.support.installation.record import CoreFixture
from tests.support.pki.certificate_worker import (
    SLOT,
    CertificateWorker,
    open_certificate_worker,
    spki_of,
)
from tests.support.pki.outside_ca import (
    Form,
    OutsideCa,
    der,
    ec_key,
    make,
    named,
    usage,
)
from tests.support.pki.outside_ca import spki_of as public_of
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

F = StatementFault
CUIL, OTHERS = "20267565393", "20055361682"
FOREIGN = ec_key()


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """A trial for all tests here."""
    return earlier_trial(tmp_path_factory.mktemp("trial"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


@pytest.fixture
async def worker(
    installation: HsmInstallation, core: CoreFixture, sandbox: SandboxServer
) -> AsyncIterator[CertificateWorker]:
    """A worker with its HSM open, over a record of each kind."""
    async with open_certificate_worker(installation, core, sandbox) as opened:
        yield opened


async def alter(worker: CertificateWorker, credential: str, **values: Any) -> None:
    """Write to a credential's row."""
    async with worker.core.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.credential)
            .where(tables.credential.c.id == credential)
            .values(values)
        )


async def renewed(
    worker: CertificateWorker, credential: CredentialId
) -> ApplianceError:
    """Ask for a renewal as anybody who writes to `hsm_task` does; how it is refused.

    No certificate comes of it.
    """
    before = await certificates(worker, credential)
    await Certificates(worker.core.store, worker.core.clock).renew(credential, "x")
    with pytest.raises(ApplianceError) as caught:
        await worker.do(TaskKind.RENEW)
    assert await certificates(worker, credential) == before
    return caught.value


async def certificates(
    worker: CertificateWorker, credential: CredentialId
) -> list[bytes]:
    """Every certificate that the CA issued for a credential."""
    async with worker.core.store.read() as transaction:
        found = await CertificateStore(transaction).of_credential(credential)
    return [each.der for each in found]


async def record_foreign(
    worker: CertificateWorker, credential: str, **values: Any
) -> None:
    """Write a certificate to the row and to the CA's own list."""
    await alter(worker, credential, **values)
    async with worker.core.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.certificate)
            .where(tables.certificate.c.credential == credential)
            .values(der=values["certificate"])
        )


def forged(worker: CertificateWorker, cuil: str = CUIL) -> tuple[bytes, bytes]:
    """A certificate over a foreign key, by a CA with our CA's name; and that CA's."""
    ca = worker.authority.certificate
    start, end = ca.not_valid_before_utc, ca.not_valid_after_utc
    forger = ec_key()
    ca_form = Form(
        ca.subject, start, end, ca=True, usage=usage("key_cert_sign"), purposes=None
    )
    fake = make(ca_form, public_of(forger), ca.subject, forger)
    form = Form(named("Ana Pérez", f"CUIL {cuil}"), start, end)
    return der(make(form, public_of(FOREIGN), fake.subject, forger)), der(fake)


@pytest.mark.parametrize("with_key", [False, True])
@pytest.mark.parametrize("with_chain", [False, True])
async def test_foreign_key_is_not_certified(
    worker: CertificateWorker, with_key: bool, with_chain: bool
) -> None:
    """Neither by a certificate in the row alone nor with its key and its chain."""
    _, credential, _ = await worker.certified()
    certificate, ca = forged(worker)
    values: dict[str, Any] = {"certificate": certificate}
    if with_key:
        values["spki"] = public_of(FOREIGN)
    if with_chain:
        values["chain"] = join((ca,))
    await record_foreign(worker, credential, **values)

    refused = await renewed(worker, credential)

    assert isinstance(refused, CredentialRefusedError)
    assert refused.code is ErrorCode.CERTIFICATE_NOT_USABLE
    assert refused.fault is (F.ISSUER if with_key else F.KEY)


async def test_key_of_another_person_is_not_certified(
    worker: CertificateWorker,
) -> None:
    """By a certificate that is good, and theirs."""
    _, credential, _ = await worker.certified()
    other, theirs, _ = await worker.certified("Eva Gómez", OTHERS)
    async with worker.core.store.read() as transaction:
        held = await CredentialStore(transaction).active(other)
    assert held is not None
    certified = {"certificate": held.certificate, "chain": join(held.chain)}

    await record_foreign(worker, credential, **certified)
    refused = await renewed(worker, credential)
    await record_foreign(worker, credential, **certified, spki=held.spki)
    again = await renewed(worker, credential)

    assert isinstance(refused, CredentialRefusedError)
    assert isinstance(again, CredentialRefusedError)
    assert (refused.fault, again.fault) == (F.KEY, F.CUIL)
    assert len(await certificates(worker, theirs)) == 1


@pytest.mark.parametrize(
    ("values", "fault"),
    [({"name": "Eva Gómez"}, F.NAME), ({"cuil": OTHERS}, F.CUIL)],
    ids=["name", "number"],
)
async def test_renamed_person_is_not_certified(
    worker: CertificateWorker, values: dict[str, str], fault: StatementFault
) -> None:
    """The CA certifies nobody else: a new name needs a new key."""
    person, credential, _ = await worker.certified()
    async with worker.core.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.person).where(tables.person.c.id == person).values(values)
        )

    refused = await renewed(worker, credential)

    assert isinstance(refused, CredentialRefusedError)
    assert refused.fault is fault


async def test_way_of_vouching_is_the_certificates(worker: CertificateWorker) -> None:
    """A row that says more does not make the next certificate say more."""
    person, credential, _ = await worker.certified()
    await alter(worker, credential, vouched_by=VouchedBy.OFFICER.value)

    await Certificates(worker.core.store, worker.core.clock).renew(credential, "x")
    await worker.do(TaskKind.RENEW)

    async with worker.core.store.read() as transaction:
        held = await CredentialStore(transaction).active(person)
    assert held is not None
    made = x509.load_der_x509_certificate(held.certificate)
    (policy,) = made.extensions.get_extension_for_class(x509.CertificatePolicies).value
    assert policy.policy_identifier.dotted_string == POLICIES[VouchedBy.DEMO]
    assert spki_of(held.certificate) == held.spki


async def test_certificate_of_an_outside_ca_is_not_renewed_here(
    worker: CertificateWorker,
) -> None:
    """Whatever the CA's own list says of it, and though its root is trusted."""
    _, credential, _ = await worker.certified()
    outside = OutsideCa(worker.core.now)
    async with worker.core.store.read() as transaction:
        held = await CredentialStore(transaction).get(credential)
    assert held is not None
    made = outside.certify(held.spki, CUIL)
    chain = join((der(outside.issuing),))
    await record_foreign(worker, credential, certificate=der(made), chain=chain)
    pins = worker.settings.outside_anchors_file
    pins.write_bytes(outside.root.public_bytes(Encoding.PEM))
    try:
        refused = await renewed(worker, credential)
    finally:
        pins.unlink()

    assert refused.code is ErrorCode.CERTIFICATE_ISSUED_OUTSIDE


async def test_refused_renewal_says_which_check_failed(
    worker: CertificateWorker,
) -> None:
    """In the audit, beside the code that the console shows."""
    _, credential, _ = await worker.certified()
    certificate, ca = forged(worker)
    await record_foreign(worker, credential, certificate=certificate, chain=join((ca,)))
    await Certificates(worker.core.store, worker.core.clock).renew(credential, "x")
    claim = await worker.claim()
    tasks = HsmTasks(worker.core.store, worker.core.clock, SLOT, "p")
    with pytest.raises(CredentialRefusedError) as caught:
        await worker.tasks.run(claim)

    await tasks.failed(claim, caught.value.code.value, caught.value.layer)

    async with worker.core.store.read() as transaction:
        status = await HsmTaskStore(transaction).status(claim.id)
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    assert status is not None
    assert (status.state, status.reason) == (TaskState.FAILED, "CERTIFICATE_NOT_USABLE")
    (failed,) = [r.event for r in rows if r.event.event is EventKind.TASK_FAILED]
    assert failed.detail["reason"] == "CERTIFICATE_NOT_USABLE"
    assert failed.detail["layer"] == F.KEY.value

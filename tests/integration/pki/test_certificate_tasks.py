"""Publishing, revoking and renewing with a real SoftHSM."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.ocsp import OCSPCertStatus
from sqlalchemy import insert

from appliance.database import tables
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.certificates import POLICIES
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    RevocationReason,
    TaskKind,
    VouchedBy,
)
from appliance.keys.credential_store import CredentialStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from appliance.pki.revocation import Revocations
from tests.support.hsm.hsm_installation import HsmInstallation, earlier_trial
from tests.support.installation.record import CoreFixture
from tests.support.pki.certificate_worker import (
    CertificateWorker,
    open_certificate_worker,
)
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

DAY_S = 86_400


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
async def certificate_worker(
    installation: HsmInstallation, sqlite_core: CoreFixture, sandbox: SandboxServer
) -> AsyncIterator[CertificateWorker]:
    """A worker with its HSM open."""
    async with open_certificate_worker(installation, sqlite_core, sandbox) as opened:
        yield opened


async def test_what_is_due_is_signed(certificate_worker: CertificateWorker) -> None:
    """Both CRLs, an answer, a responder's certificate; again only what is due."""
    _, _, serial = await certificate_worker.certified()

    await certificate_worker.publish()

    for at, issuer in enumerate(
        (certificate_worker.authority.certificate, certificate_worker.root)
    ):
        crl = await certificate_worker.crl(at)
        key = issuer.public_key()
        assert isinstance(key, rsa.RSAPublicKey)
        assert crl.is_signature_valid(key)
        assert list(crl) == []
        number = crl.extensions.get_extension_for_class(x509.CRLNumber).value
        assert number.crl_number == 1
    told = await certificate_worker.answer(serial)
    assert told.certificate_status is OCSPCertStatus.GOOD
    assert told.serial_number == serial
    assert told.this_update_utc == certificate_worker.core.now
    assert told.next_update_utc == certificate_worker.core.now + timedelta(days=1)
    certificate_worker.core.clock.forward(DAY_S / 2)
    await certificate_worker.publish()
    assert (
        await certificate_worker.answer(serial)
    ).this_update_utc == certificate_worker.core.now
    assert (
        await certificate_worker.crl()
    ).last_update_utc == certificate_worker.core.now - timedelta(hours=12)


async def test_root_revokes_nothing_for_a_row(
    certificate_worker: CertificateWorker,
) -> None:
    """Not its CA either, whose loss is that of all certificates: a ceremony does."""
    ca = certificate_worker.authority.certificate
    root = certificate_worker.tasks.publisher.issuers[1]
    now = certificate_worker.core.now
    async with certificate_worker.core.store.write() as transaction:
        await transaction.connection.execute(
            insert(tables.certificate).values(
                serial=f"{ca.serial_number:x}",
                kind=CertificateKind.OCSP.value,
                issuer=root,
                der=b"-",
                not_before=now,
                not_after=now,
                issued=now,
                state=CertificateState.REVOKED.value,
                revoked_at=now,
                reason=RevocationReason.KEY_COMPROMISE.value,
            )
        )

    await certificate_worker.publish()

    assert list(await certificate_worker.crl(1)) == []


async def test_responder_of_a_row_that_the_ca_did_not_sign_answers_nothing(
    certificate_worker: CertificateWorker,
) -> None:
    """It ends later than all others, and is no certificate."""
    _, _, serial = await certificate_worker.certified()
    now = certificate_worker.core.now
    async with certificate_worker.core.store.write() as transaction:
        await transaction.connection.execute(
            insert(tables.certificate).values(
                serial="7",
                kind=CertificateKind.OCSP.value,
                issuer=certificate_worker.tasks.publisher.issuers[0],
                der=b"-",
                not_before=now,
                not_after=now + timedelta(days=9999),
                issued=now,
                state=CertificateState.VALID.value,
            )
        )

    await certificate_worker.publish()

    told = await certificate_worker.answer(serial)
    assert told.certificate_status is OCSPCertStatus.GOOD


@pytest.mark.parametrize("reason", list(RevocationReason))
async def test_reason_is_told_by_crl_and_ocsp(
    certificate_worker: CertificateWorker, reason: RevocationReason
) -> None:
    """Each in its own words; `unspecified` by saying nothing."""
    _, _, serial = await certificate_worker.certified()
    asked_at = certificate_worker.core.now

    await Revocations(certificate_worker.core.store, certificate_worker.core.clock).ask(
        f"{serial:x}", reason, "operator"
    )
    certificate_worker.core.clock.forward(60)
    await certificate_worker.do(TaskKind.REVOKE)

    entry = (await certificate_worker.crl()).get_revoked_certificate_by_serial_number(
        serial
    )
    told = await certificate_worker.answer(serial)
    assert entry is not None
    assert entry.revocation_date_utc == told.revocation_time_utc == asked_at
    assert told.certificate_status is OCSPCertStatus.REVOKED
    if reason is RevocationReason.UNSPECIFIED:
        assert (len(entry.extensions), told.revocation_reason) == (0, None)
    else:
        listed = entry.extensions.get_extension_for_class(x509.CRLReason).value.reason
        assert listed.value == reason.value
        assert told.revocation_reason is listed


async def test_revoked_entry_stays_past_the_certificates_end(
    certificate_worker: CertificateWorker,
) -> None:
    """And the list says from when on that holds."""
    _, _, serial = await certificate_worker.certified()
    await Revocations(certificate_worker.core.store, certificate_worker.core.clock).ask(
        f"{serial:x}", RevocationReason.KEY_COMPROMISE, "operator"
    )
    await certificate_worker.do(TaskKind.REVOKE)

    certificate_worker.core.clock.forward(3 * 365 * DAY_S)
    await certificate_worker.publish()

    crl = await certificate_worker.crl()
    assert crl.get_revoked_certificate_by_serial_number(serial) is not None
    oid = x509.ObjectIdentifier("2.5.29.60")
    assert crl.extensions.get_extension_for_oid(oid).critical is False


async def test_responder_is_certified_anew_before_its_end(
    certificate_worker: CertificateWorker,
) -> None:
    """When 30 of its 90 days are left; not earlier."""
    _, _, serial = await certificate_worker.certified()
    seen = []
    for _ in range(3):
        await certificate_worker.publish()
        (responder,) = (await certificate_worker.answer(serial)).certificates
        seen.append(responder.serial_number)
        certificate_worker.core.clock.forward(30.5 * DAY_S)

    assert seen[0] == seen[1] != seen[2]


async def test_renewal_certifies_the_same_key(
    certificate_worker: CertificateWorker,
) -> None:
    """Vouched for as before, for two years from now; the old one stays good."""
    person, credential, serial = await certificate_worker.certified()
    certificate_worker.core.clock.forward(700 * DAY_S)
    certificates = Certificates(
        certificate_worker.core.store, certificate_worker.core.clock
    )
    within = timedelta(days=31)
    assert [v.person for v in await certificates.expiring(within, 9)] == [person]

    await certificates.renew(credential, "system")
    await certificate_worker.do(TaskKind.RENEW)
    await certificate_worker.publish()

    async with certificate_worker.core.store.read() as transaction:
        held = await CredentialStore(transaction).active(person)
        rows = await CertificateStore(transaction).of_credential(credential)
    assert held is not None
    new = x509.load_der_x509_certificate(held.certificate)
    old = x509.load_der_x509_certificate(rows[1].der)
    new.verify_directly_issued_by(certificate_worker.authority.certificate)
    assert new.public_key() == old.public_key()
    assert new.not_valid_after_utc > old.not_valid_after_utc + timedelta(days=690)
    policies = new.extensions.get_extension_for_class(x509.CertificatePolicies).value
    assert policies[0].policy_identifier.dotted_string == POLICIES[VouchedBy.DEMO]
    for number in (serial, new.serial_number):
        status = (await certificate_worker.answer(number)).certificate_status
        assert status is OCSPCertStatus.GOOD
    assert await certificates.expiring(within, 9) == []


async def test_renewal_under_a_name_that_cannot_be_verified_is_refused(
    certificate_worker: CertificateWorker,
) -> None:
    """A name of before it was refused: the certificate in use stays, until its end."""
    core = certificate_worker.core
    name = "Ana \N{SLIGHTLY SMILING FACE}"
    _, credential, serial = await certificate_worker.certified(name)
    await Certificates(core.store, core.clock).renew(credential, "system")

    with pytest.raises(ApplianceError) as caught:
        await certificate_worker.do(TaskKind.RENEW)

    assert caught.value.code is ErrorCode.CERTIFICATE_UNVERIFIABLE
    async with core.store.read() as transaction:
        rows = await CertificateStore(transaction).of_credential(credential)
    assert [row.serial for row in rows] == [f"{serial:x}"]

"""Revocations on the record against the time that is proven for a signature."""

import datetime as dt
from dataclasses import replace

import pytest
from asn1crypto import x509

from appliance.domain.documents.verification import (
    YES,
    Answer,
    CheckCode,
    SignatureReport,
    VerificationReport,
)
from appliance.domain.ids import TaskId, new_id
from appliance.domain.pki.certificates import (
    CertificateRecord,
    KeptStatus,
    StatusKind,
    serial_text,
)
from appliance.domain.vocab import CertificateKind, RevocationReason, TaskKind
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.revocation_store import RevocationStore
from appliance.pki.signer_revocations import SignerRevocations
from appliance.pki.validation.external_status_store import (
    ExternalStatusStore,
    status_subject,
)
from tests.support.documents import pdfs
from tests.support.documents.software_signer import signed, software_signer
from tests.support.installation.record import CoreFixture
from worker.sandbox.verify.verify import verify

DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def signature() -> SignatureReport:
    """Report on a B-B signature: without a timestamp and without revocation data."""
    report = verify(signed(pdfs.one_page()), [software_signer().root])
    (found,) = report.signatures
    assert found.revocation.code is CheckCode.TRY_LATER
    return found


async def record(core: CoreFixture, *, der: bytes | None = None) -> None:
    """Put the signer's certificate on the record, as the internal CA issued it."""
    known = software_signer().certificate
    made = x509.Certificate.load(known)
    async with core.store.write() as transaction:
        await CertificateStore(transaction).add(
            CertificateRecord(
                serial=serial_text(made.serial_number),
                kind=CertificateKind.TSA,
                issuer="a" * 40,
                credential=None,
                der=der or known,
                not_before=core.now - DAY,
                not_after=core.now + DAY,
            )
        )


async def revoke(core: CoreFixture, at: dt.datetime) -> None:
    """Have it revoked from a time on, for a compromised key."""
    serial = x509.Certificate.load(software_signer().certificate).serial_number
    task = TaskId(new_id())
    async with core.store.write() as transaction:
        await HsmTaskStore(transaction).add(task, TaskKind.REVOKE, {}, core.now)
        await RevocationStore(transaction).begin_own(
            [serial_text(serial)], at, RevocationReason.KEY_COMPROMISE, task
        )


async def applied(core: CoreFixture, signature: SignatureReport) -> SignatureReport:
    """The report with what the record knows."""
    report = VerificationReport((signature,), ending=YES)
    (found,) = (await SignerRevocations(core.store).apply(report)).signatures
    return found


async def test_own_certificate_that_is_good_is_known_to_be(
    core: CoreFixture, signature: SignatureReport
) -> None:
    """The record of the CA that issued it is revocation data."""
    await record(core)

    found = await applied(core, signature)

    assert (found.revocation.answer, found.valid) == (Answer.YES, True)


async def test_revoked_key_without_a_timestamp_is_undetermined(
    core: CoreFixture, signature: SignatureReport
) -> None:
    """The signer's own word for the time proves nothing against the key's thief."""
    await record(core)
    claimed = dt.datetime.fromisoformat(str(signature.signed_at))
    await revoke(core, claimed + DAY)

    found = await applied(core, signature)

    assert found.revocation.code is CheckCode.REVOKED_NO_POE
    assert found.verdict is Answer.UNCHECKED
    assert "keyCompromise" in found.reason


async def test_signature_that_claims_a_time_after_the_revocation_is_refuted(
    core: CoreFixture, signature: SignatureReport
) -> None:
    """Whatever else may prove, it was not made before."""
    await record(core)
    claimed = dt.datetime.fromisoformat(str(signature.signed_at))
    await revoke(core, claimed - DAY)

    found = await applied(core, signature)

    assert found.revocation.code is CheckCode.REVOKED
    assert found.verdict is Answer.NO


async def test_certificate_in_another_encoding_is_the_same(
    core: CoreFixture, signature: SignatureReport
) -> None:
    """Its own fingerprint is first, and the record knows the second."""
    await record(core)
    claimed = dt.datetime.fromisoformat(str(signature.signed_at))
    await revoke(core, claimed - DAY)
    twin = replace(signature, certificates=("0" * 64, *signature.certificates))

    assert (await applied(core, twin)).verdict is Answer.NO


@pytest.mark.parametrize(("proven", "answer"), [(-DAY, Answer.YES), (DAY, Answer.NO)])
async def test_proof_of_existence_decides(
    core: CoreFixture, signature: SignatureReport, proven: dt.timedelta, answer: Answer
) -> None:
    """A revocation after the proven time does not count; one before it does."""
    await record(core)
    await revoke(core, core.now)
    at = (core.now + proven).isoformat()

    found = await applied(core, replace(signature, timestamp=at))

    assert found.revocation.answer is answer
    assert found.verdict is answer


async def test_certificate_of_the_same_serial_number_is_another(
    core: CoreFixture, signature: SignatureReport
) -> None:
    """A foreign CA may give the same number."""
    await record(core, der=b"another")
    await revoke(core, core.now)

    found = await applied(core, signature)

    assert found == signature


async def test_revocation_by_an_outside_authority_counts(
    core: CoreFixture, signature: SignatureReport
) -> None:
    """An answer that chores fetched of its OCSP responder or CRL."""
    status = KeptStatus(
        StatusKind.REVOKED,
        status_subject(software_signer().certificate),
        b"",
        core.now,
        core.now + DAY,
        dt.datetime.fromisoformat(str(signature.signed_at)) + DAY,
        "keyCompromise",
    )
    async with core.store.write() as transaction:
        await ExternalStatusStore(transaction).put(status)

    found = await applied(core, signature)

    assert found.revocation.code is CheckCode.REVOKED_NO_POE

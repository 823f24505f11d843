"""The record of the internal TSA's certificates, on both databases."""

import pytest
from cryptography import x509

from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.pki.certificates import CertificateRecord, serial_text
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    RevocationReason,
    TaskKind,
)
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from tests.support.factories.fakes import MovingClock
from tests.support.installation.record import CoreFixture
from tests.support.pki.long_term_pki import LongTermPki
from tests.support.pki.outside_ca import ec_key


async def record(core: CoreFixture, der: bytes) -> str:
    """A certificate of the TSA on the record: its serial."""
    made = x509.load_der_x509_certificate(der)
    serial = serial_text(made.serial_number)
    async with core.store.write() as transaction:
        await CertificateStore(transaction).add(
            CertificateRecord(
                serial, CertificateKind.TSA, "ca", None, der,
                made.not_valid_before_utc, made.not_valid_after_utc,
            )
        )  # fmt: skip
    return serial


async def test_revocation_takes_every_certificate_of_the_key(core: CoreFixture) -> None:
    """And none of another key; given up, it is asked for again."""
    pki = LongTermPki(MovingClock(core.now))
    key, other = ec_key().public_key(), ec_key().public_key()
    serials = [
        await record(core, pki.tsa_certificate(each)) for each in (key, key, other)
    ]
    kept = TsaCertificates(core.store, core.clock)

    with pytest.raises(FieldInvalidError):
        await kept.revoke(serials[0], RevocationReason.UNSPECIFIED, "operator")
    await kept.revoke(serials[0], RevocationReason.SUPERSEDED, "operator")

    states = {each.serial: each.state for each in await kept.all()}
    gone, good = CertificateState.REVOKING, CertificateState.VALID
    assert [states[each] for each in serials] == [gone, gone, good]
    with pytest.raises(ApplianceError) as caught:
        await kept.revoke(serials[1], RevocationReason.SUPERSEDED, "operator")
    assert caught.value.code is ErrorCode.CERTIFICATE_STATE
    tasks = HsmTasks(core.store, core.clock, "signing/h/1", "p")
    assert await kept.resume() == 0
    claim = await tasks.claim_next([TaskKind.REVOKE])
    assert claim is not None
    await tasks.failed(claim, "TASK_FAILED")
    assert await kept.resume() == 2
    again = await tasks.claim_next([TaskKind.REVOKE])
    assert again is not None
    assert sorted(again.input["serials"]) == sorted(serials[:2])  # type: ignore[call-overload]


async def test_documents_of_a_certificate_are_told_page_by_page(
    core: CoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All versions with a timestamp since its issue, none twice."""
    monkeypatch.setattr("appliance.pki.tsa.tsa_certificates._PAGE", 2)
    pki = LongTermPki(MovingClock(core.now))
    serial = await record(core, pki.tsa_certificate(ec_key().public_key()))
    person = (await core.add_signer()).person
    stamped = []
    for level, versions in (("B-T", 3), ("B-B", 1), ("B-LTA", 2)):
        request = await core.add_request(person)
        integrator = (await core.view(request)).integrator
        for version in range(1, versions + 1):
            document = SignedDocumentView(
                request, integrator, "a.pdf", "ab" * 32, 1, level, version
            )
            async with core.store.write() as transaction:
                await DocumentStore(transaction).sealed(request, document, core.now)
            if level != "B-B":
                stamped.append((request, version))
    kept = TsaCertificates(core.store, core.clock)

    told = [(each.request, each.version) async for each in kept.stamped(serial)]

    assert told == stamped
    with pytest.raises(ApplianceError) as caught:
        _ = [each async for each in kept.stamped("abc")]
    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_FOUND

"""The internal timestamping authority on a real SoftHSM, as others judge it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from asn1crypto import x509 as asn1
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID
from pyhanko.sign.validation.generic_cms import validate_tst_signed_data
from pyhanko.sign.validation.status import TimestampSignatureStatus
from pyhanko_certvalidator import ValidationContext

from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.documents.document_store import DocumentStore
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.ids import RequestId
from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyAlgorithm, TokenRole
from appliance.domain.pki.certificates import serial_text
from appliance.domain.pki.timestamps import TIMESTAMP_POLICY, TimestampQuestion
from appliance.domain.requests.levels import Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import (
    CertificateKind,
    EventKind,
    RevocationReason,
    SignatureLevel,
    TaskKind,
)
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.pki.renewal import Renewal
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.record.unit_of_work import Database
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from hsm_config.pkcs11 import objects
from hsm_config.provisioning import tsa_keys
from hsm_config.provisioning.ca_certificates import key_identifier, read_ca, read_root
from hsm_config.provisioning.ca_hierarchy import CA_VALIDITY
from hsm_config.provisioning.init import provision
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.hsm.hsm_installation import HsmInstallation, earlier_trial
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import ec_key
from tests.support.pki.timestamps import Trusted, check_authority, imprint, info, signed
from worker.hsm.connection import HsmConnection
from worker.pki.certificate_authority import TSA_VALIDITY, Authority
from worker.pki.certificate_profiles import TSA_POLICY
from worker.pki.certificate_tasks import CertificateTasks
from worker.pki.publisher import Publisher
from worker.pki.tsa import TSA_LEAST, InternalTsa

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class TsaWorker:
    """An authority over a record of its own."""

    core: CoreFixture
    installation: HsmInstallation
    authority: Authority
    publishing: Publishing
    tsa: InternalTsa

    def again(self) -> InternalTsa:
        """The authority in a process that was started anew."""
        tsa = self.tsa
        return InternalTsa(
            tsa._session, self.authority, self.publishing, self.core.clock, 1
        )

    async def certificates(self) -> list[bytes]:
        """Those of the authority that are on the record, oldest first."""
        async with self.core.store.read() as transaction:
            found = await CertificateStore(transaction).in_force(CertificateKind.TSA)
        return [one.der for one in found]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """A trial for all tests here."""
    return earlier_trial(tmp_path_factory.mktemp("trial"))


@pytest.fixture
async def tsa_worker(
    installation: HsmInstallation, sqlite_core: CoreFixture
) -> AsyncIterator[TsaWorker]:
    """A worker with its HSM open."""
    settings, core = installation.settings, sqlite_core
    async with installation.session() as session:
        authority = Authority(session, read_ca(settings), settings)
        publishing = Publishing(core.store, core.clock, settings.pki, "signing/h/1")
        tsa = InternalTsa(session, authority, publishing, core.clock, 1)
        yield TsaWorker(core, installation, authority, publishing, tsa)


def of_tsa(token: bytes) -> x509.Certificate:
    """The authority's certificate that a token carries."""
    sid = signed(token)["signer_infos"][0]["sid"].chosen
    (found,) = [
        one.chosen.dump()
        for one in signed(token)["certificates"]
        if one.chosen.serial_number == sid["serial_number"].native
    ]
    return x509.load_der_x509_certificate(found)


async def judged(tsa_worker: TsaWorker, token: bytes) -> TimestampSignatureStatus:
    """What pyHanko says of a token, from the root alone."""
    root = read_root(tsa_worker.installation.settings)
    context = ValidationContext(
        trust_roots=[asn1.Certificate.load(root.public_bytes(Encoding.DER))],
        moment=tsa_worker.core.now + timedelta(seconds=1),
    )
    told = await validate_tst_signed_data(
        signed(token), context, lambda _name: imprint()
    )
    return TimestampSignatureStatus(**told)


@pytest.mark.parametrize("is_in_force", [True, False], ids=["in force", "at a start"])
async def test_certificate_that_the_ca_did_not_sign_is_not_stamped_by(
    tsa_worker: TsaWorker, is_in_force: bool
) -> None:
    """A row with one of the same key, by somebody else, that ends later than all."""
    made = of_tsa(await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256))
    forged = (
        x509.CertificateBuilder(extensions=list(made.extensions))
        .subject_name(made.subject)
        .issuer_name(made.issuer)
        .public_key(made.public_key())
        .serial_number(7)
        .not_valid_before(made.not_valid_before_utc)
        .not_valid_after(made.not_valid_after_utc + timedelta(days=1))
        .sign(ec_key(), SHA256())
    )
    async with tsa_worker.core.store.read() as transaction:
        (held,) = await CertificateStore(transaction).of_kind(CertificateKind.TSA)
    record = replace(
        held,
        serial="7",
        der=forged.public_bytes(Encoding.DER),
        not_after=forged.not_valid_after_utc,
    )
    async with tsa_worker.core.store.write() as transaction:
        await CertificateStore(transaction).add(record)
    tsa = tsa_worker.tsa if is_in_force else tsa_worker.again()

    token = await tsa.stamp(imprint(), DigestAlgorithm.SHA256)

    assert of_tsa(token) == made
    assert (await judged(tsa_worker, token)).trusted


async def test_it_is_a_timestamp_authority(
    tsa_worker: TsaWorker, tmp_path: Path
) -> None:
    """As the port has it, and openssl."""
    settings = tsa_worker.installation.settings
    trusted = Trusted(read_root(settings), read_ca(settings), tsa_worker.core.now)

    await check_authority(tsa_worker.tsa, trusted, tmp_path)


async def test_pyhanko_takes_a_token(tsa_worker: TsaWorker) -> None:
    """With the time that the clock tells."""
    token = await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256)

    status = await judged(tsa_worker, token)

    assert (status.valid, status.intact, status.trusted) == (True, True, True)
    assert status.timestamp == tsa_worker.core.now


async def test_token_says_what_was_asked(tsa_worker: TsaWorker) -> None:
    """Nonce, policy, accuracy, imprint; no certificates where none are wanted."""
    question = TimestampQuestion(
        imprint(), DigestAlgorithm.SHA256, nonce=2**63, certificates=False
    )

    made = await tsa_worker.tsa.answer(question)

    told = info(made.token)
    assert told["nonce"].native == 2**63
    assert told["policy"].dotted == TIMESTAMP_POLICY
    assert told["accuracy"]["seconds"].native == 1
    assert told["message_imprint"]["hashed_message"].native == imprint()
    assert told["serial_number"].native == made.serial > 2**64
    assert len(signed(made.token)["certificates"]) == 0
    assert signed(made.token)["version"].native == "v3"
    assert len(made.token) < len(await tsa_worker.tsa.stamp(imprint(), question.digest))


async def test_certificate_is_for_stamping_alone(tsa_worker: TsaWorker) -> None:
    """Critical and sole purpose; P-256; where its status is told; years to go."""
    certificate = of_tsa(await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256))

    extensions = certificate.extensions
    purposes = extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    policies = extensions.get_extension_for_class(x509.CertificatePolicies).value
    assert purposes.critical
    assert list(purposes.value) == [ExtendedKeyUsageOID.TIME_STAMPING]
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.content_commitment
    assert [one.policy_identifier for one in policies] == [TSA_POLICY]
    told_at = (x509.AuthorityInformationAccess, x509.CRLDistributionPoints)
    assert set(told_at) <= {type(one.value) for one in extensions}
    assert certificate.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]
    assert certificate.not_valid_after_utc - tsa_worker.core.now > TSA_LEAST
    assert await tsa_worker.certificates() == [certificate.public_bytes(Encoding.DER)]


async def test_certificate_is_renewed_while_years_are_left(
    tsa_worker: TsaWorker,
) -> None:
    """The same one until then, in another process too; never again at the CA's end."""
    first = of_tsa(await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256))

    again = of_tsa(await tsa_worker.again().stamp(imprint(), DigestAlgorithm.SHA256))
    tsa_worker.core.clock.forward((TSA_VALIDITY - TSA_LEAST).total_seconds())
    second = of_tsa(await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256))
    tsa_worker.core.clock.forward((CA_VALIDITY - TSA_VALIDITY).total_seconds())
    third = of_tsa(await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256))
    tsa_worker.core.clock.forward(365 * DAY_S)
    fourth = of_tsa(await tsa_worker.again().stamp(imprint(), DigestAlgorithm.SHA256))

    assert first == again
    assert second.not_valid_after_utc > first.not_valid_after_utc
    assert second.public_key() == first.public_key()
    assert (
        third.not_valid_after_utc
        == read_ca(tsa_worker.installation.settings).not_valid_after_utc
    )
    assert fourth == third


async def test_many_tokens_at_once_have_one_certificate(tsa_worker: TsaWorker) -> None:
    """And no serial number twice."""
    tokens = await asyncio.gather(
        *(tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256) for _ in range(50))
    )

    assert len({info(token)["serial_number"].native for token in tokens}) == 50
    assert len(await tsa_worker.certificates()) == 1


async def test_status_of_the_certificate_is_told(tsa_worker: TsaWorker) -> None:
    """OCSP answers are due for it, as for a signer's."""
    await tsa_worker.tsa.stamp(imprint(), DigestAlgorithm.SHA256)
    issuer = key_identifier(tsa_worker.authority.certificate)

    due = await tsa_worker.publishing.due_answers(issuer, 10)

    assert len(due) == 1


async def test_without_its_key_nothing_is_stamped(
    installation: HsmInstallation, sqlite_core: CoreFixture, tmp_path: Path
) -> None:
    """An installation from before: all else works, and `hsm init` makes the key."""
    older = installation.copy(tmp_path)
    with older.raw(TokenRole.PKI) as session:
        objects.destroy(session, objects.TSA_KEY.cka_id)
    settings, core = older.settings, sqlite_core
    publishing = Publishing(core.store, core.clock, settings.pki, "signing/h/1")
    missing = older.check()

    async with older.session() as session_:
        authority = Authority(session_, read_ca(settings), settings)
        tsa = InternalTsa(session_, authority, publishing, core.clock, 1)
        with pytest.raises(TsaUnavailableError) as refused:
            await tsa.stamp(imprint(), DigestAlgorithm.SHA256)
        await authority.certify_responder(core.now)
    report = provision(settings)
    async with older.session() as session_:
        authority = Authority(session_, read_ca(settings), settings)
        tsa = InternalTsa(session_, authority, publishing, core.clock, 1)
        token = await tsa.stamp(imprint(), DigestAlgorithm.SHA256)

    assert refused.value.code is ErrorCode.TSA_UNAVAILABLE
    assert "rubrica hsm init" in refused.value.reason
    assert "rubrica-tsa is not there" in str(missing.lines)
    assert report.made == ["TSA key"]
    assert info(token)["gen_time"].native == core.now


async def test_key_that_changed_is_certified_anew(
    installation: HsmInstallation, sqlite_core: CoreFixture, tmp_path: Path
) -> None:
    """A token that its certificate does not verify never leaves."""
    other = installation.copy(tmp_path)
    settings, core = other.settings, sqlite_core
    publishing = Publishing(core.store, core.clock, settings.pki, "signing/h/1")
    async with other.session() as session_:
        authority = Authority(session_, read_ca(settings), settings)
        tsa = InternalTsa(session_, authority, publishing, core.clock, 1)
        first = of_tsa(await tsa.stamp(imprint(), DigestAlgorithm.SHA256))
    with other.raw(TokenRole.PKI) as session:
        objects.destroy(session, objects.TSA_KEY.cka_id)
    provision(settings)

    async with other.session() as session_:
        tsa._session = session_
        authority._session = session_
        with pytest.raises(TsaUnavailableError, match="TSA_UNAVAILABLE"):
            await tsa.stamp(imprint(), DigestAlgorithm.SHA256)
        second = of_tsa(await tsa.stamp(imprint(), DigestAlgorithm.SHA256))

    assert second.public_key() != first.public_key()


async def test_revoked_certificate_stamps_no_more(tsa_worker: TsaWorker) -> None:
    """From the asking on, in every process; a lost key is not certified again."""
    core, kept = (
        tsa_worker.core,
        TsaCertificates(tsa_worker.core.store, tsa_worker.core.clock),
    )
    other, digest = tsa_worker.again(), DigestAlgorithm.SHA256
    first = of_tsa(await tsa_worker.tsa.stamp(imprint(), digest))
    assert of_tsa(await other.stamp(imprint(), digest)) == first
    document = await signed_document(core)
    serial = serial_text(first.serial_number)

    await kept.revoke(serial, RevocationReason.SUPERSEDED, "operator")
    second = of_tsa(await other.stamp(imprint(), digest))
    await published(tsa_worker)

    assert second.serial_number != first.serial_number
    assert of_tsa(await tsa_worker.tsa.stamp(imprint(), digest)) == second
    async with core.store.read() as transaction:
        answer = await PublicationStore(transaction).answer(serial)
        crl = await PublicationStore(transaction).crl(
            key_identifier(tsa_worker.authority.certificate)
        )
        upkeep = await LevelMaintenanceStore(transaction).of_request(document)
    assert answer is not None
    told = ocsp.load_der_ocsp_response(answer.der)
    assert told.certificate_status is ocsp.OCSPCertStatus.REVOKED
    assert crl is not None
    listed = [one.serial_number for one in x509.load_der_x509_crl(crl.der)]
    assert listed == [first.serial_number]
    assert upkeep is not None
    assert upkeep.due == core.now
    assert [each.request async for each in kept.stamped(serial)] == [document]
    assert (await core.audited()).count("revocation.asked") == 1

    newest = serial_text(second.serial_number)
    await kept.revoke(newest, RevocationReason.KEY_COMPROMISE, "operator")
    with pytest.raises(TsaUnavailableError) as refused:
        await other.stamp(imprint(), digest)
    assert "compromised" in refused.value.reason
    with pytest.raises(ApplianceError) as caught:
        await kept.revoke(newest, RevocationReason.SUPERSEDED, "operator")
    assert caught.value.code is ErrorCode.CERTIFICATE_STATE


async def test_new_key_is_taken_up_while_workers_run(
    installation: HsmInstallation, tmp_path: Path
) -> None:
    """By `rubrica hsm renew-tsa`; a key that was lost is replaced by it, too."""
    own = installation.copy(tmp_path)
    settings, clock = own.settings, SystemClock()
    await migrate(settings)
    store = Database(open_engines(settings), clock, "test")
    publishing = Publishing(store, clock, settings.pki, "signing/h/1")
    kept, digest = TsaCertificates(store, clock), DigestAlgorithm.SHA256
    async with own.session() as session:
        authority = Authority(session, read_ca(settings), settings)
        tsa = InternalTsa(session, authority, publishing, clock, 1)
        first = of_tsa(await tsa.stamp(imprint(), digest))
        # What a killed run leaves is not stamped by, and gone on with.
        await session._call(leave_second_key, TokenRole.PKI)
        assert of_tsa(await tsa.stamp(imprint(), digest)) == first

        said = await own.rubrica("renew-tsa")
        second = of_tsa(await tsa.stamp(imprint(), digest))

        assert "TSA key 2 is there" in said
        assert second.public_key() != first.public_key()
        assert serial_text(second.serial_number) in said
        assert "is not an old one" in await own.rubrica(
            "renew-tsa", "--retire", "2", status=1
        )
        await own.rubrica("renew-tsa", "--retire", "1")
        assert of_tsa(await tsa.stamp(imprint(), digest)) == second

        serial = serial_text(second.serial_number)
        await kept.revoke(serial, RevocationReason.KEY_COMPROMISE, "operator")
        with pytest.raises(TsaUnavailableError) as refused:
            await tsa.stamp(imprint(), digest)
        assert "`rubrica hsm renew-tsa`" in refused.value.reason
        assert "TSA key 3 was made" in await own.rubrica("renew-tsa")
        third = of_tsa(await tsa.stamp(imprint(), digest))
        assert third.public_key() not in (first.public_key(), second.public_key())
    await store.close()

    told = [kind for kind in await own.audited() if kind.value.startswith("tsa.")]
    assert told == [EventKind.TSA_CREATED, EventKind.TSA_RETIRED, EventKind.TSA_CREATED]
    assert provision(settings).made == []
    with own.raw(TokenRole.PKI) as session:
        assert tsa_keys.generations(session) == (2, 3)


def leave_second_key(link: HsmConnection) -> None:
    """Make the pair that a run made which was killed before it had it certified."""
    objects.make_anew(
        link.session(TokenRole.PKI),
        tsa_keys.reference(2).cka_id,
        tsa_keys.label_of(2),
        KeyAlgorithm.EC_P256,
    )


async def signed_document(core: CoreFixture) -> RequestId:
    """A document that is stamped anew a year from now."""
    request = await core.add_request((await core.add_signer()).person)
    view = await core.view(request)
    signed = SignedDocumentView(
        request, view.integrator, "a.pdf", "ab" * 32, 1, "B-LTA"
    )
    due = Upkeep(SignatureLevel.B_LTA, core.now + timedelta(days=365))
    async with core.store.write() as transaction:
        await DocumentStore(transaction).sealed(request, signed, core.now)
        await LevelMaintenanceStore(transaction).add(
            request, view.integrator, due, core.now
        )
    return request


async def published(tsa_worker: TsaWorker) -> None:
    """Do the task of a revocation, as a signing worker does."""
    core, slot = tsa_worker.core, "signing/h/1"
    session = tsa_worker.tsa._session
    root = read_root(tsa_worker.installation.settings)
    publisher = Publisher(
        session, tsa_worker.authority, root, tsa_worker.publishing, core.clock
    )
    renewal = Renewal(core.store, core.clock, slot)
    runner = CertificateTasks(
        publisher,
        tsa_worker.publishing,
        renewal,
        tsa_worker.authority,
        core.clock,
        FakeInspector(pages=1),
        root=b"",
        statements=cast("Any", None),
    )
    claim = await HsmTasks(core.store, core.clock, slot, "p").claim_next(
        [TaskKind.REVOKE]
    )
    assert claim is not None
    await runner.run(claim)

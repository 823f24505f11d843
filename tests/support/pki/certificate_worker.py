"""A signing worker's tasks about certificates, on a real HSM and over a record.

async with open_certificate_worker(installation, core, sandbox) as worker:
    person, credential, serial = await worker.certified()
    await worker.do(TaskKind.RENEW)
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import ocsp

from appliance.domain.ids import CredentialId, PersonId, new_id
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyReference, TokenRole
from appliance.domain.people.identity import NewPerson, Person
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import CertificateKind, PersonState, TaskKind, VouchedBy
from appliance.keys.hsm_tasks import HsmTasks
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.pki.renewal import Renewal
from appliance.settings import Settings
from hsm_config.provisioning.ca_certificates import read_ca, read_root
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.installation.record import CoreFixture, cheap_secret
from tests.support.pki.credential_statements import worker_statements
from tests.support.services.sandbox_server import SandboxServer
from worker.pki.certificate_authority import Authority, CertificateSubject
from worker.pki.certificate_tasks import CertificateTasks
from worker.pki.publisher import Publisher

SLOT: Final = "signing/h/1"


@dataclass(frozen=True, slots=True)
class CertificateWorker:
    """A worker's hands, over a record of its own."""

    settings: Settings
    core: CoreFixture
    root: x509.Certificate
    authority: Authority
    publishing: Publishing
    tasks: CertificateTasks

    async def certified(
        self, name: str = "Ana Pérez", cuil: str = "20267565393"
    ) -> tuple[PersonId, CredentialId, int]:
        """A person whose certificate is on the record; its serial."""
        person = PersonId(new_id())
        new = NewPerson(
            Person(person, cuil, name, PersonState.ACTIVE, "es"),
            email_sealed=b"-",
            email_index=cuil.rjust(64, "0"),
            vouched_by=VouchedBy.DEMO,
            login_phc="-",
            totp_sealed=b"-",
            signing=cheap_secret(),
        )
        async with self.core.store.write() as transaction:
            await PersonStore(transaction).add(new)
        reference = KeyReference(TokenRole.FIRMA, new_id().encode())
        subject = CertificateSubject(name, cuil, VouchedBy.DEMO)
        issued = await self.authority.enrol(
            reference, KeyAlgorithm.RSA_2048, subject, self.core.now
        )
        credential = await self.core.add_credential(
            person,
            cka_id=reference.cka_id,
            spki=spki_of(issued.certificate),
            certificate=issued.certificate,
            chain=issued.chain,
            not_before=issued.not_before,
            not_after=issued.not_after,
        )
        async with self.core.store.write() as transaction:
            await CertificateStore(transaction).add(
                self.authority.record(issued, CertificateKind.SIGNER, credential)
            )
        return person, credential, issued.serial

    async def claim(self) -> TaskClaim:
        """The oldest task."""
        tasks = HsmTasks(self.core.store, self.core.clock, SLOT, new_id())
        claim = await tasks.claim_next()
        assert claim is not None
        return claim

    async def do(self, kind: TaskKind) -> None:
        """Do the oldest task, of that kind."""
        claim = await self.claim()
        assert claim.kind is kind
        await self.tasks.run(claim)

    async def publish(self) -> None:
        """Sign what is due."""
        assert await self.publishing.submit() is not None
        await self.do(TaskKind.PUBLISH)

    async def crl(self, at: int = 0) -> x509.CertificateRevocationList:
        """The CA's list; the root's at 1."""
        async with self.core.store.read() as transaction:
            found = await PublicationStore(transaction).crl(
                self.tasks.publisher.issuers[at]
            )
        assert found is not None
        return x509.load_der_x509_crl(found.der)

    async def answer(self, serial: int) -> ocsp.OCSPResponse:
        """A certificate's answer, its signature checked."""
        async with self.core.store.read() as transaction:
            found = await PublicationStore(transaction).answer(f"{serial:x}")
        assert found is not None
        told = ocsp.load_der_ocsp_response(found.der)
        (responder,) = told.certificates
        responder.verify_directly_issued_by(self.authority.certificate)
        key, hash_algorithm = responder.public_key(), told.signature_hash_algorithm
        assert isinstance(key, rsa.RSAPublicKey)
        assert hash_algorithm is not None
        key.verify(
            told.signature,
            told.tbs_response_bytes,
            padding.PKCS1v15(),
            hash_algorithm,
        )
        return told


def spki_of(certificate: bytes) -> bytes:
    """The key of a certificate, DER."""
    key = x509.load_der_x509_certificate(certificate).public_key()
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@asynccontextmanager
async def open_certificate_worker(
    installation: HsmInstallation, core: CoreFixture, sandbox: SandboxServer
) -> AsyncIterator[CertificateWorker]:
    """A worker with its HSM open."""
    settings = installation.settings
    async with installation.session() as session:
        authority = Authority(session, read_ca(settings), settings)
        publishing = Publishing(core.store, core.clock, settings.pki, SLOT)
        root = read_root(settings)
        publisher = Publisher(session, authority, root, publishing, core.clock)
        renewal = Renewal(core.store, core.clock, SLOT)
        tasks = CertificateTasks(
            publisher,
            publishing,
            renewal,
            authority,
            core.clock,
            sandbox.client,
            root.public_bytes(Encoding.DER),
            worker_statements(settings, core.store, core.clock),
        )
        yield CertificateWorker(settings, core, root, authority, publishing, tasks)

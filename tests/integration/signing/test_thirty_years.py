"""Thirty years of a document, by the upkeep itself, a SoftHSM's keys and no network."""

import asyncio
import datetime as dt
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.documents.document_store import DocumentStore
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.clock import SystemClock
from appliance.domain.ids import RequestId, TaskId
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    ResidentKey,
    TokenRole,
)
from appliance.domain.requests.levels import SignatureProfile, Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import (
    CertificateKind,
    SignatureLevel,
    TimestampPolicy,
    VouchedBy,
)
from appliance.pki.ca_certificates import read_authority
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication import Publishing
from appliance.pki.validation.validation_material import ValidationSource
from appliance.signing.level_maintenance import UpkeepWork
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from hsm_config.provisioning import ca_hierarchy
from hsm_config.provisioning.ca_certificates import read_ca, read_root
from hsm_config.provisioning.init import provision
from tests.support.documents.long_term_validators import (
    lt_failures,
    lta_failures,
    openssl_accepts,
)
from tests.support.documents.pdf_samples import make_pdf, make_plan
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import pdfsig
from tests.support.factories.fakes import FixedDocumentKeys, MovingClock
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.installation.record import CoreFixture
from worker.hsm.session import HsmSession
from worker.pades import assemble, check, prepare
from worker.pades.appearance.fonts import load_fonts
from worker.pki.certificate_authority import Authority, CertificateSubject
from worker.pki.certificate_signing import IssuedCertificate
from worker.pki.publisher import Publisher
from worker.pki.tsa import InternalTsa
from worker.sandbox.verify.verify import verify
from worker.signing.level_extension import Levels
from worker.signing.level_maintenance import LevelUpkeep

pytestmark = pytest.mark.full

L = SignatureLevel
YEAR = dt.timedelta(days=365)
DAY = dt.timedelta(days=1)
RENEWALS = 10
INTERVAL = 3 * YEAR
"""Between two renewals: half the life of a certificate of the TSA."""
PEOPLE = (
    ("Ana Núñez", "20267565393"),
    ("Juan Pérez", "20123456786"),
    ("Eva Ruiz", "27234567891"),
)


class PublishingNow(Publishing):
    """What is asked for is signed in the same call, as workers do it soon after."""

    publisher: Publisher

    async def submit(self) -> TaskId | None:
        """Sign and publish all that is due."""
        due = await self.due_crls(self.publisher.issuers)
        await self.published([await self.publisher.crl(one) for one in due], [])
        drafts = await self.due_answers(self.publisher.issuers[0], 50)
        await self.published([], await self.publisher.answers(drafts))
        return None


@dataclass
class LastingWorker:
    """A worker with its HSM open, over a record of its own."""

    core: CoreFixture
    installation: HsmInstallation
    session: HsmSession
    authority: Authority
    publishing: PublishingNow
    levels: Levels
    documents: LocalBlobStore

    @property
    def root(self) -> bytes:
        """What is trusted."""
        return read_root(self.installation.settings).public_bytes(Encoding.DER)

    async def enrol(self, number: int) -> tuple[KeyReference, IssuedCertificate]:
        """A person with a key in the HSM."""
        reference = KeyReference(TokenRole.FIRMA, b"signer-%d" % number)
        name, cuil = PEOPLE[number]
        issued = await self.authority.enrol(
            reference,
            KeyAlgorithm.RSA_2048,
            CertificateSubject(name, cuil, VouchedBy.DEMO),
            self.core.now,
        )
        record = self.authority.record(issued, CertificateKind.SIGNER)
        async with self.core.store.write() as transaction:
            await CertificateStore(transaction).add(record)
        return reference, issued

    async def sign(self, number: int, original: bytes, level: SignatureLevel) -> bytes:
        """The file with one more signature; a last one leaves its upkeep."""
        reference, issued = await self.enrol(number)
        profile = SignatureProfile(
            level, TimestampPolicy.REQUIRED, DigestAlgorithm.SHA256
        )
        # Only the certificate of it is used: the key is in the HSM.
        held = SoftwareSigner(None, issued.certificate, issued.chain)  # type: ignore[arg-type]
        plan = make_plan(held)
        method = plan.method
        room = await self.levels.token_bytes(profile, method.digest)
        plan = replace(plan, signed_at=self.core.now, token_bytes=room)
        fonts = load_fonts(Path("/usr/share/fonts/truetype/liberation2"))
        prepared = prepare(original, plan, fonts)
        public = await self.session.public_key(reference)
        value = await self.session.sign(
            ResidentKey(reference.cka_id, public),
            prepared.digest,
            method.scheme,
            method.digest,
        )
        increment = assemble(
            prepared.increment,
            contents_at=prepared.contents_at,
            contents_length=prepared.contents_length,
            signed_attributes=prepared.signed_attributes,
            signature=value,
            method=method,
            certificate=plan.certificate,
            chain=plan.chain,
            token=await self.levels.token(value, method.digest, profile),
        )
        checked = check(original, increment, plan.certificate)
        reached = await self.levels.complete(
            (original, increment), checked, plan.certificate, plan.chain, profile
        )
        assert reached.level is level
        pdf = original + increment + reached.appended
        if reached.upkeep is not None:
            await self._publish(pdf, level, reached.upkeep)
        return pdf

    async def _publish(self, pdf: bytes, level: SignatureLevel, upkeep: Upkeep) -> None:
        """Record the signed document and what is due of it, as request 1."""
        signer = await self.core.add_signer()
        request = await self.core.add_request(signer.person)
        assert request == 1
        view = await self.core.view(request)
        sha256 = await self.documents.put(view.integrator, pdf)
        document = SignedDocumentView(
            request, view.integrator, "a.pdf", sha256, len(pdf), level
        )
        async with self.core.store.write() as transaction:
            await DocumentStore(transaction).sealed(request, document, self.core.now)
            await LevelMaintenanceStore(transaction).add(
                request, view.integrator, upkeep, self.core.now
            )

    async def due(self) -> dt.datetime:
        """When the document is due."""
        async with self.core.store.read() as transaction:
            upkeep = await LevelMaintenanceStore(transaction).of_request(RequestId(1))
        assert upkeep is not None
        return upkeep.due

    async def newest(self) -> bytes:
        """The newest version."""
        async with self.core.store.read() as transaction:
            view = await DocumentStore(transaction).signed(RequestId(1))
        assert view is not None
        assert view.level == L.B_LTA
        return await self.documents.get(view.integrator, view.sha256)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants one fails the test."""

    def refuse(*args: Any, **_options: Any) -> NoReturn:
        pytest.fail(f"the network was asked: {args[1:]}")

    for name in ("connect", "connect_ex", "sendto", "sendmsg"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
async def lasting_worker(
    sqlite_core: CoreFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_network: None,
) -> AsyncIterator[LastingWorker]:
    """A trial of thirty years ago, whose CA lasts for longer than that."""
    del no_network
    for name in ("ROOT_VALIDITY", "CA_VALIDITY"):
        monkeypatch.setattr(ca_hierarchy, name, 60 * YEAR)
    core = sqlite_core
    now = SystemClock().now().replace(microsecond=0)
    # Over before today: pyHanko takes the machine's time for what it has no proof of.
    core.clock.at = now - RENEWALS * INTERVAL - YEAR
    (tmp_path / "trial").mkdir()
    installation = HsmInstallation(tmp_path / "trial")
    settings = installation.settings
    provision(settings, MovingClock(core.now - DAY))
    async with installation.session() as session:
        authority = Authority(session, read_ca(settings), settings)
        publishing = PublishingNow(core.store, core.clock, settings.pki, "signing/h/1")
        publishing.publisher = Publisher(
            session, authority, read_root(settings), publishing, core.clock
        )
        tsa = InternalTsa(session, authority, publishing, core.clock, 1)
        source = ValidationSource(
            core.store, core.clock, read_authority(settings), publishing
        )
        levels = Levels(tsa, source, core.clock, settles=DAY, renewal=INTERVAL)
        documents = LocalBlobStore(tmp_path / "signed", FixedDocumentKeys())
        yield LastingWorker(
            core, installation, session, authority, publishing, levels,
            documents,
        )  # fmt: skip


async def test_three_signatures_are_valid_for_thirty_years(
    lasting_worker: LastingWorker, tmp_path: Path
) -> None:
    """Three signers in turn, then B-LTA, then ten renewals: by stored trust alone."""
    core, pdf = lasting_worker.core, make_pdf()
    at = core.now
    for number in range(3):
        core.clock.forward(60)
        pdf = await lasting_worker.sign(number, pdf, L.B_LTA if number == 2 else L.B_LT)
    work = UpkeepWork(core.store, core.clock, "signing/h/1")
    nothing: Any = None  # nothing is fetched of servers outside
    documents, levels = lasting_worker.documents, lasting_worker.levels
    upkeep = LevelUpkeep(work, documents, levels, nothing, nothing)
    versions = [pdf]

    # Once for data that is younger than the signatures, then ten times.
    for _ in range(1 + RENEWALS):
        core.clock.at = await lasting_worker.due()
        await lasting_worker.publishing.submit()
        assert await upkeep.run() == 1
        versions.append(await lasting_worker.newest())

    assert core.now - at >= RENEWALS * INTERVAL - DAY
    assert all(later.startswith(former) for former, later in pairwise(versions))
    chain = (
        read_ca(lasting_worker.installation.settings).public_bytes(Encoding.DER),
        lasting_worker.root,
    )
    stamps = 0
    for version in (versions[0], versions[-1]):
        said = openssl_accepts(version, tmp_path, chain)
        assert said == ["Verification: OK"] * len(said)
        stamps = len(said)
        assert sum(one.valid for one in pdfsig(version)) == 3
        assert (
            lt_failures(version, lasting_worker.root, at + dt.timedelta(minutes=4))
            == []
        )
    assert stamps == len(versions)
    soon = dt.timedelta(hours=1)
    assert lta_failures(versions[0], lasting_worker.root, at + soon) == []
    newest = versions[-1]
    assert lta_failures(newest, lasting_worker.root, core.now + soon) == []
    told = await asyncio.to_thread(verify, newest, [lasting_worker.root])
    assert [one.level for one in told.signatures] == ["B-LTA"] * 3
    assert told.valid

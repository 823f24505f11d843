"""The frame's use cases over real storage; only the sandbox is played.

async with open_frame_services(folder, url) as services:
    opened = await services.open(services.claim(person))
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyotp
import pytest

from appliance.appearance.content import Stamping
from appliance.core.background import Shielded
from appliance.core.rate_limit import Throttle
from appliance.core.secrets.password_hashing import HashSlots
from appliance.documents.document_store import DocumentStore
from appliance.documents.download_links import DownloadLinks
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.embedding import Claim, InitOrder, OpenedFrame, make_claim
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.identity import NewPerson, Person, SigningSecret
from appliance.domain.ids import PersonId, RequestId, new_id
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.secrets import KeyRing
from appliance.domain.vocab import PersonState, RequestState, VouchedBy
from appliance.embedding.batch import EmbedSessionBatches
from appliance.embedding.ceremony import Ceremony
from appliance.embedding.identification import EmbedSessionIdentity
from appliance.embedding.request import EmbedSessionRequests
from appliance.embedding.session_views import EmbedSessionViews
from appliance.embedding.signing import EmbedSessionSigning
from appliance.identity.login import email_index
from appliance.integrators.session_store import SessionStore
from appliance.keys.credential_store import CredentialStore
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.signing_password import SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.requests.intake import Intake
from appliance.requests.request_store import RequestStore
from appliance.signing.requests import Requests
from appliance.signing.sign import Signing
from tests.support.documents.software_signer import software_signer
from tests.support.factories.core import begin_request, new_credential
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.factories.fakes import (
    FakeCompletionNotifier,
    FakeWorkNotifier,
    FixedDocumentKeys,
)
from tests.support.factories.integrator_services import (
    IntegratorServices,
    open_integrator_services,
)
from tests.support.factories.signing_host import INSTALLATION

ADDRESS = "192.0.2.7"
CERTIFICATE = software_signer().root
CODE = "acme"


@dataclass
class Someone:
    """A person of the record, and their seed."""

    id: PersonId
    cuil: str
    email: str
    totp: pyotp.TOTP


@dataclass
class FrameServices:
    """The frame's services, and what tests steer them by."""

    services: IntegratorServices
    framing: Ceremony
    signing: EmbedSessionSigning
    batches: EmbedSessionBatches
    key: str
    documents: LocalBlobStore

    async def token(self, code: str = CODE) -> str:
        """A session token."""
        key = self.key
        if code != CODE:
            await self.services.integrators.create("operator", code, code.upper())
            made = await self.services.integrators.create_key("operator", code, "k")
            key = made.secret
        return (await self.services.sessions.open(code, key)).token

    async def add_person(
        self, cuil: str = "20267565393", state: PersonState = PersonState.ACTIVE
    ) -> Someone:
        """Record a person."""
        services = self.services
        person = PersonId(new_id())
        seed = pyotp.random_base32()
        email = f"{cuil}@demo.example"
        new = NewPerson(
            person=Person(person, cuil, "Ana Pérez", state, "es"),
            email_sealed=b"-",
            email_index=email_index(services.lookup, email),
            vouched_by=VouchedBy.DEMO,
            login_phc="-",
            totp_sealed=services.sealer.seal(
                seed.encode(), table="login_secret", row=person, column="totp_sealed"
            ),
            signing=SigningSecret(b"-" * 16, {}, 1, "00"),
        )
        async with services.store.write() as transaction:
            await PersonStore(transaction).add(new)
            if state is PersonState.ACTIVE:
                await CredentialStore(transaction).add(
                    new_credential(
                        person,
                        certificate=CERTIFICATE,
                        vouched_by=VouchedBy.OFFICER,
                    )
                )
        return Someone(person, cuil, email, pyotp.TOTP(seed))

    def code(self, someone: Someone) -> str:
        """Their present code, by the desk's clock."""
        return someone.totp.at(self.services.clock.now())

    def claim(self, someone: Someone, **changes: str | None) -> Claim:
        """What a host says of somebody."""
        said: dict[str, Any] = {"email": someone.email, "dni": None}
        said |= {"cuil": someone.cuil, **changes}
        return make_claim(said["email"], said["dni"], said["cuil"])

    async def open(
        self,
        token: str | None = None,
        *,
        idem_key: str | None = None,
        content: str = "the same",
        page: str | None = None,
    ) -> OpenedFrame:
        """Send an init."""
        token = token or await self.token()
        whose = await self.services.sessions.page(token, None)
        return await self.framing.init(
            InitOrder(
                page=page or whose.session_public_id,
                nonce=new_id(),
                idem_key=idem_key,
                token=token,
                claim=Claim("a@b.example", None, "20267565393"),
                sha256=hashlib.sha256(f"{content}{idem_key}".encode()).hexdigest(),
            )
        )

    async def proven(
        self, someone: Someone, pdf: bytes | None = b"%PDF one", **init: Any
    ) -> EmbedSession:
        """A session whose signer has given a right code."""
        session = (await self.open(**init)).view.session
        if pdf is not None:
            view = await self.framing.take_document(session, "a.pdf", pdf)
            session = view.session
        return await self.prove(someone, session)

    async def prove(self, someone: Someone, session: EmbedSession) -> EmbedSession:
        """Have its signer give a right code."""
        await self.framing.identify(session, self.claim(someone), ADDRESS)
        session = await self.again(session)
        self.services.clock.forward(30)
        view = await self.framing.prove(session, self.code(someone), ADDRESS)
        return view.session

    async def again(self, session: EmbedSession) -> EmbedSession:
        """A session as it stands now."""
        async with self.services.store.read() as transaction:
            now = await SessionStore(transaction).get(session.id)
        assert now is not None
        return now

    async def move(
        self,
        request: RequestId | None,
        then: RequestState,
        reason: str = "",
        *,
        sha256: str = "ee" * 32,
    ) -> None:
        """Have a pending request end, as a worker or the reconciler would."""
        assert request is not None
        async with self.services.store.write() as transaction:
            view = await RequestStore(transaction).get(request, lock=True)
            assert view is not None
            await begin_request(transaction, request, "ff" * 32)
            if then is RequestState.IN_PROGRESS:
                return
            if then is RequestState.SIGNED:
                signed = SignedDocumentView(
                    request, view.integrator, "a.pdf", sha256, 5000, "B-B"
                )
                await DocumentStore(transaction).sealed(
                    request, signed, self.services.clock.now()
                )
            await RequestStore(transaction).move(
                request, RequestState.IN_PROGRESS, then, reason
            )


@asynccontextmanager
async def open_frame_services(
    folder: Path, url: str = "sqlite", **top: Any
) -> AsyncIterator[FrameServices]:
    """Build the frame's services over a fresh database."""
    async with open_integrator_services(folder, url, **top) as services:
        settings, store, clock = services.settings, services.store, services.clock
        documents, inspector = (
            LocalBlobStore(folder / "documents", FixedDocumentKeys()),
            FakeInspector(pages=3),
        )
        views = EmbedSessionViews(
            store, clock, settings.verify_url, trial=settings.trial
        )
        throttle = Throttle(store, services.lookup, clock, settings.auth)
        stamping = Stamping(settings.stamp, settings.verify_url)
        requests = Requests(store, documents, inspector, clock, stamping)
        passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots())
        signing = Signing(
            store,
            PasswordAttempts(store, passwords, clock, settings.signing, INSTALLATION),
            services.host.hosts(store, clock),
            stamping,
            FakeWorkNotifier(),
            FakeCompletionNotifier(),
            clock,
            settings.signing,
            Shielded(),
        )
        alone = EmbedSessionSigning(
            store,
            clock,
            views,
            signing,
            requests,
            DownloadLinks(store, services.lookup, clock, 900),
            "https://firma.example",
            stamping,
            inspector,
        )
        await services.integrators.create("operator", CODE, "ACME S.A.")
        made = await services.integrators.create_key("operator", CODE, "backend")
        yield FrameServices(
            services,
            Ceremony(
                store=store,
                documents=documents,
                inspector=inspector,
                clock=clock,
                sessions=services.sessions,
                progress=services.progress,
                identity=EmbedSessionIdentity(
                    store,
                    services.lookup,
                    services.sealer,
                    clock,
                    throttle,
                    services.progress,
                    settings.auth.codes_per_session,
                ),
                frame_requests=EmbedSessionRequests(
                    store, services.lookup, clock, services.progress
                ),
                intake=Intake(store, documents, inspector, clock, settings.documents),
                requests=requests,
                views=views,
                settings=settings.documents,
            ),
            alone,
            EmbedSessionBatches(store, alone, signing, requests, services.progress),
            made.secret,
            documents,
        )


async def refused(work: Awaitable[object], code: ErrorCode) -> ApplianceError:
    """Demand a refusal by its code."""
    with pytest.raises(ApplianceError) as caught:
        await work
    assert caught.value.code is code
    return caught.value

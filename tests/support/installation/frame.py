"""The embed role and its use cases over real storage; only the sandbox is played.

async with open_frame_services(settings) as services:
    opened = await services.open(services.claim(person))

async with open_frame(settings, assets) as frame:
    answer = await frame.page(await frame.services.token())
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyotp
import pytest
from quart import Quart, Response
from quart import typing as quart_typing

from appliance.documents.document_store import DocumentStore
from appliance.domain.embedding import Claim, InitOrder, OpenedFrame, make_claim
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId, new_id
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.people.identity import NewPerson, Person, SigningSecret
from appliance.domain.ports import BlobMaintenance
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import PersonState, RequestState, VouchedBy
from appliance.embedding.batch import EmbedSessionBatches
from appliance.embedding.ceremony import Ceremony
from appliance.embedding.signing import EmbedSessionSigning
from appliance.identity.login import email_index
from appliance.integrators.session_store import SessionStore
from appliance.keys.credential_store import CredentialStore
from appliance.keys.signing_password import ARGON2
from appliance.people.person_store import PersonStore
from appliance.requests.request_store import RequestStore
from appliance.settings import Settings
from embed.app import create_embed
from embed.assets import Assets
from tests.support.documents.software_signer import software_signer
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.installation.record import begin_request, new_credential
from tests.support.installation.services import Services, open_services
from tests.support.installation.settings import merged

ADDRESS = "192.0.2.7"
ORIGINS = ("https://app.example", "https://otra.example:8443")
SECURITY = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
CERTIFICATE = software_signer("Ana Pérez").certificate
CODE = "acme"
USE_CASES: Final[dict[str, Any]] = {
    "trial": True,
    "web": {"base_url": "https://firma.example"},
}
"""Usual settings of the use cases."""
FRAME: Final = merged(
    USE_CASES,
    {
        "web": {"iframe_url": "https://marco.example"},
        "documents": {"limit_bytes": 4096},
    },
)
"""Usual settings of the role."""


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

    services: Services
    key: str
    """An API key of `acme`."""

    @property
    def framing(self) -> Ceremony:
        """The frame's steps until it signs."""
        return self.services.framing

    @property
    def signing(self) -> EmbedSessionSigning:
        """Its last steps, of one document."""
        return self.services.frame_signing

    @property
    def batches(self) -> EmbedSessionBatches:
        """Its last steps, of several."""
        return self.services.frame_batches

    @property
    def documents(self) -> BlobMaintenance:
        """Where documents lie."""
        return self.services.core.documents

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
            signing=SigningSecret(b"-" * 16, ARGON2, 1, "00"),
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


@dataclass
class Frame:
    """The role and its services."""

    services: FrameServices
    app: Quart
    client: quart_typing.TestClientProtocol

    async def page(self, token: str, **headers: str) -> Response:
        """The frame's page for a token."""
        return await self.client.get(f"/embed/?sessionToken={token}", headers=headers)

    async def call(
        self, path: str, bearer: str = "", body: Any = None, **more: Any
    ) -> Response:
        """Call the API."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        headers |= more.pop("headers", {})
        if body is not None:
            more["json"] = body
        method = "POST" if body is not None or "data" in more else "GET"
        return await self.client.open(
            f"/embed/api/{path}", method=method, headers=headers, **more
        )

    async def opened(self) -> tuple[str, dict[str, Any]]:
        """A bearer, and what the page was told with it."""
        token = await self.services.token()
        page = await self.services.services.sessions.page(token, None)
        body = {"page": page.session_public_id, "init": init_of(token)}
        told = await (await self.call("init", body=body)).get_json()
        return told["bearer"], told["session"]


def init_of(token: str, **changes: Any) -> dict[str, Any]:
    """An init payload."""
    payload = {
        "nonce": "n",
        "idemKey": "k",
        "sessionToken": token,
        "userData": {"cuil": "20-26756539-3", "email": "a@b.example", "phone": ""},
    }
    return {**payload, **changes}


@asynccontextmanager
async def open_frame_services(settings: Settings) -> AsyncIterator[FrameServices]:
    """Open the frame's services over a fresh database, with the integrator `acme`."""
    async with open_services(settings, FakeInspector(pages=3)) as services:
        await services.integrators.create("operator", CODE, "ACME S.A.")
        made = await services.integrators.create_key("operator", CODE, "backend")
        yield FrameServices(services, made.secret)


@asynccontextmanager
async def open_frame(settings: Settings, assets: Assets) -> AsyncIterator[Frame]:
    """Open the role over fresh storage, with two registered origins."""
    async with open_frame_services(settings) as frame_services:
        services = frame_services.services
        for origin in ORIGINS:
            await services.integrators.add_domain("operator", CODE, origin)
        app = create_embed(services, assets)
        yield Frame(frame_services, app, app.test_client())


async def text(answer: Response) -> str:
    """The body of an answer."""
    body: str = await answer.get_data(as_text=True)
    return body


async def problem(answer: Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    told = await answer.get_json()
    return answer.status_code, told["code"]


async def refused(work: Awaitable[object], code: ErrorCode) -> ApplianceError:
    """Demand a refusal by its code."""
    with pytest.raises(ApplianceError) as caught:
        await work
    assert caught.value.code is code
    return caught.value

"""People who sign one document, by a worker and a sandbox that are played.

scene = Scene(core, people, requests)
await scene.sign(0)
"""

from dataclasses import dataclass, field, replace

import pytest

from appliance.appearance.content import Stamping
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.ports import DocumentBytes, DocumentStream
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import RequestState
from appliance.requests.inspection import Inspections
from appliance.signing.claims import Publication
from appliance.signing.requests import Requests
from appliance.signing.signing_order import SigningOrder
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.fakes import PDF, FixedDocumentKeys, stream_of
from tests.support.installation.record import (
    A4,
    CERTIFICATE,
    CoreFixture,
    keyed,
    prepared,
    signed_view,
)

TWICE_SIGNED = Inspection(2000, (A4,), (), signatures=1, docmdp=None)
"""What is seen of any file."""


@dataclass
class OwnSandbox(PlayedSandbox):
    """Describes every file alike, or refuses it as told."""

    grows: bool = False
    """Whether each file is larger than the one before."""
    refusal: ApplianceError | None = None
    asked: list[bytes] = field(default_factory=list)

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """As a sandbox does."""
        self.asked.append(bytes(pdf))
        if self.refusal is not None:
            raise self.refusal
        if self.grows:
            count = len(self.asked)
            return replace(TWICE_SIGNED, size_bytes=2000 + count, signatures=count)
        return TWICE_SIGNED


def one_document(core: CoreFixture) -> LocalBlobStore:
    """A store whose one file is given out under every name."""

    class OneDocument(LocalBlobStore):
        """Holds one file for whoever asks."""

        async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
            """Give the one file."""
            del integrator, sha256
            return PDF

        async def stream(self, integrator: IntegratorId, sha256: str) -> DocumentStream:
            """Give it in pieces."""
            del integrator, sha256
            return stream_of(PDF)

    return OneDocument(core.settings.documents_dir, FixedDocumentKeys())


def inspections_of(core: CoreFixture, sandbox: OwnSandbox) -> Inspections:
    """Of that one file, by that sandbox."""
    return Inspections(core.store, one_document(core), sandbox, core.clock)


@dataclass
class Scene:
    """People and the document that they sign in turn."""

    core: CoreFixture
    people: list[Signer]
    requests: list[RequestId]
    sandbox: OwnSandbox = field(default_factory=OwnSandbox)

    @property
    def turns(self) -> SigningOrder:
        """Whose turn it is."""
        inspections = inspections_of(self.core, self.sandbox)
        return SigningOrder(self.core.store, inspections, self.core.clock)

    @property
    def services(self) -> Requests:
        """What signers and operators do."""
        core = self.core
        stamping = Stamping(core.settings.stamp, core.settings.verify_url)
        return Requests(
            core.store, one_document(core), self.sandbox, core.clock, stamping
        )

    async def states(self) -> list[RequestState]:
        """Of all."""
        return [state for state, _ in await self.core.request_states(self.requests)]

    async def sign(self, at: int, *, inspects: bool = True) -> None:
        """A worker signs one, and can ask the sandbox or cannot."""
        await self.begin(at)
        await self.publish(at, inspects=inspects)

    async def begin(self, at: int) -> None:
        """One has typed their password."""
        await self.core.begin(self.people[at], [self.requests[at]])

    async def publish(self, at: int, *, inspects: bool = True) -> None:
        """A worker signs what one has begun."""
        worker = self.core.claiming()
        work = await worker.claim_next()
        assert work is not None
        (item,) = work.claim.documents
        await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        await worker.record_signatures(work.claim, [keyed(item)])
        view = await self.core.view(item.request)
        inspection = None
        if inspects and view.followed:
            inspection = await self.turns.inspect_for_next(view, PDF)
        signed = replace(signed_view(view), sha256=f"{at + 10:064x}")
        assert await worker.publish(work.claim, [Publication(item, signed, inspection)])

    async def no_document(self, at: int) -> tuple[ErrorCode, object]:
        """Why one has no signed document, for its signer and by a link alike."""
        told = []
        for person in (self.people[at].person, None):
            with pytest.raises(ApplianceError) as refused:
                await self.services.signed(person, self.requests[at])
            told.append((refused.value.code, refused.value.params.get("estado")))
        with pytest.raises(ApplianceError) as refused:
            await self.services.download("operator", self.requests[at], signed=True)
        told.append((refused.value.code, refused.value.params.get("estado")))
        assert len(set(told)) == 1
        return told[0]

    async def fail(self, at: int) -> None:
        """A worker gives one up."""
        await self.begin(at)
        worker = self.core.claiming()
        work = await worker.claim_next()
        assert work is not None
        items = list(work.claim.documents)
        await worker.failed(work.claim, items, ErrorCode.SIGNING_FAILED)

    async def give_back(self) -> None:
        """A worker gives what was begun back to its signer."""
        worker = self.core.claiming()
        work = await worker.claim_next()
        assert work is not None
        items = list(work.claim.documents)
        await worker.returned(work.claim, items, ErrorCode.SIGNING_FAILED)

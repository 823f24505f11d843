"""A preset that is asked for, held to its document, by the sandbox itself.

Source: docs/api.md, "The look and place of a signature".
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from appliance.appearance.content import Stamping
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.documents.inspected import FoundText, PageBox, TextSearch
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import DocumentId, PersonId, RequestId, new_id
from appliance.domain.people.identity import Person
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.preset import (
    Anchor,
    SignaturePreset,
    StampDefaults,
    WishedPreset,
)
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import EventKind, PersonState, Restriction, StampDesign
from appliance.requests.history_store import HistoryStore
from appliance.requests.presets import Presets
from appliance.signing.requests import Requests
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.pdf_samples import make_pdf
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.fakes import FixedDocumentKeys
from tests.support.installation.record import CoreFixture
from tests.support.services.sandbox_server import SandboxServer, running_sandbox

C = ErrorCode
OF = GivenParameters.of
ANA = Person(PersonId("p"), "20267565393", "Ana Pérez", PersonState.ACTIVE, "es")
THREE = make_pdf([PageBox(0, 0, 595, 842, 0)] * 3)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


@dataclass
class Desk:
    """What settles presets and shows them, over real parts."""

    core: CoreFixture
    sandbox: SandboxServer
    documents: LocalBlobStore

    @property
    def stamping(self) -> Stamping:
        """What stamps show."""
        settings = self.core.settings
        return Stamping(settings.stamp, settings.verify_url)

    async def keep(self, pdf: bytes) -> StoredDocument:
        """A document that came in."""
        integrator = await self.core.integrator()
        sha256 = await self.documents.put(integrator, pdf)
        inspection = await self.sandbox.client.inspect(pdf)
        return StoredDocument(DocumentId(new_id()), integrator, sha256, inspection)

    async def settle(
        self, wished: WishedPreset, pdf: bytes = THREE, **how: Any
    ) -> SignaturePreset:
        """Hold a preset to a document."""
        presets = Presets(
            self.core.store,
            self.documents,
            self.sandbox.client,
            self.core.clock,
            self.stamping,
        )
        return await presets.settle(await self.keep(pdf), wished, ANA, **how)

    async def refusal(
        self, wished: WishedPreset, pdf: bytes = THREE, **how: Any
    ) -> ApplianceError:
        """How one is refused."""
        with pytest.raises(ApplianceError) as caught:
            await self.settle(wished, pdf, **how)
        return caught.value


@pytest.fixture
def desk(sqlite_core: CoreFixture, sandbox: SandboxServer) -> Desk:
    """On SQLite."""
    documents = LocalBlobStore(sqlite_core.settings.documents_dir, FixedDocumentKeys())
    return Desk(sqlite_core, sandbox, documents)


async def test_last_page_becomes_its_number(desk: Desk) -> None:
    """And what else was said stays."""
    wished = WishedPreset(OF(x=40, y=60, font_color="BLUE"), fixed=True, last_page=True)

    settled = await desk.settle(wished)

    given = OF(page=3, x=40, y=60, font_color="BLUE")
    usual = StampDefaults(StampDesign.CLASSIC, qr=False)
    assert settled == SignaturePreset(given, fixed=True, defaults=usual)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
async def test_anchor_becomes_the_point_below_its_text(desk: Desk, rotate: int) -> None:
    """As the page is seen: turned, cropped, in whole points that do not touch it."""
    box = PageBox(100, 100, 600, 700, rotate)
    pdf = make_pdf([replace(box, rotate=0), box], media=(0, 0, 700, 800))
    wished = WishedPreset(OF(), anchor=Anchor("Page 2"))

    settled = (await desk.settle(wished, pdf)).given
    moved = await desk.settle(
        WishedPreset(OF(), anchor=Anchor("Page 2", dx=-7, dy=5)), pdf
    )

    params = settled.params
    assert settled.names == {"page", "x", "y"}
    assert params.page == 2
    # From the middle of the page: 1 to 56 pt along, from 4 pt below to 13 above.
    x, y = params.x, params.y
    assert x is not None
    assert y is not None
    left, bottom = {
        0: (250 + 1, 300 + 4),
        90: (300 - 4, 250 + 56),
        180: (250 - 56, 300 + 13),
        270: (300 - 13, 250 - 1),
    }[rotate]
    assert (x, y) == pytest.approx((left, bottom), abs=2)
    assert moved.given.params == replace(params, x=x - 7, y=y + 5)


async def test_anchor_is_looked_for_on_its_page_alone(desk: Desk) -> None:
    """That page may be the last one; which of several is counted."""
    anchor = Anchor("Page")

    every = [
        await desk.settle(wished)
        for wished in (
            WishedPreset(OF(), anchor=anchor),
            WishedPreset(OF(), anchor=replace(anchor, occurrence=2)),
            WishedPreset(OF(page=2), anchor=anchor),
            WishedPreset(OF(), last_page=True, anchor=anchor),
        )
    ]

    assert [each.given.params.page for each in every] == [1, 2, 2, 3]


async def test_anchor_that_is_not_there_is_told_with_its_text(desk: Desk) -> None:
    """Whether the document was searched whole, or was too long for that."""
    refused = await desk.refusal(WishedPreset(OF(), anchor=Anchor("Firma de X")))
    assert refused.code is C.STAMP_ANCHOR_NOT_FOUND
    assert refused.params == {"text": "Firma de X"}
    assert refused.extras == {"field": "ancla"}

    long = make_pdf([PageBox(0, 0, 200, 200, 0)] * 501)
    beyond = await desk.refusal(WishedPreset(OF(), anchor=Anchor("Page 501")), long)
    assert beyond.code is C.STAMP_ANCHOR_NOT_FOUND
    assert "too long" in beyond.sentence


@pytest.mark.parametrize(
    ("wished", "code"),
    [
        (WishedPreset(OF(page=4)), C.PAGE_OUT_OF_RANGE),
        (WishedPreset(OF(page=4), anchor=Anchor("Page")), C.PAGE_OUT_OF_RANGE),
        (WishedPreset(OF(x=594, y=0)), C.POSITION_OUT_OF_PAGE),
        (WishedPreset(OF(), anchor=Anchor("Page", dy=500)), C.POSITION_OUT_OF_PAGE),
        (WishedPreset(OF(), anchor=Anchor("Page", dx=-500)), C.POSITION_OUT_OF_PAGE),
        (WishedPreset(OF(field="Firma")), C.SIGNATURE_FIELD_NOT_FOUND),
    ],
)
async def test_preset_that_cannot_be_is_refused_as_firmar_would(
    desk: Desk, wished: WishedPreset, code: ErrorCode
) -> None:
    """When the request is made, and not when its signer comes."""
    assert (await desk.refusal(wished)).code is code


async def test_field_and_certification_are_checked_as_well(desk: Desk) -> None:
    """By what the document permits, and by who signs before and after."""
    pdf = with_fields(Field(), Field("Otra", lock={"Action": "/All"}))
    certified = WishedPreset(OF(restriction=Restriction.NO_CHANGES_ALLOWED))
    other = WishedPreset(OF(field="Otra"))

    settled = await desk.settle(WishedPreset(OF(field="Firma")), pdf)
    assert settled.given == OF(field="Firma")
    assert (await desk.settle(certified)).given == certified.given
    for wished, how, code in (
        (certified, "followed", C.SIGNERS_LOCKED_OUT),
        (certified, "preceded", C.PDF_ALREADY_SIGNED),
        (other, "followed", C.SIGNERS_LOCKED_OUT),
    ):
        assert (await desk.refusal(wished, pdf, **{how: True})).code is code


@pytest.mark.parametrize("page", [0, 4])
async def test_sandbox_that_was_taken_over_can_answer_wrongly_and_nothing_else(
    desk: Desk, page: int
) -> None:
    """A page that the document does not have is none."""

    class Lying(PlayedSandbox):
        """Finds everything on one page."""

        async def find_text(self, *_: Any, **__: Any) -> TextSearch:
            """As it likes."""
            return TextSearch(FoundText(page, (0.0, 0.0, 1.0, 1.0)))

    core = desk.core
    presets = Presets(core.store, desk.documents, Lying(), core.clock, desk.stamping)
    with pytest.raises(ApplianceError) as caught:
        await presets.settle(
            await desk.keep(THREE), WishedPreset(OF(), anchor=Anchor("Page")), ANA
        )

    assert caught.value.code is C.SANDBOX_UNAVAILABLE


async def test_preview_shows_the_preset_and_what_the_call_gives_instead(
    desk: Desk,
) -> None:
    """A fixed one is shown as it is, and not otherwise."""
    core = desk.core
    signer = await core.add_signer()
    document = await desk.keep(THREE)
    asked = OF(page=3, x=40, y=60, zoom_percent=50)

    async def request(*, fixed: bool) -> RequestId:
        return await core.add_request(
            signer.person,
            preset=SignaturePreset(asked, fixed),
            sha256=document.sha256,
            inspection=document.inspection,
        )

    services = Requests(
        core.store, desk.documents, desk.sandbox.client, core.clock, desk.stamping
    )
    free, fixed = await request(fixed=False), await request(fixed=True)
    for each in (free, fixed):
        shown = await services.preview(signer.person, each, OF())
        assert shown.layout is not None
        assert (shown.page, shown.layout.x, shown.layout.y) == (3, 40, 60)
        assert shown.layout.font_size_pt == 6
    moved = await services.preview(signer.person, free, OF(x=1, y=2, page=2))
    assert moved.layout is not None
    assert (moved.page, moved.layout.x, moved.layout.font_size_pt) == (2, 1, 6)
    unseen = await services.preview(signer.person, free, OF(visible=False))
    assert (unseen.page, unseen.layout) == (3, None)
    with pytest.raises(ApplianceError) as caught:
        await services.preview(signer.person, fixed, OF(page=2))
    assert caught.value.code is C.PRESET_FIXED


async def test_first_preview_of_a_document_is_in_the_history(desk: Desk) -> None:
    """The signer was shown a page of it; each change of the stamp tells no more."""
    core = desk.core
    signer = await core.add_signer()
    document = await desk.keep(THREE)
    request = await core.add_request(
        signer.person, sha256=document.sha256, inspection=document.inspection
    )
    services = Requests(
        core.store, desk.documents, desk.sandbox.client, core.clock, desk.stamping
    )

    for page in (1, 2, 2):
        await services.preview(signer.person, request, OF(page=page))

    async with core.store.read() as transaction:
        history = await HistoryStore(transaction).of_requests([request])
    viewed = [each for each in history if each.event is EventKind.REQUEST_VIEWED]
    assert [each.detail for each in viewed] == [{"documentSha256": document.sha256}]

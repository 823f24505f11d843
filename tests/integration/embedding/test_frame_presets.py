"""Sessions whose request brings look and place, over the frame's services.

Source: docs/frame.md; docs/api.md, "The look and place of a signature".
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.presets import Corner
from appliance.domain.embedding import PlaceChoice
from appliance.domain.errors import ErrorCode, FieldInvalidError
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.requests.intake import NewRequest
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import Restriction
from appliance.requests.request_store import RequestStore
from embed import wire
from tests.support.factories.fake_sandbox import CERTIFIED, FULL
from tests.support.installation.frame import FrameServices, refused
from tests.support.installation.installation import Installation

C = ErrorCode
OF = GivenParameters.of
TOP_LEFT = PlaceChoice(Corner.TOP_LEFT, 1)
ASKED = PlaceChoice(Corner.BOTTOM_LEFT, 1, preset=True)
PDF = b"%PDF one"


@pytest.fixture
async def frame_services(tmp_path: Path) -> AsyncIterator[FrameServices]:
    """The frame's services on SQLite."""
    async with Installation(tmp_path).frame_services() as made:
        yield made


async def picked(
    services: FrameServices,
    given: GivenParameters,
    pdf: bytes = PDF,
    *,
    fixed: bool = False,
) -> EmbedSession:
    """A session whose signer picked a request with such a preset."""
    someone = await services.add_person()
    taken = await services.framing.take_document(
        (await services.open()).view.session, "a.pdf", pdf
    )
    assert taken.session.document is not None
    async with services.services.store.write() as transaction:
        stored = await DocumentStore(transaction).get(taken.session.document)
        assert stored is not None
        request: RequestId = await RequestStore(transaction).add(
            NewRequest(
                person=someone.id,
                integrator=stored.integrator,
                document=stored.id,
                name="a.pdf",
                origin="operador",
                created=services.services.clock.now(),
                expires=None,
                preset=SignaturePreset(given, fixed),
            )
        )
    session = await services.proven(someone, None)
    return (await services.framing.choose(session, request)).session


async def proposed(services: FrameServices, session: EmbedSession) -> Any:
    """What the page is told of the preset."""
    view = await services.signing.view(session)
    document: Any = wire.snapshot(view, "es")["document"]
    return document["preset"]


async def test_proposal_is_the_preset_and_other_places_keep_its_look(
    frame_services: FrameServices,
) -> None:
    """Whatever the signer chooses, who asked for it said how it looks."""
    given = OF(page=2, x=40, y=60, font_color="BLUE", font_size=20, reason="Alta")
    session = await picked(frame_services, given)
    place = frame_services.signing.placement

    assert await proposed(frame_services, session) == {"fixed": False}
    assert (await place(session, ASKED)).params == given.params
    corner = (await place(session, TOP_LEFT)).params
    assert (corner.page, corner.font_size, corner.reason) == (1, 20, "Alta")
    assert (corner.x, corner.y) == (18, 18)
    anywhere = PlaceChoice(Corner.BOTTOM_LEFT, 2, x=99.0, y=100.0)
    put = (await place(session, anywhere)).params
    assert put == given.also(x=99, y=100).params
    unseen = (await place(session, PlaceChoice(Corner.NONE, 1))).params
    assert (unseen.visible, unseen.x, unseen.page) == (False, None, 1)


async def test_zoom_of_a_look_is_the_most_that_another_place_has(
    frame_services: FrameServices,
) -> None:
    """It is made smaller where the page is small, and never larger."""
    place = frame_services.signing.placement
    small = await picked(frame_services, OF(zoom_percent=50))
    for choice in (TOP_LEFT, PlaceChoice(Corner.NONE, 1, x=1.0, y=1.0)):
        assert (await place(small, choice)).params.zoom_percent == 50

    # The page is told nothing of what is no place.
    assert await proposed(frame_services, small) is None


async def test_look_too_large_for_the_page_is_scaled_to_it(
    frame_services: FrameServices,
) -> None:
    """As a mark of the usual size is on a small page."""
    large = await picked(frame_services, OF(font_size=72, zoom_percent=200))
    placed = await frame_services.signing.placement(large, TOP_LEFT)

    assert placed.params.zoom_percent < 200
    assert placed.layout is not None
    assert placed.layout.x + placed.layout.width <= 595


@pytest.mark.parametrize(
    "choice",
    [
        TOP_LEFT,
        PlaceChoice(Corner.NONE, 1),
        PlaceChoice(Corner.TOP_LEFT, 1, field="Firma"),
        PlaceChoice(Corner.TOP_LEFT, 2, x=1.0, y=1.0),
    ],
)
async def test_fixed_place_is_not_the_signers_to_choose(
    frame_services: FrameServices, choice: PlaceChoice
) -> None:
    """Its own is placed all the same."""
    given = OF(page=2, x=40, y=60)
    session = await picked(frame_services, given, fixed=True)

    await refused(frame_services.signing.placement(session, choice), C.PRESET_FIXED)
    assert await proposed(frame_services, session) == {"fixed": True}
    placed = await frame_services.signing.placement(session, ASKED)
    assert placed.params == given.params


async def test_request_without_a_preset_has_none_to_be_asked_for(
    frame_services: FrameServices,
) -> None:
    """Nor has a document that the frame took in."""
    session = await frame_services.proven(await frame_services.add_person())

    assert await proposed(frame_services, session) is None
    with pytest.raises(FieldInvalidError, match="preset"):
        await frame_services.signing.placement(session, ASKED)


async def test_certified_document_takes_a_proposal_as_it_permits(
    frame_services: FrameServices,
) -> None:
    """In its own field; what is fixed gives no way."""
    given = OF(page=1, x=40, y=60, font_color="RED")
    free = await picked(frame_services, given, CERTIFIED)

    placed = await frame_services.signing.placement(free, ASKED)
    assert (placed.params.field, placed.params.font_color) == ("Firma", "RED")
    # Whom the document itself gives a field in, keeps the look there.
    own = PlaceChoice(Corner.TOP_LEFT, 1, field="Firma")
    chosen = (await frame_services.signing.placement(free, own)).params
    assert chosen == SignParameters(field="Firma", font_color="RED")


async def test_fixed_place_that_the_document_does_not_permit_is_refused(
    frame_services: FrameServices,
) -> None:
    """By the code that firmar has for it."""
    fixed = await picked(frame_services, OF(x=1, y=1), FULL, fixed=True)
    await refused(frame_services.signing.placement(fixed, ASKED), C.PDF_CERTIFIED)


async def test_certifying_preset_of_a_signed_document_is_refused(
    frame_services: FrameServices,
) -> None:
    """Before the password, as firmar does."""
    given = OF(restriction=Restriction.FORM_FILLING, field="Firma")
    session = await picked(frame_services, given, CERTIFIED)
    await refused(
        frame_services.signing.placement(session, ASKED), C.PDF_ALREADY_SIGNED
    )

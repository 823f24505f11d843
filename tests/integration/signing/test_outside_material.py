"""Documents that are kept by what servers outside say, as another role fetched it.

Source: docs/signing.md "Material from outside"; reliability F22, F24.
"""

from collections.abc import AsyncIterator

import pytest

from appliance.domain.ids import UPKEEP
from appliance.domain.vocab import SignatureLevel
from tests.integration.signing.level_scene import L
from tests.integration.signing.outside_scene import OutsideScene, outside_scene
from tests.support.documents.validators import pyhanko_valid
from tests.support.installation.record import CoreFixture
from tests.support.services.fake_ca import Says
from tests.support.services.fake_tsa import Mode
from worker.pades.appearance.fonts import StampFonts


@pytest.fixture
async def scene(core: CoreFixture, fonts: StampFonts) -> AsyncIterator[OutsideScene]:
    """On each database."""
    async with outside_scene(core, fonts) as made:
        yield made


@pytest.mark.parametrize(
    ("wanted", "rounds", "stamps"), [(L.B_T, 1, 1), (L.B_LT, 1, 1), (L.B_LTA, 2, 2)]
)
async def test_each_level_is_reached_by_what_was_fetched(
    scene: OutsideScene, wanted: SignatureLevel, rounds: int, stamps: int
) -> None:
    """By one revision after another; each server is asked once for each."""
    request = await scene.publish(wanted)
    _, before = await scene.inside.newest(request)

    assert await scene.kept() == rounds

    view, pdf = await scene.inside.newest(request)
    assert (view.version, view.level) == (2, wanted)
    assert pdf.startswith(before)
    assert pdf.count(b"/DocTimeStamp") == scene.tsa.asked == stamps
    assert (b"/DSS" in pdf) == (wanted is not L.B_T)
    assert all(work.startswith(UPKEEP) for work in scene.rung.works)
    # What it needed is of no more use.
    assert await scene.materials() == []


async def test_archived_document_is_stamped_anew(scene: OutsideScene) -> None:
    """When its timestamp ends; by data of the TSA outside that is younger than that."""
    request = await scene.publish(L.B_LTA)
    await scene.kept()
    view, first = await scene.inside.newest(request)
    at = scene.inside.clock.now()
    roots = [scene.tsa.authority.root, scene.inside.pki.chain[-1]]
    assert pyhanko_valid(first, roots)

    due = await scene.inside.due(request)
    assert due is not None
    assert due.outside
    scene.inside.clock.at = scene.core.clock.at = max(due.due, at)
    await scene.inside.publish_crls()
    assert await scene.kept() >= 1

    view, renewed = await scene.inside.newest(request)
    assert (view.version, view.level) == (3, L.B_LTA)
    assert renewed.startswith(first)
    assert renewed.count(b"/DocTimeStamp") == first.count(b"/DocTimeStamp") + 1
    assert pyhanko_valid(renewed, roots)


async def test_what_is_away_is_asked_for_at_the_next_try(scene: OutsideScene) -> None:
    """Each time anew; the audit has the first failure in a row."""
    request = await scene.publish(L.B_LT)
    scene.tsa.mode = Mode.HTTP_ERROR
    for _ in range(2):
        assert await scene.kept() == -1
        scene.inside.clock.forward(100)
        scene.core.clock.forward(100)
    audited = await scene.core.audited()
    assert audited.count("document.upkeep_failed") == 1

    scene.tsa.mode = Mode.GOOD
    scene.inside.clock.forward(200)
    scene.core.clock.forward(200)
    assert await scene.kept() >= 0
    view, _ = await scene.inside.newest(request)
    assert view.level == L.B_LT


async def test_timestamp_comes_without_the_status_of_who_made_it(
    scene: OutsideScene,
) -> None:
    """A CA that does not answer: B-T now, and B-LT later."""
    request = await scene.publish(L.B_LT)
    scene.site.ocsp = scene.site.crl = Says.OFF
    assert await scene.kept() >= 0
    view, stamped = await scene.inside.newest(request)
    assert (view.version, view.level) == (2, L.B_T)

    scene.site.ocsp = scene.site.crl = Says.GOOD
    scene.inside.clock.forward(60)
    scene.core.clock.forward(60)
    assert await scene.kept() >= 0
    view, pdf = await scene.inside.newest(request)
    assert (view.version, view.level) == (3, L.B_LT)
    assert pdf.startswith(stamped)


async def test_answer_without_an_end_is_good_for_what_it_was_asked_for(
    scene: OutsideScene,
) -> None:
    """Of a responder that names no nextUpdate."""
    request = await scene.publish(L.B_LT)
    scene.site.ocsp, scene.site.crl = Says.NO_NEXT_UPDATE, Says.OFF
    assert await scene.kept() >= 0
    view, _ = await scene.inside.newest(request)
    # The list of the root is missing, and with it what proves the CA between.
    assert view.level in {L.B_T, L.B_LT}

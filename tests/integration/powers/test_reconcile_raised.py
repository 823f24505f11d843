"""`rubrica audit reconcile` after level upkeep made a later version of a document."""

from appliance.domain.audit.reconciliation import Check
from appliance.reconciliation.reconcile import Reconciliation
from tests.integration.signing.level_scene import DAY, L, P, a_moment_ago, make_scene
from tests.integration.signing.level_scene import profile as profile_of
from tests.support.installation.record import CoreFixture
from worker.pades.appearance.fonts import StampFonts


async def test_version_that_upkeep_made_is_explained(
    core: CoreFixture, fonts: StampFonts
) -> None:
    """The audit names its SHA-256 as what the document is after the raise."""
    scene = await make_scene(core, fonts, a_moment_ago() - 2 * DAY)
    pdf, reached = await scene.sign(profile_of(L.B_LTA, P.PREFERRED))
    request = await scene.publish(pdf, reached)
    scene.clock.forward(int(DAY.total_seconds()))
    await scene.publish_crls()

    assert await scene.upkeep().run() == 1

    view, _ = await scene.newest(request)
    assert view.version == 2
    unrecorded = [
        finding.reason
        async for finding in Reconciliation(core.store).findings()
        if finding.check is Check.VERSION_UNRECORDED
    ]
    assert [reason for reason in unrecorded if view.sha256 in reason] == []

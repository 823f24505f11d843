"""The chores around ends: each at its pace, and what the log says."""

from collections.abc import Sequence
from datetime import timedelta

from structlog.testing import capture_logs

from appliance.console.expiry_notices import Expiry
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.pki.automatic_renewal import AutoRenewal
from appliance.pki.certificates import Certificates
from appliance.record.unit_of_work import Transaction
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import hold
from tests.support.installation.record import CoreFixture
from worker.pki.expiry_notices import Ends


async def no_own(transaction: Transaction) -> Sequence[tuple[ExpiringKind, bytes]]:
    """An installation without a CA."""
    del transaction
    return ()


async def test_ends_are_logged_and_renewed(sqlite_core: CoreFixture) -> None:
    """One warning a step, with id and days and no name; one renewal."""
    core = sqlite_core
    signer = await core.add_signer(credential=False)
    held = await hold(
        core.store,
        signer.person,
        "20267565393",
        NOON,
        not_before=NOON - timedelta(days=500),
        not_after=NOON + timedelta(days=20),
    )
    certificates = Certificates(core.store, core.clock)
    ends = Ends(
        Expiry(core.store, core.clock, no_own),
        AutoRenewal(
            core.store,
            certificates,
            core.clock,
            30,
            lambda: NOON + timedelta(days=3650),
        ),
        core.clock,
    )

    with capture_logs() as logs:
        for _ in range(3):
            await ends.run()
        core.clock.forward(21 * 86_400)
        await ends.run()

    assert [(entry["event"], entry.get("days")) for entry in logs] == [
        ("certificates.renewing", None),
        ("certificate.expiring", 30),
        ("certificate.expired", 0),
    ]
    assert logs[1]["id"] == held.id
    assert "Ana" not in str(logs)

"""Preparing batches over the services of a face, as the chores role does.

await prepare_batches(services)
"""

from appliance.integration.batches.preparation import BatchPreparation, Turn
from tests.support.installation.services import Services
from worker.batch_preparer import batch_preparation

SLOT = "chores/test/0"


def preparation_of(services: Services) -> BatchPreparation:
    """The use cases of a worker that was just started.

    Args:
        services: whose batches it prepares.
    """
    return batch_preparation(services.core, SLOT)


async def prepare_batches(
    services: Services, preparation: BatchPreparation | None = None
) -> None:
    """Prepare all batches that wait, to their end.

    Args:
        services: whose they are.
        preparation: of a worker that runs already; None: of a new one.
    """
    worker = preparation or preparation_of(services)
    while (claim := await worker.claim_next()) is not None:
        if await worker.take_turn(claim, 600.0) is Turn.UNFINISHED:
            await worker.let_go(claim)

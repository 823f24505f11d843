"""Claims of activations, as workers on one host make them."""

from datetime import timedelta
from typing import Any

from appliance.domain.errors import ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.outside_material import (
    MaterialKind,
    WantedMaterial,
    timestamp_subject,
)
from appliance.domain.signing.activation import Claim, IntentRow, LeasePolicy
from appliance.domain.vocab import IntentState
from appliance.signing.activations.activation_queue import ActivationQueue
from tests.support.installation.record import HOST, CoreFixture

TERMS = LeasePolicy(
    host=HOST,
    lease=timedelta(seconds=10),
    key=timedelta(seconds=60),
    finish=timedelta(seconds=600),
    attempts=10,
    suspect=5,
)


async def claim(core: CoreFixture, owner: str = "signing/h/1/p") -> Claim | None:
    """Claim in a transaction of its own."""
    async with core.store.write() as transaction:
        return await ActivationQueue(transaction).claim_next(owner, core.now, TERMS)


async def claimed(core: CoreFixture, owner: str = "signing/h/1/p") -> Claim:
    """Claim something that is there."""
    found = await claim(core, owner)
    assert found is not None
    return found


def a_timestamp(imprint: bytes = bytes(32), **values: Any) -> WantedMaterial:
    """A timestamp that a signing worker wants of an authority outside."""
    subject = timestamp_subject(
        ["tsa.example"], imprint, DigestAlgorithm.SHA256, is_proven=False
    )
    return WantedMaterial(
        MaterialKind.TIMESTAMP, subject, ErrorCode.TSA_UNAVAILABLE, **values
    )


def ended(intents: list[IntentRow]) -> list[tuple[int, int, IntentState]]:
    """Attempt, item and state of each intent."""
    return [(intent.attempt, intent.item, intent.state) for intent in intents]

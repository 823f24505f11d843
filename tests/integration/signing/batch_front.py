"""Signing many by one command: a face's part, and a worker to be told what to do."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, TypeVarTuple

from appliance.domain.ids import RequestId
from appliance.domain.requests.request import Signer
from appliance.domain.requests.signing_batch import BatchOutcome, SignBatch
from appliance.domain.signing.activation import Claim
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.keys.password_hashing import HashSlots
from appliance.settings import SigningSettings
from appliance.signing.sign_batch import BatchSigning
from appliance.system.background import Shielded
from tests.support.factories.signing_front import SigningFront, front_of, sign_next
from tests.support.factories.signing_host import SigningHost
from tests.support.installation.record import (
    PASSWORD,
    CoreFixture,
)

Result = TypeVar("Result")
Given = TypeVarTuple("Given")


class CountedSlots(HashSlots):
    """Says how often Argon2 was computed."""

    def __init__(self) -> None:
        super().__init__(1)
        self.computed = 0

    async def run(
        self, work: Callable[[*Given], Result], *given: *Given, first: bool = False
    ) -> Result:
        """Count it and do it."""
        self.computed += 1
        return await super().run(work, *given, first=first)


@dataclass
class BatchFront:
    """A face's part of signing many, and a worker to be told what to do."""

    front: SigningFront
    signing: BatchSigning
    slots: CountedSlots

    @property
    def core(self) -> CoreFixture:
        """The record."""
        return self.front.core

    @property
    def signer(self) -> Signer:
        """Who signs."""
        return self.front.signer

    @property
    def host(self) -> SigningHost:
        """What it seals to."""
        return self.front.host

    @property
    def shielded(self) -> Shielded:
        """What goes on when a caller leaves."""
        return self.front.shielded

    async def requests(self, count: int, **changes: Any) -> list[RequestId]:
        """As many requests of the front's person."""
        person = self.signer.person
        return [await self.core.add_request(person, **changes) for _ in range(count)]

    def batch(
        self,
        requests: Sequence[RequestId],
        params: SignParameters | None = None,
        password: bytes = PASSWORD,
        key: str | None = None,
    ) -> SignBatch:
        """A call of firmar/lote."""
        given = GivenParameters.all_of(params or SignParameters())
        return SignBatch(tuple(requests), given, password, key)

    async def sign(self, batch: SignBatch) -> BatchOutcome:
        """Call, to the end."""
        return await self.signing.sign(batch, self.signer)

    async def signed(self, batch: SignBatch, refuse: int | None = None) -> BatchOutcome:
        """Call, a worker doing its part.

        Args:
            batch: what is signed.
            refuse: the item that the worker gives back instead, if any.
        """
        notified = len(self.core.work_notifier.notified)
        call = asyncio.create_task(self.sign(batch))
        async with asyncio.timeout(60):
            await self.core.work_notifier.heard(notified + 1)
        await self.work_off(refuse)
        return await call

    async def work_off(self, refuse: int | None = None) -> Claim:
        """A worker claims the oldest activation and signs it."""
        claim = await sign_next(self.core, refuse)
        assert claim is not None
        return claim


async def batch_front_of(core: CoreFixture, **settings: float) -> BatchFront:
    """With a person who can sign and a worker alive."""
    slots = CountedSlots()
    front = await front_of(core, slots, **settings)
    slots.computed = 0
    limits = SigningSettings.model_validate({"wait_s": 60, **settings})
    signing = BatchSigning(core.store, front.signing, core.clock, limits)
    return BatchFront(front, signing, slots)

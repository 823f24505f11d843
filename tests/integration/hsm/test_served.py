"""Whether a worker may use the HSM's keys, over the real record.

Source: docs/backup.md "One HSM, one record".
"""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.generation import NONE, Generation
from appliance.domain.keys.hsm_keys import DigestAlgorithm, SignatureScheme
from appliance.record.installation_store import RESTORED, InstallationStore
from tests.support.installation.record import CoreFixture
from worker.hsm import generation_check as served
from worker.hsm.connection import HsmStatus
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession, SignedDigests
from worker.signing.document_signer import DocumentSigner


@dataclass
class PlayedHsm:
    """An HSM of a take-over."""

    status: HsmStatus = HsmStatus.READY
    served: Generation = NONE
    signed: list[bytes] = field(default_factory=list)

    async def generation(self) -> Generation:
        """It."""
        return self.served

    async def sign_all(
        self, key: object, digests: list[bytes], *_how: object
    ) -> SignedDigests:
        """Any signatures."""
        del key
        self.signed += digests
        return SignedDigests([b"signature"] * len(digests))


def looking(core: CoreFixture, hsm: PlayedHsm) -> GenerationCheck:
    """What a worker looks with."""
    return GenerationCheck(cast("HsmSession", hsm), core.store)


_LOOK_S, _LOOK_AGAIN_S = served.LOOK_S, served.LOOK_AGAIN_S
"""As a worker has them."""


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was found is believed for a while."""
    monkeypatch.setattr(served, "LOOK_S", 0.0)
    monkeypatch.setattr(served, "LOOK_AGAIN_S", 0.0)


async def set_own(core: CoreFixture, generation: Generation) -> None:
    """Have the record be of a take-over."""
    async with core.store.write() as transaction:
        await InstallationStore(transaction).set_generation(generation)


async def test_restored_record_is_known_with_the_hsm_away(core: CoreFixture) -> None:
    """Its other token may be there, and certify."""
    await set_own(core, RESTORED)
    hsm = PlayedHsm(HsmStatus.UNAVAILABLE)

    assert not await looking(core, hsm).look()


async def test_number_that_was_read_counts_while_it_is_away(core: CoreFixture) -> None:
    """And the HSM is looked at anew when it comes back."""
    hsm = PlayedHsm(served=Generation(2))
    seen = looking(core, hsm)
    assert not await seen.look()
    hsm.status = HsmStatus.UNAVAILABLE
    assert not await seen.look()
    hsm.status = HsmStatus.READY
    await set_own(core, Generation(2))
    assert await seen.look()
    assert seen.was


async def test_that_another_is_served_is_looked_at_sooner(
    core: CoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its operator is about to take over; that all is well is believed for longer."""
    assert _LOOK_AGAIN_S < _LOOK_S
    monkeypatch.setattr(served, "LOOK_S", 3600.0)
    hsm = PlayedHsm(served=Generation(2))
    seen = looking(core, hsm)
    assert not await seen.look()
    await set_own(core, Generation(2))
    assert await seen.look()
    hsm.served = Generation(3)
    assert await seen.look()


async def test_of_two_of_one_number_the_one_of_the_hsm_is_served(
    core: CoreFixture,
) -> None:
    """Both took over at once, and found the same number free."""
    hsm = PlayedHsm(served=Generation(2, "b0"))
    seen = looking(core, hsm)
    await set_own(core, Generation(2, "a9"))
    assert not await seen.look()
    await set_own(core, Generation(2, "b0"))
    assert await seen.look()


async def test_document_in_hand_uses_no_key_after_a_take_over(
    core: CoreFixture,
) -> None:
    """However long its reading took since the worker last looked."""
    hsm, none = PlayedHsm(), cast("Any", None)
    seen = looking(core, hsm)
    session = cast("HsmSession", hsm)
    signer = DocumentSigner(
        *(none, none, none, none, session, none, none, core.clock, "x", seen),
        *(none, none, none),
    )
    method = cast("Any", _Method)
    values, failed = await signer._sign_digests(none, method, [b"first"])
    assert (len(values), failed) == (1, None)

    hsm.served = Generation(1)

    values, failed = await signer._sign_digests(none, method, [b"second"])
    assert isinstance(failed, HsmUnavailableError)
    assert values == []
    assert "take-over" in failed.reason
    assert hsm.signed == [b"first"]


class _Method:
    scheme = SignatureScheme.RSA_PKCS1
    digest = DigestAlgorithm.SHA256

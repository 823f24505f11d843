"""What a worker opens of what a front sealed: the whole consent, or nothing.

Source: docs/signing.md "What the consent covers".
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    ErrorCode,
    ProfileDiffersError,
)
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.signing.activation import ActivationFormat, Seal, activation_data
from appliance.domain.vocab import Environment, SignatureLevel
from appliance.keys.activation_format import PinnedFormat, pin_format
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.credential_store import CredentialStore
from appliance.keys.key_encryption import seal_to
from appliance.record.unit_of_work import Transaction
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.claims import ClaimedActivation
from tests.integration.keys.locked_key import (
    INNER,
    LockedKeyServices,
    locked_key_services,
)
from tests.support.factories.signing_host import INSTALLATION
from tests.support.factories.statements import AS_RECORDED
from tests.support.installation.record import PASSWORD, CoreFixture
from worker.signing.activation_keys import ActivationKeys, open_folder
from worker.signing.consent_journal import ConsentJournal
from worker.signing.document_signer import DocumentSigner

none = cast("Any", None)


@dataclass
class Scene:
    """A front, and the one host that it seals to."""

    services: LockedKeyServices
    folder: Path

    @property
    def core(self) -> CoreFixture:
        """The record."""
        return self.services.core

    def signer(self, profile: SignatureProfile | None = None) -> DocumentSigner:
        """A worker of the host, by settings of its own."""
        core, own = self.core, profile or self.core.settings.signature_profile
        opened = open_folder(self.folder, Environment.PREPROD)
        completion = SimpleNamespace(
            profile=own, profile_of=lambda view: own.narrowed(view.wishes)
        )
        return DocumentSigner(
            claims=none,
            documents=none,
            completion=cast("Any", completion),
            levels=none,
            session=none,
            keys=ActivationKeys(
                opened,
                PublishedKeys(core.store),
                none,
                core.clock,
                self.services.host.name,
                INSTALLATION,
                PinnedFormat(self.folder.with_name("activation-format")),
                self.services.host.key_file,
            ),
            fonts=none,
            clock=core.clock,
            installation=INSTALLATION,
            served=none,
            inspections=none,
            statements=AS_RECORDED,
            journal=ConsentJournal(opened, core.clock, timedelta(seconds=60)),
        )

    async def unlock_key(self, work: ClaimedActivation) -> bytes:
        """What the password gives for a claim's credential."""
        found = await self.services.passwords.check(
            PASSWORD, await self.services.secret(), (work.claim.credential,)
        )
        return found.unlock[work.claim.credential]

    async def claimed(self) -> ClaimedActivation:
        """Have the front seal, and a worker claim."""
        await self.services.sign(await self.services.request())
        work = await self.core.claiming().claim_next()
        assert work is not None
        return work


@pytest.fixture
async def scene(core: CoreFixture, tmp_path: Path) -> Scene:
    """On each database; the host has the private halves of some epochs."""
    services = await locked_key_services(core)
    folder = tmp_path / "activation"
    open_folder(folder, Environment.PREPROD)
    for kind in ActivationFormat:
        file = folder / f"{kind.epoch_at(core.now)}.key"
        file.write_bytes(services.host.private_bytes)
    return Scene(services, folder)


async def test_front_binds_what_a_worker_uses(scene: Scene) -> None:
    """Of equal settings: both locks open."""
    key = await scene.signer().unlock(await scene.claimed())

    assert getattr(key, "blob_k", None) == INNER


async def test_seal_of_the_version_before_opens_until_it_is_closed(
    scene: Scene,
) -> None:
    """Sealed as that seals; the file of the machine says how long, and no row."""
    work = await scene.claimed()
    assert work.credential is not None
    unlock = await scene.unlock_key(work)
    data = activation_data(work.claim, work.credential.key_version)
    seal = Seal(
        scene.services.host.name,
        ActivationFormat.FIRST.epoch_at(scene.core.now),
        seal_to(
            scene.services.host.private.public_key().public_bytes_raw(), unlock, data
        ),
    )
    first = replace(work, claim=replace(work.claim, seal=seal, profile=None))

    key = await scene.signer().unlock(first)
    pin_format(scene.folder.with_name("activation-format"), ActivationFormat.WHOLE)
    with pytest.raises(ApplianceError) as caught:
        await scene.signer().unlock(first)

    assert getattr(key, "blob_k", None) == INNER
    assert caught.value.code is ErrorCode.ACTIVATION_EXPIRED
    assert await scene.signer().unlock(work) is not None


async def test_host_of_another_profile_says_so(scene: Scene) -> None:
    """It signs nothing, and tells an operator what differs."""
    own = scene.core.settings.signature_profile
    other = replace(own, level=SignatureLevel.B_LTA)
    work = await scene.claimed()

    with pytest.raises(ProfileDiffersError) as caught:
        await scene.signer(other).unlock(work)

    assert caught.value.code is ErrorCode.HSM_UNAVAILABLE
    assert "[profile]" in caught.value.reason
    # It opened nothing: a host with the front's settings may.
    assert await scene.signer().unlock(work) is not None


async def test_recorded_profile_is_no_way_round(scene: Scene) -> None:
    """Altered to be that of the host, or taken away: the seal stays shut."""
    own = scene.core.settings.signature_profile
    other = replace(own, level=SignatureLevel.B_B)
    work = await scene.claimed()

    for profile in (other.to_json(), None):
        altered = replace(work, claim=replace(work.claim, profile=profile))
        with pytest.raises(ActivationInvalidError) as caught:
            await scene.signer(other).unlock(altered)
        assert caught.value.layer == "seal"


async def test_renewal_before_the_commit_is_what_is_bound(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that came while the password was checked: it opens."""
    attempts = scene.services.signing._attempts
    check = attempts.check

    async def slowly(*given: Any) -> Any:
        right = await check(*given)
        await _renew(scene, b"another certificate")
        return right

    monkeypatch.setattr(attempts, "check", slowly)
    work = await scene.claimed()

    assert work.credential is not None
    assert work.credential.certificate == b"another certificate"
    assert await scene.signer().unlock(work) is not None


async def test_renewal_waits_for_what_waits(scene: Scene) -> None:
    """From the consent on: what nobody has claimed yet is bound to a certificate."""

    async def is_open(transaction: Transaction) -> bool:
        credential = (await scene.services.credential()).id
        return await ActivationStore(transaction).any_open(credential)

    async with scene.core.store.read() as transaction:
        before = await is_open(transaction)
    await scene.services.sign(await scene.services.request())
    async with scene.core.store.read() as transaction:
        waiting = await is_open(transaction)

    assert (before, waiting) == (False, True)


async def test_certificate_that_was_swapped_does_not_open(scene: Scene) -> None:
    """Before the claim, or while it is in hand: the claim read again opens no more."""
    work = await scene.claimed()
    signer = scene.signer()
    assert await signer.unlock(work) is not None
    await _renew(scene, b"another certificate")

    again = await scene.core.claiming().read_again(work.claim)

    with pytest.raises(ActivationInvalidError):
        await signer.unlock(again)


async def test_late_claim_opens_nothing(scene: Scene) -> None:
    """By the host's clock, whatever the row says of its state."""
    work = await scene.claimed()
    scene.core.clock.forward(60)

    with pytest.raises(ApplianceError) as caught:
        await scene.signer().unlock(work)

    assert caught.value.code is ErrorCode.ACTIVATION_EXPIRED


async def _renew(scene: Scene, certificate: bytes) -> None:
    """Write another certificate into the credential."""
    credential = await scene.services.credential()
    async with scene.core.store.write() as transaction:
        await CredentialStore(transaction).renewed(
            replace(credential, certificate=certificate)
        )

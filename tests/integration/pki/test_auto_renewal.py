"""Renewals that nobody asks for, on both databases."""

from datetime import datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import (
    EventKind,
    PersonState,
    RevocationReason,
    TaskKind,
    TaskState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.people.person_store import PersonStore
from appliance.pki.automatic_renewal import AutoRenewal
from appliance.pki.certificates import Certificates
from appliance.pki.credentials import Credentials
from appliance.pki.renewal import Renewal
from appliance.pki.revocation import Revocations
from appliance.pki.validation.trust_anchors import Trust
from appliance.pki.validation.trust_store import FormerCertificateStore
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa, bundle, der

DAY = timedelta(days=1)


def renewal(
    core: CoreFixture, days: int = 30, ca_end: datetime | None = NOON + 3650 * DAY
) -> AutoRenewal:
    """The use case."""
    certificates = Certificates(core.store, core.clock)
    return AutoRenewal(core.store, certificates, core.clock, days, lambda: ca_end)


async def holder(core: CoreFixture, days: float) -> tuple[PersonId, Held]:
    """Somebody whose certificate ends in so many days."""
    signer = await core.add_signer(credential=False)
    held = await hold(
        core.store,
        signer.person,
        "20267565393",
        NOON,
        not_before=NOON - 700 * DAY,
        not_after=NOON + days * DAY,
    )
    return signer.person, held


async def asked(core: CoreFixture) -> list[tuple[object, str]]:
    """Credentials whose renewal was asked for, and by whom."""
    return [
        (row.event.detail["credential"], row.event.actor)
        for row in await core.audit()
        if row.event.event is EventKind.TASK_CREATED
    ]


async def end_one(core: CoreFixture, then: TaskState) -> TaskClaim:
    """Do what a worker would with the oldest task."""
    claim = await HsmTasks(core.store, core.clock, "signing/h/1", "p").claim_next()
    assert claim is not None
    async with core.store.write() as transaction:
        assert await HsmTaskStore(transaction).close(
            claim, then, None, ErrorCode.BUSY.value
        )
    return claim


async def test_due_certificates_are_renewed_once(core: CoreFixture) -> None:
    """Those that end within the days; not twice while the tasks are open."""
    _, first = await holder(core, 29)
    _, second = await holder(core, 30)
    await holder(core, 31)

    assert await renewal(core).submit_due() == 2
    assert await renewal(core).submit_due() == 0

    assert await asked(core) == [(first.id, "system"), (second.id, "system")]


async def test_renewal_that_failed_is_asked_for_again(core: CoreFixture) -> None:
    """A signature that was being made does not leave somebody without."""
    _, held = await holder(core, 10)
    await renewal(core).submit_due()
    claim = await end_one(core, TaskState.FAILED)
    assert claim.kind is TaskKind.RENEW

    assert await renewal(core).submit_due() == 1
    assert [credential for credential, _ in await asked(core)] == [held.id] * 2


async def test_refused_renewal_is_asked_for_again_a_day_later(
    core: CoreFixture,
) -> None:
    """The verifier would say the same each minute; others are not kept waiting."""
    _, refused = await holder(core, 10)
    _, other = await holder(core, 11)
    tasks = HsmTasks(core.store, core.clock, "signing/h/1", "p")
    await renewal(core).submit_due()
    claims = [await tasks.claim_next(), await tasks.claim_next()]
    for claim in claims:
        assert claim is not None
        is_refused = claim.input["credential"] == refused.id
        await tasks.failed(claim, "CERTIFICATE_UNVERIFIABLE" if is_refused else "BUSY")

    assert await renewal(core).submit_due() == 1
    claim = await tasks.claim_next()
    assert claim is not None
    assert claim.input["credential"] == other.id
    await tasks.failed(claim, "BUSY")
    core.clock.forward(86_401)
    assert await renewal(core).submit_due() == 2


@pytest.mark.parametrize(
    ("days", "ca_end"),
    [(0, NOON + 3650 * DAY), (30, None), (30, NOON + 10 * DAY)],
    ids=["off", "no ca", "ca ends as soon"],
)
async def test_nothing_to_be_gained(
    core: CoreFixture, days: int, ca_end: datetime | None
) -> None:
    """Switched off, no CA yet, or a CA that ends with the certificate."""
    await holder(core, 10)

    assert await renewal(core, days, ca_end).submit_due() == 0


async def test_only_active_people_in_time(core: CoreFixture) -> None:
    """Disabled people, revoked credentials and certificates past their end stay."""
    person, _ = await holder(core, 5)
    async with core.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.ACTIVE, PersonState.DISABLED
        )
    _, revoked = await holder(core, 5)
    async with core.store.write() as transaction:
        await Revocations(core.store, core.clock).submit(
            transaction, revoked.id, RevocationReason.SUPERSEDED, "operator"
        )
    await holder(core, 0)

    assert await renewal(core).submit_due() == 0


async def test_outside_certificates_are_left_to_their_ca(core: CoreFixture) -> None:
    """Ours never takes the place of what an outside CA issued."""
    outside = OutsideCa(NOON)
    trust = Trust(core.store, core.clock, lambda: None)
    sha256 = outside.root.fingerprint(hashes.SHA256()).hex()
    await trust.add("operator", der(outside.root), AnchorPurpose.SIGNERS, sha256)
    _, held = await holder(core, 200)
    made = outside.certify(held.spki, await _cuil(core, held), end=NOON + 5 * DAY)
    credentials = Credentials(
        core.store,
        core.clock,
        trust,
        Revocations(core.store, core.clock),
        FakeInspector(pages=1),
    )
    certificates = Certificates(core.store, core.clock)
    # Asked for before the import and claimed after it.
    await certificates.renew(held.id, "operator")
    await credentials.import_chain(held.id, bundle(made, outside.issuing), "operator")

    assert await renewal(core).submit_due() == 0
    with pytest.raises(ApplianceError) as refused:
        await certificates.renew(held.id, "operator")
    assert refused.value.code is ErrorCode.CERTIFICATE_ISSUED_OUTSIDE
    claim = await HsmTasks(core.store, core.clock, "signing/h/1", "p").claim_next()
    assert claim is not None
    with pytest.raises(ApplianceError) as caught:
        await Renewal(core.store, core.clock, "signing/h/1").order(claim)
    assert caught.value.code is ErrorCode.CERTIFICATE_ISSUED_OUTSIDE


async def test_own_certificate_that_was_imported_once_is_renewed(
    core: CoreFixture,
) -> None:
    """What counts is who issued the one in use, not that there was another one."""
    _, held = await holder(core, 5)
    async with core.store.write() as transaction:
        before = await CredentialStore(transaction).get(held.id)
        assert before is not None
        await FormerCertificateStore(transaction).keep(before, NOON)

    assert await renewal(core).submit_due() == 1

    claim = await HsmTasks(core.store, core.clock, "signing/h/1", "p").claim_next()
    assert claim is not None
    order = await Renewal(core.store, core.clock, "signing/h/1").order(claim)
    assert order.credential == before


async def test_nothing_is_renewed_for_somebody_who_is_disabled(
    core: CoreFixture,
) -> None:
    """The task ends by what is so, and not as if the certificate were revoked."""
    person, held = await holder(core, 5)
    await Certificates(core.store, core.clock).renew(held.id, "operator")
    async with core.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.ACTIVE, PersonState.DISABLED
        )
    claim = await HsmTasks(core.store, core.clock, "signing/h/1", "p").claim_next()
    assert claim is not None

    with pytest.raises(ApplianceError) as caught:
        await Renewal(core.store, core.clock, "signing/h/1").order(claim)

    assert caught.value.code is ErrorCode.PERSON_STATE


async def _cuil(core: CoreFixture, held: Held) -> str:
    async with core.store.read() as transaction:
        credential = await CredentialStore(transaction).get(held.id)
        assert credential is not None
        person = await PersonStore(transaction).get(credential.person)
    assert person is not None
    return person.cuil

"""Revoking, publishing and renewing, as transactions on both databases."""

from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.pki.certificates import (
    AnswerDraft,
    CertificateRecord,
    Crl,
    CrlDraft,
    OcspAnswer,
    Revoking,
)
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    CredentialState,
    RevocationReason,
    TaskKind,
    TaskState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.pki.renewal import Renewal
from appliance.pki.revocation import Revocations
from appliance.settings import PkiSettings
from tests.support.installation.record import CERTIFICATE, CoreFixture, prepared

ISSUER = "a" * 40
DAY = timedelta(days=1)
WHY = RevocationReason.KEY_COMPROMISE
SLOT = "signing/h/1"


async def certified(core: CoreFixture, serial: str) -> tuple[PersonId, CredentialId]:
    """A person whose credential has a certificate on the record."""
    signer = await core.add_signer()
    async with core.store.write() as transaction:
        credential = await CredentialStore(transaction).active(signer.person)
        assert credential is not None
        issued = record(core, serial, credential.id)
        await CertificateStore(transaction).add(issued)
        held = replace(credential, certificate=issued.der, not_after=issued.not_after)
        await CredentialStore(transaction).renewed(held)
    return signer.person, credential.id


def record(
    core: CoreFixture, serial: str, credential: CredentialId | None
) -> CertificateRecord:
    """A certificate of a year."""
    kind = CertificateKind.SIGNER if credential else CertificateKind.OCSP
    return CertificateRecord(
        serial=serial,
        kind=kind,
        issuer=ISSUER,
        credential=credential,
        der=serial.encode(),
        not_before=core.now - DAY,
        not_after=core.now + 365 * DAY,
    )


def publishing(core: CoreFixture) -> Publishing:
    """A worker's transactions."""
    return Publishing(core.store, core.clock, PkiSettings(), SLOT, core.work_notifier)


async def claimed(core: CoreFixture) -> TaskClaim:
    """Claim a task that is there."""
    claim = await HsmTasks(core.store, core.clock, SLOT, new_id()).claim_next()
    assert claim is not None
    return claim


def signed(draft: CrlDraft) -> Crl:
    """A CRL of a draft."""
    return Crl(draft.issuer, draft.number, b"crl", draft.this_update, draft.next_update)


def answers(drafts: tuple[AnswerDraft, ...]) -> list[OcspAnswer]:
    """Answers of drafts."""
    return [draft.signed(b"answer") for draft in drafts]


async def publish_revocation(core: CoreFixture) -> tuple[TaskClaim, Revoking]:
    """Do the oldest task, a revocation."""
    claim = await claimed(core)
    going = await publishing(core).revoking(claim, ISSUER)
    assert await publishing(core).revoked(
        claim, going, signed(going.crl), answers(going.answers)
    )
    return claim, going


async def state(core: CoreFixture, credential: CredentialId) -> CredentialState:
    """The state of a credential."""
    async with core.store.read() as transaction:
        found = await CredentialStore(transaction).get(credential)
    assert found is not None
    return found.state


async def test_revocation_is_asked_for_and_published(core: CoreFixture) -> None:
    """Unusable at once; then certificate, credential, CRL and answer together."""
    person, credential = await certified(core, "1f")

    task = await Revocations(core.store, core.clock).ask("00:1F", WHY, "operator")
    async with core.store.read() as transaction:
        usable = await CredentialStore(transaction).active(person)
    asked = await state(core, credential)
    claim, going = await publish_revocation(core)

    assert (usable, asked) == (None, CredentialState.REVOKING)
    assert (claim.id, claim.kind) == (task, TaskKind.REVOKE)
    assert [(e.serial, e.reason) for e in going.crl.entries] == [("1f", WHY)]
    assert going.crl.next_update - going.crl.this_update == 7 * DAY
    assert await state(core, credential) is CredentialState.REVOKED
    async with core.store.read() as transaction:
        done = await HsmTaskStore(transaction).status(task)
        kept = await PublicationStore(transaction).answer("1f")
        crl = await PublicationStore(transaction).crl(ISSUER)
    assert done is not None
    assert (done.state, done.output) == (
        TaskState.DONE,
        {"credential": credential, "crlNumber": 1},
    )
    assert kept is not None
    assert kept.state is CertificateState.REVOKED
    assert crl is not None
    assert crl.number == 1
    assert await core.audited() == [
        "revocation.asked",
        "crl.published",
        "revocation.published",
    ]


async def test_revocation_takes_every_certificate_of_the_key(core: CoreFixture) -> None:
    """Whichever of them is named."""
    _, credential = await certified(core, "1")
    await certified(core, "2")
    async with core.store.write() as transaction:
        await CertificateStore(transaction).add(record(core, "3", credential))

    await Revocations(core.store, core.clock).ask("1", WHY, "operator")
    _, going = await publish_revocation(core)

    assert sorted(entry.serial for entry in going.crl.entries) == ["1", "3"]
    assert sorted(draft.serial for draft in going.answers) == ["1", "3"]


@pytest.mark.parametrize(
    ("serial", "code"),
    [
        ("2", ErrorCode.CERTIFICATE_NOT_FOUND),
        ("3", ErrorCode.CERTIFICATE_NOT_FOUND),
        ("x", ErrorCode.FIELD_INVALID),
        ("1" * 41, ErrorCode.FIELD_INVALID),
    ],
)
async def test_revocation_refused(
    core: CoreFixture, serial: str, code: ErrorCode
) -> None:
    """No such certificate, the responder's own, no serial number."""
    await certified(core, "1")
    await publishing(core).own_issued(record(core, "3", None))

    with pytest.raises(ApplianceError) as caught:
        await Revocations(core.store, core.clock).ask(serial, WHY, "operator")

    assert caught.value.code is code


async def test_revocation_is_asked_for_once(core: CoreFixture) -> None:
    """While it is going on, and after."""
    _, credential = await certified(core, "1")
    revocations = Revocations(core.store, core.clock)
    certificates = Certificates(core.store, core.clock)
    await revocations.ask("1", WHY, "operator")

    for _ in range(2):
        with pytest.raises(ApplianceError) as caught:
            await revocations.ask("1", RevocationReason.SUPERSEDED, "operator")
        assert caught.value.code is ErrorCode.CERTIFICATE_STATE
        with pytest.raises(ApplianceError) as caught:
            await certificates.renew(credential, "operator")
        assert caught.value.code is ErrorCode.CERTIFICATE_STATE
        if await state(core, credential) is CredentialState.REVOKING:
            await publish_revocation(core)

    assert (await certificates.get("1")).certificate.reason is WHY


async def test_revocation_given_up_is_resumed(core: CoreFixture) -> None:
    """The HSM was away for longer than a task lives."""
    _, credential = await certified(core, "1")
    revocations = Revocations(core.store, core.clock)
    await revocations.ask("1", WHY, "operator")
    asked_at = core.now
    tasks = HsmTasks(core.store, core.clock, SLOT, new_id())
    assert await revocations.resume() == 0
    assert await tasks.failed(await claimed(core), "HSM_UNAVAILABLE")
    core.clock.forward(3600)

    resumed = [await revocations.resume(), await revocations.resume()]
    _, going = await publish_revocation(core)

    assert resumed == [1, 0]
    assert going.crl.entries[0].at == asked_at
    assert await state(core, credential) is CredentialState.REVOKED


async def test_revocation_beside_another_publishes_both(core: CoreFixture) -> None:
    """The one that commits second finds its number taken, and drafts anew."""
    for serial in ("1", "2"):
        await certified(core, serial)
        await Revocations(core.store, core.clock).ask(serial, WHY, "operator")
        core.clock.forward(1)
    worker = publishing(core)
    first, second = await claimed(core), await claimed(core)
    early = await worker.revoking(second, ISSUER)
    done = await worker.revoking(first, ISSUER)
    assert await worker.revoked(first, done, signed(done.crl), answers(done.answers))

    with pytest.raises(ApplianceError) as caught:
        await worker.revoked(second, early, signed(early.crl), answers(early.answers))
    again = await worker.revoking(second, ISSUER)
    assert await worker.revoked(
        second, again, signed(again.crl), answers(again.answers)
    )

    assert caught.value.code is ErrorCode.BUSY
    assert (again.crl.number, len(again.crl.entries)) == (2, 2)


async def test_revocation_of_an_overtaken_worker_changes_nothing(
    core: CoreFixture,
) -> None:
    """Its lease ended, and another worker has claimed the task."""
    _, credential = await certified(core, "1")
    await Revocations(core.store, core.clock).ask("1", WHY, "operator")
    worker = publishing(core)
    old = await claimed(core)
    going = await worker.revoking(old, ISSUER)
    core.clock.forward(31)
    await claimed(core)

    done = await worker.revoked(old, going, signed(going.crl), answers(going.answers))

    assert not done
    assert await state(core, credential) is CredentialState.REVOKING
    async with core.store.read() as transaction:
        assert await PublicationStore(transaction).crl(ISSUER) is None


async def test_publications_are_asked_for_when_due(core: CoreFixture) -> None:
    """At half of their time, and once at a time."""
    await certified(core, "1")
    worker = publishing(core)

    async def publish(task: TaskId | None) -> None:
        assert task is not None
        claim = await claimed(core)
        assert (claim.id, claim.kind) == (task, TaskKind.PUBLISH)
        crls = [signed(draft) for draft in await worker.due_crls([ISSUER])]
        due = await worker.due_answers(ISSUER, 9)
        await worker.published(crls, answers(tuple(due)))
        assert await worker.done(claim)

    first = await worker.submit_due([ISSUER])
    assert await worker.submit_due([ISSUER]) is None
    assert [str(task) for task in core.work_notifier.notified] == [first]
    await publish(first)
    assert await worker.submit_due([ISSUER]) is None
    core.clock.forward(12 * 3600 - 1)
    assert await worker.submit_due([ISSUER]) is None
    core.clock.forward(1)
    await publish(await worker.submit_due([ISSUER]))

    assert await core.audited() == [
        "crl.published",
        "ocsp.published",
        "ocsp.published",
    ]


async def test_publication_that_failed_is_asked_for_again_after_a_minute(
    core: CoreFixture,
) -> None:
    """Strangers' questions make no worker try what cannot be, time and again."""
    worker = publishing(core)
    tasks = HsmTasks(core.store, core.clock, SLOT, new_id())
    assert await worker.submit() is not None
    assert await tasks.failed(await claimed(core), "TASK_FAILED")

    at_once = [await worker.submit(), await worker.submit_due([ISSUER])]
    core.clock.forward(61)
    later = await worker.submit()

    assert at_once == [None, None]
    assert later is not None
    assert len(core.work_notifier.notified) == 2


async def test_what_was_published_is_forgotten_when_it_is_of_no_use(
    core: CoreFixture,
) -> None:
    """Answers out of date and tasks that ended, a day later; nothing else."""
    await certified(core, "1")
    worker = publishing(core)
    assert await worker.submit() is not None
    due = await worker.due_answers(ISSUER, 9)
    await worker.published([], answers(tuple(due)))
    claim = await claimed(core)
    assert await worker.done(claim)

    counts = []
    for _ in range(3):
        core.clock.forward(23 * 3600)
        counts.append(await worker.forget())

    # The task a day after its making, the answer a day after its end.
    assert counts == [0, 1, 1]


async def test_renewal_changes_the_certificate_and_keeps_the_key(
    core: CoreFixture,
) -> None:
    """The credential has the new one; the one before stays valid."""
    person, credential = await certified(core, "1")
    task = await Certificates(core.store, core.clock).renew(credential, "operator")
    renewal = Renewal(core.store, core.clock, SLOT)
    claim = await claimed(core)
    order = await renewal.order(claim)
    new = record(core, "2", credential)

    assert await renewal.renewed(claim, new, (b"ca",))

    assert (claim.id, order.person.id) == (task, person)
    async with core.store.read() as transaction:
        held = await CredentialStore(transaction).active(person)
        before = await CertificateStore(transaction).get("1")
    assert held is not None
    assert (held.certificate, held.chain, held.not_after) == (
        b"2",
        (b"ca",),
        new.not_after,
    )
    assert (held.id, held.cka_id) == (credential, order.credential.cka_id)
    assert before is not None
    assert before.state is CertificateState.VALID


async def test_renewal_waits_for_a_signature(core: CoreFixture) -> None:
    """A claimed activation still needs the certificate that it began with."""
    signer = await core.add_signer()
    async with core.store.read() as transaction:
        credential = await CredentialStore(transaction).active(signer.person)
    assert credential is not None
    await core.add_activation(signer)
    assert await core.claiming().claim_next() is not None
    await Certificates(core.store, core.clock).renew(credential.id, "operator")
    claim = await claimed(core)
    renewal = Renewal(core.store, core.clock, SLOT)

    with pytest.raises(ApplianceError) as caught:
        await renewal.renewed(claim, record(core, "2", credential.id), ())

    assert caught.value.code is ErrorCode.BUSY
    async with core.store.read() as transaction:
        assert await CredentialStore(transaction).active(signer.person) == credential
        assert await CertificateStore(transaction).get("2") is None


async def test_revocation_between_claim_and_intent_stops_the_signature(
    core: CoreFixture,
) -> None:
    """What was not yet intended never is; an intent from before is finished."""
    signer = await core.add_signer()
    async with core.store.write() as transaction:
        credential = await CredentialStore(transaction).active(signer.person)
        assert credential is not None
        await CertificateStore(transaction).add(record(core, "1", credential.id))
    await core.add_activation(signer, items=2)
    claims = core.claiming()
    work = await claims.claim_next()
    assert work is not None
    first, second = work.claim.documents
    assert await claims.intend(work.claim, [prepared(first, "ab" * 32)], CERTIFICATE)

    await Revocations(core.store, core.clock).ask("1", WHY, "operator")

    with pytest.raises(ApplianceError) as caught:
        await claims.intend(work.claim, [prepared(second, "cd" * 32)], CERTIFICATE)
    assert caught.value.code is ErrorCode.CERTIFICATE_NOT_USABLE
    assert len(await core.intents(work.claim.id)) == 1

"""Certificates, CRLs and OCSP answers on both databases."""

from datetime import timedelta

import pytest

from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.pki.certificates import CertificateRecord, Crl, OcspAnswer
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    CredentialState,
    RevocationReason,
    TaskKind,
    TaskState,
)
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from appliance.pki.revocation_store import RevocationStore
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.storage

ISSUER = "a" * 40
DAY = timedelta(days=1)


async def certified(
    core: CoreFixture, serial: str, days: float = 365
) -> tuple[PersonId, CredentialId]:
    """A person with a credential and its certificate."""
    signer = await core.add_signer(credential=False)
    end = core.now + days * DAY
    credential = await core.add_credential(
        signer.person, certificate=serial.encode(), not_after=end
    )
    await add(core, serial, credential, days)
    return signer.person, credential


async def add(
    core: CoreFixture, serial: str, credential: CredentialId, days: float = 365
) -> None:
    """A certificate of a credential."""
    async with core.store.write() as transaction:
        await CertificateStore(transaction).add(
            CertificateRecord(
                serial=serial,
                kind=CertificateKind.SIGNER,
                issuer=ISSUER,
                credential=credential,
                der=serial.encode(),
                not_before=core.now - DAY,
                not_after=core.now + days * DAY,
            )
        )


async def revoke(core: CoreFixture, credential: CredentialId) -> TaskId:
    """Begin a credential's revocation."""
    task = TaskId(new_id())
    async with core.store.write() as transaction:
        await HsmTaskStore(transaction).add(task, TaskKind.REVOKE, {}, core.now)
        await RevocationStore(transaction).begin(
            credential, core.now, RevocationReason.KEY_COMPROMISE, task
        )
    return task


def answer(core: CoreFixture, serial: str, state: CertificateState) -> OcspAnswer:
    """An answer that is good for a day."""
    return OcspAnswer(serial, state, b"answer", core.now, core.now + DAY)


def crl(core: CoreFixture, number: int) -> Crl:
    """A CRL that is good for a day."""
    return Crl(ISSUER, number, bytes([number]), core.now, core.now + DAY)


async def test_certificate_moves_from_valid_to_revoked(core: CoreFixture) -> None:
    """All certificates of a credential, and no other one's."""
    _, credential = await certified(core, "1")
    await certified(core, "2")
    await add(core, "3", credential)

    await revoke(core, credential)
    async with core.store.read() as transaction:
        going = await CertificateStore(transaction).get("1")
        listed_before = await RevocationStore(transaction).revoked(ISSUER)
    async with core.store.write() as transaction:
        moved = await RevocationStore(transaction).complete(["1", "2", "3"])
        again = await RevocationStore(transaction).complete(["1", "2", "3"])

    assert going is not None
    assert (going.state, going.revoked_at, going.reason) == (
        CertificateState.REVOKING,
        core.now,
        RevocationReason.KEY_COMPROMISE,
    )
    assert (listed_before, moved, again) == ([], 2, 0)
    async with core.store.read() as transaction:
        entries = await RevocationStore(transaction).revoked(ISSUER)
        other = await CertificateStore(transaction).get("2")
        assert await RevocationStore(transaction).revoked("b" * 40) == []
    assert [entry.serial for entry in entries] == ["1", "3"]
    assert other is not None
    assert other.state is CertificateState.VALID


async def test_lists_of_certificates(core: CoreFixture) -> None:
    """Newest first, page by page; those that end soon, of who signs with them."""
    person, credential = await certified(core, "1", days=400)
    core.clock.forward(1)
    await add(core, "2", credential, days=20)
    core.clock.forward(1)
    await certified(core, "3", days=20)
    core.clock.forward(1)
    _, revoked = await certified(core, "4", days=10)
    await revoke(core, revoked)

    async with core.store.read() as transaction:
        first = await CertificateStore(transaction).views(3, None)
        rest = await CertificateStore(transaction).views(
            3, first[-1].certificate.serial
        )
        soon = await CertificateStore(transaction).expiring(
            core.now, core.now + 30 * DAY, 10
        )
        one = await CertificateStore(transaction).view("1")
        of_credential = await CertificateStore(transaction).of_credential(credential)

    assert [view.certificate.serial for view in first + rest] == ["4", "3", "2", "1"]
    assert [view.certificate.serial for view in soon] == ["3"]
    assert one is not None
    assert (one.person, one.name, one.is_current) == (person, "Ana Pérez", True)
    assert one.credential_state is CredentialState.ACTIVE
    assert not first[2].is_current
    assert [each.serial for each in of_credential] == ["2", "1"]


async def test_stalled_revocation_is_found_and_given_a_new_task(
    core: CoreFixture,
) -> None:
    """Only when its task was given up, and until it has another."""
    _, credential = await certified(core, "1")
    task = await revoke(core, credential)
    found = []
    async with core.store.read() as transaction:
        found.append(await RevocationStore(transaction).stalled(9))
    async with core.store.write() as transaction:
        claim = TaskClaim(task, TaskKind.REVOKE, {}, 0)
        await HsmTaskStore(transaction).close(claim, TaskState.FAILED)
        found.append(await RevocationStore(transaction).stalled(9))
        successor = TaskId(new_id())
        await HsmTaskStore(transaction).add(successor, TaskKind.REVOKE, {}, core.now)
        await RevocationStore(transaction).retry(credential, successor)
        found.append(await RevocationStore(transaction).stalled(9))

    assert found == [[], [credential], []]


async def test_crl_is_replaced_by_the_next_number_alone(core: CoreFixture) -> None:
    """A worker that signed beside another one is refused."""
    async with core.store.write() as transaction:
        put = [
            await PublicationStore(transaction).put_crl(crl(core, number))
            for number in (2, 1, 1, 3, 2, 2)
        ]
        kept = await PublicationStore(transaction).crl(ISSUER)
        none = await PublicationStore(transaction).crl("b" * 40)

    assert put == [False, True, False, False, True, False]
    assert (kept, none) == (crl(core, 2), None)


async def test_answer_must_tell_the_state_that_is(core: CoreFixture) -> None:
    """A `valid` that was signed before a revocation does not undo it."""
    _, credential = await certified(core, "1")
    valid, revoked = CertificateState.VALID, CertificateState.REVOKED

    async with core.store.write() as transaction:
        put = [await PublicationStore(transaction).put_answer(answer(core, "1", valid))]
    await revoke(core, credential)
    async with core.store.write() as transaction:
        put += [
            await PublicationStore(transaction).put_answer(answer(core, "1", valid)),
            await PublicationStore(transaction).put_answer(answer(core, "1", revoked)),
            await RevocationStore(transaction).complete(["1"]) == 1,
            await PublicationStore(transaction).put_answer(answer(core, "1", valid)),
            await PublicationStore(transaction).put_answer(answer(core, "1", revoked)),
            await PublicationStore(transaction).put_answer(
                answer(core, "unknown", valid)
            ),
        ]
        kept = await PublicationStore(transaction).answer("1")

    assert put == [True, False, False, True, False, True, False]
    assert kept == answer(core, "1", revoked)


async def test_answers_fall_due(core: CoreFixture) -> None:
    """The never answered first, then by age; not what ended or is revoking."""
    for serial in ("1", "2", "3"):
        await certified(core, serial)
    await certified(core, "4", days=0.01)
    _, revoking = await certified(core, "5")
    await revoke(core, revoking)
    async with core.store.write() as transaction:
        for serial in ("3", "2"):
            new = answer(core, serial, CertificateState.VALID)
            await PublicationStore(transaction).put_answer(new)
            core.clock.forward(600)

    async def due(hours: float, issuer: str = ISSUER) -> list[str]:
        async with core.store.read() as transaction:
            horizon = core.now + timedelta(hours=hours)
            rows = await PublicationStore(transaction).due(issuer, core.now, horizon, 9)
            any_due = await PublicationStore(transaction).any_due(
                issuer, core.now, horizon
            )
        assert any_due == bool(rows)
        return [row.serial for row in rows]

    assert await due(12) == ["1"]
    assert await due(24) == ["1", "3", "2"]
    assert await due(24, "b" * 40) == []


async def test_list_is_read_where_no_answer_tells_the_state(core: CoreFixture) -> None:
    """Nor where one is to come; of what is not on the record the list alone tells."""
    await certified(core, "1")
    await certified(core, "2")
    await certified(core, "3", days=0.01)
    core.clock.forward(3600)
    async with core.store.write() as transaction:
        await PublicationStore(transaction).put_crl(crl(core, 1))
        new = answer(core, "1", CertificateState.VALID)
        await PublicationStore(transaction).put_answer(new)

    async with core.store.read() as transaction:
        found = [
            await PublicationStore(transaction).status(serial, ISSUER, core.now)
            for serial in ("1", "2", "3", "4")
        ]

    valid = CertificateState.VALID
    assert [
        (each.state, each.is_answered, each.answer, each.crl) for each in found
    ] == [
        (valid, True, b"answer", None),
        (valid, True, None, None),
        (valid, False, None, b"\x01"),
        (None, False, None, b"\x01"),
    ]

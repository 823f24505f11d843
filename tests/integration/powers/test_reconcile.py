"""K14: what a forger leaves in the record, `rubrica audit reconcile` finds and names.

Each history is planted as the finding of that number was reproduced: by SQL, and by
what the workers, who believe the rows, then do by themselves.
"""

import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import delete, insert, update

from appliance.database import tables
from appliance.domain.audit.reconciliation import Check
from appliance.domain.ids import new_id
from appliance.domain.pki.certificates import serial_text
from appliance.domain.vocab import (
    CertificateState,
    CredentialState,
    EventKind,
    ItemState,
    RevocationReason,
    TaskKind,
)
from appliance.pki.revocation import Revocations
from appliance.reconciliation import reconcile
from appliance.reconciliation.reconcile import Reconciliation
from tests.integration.powers.history_scene import SLOT, Scene
from tests.support.factories.held_credential import hold
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import der

pytestmark = pytest.mark.storage

_E = EventKind
ITEM, INTENT = tables.activation_item.c, tables.intent.c


@pytest.fixture
async def scene(core: CoreFixture) -> AsyncIterator[Scene]:
    """Somebody who enrolled and has signed once."""
    made = await Scene.made(core)
    await made.sign()
    yield made
    await made.close()


async def revoke(scene: Scene) -> None:
    """Their key is revoked, as the console does."""
    scene.core.clock.forward(1)
    revocations = Revocations(scene.store("admin"), scene.core.clock)
    async with scene.store("admin").write() as transaction:
        await revocations.submit(
            transaction,
            scene.credential,
            RevocationReason.KEY_COMPROMISE,
            "console:c1",
        )


async def roll_back_revocation(scene: Scene) -> None:
    """K11: the rows say again what they said before."""
    await scene.execute(
        update(tables.credential).values(state=CredentialState.ACTIVE.value),
        update(tables.certificate).values(
            state=CertificateState.VALID.value, revoked_at=None, reason=None, task=None
        ),
    )


async def test_honest_history_has_no_finding(scene: Scene) -> None:
    """Enrolment and signature; a renewal, a second key, and a revocation at last."""
    assert await scene.findings() == []

    await revoke(scene)
    await scene.issue(await scene.ask())
    await scene.sign()
    await revoke(scene)

    assert await scene.findings() == []


async def test_version_of_a_raised_level_is_recorded(scene: Scene) -> None:
    """What the level asks for came later than the signature."""
    request = await scene.sign()

    await scene.raise_level(request)

    assert await scene.findings() == []


async def test_returned_request_is_signed_anew(scene: Scene) -> None:
    """A killed attempt, and a second activation of the same request."""
    request, activation = await scene.begin()
    worker = scene.worker()
    work = await worker.claim_next()
    assert work is not None
    await scene.say(
        SLOT,
        _E.KEY_INTENDED,
        request=request,
        activation=activation,
        attempt=work.claim.fence,
        item=0,
        digest="aa",
    )
    await scene.say(
        SLOT,
        _E.KEY_INTERRUPTED,
        request=request,
        activation=activation,
        attempt=work.claim.fence,
        item=0,
        digest="aa",
    )
    await worker.drop(work.claim)
    scene.core.clock.forward(1)
    assert await scene.use_key() == request

    assert await scene.findings() == []


async def test_recovered_document_has_no_key(scene: Scene) -> None:
    """`documents recover` found it after a restore: no use of the key is known."""
    request = await scene.core.add_request(scene.person)
    await scene.say(
        "operator",
        _E.REQUEST_SIGNED,
        request=request,
        sha256="ab" * 32,
        level="B-B",
        recovered=True,
    )
    await scene.execute(
        update(tables.signature_request)
        .where(tables.signature_request.c.id == request)
        .values(state="firmada"),
        insert(tables.signed_document).values(
            request=request,
            version=1,
            integrator=await scene.core.integrator(),
            sha256="ab" * 32,
            size_bytes=3,
            level="B-B",
            made=scene.core.now,
        ),
    )

    assert await scene.findings() == []


async def test_k2_key_made_by_a_task_that_nobody_asked_for(scene: Scene) -> None:
    """SQL alone: the worker makes key and certificate of an own unlock key."""
    await scene.issue(new_id())

    found = await scene.findings()

    assert [each.check for each in found] == [Check.CERTIFIED_UNASKED]
    assert found[0].person == scene.person
    assert found[0].credential == scene.credential


async def test_k2_key_made_for_somebody_who_has_one(scene: Scene) -> None:
    """Code in `api`, which may record that a task was asked for."""
    await scene.issue(await scene.ask())

    found = await scene.findings()

    assert [each.check for each in found] == [Check.ENROLLED_UNINVITED]
    assert found[0].credential == scene.credential
    assert "in force" in found[0].reason


async def test_k3_renewal_certifies_another_key(scene: Scene) -> None:
    """A foreign certificate in the credential, and a task that nobody asked for."""
    stranger = await scene.core.add_signer(credential=False)
    foreign = await hold(
        scene.core.store, stranger.person, "20111111112", scene.core.now
    )
    serial = serial_text(foreign.certificate.serial_number)
    await scene.execute(
        update(tables.certificate)
        .where(tables.certificate.c.serial == serial)
        .values(credential=scene.credential),
        delete(tables.credential).where(tables.credential.c.id == foreign.id),
        update(tables.credential)
        .where(tables.credential.c.id == scene.credential)
        .values(certificate=der(foreign.certificate)),
    )
    await scene.say(
        SLOT,
        _E.CERTIFICATE_RENEWED,
        task=new_id(),
        person=scene.person,
        credential=scene.credential,
        serial=serial,
    )

    found = await scene.findings()

    assert {each.check for each in found} == {
        Check.CERTIFIED_UNASKED,
        Check.CERTIFICATE_UNKNOWN,
    }
    assert {each.credential for each in found} == {scene.credential}
    assert serial in {each.serial for each in found}


async def test_renewal_that_was_asked_for(scene: Scene) -> None:
    """By chores, as each night: no finding; for another credential it is one."""
    task = await scene.ask(TaskKind.RENEW, "chores/h/1", credential=scene.credential)
    assert scene.held is not None
    renewed = {
        "task": task,
        "person": scene.person,
        "credential": scene.credential,
        "serial": serial_text(scene.held.certificate.serial_number),
    }
    await scene.say(SLOT, _E.CERTIFICATE_RENEWED, **renewed)
    assert await scene.findings() == []

    await scene.say(SLOT, _E.CERTIFICATE_RENEWED, **{**renewed, "credential": "x"})
    assert await scene.found() == [Check.CERTIFIED_UNASKED]


async def test_k5_enrolment_that_nobody_invited_to(scene: Scene) -> None:
    """SQL makes an active person invited again, with a link of the forger's."""
    await revoke(scene)
    scene.core.clock.forward(60)
    await scene.enrol()

    found = await scene.findings()

    assert [each.check for each in found] == [Check.ENROLLED_UNINVITED]
    assert found[0].person == scene.person


async def test_enrolment_that_api_invited_to(scene: Scene) -> None:
    """Code in `api` records all that an enrolment needs, but for an officer's act."""
    await scene.say("api", _E.PERSON_INVITED, person=scene.person)
    await scene.enrol()

    found = await scene.findings()

    assert [each.check for each in found] == [Check.ENROLLED_UNINVITED]
    assert "no officer" in found[0].reason


async def test_reissue_by_an_officer_is_honest(scene: Scene) -> None:
    """Revoked, invited again, enrolled again."""
    await revoke(scene)
    await scene.say(
        "admin",
        _E.PERSON_REISSUED,
        person=scene.person,
        before={"credentials": [scene.credential]},
    )
    await scene.invite()
    await scene.enrol()

    assert await scene.findings() == []


async def test_k11_key_signs_after_its_revocation(scene: Scene) -> None:
    """Rows rolled back: the worker signs again, and the audit still knows."""
    await revoke(scene)
    await roll_back_revocation(scene)
    scene.core.clock.forward(60)
    request = await scene.sign()

    found = await scene.findings()

    assert [each.check for each in found] == [Check.USED_AFTER_REVOCATION]
    assert found[0].request == request
    assert found[0].credential == scene.credential
    assert found[0].serial is not None


async def test_k11_key_is_certified_after_its_revocation(scene: Scene) -> None:
    """The sibling: a renewal of what was revoked."""
    await revoke(scene)
    await roll_back_revocation(scene)
    scene.core.clock.forward(60)
    task = await scene.ask(TaskKind.RENEW, "admin", credential=scene.credential)
    assert scene.held is not None
    await scene.say(
        SLOT,
        _E.CERTIFICATE_RENEWED,
        task=task,
        person=scene.person,
        credential=scene.credential,
        serial=serial_text(scene.held.certificate.serial_number),
    )

    assert await scene.found() == [Check.USED_AFTER_REVOCATION]


@pytest.mark.parametrize("is_fence_kept", [True, False])
async def test_k13_seal_that_was_put_back(scene: Scene, is_fence_kept: bool) -> None:
    """One consent, and the key used twice; also where the rows of before are gone."""
    request, activation = await scene.begin()
    await scene.use_key()
    whole = tables.activation.c.id == activation
    values: dict[str, object] = {
        "state": "waiting",
        "claim_by": scene.core.now + timedelta(hours=1),
        "lease_owner": None,
        "lease_until": None,
        "key_until": None,
        "progress": 0,
    }
    if not is_fence_kept:
        values["fence"] = 0
        await scene.execute(
            delete(tables.intent).where(INTENT.activation == activation)
        )
    await scene.execute(
        update(tables.activation).where(whole).values(values),
        update(tables.activation_item)
        .where(ITEM.activation == activation)
        .values(state=ItemState.WAITING.value, signature=None),
        insert(tables.activation_seal).values(
            activation=activation, host="h", epoch=1, sealed=b"sealed"
        ),
    )
    assert await scene.use_key() == request

    found = await scene.findings()

    assert {each.check for each in found} == {Check.USED_TWICE}
    assert {each.request for each in found} == {request}
    assert activation in {each.activation for each in found}


async def test_key_used_for_an_activation_that_nobody_consented_to(
    scene: Scene,
) -> None:
    """A row of SQL: no front recorded that somebody typed a password."""
    request = await scene.core.add_request(scene.person)
    activation = await scene.core.begin(scene.signer, [request])
    await scene.use_key()

    found = await scene.findings()

    assert [each.check for each in found] == [Check.USED_WITHOUT_CONSENT]
    assert (found[0].request, found[0].activation) == (request, activation)


@pytest.mark.parametrize("role", ["admin", SLOT, "chores/h/1"])
async def test_consent_that_another_role_recorded(scene: Scene, role: str) -> None:
    """It is none, and who recorded it is named."""
    request = await scene.core.add_request(scene.person)
    activation = await scene.core.begin(scene.signer, [request])
    await scene.say(
        role,
        _E.ACTIVATION_CREATED,
        request=request,
        activation=activation,
        credential=scene.credential,
    )
    await scene.use_key()

    assert await scene.found() == [Check.USED_WITHOUT_CONSENT, Check.WRONG_WRITER]


async def test_another_document_before_the_password(scene: Scene) -> None:
    """SQL puts it into the request; who signs says nothing of which they mean."""
    request, activation = await scene.begin()
    made = await scene.core.view(request)
    for kind, sha256 in (
        (_E.REQUEST_CREATED, made.sha256),
        (_E.REQUEST_TURN, "cd" * 32),
    ):
        await scene.say("api", kind, request=request, documentSha256=sha256)
    assert await scene.found() == []

    await scene.say(
        "api",
        _E.ACTIVATION_CREATED,
        request=request,
        activation=activation,
        credential=scene.credential,
        documentSha256="ef" * 32,
    )

    assert await scene.found() == [Check.DOCUMENT_SWAPPED]

    shared = tables.signature_request.c.id == request
    await scene.execute(update(tables.signature_request).where(shared).values(turn=1))
    assert await scene.found() == []


async def test_activation_of_another_credential(scene: Scene) -> None:
    """K4: consented to with one's own key, signed with another's."""
    other = await Scene.made(scene.core)
    _, activation = await scene.begin()
    await scene.execute(
        update(tables.activation)
        .where(tables.activation.c.id == activation)
        .values(credential=other.credential)
    )
    found = await scene.findings()
    await other.close()

    assert [each.check for each in found] == [Check.USED_WITHOUT_CONSENT]
    assert found[0].credential == other.credential


async def test_signature_that_never_was(scene: Scene) -> None:
    """A row with a verification code, and no use of the key."""
    request, activation = await scene.begin()
    await scene.execute(
        update(tables.activation_item)
        .where(ITEM.activation == activation)
        .values(state=ItemState.DONE.value, code="0" * 26),
        update(tables.signature_request)
        .where(tables.signature_request.c.id == request)
        .values(state="firmada"),
    )

    assert await scene.found() == sorted(
        [Check.SIGNATURE_UNRECORDED, Check.SIGNED_WITHOUT_KEY]
    )


async def test_k7_version_that_nobody_published(scene: Scene) -> None:
    """Version 2 of a signed document, an unsigned file."""
    request = await scene.sign()
    await scene.execute(
        insert(tables.signed_document).values(
            request=request,
            version=2,
            integrator=await scene.core.integrator(),
            sha256="ee" * 32,
            size_bytes=3,
            level="B-LTA",
            made=scene.core.now,
        )
    )

    found = await scene.findings()

    assert [each.check for each in found] == [Check.VERSION_UNRECORDED]
    assert found[0].request == request
    assert "ee" * 32 in found[0].reason


async def test_signed_event_without_a_key(scene: Scene) -> None:
    """Somebody with code in a worker says that it is signed."""
    request = await scene.core.add_request(scene.person)
    await scene.say("chores/h/1", _E.REQUEST_SIGNED, request=request, sha256="a" * 64)

    assert await scene.found() == [Check.SIGNED_WITHOUT_KEY]


async def test_use_of_a_key_that_chores_recorded(scene: Scene) -> None:
    """A chain that is whole, and the wrong one."""
    request, activation = await scene.begin()
    await scene.say(
        "chores/h/1",
        _E.KEY_USED,
        request=request,
        activation=activation,
        attempt=1,
        item=0,
    )

    assert Check.WRONG_WRITER in await scene.found()


async def test_credential_that_the_audit_does_not_know(scene: Scene) -> None:
    """A row of SQL, with a certificate that the CA never issued."""
    await scene.core.add_credential(scene.person)

    assert await scene.found() == [
        Check.CERTIFICATE_UNKNOWN,
        Check.CREDENTIAL_UNRECORDED,
    ]


async def test_imported_certificate_is_known_by_its_hash(scene: Scene) -> None:
    """That of an outside CA; another one beside it is not."""
    assert scene.held is not None
    own = scene.held
    made = der(own.ca.certify(own.spki, "20111111112"))
    credential = tables.credential.c.id == scene.credential
    await scene.execute(
        update(tables.credential).where(credential).values(certificate=made)
    )
    assert await scene.found() == [Check.CERTIFICATE_UNKNOWN]

    await scene.say(
        "api",
        _E.CERTIFICATE_IMPORTED,
        person=scene.person,
        credential=scene.credential,
        after={"sha256": hashlib.sha256(made).hexdigest()},
    )
    assert await scene.found() == []


async def test_small_pages_and_passes_find_the_same(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by pages and passes, and none of them loses anything."""
    for name, value in (("_STEP", 1), ("_PAGE", 1), ("_PASS", 1)):
        monkeypatch.setattr(reconcile, name, value)
    others = [await Scene.made(scene.core) for _ in range(3)]
    for other in others:
        await other.sign()
    assert await scene.findings() == []

    await scene.issue(await scene.ask())
    for other in others:
        await other.close()

    assert await scene.found() == [Check.ENROLLED_UNINVITED]


async def test_since_leaves_out_what_was_before(scene: Scene) -> None:
    """A finding of yesterday is told of by a run over all, and by none of today."""
    await scene.issue(await scene.ask())
    scene.core.clock.forward(86_400)
    await scene.begin()
    before = scene.core.now - timedelta(hours=1)
    today = Reconciliation(scene.core.store, before)
    _, activation = await scene.begin()

    assert [each async for each in today.findings()] == []
    assert today.requests == 2
    assert await scene.found() == [Check.ENROLLED_UNINVITED]
    del activation


async def test_row_that_cannot_be_read_ends_nothing(scene: Scene) -> None:
    """`audit verify` names it; the comparison goes on without it."""
    await scene.execute(
        update(tables.audit_event)
        .where(tables.audit_event.c.event == _E.REQUEST_SIGNED.value)
        .values(event="no.such")
    )

    assert Check.SIGNED_WITHOUT_KEY in await scene.found()

"""A person's credentials: seen, certified outside, revoked; on both databases."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import hashes

from appliance.domain.documents.verification import VerificationReport
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, new_id
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.ports import PdfInspector
from appliance.domain.vocab import (
    CertificateState,
    CredentialState,
    EventKind,
    RevocationReason,
    TaskKind,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.credentials import Credentials
from appliance.pki.revocation import Revocations
from appliance.pki.validation.trust_anchors import Trust
from appliance.pki.validation.trust_store import FormerCertificateStore
from tests.support.factories.fake_sandbox import FakeInspector, PlayedSandbox
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa, bundle, der, named
from tests.support.services.sandbox_server import running_sandbox

OUTSIDE = OutsideCa(NOON)
COMPROMISE = RevocationReason.KEY_COMPROMISE


def credentials_of(
    core: CoreFixture, inspector: PdfInspector | None = None
) -> Credentials:
    """The use cases, with a sandbox that takes every chain unless one is given."""
    store = core.store
    trust = Trust(store, core.clock, lambda: None)
    revocations = Revocations(store, core.clock)
    sandbox = inspector or FakeInspector(pages=1)
    return Credentials(store, core.clock, trust, revocations, sandbox)


async def somebody(core: CoreFixture) -> tuple[PersonId, str, Held]:
    """A person with a credential: id, CUIL, credential."""
    signer = await core.add_signer(credential=False)
    async with core.store.read() as transaction:
        person = await PersonStore(transaction).get(signer.person)
    assert person is not None
    return (
        signer.person,
        person.cuil,
        await hold(core.store, signer.person, person.cuil, NOON),
    )


async def trusting(core: CoreFixture) -> Credentials:
    """The use cases where `OUTSIDE` is trusted."""
    await Trust(core.store, core.clock, lambda: None).add(
        "operator",
        der(OUTSIDE.root),
        AnchorPurpose.SIGNERS,
        OUTSIDE.root.fingerprint(hashes.SHA256()).hex(),
    )
    return credentials_of(core)


async def refused(core: CoreFixture, *call: object) -> ErrorCode:
    """How an import is refused; it leaves no trace."""
    before = await core.audited()
    with pytest.raises(ApplianceError) as caught:
        await credentials_of(core).import_chain(*call)  # type: ignore[arg-type]  # as given
    assert await core.audited() == before
    return caught.value.code


async def test_credentials_are_seen_newest_first(core: CoreFixture) -> None:
    """What certificate, key and record say of each."""
    person, cuil, first = await somebody(core)
    core.clock.forward(1)
    second = await hold(core.store, person, cuil, NOON)

    newest, oldest = await credentials_of(core).of(person)

    assert [newest.id, oldest.id] == [second.id, first.id]
    assert oldest.state is CredentialState.SUPERSEDED
    assert (newest.holder, newest.cuil) == ("Ana Pérez", cuil)
    assert newest.issuer == "Rúbrica DEMO SIN VALIDEZ"
    assert newest.serial == f"{second.certificate.serial_number:x}"
    assert newest.sha256 == second.certificate.fingerprint(hashes.SHA256()).hex()
    assert not newest.outside


async def test_imported_chain_takes_the_place_of_the_certificate(
    core: CoreFixture,
) -> None:
    """The credential signs with it, the former stays on record, both are audited."""
    credentials = await trusting(core)
    person, cuil, held = await somebody(core)
    made = OUTSIDE.certify(held.spki, cuil, end=NOON + timedelta(days=100))

    view = await credentials.import_chain(
        held.id, bundle(made, OUTSIDE.issuing), f"person:{person}", person
    )

    async with core.store.read() as transaction:
        active = await CredentialStore(transaction).active(person)
        former = await FormerCertificateStore(transaction).of_credential(held.id)
    assert active is not None
    assert active.certificate == der(made)
    assert active.chain == (der(OUTSIDE.issuing),)
    assert active.not_after == NOON + timedelta(days=100)
    assert former == [(der(held.certificate), NOON)]
    assert view.outside
    assert view.issuer == "AC de afuera"
    (event,) = [
        row.event
        for row in await core.audit()
        if row.event.event is EventKind.CERTIFICATE_IMPORTED
    ]
    assert event.actor == f"person:{person}"
    old, new = event.detail["before"], event.detail["after"]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert old["serial"] == f"{held.certificate.serial_number:x}"
    assert new["serial"] == f"{made.serial_number:x}"


async def test_imported_certificate_may_be_replaced_again(core: CoreFixture) -> None:
    """A renewal by the outside CA is one more import; every former one is kept."""
    credentials = await trusting(core)
    _, cuil, held = await somebody(core)
    for _ in range(2):
        made = OUTSIDE.certify(held.spki, cuil)
        await credentials.import_chain(
            held.id, bundle(made, OUTSIDE.issuing), "operator"
        )

    async with core.store.read() as transaction:
        former = await FormerCertificateStore(transaction).of_credential(held.id)

    assert len(former) == 2


async def test_certificate_of_the_internal_ca_is_not_imported(
    core: CoreFixture,
) -> None:
    """Neither the one in use nor a former one: the key stays the internal CA's."""
    person, cuil, held = await somebody(core)
    trust = Trust(core.store, core.clock, lambda: der(held.ca.root))
    credentials = Credentials(
        core.store,
        core.clock,
        trust,
        Revocations(core.store, core.clock),
        FakeInspector(pages=1),
    )
    own = bundle(held.certificate, held.ca.issuing)
    audited = await core.audited()

    with pytest.raises(ApplianceError) as caught:
        await credentials.import_chain(held.id, own, "operator", person)

    assert caught.value.code is ErrorCode.CERTIFICATE_ISSUED_HERE
    assert caught.value.extras == {"field": "cadena", "certificado": 0}
    assert await core.audited() == audited
    async with core.store.read() as transaction:
        assert await FormerCertificateStore(transaction).of_credential(held.id) == []

    await trusting(core)
    made = OUTSIDE.certify(held.spki, cuil)
    await credentials.import_chain(held.id, bundle(made, OUTSIDE.issuing), "operator")
    with pytest.raises(ApplianceError) as caught:
        await credentials.import_chain(held.id, own, "operator", person)
    assert caught.value.code is ErrorCode.CERTIFICATE_ISSUED_HERE
    assert (await credentials.get(held.id)).outside


async def test_chain_in_use_is_not_imported_again(core: CoreFixture) -> None:
    """The same chain once more changes nothing, and says so."""
    credentials = await trusting(core)
    _, cuil, held = await somebody(core)
    pem = bundle(OUTSIDE.certify(held.spki, cuil), OUTSIDE.issuing)
    await credentials.import_chain(held.id, pem, "operator")

    assert await refused(core, held.id, pem, "operator") is ErrorCode.ALREADY_EXISTS


async def test_chain_that_does_not_fit_changes_nothing(core: CoreFixture) -> None:
    """Another key, another CUIL, a root that nobody trusts: as before, no row."""
    person, cuil, held = await somebody(core)
    sound = bundle(OUTSIDE.certify(held.spki, cuil), OUTSIDE.issuing, OUTSIDE.root)
    assert (
        await refused(core, held.id, sound, "operator")
        is ErrorCode.CHAIN_ROOT_UNTRUSTED
    )
    await trusting(core)
    _, other_cuil, other = await somebody(core)

    assert (
        await refused(core, other.id, sound, "operator")
        is ErrorCode.CERTIFICATE_KEY_DIFFERS
    )
    wrong = bundle(OUTSIDE.certify(held.spki, other_cuil), OUTSIDE.issuing)
    assert (
        await refused(core, held.id, wrong, "operator")
        is ErrorCode.CERTIFICATE_CUIL_DIFFERS
    )
    async with core.store.read() as transaction:
        active = await CredentialStore(transaction).active(person)
    assert active is not None
    assert active.certificate == der(held.certificate)


async def test_import_into_anothers_credential(core: CoreFixture) -> None:
    """Somebody else's is not there, nor is one that nobody has."""
    _, cuil, held = await somebody(core)
    stranger, _, _ = await somebody(core)
    pem = bundle(OUTSIDE.certify(held.spki, cuil), OUTSIDE.issuing)
    missing = ErrorCode.CREDENTIAL_NOT_FOUND

    assert await refused(core, held.id, pem, "person", stranger) is missing
    assert await refused(core, CredentialId(new_id()), pem, "operator") is missing
    assert await refused(core, CredentialId(""), pem, "operator") is missing


async def test_import_into_a_credential_out_of_use(core: CoreFixture) -> None:
    """A revoked key gets no certificate; nor one that another took the place of."""
    credentials = await trusting(core)
    _, cuil, held = await somebody(core)
    pem = bundle(OUTSIDE.certify(held.spki, cuil), OUTSIDE.issuing)
    await credentials.revoke(held.id, COMPROMISE, "operator")

    assert await refused(core, held.id, pem, "operator") is ErrorCode.CREDENTIAL_STATE


async def test_import_while_a_signature_is_made(core: CoreFixture) -> None:
    """A signature is finished with the certificate that it began with."""
    credentials = await trusting(core)
    signer = await core.add_signer(credential=False)
    async with core.store.read() as transaction:
        person = await PersonStore(transaction).get(signer.person)
    assert person is not None
    held = await hold(core.store, person.id, person.cuil, NOON)
    await core.add_activation(signer)
    pem = bundle(OUTSIDE.certify(held.spki, person.cuil), OUTSIDE.issuing)
    assert await core.claiming().claim_next() is not None

    assert await refused(core, held.id, pem, "operator") is ErrorCode.BUSY
    assert (await credentials.get(held.id)).outside is False


async def test_revoked_credential_waits_for_its_publication(core: CoreFixture) -> None:
    """One transaction: no signature any more, a task, a row of the audit."""
    person, _, held = await somebody(core)
    credentials = credentials_of(core)

    task = await credentials.revoke(held.id, COMPROMISE, f"person:{person}", person)

    async with core.store.read() as transaction:
        assert await CredentialStore(transaction).active(person) is None
        (issued,) = await CertificateStore(transaction).of_credential(held.id)
        status = await HsmTaskStore(transaction).status(task)
        assert await HsmTaskStore(transaction).any_open(TaskKind.REVOKE)
    assert status is not None
    assert (issued.state, issued.reason) == (CertificateState.REVOKING, COMPROMISE)
    view = await credentials.get(held.id, person)
    assert (view.state, view.reason, view.revoked_at) == (
        CredentialState.REVOKING,
        COMPROMISE,
        NOON,
    )
    with pytest.raises(ApplianceError) as caught:
        await credentials.revoke(held.id, COMPROMISE, "operator")
    assert caught.value.code is ErrorCode.CREDENTIAL_STATE


async def test_only_its_holder_revokes_a_credential(core: CoreFixture) -> None:
    """Another person's is not there, and stays as it is."""
    person, _, held = await somebody(core)
    stranger, _, _ = await somebody(core)

    with pytest.raises(ApplianceError) as caught:
        await credentials_of(core).revoke(held.id, COMPROMISE, "person:x", stranger)

    assert caught.value.code is ErrorCode.CREDENTIAL_NOT_FOUND
    assert (
        await credentials_of(core).get(held.id, person)
    ).state is CredentialState.ACTIVE


async def test_outside_certificate_is_revoked_with_its_key(core: CoreFixture) -> None:
    """The key signs no more, whoever certified it."""
    credentials = await trusting(core)
    person, cuil, held = await somebody(core)
    made = OUTSIDE.certify(held.spki, cuil)
    await credentials.import_chain(held.id, bundle(made, OUTSIDE.issuing), "operator")

    await credentials.revoke(held.id, COMPROMISE, "operator")

    async with core.store.read() as transaction:
        assert await CredentialStore(transaction).active(person) is None
    assert (await credentials.get(held.id)).outside


@dataclass
class SandboxAway(PlayedSandbox):
    """A sandbox that nobody can reach."""

    async def try_chain(self, path: Sequence[bytes]) -> VerificationReport:
        """Be away."""
        del path
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)


async def test_chain_that_the_verifier_refuses_is_not_imported(
    core: CoreFixture,
) -> None:
    """By the real sandbox: a name that cannot be compared leaves no trace."""
    await trusting(core)
    _, cuil, held = await somebody(core)
    subject = named("Ana \N{SLIGHTLY SMILING FACE}", f"CUIL {cuil}")
    made = OUTSIDE.certify(held.spki, cuil, subject=subject)
    before = await core.audited()

    with running_sandbox() as sandbox:
        credentials = credentials_of(core, sandbox.client)
        with pytest.raises(ApplianceError) as caught:
            await credentials.import_chain(
                held.id, bundle(made, OUTSIDE.issuing), "operator"
            )
        sound = OUTSIDE.certify(held.spki, cuil)
        view = await credentials.import_chain(
            held.id, bundle(sound, OUTSIDE.issuing), "operator"
        )

    assert caught.value.code is ErrorCode.CERTIFICATE_UNVERIFIABLE
    assert await core.audited() == [*before, EventKind.CERTIFICATE_IMPORTED]
    assert view.certificate == der(sound)


async def test_chain_that_cannot_be_tried_now_is_not_refused(core: CoreFixture) -> None:
    """The sandbox is away: the caller may come back, and nothing was changed."""
    await trusting(core)
    _, cuil, held = await somebody(core)
    made = OUTSIDE.certify(held.spki, cuil)
    before = await core.audited()

    with pytest.raises(ApplianceError) as caught:
        await credentials_of(core, SandboxAway()).import_chain(
            held.id, bundle(made, OUTSIDE.issuing), "operator"
        )

    assert caught.value.code is ErrorCode.SANDBOX_UNAVAILABLE
    assert await core.audited() == before

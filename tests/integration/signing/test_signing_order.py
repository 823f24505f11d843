"""Several signers of one document: whose turn it is, on both databases.

Source: decisions "several signers", "estados".
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import RequestState
from appliance.requests.intake import Intake, IntakeOrder
from appliance.requests.request_store import RequestStore
from appliance.settings import DocumentSettings
from appliance.signing.expiry import ExpiryJob
from appliance.signing.signing_order import PROCESS_ENDED
from tests.integration.signing.shared_document import (
    TWICE_SIGNED,
    OwnSandbox,
    Scene,
    one_document,
)
from tests.support.factories.fakes import PDF
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.storage

R = RequestState


@pytest.fixture
async def scene(core: CoreFixture) -> Scene:
    """Nobody has signed yet."""
    people = [await core.add_signer() for _ in range(3)]
    expires = core.now + timedelta(days=1)
    requests = await core.add_process([p.person for p in people], expires=expires)
    return Scene(core, people, requests)


async def test_every_document_with_a_signature_is_known_by_it(scene: Scene) -> None:
    """Whoever scans the first mark may hold what another one signed after it."""
    first, second, _ = scene.requests
    await scene.sign(0)
    await scene.sign(1)
    async with scene.core.store.write() as transaction:
        before = await DocumentStore(transaction).signed(first)
        assert before is not None
        later = replace(before, sha256="e" * 64, version=2)
        await DocumentStore(transaction).sealed(first, later, scene.core.clock.now())

    async with scene.core.store.read() as transaction:
        of_first = await DocumentStore(transaction).holding(first)
        of_second = await DocumentStore(transaction).holding(second)

    told = [each.sha256 for each in of_first]
    assert told == [f"{11:064x}", "e" * 64, f"{10:064x}"]
    assert [each.sha256 for each in of_second] == [f"{11:064x}"]


async def test_signing_gives_the_turn_on(scene: Scene) -> None:
    """In the transaction that publishes: on its output, which was inspected."""
    core = scene.core
    assert await scene.states() == [R.PENDING, R.WAITING, R.WAITING]

    await scene.sign(0)

    assert await scene.states() == [R.SIGNED, R.PENDING, R.WAITING]
    second = await core.view(scene.requests[1])
    assert (second.sha256, second.inspection) == (f"{10:064x}", TWICE_SIGNED)
    assert second.followed
    audit = [row.event for row in await core.audit()][-2:]
    assert [event.event.value for event in audit] == ["request.signed", "request.turn"]
    assert audit[1].request == scene.requests[1]
    assert audit[1].detail["predecessor"] == scene.requests[0]

    await scene.sign(1)
    await scene.sign(2)

    assert await scene.states() == [R.SIGNED] * 3
    # Nobody comes after the last: its output is not looked at again.
    assert len(scene.sandbox.asked) == 2


async def test_who_waits_is_neither_listed_nor_signable(scene: Scene) -> None:
    """Not even begun, whoever asks."""
    core, waits = scene.core, scene.requests[1]
    person = scene.people[1].person
    async with core.store.write() as transaction:
        listed = await RequestStore(transaction).of_person(
            person, {R.PENDING, R.IN_PROGRESS}
        )
        begun = await core.begin_one(transaction, person, waits, "a")

    assert listed == []
    assert not begun
    with pytest.raises(ApplianceError, match="STATE"):
        await scene.services.reject(scene.people[1], waits, "no")


async def test_turn_that_began_meanwhile_is_not_given_again(scene: Scene) -> None:
    """Found as left behind, and being signed by now: its document stays as it is."""
    core, (_, second, _) = scene.core, scene.requests
    await scene.sign(0)
    await core.begin(scene.people[1], [second])
    asked = len(scene.sandbox.asked)

    assert await scene.turns._give_on(second) == 0

    assert len(scene.sandbox.asked) == asked
    assert await scene.states() == [R.SIGNED, R.IN_PROGRESS, R.WAITING]


async def test_turn_left_behind_is_given_on_later(scene: Scene) -> None:
    """The sandbox was away when the first was published: a chore comes back to it."""
    await scene.sign(0, inspects=False)
    assert await scene.states() == [R.SIGNED, R.WAITING, R.WAITING]
    scene.sandbox.refusal = ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
    assert await scene.turns.give_on() == 0

    scene.sandbox.refusal = None

    assert await scene.turns.give_on() == 1
    assert await scene.turns.give_on() == 0
    assert await scene.states() == [R.SIGNED, R.PENDING, R.WAITING]
    assert (await scene.core.view(scene.requests[1])).sha256 == f"{10:064x}"


async def test_turn_that_cannot_be_given_keeps_nobody_from_theirs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look goes on after the one before, however many are stuck."""
    monkeypatch.setattr("appliance.signing.signing_order._BATCH", 1)
    people = [signer.person for signer in scene.people]
    other = replace(scene, requests=await scene.core.add_process(people))
    for each in (scene, other):
        await each.sign(0, inspects=False)
    turns = scene.turns
    scene.sandbox.refusal = ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
    assert await turns.give_on() == 0
    scene.sandbox.refusal = None

    assert await turns.give_on() == 1
    assert await other.states() == [R.SIGNED, R.PENDING, R.WAITING]


async def test_publication_outlives_a_sandbox_that_is_away(scene: Scene) -> None:
    """What was signed is published, whatever becomes of the next."""
    scene.sandbox.refusal = ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    await scene.sign(0)

    assert await scene.states() == [R.SIGNED, R.WAITING, R.WAITING]


async def test_output_that_cannot_be_taken_in_ends_the_rest(scene: Scene) -> None:
    """Those who wait are told why."""
    await scene.sign(0, inspects=False)
    scene.sandbox.refusal = DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX)

    assert await scene.turns.give_on() == 2

    ended = await scene.core.request_states(scene.requests[1:])
    assert ended == [(R.CANCELLED, "PDF_TOO_COMPLEX")] * 2


@pytest.mark.parametrize(
    ("how", "first", "rest"),
    [
        ("reject", R.REJECTED, R.CANCELLED),
        ("cancel", R.CANCELLED, R.CANCELLED),
        ("fail", R.FAILED, R.CANCELLED),
        ("expire", R.EXPIRED, R.EXPIRED),
    ],
)
async def test_end_of_one_ends_the_rest(
    scene: Scene, how: str, first: RequestState, rest: RequestState
) -> None:
    """What was signed stays so; each end is told in the audit."""
    core = scene.core
    await scene.sign(0)
    if how == "reject":
        await scene.services.reject(scene.people[1], scene.requests[1], "no es mío")
    elif how == "cancel":
        await scene.services.cancel(scene.requests[1], "operator")
    elif how == "fail":
        await scene.fail(1)
    else:
        core.clock.forward(86_400)
        await ExpiryJob(
            core.store, core.completion_notifier, core.clock
        ).expire_requests()

    assert await scene.states() == [R.SIGNED, first, rest]
    for at, state in ((1, first), (2, rest)):
        assert await scene.no_document(at) == (ErrorCode.STATE, state)
    (_, reason), told = (
        (await core.request_states(scene.requests[2:]))[0],
        (await core.audit())[-1].event,
    )
    assert reason in (PROCESS_ENDED, "")
    assert told.request == scene.requests[2]
    assert await scene.turns.give_on() == 0


async def test_document_may_still_come_while_it_can_be_signed(scene: Scene) -> None:
    """Pending, waiting and being signed; over by its time before it is swept."""
    core = scene.core
    not_yet = (ErrorCode.NOT_SIGNED_YET, None)
    assert [await scene.no_document(at) for at in range(3)] == [not_yet] * 3
    await core.begin(scene.people[0], [scene.requests[0]])
    assert await scene.no_document(0) == not_yet

    core.clock.forward(86_400)

    over = (ErrorCode.STATE, R.EXPIRED)
    assert [await scene.no_document(at) for at in range(3)] == [not_yet, over, over]


async def test_signed_document_has_no_other_version(scene: Scene) -> None:
    """A hash that none of its versions has is nowhere, and will not come."""
    await scene.sign(0)

    with pytest.raises(ApplianceError, match="NOT_FOUND"):
        await scene.services.signed(scene.people[0].person, scene.requests[0], "0" * 64)


async def test_order_names_each_signer_once(core: CoreFixture) -> None:
    """The same person twice, nobody known, too many: refused before the sandbox."""
    sandbox = OwnSandbox()
    intake = Intake(
        core.store, one_document(core), sandbox, core.clock, DocumentSettings()
    )
    await core.integrator()
    cuils = ("20055361682", "20267565393")
    for cuil in cuils:
        await core.add_signer(cuil=cuil)
    order = IntakeOrder("demo", cuils[0], "a.pdf", None, "operador", "operator")

    for then in ((cuils[0],), (cuils[1], cuils[1]), tuple(map(str, range(60)))):
        with pytest.raises(FieldInvalidError):
            await intake.create_request(replace(order, then=then), PDF)
    with pytest.raises(ApplianceError, match="PERSON_NOT_FOUND"):
        await intake.create_request(replace(order, then=("20000000001",)), PDF)
    assert sandbox.asked == []

    requests = await intake.create_requests(replace(order, then=cuils[1:]), PDF)

    states = [state for state, _ in await core.request_states(requests)]
    assert states == [R.PENDING, R.WAITING]


def test_fingerprint_counts_a_field_only_when_given() -> None:
    """What was stored before there were fields still means the same."""
    plain, named = SignParameters(), SignParameters(field="Firma")

    assert "campo" not in plain.to_wire()
    assert named.sha256(7) != plain.sha256(7)
    for params in (plain, named):
        assert SignParameters.from_wire(params.to_wire()) == params

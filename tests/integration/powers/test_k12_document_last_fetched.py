"""A signer signs the document that they last fetched (finding K12).

Two have one turn, or one follows another: what the first makes is the document of the
second, who has seen an earlier one and says nothing of it to firmar.

Source: decisions "seeing before signing"; docs/api.md "Sign".
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from appliance.database.tables import shown_document
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.requests.request import LISTED
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState
from appliance.record.unit_of_work import Transaction
from appliance.requests.shown_document_store import ShownDocumentStore
from tests.integration.signing.shared_document import OwnSandbox, Scene
from tests.support.factories.fakes import PNG
from tests.support.factories.signing_front import WRONG, SigningFront
from tests.support.installation.record import PASSWORD, CoreFixture

pytestmark = pytest.mark.storage

C, R = ErrorCode, RequestState


async def scene_with(front: SigningFront, turns: Sequence[int | None]) -> Scene:
    """People who sign one document; the front's person is the first of them."""
    people = [front.signer]
    while len(people) < len(turns):
        people.append(await front.core.add_signer(front.secret))
    requests = await front.core.add_process(
        [each.person for each in people],
        expires=front.core.now + timedelta(days=1),
        turns=turns,
    )
    return Scene(front.core, people, requests, DrawingSandbox(grows=True))


class DrawingSandbox(OwnSandbox):
    """Draws every page alike."""

    async def render(self, *_: object) -> bytes:
        """As a sandbox does."""
        return PNG


@pytest.fixture
async def scene(front: SigningFront) -> Scene:
    """Two who may sign in either order."""
    return await scene_with(front, (1, 1))


async def rows(core: CoreFixture) -> dict[int, tuple[str, bool]]:
    """What is recorded."""
    async with core.store.read() as transaction:
        found = await transaction.connection.execute(select(shown_document))
        return {row.request: (row.sha256, row.drawn) for row in found}


async def listed(front: SigningFront, scene: Scene) -> None:
    """The first one's program fetches the list."""
    await scene.services.list_for(front.signer.person, LISTED)


async def fetch(scene: Scene, how: str, at: int = 0) -> None:
    """One of them fetches, by each way that there is."""
    person, request = scene.people[at].person, scene.requests[at]
    services = scene.services
    match how:
        case "list":
            await services.list_for(person, LISTED)
        case "page of a list":
            await services.list_for(person, LISTED, limit=2)
        case "detail":
            await services.detail(person, request)
        case "original":
            await services.original(person, request)
        case "part of the original":
            await services.original(person, request, goes_on=True)
        case _:
            await services.preview(person, request, GivenParameters())


NAMED = ["list", "page of a list", "detail"]
DRAWN = ["original", "part of the original", "preview"]


@pytest.mark.parametrize("how", [*NAMED, *DRAWN])
async def test_document_of_before_is_not_signed(
    front: SigningFront, scene: Scene, how: str
) -> None:
    """412 before any password is looked at; a new list is enough to go on by."""
    await fetch(scene, how)
    await scene.sign(1)
    command = front.command(scene.requests[0])

    assert await front.code(replace(command, password=WRONG)) is C.DOCUMENT_CHANGED
    assert await front.code(command) is C.DOCUMENT_CHANGED
    assert await front.counted() == 0
    await listed(front, scene)

    assert (await front.signed(command)).document is not None


@pytest.mark.parametrize("how", NAMED)
async def test_list_alone_does_not_replace_what_was_drawn(
    front: SigningFront, scene: Scene, how: str
) -> None:
    """A program polls the list while its user still sees the earlier pages."""
    await fetch(scene, "original")
    await scene.sign(1)
    await fetch(scene, how)

    code = await front.code(front.command(scene.requests[0]))

    assert code is C.DOCUMENT_CHANGED


@pytest.mark.parametrize("how", DRAWN)
async def test_new_look_is_enough(front: SigningFront, scene: Scene, how: str) -> None:
    """Whoever fetches what is there now signs that, without a refusal."""
    await fetch(scene, "original")
    await scene.sign(1)
    await fetch(scene, how)

    outcome = await front.signed(front.command(scene.requests[0]))

    assert outcome.document is not None


async def test_who_fetched_nothing_signs_what_is_there(
    front: SigningFront, scene: Scene
) -> None:
    """As a client from before, and where a version before answered the fetch."""
    await scene.sign(1)

    assert (await front.signed(front.command(scene.requests[0]))).document is not None


async def test_who_says_which_document_is_believed(
    front: SigningFront, scene: Scene
) -> None:
    """`If-Match` of what is there signs it, whatever was fetched before."""
    await fetch(scene, "original")
    await scene.sign(1)
    now = (await front.core.view(scene.requests[0])).sha256

    command = front.command(scene.requests[0], if_match=now)

    assert (await front.signed(command)).document is not None


async def test_what_was_fetched_while_it_waited(front: SigningFront) -> None:
    """Signers in turn: the second one read the document before the first one signed."""
    scene = await scene_with(front, (None, None))
    scene.people.reverse()
    scene.requests = await front.core.add_process(
        [each.person for each in scene.people]
    )
    await fetch(scene, "detail", at=1)
    await scene.sign(0)
    command = front.command(scene.requests[1])

    assert await front.code(command) is C.DOCUMENT_CHANGED
    await listed(front, scene)
    assert (await front.signed(command)).document is not None


async def test_batch_signs_what_was_fetched_alone(
    front: SigningFront, scene: Scene
) -> None:
    """Of several, the changed one is refused; the others are signed."""
    plain = await front.new_request()
    await listed(front, scene)
    await scene.sign(1)
    batch = SignBatch((scene.requests[0], plain), GivenParameters(), PASSWORD)

    async with front.signing.begin(batch.requests, batch, front.signer) as begun:
        refused = {request: error.code for request, error in begun.refused.items()}
    await front.work_off()

    assert refused == {scene.requests[0]: C.DOCUMENT_CHANGED}
    assert (await front.core.view(plain)).state is R.SIGNED
    assert (await front.core.view(scene.requests[0])).state is R.PENDING
    await listed(front, scene)
    async with front.signing.begin(batch.requests, batch, front.signer) as begun:
        assert not begun.refused


async def test_repeat_of_what_was_signed_is_answered(
    front: SigningFront, scene: Scene
) -> None:
    """The stored answer stays the answer, whatever was fetched."""
    await listed(front, scene)
    command = front.command(scene.requests[0])
    first = await front.signed(command)
    await scene.sign(1)

    assert (await front.sign(command)).document == first.document


async def test_attempt_that_was_undone_is_begun_again_on_what_was_fetched(
    front: SigningFront, scene: Scene
) -> None:
    """Given back, and another one signed: the same call means another document."""
    await listed(front, scene)
    command = front.command(scene.requests[0])
    call = front.start(command)
    await front.notified()
    await front.hand_back(C.HSM_UNAVAILABLE)
    with pytest.raises(ApplianceError):
        await call
    await scene.sign(1)

    assert await front.code(command) is C.DOCUMENT_CHANGED


async def test_lists_write_once(
    front: SigningFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 requests: one transaction for the first list, none for the next ones.

    None at all where nobody else signs.
    """
    people = [front.signer, await front.core.add_signer(front.secret)]
    for _ in range(150):
        await front.new_request()
        await front.core.add_process([each.person for each in people], turns=(1, 1))
    scene = Scene(front.core, people, [])
    write, begun = front.core.store.write, 0

    def counted() -> AbstractAsyncContextManager[Transaction]:
        nonlocal begun
        begun += 1
        return write()

    monkeypatch.setattr(front.core.store, "write", counted)
    writes = []
    for _ in range(3):
        await listed(front, scene)
        writes.append(begun)

    assert writes == [1, 1, 1]
    assert len(await rows(front.core)) == 150


async def test_requests_of_one_signer_have_no_row(front: SigningFront) -> None:
    """However often they are fetched: nobody gives them another document."""
    request = await front.new_request()
    scene = Scene(front.core, [front.signer], [request], DrawingSandbox())
    for how in (*NAMED, *DRAWN):
        await fetch(scene, how)

    assert await rows(front.core) == {}


async def test_record_says_what_was_fetched_last(
    front: SigningFront, scene: Scene
) -> None:
    """Named, drawn, named again; refused; named."""
    request = scene.requests[0]
    before = (await front.core.view(request)).sha256
    seen = []
    for step in ("list", "preview", "list"):
        await fetch(scene, step)
        seen.append((await rows(front.core))[request])
    await scene.sign(1)
    now = (await front.core.view(request)).sha256
    await fetch(scene, "detail")
    seen.append((await rows(front.core))[request])
    await front.code(front.command(request))
    seen.append((await rows(front.core))[request])
    await fetch(scene, "detail")
    seen.append((await rows(front.core))[request])

    assert seen == [
        (before, False),
        (before, True),
        (before, True),
        (before, True),
        (before, False),
        (now, False),
    ]


async def test_late_write_of_a_list_does_not_undo_a_fetch(
    front: SigningFront, scene: Scene
) -> None:
    """Two calls at once: the list was read first, and recorded last."""
    request = scene.requests[0]
    earlier = await front.core.view(request)
    await scene.sign(1)
    await fetch(scene, "original")
    async with front.core.store.write() as transaction:
        await ShownDocumentStore(transaction).record([earlier], drawn=False)

    assert (await front.signed(front.command(request))).document is not None

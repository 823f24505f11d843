"""Documents, requests and idempotency keys on both databases."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.documents.inspected import FindingKind, Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    DocumentId,
    IntegratorId,
    PersonId,
    RequestId,
    new_id,
)
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.request import LEGAL_MOVES, LISTED
from appliance.domain.vocab import RequestState
from appliance.record.idempotency_store import IdempotencyStore
from appliance.requests.request_store import RequestStore
from tests.support.installation.record import A4, CoreFixture, signed_view

pytestmark = pytest.mark.storage

SHA256 = "ab" * 32
INSPECTION = Inspection(
    size_bytes=1234,
    pages=(A4, replace(A4, rotate=90)),
    findings=(FindingKind.JAVASCRIPT, FindingKind.LAYERS),
    signatures=2,
    docmdp=2,
)


def document(integrator: IntegratorId, sha256: str = SHA256) -> StoredDocument:
    """A document not recorded yet."""
    return StoredDocument(DocumentId(new_id()), integrator, sha256, INSPECTION)


async def add(core: CoreFixture, new: StoredDocument) -> StoredDocument:
    """Record a document in a transaction of its own."""
    async with core.store.write() as transaction:
        return await DocumentStore(transaction).add(new, core.now)


async def test_document_kept_once_an_integrator(core: CoreFixture) -> None:
    """The same bytes again give the row that is there."""
    integrator = await core.integrator()

    first = await add(core, document(integrator))
    again = await add(core, document(integrator))

    assert again.id == first.id


async def test_document_not_shared_between_integrators(core: CoreFixture) -> None:
    """The same bytes of another integrator are another document."""
    first = await add(core, document(await core.integrator()))
    other = await add(core, document(await core.add_integrator("other")))

    assert other.id != first.id


async def test_document_kept_once_when_it_comes_ten_times_at_once(
    core: CoreFixture,
) -> None:
    """Calls that run side by side find one row, and none of them fails."""
    integrator = await core.integrator()

    kept = await asyncio.gather(
        *(add(core, document(integrator)) for _ in range(10)),
    )

    assert len({each.id for each in kept}) == 1


async def test_document_inspected_anew_is_described_anew(core: CoreFixture) -> None:
    """A later inspection replaces the stored one; the row keeps its id."""
    integrator = await core.integrator()
    signer = await core.add_signer()
    request = await core.add_request(signer.person, sha256=SHA256)

    await add(core, document(integrator))

    assert (await core.view(request)).inspection == INSPECTION


async def test_request_reads_back_as_recorded(core: CoreFixture) -> None:
    """A new request is `pendiente`, with all that was said of it."""
    signer = await core.add_signer()
    expires = core.now + timedelta(days=1)
    request = await core.add_request(signer.person, sha256=SHA256, expires=expires)

    view = await core.view(request)

    assert (view.id, view.person, view.state) == (
        request,
        signer.person,
        RequestState.PENDING,
    )
    assert (view.sha256, view.expires, view.created) == (SHA256, expires, core.now)
    assert (view.reason, view.params_sha256, view.activation) == ("", None, None)
    assert (view.document_name, view.integrator_name) == ("contrato.pdf", "Demo")


async def test_request_numbers_grow(core: CoreFixture) -> None:
    """Each request has a number above the ones before."""
    signer = await core.add_signer()

    numbers = [await core.add_request(signer.person) for _ in range(3)]

    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0


async def listed(core: CoreFixture, person: PersonId, **options: int) -> list[int]:
    """What `GET /solicitudes` would list."""
    async with core.store.read() as transaction:
        views = await RequestStore(transaction).of_person(
            person,
            LISTED,
            limit=options.get("limit"),
            before=RequestId(options["before"]) if "before" in options else None,
        )
    return [view.id for view in views]


async def test_list_is_newest_first_and_own(core: CoreFixture) -> None:
    """A person sees their own open requests, the newest first."""
    signer, other = await core.add_signer(), await core.add_signer()
    numbers = [await core.add_request(signer.person) for _ in range(4)]
    await core.add_request(other.person)
    async with core.store.write() as transaction:
        await RequestStore(transaction).move(
            numbers[1], RequestState.PENDING, RequestState.REJECTED, "no"
        )
    await core.begin(signer, [numbers[2]])

    seen = await listed(core, signer.person)

    assert seen == [numbers[3], numbers[2], numbers[0]]


async def test_list_pages_meet_without_overlap(core: CoreFixture) -> None:
    """Pages by `before` give every request once."""
    signer = await core.add_signer()
    numbers = [await core.add_request(signer.person) for _ in range(5)]

    first = await listed(core, signer.person, limit=2)
    second = await listed(core, signer.person, limit=2, before=first[-1])
    third = await listed(core, signer.person, limit=2, before=second[-1])

    assert [*first, *second, *third] == numbers[::-1]
    assert await listed(core, signer.person, limit=2, before=third[-1]) == []


async def test_all_gives_the_newest_of_anybody(core: CoreFixture) -> None:
    """An operator sees the newest requests, whoever they are of."""
    numbers = [
        await core.add_request((await core.add_signer()).person) for _ in range(3)
    ]

    async with core.store.read() as transaction:
        views = await RequestStore(transaction).all(2)

    assert [view.id for view in views] == [numbers[2], numbers[1]]


async def test_begin_moves_pending_once(core: CoreFixture) -> None:
    """Of two beginnings one moves the request."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)

    async with core.store.write() as transaction:
        first, second = [
            await core.begin_one(transaction, signer.person, request, name)
            for name in ("first", "second")
        ]

    view = await core.view(request)
    assert (first, second) == (1, 0)
    assert (view.state, view.activation) == (RequestState.IN_PROGRESS, "first")


async def test_move_needs_the_state_it_names(core: CoreFixture) -> None:
    """A legal move from a state that the request is not in changes nothing."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)

    async with core.store.write() as transaction:
        moved = await RequestStore(transaction).move(
            request, RequestState.IN_PROGRESS, RequestState.SIGNED
        )

    assert not moved
    assert (await core.view(request)).state is RequestState.PENDING


async def test_move_refused_when_illegal(sqlite_core: CoreFixture) -> None:
    """Storage takes no move that the state machine does not know."""
    signer = await sqlite_core.add_signer()
    request = await sqlite_core.add_request(signer.person)
    every = [(now, then) for now in RequestState for then in RequestState]
    legal = [(now, then) for now, thens in LEGAL_MOVES.items() for then in thens]

    refused = []
    async with sqlite_core.store.write() as transaction:
        for now, then in every:
            if (now, then) not in legal:
                with pytest.raises(ApplianceError) as caught:
                    await RequestStore(transaction).move(request, now, then)
                refused.append(caught.value.code)

    assert refused == [ErrorCode.STATE] * (len(every) - len(legal))


async def test_move_to_in_progress_only_by_begin(sqlite_core: CoreFixture) -> None:
    """Nothing is `en_proceso` without an activation and its parameters."""
    signer = await sqlite_core.add_signer()
    request = await sqlite_core.add_request(signer.person)

    async with sqlite_core.store.write() as transaction:
        with pytest.raises(ApplianceError):
            await RequestStore(transaction).move(
                request, RequestState.PENDING, RequestState.IN_PROGRESS
            )

    assert (await sqlite_core.view(request)).state is RequestState.PENDING


async def test_one_of_many_movers_wins(core: CoreFixture) -> None:
    """Ten that would reject the same request: one does."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)

    async def reject(number: int) -> bool:
        async with core.store.write() as transaction:
            return await RequestStore(transaction).move(
                request, RequestState.PENDING, RequestState.REJECTED, str(number)
            )

    moved = await asyncio.gather(*(reject(number) for number in range(10)))

    assert moved.count(True) == 1
    assert (await core.view(request)).reason == str(moved.index(True))


async def test_signed_document_at_most_one(core: CoreFixture) -> None:
    """A second signed document of a request is refused by the tables."""
    signer = await core.add_signer()
    view = await core.view(await core.add_request(signer.person))
    async with core.store.write() as transaction:
        await DocumentStore(transaction).sealed(view.id, signed_view(view), core.now)

    with pytest.raises(Exception, match=r"(?i)unique"):
        async with core.store.write() as transaction:
            await DocumentStore(transaction).sealed(
                view.id, signed_view(view), core.now
            )

    async with core.store.read() as transaction:
        assert await DocumentStore(transaction).signed(view.id) == signed_view(view)


async def remember(core: CoreFixture, scope: str, fingerprint: str) -> ErrorCode | None:
    """Bind the key `k` in a transaction of its own; the refusal, if any."""
    try:
        async with core.store.write() as transaction:
            await IdempotencyStore(transaction).remember(
                scope, "k", fingerprint, core.now
            )
    except ApplianceError as exc:
        return exc.code
    return None


async def test_idempotency_key_is_bound_to_its_first_use(core: CoreFixture) -> None:
    """The same again is fine, other content is a conflict, another scope is free."""
    assert await remember(core, "ana", "f1") is None
    assert await remember(core, "ana", "f1") is None
    assert await remember(core, "ana", "f2") is ErrorCode.IDEMKEY_CONFLICT
    assert await remember(core, "eva", "f2") is None

    async with core.store.read() as transaction:
        assert await IdempotencyStore(transaction).remembered("ana", "k") == "f1"
        assert await IdempotencyStore(transaction).remembered("ana", "other") is None


async def test_idempotency_key_has_one_winner_of_ten(core: CoreFixture) -> None:
    """Of ten different uses at once one is bound and nine are told so."""
    told = await asyncio.gather(
        *(remember(core, "ana", f"f{number}") for number in range(10))
    )

    assert told.count(None) == 1
    assert told.count(ErrorCode.IDEMKEY_CONFLICT) == 9

"""Documents that wait to be signed while an upgrade comes, on both databases.

Source: docs/documents.md "After an upgrade".
"""

from dataclasses import replace
from typing import Final

import pytest

from appliance.documents.docmdp_policy import check_permitted
from appliance.domain.documents.inspected import (
    INSPECTOR_VERSION,
    Damage,
    FindingKind,
    Repair,
)
from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
)
from appliance.domain.requests.signing_batch import SignBatch
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import EventKind, RequestState
from appliance.signing.reexamination import Reexamination
from appliance.signing.signing_order import PROCESS_ENDED
from tests.integration.signing.shared_document import (
    TWICE_SIGNED,
    OwnSandbox,
    Scene,
    inspections_of,
)
from tests.support.factories.signing_front import open_front
from tests.support.installation.record import PASSWORD, CoreFixture
from worker.signing.failed_documents import fail_documents

pytestmark = pytest.mark.storage

R = RequestState
OLD: Final = replace(
    TWICE_SIGNED, signatures=0, inspector_version=INSPECTOR_VERSION - 1
)
AMBIGUOUS: Final = DocumentRefusedError(ErrorCode.PDF_AMBIGUOUS)


def again_by(core: CoreFixture, sandbox: OwnSandbox) -> Reexamination:
    """What the version of today does, by that sandbox."""
    return Reexamination(core.store, inspections_of(core, sandbox))


async def failures(core: CoreFixture) -> list[tuple[int | None, object]]:
    """Requests that failed, and why, by the audit."""
    return [
        (row.event.request, row.event.detail["reason"])
        for row in await core.audit()
        if row.event.event is EventKind.REQUEST_FAILED
    ]


@pytest.mark.parametrize("version", [1, 5])
async def test_outdated_inspection_is_made_again(
    core: CoreFixture, version: int
) -> None:
    """At the chores' start, or at the signer's look; until then nothing is signed.

    Version 5 made no trial signature of the whole way.
    """
    sandbox = OwnSandbox()
    signer = await core.add_signer()
    old = replace(OLD, inspector_version=version)
    requests = [await core.add_request(signer.person, inspection=old) for _ in range(2)]
    view = await core.view(requests[0])
    with pytest.raises(ApplianceError, match="SANDBOX_UNAVAILABLE"):
        check_permitted(view.inspection, SignParameters(), followed=False)

    services = Scene(core, [], [], sandbox).services
    seen = await services.get(signer.person, requests[0])
    again = again_by(core, sandbox)
    renewed = await again.renew()

    assert seen.inspection == TWICE_SIGNED
    assert renewed == 1
    assert (await core.view(requests[1])).inspection == TWICE_SIGNED
    assert await again.renew() == 0


async def test_repaired_copy_is_still_told_as_one(core: CoreFixture) -> None:
    """Whoever inspects it anew sees a sound file: what it was is on the record."""
    signer = await core.add_signer()
    old = replace(OLD, findings=(FindingKind.REPAIRED,), inspector_version=1)
    repair = Repair("a" * 64, (Damage.CROSS_REFERENCES,))
    request = await core.add_request(signer.person, inspection=old, repair=repair)

    seen = await Scene(core, [], [], OwnSandbox()).services.get(signer.person, request)

    assert seen.inspection.findings == (FindingKind.REPAIRED,)
    assert await core.view(request) == seen


async def test_refused_document_ends_its_request_and_those_behind(
    core: CoreFixture,
) -> None:
    """Once, with the code as its reason; others' documents are none of its matter."""
    sandbox = OwnSandbox(refusal=AMBIGUOUS)
    people = [(await core.add_signer()).person for _ in range(2)]
    requests = await core.add_process(people, inspection=OLD)
    known = await core.add_request(people[0], inspection=TWICE_SIGNED)
    again = again_by(core, sandbox)

    assert await again.renew() == 0
    asked = len(sandbox.asked)
    assert await again.renew() == 0

    assert await core.request_states([*requests, known]) == [
        (R.FAILED, "PDF_AMBIGUOUS"),
        (R.CANCELLED, PROCESS_ENDED),
        (R.PENDING, ""),
    ]
    assert await failures(core) == [(requests[0], "PDF_AMBIGUOUS")]
    assert len(sandbox.asked) == asked


async def test_signer_who_looks_first_is_told_that_it_is_over(
    core: CoreFixture,
) -> None:
    """Before the chores came to it; a preview says why."""
    signer = await core.add_signer()
    requests = [await core.add_request(signer.person, inspection=OLD) for _ in range(2)]
    services = Scene(core, [], [], OwnSandbox(refusal=AMBIGUOUS)).services

    seen = await services.get(signer.person, requests[0])
    with pytest.raises(DocumentRefusedError) as caught:
        await services.preview(signer.person, requests[1], GivenParameters())

    assert (seen.state, seen.reason) == (R.FAILED, "PDF_AMBIGUOUS")
    assert caught.value.code is ErrorCode.PDF_AMBIGUOUS
    assert await core.request_states(requests) == [(R.FAILED, "PDF_AMBIGUOUS")] * 2


@pytest.mark.parametrize(
    "refusal",
    [
        DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "time"),
        ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE),
        ApplianceError(ErrorCode.OVERLOADED),
    ],
    ids=lambda refusal: refusal.code.value,
)
async def test_what_passes_ends_nothing(
    core: CoreFixture, refusal: ApplianceError
) -> None:
    """A busy machine, or a sandbox that is away: the next look tries again."""
    sandbox = OwnSandbox(refusal=refusal)
    signer = await core.add_signer()
    request = await core.add_request(signer.person, inspection=OLD)
    services = Scene(core, [], [], sandbox).services

    assert await again_by(core, sandbox).renew() == 0
    with pytest.raises(ApplianceError) as caught:
        await services.get(signer.person, request)
    before = await core.request_states([request])
    sandbox.refusal = None

    assert caught.value.code is refusal.code
    assert before == [(R.PENDING, "")]
    assert await again_by(core, sandbox).renew() == 1


@pytest.mark.parametrize("end", ["sign", "reject"])
async def test_what_is_over_is_looked_at_no_more(core: CoreFixture, end: str) -> None:
    """Its signer sees it as it was, whatever this version would say of the file."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    scene = Scene(core, [signer], [request])
    if end == "sign":
        await scene.sign(0)
    else:
        await scene.services.reject(signer, request, "no")
    sandbox = OwnSandbox(refusal=AMBIGUOUS)
    outdated = replace(await core.view(request), inspection=OLD)

    assert await again_by(core, sandbox).current(outdated) == outdated

    assert sandbox.asked == []
    assert await failures(core) == []


async def test_request_that_moved_on_meanwhile_is_left(core: CoreFixture) -> None:
    """It is being signed: its worker says how it ends."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person, inspection=OLD)
    view = await core.view(request)
    await core.begin(signer, [request])

    with pytest.raises(DocumentRefusedError):
        await again_by(core, OwnSandbox(refusal=AMBIGUOUS)).current(view)

    assert await core.request_states([request]) == [(R.IN_PROGRESS, "")]


async def test_signing_examines_again_what_nobody_has_looked_at(
    core: CoreFixture,
) -> None:
    """Chores of another host came by earlier, or have not come to it yet."""
    sandbox = OwnSandbox()
    async with open_front(core, again_by(core, sandbox)) as front:
        request = await core.add_request(front.signer.person, inspection=OLD)

        outcome = await front.signed(front.command(request))

        assert outcome.document is not None
        assert (await core.view(request)).inspection == TWICE_SIGNED
        assert len(sandbox.asked) == 1


async def test_signing_of_what_is_refused_says_why(core: CoreFixture) -> None:
    """Before the password is looked at; and it is over."""
    sandbox = OwnSandbox(refusal=AMBIGUOUS)
    async with open_front(core, again_by(core, sandbox)) as front:
        request = await core.add_request(front.signer.person, inspection=OLD)

        code = await front.code(front.command(request, password=b"another one"))

        assert code is ErrorCode.PDF_AMBIGUOUS
        assert await front.counted() == 0
        assert await core.request_states([request]) == [(R.FAILED, "PDF_AMBIGUOUS")]


async def test_many_are_signed_but_for_what_is_refused(core: CoreFixture) -> None:
    """Each refusal is that document's own."""
    sandbox = OwnSandbox(refusal=AMBIGUOUS)
    async with open_front(core, again_by(core, sandbox)) as front:
        person = front.signer.person
        refused = await core.add_request(person, inspection=OLD)
        sound = await core.add_request(person)
        batch = SignBatch((refused, sound), GivenParameters(), PASSWORD)

        async with front.signing.begin(batch.requests, batch, front.signer) as begun:
            codes = {each: exc.code for each, exc in begun.refused.items()}

        assert codes == {refused: ErrorCode.PDF_AMBIGUOUS}
        assert await core.request_states([refused, sound]) == [
            (R.FAILED, "PDF_AMBIGUOUS"),
            (R.IN_PROGRESS, ""),
        ]


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (ErrorCode.SANDBOX_UNAVAILABLE, R.PENDING),
        (ErrorCode.OVERLOADED, R.PENDING),
        (ErrorCode.PDF_AMBIGUOUS, R.FAILED),
    ],
)
async def test_worker_that_cannot_look_again_gives_the_request_back(
    core: CoreFixture, code: ErrorCode, state: RequestState
) -> None:
    """The upgrade came between consent and signature; only a refusal is final."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person, inspection=OLD)
    await core.begin(signer, [request])
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None

    documents = [*work.claim.documents]
    await fail_documents(worker, work.claim, documents, ApplianceError(code))

    assert await core.request_states([request]) == [(state, code.value)]

"""Signed documents verified again: pages, versions, outages; on both databases."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.documents.verification import YES, VerificationReport
from appliance.domain.errors import (
    ApplianceError,
    DocumentRefusedError,
    DocumentsAwayError,
    ErrorCode,
)
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.kept_documents import Selection
from appliance.domain.requests.request import SignedDocumentView
from appliance.signing import document_recheck
from appliance.signing.document_recheck import (
    DocumentRecheck,
    OutageError,
    Outcome,
    Rechecked,
)
from tests.support.documents.forgeries import FORGERIES
from tests.support.documents.signed_bases import base, makers
from tests.support.factories.fake_sandbox import whole_signature
from tests.support.installation.record import CoreFixture
from tests.support.services.sandbox_server import running_sandbox

WHOLE = VerificationReport((whole_signature("Firma-1"),), YES)
Verify = Callable[[bytes], Awaitable[VerificationReport]]


class Files:
    """Documents of which each says its name."""

    def __init__(self, fault: ApplianceError | None = None) -> None:
        self.fault = fault

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """Its name, or the fault."""
        del integrator
        if self.fault is not None:
            raise self.fault
        return sha256.encode()


def rechecking(
    core: CoreFixture, verify: Verify, files: Files | None = None
) -> DocumentRecheck:
    """The use case."""
    return DocumentRecheck(core.store, files or Files(), verify)  # type: ignore[arg-type]  # only read


async def whole(_: bytes) -> VerificationReport:
    """Call every document whole."""
    return WHOLE


async def signed(core: CoreFixture, count: int, versions: int = 1) -> list[RequestId]:
    """Requests with signed documents, each of several versions."""
    signer, integrator = await core.add_signer(), await core.integrator()
    made = []
    for number in range(count):
        request = await core.add_request(signer.person, sha256=f"{number:064x}")
        async with core.store.write() as transaction:
            for version in range(1, versions + 1):
                view = SignedDocumentView(
                    request=request,
                    integrator=integrator,
                    file_name="a.pdf",
                    sha256=f"{request:032x}{version:032x}",
                    size_bytes=1000 * version,
                    level="B-B",
                    version=version,
                )
                await DocumentStore(transaction).sealed(request, view, core.now)
        made.append(request)
    return made


async def test_newest_versions_come_newest_first_across_pages(
    core: CoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, whatever the size of a page, and on from where a run ended."""
    requests = await signed(core, 7, versions=2)
    monkeypatch.setattr(document_recheck, "_PAGE", 3)
    recheck = rechecking(core, whole)

    seen = [each async for each in recheck.run(Selection())]
    rest = [each async for each in recheck.run(Selection(before=requests[3]))]

    assert [each.document.request for each in seen] == requests[::-1]
    assert {each.document.version for each in seen} == {2}
    assert {each.outcome for each in seen} == {Outcome.WHOLE}
    assert [each.document.request for each in rest] == requests[2::-1]
    assert await recheck.count(Selection()) == 7


async def test_signatures_are_counted_by_first_versions(core: CoreFixture) -> None:
    """A first signer's document may outgrow the second's by its timestamps."""
    signers = [await core.add_signer() for _ in range(2)]
    first, second = await core.add_process([each.person for each in signers])
    integrator = await core.integrator()
    async with core.store.write() as transaction:
        for request, version, size in ((first, 1, 10), (second, 1, 20), (first, 2, 30)):
            view = SignedDocumentView(
                request=request,
                integrator=integrator,
                file_name="a.pdf",
                sha256=f"{request:032x}{version:032x}",
                size_bytes=size,
                level="B-LT",
                version=version,
            )
            await DocumentStore(transaction).sealed(request, view, core.now)

    seen = [each async for each in rechecking(core, whole).run(Selection())]

    assert [
        (each.document.request, each.document.version, each.document.signatures)
        for each in seen
    ] == [(second, 1, 2), (first, 2, 1)]
    assert [each.outcome for each in seen] == [Outcome.BROKEN, Outcome.WHOLE]


async def test_selection_by_day_and_request(core: CoreFixture) -> None:
    """What was made before the day is left out."""
    old = await signed(core, 2)
    core.clock.forward(86_400)
    new = await signed(core, 1)
    recheck = rechecking(core, whole)

    since = Selection(since=core.now - timedelta(hours=1))
    found = [each.document.request async for each in recheck.run(since)]
    one = [each async for each in recheck.run(Selection(request=old[0]))]

    assert found == new
    assert [each.document.request for each in one] == old[:1]


@pytest.mark.parametrize("code", ["SANDBOX_UNAVAILABLE", "OVERLOADED"])
async def test_outage_says_no_of_nothing_and_ends_the_run(
    core: CoreFixture, code: str
) -> None:
    """Some are listed as not checked; the run can go on with them later."""
    requests = await signed(core, 6)

    async def away(pdf: bytes) -> VerificationReport:
        if pdf.startswith(f"{requests[-1]:032x}".encode()):
            return WHOLE
        raise ApplianceError(ErrorCode(code))

    seen: list[Rechecked] = []

    async def drain() -> None:
        async for each in rechecking(core, away).run(Selection()):
            seen.append(each)  # noqa: PERF401 (it ends by an error)

    with pytest.raises(OutageError) as caught:
        await drain()

    assert [each.outcome for each in seen] == [Outcome.WHOLE, *[Outcome.UNCHECKED] * 3]
    assert caught.value.at == requests[-2]


async def test_store_that_is_away_is_an_outage_too(core: CoreFixture) -> None:
    """No document is called missing for it."""
    await signed(core, 2)
    recheck = rechecking(core, whole, Files(DocumentsAwayError("gone")))

    seen = [each.outcome async for each in recheck.run(Selection())]

    assert seen == [Outcome.UNCHECKED] * 2


async def test_document_that_is_too_much_for_a_job_is_not_called_broken(
    core: CoreFixture,
) -> None:
    """Nor does it end the run."""
    await signed(core, 5)

    async def too_much(_: bytes) -> VerificationReport:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "time")

    seen = [each async for each in rechecking(core, too_much).run(Selection())]

    assert [(each.outcome, each.why) for each in seen] == [
        (Outcome.UNCHECKED, "PDF_TOO_COMPLEX")
    ] * 5


async def test_forgeries_are_found_among_whole_documents(core: CoreFixture) -> None:
    """By the real verifier: each level, two signers, and what may follow is whole."""
    names = ("B-B", "B-T", "B-LT", "B-LTA", "P2", "two signers")
    requests = await signed(core, len(names) + 1)
    *sound, forged = requests
    contents = {request: base(name) for request, name in zip(sound, names, strict=True)}
    contents[forged] = FORGERIES["key twice: page /Contents"](base("B-LT"))
    files = {f"{request:032x}{1:032x}": pdf for request, pdf in contents.items()}

    with running_sandbox() as sandbox:

        async def verify(name: bytes) -> VerificationReport:
            pdf = files[name.decode()]
            return await sandbox.client.verify(pdf, [makers().root])

        seen = [each async for each in rechecking(core, verify).run(Selection())]

    found = {each.document.request: each.outcome for each in seen}
    assert found == {**dict.fromkeys(sound, Outcome.WHOLE), forged: Outcome.BROKEN}
    assert {fault.question for fault in seen[0].faults} == {"changes"}

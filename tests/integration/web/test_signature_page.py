"""`/verificar/{code}` and the sandbox: what is asked of it, and for whom.

What it says of files is tested with real ones in `tests/functional/powers`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from appliance.api.verificar import EXAMINED_PER_MINUTE
from appliance.database import tables
from appliance.domain.documents.verification import VerificationReport
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.people.person_store import PersonStore
from appliance.signing import signature_proof
from appliance.signing.claims import Publication
from tests.support.factories.fake_sandbox import NamedSignatures
from tests.support.installation.api import ApiServices, create_api
from tests.support.installation.installation import Installation
from tests.support.installation.record import CERTIFICATE, keyed, prepared, signed_view

_SIGNED = "<dd>Firmado</dd>"
_REFUTED = "<dd>No válida</dd>"
_UNCHECKED = "<dd>Sin comprobar</dd>"


@dataclass
class CountingSandbox(NamedSignatures):
    """Counts what it is asked, and answers once its gate is open."""

    asked: int = 0
    failure: ApplianceError | None = None
    is_nameless: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def verify(
        self,
        pdf: bytes,
        roots: Sequence[bytes],
        stamp_roots: Sequence[bytes] | None = None,
        revoked: Sequence[RevokedTsa] = (),
    ) -> VerificationReport:
        """See `NamedSignatures`."""
        self.asked += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        report = await super().verify(pdf, roots, stamp_roots, revoked)
        if not self.is_nameless:
            return report
        nameless = [replace(each, signer_serial="") for each in report.signatures]
        return replace(report, signatures=tuple(nameless))


@dataclass
class Looking:
    """The page of the API, and signatures to look at."""

    services: ApiServices
    sandbox: CountingSandbox
    client: Any

    async def look(self, code: str, address: str = "192.0.2.1") -> str:
        """The page of a verification code, asked for from an IP address."""
        answer = await self.client.get(
            f"/verificar/{code}",
            headers={"Accept": "text/html", "Accept-Language": "es"},
            scope_base={"client": (address, 1)},
        )
        assert answer.status_code == 200
        page: str = await answer.get_data(as_text=True)
        return page

    async def publish(self, number: int) -> tuple[RequestId, str]:
        """Sign one more document, as far as the record knows; request and code."""
        record = self.services.record
        signer = await record.add_signer()
        await record.add_activation(signer)
        worker = record.claiming()
        work = await worker.claim_next()
        assert work is not None
        (item,) = work.claim.documents
        view = await record.view(item.request)
        async with record.store.read() as transaction:
            person = await PersonStore(transaction).get(signer.person)
        assert person is not None
        content = f"%PDF-1.7 {person.cuil} Firma-{item.request}".encode()
        sha256 = await self.services.core.documents.put(view.integrator, content)
        file = replace(signed_view(view), sha256=sha256, size_bytes=len(content))
        assert await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        assert await worker.record_signatures(work.claim, [keyed(item)])
        assert await worker.publish(work.claim, [Publication(item, file)])
        code = f"{number:026d}"
        async with record.store.write() as transaction:
            await transaction.connection.execute(
                update(tables.activation_item)
                .where(tables.activation_item.c.request == item.request)
                .values(code=code)
            )
        return item.request, code


@pytest.fixture
async def looking(tmp_path: Path) -> AsyncIterator[Looking]:
    """A front whose sandbox counts; its gate is open."""
    sandbox = CountingSandbox()
    sandbox.gate.set()
    async with Installation(tmp_path).api(sandbox) as services:
        yield Looking(services, sandbox, create_api(services).test_client())


async def test_sandbox_is_asked_once_for_a_file(looking: Looking) -> None:
    """However many look at it, at once and later; after an hour it is asked again."""
    _, code = await looking.publish(1)

    pages = await asyncio.gather(*(looking.look(code) for _ in range(5)))
    assert all(_SIGNED in page for page in pages)
    assert looking.sandbox.asked == 1

    looking.services.clock.forward(3_601)
    assert _SIGNED in await looking.look(code)
    assert looking.sandbox.asked == 2


async def test_address_has_few_files_examined(looking: Looking) -> None:
    """Beyond that it is told neither yes nor no; what is known is told to anybody."""
    codes = [
        (await looking.publish(number))[1] for number in range(EXAMINED_PER_MINUTE + 1)
    ]

    pages = [await looking.look(code) for code in codes]

    assert [_SIGNED in page for page in pages] == [True] * EXAMINED_PER_MINUTE + [False]
    assert _UNCHECKED in pages[-1]
    assert looking.sandbox.asked == EXAMINED_PER_MINUTE
    assert _SIGNED in await looking.look(codes[0])
    looking.services.clock.forward(61)
    assert _SIGNED in await looking.look(codes[-1])


async def test_page_does_not_wait_for_long(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox that takes its time goes on, and the next look has its answer."""
    monkeypatch.setattr(signature_proof, "_WAIT_S", 0.01)
    monkeypatch.setattr(signature_proof, "_IN_PROGRESS_MOST", 2)
    looking.sandbox.gate.clear()
    codes = [(await looking.publish(number))[1] for number in range(3)]

    assert all([_UNCHECKED in await looking.look(code) for code in codes])
    # Reading the files may take longer than the looks did.
    while looking.sandbox.asked < 2:  # noqa: ASYNC110 (a count tells nobody)
        await asyncio.sleep(0.01)
    # The third was one too many: it was not begun.
    assert looking.sandbox.asked == 2

    looking.sandbox.gate.set()
    monkeypatch.setattr(signature_proof, "_WAIT_S", 60)
    assert all([_SIGNED in await looking.look(code) for code in codes])
    assert looking.sandbox.asked == 3


async def test_signature_of_nobody_in_particular(looking: Looking) -> None:
    """A certificate without a CUIL is nobody's, though an outside CA vouches for it."""
    _, code = await looking.publish(1)
    looking.sandbox.is_nameless = True

    assert _UNCHECKED in await looking.look(code)


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE), _UNCHECKED),
        (ApplianceError(ErrorCode.OVERLOADED), _UNCHECKED),
        (DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "memory"), _UNCHECKED),
        (DocumentRefusedError(ErrorCode.PDF_MALFORMED, "no header"), _REFUTED),
    ],
)
async def test_what_could_not_be_checked_is_no_no(
    looking: Looking, failure: ApplianceError, said: str
) -> None:
    """Only a file that is no PDF is known to hold no signature."""
    _, code = await looking.publish(1)
    looking.sandbox.failure = failure

    page = await looking.look(code)

    assert said in page
    assert "A••• P•••" not in page


async def test_part_that_is_back_is_asked_again(looking: Looking) -> None:
    """What failed is not kept."""
    _, code = await looking.publish(1)
    looking.sandbox.failure = ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
    assert _UNCHECKED in await looking.look(code)

    looking.sandbox.failure = None

    assert _SIGNED in await looking.look(code)

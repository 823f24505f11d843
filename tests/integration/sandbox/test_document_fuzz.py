"""Mutated documents: signed and valid for both validators, or refused by name.

The same seed makes the same mutants (`bench.fuzz`, which looks for more with time).
"""

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from appliance.documents.examination import Examination
from appliance.domain.clock import SystemClock
from appliance.domain.errors import DocumentRefusedError
from appliance.domain.sandbox import REFUSALS
from appliance.settings import DocumentSettings
from bench.fuzz import mutants
from tests.integration.sandbox.test_faulty_documents import b_lt
from tests.support.appliance.ledger import document_faults
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.factories.fakes import MovingClock
from tests.support.pki.long_term_pki import LongTermPki
from tests.support.processes.bounded_calls import BoundedCalls
from tests.support.services.sandbox_server import SandboxServer, running_sandbox
from tests.tools import faulty
from worker.pades.appearance.fonts import StampFonts

pytestmark = pytest.mark.full

ORIGINALS = [
    *(make() for make in pdfs.READABLE.values()),
    *(make() for make in faulty.FORMS.values()),
    *(make() for make in faulty.PLACES.values()),
    *(faulty.with_metadata(make()) for make in faulty.XMP.values()),
    faulty.compressed(faulty.with_metadata(faulty.sound_xmp())),
    hostile_pdfs.hybrid(),
]
_VALIDATION_S = 60


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all mutants, which has to survive them."""
    with running_sandbox() as server:
        yield server
        assert server.process.poll() is None


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 12), pytest.param(1_000_000, 1_000, marks=pytest.mark.long)],
    ids=["some", "many"],
)
async def test_mutant_is_signed_and_valid_or_refused_by_name(
    sandbox: SandboxServer, fonts: StampFonts, seed: int, count: int
) -> None:
    """Never taken in, signed, and found invalid; never without an answer."""
    examination = Examination(sandbox.client, DocumentSettings())
    pki = LongTermPki(MovingClock(SystemClock().now().replace(microsecond=0)))
    roots = [pki.chain[-1]]
    judge = BoundedCalls(_VALIDATION_S)
    wrong: list[tuple[int, str]] = []
    signed = 0
    for number, pdf in itertools.islice(mutants(ORIGINALS, seed), count):
        try:
            taken = await examination.examine(pdf)
        except DocumentRefusedError as refusal:
            if refusal.code not in REFUSALS:
                wrong.append((number, refusal.code.value))
            continue
        try:
            whole = await asyncio.to_thread(b_lt, bytes(taken.pdf), pki, fonts)
            found = await asyncio.to_thread(
                judge.call, document_faults, whole, taken.pdf, roots
            )
        except Exception as exc:  # noqa: BLE001 (that is what is looked for)
            found = [repr(exc)[:200]]
        signed += not found
        wrong += [(number, fault[-300:]) for fault in found]
    judge.close()
    assert wrong == []
    assert signed > 0

"""The verifier calls no signature invalid for what may follow it.

Source: finding P5; ISO 32000-2, 12.8.2.2; EN 319 142-1, 5.4 and 5.5.
"""

import io
from typing import Final

import pytest
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import SigFieldSpec, append_signature_field

from appliance.domain.documents.verification import Answer
from tests.support.documents.contract_pdf import contract
from tests.support.documents.signed_bases import BASES, CONTINUATIONS, base, makers
from tests.support.documents.validators import pyhanko_verdicts
from worker.sandbox.verify.verify import verify

SAMPLE: Final = ("B-B", "B-LTA", "xref streams")
"""Bases of every run; the others are tried behind ./check --full."""
PAIRS: Final = [
    pytest.param(follow, name, marks=() if name in SAMPLE else pytest.mark.full)
    for follow, (_, excluded) in CONTINUATIONS.items()
    for name in BASES
    if name not in excluded
]


@pytest.mark.parametrize("name", BASES)
def test_signed_file_is_valid(name: str) -> None:
    """Before anything follows it."""
    report = verify(base(name), [makers().root])

    assert report.verdict is Answer.YES, report


@pytest.mark.parametrize(("follow", "name"), PAIRS)
def test_signatures_stay_valid(follow: str, name: str) -> None:
    """Each of them, the former and the new ones."""
    append, _ = CONTINUATIONS[follow]

    report = verify(append(makers(), base(name)), [makers().root])

    assert report.signatures
    assert {each.verdict for each in report.signatures} == {Answer.YES}, report
    assert report.verdict is Answer.YES, report


@pytest.mark.full
@pytest.mark.parametrize("follow", ["next signer, visible", "renewal", "form filled"])
def test_continuation_is_honest_for_pyhanko(follow: str) -> None:
    """It is no fault of the continuation where a verifier refuses it."""
    append, _ = CONTINUATIONS[follow]

    verdicts = pyhanko_verdicts(append(makers(), base("B-B")), [makers().root])

    assert all(each.good for each in verdicts), verdicts


@pytest.mark.parametrize("apart", [False, True])
def test_field_that_waited_is_signed(*, apart: bool) -> None:
    """By the second signer, in a field that pyHanko added before the first one."""
    do = makers()
    out = io.BytesIO()
    writer = IncrementalPdfFileWriter(io.BytesIO(contract()))
    spec = SigFieldSpec("Otra", box=(160, 300, 290, 340), combine_annotation=not apart)
    append_signature_field(writer, spec)
    writer.write(out)

    report = verify(do.stock_signed_visibly(do.signed(out.getvalue())), [do.root])

    assert len(report.signatures) == 2
    assert report.verdict is Answer.YES, report

"""What may follow a signature, where pyHanko's own rules have no verdict."""

import io
from typing import Any

import pytest
from pyhanko.pdf_utils.generic import NameObject
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import IndirectObjectExpected

from appliance.domain.levels import ValidationData
from tests.parts.field_pdfs import check_box_without_state
from tests.signers import signed, software_signer
from tests.tools.pdf_validation import read_pdf
from tests.validators import pyhanko_verdicts
from worker.pdf import Validated, add_dss
from worker.sandbox.verify import has_broken, verify


@pytest.fixture(scope="module")
def kept() -> bytes:
    """A signed form whose check box has looks without a state, and a DSS after it."""
    pdf = signed(check_box_without_state())
    (signature,) = read_pdf(pdf).embedded_signatures
    data = ValidationData(certificates=(software_signer().root,))
    return pdf + add_dss(pdf, [Validated(signature.pkcs7_content, data)])


def box_of(writer: IncrementalPdfFileWriter) -> Any:
    """The form's check box."""
    return writer.root["/AcroForm"]["/Fields"][0]


def test_validation_data_leaves_such_a_form_valid(kept: bytes) -> None:
    """For the verifier, and for whoever signs next; pyHanko's rules raise."""
    with pytest.raises(IndirectObjectExpected):
        pyhanko_verdicts(kept, [software_signer().root])

    report = verify(kept, [software_signer().root])

    assert report.valid
    assert not has_broken(kept)


@pytest.mark.parametrize("state", ["/Yes", "/Off"])
def test_looks_that_are_redrawn_in_place_are_told(kept: bytes, state: str) -> None:
    """The box would show something else than what was signed."""
    writer = IncrementalPdfFileWriter(io.BytesIO(kept))
    drawing = box_of(writer)["/AP"]["/N"][state]
    drawing._data = b"1 0 0 rg 0 0 9 9 re f"
    drawing._encoded_data = None
    writer.update_container(drawing)
    out = io.BytesIO()
    writer.write(out)

    (report,) = verify(out.getvalue(), [software_signer().root]).signatures

    assert (report.intact, report.valid) == (True, False)
    assert report.reason == "the document was changed after it"
    assert has_broken(out.getvalue())


def test_form_may_still_be_filled_in(kept: bytes) -> None:
    """Which the verifier tells, as of any other form, and calls nothing broken."""
    writer = IncrementalPdfFileWriter(io.BytesIO(kept))
    box = box_of(writer)
    box["/V"] = box["/AS"] = NameObject("/Yes")
    writer.update_container(box)
    out = io.BytesIO()
    writer.write(out)

    assert not has_broken(out.getvalue())
    assert not verify(out.getvalue(), [software_signer().root]).valid

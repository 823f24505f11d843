"""Documents of more than 100,000,000 bytes, where offsets get their ninth digit."""

from pathlib import Path

import pytest

from appliance.domain.appearance.stamp import place, stamp_lines
from appliance.domain.signing_command import SignParameters
from tests.support.documents import pdfs
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_plan, sign
from tests.support.documents.software_signer import make_signer
from tests.support.documents.validators import assert_valid
from worker.pades import prepare
from worker.pades.appearance.fonts import load_fonts

LINES = stamp_lines("Ana Núñez", "20267565393", SIGNED_AT, "es")


@pytest.mark.long
def test_document_over_a_hundred_million_bytes_is_signed() -> None:
    """Valid with and without a stamp; what is prepared holds no copy of the file."""
    original = pdfs.heavy(100, 101_000_000)
    signer = make_signer()
    fonts = load_fonts(Path("/usr/share/fonts/truetype/liberation2"))
    layout = place(SignParameters(x=20, y=30), LINES, [A4])
    assert len(original) > 100_000_000

    for plan in (make_plan(signer), make_plan(signer, layout)):
        assert len(prepare(original, plan, fonts).increment) < 200_000
        assert_valid(sign(original, signer, plan, fonts), signer.root)

"""A signature that is prepared again, after its worker died, is the same to the bit.

Source: docs/keys.md "The journal of a host".
"""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import Inspection, PageBox
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from tests.support.documents import pdfs
from tests.support.documents.software_signer import software_signer
from tests.support.factories.fakes import NOON
from worker.pades import SignaturePlan, method_for, prepare
from worker.pades.appearance.fonts import StampFonts, load_fonts

SIGNER = software_signer()


@pytest.fixture(scope="module")
def fonts() -> StampFonts:
    """Those of stamps."""
    return load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


def plan(**other: Any) -> SignaturePlan:
    """A signature with a stamp."""
    page = PageBox(0, 0, 595, 842, 0)
    inspection = Inspection(0, (page,), (), 0, None)
    stamp = StampSigner("Ada Prueba", "20055361682", "es")
    whole = SignaturePlan(
        field_name="Firma-1",
        layout=lay_out(SignParameters(), stamp, NOON, inspection),
        restriction=Restriction.NO_VALUE,
        signed_at=NOON,
        signer_name="Ada Prueba",
        certificate=SIGNER.certificate,
        chain=SIGNER.chain,
        method=method_for(SIGNER.certificate),
    )
    return replace(whole, **other)


@pytest.mark.parametrize(
    "pdf",
    [
        pdfs.one_page(),
        pdfs.text_field(),
        # A file without an identifier gets one.
        pdfs.one_page().replace(b"/ID", b"/IX"),
    ],
    ids=["plain", "form", "without_id"],
)
def test_same_signature_is_the_same_bytes(pdf: bytes, fonts: StampFonts) -> None:
    """Whatever is drawn, numbered or made up follows from plan and document."""
    assert prepare(pdf, plan(), fonts) == prepare(pdf, plan(), fonts)


@pytest.mark.parametrize(
    "other",
    [
        {"signed_at": NOON + timedelta(microseconds=1)},
        {"field_name": "Firma-2"},
        {"certificate": software_signer("Otra Prueba").certificate},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_signature_has_another_identifier(
    other: dict[str, Any], fonts: StampFonts
) -> None:
    """Two revisions of a document are two files."""
    pdf = pdfs.one_page()
    made = (prepare(pdf, one, fonts) for one in (plan(), plan(**other)))

    first, second = (_identifier(pdf + each.increment) for each in made)

    assert first[0] == second[0]
    assert first[1] != second[1]


def _identifier(pdf: bytes) -> list[bytes]:
    """Both halves of the newest trailer's."""
    return pdf.rpartition(b"/ID [")[2].partition(b"]")[0].split()

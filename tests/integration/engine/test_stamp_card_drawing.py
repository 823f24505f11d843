"""The card as it is drawn: in signed files, and in previews, which show the same.

Source: docs/stamp.md "Two designs".
"""

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import pikepdf
import pytest

from appliance.domain.appearance.details import StampDetails
from appliance.domain.appearance.stamp import StampLayout, lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import PageBox
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import StampDesign
from tests.support.browsers.qr_codes import scanned
from tests.support.documents.pdf_samples import SIGNED_AT, make_pdf, make_plan, sign
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import assert_valid
from tests.support.patience import CALL_S
from tests.tools.contact_sheet import sample_logo
from worker.pades.appearance.fonts import StampFonts
from worker.pades.appearance.form_xobject import draw_on_page
from worker.sandbox.inspection import inspect

WHO = StampSigner("María José Ñandú", "20267565393", "es")
LOGO = sample_logo()
ADDRESS = "https://firma.ejemplo.gob.ar/verificar/7K2M0Q9XWB4T8ZCJ5R1N6VDHPE"
CARD = StampDetails(qr=ADDRESS, logo=LOGO.logo, design=StampDesign.CARD)
SAID = SignParameters(reason="Conformidad", place="Ñorquincó")
PAGES = [PageBox(0, 0, 595, 842, rotate) for rotate in (0, 90, 180, 270)]


def laid(pdf: bytes, details: StampDetails = CARD) -> StampLayout:
    """The layout of a card that places itself."""
    layout = lay_out(SAID, WHO, SIGNED_AT, inspect(pdf, 10), details)
    assert layout is not None
    return layout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.rotate))
def test_card_is_drawn_upright_and_as_its_preview_shows_it(
    page: PageBox, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """And valid for others' validators; a phone reads its code."""
    pdf = make_pdf([page])
    layout = laid(pdf)
    plan = replace(make_plan(signer, layout), picture=LOGO)

    signed = sign(pdf, signer, plan, fonts)

    assert_valid(signed, signer.root)
    shown = draw_on_page(pdf, layout, fonts, LOGO)
    assert drawn(signed) == drawn(shown)
    assert scanned(signed) == ADDRESS


def drawn(pdf: bytes) -> bytes:
    """The first page by Poppler."""
    return subprocess.run(
        ["pdftoppm", "-r", "100", "-singlefile", "-cropbox", "-"],
        input=pdf, capture_output=True, check=True, timeout=CALL_S,
    ).stdout  # fmt: skip


def test_words_of_a_card_can_be_found_and_copied(
    signer: SoftwareSigner, fonts: StampFonts, tmp_path: Path
) -> None:
    """Each line as it is seen, the code in its groups; its fonts are embedded."""
    pdf = make_pdf()
    plan = replace(make_plan(signer, laid(pdf)), picture=LOGO)
    path = tmp_path / "signed.pdf"
    path.write_bytes(sign(pdf, signer, plan, fonts))

    said = subprocess.run(
        ["pdftotext", "-layout", str(path), "-"],
        capture_output=True, check=True, text=True, timeout=CALL_S,
    ).stdout  # fmt: skip

    for line in (
        "Firmado por", "María José Ñandú", "CUIL 20-26756539-3", "Motivo: Conformidad",
        "Lugar: Ñorquincó", "20/11/2026 14:03 (UTC-3)",
        "Verificá en firma.ejemplo.gob.ar/verificar",
        "7K2M-0Q9X-WB4T-8ZCJ-5R1N-6VDH-PE",
    ):  # fmt: skip
        assert line in said
    with pikepdf.open(path) as opened:
        used = opened.pages[0].Annots[0].AP.N.Resources.Font
        for font in used.values():
            assert "/FontFile2" in font.DescendantFonts[0].FontDescriptor
        assert len(used) == 3


def test_card_is_readable_on_a_scanned_page(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Its QR code is white below, so that grey paper does not spoil it."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(make_pdf())) as opened:
        opened.pages[0].contents_add(b"q 0.75 g 0 0 595 842 re f Q", prepend=True)
        opened.save(out)
    grey = out.getvalue()
    plan = replace(make_plan(signer, laid(grey)), picture=LOGO)

    signed = sign(grey, signer, plan, fonts)

    assert scanned(signed) == ADDRESS

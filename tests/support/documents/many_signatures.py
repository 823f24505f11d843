"""Files with many signatures of one software signer, made by the engine."""

import io
from collections.abc import Collection
from dataclasses import replace

from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import enumerate_sig_fields

from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.requests.levels import ValidationData
from appliance.domain.vocab import FontName, FontStyle
from tests.support.documents.pdf_samples import make_pdf, make_plan
from tests.support.documents.software_signer import software_signer
from worker.pades import Validated, add_dss, prepare
from worker.pades.appearance.fonts import StampFonts


def layout_of(at: int) -> StampLayout | None:
    """Layout of a stamp in its own place of the page; every second one is unseen."""
    if at % 2:
        return None
    x, y = 10 * at, 40
    return StampLayout(
        page=1,
        lines=("Ada Prueba",),
        font_name=FontName.SERIF,
        font_style=FontStyle.BOLD,
        font_size_pt=3,
        color=(1, 0, 0),
        text_x=1,
        text_y=1,
        x=x,
        y=y,
        width=18,
        height=50,
        rect=(x, 842 - y - 50, x + 18, 842 - y),
        rotate=0,
    )


def signed_many_times(fonts: StampFonts, counts: Collection[int]) -> dict[int, bytes]:
    """Sign one page again and again, each signature followed by its DSS.

    Args:
        fonts: of the stamps, which every second signature has.
        counts: numbers of signatures.

    Returns:
        The file with so many, by their number.
    """
    pdf, found = make_pdf(), {}
    signer = software_signer()
    for at in range(1, max(counts) + 1):
        plan = replace(make_plan(signer), field_name=f"Firma{at}", layout=layout_of(at))
        pdf += signer.complete(prepare(pdf, plan, fonts), plan)
        reader = PdfFileReader(io.BytesIO(pdf))
        ((_, value, _),) = enumerate_sig_fields(reader, with_name=plan.field_name)
        contents = bytes(value.get_object()["/Contents"])
        data = ValidationData(certificates=(signer.root,))
        pdf += add_dss(pdf, [Validated(contents, data)])
        if at in counts:
            found[at] = pdf
    return found

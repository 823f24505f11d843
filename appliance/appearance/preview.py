"""Pictures of stamps, drawn by the very code that draws them into documents.

The sandbox lays the stamp on an empty sheet of its size. On a page a stamp is drawn
on what lies there; its picture has white instead.
"""

from dataclasses import replace
from typing import Final

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.ports import PdfInspector

_DPI: Final = 216
"""Three dots a point: sharp on dense screens, too."""


async def draw_stamp(
    inspector: PdfInspector, layout: StampLayout, picture: LogoPicture | None
) -> bytes:
    """Draw a stamp by itself, upright.

    Args:
        inspector: the sandbox.
        layout: where it would lie; its place and rotation are not looked at.
        picture: the logo that the layout names, if it names one.

    Returns:
        A PNG of its width and height.

    Raises:
        ApplianceError: `SANDBOX_UNAVAILABLE`.
        DocumentRefusedError: it cannot be drawn.
    """
    size = layout.width, layout.height
    alone = replace(layout, page=1, x=0.0, y=0.0, rect=(0.0, 0.0, *size), rotate=0)
    return await inspector.render(_sheet(*size), 1, alone, _DPI, picture)


def _sheet(width: float, height: float) -> bytes:
    """A PDF of one empty page.

    Source: ISO 32000-2, 7.5.
    """
    box = f"[0 0 {width:.3f} {height:.3f}]"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /Resources << >> /MediaBox {box} >>",
    )
    text = "%PDF-1.7\n"
    rows = ["0000000000 65535 f \n"]
    for number, entry in enumerate(objects, 1):
        rows.append(f"{len(text):010} 00000 n \n")
        text += f"{number} 0 obj\n{entry}\nendobj\n"
    table = f"xref\n0 {len(rows)}\n{''.join(rows)}"
    trailer = f"trailer\n<< /Size {len(rows)} /Root 1 0 R >>\n"
    return f"{text}{table}{trailer}startxref\n{len(text)}\n%%EOF\n".encode("ascii")

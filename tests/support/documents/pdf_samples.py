"""Small PDFs made on the spot, and how our engine signs them."""

import datetime as dt
from collections.abc import Sequence

from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import PageBox
from appliance.domain.vocab import Restriction
from tests.support.documents.software_signer import SoftwareSigner
from worker.pades import (
    SignatureMethod,
    SignaturePlan,
    check,
    method_for,
    prepare,
)
from worker.pades.appearance.fonts import StampFonts

SIGNED_AT = dt.datetime(2026, 11, 20, 17, 3, 11, tzinfo=dt.UTC)

A4 = PageBox(0, 0, 595, 842, 0)


def make_pdf(
    pages: Sequence[PageBox] = (A4,),
    *,
    media: tuple[float, float, float, float] | None = None,
    count: int | None = None,
    end: bytes = b"\n",
    edit: tuple[bytes, bytes] = (b"", b""),
) -> bytes:
    """A PDF with a line of text at the middle of each page.

    Args:
        pages: the boxes as shown; written as CropBox where `media` is given.
        media: the MediaBox of all pages, when it is not the visible box.
        count: what `/Count` claims, when it is not the truth.
        end: what follows `%%EOF`.
        edit: what to replace in every object, and by what.
    """
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (
            b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(pages))),
            len(pages) if count is None else count,
        ),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, box in enumerate(pages, 1):
        outer = media or (box.x0, box.y0, box.x1, box.y1)
        crop = b"/CropBox [%g %g %g %g]" % (box.x0, box.y0, box.x1, box.y1)
        unit = b"" if box.user_unit == 1 else b"/UserUnit %g " % box.user_unit
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        text = b"BT /F1 18 Tf %g %g Td (Page %d) Tj ET" % (*middle, number)
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [%g %g %g %g] %s /Rotate %d %s"
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
            % (*outer, crop if media else b"", box.rotate, unit, 2 * number + 3),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        ]
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        edited = body.replace(*edit) if edit[0] else body
        out += b"%d 0 obj\n%s\nendobj\n" % (number, edited)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return bytes(out + b"startxref\n%d\n%%%%EOF%s" % (start, end))


def make_plan(
    signer: SoftwareSigner,
    layout: StampLayout | None = None,
    restriction: Restriction = Restriction.NO_VALUE,
    method: SignatureMethod | None = None,
) -> SignaturePlan:
    """A plan of the test's signer, who signs by the usual method unless told."""
    return SignaturePlan(
        "Firma-7", layout, restriction, SIGNED_AT, "Ana", signer.certificate,
        signer.chain, method or method_for(signer.certificate),
    )  # fmt: skip


def sign(
    original: bytes, signer: SoftwareSigner, plan: SignaturePlan, fonts: StampFonts
) -> bytes:
    """The signed file, checked as before a release."""
    prepared = prepare(original, plan, fonts)
    increment = signer.complete(prepared, plan)
    check(original, increment, plan.certificate)
    return original + increment


def increment_of(original: bytes, signer: SoftwareSigner, fonts: StampFonts) -> bytes:
    """A finished increment of an invisible signature."""
    plan = make_plan(signer)
    return signer.complete(prepare(original, plan, fonts), plan)

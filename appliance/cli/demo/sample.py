"""A sample PDF to sign, made here so that none need be kept."""

from typing import Final

_LINES: Final = (
    ("F2", 20, "Contrato de ejemplo"),
    ("F1", 11, ""),
    ("F1", 11, "Este documento sirve para probar la firma. No obliga a nadie."),
    ("F1", 11, ""),
    ("F1", 11, "1. La parte A entrega un documento en PDF."),
    ("F1", 11, "2. La parte B lo lee, lo firma y lo descarga."),
    ("F1", 11, "3. Cualquiera puede verificar la firma despu\u00e9s."),
)
_PAGE: Final = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
    b"/Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>"
)
_LEFT: Final = 72
_TOP: Final = 760


def sample_pdf() -> bytes:
    """One A4 page of text; always the same bytes."""
    content = _content()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (es-AR) >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        _PAGE,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        _font(b"Helvetica"),
        _font(b"Helvetica-Bold"),
    ]
    return _file(objects)


def _content() -> bytes:
    parts = [b"BT"]
    down = _TOP
    for font, size, text in _LINES:
        shown = text.encode("cp1252").replace(b"(", rb"\(").replace(b")", rb"\)")
        parts.append(
            b"/%s %d Tf 1 0 0 1 %d %d Tm (%s) Tj"
            % (font.encode(), size, _LEFT, down, shown)
        )
        down -= 2 * size if size > 12 else 18  # noqa: PLR2004 (a heading)
    return b"\n".join([*parts, b"ET"])


def _font(name: bytes) -> bytes:
    return (
        b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>"
        % name
    )


def _file(objects: list[bytes]) -> bytes:
    """Objects in a file with its cross-reference table (ISO 32000-2, 7.5)."""
    out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (size, table, size, len(out))
    )

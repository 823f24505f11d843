"""Small PDFs whose pages take long to draw, and nothing else."""

import zlib


def transparent_groups(groups: int = 4_000, pages: int = 1) -> bytes:
    """A PDF of a kilobyte: each page composes that many transparency groups.

    Args:
        groups: each is as large as the page, and blended over those before.
        pages: all with the same content.

    Source: ISO 32000-2, 11.6.6.
    """
    box = "[0 0 595 842]"
    drawn = zlib.compress(b"/G Do " * groups, 9)
    filled = b"0 0 595 842 re f"
    kids = " ".join(f"{5 + page} 0 R" for page in range(pages))
    entries = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>".encode(),
        _stream(f"/Filter /FlateDecode /Length {len(drawn)}", drawn),
        _stream(
            f"/Type /XObject /Subtype /Form /BBox {box} /Length {len(filled)} "
            "/Group << /S /Transparency /I true /K true >> "
            "/Resources << /ExtGState << /E << /BM /Luminosity /ca 0.5 >> >> >>",
            filled,
        ),
    ]
    page = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox {box} /Contents 3 0 R "
        "/Resources << /XObject << /G 4 0 R >> >> >>"
    ).encode()
    return _file([*entries, *[page] * pages])


def _stream(entries: str, content: bytes) -> bytes:
    return f"<< {entries} >>\nstream\n".encode() + content + b"\nendstream"


def _file(entries: list[bytes]) -> bytes:
    """Number objects, and write the table that leads to them."""
    content, rows = b"%PDF-1.7\n", [b"0000000000 65535 f \n"]
    for number, entry in enumerate(entries, 1):
        rows.append(b"%010d 00000 n \n" % len(content))
        content += b"%d 0 obj\n%b\nendobj\n" % (number, entry)
    table = b"xref\n0 %d\n%b" % (len(rows), b"".join(rows))
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\n" % len(rows)
    return b"%b%b%bstartxref\n%d\n%%%%EOF\n" % (content, table, trailer, len(content))

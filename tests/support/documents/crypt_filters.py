"""Files of which programs decrypt parts in different ways, all with the empty password.

Their content is not encrypted, so that only the words about it differ.
"""

import io
from collections.abc import Callable
from typing import Final

import pikepdf

from tests.support.documents import pdfs
from tests.support.documents.hostile_pdfs import build
from tests.tools import faulty

_DRAWN: Final = b"0 0 50 50 re f"
_IDENTITY: Final = b"<</Type/CryptFilterDecodeParms/Name/Identity>>"
_NAMED: Final = b"/Filter[/Crypt]/DecodeParms[%s]" % _IDENTITY
_USUAL: Final = b"/StmF /StdCF"


def _file(
    entries: bytes,
    change: Callable[[bytes], bytes],
    catalog: bytes = b"",
    page: bytes = b"/Contents 4 0 R",
    stream: bytes = _DRAWN,
) -> bytes:
    """One page under AES-128.

    Args:
        entries: of the stream's dictionary.
        change: what is made of the encryption dictionary.
        catalog: its further entries.
        page: further entries of the page.
        stream: what it holds.
    """
    with pikepdf.open(io.BytesIO(pdfs.encrypted(revision=4))) as opened:
        encryption = opened.trailer.Encrypt.unparse(resolved=True)
        identifier = opened.trailer.ID.unparse(resolved=True)
    assert _USUAL in encryption
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]%s>>" % page,
            4: b"<</Length %d%s>>stream\n%s\nendstream"
            % (len(stream), entries, stream),
        },
        trailer=b"/Encrypt %s/ID%s" % (change(encryption), identifier),
    )


def _as_it_is(encryption: bytes) -> bytes:
    return encryption


def metadata_in_the_clear() -> bytes:
    """A page without content, and XMP with the one crypt filter that is usual."""
    entries = b"/Type/Metadata/Subtype/XML" + _NAMED
    return _file(entries, _as_it_is, b"/Metadata 4 0 R", b"", faulty.sound_xmp())


DECRYPTED_DIFFERENTLY: Final[dict[str, bytes]] = {
    "content in the clear": _file(_NAMED, _as_it_is),
    "content in the clear, called metadata": _file(
        b"/Type/Metadata/Subtype/XML" + _NAMED, _as_it_is, b"/Metadata 4 0 R"
    ),
    "streams in the clear": _file(
        b"", lambda words: words.replace(_USUAL, b"/StmF /Identity")
    ),
    "no word about streams": _file(b"", lambda words: words.replace(_USUAL, b"")),
}

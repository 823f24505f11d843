"""The document that different readers reach from the catalog of one file.

Each reader is asked for all that it shows or follows, as one value that is equal
for equal documents.
"""

import hashlib
import io
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any, Final

import pikepdf
import pypdfium2
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.reader import PdfFileReader

from tests.support.documents.page_images import digest, pictures

_POPPLER_S: Final = 60
_UNREADABLE: Final = "cannot be read"


def _by_pdfium(pdf: bytes) -> object:
    """Give the pictures and texts of all pages."""
    try:
        document = pypdfium2.PdfDocument(pdf)
        text = [page.get_textpage().get_text_bounded() for page in document]
        return [digest(each) for each in pictures(pdf)], text
    except (pypdfium2.PdfiumError, ValueError):
        return _UNREADABLE


def _by_poppler(pdf: bytes) -> object:
    """Give the pictures and texts of all pages, and the signed fields."""
    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(pdf)
        file.flush()
        outputs = []
        for command in (
            ("pdftoppm", "-r", "36", file.name),
            ("pdftotext", file.name, "-"),
            ("pdfsig", "-nocert", file.name),
        ):
            done = subprocess.run(
                command, capture_output=True, check=False, timeout=_POPPLER_S,
                env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            )  # fmt: skip
            lines = done.stdout.replace(file.name.encode(), b"")
            if command[0] == "pdfsig":
                # Coverage differs after every revision, honest ones too.
                lines = b"%d" % lines.count(b"Signature is Valid")
            outputs.append(hashlib.sha256(lines).hexdigest())
        return outputs


def _by_qpdf(pdf: bytes) -> object:
    """Give the objects that qpdf reaches, and the pages in order."""
    try:
        with pikepdf.open(
            io.BytesIO(pdf), suppress_warnings=True, inherit_page_attributes=False
        ) as opened:
            reached = _walk_qpdf(opened.Root)
            # Afterwards, since this copies what pages inherit into them.
            pages = [each.obj.objgen for each in opened.pages]
            return reached, pages
    except (
        pikepdf.PdfError,
        pikepdf.PasswordError,
        AttributeError,
        ValueError,
        TypeError,
        RuntimeError,
    ):
        return _UNREADABLE


def _walk_qpdf(root: pikepdf.Object) -> dict[str, str]:
    seen: dict[str, str] = {}
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, pikepdf.Object):
            continue
        if node.is_indirect:
            key = str(node.objgen)
            if key in seen:
                continue
            data = b""
            if isinstance(node, pikepdf.Stream):
                data = node.read_raw_bytes()
            seen[key] = hashlib.sha256(node.unparse(resolved=True) + data).hexdigest()
        if isinstance(node, pikepdf.Stream):
            node = node.stream_dict
        if isinstance(node, pikepdf.Dictionary):
            waiting += node.values()
        elif isinstance(node, pikepdf.Array):
            waiting += node.as_list()
    return seen


def _by_pyhanko(pdf: bytes) -> object:
    """Give the objects that pyHanko reaches in its tolerant mode."""
    try:
        reader = PdfFileReader(io.BytesIO(pdf), strict=False)
        if reader.encrypted:
            reader.decrypt("")
        return _walk_pyhanko(reader)
    except Exception:  # noqa: BLE001 (it raises anything on such files)
        return _UNREADABLE


def _walk_pyhanko(reader: PdfFileReader) -> dict[str, str]:
    seen: dict[str, str] = {}
    waiting: list[Any] = [reader.root_ref]
    while waiting:
        node = waiting.pop()
        if isinstance(node, generic.IndirectObject | generic.Reference):
            key = f"{node.idnum} {node.generation}"
            if key in seen:
                continue
            seen[key] = ""
            node = node.get_object()
            data = node.encoded_data if isinstance(node, generic.StreamObject) else b""
            seen[key] = hashlib.sha256(_flat(node).encode() + data).hexdigest()
        if isinstance(node, generic.DictionaryObject):
            waiting += [node.raw_get(key) for key in node]
        elif isinstance(node, generic.ArrayObject):
            waiting += [node.raw_get(at) for at in range(len(node))]
    return seen


def _flat(node: object) -> str:
    """Write an object with the keys of its dictionaries in order."""
    if isinstance(node, generic.DictionaryObject):
        held = sorted((key, _flat(node.raw_get(key))) for key in node)
        return "<<" + "".join(key + value for key, value in held) + ">>"
    if isinstance(node, generic.ArrayObject):
        inner = [_flat(node.raw_get(at)) for at in range(len(node))]
        return "[" + " ".join(inner) + "]"
    return repr(node)


def _by_search(pdf: bytes) -> object:
    """Give what qpdf reaches when it finds no section and searches for objects.

    Readers do so with any file that they think is damaged.
    """
    head, _, tail = pdf.rpartition(b"startxref")
    _, _, end = tail.partition(b"%%EOF")
    return _by_qpdf(head + b"startxref\n0\n%%EOF" + end)


READERS: Final[dict[str, Callable[[bytes], object]]] = {
    "PDFium": _by_pdfium,
    "poppler": _by_poppler,
    "qpdf": _by_qpdf,
    "qpdf, searching": _by_search,
    "pyHanko": _by_pyhanko,
}
"""By name."""

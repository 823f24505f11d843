"""Preparation of the template, so that a confined job loads nothing.

pyHanko, PDFium, Pillow and Python's codecs import and open lazily. A job can open
nothing, so everything lazy happens in the template: `warm` loads what libraries import
inside functions, starts PDFium without the host's fonts, and does each kind of job
once. `tests/integration/sandbox/test_late_loads.py` watches jobs for what is missing
here.
"""

import codecs
import ctypes
import importlib
import io
import sys
import warnings
from typing import Final

import pypdfium2
from asn1crypto import keys
from asn1crypto import x509 as asn1_x509
from cryptography.hazmat.primitives import serialization
from PIL import Image
from pyhanko.pdf_utils import writer as pdf_writer
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    StreamObject,
    TextStringObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import signers
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.documents.inspected import FindingKind
from appliance.system.late_imports import load_codecs, load_late
from worker.sandbox.inspection import inspect
from worker.sandbox.job import Tools
from worker.sandbox.logo_pixels import logo_rows
from worker.sandbox.render import render
from worker.sandbox.repair import repair
from worker.sandbox.text_search import find_text
from worker.sandbox.trial.trial_signer import trial_signer
from worker.sandbox.verify.chain_trial import try_chain
from worker.sandbox.verify.verify import verify

LATE: Final = (
    # Standard library: from C, or in a function. Its codecs have a list of their own.
    "_strptime",
    "array",
    # cryptography: the first key on a curve.
    "cryptography.hazmat.backends.openssl.backend",
    # idna, for asn1crypto and uritools: the first host name that is mapped.
    "idna.uts46data",
    # pyHanko.
    "pyhanko.pdf_utils.crypt._saslprep",
    "pyhanko.pdf_utils.crypt.pdfmac",
    "pyhanko.pdf_utils.filters",
    "pyhanko.pdf_utils.metadata.xmp_xml",
    "pyhanko.sign.diff_analysis",
    "pyhanko.sign.validation.ades",
    "pyhanko_certvalidator.validate",
    "pyhanko_certvalidator.revinfo.validate_crl",
    "pyhanko_certvalidator.revinfo.validate_ocsp",
    # Pillow: the first picture; a JPEG with several pictures or with EXIF data.
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.ImageCms",
    "PIL.JpegImagePlugin",
    "PIL.MpoImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
    "PIL.TiffImagePlugin",
)
"""Modules that libraries import when they first need them."""
_IF_INSTALLED: Final = ("dateutil.parser",)
"""Modules that libraries do without: pyHanko reads dates by it, if it is there."""
_CODECS_OF_LIBRARIES: Final = ("teletex", "pdfdoc", "pdfdoc_pikepdf")
"""Codecs that asn1crypto and pikepdf register.

The first lookup of each asks the standard library, which tries an import; later ones
find the codec in the interpreter's cache.
"""
_NO_FOLDERS: Final = (ctypes.POINTER(ctypes.c_char) * 1)()
"""An empty list of folders for PDFium: the null pointer that ends it.

PDFium keeps the address, so it lives as long as the process.
"""
_SIDE_PT: Final = 200
_XMP: Final = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>'
    b"</x:xmpmeta>"
)


def warm(tools: Tools) -> None:
    """Inspect, repair, draw and verify a file of each kind.

    Raises:
        RuntimeError: a sample was not described as it is, so that something in
            this installation does not work.
    """
    _load_modules()
    _start_pdfium_without_fonts()
    _silence()
    pages = tools.limits.pages
    plain = _sample(stream_xrefs=False)
    streams = _sample(stream_xrefs=True)
    broken = plain.replace(b"startxref", b"startxref ", 1)
    encrypted = _sample(stream_xrefs=True, encrypted=True)
    signed, root = _signed(plain)
    for pdf in (plain, streams, broken, encrypted, signed):
        inspect(pdf, pages)
    odd = plain.replace(b"<rdf:RDF", b"<rdf:XYZ", 1)  # of the same length, no XML
    for pdf in (broken, encrypted, odd):
        repair(pdf)
    described = inspect(signed, pages)
    report = verify(signed, [root])
    tried = try_chain([root, root])
    png = render(streams, 1, 96, None, tools.fonts)
    found = find_text(streams, "Sample", 1).found
    drawn = [logo_rows(_picture(kind)) for kind in ("PNG", "JPEG")]
    if (
        described.signatures != 1
        or FindingKind.JAVASCRIPT not in described.findings
        or not report.valid
        or not tried.valid
        or found is None
        or not png.startswith(b"\x89PNG")
        or any((width, height) != (400, 200) for width, height, _ in drawn)
    ):
        msg = "the sandbox's libraries do not work here"
        raise RuntimeError(msg)


def _load_modules() -> None:
    """Import what libraries import late, and look up every codec."""
    load_late(LATE)
    for name in _IF_INSTALLED:
        try:
            importlib.import_module(name)
        except ImportError:
            # A job that tries it all the same looks for no file.
            sys.modules[name.partition(".")[0]] = None  # type: ignore[assignment]
    load_codecs()
    for name in _CODECS_OF_LIBRARIES:
        codecs.lookup(name)


def _start_pdfium_without_fonts() -> None:
    """Start PDFium again with no folder of fonts.

    By default PDFium lists the host's font folders at the first text whose font is not
    embedded, and opens a file there for each font that it finds by name. Without a
    folder it draws such a text with its own fonts, on every host alike. No object of
    PDFium may exist yet.

    Source: fpdfview.h, `FPDF_LIBRARY_CONFIG.m_pUserFontPaths`.
    """
    # The package starts the library when it is imported, and offers no other list.
    pypdfium2.raw.FPDF_DestroyLibrary()
    config = pypdfium2.raw.FPDF_LIBRARY_CONFIG(version=2, m_pUserFontPaths=_NO_FOLDERS)
    pypdfium2.raw.FPDF_InitLibraryWithConfig(config)


def _silence() -> None:
    """Drop warnings, and exceptions that no caller can catch.

    Python prints both with the line of the source file, which it would open. A job's
    standard error is /dev/null.
    """
    warnings.simplefilter("ignore")
    sys.unraisablehook = _ignore


def _ignore(_unraisable: object) -> None:
    """Drop an exception of a finalizer or of a callback from C."""


def _picture(kind: str) -> bytes:
    """A picture that has to be made smaller."""
    out = io.BytesIO()
    Image.new("RGB", (800, 400), "white").save(out, kind)
    return out.getvalue()


def _sample(*, stream_xrefs: bool, encrypted: bool = False) -> bytes:
    """A page with text in a font that is not embedded, and a script."""
    out = pdf_writer.PdfFileWriter(stream_xrefs=stream_xrefs)
    font = DictionaryObject(
        {
            pdf_name("/Type"): pdf_name("/Font"),
            pdf_name("/Subtype"): pdf_name("/Type1"),
            pdf_name("/BaseFont"): pdf_name("/Helvetica"),
        }
    )
    resources = DictionaryObject(
        {pdf_name("/Font"): DictionaryObject({pdf_name("/F1"): out.add_object(font)})}
    )
    content = StreamObject(stream_data=b"BT /F1 12 Tf 20 100 Td (Sample) Tj ET")
    content.compress()
    page = pdf_writer.PageObject(
        contents=out.add_object(content),
        media_box=ArrayObject(
            [FloatObject(edge) for edge in (0, 0, _SIDE_PT, _SIDE_PT)]
        ),
        resources=resources,
    )
    out.insert_page(page)
    out.root[pdf_name("/OpenAction")] = DictionaryObject(
        {
            pdf_name("/S"): pdf_name("/JavaScript"),
            pdf_name("/JS"): TextStringObject("0"),
        }
    )
    # Each is read by what parses XML, which opens nothing later then.
    metadata = StreamObject(stream_data=_XMP)
    metadata[pdf_name("/Type")] = pdf_name("/Metadata")
    metadata[pdf_name("/Subtype")] = pdf_name("/XML")
    out.root[pdf_name("/Metadata")] = out.add_object(metadata)
    if encrypted:
        out.encrypt("owner", "", pdf_mac=False)
    target = io.BytesIO()
    out.write(target)
    return target.getvalue()


def _signed(pdf: bytes) -> tuple[bytes, bytes]:
    """The sample signed by the trial's key, and its certificate in DER."""
    trial = trial_signer()
    private = trial.key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    # pyHanko's companion leaves this one untyped.
    store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
    signer = signers.SimpleSigner(
        signing_cert=asn1_x509.Certificate.load(trial.certificate),
        signing_key=keys.PrivateKeyInfo.load(private),
        cert_registry=store,
    )
    signed = signers.sign_pdf(
        IncrementalPdfFileWriter(io.BytesIO(pdf)),
        signers.PdfSignatureMetadata(field_name="Sample"),
        signer=signer,
    )
    return signed.getvalue(), trial.certificate

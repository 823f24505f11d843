"""Makes the template do each kind of job once, before it is confined.

pyHanko, PDFium and Python's codecs import and open lazily; a job cannot open
anything, so all of that has to have happened in the template.
"""

import io
from typing import Final

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

from appliance.core.system.late_imports import load_late
from appliance.domain.documents import FindingKind
from worker.sandbox.inspect.trial_signer import trial_signer
from worker.sandbox.inspection import inspect
from worker.sandbox.job import Tools
from worker.sandbox.logo_pixels import logo_rows
from worker.sandbox.render import render
from worker.sandbox.repair import repair
from worker.sandbox.text_search import find_text
from worker.sandbox.verify.verify import verify

LATE: Final = (
    # The standard library's, on first use of a codec or of a descriptor's passing.
    "array",
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_8_sig",
    "encodings.utf_16",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    # pyHanko's.
    "pyhanko.pdf_utils.crypt.pdfmac",
    "pyhanko.pdf_utils.metadata.xmp_xml",
    "pyhanko.sign.diff_analysis",
    "pyhanko.sign.validation.ades",
    "pyhanko_certvalidator.validate",
    "pyhanko_certvalidator.revinfo.validate_crl",
    "pyhanko_certvalidator.revinfo.validate_ocsp",
    # Pillow's, with the first picture.
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
)
"""What libraries import when they first need it."""
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
    load_late(LATE)
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
    png = render(streams, 1, 96, None, tools.fonts)
    found = find_text(streams, "Sample", 1).found
    drawn = [logo_rows(_picture(kind)) for kind in ("PNG", "JPEG")]
    if (
        described.signatures != 1
        or FindingKind.JAVASCRIPT not in described.findings
        or not report.valid
        or found is None
        or not png.startswith(b"\x89PNG")
        or any((width, height) != (400, 200) for width, height, _ in drawn)
    ):
        msg = "the sandbox's libraries do not work here"
        raise RuntimeError(msg)


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

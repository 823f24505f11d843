"""Documents of every make: encrypted, odd, broken, large."""

import io

import pikepdf
import pytest
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.writer import PdfFileWriter, copy_into_new_writer

from appliance.domain.appearance.stamp import place, stamp_lines
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.signing_command import SignParameters
from tests.support.documents.pdf_samples import A4, SIGNED_AT, make_pdf, make_plan, sign
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import assert_valid, pdfsig, read_pdf
from worker.pades import prepare
from worker.pades.appearance.fonts import StampFonts

LINES = stamp_lines("María José Ñandú", "20267565393", SIGNED_AT, "es")


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n", b"  "])
def test_signature_is_valid_whatever_ends_the_original(
    end: bytes, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """The original stays an untouched prefix, and the revision starts a line."""
    original = make_pdf(end=end)

    pdf = sign(original, signer, make_plan(signer), fonts)

    assert pdf.startswith(original)
    assert b"%EOF5 0 obj" not in pdf
    assert_valid(pdf, signer.root)


@pytest.mark.parametrize("direct", [True, False])
def test_form_that_was_there_is_kept(
    signer: SoftwareSigner, fonts: StampFonts, *, direct: bool
) -> None:
    """Signing adds a field, under a name of its own, and takes none away."""
    with pikepdf.open(io.BytesIO(make_pdf())) as made:
        text = pikepdf.Dictionary(FT=pikepdf.Name.Tx, T="Firma-7", V="kept")
        fields = pikepdf.Array([made.make_indirect(text)])
        form = pikepdf.Dictionary(
            Fields=fields if direct else made.make_indirect(fields), DA="/F1 9 Tf"
        )
        made.Root.AcroForm = form if direct else made.make_indirect(form)
        out = io.BytesIO()
        made.save(out, static_id=True)

    pdf = sign(out.getvalue(), signer, make_plan(signer), fonts)

    with pikepdf.open(io.BytesIO(pdf)) as signed:
        kept = signed.Root.AcroForm
        assert [str(field.T) for field in kept.Fields] == ["Firma-7", "Firma-7-2"]
        assert str(kept.Fields[0].V) == "kept"
        assert str(kept.DA) == "/F1 9 Tf"
    assert_valid(pdf, signer.root)


@pytest.mark.long
def test_signature_is_valid_over_100_million_bytes(
    signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Where the offsets get a ninth digit."""
    stream = b"<< /Length 100000000 >>\nstream\n" + b"x" * 10**8 + b"\nendstream"
    catalogue = b"<< /Type /Catalog /Pages 2 0 R >>"
    planted = catalogue + b"\nendobj\n9 0 obj\n" + stream
    layout = place(SignParameters(), LINES, [A4])

    pdf = sign(
        make_pdf(edit=(catalogue, planted)), signer, make_plan(signer, layout), fonts
    )

    assert len(pdf) > 10**8
    assert_valid(pdf, signer.root)


@pytest.mark.parametrize("count", [0, 1, 7, -3])
def test_page_is_found_whatever_count_claims(
    count: int, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Pages are found by walking."""
    pages = [A4, A4, A4]
    layout = place(SignParameters(page=2, x=1, y=1), LINES, pages)

    pdf = sign(make_pdf(pages, count=count), signer, make_plan(signer, layout), fonts)

    field = read_pdf(pdf).embedded_signatures[0].sig_field
    assert field.raw_get("/P").idnum == 6  # object of the second page


def _encrypted(password: str, *, mac: bool) -> bytes:
    """A PDF under AES-256."""
    writer: PdfFileWriter = copy_into_new_writer(PdfFileReader(io.BytesIO(make_pdf())))
    writer.encrypt(owner_pass="owner", user_pass=password, pdf_mac=mac)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize("visible", [False, True])
def test_signature_is_valid_when_encrypted_with_empty_password(
    signer: SoftwareSigner, fonts: StampFonts, *, visible: bool
) -> None:
    """The revision is encrypted alike, but for Contents."""
    layout = place(SignParameters(), LINES, [A4]) if visible else None

    pdf = sign(_encrypted("", mac=False), signer, make_plan(signer, layout), fonts)

    assert_valid(pdf, signer.root)


@pytest.mark.parametrize(
    ("password", "mac", "code"),
    [
        ("secret", False, ErrorCode.PDF_PASSWORD_NEEDED),
        ("", True, ErrorCode.PDF_ENCRYPTED),
    ],
)
def test_encrypted_file_is_refused_by_name(
    password: str,
    code: ErrorCode,
    signer: SoftwareSigner,
    fonts: StampFonts,
    *,
    mac: bool,
) -> None:
    """A password that is not empty; an encryption that cannot be extended."""
    with pytest.raises(DocumentRefusedError) as caught:
        prepare(_encrypted(password, mac=mac), make_plan(signer), fonts)

    assert caught.value.code is code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", ErrorCode.PDF_MALFORMED),
        (b"%PDF-1.7\n%%EOF\n", ErrorCode.PDF_MALFORMED),
        (make_pdf()[:300], ErrorCode.PDF_MALFORMED),
        (make_pdf([]), ErrorCode.PDF_NO_PAGES),
    ],
)
def test_broken_file_is_refused_by_name(
    content: bytes, code: ErrorCode, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """Never an error of the library."""
    with pytest.raises(DocumentRefusedError) as caught:
        prepare(content, make_plan(signer), fonts)

    assert caught.value.code is code


@pytest.mark.parametrize(
    "planted",
    [
        (b"/Type /Catalog", b"/Type /Catalog /AcroForm null"),
        (b"/Type /Catalog", b"/Type /Catalog /AcroForm << /Fields null >>"),
        (b"/Type /Catalog", b"/Type /Catalog /AcroForm << /Fields [null 9 99 0 R] >>"),
        (b"/Type /Catalog", b"/Type /Catalog /Perms null"),
        (b"/Type /Catalog", b"/Type /Catalog /Extensions null"),
        (b"/Type /Catalog", b"/Type /Catalog /Extensions << /ESIC (odd) >>"),
        (b"/Type /Page ", b"/Type /Page /Annots null "),
        (b"/Type /Page ", b"/Type /Page /Annots 99 0 R "),
        (b"/Type /Page ", b"/Type /Page /Annots [] "),
        (b"/Type /Page ", b""),
        (b"/Kids [", b"/Kids [null 99 0 R 2 0 R "),
    ],
)
def test_odd_structure_is_signed_all_the_same(
    planted: tuple[bytes, bytes],
    signer: SoftwareSigner,
    fonts: StampFonts,
) -> None:
    """Null and dangling entries, and a page tree with a loop, do no harm."""
    original = make_pdf(edit=planted)

    pdf = sign(original, signer, make_plan(signer), fonts)

    (seen,) = pdfsig(pdf)
    assert (seen.valid, seen.whole_document) == (True, True)

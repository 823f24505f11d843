"""Validation data that are damaged, doubled or overwritten after a signature.

Anybody can append to a DSS. What is appended may neither hide what the file's own data
revoke nor take anything from a good signature.

Source: ETSI EN 319 142-1, 5.4; RFC 5280, 6.3.
"""

import datetime as dt
import zlib
from functools import cache
from typing import Final

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from appliance.domain.documents.verification import Answer, SignatureReport
from tests.support.documents.contract_pdf import contract, rewritten
from tests.support.documents.pdf_revisions import SignedFile
from tests.support.documents.signed_bases import Makers, base, makers
from worker.pades.pdf import predictors
from worker.pades.pdf.predictors import undo_png
from worker.sandbox.verify.verify import verify

JUNK: Final = {
    "empty": b"",
    "no DER": b"junk",
    "DER of another kind": b"\x30\x03\x02\x01\x05",
    "DER without contents": b"\x30\x00",
}
PARTS: Final = "Certs", "OCSPs", "CRLs"
NO_DATA: Final = "the file has no revocation data for the certificate"


@cache
def revoked() -> tuple[bytes, bytes]:
    """Return a file whose own data revoke its signer ten days before, and the root."""
    do = Makers.now()
    serial = x509.load_der_x509_certificate(do.signer.certificate).serial_number
    signed = do.signed(contract())
    do.pki.revoked.add(serial)
    now = do.pki.clock.at
    do.pki.clock.at = now - dt.timedelta(days=10)
    with_data = do.with_dss(signed)
    do.pki.clock.at = now
    return with_data, do.root


def with_entry(pdf: bytes, part: str, body: bytes) -> bytes:
    """Append a stream to a part of the DSS."""
    f = SignedFile(pdf)
    dss = int(f.qpdf.Root.DSS.objgen[0])
    held = f.qpdf.Root.DSS.get(f"/{part}")
    had = b"[]" if held is None else held.unparse(resolved=True)
    entries = {b"/" + part.encode(): had.rstrip()[:-1] + b" %d 0 R]" % f.free}
    return f.append({f.free: f.stream(f.free, body), dss: f.changed(dss, entries)})


def first(pdf: bytes, root: bytes | None = None) -> SignatureReport:
    """Report on the first signature."""
    return verify(pdf, [root or makers().root]).signatures[0]


@pytest.mark.parametrize("kind", JUNK)
@pytest.mark.parametrize("part", PARTS)
def test_entry_that_cannot_be_read_hides_no_revocation(part: str, kind: str) -> None:
    """The file's own data revoke the certificate before the signature."""
    data, root = revoked()
    assert first(data, root).revocation.answer is Answer.NO

    report = first(with_entry(data, part, JUNK[kind]), root)

    assert report.revocation.answer is Answer.NO
    assert report.verdict is Answer.NO


@pytest.mark.parametrize("kind", JUNK)
@pytest.mark.parametrize("part", PARTS)
def test_entry_that_cannot_be_read_lowers_nothing(part: str, kind: str) -> None:
    """Level, trust, revocation and time stay as they are."""
    before = first(base("B-LT"))
    assert before.level == "B-LT"

    assert first(with_entry(base("B-LT"), part, JUNK[kind])) == before


def test_encrypted_file_keeps_its_level() -> None:
    """Streams of the DSS are decrypted."""
    do = makers()
    signed = do.signed(rewritten(contract(), encrypted=6), timestamp=True)
    data = do.with_dss(signed)

    assert first(data).level == "B-LT"
    assert first(with_entry(data, "CRLs", b"junk")).level == "B-LT"


def test_data_that_cannot_be_read_are_named_where_they_are_missed() -> None:
    """A file without other data; one of a file that needs none is not named."""
    bare = makers().with_dss(base("B-B"))
    f = SignedFile(base("B-B"))
    damaged = f.append(
        {
            f.free: f.stream(f.free, b"junk"),
            f.catalog: f.changed(f.catalog, {b"/DSS": b"<</CRLs[%d 0 R]>>" % f.free}),
        }
    )

    assert first(base("B-B")).revocation.reason.startswith(f"{NO_DATA}, ")
    assert first(damaged).revocation.reason.startswith(f"{NO_DATA} that can be read")
    assert first(damaged).verdict is Answer.YES
    assert first(with_entry(bare, "CRLs", b"junk")).revocation.reason == ""


def test_overwritten_entry_still_revokes() -> None:
    """An earlier version of the CRL's object is the file's own data too."""
    data, root = revoked()
    f = SignedFile(data)
    number = int(f.qpdf.Root.DSS.CRLs[0].objgen[0])
    forged = f.append({number: f.stream(number, b"junk")})

    assert first(forged, root).revocation.answer is Answer.NO


def test_removed_validation_data_still_revoke() -> None:
    """So does the CRL of a DSS that a later catalog leaves out."""
    data, root = revoked()
    f = SignedFile(data)
    forged = f.append({f.catalog: f.changed(f.catalog, {b"/DSS": None})})

    assert first(forged, root).revocation.answer is Answer.NO


def twin_of_authority() -> bytes:
    """Give a certificate with issuer and serial number of the signer's authority."""
    authority = bytearray(makers().pki.chain[0])
    authority[-1] ^= 1
    return bytes(authority)


def test_twin_of_an_authority_does_not_keep_it_out() -> None:
    """Another certificate of equal issuer and serial number, in the DSS."""
    pdf = base("B-B")
    before = first(pdf)
    assert before.trust.answer is Answer.YES
    f = SignedFile(pdf)
    dss = {b"/DSS": b"<</Certs[%d 0 R]>>" % f.free}

    forged = f.append(
        {
            f.free: f.stream(f.free, twin_of_authority()),
            f.catalog: f.changed(f.catalog, dss),
        }
    )

    assert first(forged) == before


@pytest.mark.parametrize("array", [False, True])
def test_entry_with_a_predictor_is_not_decoded(
    monkeypatch: pytest.MonkeyPatch,
    array: bool,
) -> None:
    """Undoing it would cost half a second a kilobyte of the file."""
    undone: list[int] = []

    def undo(raw: bytes, columns: int) -> bytes:
        undone.append(columns)
        return undo_png(raw, columns)

    monkeypatch.setattr(predictors, "undo_png", undo)
    rows = zlib.compress((b"\4" + bytes(1000)) * 8, 9)
    parameters = b"<</Predictor 15/Columns 1000>>"
    entries = b"/Filter/FlateDecode/DecodeParms" + parameters
    if array:
        entries = b"/Filter[/FlateDecode]/DecodeParms[%s]" % parameters
    f = SignedFile(base("B-LT"))
    store = int(f.qpdf.Root.DSS.objgen[0])
    certs = f.qpdf.Root.DSS.Certs.unparse(resolved=True).rstrip()[:-1]
    forged = f.append(
        {
            f.free: f.stream(f.free, rows, entries),
            store: f.changed(store, {b"/Certs": certs + b" %d 0 R]" % f.free}),
        }
    )

    assert first(forged) == first(base("B-LT"))
    assert undone == []


@pytest.mark.parametrize("at", [53, 57, 65])
def test_damaged_certificate_hides_no_revocation_by_a_crl(at: int) -> None:
    """It has the name of the CRL's issuer, and an own issuer that cannot be read."""
    pdf = base("B-LT")
    f = SignedFile(pdf)
    root = bytearray(makers().root)
    root[at] ^= 8

    forged = with_entry(pdf, "Certs", bytes(root))

    assert f.qpdf.Root.DSS.CRLs
    assert first(forged) == first(pdf)


_SIGNED_BY: Final = {
    "RSA with other parameters": ("2a864886f70d01010b", "2a864886f70d01010a"),
    "unknown algorithm": ("2a864886f70d01010b", "2a864886f70d01014b"),
    "bits that are none": ("0382010100", "0382010109"),
}
"""Bytes of the authority's certificate, and what a twin has in their place."""


@pytest.mark.parametrize("kind", _SIGNED_BY)
def test_chain_that_fails_otherwise_hides_no_revocation(kind: str) -> None:
    """It has a twin of the authority whose own signature cannot be checked."""
    old, new = map(bytes.fromhex, _SIGNED_BY[kind])
    data, root = revoked()
    f = SignedFile(data)
    authority = next(
        der
        for der in (bytes(each.read_bytes()) for each in f.qpdf.Root.DSS.Certs)
        if _common_name(der) == "CA larga"
    )
    twin = authority.replace(old, new)
    assert twin != authority

    report = first(with_entry(data, "Certs", twin), root)

    assert report.revocation.answer is Answer.NO
    assert report.trust.answer is Answer.YES


def _common_name(der: bytes) -> str:
    names = x509.load_der_x509_certificate(der).subject
    return str(names.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def test_copy_of_a_timestamp_proves_no_time_for_later_signatures() -> None:
    """Its ByteRange ends before the signature that it follows in the file."""
    do = Makers.now()
    now = do.pki.clock.at
    do.pki.clock.at = now - dt.timedelta(minutes=50)
    stamped = do.timestamped(do.with_dss(do.signed(contract(), timestamp=True)))
    do.pki.clock.at = now
    f = SignedFile(do.with_dss(do.signed(stamped)))
    stamp = next(
        each.V
        for each in f.qpdf.Root.AcroForm.Fields.as_list()
        if "/V" in each and each.V.get("/Type") == "/DocTimeStamp"
    )
    copy = (
        b"<</Type/DocTimeStamp/Filter/Adobe.PPKLite/SubFilter/ETSI.RFC3161"
        b"/Contents<%s>/ByteRange%s>>"
        % (bytes(stamp.Contents).hex().encode(), stamp.ByteRange.unparse())
    )
    field = (
        b"<</Type/Annot/Subtype/Widget/FT/Sig/T(Copia)/F 132/Rect[0 0 0 0]"
        b"/V %d 0 R/P %d 0 R>>" % (f.free, f.page)
    )
    forged = f.append(
        {
            f.free: copy,
            f.free + 1: field,
            **f.form_with(f.free + 1),
            f.page: f.changed(f.page, {b"/Annots": f.listed("Annots", f.free + 1)}),
        }
    )

    earlier, later, broken = verify(forged, [do.root]).signatures

    assert (earlier.time.answer, later.time.answer) == (Answer.YES, Answer.UNCHECKED)
    assert later.timestamp is None
    assert later.level == "B-B"
    assert (broken.is_timestamp, broken.coverage.answer) == (True, Answer.NO)

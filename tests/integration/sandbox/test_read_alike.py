"""The verifier judges the objects that other readers read, and ends in time.

Source: ISO 32000-2, 7.3.4.2, 7.4.4, 7.5 and annex F.
"""

import datetime as dt
import io
import re
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

import pikepdf
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from appliance.domain.documents.verification import (
    Answer,
    SignatureReport,
    VerificationReport,
)
from tests.support.documents.contract_pdf import contract, rewritten
from tests.support.documents.forgeries import FORGERIES
from tests.support.documents.pdf_revisions import Row, SignedFile, table_of
from tests.support.documents.signed_bases import Makers, base, makers
from worker.sandbox.verify.verify import verify

_SPARE: Final = 61
"""One object more than qpdf compares of what was signed."""
_FLATE: Final = b"/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 5>>"


def judged(pdf: bytes) -> tuple[VerificationReport, SignatureReport]:
    """Verify a file under the makers' root, and give its oldest signature."""
    report = verify(pdf, [makers().root])
    return report, report.signatures[0]


@pytest.mark.parametrize("name", ["B-B", "P1", "encrypted, R6"])
def test_unfiltered_rows_are_read_as_other_readers_do(name: str) -> None:
    """The decoder of pyHanko sees the signed catalog, and other readers another one."""
    report, signature = judged(
        FORGERIES["object stream: rows of PNG type None"](base(name))
    )
    assert report.verdict is Answer.NO
    assert "object stream" in signature.changes.reason


def _filtered(rows: Sequence[bytes], kind: int) -> bytes:
    """Apply a filter of PNG to rows. Source: RFC 2083, 6."""
    out = b""
    above = bytes(len(rows[0]))
    for row in rows:
        out += bytes([kind])
        for at, value in enumerate(row):
            left, corner = (row[at - 1], above[at - 1]) if at else (0, 0)
            up = above[at]
            estimate = left + up - corner
            nearest = min((left, up, corner), key=lambda one: abs(estimate - one))
            guess = (0, left, up, (left + up) // 2, nearest)[kind]
            out += bytes([(value - guess) & 0xFF])
        above = row
    return out


@pytest.mark.parametrize("kind", range(5))
def test_file_with_any_png_filter_is_signed_and_valid(kind: int) -> None:
    """The cross-reference stream of an honest file has rows of one type."""
    file = SignedFile(contract())
    out, offsets = file.bodies({each: file.changed(each) for each in [file.catalog]})
    rows = [
        b"\1" + offsets[file.catalog].to_bytes(3, "big") + b"\0",
        b"\1" + len(out).to_bytes(3, "big") + b"\0",
    ]
    data = zlib.compress(_filtered(rows, kind))
    index = b"/Index[%d 1 %d 1]" % (file.catalog, file.free)
    entries = file.trailer(file.free + 1, file.previous)
    whole = bytes(out) + (
        b"%d 0 obj\n<</Type/XRef/W[1 3 1]%s %s%s/Length %d>>stream\n%s\nendstream\n"
        b"endobj\nstartxref\n%d\n%%%%EOF\n"
        % (file.free, index, entries, _FLATE, len(data), data, len(out))
    )
    report, _ = judged(makers().signed(whole))
    assert report.verdict is Answer.YES


@pytest.mark.parametrize("key", ["Predictor", "Columns", "Colors", "BitsPerComponent"])
@pytest.mark.parametrize("value", [b"%d 0 R", b"%d.0"])
def test_filter_parameter_that_is_no_direct_integer_is_ambiguous(
    key: str, value: bytes
) -> None:
    """Readers that do not follow a reference here take the default."""
    file = SignedFile(base("B-B"))
    holder, number, inner = range(file.free, file.free + 3)
    body = b"%d 0 null " % inner
    usual = {"Predictor": 12, "Columns": len(body), "Colors": 1, "BitsPerComponent": 8}
    written = {each: b"%d" % one for each, one in usual.items()}
    written[key] = value % (number if b"R" in value else usual[key])
    parameters = b"".join(b"/%s %s" % (k.encode(), v) for k, v in written.items())
    data = zlib.compress(b"\2" + body)
    first = SignedFile(
        file.append_rows(
            {
                holder: b"<</Type/ObjStm/N 1/First %d/Filter/FlateDecode/DecodeParms"
                b"<<%s>>/Length %d>>stream\n%s\nendstream"
                % (len(body) - 5, parameters, len(data), data),
                number: b"%d" % usual[key],
            },
            lambda at: [
                *(Row(each, 1, at[each]) for each in at),
                Row(inner, 2, holder, 0),
            ],
        )
    )
    spare = dict.fromkeys(range(first.free, first.free + _SPARE), b"null")
    report, signature = judged(first.append(spare))
    assert report.verdict is Answer.NO
    assert "no direct integer" in signature.changes.reason


@cache
def with_script(script: bytes) -> SignedFile:
    """Sign a file that opens with a script."""
    with pikepdf.open(io.BytesIO(contract())) as pdf:
        action = pikepdf.Dictionary(
            S=pikepdf.Name.JavaScript, JS=pikepdf.String(script)
        )
        pdf.Root.OpenAction = pdf.make_indirect(action)
        out = io.BytesIO()
        pdf.save(out)
    return SignedFile(makers().stock_signed(out.getvalue()))


@pytest.mark.parametrize(
    ("signed", "written", "answer"),
    [
        # pyHanko drops both line ends after a backslash, and keeps a raw CR LF.
        (b"a // b", b"a //\\\n\n b", Answer.NO),
        (b"a // b", b"a //\\\r\r b", Answer.NO),
        (b"a // b", b"a //\\\n b", Answer.YES),
        (b"a // b", b"a //\\\r\n b", Answer.YES),
        (b"a\r\nb", b"a\r\nb", Answer.NO),
        (b"a\nb", b"a\r\nb", Answer.YES),
        (b"a\nb", b"a\rb", Answer.YES),
        (b"a(b)\\c", b"a(b)\\\\\143", Answer.YES),
    ],
)
def test_strings_are_compared_as_other_readers_read_them(
    signed: bytes, written: bytes, answer: Answer
) -> None:
    """An action is written again with a string that pyHanko reads otherwise."""
    file = with_script(signed)
    action = int(file.qpdf.Root.OpenAction.objgen[0])
    again = file.append({action: b"<</S/JavaScript/JS(%s)>>" % written})
    assert judged(again)[0].verdict is answer


def test_comment_without_an_end_is_no_endless_object() -> None:
    """A comment may end an object stream, and pyHanko reads on in it."""
    file = SignedFile(base("B-B"))
    holder, other, field = range(file.free, file.free + 3)
    head = b"%d 0 %d 5 " % (other, field)
    objects = {
        holder: b"<</Type/ObjStm/N 2/First %d/Length %d>>stream\n"
        b"%snull %%abc\nendstream" % (len(head), len(head) + 9, head),
        **file.form_with(field),
    }
    forged = file.append_rows(
        objects,
        lambda at: [
            *(Row(each, 1, at[each]) for each in at),
            Row(other, 2, holder, 0),
            Row(field, 2, holder, 1),
        ],
    )
    assert judged(forged)[0].verdict is Answer.NO


def test_too_many_entries_are_not_read() -> None:
    """A few kilobytes hold a million entries."""
    file = SignedFile(base("B-B"))
    data = zlib.compress(bytes(3 * 1_000_000))
    start = len(file.pdf)
    entries = file.trailer(file.free + 1, file.previous)
    report, signature = judged(
        file.pdf
        + b"%d 0 obj\n<</Type/XRef/W[1 1 1]/Index[%d 1000000]%s/Filter/FlateDecode"
        b"/Length %d>>stream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n"
        % (file.free, file.free + 1, entries, len(data), data, start)
    )
    assert report.verdict is Answer.UNCHECKED
    assert signature.changes.answer is Answer.UNCHECKED


def test_sections_that_name_one_object_stream_again_end_unchecked() -> None:
    """Each section lists all objects of the stream, which is decoded once."""
    file = SignedFile(base("B-B"))
    holder, first, count = file.free, file.free + 1_000, 600
    head = b"".join(b"%d %d " % (first + at, 5 * at) for at in range(count))
    data = zlib.compress(head + b"null " * count)
    body = b"<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>stream\n"
    stream = body % (count, len(head), len(data)) + data + b"\nendstream"
    rows = [Row(first + at, 2, holder, at) for at in range(count)]
    pdf = file.append_rows(
        {holder: stream}, lambda at: [Row(holder, 1, at[holder]), *rows]
    )
    for _ in range(40):
        pdf = SignedFile(pdf).append_rows({}, lambda _: rows)
    report, signature = judged(pdf)
    assert report.verdict is Answer.UNCHECKED
    assert "too complex" in signature.changes.reason


def test_many_words_of_objects_in_comments_end_unchecked() -> None:
    """Each of them is looked at, with the comments before it."""
    file = SignedFile(base("B-B"))
    made = file.append({file.free: b"null"})
    at = made.rindex(b"\nxref\n") + 1
    comments = b"%obj\n" * 30_000
    moved = made[:at] + comments + made[at:]
    end = b"startxref\n%d\n"
    moved = moved.replace(end % at, end % (at + len(comments)))
    report, signature = judged(moved)
    assert report.verdict is Answer.UNCHECKED
    assert "too complex" in signature.changes.reason


@pytest.mark.parametrize("revision", [4, 6])
@pytest.mark.parametrize("trigger", ["range", "blanks", "end"])
def test_repair_of_an_encrypted_file_is_refused(
    revision: Literal[4, 6], trigger: str
) -> None:
    """Readers that search the whole file then find what is hidden in a stream."""
    file = SignedFile(makers().signed(rewritten(contract(), encrypted=revision)))
    free = file.free
    forged = file.append({free: b"null"})
    if trigger == "range":
        index = b"%d 1 %d 1 99999999999999999 0" % (free, free + 1)
        forged = file.append_rows(
            {free: b"null"}, lambda at: [Row(free, 1, at[free])], index=index
        )
    elif trigger == "blanks":
        at = forged.rindex(b"startxref\n") + 9
        forged = forged[:at] + b" " * 2_000 + forged[at:]
    else:
        forged += b" " * 4_200
    report, signature = judged(forged)
    assert report.verdict is Answer.NO
    assert signature.coverage.answer is Answer.YES
    assert report.ending.answer is not Answer.UNCHECKED


@pytest.mark.parametrize(
    ("end", "answer"),
    [
        (b"\n", Answer.YES),
        (b"\0" * 512, Answer.YES),
        (b"\r\n" * 499, Answer.YES),
        (b"\r\n" * 500, Answer.NO),
    ],
)
def test_blanks_after_a_signed_file_are_nothing(end: bytes, answer: Answer) -> None:
    """As far as readers look back for the end; the signed bytes are whole anyway."""
    report, signature = judged(base("B-B") + end)
    assert report.ending.answer is answer
    assert signature.coverage.answer is Answer.YES
    assert signature.changes.answer is answer


def test_unused_number_at_offset_0_is_honest() -> None:
    """Some writers list what they do not use as in use, at the offset 0."""
    file = SignedFile(base("B-B"))
    more = b"%d 1\n0000000000 00000 n \n" % (file.free + 1)
    made = file.append(
        {file.free: b"null"},
        table=lambda at: table_of(at) + more,
        trailer={b"/Size": b"%d" % (file.free + 2)},
    )
    assert judged(made)[0].verdict is Answer.YES


def test_object_that_nothing_refers_to_may_be_freed() -> None:
    """A writer adds an object, and drops it again; the number is used once more."""
    file = SignedFile(base("B-B"))
    number = file.free
    added = SignedFile(file.append({number: b"null"}))
    freed = SignedFile(added.append({}, freed=[number]))
    again = freed.append({number: b"null"}, generation=1)
    assert judged(freed.pdf)[0].verdict is Answer.YES
    assert judged(again)[0].verdict is Answer.YES


def test_data_that_were_out_of_date_do_not_show_that_all_was_good() -> None:
    """A certificate was revoked before it signed; older data still say good."""
    made = Makers.now()
    signed = made.signed(contract(), timestamp=True)
    now = made.pki.clock.at
    made.pki.clock.at = now - dt.timedelta(days=20)
    replayed = made.with_dss(signed)
    certificate = x509.load_der_x509_certificate(made.signer.certificate)
    made.pki.revoked.add(certificate.serial_number)
    made.pki.clock.at = now - dt.timedelta(days=10)
    revoked = made.with_dss(signed)
    made.pki.clock.at = now
    for pdf, answer in ((replayed, Answer.UNCHECKED), (revoked, Answer.NO)):
        signature = verify(pdf, [made.root]).signatures[0]
        assert signature.revocation.answer is answer
        assert signature.level == "B-T"


def _authorities(name: x509.Name, count: int, kind: str) -> list[bytes]:
    """Make authorities of one name, each with a key of its own, in DER."""
    now = makers().pki.clock.now()
    made = []
    for serial in range(1, count + 1):
        key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
        if kind == "rsa":
            key = rsa.generate_private_key(65537, 2048)
        else:
            key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(serial)
            .not_valid_before(now - dt.timedelta(days=400))
            .not_valid_after(now + dt.timedelta(days=400))
            .add_extension(
                x509.BasicConstraints(ca=True, path_length=None), critical=True
            )
        )
        made.append(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER))
    return made


@pytest.mark.parametrize(("count", "kind"), [(1, "ec"), (9, "ec"), (9, "rsa")])
def test_certificates_that_signed_nothing_are_no_issuers(count: int, kind: str) -> None:
    """A DSS has authorities of the right name: pyHanko tries them in every order."""
    file = SignedFile(base("B-B"))
    name = x509.load_der_x509_certificate(makers().pki.chain[0]).subject
    objects = {
        file.free + at: file.stream(file.free + at, der)
        for at, der in enumerate(_authorities(name, count, kind))
    }
    listed = b" ".join(b"%d 0 R" % each for each in objects)
    store = b"<</Type/DSS/Certs[%s]>>" % listed
    catalog = {file.catalog: file.changed(file.catalog, {b"/DSS": store})}
    pdf = file.append({**objects, **catalog})
    report, signature = judged(pdf)
    assert (report.verdict, signature.trust.answer) == (Answer.YES, Answer.YES)
    unrelated = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Otra")])
    signature = verify(pdf, _authorities(unrelated, 1, kind)).signatures[0]
    assert signature.trust.answer is Answer.UNCHECKED
    assert re.search("not trusted here", signature.trust.reason)

"""Files whose signature others would call invalid: repaired first, and told so.

Each goes through a real sandbox, is signed to B-LT by the engine, and is looked at by
pyHanko with its stock rules and by pdfsig.

Source: decisions "PDFs"; docs/documents.md.
"""

import asyncio
import hashlib
import io
from collections.abc import Iterator
from dataclasses import replace

import pikepdf
import pytest

from appliance.documents.examination import Examination, Examined
from appliance.domain.clock import SystemClock
from appliance.domain.documents.inspected import Damage, Repair
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyAlgorithm
from appliance.settings import DocumentSettings
from tests.support.appliance.ledger import document_faults
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.documents.ambiguous_pdfs import AMBIGUOUS, upon
from tests.support.documents.page_images import pictures
from tests.support.documents.pdf_samples import make_plan, sign
from tests.support.documents.software_signer import make_signer
from tests.support.factories.fakes import MovingClock
from tests.support.pki.long_term_pki import LongTermPki
from tests.support.services.sandbox_server import SandboxServer, running_sandbox
from tests.tools import faulty
from worker.pades import Validated, add_dss, check, prepare
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.metadata_repair import is_xmp

pytestmark = pytest.mark.full

FILES = faulty.made()
AS_THEY_ARE = {
    "form-form-that-is-no-dictionary",
    "form-form-that-is-no-dictionary-compressed",
    "place-one-byte-early",
    "odd-metadata-without-subtype",
    "odd-info-direct",
    "odd-info-that-is-a-number",
    "odd-extensions-indirect",
    "odd-extension-of-another-kind",
    "odd-length-indirect",
    "odd-names-that-go-round",
    "odd-names-of-another-kind",
    "odd-outlines-that-go-round",
    "odd-tree-without-a-type",
    "odd-catalog-without-a-type",
    "odd-structure-without-parents",
    "odd-permissions-of-another-kind",
    "odd-version-of-another-kind",
    "odd-pieces-of-others",
    "odd-empty-page",
}
"""What no validator minds."""
LOOKS_OTHERWISE = {
    # The content was not where readers look for it, and is drawn from now on.
    "place-content-at-a-dictionary",
    "place-hybrid",
    # Fields of one name and without looks: PDFium draws one value in all of them.
    "form-fifty-of-one-name",
    "form-fifty-of-one-name-compressed",
}
SAID = {
    "xmp": Damage.METADATA,
    "form": Damage.FORM_FIELDS,
    "place": Damage.CROSS_REFERENCES,
}
_ROOM = 8192
# Of each class the first few by default; all of them take a minute.
_FIRST = {
    f"{kind}{name}"
    for kind, names in (
        ("xmp-", ("prefix-not-declared", "truncated", "utf-16", "billion-laughs")),
        ("xmp-", ("prefix-not-declared-compressed", "prefix-not-declared-encrypted")),
        ("form-", ("two-of-one-name", "nested-of-one-name", "parents-of-one-name")),
        ("form-", ("signature-fields-of-one-name", "looks-without-a-state")),
        ("form-", ("notes-without-a-number", "kid-of-two-parents")),
        ("place-", tuple(faulty.PLACES)),
        ("odd-", ("store-with-more", "extensions-of-another-kind", "info-direct")),
        ("odd-", ("empty-box", "structure-of-another-kind", "metadata-bomb")),
    )
    for name in names
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here, which has to survive them."""
    with running_sandbox() as server:
        yield server
        assert server.process.poll() is None


@pytest.fixture(scope="module")
def pki() -> LongTermPki:
    """CA, OCSP, CRLs and a TSA, all of now."""
    return LongTermPki(MovingClock(SystemClock().now().replace(microsecond=0)))


async def examined(sandbox: SandboxServer, pdf: bytes) -> Examined:
    """What intake makes of a file."""
    return await Examination(sandbox.client, DocumentSettings()).examine(pdf)


def b_lt(pdf: bytes, pki: LongTermPki, fonts: StampFonts) -> bytes:
    """The file signed, with a timestamp and the data that its validation needs."""
    signer, tsa = pki.signer(), pki.tsa()
    plan = replace(make_plan(signer), token_bytes=_ROOM, signed_at=pki.clock.now())
    prepared = prepare(pdf, plan, fonts)
    value = signer.value(prepared.digest, plan.method)
    token = tsa.token(hashlib.sha256(value).digest(), DigestAlgorithm.SHA256)
    increment = signer.filled(prepared, plan, value, token)
    checked = check(pdf, increment, signer.certificate)
    data = pki.evidence(signer.certificate).with_more(pki.evidence(tsa.certificate))
    whole = pdf + increment
    return whole + add_dss(whole, [Validated(checked.contents, data)])


def faults(pdf: bytes, original: bytes, pki: LongTermPki) -> list[str]:
    """What pyHanko's stock rules and pdfsig say against a signed file."""
    return document_faults(pdf, original, [pki.chain[-1]])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in _FIRST else pytest.mark.long)
        for name in FILES
    ],
)
async def test_faulty_file_is_signed_valid_as_a_repaired_copy(
    sandbox: SandboxServer, pki: LongTermPki, fonts: StampFonts, name: str
) -> None:
    """Valid for both; the copy is told with what was wrong, and looks the same."""
    pdf = FILES[name]

    taken = await examined(sandbox, pdf)

    signed_pdf = await asyncio.to_thread(b_lt, bytes(taken.pdf), pki, fonts)
    assert await asyncio.to_thread(faults, signed_pdf, bytes(taken.pdf), pki) == []
    if name in AS_THEY_ARE:
        assert (taken.pdf, taken.repair) == (pdf, None)
        return
    assert isinstance(taken.repair, Repair)
    assert taken.repair.original_sha256 == hashlib.sha256(pdf).hexdigest()
    said = SAID.get(name.partition("-")[0])
    assert said is None or said in taken.repair.damage
    if name not in LOOKS_OTHERWISE:
        assert _looks(bytes(taken.pdf)) in (None, _looks(pdf))


async def test_pages_that_only_others_find_are_in_the_copy(
    sandbox: SandboxServer,
) -> None:
    """A page under a wrong index of its object stream; one that is nowhere stays so."""
    with upon(hostile_pdfs.plain()):
        found, nowhere = (
            AMBIGUOUS[name][0]() for name in ("wrong index", "not in the stream")
        )

    taken = await examined(sandbox, found)

    assert len(taken.inspection.pages) == 1
    assert taken.repair is not None
    assert Damage.PAGE_TREE in taken.repair.damage
    for pdf in (nowhere, pdfs.no_pages()):
        with pytest.raises(DocumentRefusedError) as refused:
            await examined(sandbox, pdf)
        assert refused.value.code is ErrorCode.PDF_NO_PAGES


def _looks(pdf: bytes) -> list[bytes] | None:
    """Its pages' pixels; None where PDFium does not draw them."""
    try:
        return [each.tobytes() for each in pictures(pdf)]
    except Exception:  # noqa: BLE001 (PDFium's, of several kinds)
        return None


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("prefix-not-declared", True),
        ("unknown-prefix-not-declared", True),
        ("latin-1", True),
        ("utf-16", True),
        ("utf-16-without-mark", True),
        ("declared-otherwise", True),
        ("rdf-alone", True),
        ("former-root", True),
        ("zeros-after", True),
        ("truncated", False),
        ("text", False),
        ("billion-laughs", False),
        ("outside-entity", False),
    ],
)
async def test_metadata_that_can_be_read_is_kept(
    sandbox: SandboxServer, name: str, *, kept: bool
) -> None:
    """Written again as a validator reads it; what cannot be read goes."""
    taken = await examined(sandbox, faulty.with_metadata(faulty.XMP[name]()))

    with pikepdf.open(io.BytesIO(bytes(taken.pdf))) as opened:
        metadata = opened.Root.get("/Metadata")
        if not kept:
            assert metadata is None
            return
        data = opened.Root.Metadata.read_bytes()
    assert is_xmp(data)
    assert "Año".encode() in data
    assert b"application/pdf" in data


async def test_fields_of_one_name_keep_their_values_and_places(
    sandbox: SandboxServer,
) -> None:
    """The second gets another name, and nothing else changes."""
    taken = await examined(sandbox, faulty.FORMS["two-of-one-name"]())

    with pikepdf.open(io.BytesIO(bytes(taken.pdf))) as opened:
        fields = [
            (str(field.T), str(field.V), [int(side) for side in field.Rect.as_list()])
            for field in opened.Root.AcroForm.Fields.as_list()
        ]
        assert len(opened.pages[0].Annots.as_list()) == 2
    assert fields == [
        ("Nombre", "1", [10, 20, 90, 35]),
        ("Nombre_2", "2", [10, 40, 90, 55]),
    ]


SIGNED_BEFORE = {
    "metadata": faulty.with_metadata(faulty.XMP["prefix-not-declared"]()),
    "fields": faulty.FORMS["two-of-one-name"](),
    "places": faulty.PLACES["unneeded-object-elsewhere"](),
}


@pytest.mark.parametrize("name", SIGNED_BEFORE)
async def test_faulty_file_that_is_signed_is_refused_by_name(
    sandbox: SandboxServer, fonts: StampFonts, name: str
) -> None:
    """A copy would lose its signature, and a second one would not be valid."""
    pdf = await asyncio.to_thread(_signed, SIGNED_BEFORE[name], fonts)

    with pytest.raises(DocumentRefusedError) as caught:
        await examined(sandbox, pdf)

    # What is listed in another place is read differently before it is signed, too.
    code = ErrorCode.PDF_AMBIGUOUS if name == "places" else ErrorCode.PDF_UNVERIFIABLE
    assert caught.value.code is code


DOUBTFUL_BOXES = {
    "edges beyond a page's": b"/MediaBox[0 0 99999999 99999999]",
    "a cut beyond a page's": b"/MediaBox[0 0 200 300]/CropBox[0 0 2000000 300]",
    "a cut of nothing": b"/MediaBox[0 0 200 300]/CropBox[500 500 600 700]",
    "a cut beside Letter": b"/CropBox[-200 -200 -100 -100]",
}


@pytest.mark.parametrize("name", DOUBTFUL_BOXES)
async def test_page_that_is_elsewhere_for_others_is_refused(
    sandbox: SandboxServer, name: str
) -> None:
    """Nobody signs a page that the next program shows another part of."""
    with pytest.raises(DocumentRefusedError) as caught:
        await examined(sandbox, hostile_pdfs.boxed(DOUBTFUL_BOXES[name]))

    assert caught.value.code is ErrorCode.PDF_UNVERIFIABLE


@pytest.mark.parametrize(
    "box",
    [b"/MediaBox[0 0 200 300]/CropBox[100 100 600 700]", b"/MediaBox[0 0 14400 99999]"],
)
async def test_page_that_is_cut_or_large_is_taken(
    sandbox: SandboxServer, box: bytes
) -> None:
    """As it is: all programs show the same of it."""
    pdf = hostile_pdfs.boxed(box)

    assert (await examined(sandbox, pdf)).pdf == pdf


def _signed(pdf: bytes, fonts: StampFonts) -> bytes:
    signer = make_signer(KeyAlgorithm.EC_P256)
    return sign(pdf, signer, make_plan(signer), fonts)


async def test_sound_metadata_and_form_leave_a_file_as_it_is(
    sandbox: SandboxServer,
) -> None:
    """Nothing of what is right is written again."""
    pdf = faulty.with_metadata(faulty.sound_xmp())

    taken = await examined(sandbox, pdf)

    assert (taken.pdf, taken.repair) == (pdf, None)


async def test_form_that_goes_round_is_repaired(sandbox: SandboxServer) -> None:
    """A field that is below itself is listed once."""
    pdf = hostile_pdfs.plain(
        b"/AcroForm<</Fields[5 0 R]>>", o5=b"<</T(a)/Kids[5 0 R]>>"
    )

    taken = await examined(sandbox, pdf)

    assert taken.repair is not None
    assert Damage.FORM_FIELDS in taken.repair.damage

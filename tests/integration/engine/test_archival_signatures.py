"""PDF/A stays PDF/A when it is signed, seen or not, up to the highest level.

Source: docs/stamp.md "PDF/A and PDF/UA"; ISO 19005-1, 6.2.3, 6.5.3 and 6.9; ISO
19005-2, 6.2.4 and 6.3.3.
"""

import datetime as dt
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pikepdf
import pytest

from appliance.domain.appearance.details import StampDetails
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.clock import SystemClock
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction, StampDesign
from tests.support.documents.archival_pdfs import PARTS, SHAPES, archival
from tests.support.documents.archival_rules import broken_rules
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.pdf_samples import make_pdf
from tests.support.documents.preflight import CAN_PREFLIGHT, preflight_faults
from tests.support.documents.validators import pdfsig, pyhanko_verdicts
from tests.support.factories.fakes import MovingClock
from tests.support.pki.long_term_pki import LongTermPki
from tests.tools.contact_sheet import QR, sample_logo
from worker.pades import (
    SignaturePlan,
    Validated,
    add_dss,
    check,
    check_timestamp,
    fill_timestamp,
    method_for,
    prepare,
    prepare_timestamp,
)
from worker.pades.appearance import form_xobject
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.inspection import inspect
from worker.sandbox.verify.verify import verify

WHO = StampSigner("María José Ñandú", "20267565393", "es")
LOGO = sample_logo()
FULL = StampDetails(qr=QR.qr, logo=LOGO.logo)
CARD = replace(FULL, design=StampDesign.CARD)
SMALL = SignParameters(zoom_percent=50, reason="Conformidad")
UNSEEN = SignParameters(visible=False)
P1 = Restriction.NO_CHANGES_ALLOWED
WAYS = {
    "not seen": (UNSEEN, FULL),
    "seen": (SMALL, FULL),
    "card": (SMALL, CARD),
    "not seen, no changes": (replace(UNSEEN, restriction=P1), FULL),
    "seen, no changes": (replace(SMALL, restriction=P1), CARD),
}
ALWAYS = 19
"""Each so manieth is tried by every run: one of each part at least."""
CASES = [(part, shape) for part in PARTS for shape in SHAPES]

Raising = Callable[..., Iterator[bytes]]


@pytest.fixture(scope="module")
def pki() -> LongTermPki:
    """CA, OCSP, CRLs and a TSA of today."""
    return LongTermPki(MovingClock(SystemClock().now() - dt.timedelta(minutes=5)))


@pytest.fixture
def raising(pki: LongTermPki, fonts: StampFonts) -> Raising:
    """Sign a file, and raise it to B-LTA; each state of it on the way."""
    signer, tsa = pki.signer(), pki.tsa()
    method = method_for(signer.certificate)

    def states(
        pdf: bytes, params: SignParameters, details: StampDetails = FULL
    ) -> Iterator[bytes]:
        layout = lay_out(params, WHO, pki.clock.now(), inspect(pdf, 10), details)
        plan = SignaturePlan(
            "Firma", layout, params.restriction, pki.clock.now(), WHO.name,
            signer.certificate, signer.chain, method, existing=params.field,
            picture=LOGO, reason=params.reason,
        )  # fmt: skip
        prepared = prepare(pdf, plan, fonts)
        increment = signer.complete(prepared, plan)
        contents = check(pdf, increment, plan.certificate).contents
        pdf += increment
        yield pdf
        pdf += add_dss(pdf, [Validated(contents, pki.evidence(signer.certificate))])
        for _ in range(2):
            stamp = prepare_timestamp(pdf, DigestAlgorithm.SHA256, 8192)
            token = tsa.token(stamp.imprint, DigestAlgorithm.SHA256)
            appended = fill_timestamp(stamp, token)
            newest = check_timestamp(pdf, appended).contents
            pdf += appended
            yield pdf
            pdf += add_dss(pdf, [Validated(newest, pki.tsa_evidence(tsa.certificate))])
        yield pdf

    return states


@pytest.mark.parametrize(
    ("part", "shape"),
    [
        pytest.param(
            *case,
            id="-".join(case),
            marks=() if at % ALWAYS == 0 else pytest.mark.full,
        )
        for at, case in enumerate(CASES)
    ],
)
def test_signed_file_conforms_as_it_did(
    part: str, shape: str, raising: Raising, pki: LongTermPki
) -> None:
    """With and without a stamp, certified or not, at each level; and it is valid."""
    original = archival(part, shape)

    for way, asked in WAYS.items():
        *_, last = states = [*raising(original, *asked)]

        assert [broken_rules(pdf) for pdf in states] == [[]] * len(states), way
        demand_valid(last, pki)


def demand_valid(pdf: bytes, pki: LongTermPki) -> None:
    """Each signature is valid for pyHanko, pdfsig and our own verifier."""
    for verdict in pyhanko_verdicts(pdf, [pki.chain[-1]]):
        assert verdict.good, verdict.details
        assert verdict.changes in {"NONE", "LTA_UPDATES"}
    assert all(one.valid for one in pdfsig(pdf) if not one.is_timestamp)
    told = verify(pdf, [pki.chain[-1]]).signatures
    assert told
    assert all(each.valid for each in told), told


@pytest.mark.parametrize("lock", [{"Action": "/All"}, {"Action": "/All", "P": 1}])
def test_archive_of_a_file_whose_fields_are_locked_is_valid(
    lock: dict[str, object], raising: Raising, pki: LongTermPki
) -> None:
    """A timestamp brings no new drawing, which a lock forbids in validators' eyes."""
    original = as_archival(with_fields(Field("Firma", lock=lock)))

    *_, last = raising(original, SignParameters(field="Firma"))

    demand_valid(last, pki)
    with pikepdf.open(io.BytesIO(last)) as opened:
        looks = [note.AP.N.objgen for note in opened.pages[0].Annots.as_list()[1:]]
    assert len(looks) == 2
    assert len(set(looks)) == 1


def test_timestamp_on_what_others_locked_has_no_drawing(
    pki: LongTermPki, raising: Raising, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an earlier signature left none to share, validity goes before PDF/A."""
    original = as_archival(with_fields(Field("Firma", lock={"Action": "/All"})))
    states = raising(original, SignParameters(field="Firma"))
    with monkeypatch.context() as patched:
        patched.setattr(form_xobject, "blank_drawing", lambda _: None)
        next(states)

    *_, last = states

    demand_valid(last, pki)
    with pikepdf.open(io.BytesIO(last)) as opened:
        _, *stamps = opened.pages[0].Annots.as_list()
        assert all("/AP" not in each for each in stamps)


@pytest.mark.parametrize("details", [FULL, CARD], ids=["classic", "card"])
@pytest.mark.parametrize("part", ["1", "2", "3"])
def test_file_without_an_output_intent_gets_no_colours_of_a_device(
    part: str, details: StampDetails, raising: Raising, pki: LongTermPki
) -> None:
    """Neither RGB nor grey: the words, the border, the logo and the QR code."""
    original = as_archival(make_pdf(), part)

    signed = next(raising(original, SMALL, details))

    assert device_colors(signed) == set()
    plain = next(raising(make_pdf(), SMALL, details))
    assert device_colors(plain) == {"RGB", "Gray"}
    demand_valid(signed, pki)


def as_archival(pdf: bytes, part: str = "1") -> bytes:
    """A file that says that it is PDF/A, and names no device for its colours."""
    said = f"<pdfaid:part>{part}</pdfaid:part>"
    packet = archival("1b", "simple font")
    start, end = packet.index(b"<?xpacket begin"), packet.index(b'<?xpacket end="w"?>')
    xmp = packet[start:end].replace(b"<pdfaid:part>1</pdfaid:part>", said.encode())
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        opened.Root.Metadata = opened.make_stream(
            xmp + b'<?xpacket end="w"?>', Type=pikepdf.Name.Metadata,
            Subtype=pikepdf.Name.XML,
        )  # fmt: skip
        opened.save(out, object_stream_mode=pikepdf.ObjectStreamMode.disable)
    return out.getvalue()


def device_colors(pdf: bytes) -> set[str]:
    """Families of colours of a device that stamps use without a default for them."""
    found = set()
    families = {"rg": "RGB", "RG": "RGB", "g": "Gray", "G": "Gray", "k": "CMYK"}
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        for note in opened.pages[0].Annots.as_list():
            form = note.get("/AP", pikepdf.Dictionary()).get("/N")
            if form is None:
                continue
            spaces = form.Resources.get("/ColorSpace", pikepdf.Dictionary())
            used = {
                families[str(each.operator)]
                for each in pikepdf.parse_content_stream(form)
                if str(each.operator) in families
            }
            for image in form.Resources.get("/XObject", pikepdf.Dictionary()).values():
                if image.Subtype == "/Image":
                    used.add(str(image.ColorSpace).removeprefix("/Device"))
            found |= {each for each in used if f"/Default{each}" not in spaces}
    return found


@pytest.mark.long
@pytest.mark.skipif(not CAN_PREFLIGHT, reason="PDFBox Preflight is not installed")
def test_preflight_finds_no_fault_in_signed_pdf_a_1b(
    raising: Raising, tmp_path: Path
) -> None:
    """Whatever the way of signing, at the lowest and the highest level."""
    files = {
        f"{shape}, {way}, {at}.pdf": pdf
        for shape in SHAPES
        for way, asked in WAYS.items()
        for at, pdf in enumerate([*raising(archival("1b", shape), *asked)][::3])
    }

    found = preflight_faults(files, tmp_path)

    assert len(found) == 2 * len(SHAPES) * len(WAYS)
    assert {name: faults for name, faults in found.items() if faults} == {}

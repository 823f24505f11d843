"""What signature fields allow: read by the inspector, checked, signed, validated.

Source: decisions "restriccion"; docs/signing.md "What a document allows".
"""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.documents.docmdp_policy import (
    check_permitted,
    lockout,
    nearest_permitted,
    obstacle,
)
from appliance.domain.appearance.stamp import lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import (
    FIELD_LOOK,
    FIELDS_KEPT,
    Damage,
    EmptyField,
    FindingKind,
    Inspection,
    signing_facts_from_json,
    signing_facts_to_json,
)
from appliance.domain.errors import (
    FIELD_LOCKED,
    FIELD_READ_ONLY,
    ApplianceError,
    DocumentRefusedError,
    ErrorCode,
)
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import Restriction
from tests.support.documents import pdf_samples
from tests.support.documents.field_pdfs import BOX, Field, with_fields
from tests.support.documents.pdf_samples import SIGNED_AT, make_plan
from tests.support.documents.software_signer import SoftwareSigner, make_signer
from tests.support.documents.validators import (
    assert_valid,
    pdfsig,
    pyhanko_verdicts,
    read_pdf,
)
from worker.pades import SignaturePlan, prepare
from worker.pades.appearance.fonts import StampFonts, load_fonts
from worker.sandbox.inspection import inspect
from worker.sandbox.repair import repair

C = ErrorCode
WHO = StampSigner("María José Ñandú", "20267565393", "es")
ALL = {"Action": "/All"}
FONTS: Final = load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


def looked_at(pdf: bytes) -> Inspection:
    """As the sandbox describes it."""
    return inspect(pdf, 5000)


def refusal(
    inspection: Inspection, params: SignParameters, *, followed: bool = False
) -> ErrorCode | None:
    """How a command is refused before the password."""
    try:
        check_permitted(inspection, params, followed=followed)
    except ApplianceError as exc:
        return exc.code
    return None


class FieldSigner:
    """Signs as the front and the worker do together."""

    def __init__(self, signer: SoftwareSigner, fonts: StampFonts) -> None:
        self.signer = signer
        self.fonts = fonts

    def plan(self, pdf: bytes, params: SignParameters) -> SignaturePlan:
        """The plan of a command that is permitted."""
        inspection = looked_at(pdf)
        assert refusal(inspection, params) is None
        layout = lay_out(params, WHO, SIGNED_AT, inspection)
        made = make_plan(self.signer, layout, params.restriction)
        return replace(made, existing=params.field)

    def sign(self, pdf: bytes, **params: Any) -> bytes:
        """Sign a document that permits it."""
        plan = self.plan(pdf, SignParameters(**params))
        return pdf_samples.sign(pdf, self.signer, plan, self.fonts)

    def all_valid(self, pdf: bytes, *, by_pdfsig: bool = True) -> int:
        """How many signatures there are; each is valid, seed values included."""
        statuses = pyhanko_verdicts(pdf, [self.signer.root])
        assert all(one.good for one in statuses), [one.details for one in statuses]
        if by_pdfsig:
            said = sum(one.valid for one in pdfsig(pdf))
            assert said == len(statuses)
        assert FindingKind.SIGNATURE_BROKEN not in looked_at(pdf).findings
        return len(statuses)


@pytest.fixture
def field_signer(signer: SoftwareSigner, fonts: StampFonts) -> FieldSigner:
    """Somebody who signs."""
    return FieldSigner(signer, fonts)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize(
    "built",
    [
        Field("Firma"),
        Field("a.b"),
        Field("a.b.c", typed_above=True),
        Field("Firma", drawn=b"0 0 m 200 80 l S"),
    ],
    ids=["merged", "nested", "type inherited", "drawn lines"],
)
def test_field_is_signed_in_its_own_box(
    built: Field, rotate: int, field_signer: FieldSigner
) -> None:
    """Whatever its build and the page's rotation; no field is added."""
    other = Field("otro.campo", rects=((10, 10, 90, 40),))
    pdf = with_fields(built, other, rotate=rotate)
    seen = looked_at(pdf).signing
    assert [field.name for field in seen.empty] == [built.name, "otro.campo"]
    assert seen.find(built.name) == EmptyField(built.name, 1, BOX)
    # With stamps that are tried.
    assert inspect(pdf, 5000, FONTS).signing == seen

    signed = field_signer.sign(pdf, field=built.name)

    assert field_signer.all_valid(signed) == 1
    assert looked_at(signed).signing.signed == (built.name,)
    field = read_pdf(signed).embedded_signatures[-1].sig_field
    box = field["/AP"]["/N"]["/BBox"]
    across = (80, 200) if rotate in (90, 270) else (200, 80)
    assert [float(side) for side in box] == [0, 0, *across]


@pytest.mark.parametrize(
    "built",
    [
        Field("a.b.c", merged=False),
        Field("Firma", rects=(BOX, (320, 100, 500, 180))),
    ],
    ids=["kid", "two_widgets"],
)
def test_field_with_widgets_apart_is_not_signed(built: Field) -> None:
    """Poppler looks for the value in the widget, and calls such a field unsigned."""
    seen = looked_at(with_fields(built))

    (field,) = seen.signing.empty
    assert field == EmptyField(built.name, 1, BOX, needs=("Kids",))
    code = refusal(seen, SignParameters(field=built.name))
    assert code is ErrorCode.SIGNATURE_FIELD_DEMANDS


@pytest.mark.parametrize(
    "built",
    [
        Field(rects=((50, 50, 50, 50),)),
        Field(hung=False),
        Field(rects=()),
        Field(flags=1),
        Field(flags=2),
        Field(flags=4 | 32),
    ],
    ids=["no_area", "on_no_page", "no_widget", "invisible", "hidden", "no_view"],
)
def test_field_without_a_place_is_signed_invisibly(
    built: Field, field_signer: FieldSigner
) -> None:
    """Nothing is drawn, and it is valid all the same."""
    pdf = with_fields(built)
    assert looked_at(pdf).signing.empty == (EmptyField(built.name),)

    signed = field_signer.sign(pdf, field=built.name)

    assert_valid(signed, field_signer.signer.root)
    assert "/AP" not in read_pdf(signed).embedded_signatures[-1].sig_field


@pytest.mark.parametrize(
    "drawn",
    [b"BT /F 9 Tf 2 2 Td (NO) Tj ET", b"BT /F 9 Tf(NO)' ET", b"/X Do", b"/S sh"],
)
def test_field_that_says_something_is_not_signed(drawn: bytes) -> None:
    """A signer would read it, and the stamp takes its place; a copy is without it."""
    pdf = with_fields(Field(drawn=drawn))

    (field,) = looked_at(pdf).signing.empty
    assert field.needs == (FIELD_LOOK,)
    code = refusal(looked_at(pdf), SignParameters(field="Firma"))
    assert code is ErrorCode.SIGNATURE_FIELD_DEMANDS
    made = repair(pdf)
    assert Damage.FORM_FIELDS in made.damage
    assert looked_at(made.pdf).signing.empty == (EmptyField("Firma", 1, BOX),)


def test_text_is_scaled_down_and_never_up() -> None:
    """A small box shrinks it, at last away; a big one leaves it as it is."""

    def size(width: float, height: float, **params: Any) -> tuple[float, int]:
        pdf = with_fields(Field(rects=((10, 10, 10 + width, 10 + height),)))
        command = SignParameters(field="Firma", **params)
        layout = lay_out(command, WHO, SIGNED_AT, looked_at(pdf))
        assert layout is not None
        assert (layout.width, layout.height) == (width, height)
        return round(layout.font_size_pt, 2), len(layout.lines)

    assert size(500, 500) == (12, 4)
    assert size(500, 500, zoom_percent=50) == (6, 4)
    assert size(500, 35.0) == (6.03, 4)
    assert size(20, 10)[1] == 0


@pytest.mark.parametrize(
    ("restriction", "level"),
    [(Restriction.FORM_FILLING, 2), (Restriction.FORM_FILLING_AND_ANNOTATIONS, 3)],
)
def test_certified_document_takes_its_own_fields_or_no_stamp(
    restriction: Restriction, level: int, field_signer: FieldSigner
) -> None:
    """Both ways leave the certification valid; a new stamp would not."""
    pdf = field_signer.sign(
        with_fields(Field()), visible=False, restriction=restriction
    )
    seen = looked_at(pdf)
    assert (seen.docmdp, seen.signing.permitted) == (level, level)
    assert refusal(seen, SignParameters()) is C.PDF_CERTIFIED
    assert nearest_permitted(SignParameters(), seen).field == "Firma"

    twice = field_signer.sign(field_signer.sign(pdf, field="Firma"), visible=False)

    assert field_signer.all_valid(twice) == 3
    assert not nearest_permitted(SignParameters(), looked_at(twice)).visible
    with_stamp = pdf_samples.sign(
        pdf,
        field_signer.signer,
        make_plan(field_signer.signer, lay_out(SignParameters(), WHO, SIGNED_AT, seen)),
        field_signer.fonts,
    )
    assert not pyhanko_verdicts(with_stamp, [field_signer.signer.root])[0].good
    assert FindingKind.SIGNATURE_BROKEN in looked_at(with_stamp).findings


@pytest.mark.parametrize(
    ("lock", "own", "other", "new"),
    [
        (ALL, C.PDF_LOCKED, C.PDF_LOCKED, C.PDF_LOCKED),
        ({"Action": "/Include", "Fields": ["b"]}, C.PDF_LOCKED, None, None),
        (
            {"Action": "/Exclude", "Fields": ["c"]},
            C.PDF_LOCKED,
            None,
            C.PDF_LOCKED,
        ),
        ({**ALL, "P": 1}, C.PDF_LOCKED, C.PDF_LOCKED, C.PDF_LOCKED),
        (
            {"Action": "/Include", "Fields": ["x"], "P": 2},
            None,
            None,
            C.PDF_CERTIFIED,
        ),
    ],
    ids=["all", "include", "exclude", "all_p1", "include_p2"],
)
def test_lock_of_an_earlier_signature_holds(
    lock: dict[str, Any],
    own: ErrorCode | None,
    other: ErrorCode | None,
    new: ErrorCode | None,
    field_signer: FieldSigner,
) -> None:
    """What it forbids is refused; what it permits leaves it valid."""
    small = ((10, 10, 90, 40),)
    fields = (Field("a", lock=lock), Field("b.c", rects=small), Field("c", rects=small))
    pdf = field_signer.sign(with_fields(*fields), field="a")
    seen = looked_at(pdf)

    assert refusal(seen, SignParameters(field="b.c")) is own
    assert refusal(seen, SignParameters(field="c")) is other
    assert refusal(seen, SignParameters()) is new
    for refused, params in ((own, {"field": "b.c"}), (other, {"field": "c"})):
        if refused is None:
            pdf = field_signer.sign(pdf, **params)
    assert field_signer.all_valid(pdf) == 1 + (own, other).count(None)


@pytest.mark.parametrize(
    ("seeds", "restriction", "needs"),
    [
        ({"Ff": 1, "Filter": "/Otro"}, None, "Filter"),
        ({"Ff": 2, "SubFilter": ["/adbe.pkcs7.detached"]}, None, "SubFilter"),
        ({"Ff": 4, "V": 9}, None, "V"),
        ({"Ff": 8, "Reasons": ["Conforme"]}, None, "Reasons"),
        ({"Ff": 16, "LegalAttestation": ["x"]}, None, "LegalAttestation"),
        ({"Ff": 32, "AddRevInfo": True}, None, "AddRevInfo"),
        ({"Ff": 64, "DigestMethod": ["SHA1"]}, None, "DigestMethod"),
        ({"Ff": 128, "LockDocument": "/true"}, None, "LockDocument"),
        ({"Ff": 256, "AppearanceFilter": "x"}, None, "AppearanceFilter"),
        ({"Cert": {"Ff": 2, "Issuer": ["x"]}}, None, "Cert"),
        ({"TimeStamp": {"Ff": 1, "URL": "http://x"}}, None, "TimeStamp"),
        ({"MDP": {"P": 2}}, None, "MDP"),
        ({"MDP": {"P": 0}}, Restriction.FORM_FILLING, "MDP"),
        ({"Filter": "/Otro", "Reasons": ["Conforme"]}, None, ""),
        ({"Ff": 8, "Reasons": ["."]}, None, ""),
        ({"Ff": 2, "SubFilter": ["/ETSI.CAdES.detached"]}, None, ""),
        ({"Ff": 64, "DigestMethod": ["SHA256"]}, None, ""),
        ({"MDP": {"P": 2}}, Restriction.FORM_FILLING, ""),
        ({"Cert": {"Ff": 64, "URL": "http://x"}}, None, ""),
    ],
    ids=str,
)
def test_binding_seed_values_are_met_or_refused_by_name(
    seeds: dict[str, Any],
    restriction: Restriction | None,
    needs: str,
    field_signer: FieldSigner,
) -> None:
    """What only recommends hinders nobody."""
    pdf = with_fields(Field(seeds=seeds))
    restriction = restriction or Restriction.NO_VALUE
    params = SignParameters(field="Firma", restriction=restriction)
    if needs:
        with pytest.raises(ApplianceError) as caught:
            check_permitted(looked_at(pdf), params, followed=False)
        assert caught.value.code is C.SIGNATURE_FIELD_DEMANDS
        assert caught.value.params == {"needs": needs}
    else:
        signed = field_signer.sign(pdf, field="Firma", restriction=restriction)
        assert field_signer.all_valid(signed) == 1


def test_digest_of_the_key_decides_at_last(fonts: StampFonts) -> None:
    """A field that takes SHA-384 alone is not signed by an RSA key."""
    pdf = with_fields(Field(seeds={"Ff": 64, "DigestMethod": ["SHA384"]}))
    wide = FieldSigner(make_signer(KeyAlgorithm.EC_P384), fonts)
    plan = FieldSigner(make_signer(), fonts).plan(pdf, SignParameters(field="Firma"))

    wide.sign(pdf, field="Firma")
    with pytest.raises(DocumentRefusedError) as caught:
        prepare(pdf, plan, fonts)

    assert caught.value.code is C.SIGNATURE_FIELD_DEMANDS


@pytest.mark.parametrize(
    ("lock", "permits", "locks"),
    [
        ({}, None, False),
        (ALL, None, True),
        ({**ALL, "P": 1}, 1, True),
        ({"Action": "/Include", "Fields": ["x"], "P": 3}, 3, True),
        ({**ALL, "P": 7}, 1, True),
    ],
    ids=str,
)
def test_lock_of_an_empty_field_is_seen(
    lock: dict[str, Any], permits: int | None, locks: bool
) -> None:
    """Its signer is told what it forbids."""
    (seen,) = looked_at(with_fields(Field(lock=lock))).signing.empty

    assert (seen.permits, seen.locks) == (permits, locks)


@pytest.mark.parametrize(
    "lock",
    [{"P": 2}, {"Action": "/Include"}, {**ALL, "P": 7}, {"Action": "/Some"}],
    ids=str,
)
def test_lock_that_says_nothing_is_refused_before_the_password(
    lock: dict[str, Any],
) -> None:
    """It could not be written into the signature."""
    seen = looked_at(with_fields(Field(lock=lock)))

    assert refusal(seen, SignParameters(field="Firma")) is C.SIGNATURE_FIELD_DEMANDS


def test_wrong_fields_are_refused(field_signer: FieldSigner) -> None:
    """Absent, signed, read-only: each by its name."""
    fields = (Field("a"), Field("b", read_only=True))
    pdf = field_signer.sign(with_fields(*fields), field="a")
    seen = looked_at(pdf)

    assert refusal(seen, SignParameters(field="z")) is C.SIGNATURE_FIELD_NOT_FOUND
    assert refusal(seen, SignParameters(field="a")) is C.SIGNATURE_FIELD_FILLED
    assert refusal(seen, SignParameters(field="b")) is C.PDF_LOCKED
    certify = SignParameters(restriction=Restriction.FORM_FILLING)
    assert refusal(seen, certify) is C.PDF_ALREADY_SIGNED


def test_read_only_field_is_not_blamed_on_a_signature() -> None:
    """Nobody has signed, or the signatures do not lock it: its maker did."""
    seen = looked_at(with_fields(Field("a"), Field("b", read_only=True)))
    kept = signing_facts_from_json(
        json.loads(json.dumps(signing_facts_to_json(seen.signing)))
    )

    with pytest.raises(ApplianceError) as refused:
        check_permitted(seen, SignParameters(field="b"), followed=False)

    assert refused.value.code is C.PDF_LOCKED
    assert refused.value.sentence == FIELD_READ_ONLY
    assert kept == seen.signing
    assert [field.read_only for field in kept.empty] == [False, True]


def test_field_that_a_signature_locked_is_not_the_whole_document() -> None:
    """Other fields and places may be left: its own sentence says so."""
    found = obstacle(EmptyField("a", locked=True), Restriction.NO_VALUE)

    assert found is not None
    assert found.code is C.PDF_LOCKED
    assert found.sentence == FIELD_LOCKED


def test_nobody_locks_out_who_signs_after() -> None:
    """In a process only the last may close the document."""
    locked = looked_at(with_fields(Field(lock=ALL)))
    closing = SignParameters(restriction=Restriction.NO_CHANGES_ALLOWED)

    for params in (closing, SignParameters(field="Firma")):
        assert refusal(locked, params, followed=True) is C.SIGNERS_LOCKED_OUT
        assert refusal(locked, params) is None


LOCKS: Final[dict[str, dict[str, Any]]] = {
    "none": {},
    "of the other": {"Action": "/Include", "Fields": ["f.b"]},
    "of those below": {"Action": "/Include", "Fields": ["f", "none"]},
    "of a third": {"Action": "/Include", "Fields": ["f.c", "text"]},
    "of the other, forms": {"Action": "/Include", "Fields": ["f.b"], "P": 2},
    "of a third, notes": {"Action": "/Include", "Fields": ["f.c"], "P": 3},
}
FIRST: Final = {
    "new": SignParameters(),
    "unseen": SignParameters(visible=False),
    "own field": SignParameters(field="f.a"),
    "certified": SignParameters(restriction=Restriction.FORM_FILLING),
    "certified, own": SignParameters(
        field="f.a", restriction=Restriction.FORM_FILLING_AND_ANNOTATIONS
    ),
}
LATER: Final = {
    "new": GivenParameters.of(x=10, y=10),
    "unseen": GivenParameters.of(visible=False),
    "own field": GivenParameters.of(field="f.b"),
    "third field": GivenParameters.of(field="f.c"),
}


@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_who_is_locked_out_is_known_before_it_is_signed(
    lock: dict[str, Any], first: SignParameters, field_signer: FieldSigner
) -> None:
    """As the inspection says of the fields, and the signed document of what is left."""
    fields = (
        Field("f.a", lock=lock),
        Field("f.b", rects=((320.0, 100.0, 400.0, 180.0),)),
        Field("f.c", rects=((420.0, 100.0, 500.0, 180.0),)),
    )
    pdf = with_fields(*fields)
    facts = looked_at(pdf).signing

    signed = looked_at(field_signer.sign(pdf, **asdict(first)))

    for wanted in LATER.values():
        blamed = lockout(facts, first, SignaturePreset(wanted, fixed=True))
        is_refused = refusal(signed, wanted.params) is not None
        assert (blamed is not None) == is_refused, wanted
        assert lockout(facts, first, SignaturePreset(wanted)) is None


def test_locks_that_name_too_much_are_taken_for_locks_of_all() -> None:
    """What is kept of a document is bounded."""
    names = [f"f{at}" for at in range(40)]
    lock = {"Action": "/Include", "Fields": names}
    seen = looked_at(with_fields(*(Field(name, lock=lock) for name in names)))

    fields = seen.signing.empty

    assert sum(len(each.shuts) for each in fields) <= FIELDS_KEPT
    assert [len(each.shuts) for each in fields[:25]] == [40] * 25
    assert all(each.closes and not each.shuts for each in fields[25:])


def test_broken_signature_is_told(field_signer: FieldSigner) -> None:
    """A byte that it covers was changed; the document can be signed all the same."""
    pdf = field_signer.sign(with_fields(Field()), field="Firma")
    altered = pdf.replace(b"[ 0 0 595 842 ]", b"[ 0 0 595 841 ]", 1)
    assert altered != pdf

    assert FindingKind.SIGNATURE_BROKEN not in looked_at(pdf).findings
    assert FindingKind.SIGNATURE_BROKEN in looked_at(altered).findings

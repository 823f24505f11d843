"""Whole consent: each input of a signature and its stamp is bound, or accounted for.

Source: RFC 8785; docs/signing.md "What the consent covers".
"""

import hashlib
import inspect
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.domain.appearance.details import (
    PLAIN,
    Logo,
    LogoPicture,
    StampDetails,
)
from appliance.domain.appearance.stamp import StampLayout, lay_out
from appliance.domain.appearance.text import StampSigner, spoken
from appliance.domain.documents.inspected import (
    EmptyField,
    FindingKind,
    Inspection,
    PageBox,
    SignatureMark,
    SigningFacts,
)
from appliance.domain.ids import RequestId
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.signing.activation import (
    Activation,
    ActivationDocument,
    ActivationFormat,
    activation_data,
)
from appliance.domain.signing.consent import (
    Consent,
    ConsentSigner,
    DocumentTerms,
    consent_of,
    drawn_logo,
    field_name,
)
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from tests.unit.signing.test_activation_data import (
    BINDING,
    ITEM,
    OTHER_DETAILS,
    OTHER_PARAMETERS,
    OTHERS,
)
from tests.unit.signing.test_activation_data import PLAIN as PARAMETERS
from worker.pades.prepare import SignaturePlan, prepare
from worker.signing.document_signer import signature_plan

ROOT = Path(__file__).parents[3]
WHOLE = ActivationFormat.WHOLE
PROFILE = SignatureProfile(
    SignatureLevel.B_T, TimestampPolicy.PREFERRED, DigestAlgorithm.SHA256
)
SIGNER = ConsentSigner(
    name="Ana Núñez",
    cuil="20055361682",
    locale="es",
    key_version=1,
    certificate=b"certificate",
    chain=(b"issuer", b"root"),
)
LOGO = Logo("ef" * 32, 40, 20)
TERMS = DocumentTerms("12" * 32, PROFILE)
CODED = replace(ITEM, code="0" * 26)
CONSENT = Consent(replace(BINDING, documents=(CODED,)), SIGNER, (TERMS,))
PAGE = PageBox(0, 0, 595.28, 841.89, 0)
FIELD = EmptyField("contrato.comprador", 1, (10.0, 10.0, 90.0, 40.0))
INSPECTION = Inspection(
    size_bytes=1000,
    pages=(PAGE, PAGE),
    findings=(),
    signatures=0,
    docmdp=None,
    marks=(SignatureMark(1, (1.0, 2.0, 3.0, 4.0)),),
    signing=SigningFacts(empty=(FIELD,)),
    last_number=7,
)


def with_item(**changes: Any) -> Consent:
    """The consent, its one document other in something."""
    documents = (replace(CODED, **changes),)
    return replace(CONSENT, activation=replace(CONSENT.activation, documents=documents))


def with_terms(**changes: Any) -> Consent:
    """The consent, what its one document relies on other in something."""
    return replace(CONSENT, terms=(replace(TERMS, **changes),))


def with_profile(**changes: Any) -> Consent:
    """The consent, resolved otherwise."""
    return with_terms(profile=replace(PROFILE, **changes))


OTHER_SIGNERS: dict[str, Any] = {
    "name": "Ana Nuñez",
    "cuil": "20267565393",
    "locale": "en",
    "key_version": 2,
    "certificate": b"another",
    "chain": (b"issuer", b"another"),
}
OTHER_PROFILES: dict[str, Any] = {
    "level": SignatureLevel.B_B,
    "timestamp_policy": TimestampPolicy.REQUIRED,
    "digest": DigestAlgorithm.SHA512,
    "tsa": ("internal", "another"),
}
OTHER_TERMS: dict[str, Any] = {"basis_sha256": "13" * 32, "logo": LOGO}
OTHER_ITEMS: dict[str, Any] = {
    "request": RequestId(8),
    "document_sha256": "ac" + "ab" * 31,
    "code": "1" * 26,
}
CHANGED: dict[str, Callable[[], Consent]] = {
    **{
        f"activation's {name}": partial(
            lambda name: replace(
                CONSENT,
                activation=replace(CONSENT.activation, **{name: OTHERS[name]}),
            ),
            name,
        )
        for name in OTHERS
    },
    **{
        f"signer's {name}": partial(
            lambda name: replace(
                CONSENT, signer=replace(SIGNER, **{name: OTHER_SIGNERS[name]})
            ),
            name,
        )
        for name in OTHER_SIGNERS
    },
    **{
        f"document's {name}": partial(with_item, **{name: OTHER_ITEMS[name]})
        for name in OTHER_ITEMS
    },
    **{
        f"parameter {name}": partial(
            lambda name: with_item(
                params=replace(PARAMETERS, **{name: OTHER_PARAMETERS[name]})
            ),
            name,
        )
        for name in OTHER_PARAMETERS
    },
    **{
        f"stamp's {name}": partial(with_item, details=details)
        for name, details in OTHER_DETAILS.items()
    },
    **{
        f"terms' {name}": partial(with_terms, **{name: OTHER_TERMS[name]})
        for name in OTHER_TERMS
    },
    **{
        f"profile's {name}": partial(with_profile, **{name: OTHER_PROFILES[name]})
        for name in OTHER_PROFILES
    },
    "logo's width": lambda: with_terms(logo=replace(LOGO, width_px=41)),
    "logo's height": lambda: with_terms(logo=replace(LOGO, height_px=21)),
    "no code": lambda: with_item(code=None),
    "shorter chain": lambda: replace(CONSENT, signer=replace(SIGNER, chain=())),
    "one more document": lambda: replace(
        CONSENT,
        activation=replace(CONSENT.activation, documents=(CODED, CODED)),
        terms=(TERMS, TERMS),
    ),
}


def test_data_is_the_hash_of_the_canonical_form() -> None:
    """Written out by hand: names sorted, no spaces, times to the microsecond in UTC."""
    sha256 = hashlib.sha256
    canonical = (
        '{"activation":"11111111-1111-4111-8111-111111111111",'
        '"certificateSha256":"' + sha256(b"certificate").hexdigest() + '",'
        '"chainSha256":["' + sha256(b"issuer").hexdigest() + '",'
        '"' + sha256(b"root").hexdigest() + '"],'
        '"claimBy":"2026-05-25T12:01:00.000000+00:00",'
        '"created":"2026-05-25T12:00:00.000000+00:00",'
        '"credential":"33333333-3333-4333-8333-333333333333",'
        '"cuil":"20055361682",'
        '"factors":["pwd","otp","sign-pwd"],'
        '"format":"rubrica/consent/2",'
        '"items":[{"code":"00000000000000000000000000","digest":"sha256",'
        '"documentSha256":"' + "ab" * 32 + '","field":"Firma-7",'
        '"inspectionSha256":"' + "12" * 32 + '","level":"B-T",'
        '"parameters":{"fontColor":"BLACK","fontName":"Serif","fontSize":12,'
        '"fontStyle":"PLAIN","page":1,"restriccion":"NO_VALUE","visible":true,'
        '"x":null,"y":null,"zoomPercent":100},"request":7,"stamp":{},'
        '"timestampPolicy":"preferred","tsa":["internal"]}],'
        '"keyVersion":1,"language":"es","name":"Ana Núñez",'
        '"person":"22222222-2222-4222-8222-222222222222"}'
    )

    assert CONSENT.data(WHOLE) == sha256(canonical.encode()).digest()


def test_first_format_is_as_it_was() -> None:
    """To the byte, for keys of earlier epochs, whatever else was consented to."""
    for changed in (CONSENT, with_terms(basis_sha256="00" * 32), with_item(code=None)):
        data = activation_data(changed.activation, changed.signer.key_version)
        assert changed.data(ActivationFormat.FIRST) == data


@pytest.mark.parametrize("name", CHANGED)
def test_each_field_changes_the_data(name: str) -> None:
    """Nothing that was consented to can be another thing."""
    assert CHANGED[name]().data(WHOLE) != CONSENT.data(WHOLE)


def test_every_field_is_bound() -> None:
    """The lists of changes here leave no field out.

    What an activation records beside it says how far it is, or follows from the rest.
    """
    assert {*OTHERS, "documents", "profile"} == slots(Activation)
    assert set(OTHER_SIGNERS) == slots(ConsentSigner)
    assert {*OTHER_TERMS, "profile"} == slots(DocumentTerms)
    assert set(OTHER_PROFILES) == slots(SignatureProfile)
    assert set(OTHER_DETAILS) == slots(StampDetails)
    progress = {"seq", "state", "digest", "signature"}
    derived = {"params_sha256"}
    bound = {*OTHER_ITEMS, "params", "details"}
    assert bound | progress | derived == slots(ActivationDocument)


def slots(kind: type) -> set[str]:
    """Names of the fields of a dataclass."""
    return set(kind.__dataclass_fields__)  # type: ignore[attr-defined]  # it has them


def test_installations_profile_alone_changes_nothing() -> None:
    """What is bound is how each request was resolved; the rest explains a refusal."""
    other = replace(CONSENT.activation, profile={"level": "B-B"})

    assert replace(CONSENT, activation=other).data(WHOLE) == CONSENT.data(WHOLE)


# -- what a signature relies on of a document -----------------------------------------

OTHER_BASES: dict[str, Inspection] = {
    "a page's size": replace(INSPECTION, pages=(PAGE, replace(PAGE, x1=595.27))),
    "a page's rotation": replace(INSPECTION, pages=(PAGE, replace(PAGE, rotate=90))),
    "a page's unit": replace(INSPECTION, pages=(PAGE, replace(PAGE, user_unit=2.0))),
    "one page more": replace(INSPECTION, pages=(PAGE,) * 3),
    "a mark": replace(INSPECTION, marks=()),
    "a field's place": replace(
        INSPECTION,
        signing=SigningFacts(empty=(replace(FIELD, rect=(10.0, 10.0, 90.0, 41.0)),)),
    ),
    "a field's page": replace(
        INSPECTION, signing=SigningFacts(empty=(replace(FIELD, page=2),))
    ),
    "a field's name": replace(
        INSPECTION, signing=SigningFacts(empty=(replace(FIELD, name="otro"),))
    ),
    "the last number": replace(INSPECTION, last_number=8),
}


@pytest.mark.parametrize("name", OTHER_BASES)
def test_each_fact_of_a_document_changes_its_basis(name: str) -> None:
    """What the stamp's place or the revision's bytes follow from."""
    assert OTHER_BASES[name].basis_sha256 != INSPECTION.basis_sha256


def test_what_no_signature_follows_from_is_no_part_of_the_basis() -> None:
    """So that another version of the sandbox, which finds more, binds the same."""
    told = {"size_bytes", "findings", "signatures", "docmdp", "inspector_version"}
    relied = {"pages", "marks", "signing", "last_number"}
    other = replace(
        INSPECTION,
        size_bytes=1,
        findings=(FindingKind.JAVASCRIPT,),
        signatures=1,
        docmdp=2,
        inspector_version=1,
    )

    assert told | relied == slots(Inspection)
    assert other.basis_sha256 == INSPECTION.basis_sha256


def test_basis_is_the_hash_of_the_canonical_form() -> None:
    """Written out by hand; remembered, and not by what is made of it."""
    canonical = (
        '{"fields":[["\\"contrato.comprador\\"",1,[10,10,90,40]]],"lastNumber":"7",'
        '"marks":[[1,1,2,3,4]],"pages":[[2,0,0,595.28,841.89,0,1]]}'
    )

    assert INSPECTION.basis_sha256 == hashlib.sha256(canonical.encode()).hexdigest()
    assert INSPECTION.basis_sha256 is INSPECTION.basis_sha256
    assert replace(INSPECTION, last_number=8).basis_sha256 != INSPECTION.basis_sha256


@pytest.mark.parametrize(
    "strange",
    [
        {"pages": (replace(PAGE, x1=float("inf")),)},
        {"last_number": 10**40},
        {"signing": SigningFacts(empty=(EmptyField("\ud800"),))},
    ],
    ids=["endless page", "huge number", "half a character"],
)
def test_strange_document_has_a_basis(strange: dict[str, Any]) -> None:
    """No file keeps its signer from an answer."""
    assert len(replace(INSPECTION, **strange).basis_sha256) == 64


# -- a logo by its pixels --------------------------------------------------------------

PIXELS = bytes(range(18))
PICTURE = LogoPicture(
    Logo(hashlib.sha256(PIXELS).hexdigest(), 3, 2), zlib.compress(PIXELS)
)


def test_logo_is_named_by_its_pixels() -> None:
    """However they are deflated, and whatever the record files them under."""
    again = replace(PICTURE, deflated=zlib.compress(PIXELS, 1))
    misfiled = replace(PICTURE, logo=replace(PICTURE.logo, sha256="00" * 32))

    assert drawn_logo(PICTURE) == drawn_logo(again) == PICTURE.logo
    assert drawn_logo(misfiled) == PICTURE.logo


@pytest.mark.parametrize(
    "deflated",
    [
        zlib.compress(PIXELS[:-1]),
        zlib.compress(PIXELS + b"\0"),
        zlib.compress(PIXELS)[:-1],
        zlib.compress(PIXELS) + b"more",
        b"none",
        b"",
    ],
    ids=["short", "long", "cut", "something behind", "none", "empty"],
)
def test_what_is_no_picture_of_its_size_is_none(deflated: bytes) -> None:
    """It would be in the signed file all the same."""
    with pytest.raises(ValueError, match="picture"):
        drawn_logo(replace(PICTURE, deflated=deflated))


def test_logo_of_other_pixels_is_another_consent() -> None:
    """The front binds what the stamp names, a worker what it draws."""
    document = replace(CODED, details=StampDetails(logo=PICTURE.logo))
    activation = replace(BINDING, documents=(document,))
    view = cast("Any", SimpleNamespace(inspection=INSPECTION))
    other = replace(PICTURE, deflated=zlib.compress(bytes(18)))
    front = consent_of(activation, SIGNER, {0: view}, lambda _: PROFILE)

    def worker(drawn: LogoPicture) -> Consent:
        return consent_of(
            activation,
            SIGNER,
            {0: view},
            lambda _: PROFILE,
            lambda _: drawn_logo(drawn),
        )

    assert worker(PICTURE).data(WHOLE) == front.data(WHOLE)
    assert worker(other).data(WHOLE) != front.data(WHOLE)


def test_name_of_the_field_is_as_it_will_be() -> None:
    """The document's own, or that of the one that is made."""
    own = replace(CODED, params=replace(PARAMETERS, field="contrato.comprador"))

    assert (field_name(CODED), field_name(own)) == ("Firma-7", "contrato.comprador")


# -- nothing is left out ---------------------------------------------------------------

BOUND, DERIVED, WORKER = "bound", "derived", "worker"
PLAN: dict[str, str] = {
    "field_name": DERIVED,
    "layout": DERIVED,
    "restriction": BOUND,
    "signed_at": WORKER,
    "signer_name": BOUND,
    "certificate": BOUND,
    "chain": BOUND,
    "method": DERIVED,
    "existing": BOUND,
    "picture": BOUND,
    "spoken": DERIVED,
    "reason": BOUND,
    "place": BOUND,
    "token_bytes": DERIVED,
    "above": BOUND,
}
"""Every input of the engine: bound, derived from what is bound, or the worker's own."""
INPUTS: dict[Callable[..., object] | type, set[str]] = {
    prepare: {"original", "plan", "fonts", "digests"},
    signature_plan: {
        "work",
        "item",
        "view",
        "person",
        "credential",
        "method",
        "at",
    },
    lay_out: {"params", "signer", "at", "inspection", "details"},
    spoken: {"params", "signer", "at", "details"},
    StampSigner: {"name", "cuil", "locale"},
    LogoPicture: {"logo", "deflated"},
    Logo: {"sha256", "width_px", "height_px"},
}
"""What the stamp and the plan are made of. A new input is first bound by `Consent`,
or found to follow from what is bound, or to be of a worker's file; then named here and
in the table of docs/signing.md."""


def test_every_input_of_the_engine_is_accounted_for() -> None:
    """A new one stops here until somebody has said where it comes from."""
    assert set(PLAN) == slots(SignaturePlan)
    for made, names in INPUTS.items():
        assert set(inspect.signature(made).parameters) == names, made


def test_manual_has_every_input_of_the_engine() -> None:
    """The table names each field of the plan, with its origin."""
    text = (ROOT / "docs" / "signing.md").read_text("utf-8")
    table = text.partition("## What the consent covers")[2].partition("\n## ")[0]
    rows = {
        cells[1].strip().strip("`"): cells[2].strip()
        for cells in (line.split("|") for line in table.splitlines())
        if len(cells) > 3
    }

    assert {name: rows.get(name) for name in PLAN} == PLAN


def test_a_layout_holds_nothing_but_what_was_laid_out() -> None:
    """Its figures name pixels and an address that are bound."""
    assert json.dumps(sorted(slots(StampLayout))) == json.dumps(
        sorted(
            {
                *("page", "lines", "font_name", "font_style", "font_size_pt", "color"),
                *("text_x", "text_y", "x", "y", "width", "height", "rect", "rotate"),
                *("qr", "logo", "runs", "frame_pt"),
            }
        )
    )
    assert PLAIN.logo is None

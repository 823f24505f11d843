"""What `rubrica verify` says of a file."""

from dataclasses import replace
from pathlib import Path

from appliance.cli.verify import told
from appliance.domain.documents import SignatureReport, VerificationReport

GOOD = SignatureReport(
    field="Firma-7",
    signer="Ana Núñez",
    signer_serial="CUIL 20267565393",
    signed_at="2026-11-22T14:03:11-03:00",
    intact=True,
    trusted=True,
    covers_revision=True,
    only_ltv_follows=True,
    docmdp=None,
    reason="",
    level="B-LTA",
    timestamp="2026-11-22T17:03:12.123456+00:00",
    tsa="Sello, Municipio",
)
FILE = Path("acta.pdf")


def test_valid_file_is_told_in_whole_seconds_with_their_zone() -> None:
    """Who, when they said, since when it is proven, by whom, and each verdict."""
    assert [*told(FILE, VerificationReport((GOOD,), ends_at_eof=True))] == [
        "acta.pdf: VALID",
        "  Firma-7: Ana Núñez (CUIL 20267565393)",
        "    says it was signed at 2026-11-22 14:03:11 -03:00",
        "    proven to exist at 2026-11-22 17:03:12 +00:00, by Sello, Municipio",
        "    level PAdES B-LTA",
        "    yes  the signed bytes are intact",
        "    yes  the chain ends at a trusted root",
        "    yes  it covers its whole revision",
        "    yes  only validation data, metadata, timestamps and signatures follow",
    ]


def test_what_could_not_be_checked_is_told_with_its_reason() -> None:
    """And what a file calls itself gives the terminal no orders."""
    bad = replace(
        GOOD, field="\x1b[2J\nVALID", signer="", signer_serial="", signed_at=None,
        intact=False, level="", timestamp=None, tsa="", reason="unreadable: ValueError",
    )  # fmt: skip

    lines = [*told(FILE, VerificationReport((bad,), ends_at_eof=False))]

    assert lines[:3] == [
        "acta.pdf: NOT VALID",
        "  \ufffd[2J\ufffdVALID: nobody that could be read",
        "    NO   the signed bytes are intact",
    ]
    assert lines[-2:] == [
        "    reason: unreadable: ValueError",
        "  something is appended after the last revision",
    ]


def test_hidden_text_is_told_of_a_valid_file() -> None:
    """It is for whoever reads it to look at."""
    report = VerificationReport((GOOD,), ends_at_eof=True, text_covered=True)

    first, *_, last = told(FILE, report)

    assert first == "acta.pdf: VALID"
    assert last == "  a later signature's mark hides text that was signed before it"


def test_timestamp_that_does_not_count_is_named() -> None:
    """With its TSA, its time, and why."""
    why = "TSA, 2026-11-22 17:03:12 UTC: its certificate was revoked (keyCompromise)"
    told_of = replace(GOOD, level="B-B", timestamp=None, tsa="", void=why)

    lines = [*told(FILE, VerificationReport((told_of,), ends_at_eof=True))]

    assert lines[3:5] == [
        f"    a timestamp that does not count: {why}",
        "    level PAdES B-B",
    ]


def test_file_without_a_signature_is_not_valid() -> None:
    """It is told why."""
    lines = [*told(FILE, VerificationReport((), ends_at_eof=True))]

    assert lines == ["acta.pdf: NOT VALID", "  it carries no signature"]

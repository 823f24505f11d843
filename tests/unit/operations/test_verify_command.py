"""Lines that `rubrica verify` prints about a file."""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from appliance.cli import main
from appliance.cli.verify import report_lines
from appliance.domain.documents.verification import (
    YES,
    Answer,
    CheckCode,
    FilledField,
    SignatureReport,
    VerificationReport,
    refuted,
    unchecked,
)
from appliance.domain.errors import ApplianceError, ErrorCode

GOOD = SignatureReport(
    field="Firma-7",
    integrity=YES,
    identity=YES,
    trust=YES,
    revocation=YES,
    time=YES,
    coverage=YES,
    changes=YES,
    signer="Ana Núñez",
    signer_serial="CUIL 20267565393",
    signed_at="2026-11-22T14:03:11-03:00",
    level="B-LTA",
    timestamp="2026-11-22T17:03:12.123456+00:00",
    tsa="Sello, Municipio",
)
NO_CHAIN = unchecked(CheckCode.NO_CERTIFICATE_CHAIN_FOUND, "not trusted here")
CHANGED = refuted(CheckCode.CHANGED, "page 2 was changed after it (object 7)")
NOT_ASKED = unchecked(CheckCode.NOT_EXAMINED, "not examined")
FILE = Path("acta.pdf")


def lines_of(*signatures: SignatureReport, **more: Any) -> list[str]:
    """Lines of a file with these signatures."""
    report = VerificationReport(signatures, ending=YES)
    return [*report_lines(FILE, replace(report, **more))]


def test_valid_file_in_whole_seconds_with_their_zone() -> None:
    """Signer, claimed and proven time, TSA, level, and each question."""
    assert lines_of(GOOD) == [
        "acta.pdf: VALID",
        "  Firma-7: Ana Núñez (CUIL 20267565393)",
        "    says it was signed at 2026-11-22 14:03:11 -03:00",
        "    proven to exist at 2026-11-22 17:03:12 +00:00, by Sello, Municipio",
        "    level PAdES B-LTA",
        "    yes  the signed bytes are intact",
        "    yes  the certificate is the signer's, for signing documents",
        "    yes  the chain ends at a trusted root",
        "    yes  the certificate was in force when it was used",
        "    yes  a trusted timestamp proves when",
        "    yes  it covers its whole revision",
        "    yes  the signature allows what was added later",
    ]


def test_unchecked_question_is_no_no() -> None:
    """An unknown CA leaves the file undetermined, and the reason stands below."""
    lines = lines_of(replace(GOOD, trust=NO_CHAIN))

    assert lines[0] == "acta.pdf: INDETERMINATE"
    assert lines[7:9] == [
        "    ?    the chain ends at a trusted root",
        "         not trusted here",
    ]
    assert not any(line.startswith("    NO ") for line in lines)


def test_one_no_decides() -> None:
    """A change outweighs what could not be checked."""
    lines = lines_of(replace(GOOD, trust=NO_CHAIN, changes=CHANGED))

    assert lines[0] == "acta.pdf: NOT VALID"
    assert lines[-2:] == [
        "    NO   the signature allows what was added later",
        "         page 2 was changed after it (object 7)",
    ]


def test_names_give_the_terminal_no_orders() -> None:
    """Control characters of the file are replaced; questions not asked are left out."""
    bad = replace(
        GOOD, field="\x1b[2J\nVALID", signer="", signer_serial="", signed_at=None,
        integrity=refuted(CheckCode.HASH_FAILURE, "the signed bytes were changed"),
        identity=NOT_ASKED, trust=NOT_ASKED, revocation=NOT_ASKED, time=NOT_ASKED,
        level="", timestamp=None, tsa="",
    )  # fmt: skip
    appended = refuted(CheckCode.APPENDED, "bytes follow the last revision")

    lines = lines_of(bad, ending=appended)

    assert lines[:4] == [
        "acta.pdf: NOT VALID",
        "  \ufffd[2J\ufffdVALID: no signer is proven",
        "    NO   the signed bytes are intact",
        "         the signed bytes were changed",
    ]
    assert lines[-1] == "  bytes follow the last revision"
    assert not any("trusted root" in line for line in lines)


def test_hidden_text_is_stated_of_a_valid_file() -> None:
    """A reader no longer shows what the first signer saw."""
    covered = lines_of(GOOD, text_covered=Answer.YES, covered_pages=(2,))
    unread = lines_of(GOOD, text_covered=Answer.UNCHECKED)

    assert covered[0] == "acta.pdf: VALID"
    assert covered[-1] == (
        "  page 2: a later mark or filled field changes or hides text that was signed "
        "before it"
    )
    assert unread[-1] == "  text below later marks and fields could not be examined"


def test_timestamp_that_does_not_count_is_named() -> None:
    """With its TSA, its time, and the cause."""
    why = "TSA, 2026-11-22 17:03:12 UTC: its certificate was revoked (keyCompromise)"

    lines = lines_of(replace(GOOD, level="B-B", timestamp=None, tsa="", void=why))

    assert lines[3:5] == [
        f"    a timestamp that does not count: {why}",
        "    level PAdES B-B",
    ]


def test_missing_timestamp_and_revocation_data_lower_nothing() -> None:
    """A B-B signature has neither; both are stated."""
    bare = replace(
        GOOD,
        time=unchecked(CheckCode.NO_POE, "no trusted timestamp"),
        revocation=unchecked(CheckCode.TRY_LATER, "no revocation data"),
    )

    lines = lines_of(bare)

    assert lines[0] == "acta.pdf: VALID"
    assert "         no trusted timestamp" in lines
    assert "         no revocation data" in lines


def test_revoked_certificate_without_proof_of_time_is_undetermined() -> None:
    """It may have been signed before or after."""
    report = replace(GOOD, revocation=unchecked(CheckCode.REVOKED_NO_POE, "revoked"))

    assert report.verdict is Answer.UNCHECKED


def test_filled_fields_and_compared_pages_are_stated() -> None:
    """A permitted change is shown with both values."""
    filled = (FilledField("Cliente", "", "Ada"),)

    lines = lines_of(replace(GOOD, filled=filled), pages_compared=40, pages_changed=52)

    assert lines[0] == "acta.pdf: VALID"
    assert lines[-2:] == [
        "    filled in since, as permitted: Cliente: «» → «Ada»",
        "  pages whose objects later revisions changed: 52, compared as pictures: 40",
    ]


def test_sandbox_that_is_away_says_nothing_of_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1 would be that of a signature that is not valid."""

    def away(_: argparse.Namespace) -> int:
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    monkeypatch.setattr("appliance.cli.verify._verify", away)

    assert main(["verify", "acta.pdf"]) == os.EX_TEMPFAIL
    assert capsys.readouterr().err.startswith("SANDBOX_UNAVAILABLE: ")


def test_timestamps_that_prove_nothing_are_stated() -> None:
    """Some readers list them as further signers."""
    lines = lines_of(GOOD, unproven=("Ada\x1b", ""))

    assert lines[0] == "acta.pdf: VALID"
    ending = "proves nothing: it is not trusted here"
    assert lines[-2:] == [
        f"  a document timestamp, which says that it is by «Ada\ufffd», {ending}",
        f"  a document timestamp {ending}",
    ]


def test_changed_value_is_told_apart_from_a_new_one() -> None:
    """Permitted is said only of what is."""
    filled = (FilledField("Cliente", "Eva", "Ada"),)
    doubt = unchecked(CheckCode.LOOKS_DIFFERENT, "shows another text")

    assert lines_of(replace(GOOD, filled=filled))[-1] == (
        "    changed since, as permitted: Cliente: «Eva» → «Ada»"
    )
    assert lines_of(replace(GOOD, filled=filled, changes=doubt))[-1] == (
        "    changed since: Cliente: «Eva» → «Ada»"
    )


def test_name_of_the_file_gives_no_orders() -> None:
    """A line end in it would begin another answer."""
    report = VerificationReport((GOOD,), ending=YES)

    first = next(report_lines(Path("a.pdf: VALID\n b.pdf"), report))

    assert first == "a.pdf: VALID\ufffd b.pdf: VALID"


def test_file_without_a_signature_is_not_valid() -> None:
    """The reason is stated."""
    assert lines_of() == ["acta.pdf: NOT VALID", "  it carries no signature"]

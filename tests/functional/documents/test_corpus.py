"""The shared corpus through intake, firmar over HTTP, and the link.

Source: decisions "PDFs".
"""

from pathlib import Path

import pytest

from appliance.domain.vocab import SignatureLevel
from bench.corpus import (
    GOOD,
    LOOKS,
    UNLIKE,
    Line,
    made,
    read,
    sign_corpus,
    table,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.ledger import read_ledger
from tests.tools.damage import DAMAGED

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
FILES = read(CORPUS)
REFUSED = {
    "bug1782186.pdf",
    "encrypted-attachment.pdf",
    "issue21579.pdf",
    "issue9418.pdf",
}
"""They need a password or have no page tree."""
LEFT_OPEN = {"issue15557.pdf"}
"""It lets each program draw its empty field, and PDFium does so until it is signed."""


@pytest.mark.skipif(
    not FILES, reason="the shared corpus does not stand beside the project"
)
@pytest.mark.parametrize(
    ("step", "level"),
    [
        (6, SignatureLevel.B_LT),
        pytest.param(1, SignatureLevel.B_LTA, marks=pytest.mark.long),
    ],
    ids=["some", "all"],
)
def test_corpus_is_signed_and_valid_or_refused_by_name(
    sqlite_appliance: Appliance,
    people: list[TestPerson],
    tmp_path: Path,
    step: int,
    level: SignatureLevel,
) -> None:
    """Each file both ways valid for pyHanko and pdfsig, or refused by a code.

    Every sixth by default: the engine signs all of them in test_signing_corpus.
    """
    files = {name: FILES[name] for name in list(FILES)[::step]}
    lines = sign_corpus(sqlite_appliance, people[0], files, level=level, drawn_every=8)

    (tmp_path / "corpus.md").write_text("\n".join(table(lines)))
    assert [line for line in lines if not (line.signed or line.refused)] == []
    assert all(line.refused.startswith("PDF_") for line in lines if line.refused)
    assert {line.name for line in lines if line.refused} <= REFUSED
    # Each document was looked at just now; the record and the files were not.
    newest = read_ledger(sqlite_appliance).newest
    assert read_ledger(sqlite_appliance, after=newest).faults() == []


@pytest.mark.long
def test_whole_corpus_looks_as_before_but_for_the_stamp(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """Every page of every file that is signed, B-LT, both ways."""
    if not FILES:
        pytest.skip("the shared corpus does not stand beside the project")
    lines = sign_corpus(sqlite_appliance, people[0], FILES)

    different = {
        line.name
        for line in lines
        if LOOKS in line.invisible + line.visible or UNLIKE in line.repaired
    }
    assert different <= LEFT_OPEN


def test_damaged_and_encrypted_files_are_signed(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """As repaired copies, told as such, or as they are; each looks as it came."""
    files = made()

    lines = sign_corpus(sqlite_appliance, people[0], files)

    assert [_in_short(line) for line in lines] == [
        (name, GOOD, GOOD, name in DAMAGED) for name in files
    ]
    assert [line.name for line in lines if UNLIKE in line.repaired] == []


def _in_short(line: Line) -> tuple[str, str, str, bool]:
    return line.name, line.invisible, line.visible, bool(line.repaired)

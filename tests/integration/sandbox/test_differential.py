"""The differential bench on a few files: it finds what it is there to find.

Source: docs/documents.md, "One reading".
"""

import dataclasses
import io
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pikepdf
import pytest
from PIL import Image

from appliance.domain.documents.inspected import Inspection
from bench.differential import Line, main, numbers, read, run, table
from bench.differential_files import AMBIGUOUS
from bench.differential_mutations import MUTATED, SHARES, made
from bench.differential_readers import (
    Readers,
    Shown,
    differences,
    disagreeing,
)
from tests.support.documents import hostile_pdfs
from tests.support.documents.appended_revisions import Appended
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.trial.trial_chain import SignedCopy, TrialSignature, sign

READERS = {"poppler", "PDFium", "MuPDF"}
SOME = [
    ("listed twice", 1),
    ("hybrid", 2),
    ("form field", 3),
    ("annotation", 4),
    ("stream length", 5),
    ("end of file", 6),
    ("encrypted", 7),
    ("optional content", 8),
    ("real: pages", 9),
    ("real: bytes and tokens", 10),
]
"""Kind and number of ten files."""
ORIGINALS = [hostile_pdfs.plain()]


def emptied(
    pdf: bytes,
    chain: Sequence[TrialSignature],
    described: Inspection,
    fonts: StampFonts | None,
) -> SignedCopy:
    """Sign as the engine does, and take the first page's content away."""
    one = sign(pdf, chain, described, fonts)
    with pikepdf.open(io.BytesIO(one.pdf)) as opened:
        page, root = opened.pages[0].obj, opened.Root.objgen[0]
        del page["/Contents"]
        number, body = page.objgen[0], page.unparse(resolved=True)
        revision = Appended(one.pdf, len(opened.objects) + 2)
    revision.add(number, body)
    return dataclasses.replace(one, pdf=revision.table(root=b"/Root %d 0 R" % root))


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    """Three readers for all tests."""
    asked = Readers()
    yield asked
    asked.close()


@pytest.mark.full
def test_some_files_are_shown_as_they_are_signed(tmp_path: Path) -> None:
    """Two readers differ about some; a run that goes on leaves out what it has."""
    lines = run(ORIGINALS, SOME, tmp_path, pdfjs_every=0)

    assert [(line.kind, line.number) for line in lines] == SOME
    assert [line for line in lines if line.found] == []
    assert any(line.before and not line.code for line in lines)
    assert {name for line in lines for name in line.readers} == READERS
    assert run(ORIGINALS, SOME, tmp_path, pdfjs_every=0) == lines == read(tmp_path)


@pytest.mark.full
def test_each_of_four_readers_finds_another_content(tmp_path: Path) -> None:
    """An engine that changes a page is found, stamped or not; the files are kept."""
    wanted = [("annotation", 2), ("listed twice", 3)]
    lines = run([], wanted, tmp_path, pdfjs_every=1, signer=emptied)

    for line in lines:
        assert line.found.keys() == {*READERS, "pdf.js"}
        for found in line.found.values():
            assert {"stamped: picture of page 1", "unseen: picture of page 1"} <= {
                *found
            }
    assert len([*tmp_path.glob("*-signed-*.pdf")]) == 4


@pytest.mark.parametrize(("found", "status"), [({}, 0), ({"MuPDF": ["text"]}, 1)])
def test_difference_ends_with_status_1(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: dict[str, list[str]],
    status: int,
) -> None:
    """The table counts it, and a line says how to make the file again."""
    line = Line("hybrid", 7, ["a and b"], "", found=found)
    (tmp_path / "lines.jsonl").write_text(
        f"{dataclasses.asdict(line)}\n".replace("'", '"').replace("False", "false")
    )
    asked = ["differential", str(tmp_path), "--files", "0", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*asked, "--pdfjs-every", "0"])

    assert main() == status

    said = capsys.readouterr().out
    assert "| hybrid | 1 | 1 |" in said
    assert "fewer than 50" in said
    assert ('--again "hybrid" 7' in said) is bool(status)


def test_kinds_are_made_in_turn_by_their_shares() -> None:
    """A run that is stopped has as much of each kind."""
    assert SHARES.keys() == {*AMBIGUOUS, *MUTATED}
    total = sum(SHARES.values())
    half = [kind for kind, _ in numbers(total // 2, 1)]
    for kind, share in SHARES.items():
        assert abs(half.count(kind) - share / 2) <= 1
    assert len({number for _, number in numbers(total, 1)}) == total


@pytest.mark.parametrize("kind", [each for each in AMBIGUOUS if each != "encrypted"])
def test_same_number_makes_the_same_file(kind: str) -> None:
    """Others make other files, of most kinds."""
    assert made(kind, 1, []) == made(kind, 1, [])
    assert len({made(kind, at, []).pdf for at in range(10)}) > 3


@pytest.mark.full
@pytest.mark.parametrize("kind", ["listed twice", "inherited resources"])
def test_readers_differ_about_a_kind(readers: Readers, kind: str) -> None:
    """Every file of these two is shown differently, and by its text, too."""
    for at in range(3):
        shown = readers.show(made(kind, at, []).pdf)
        assert shown.keys() == READERS
        assert disagreeing(shown)


@pytest.mark.full
def test_readers_agree_about_a_sound_file(readers: Readers) -> None:
    """Each reads its text, and draws it in its own way."""
    shown = readers.show(hostile_pdfs.plain())

    texts = {(each.text.strip() if each else None) for each in shown.values()}
    assert len(texts) == 1
    assert texts != {None}
    assert not disagreeing(shown)
    for one, other in itertools.combinations(shown.values(), 2):
        assert one is not None
        assert other is not None
        assert len(one.pictures) == len(other.pictures) == 1


def _shown(text: str, *pixels: tuple[int, int]) -> Shown:
    picture = Image.new("RGB", (100, 100), (255, 255, 255))
    for each in pixels:
        picture.putpixel(each, (0, 0, 0))
    return Shown(text, (picture,))


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (_shown("PAGAR CIEN", (80, 80)), []),
        (_shown("PAGAR\nCIEN", (80, 80), (15, 15)), []),
        (_shown("PAGAR Ana CIEN", (80, 80)), []),
        (_shown("PAGAR CIEN Ana", (80, 80)), []),
        (_shown("PAGAR CIEN Ana Ana", (80, 80)), ["text"]),
        (_shown("PAGAR CIENA", (80, 80)), []),
        (_shown("PAGAR MIL", (80, 80)), ["text"]),
        (_shown("CIEN PAGAR", (80, 80)), ["text"]),
        (_shown("PAGAR", (80, 80)), ["text"]),
        (_shown("PAGAR CIEN"), ["picture of page 1"]),
        (_shown("PAGAR CIEN", (80, 80), (30, 15)), ["picture of page 1"]),
        (Shown("PAGAR CIEN", ()), ["number of pages"]),
        (Shown("PAGAR CIEN", (None,)), ["page 1 drawn only once"]),
        (None, ["read only before signing"]),
    ],
)
def test_only_a_stamp_may_be_new(after: Shown | None, found: list[str]) -> None:
    """A stamp's place and letters are left out, and nothing else."""
    before = _shown("PAGAR CIEN", (80, 80))

    stamps = {1: [(0.1, 0.1, 0.2, 0.2)]}
    assert differences(before, after, stamps, "Ana") == found


def test_table_counts_what_was_refused_and_written_anew() -> None:
    """By kind, and in all."""
    lines = [
        Line("hybrid", 1, ["a and b"], "PDF_AMBIGUOUS"),
        Line("hybrid", 2, ["a and b"], "", is_anew=True, signed=2, copy=["a and b"]),
        Line("encrypted", 3, [], "", signed=1, is_asked=True),
    ]
    said = list(table(lines))

    assert said[2].startswith("| hybrid | 2 | 2 | 1 | 1 | 0 | 1 | 1 | 0 | 0 |")
    assert said[3].startswith("| encrypted | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 1 | 0 |")
    assert said[4].startswith("| all | 3 | 2 | 1 | 1 | 1 | 1 | 1 | 1 | 0 |")
    assert "hybrid: PDF_AMBIGUOUS 1" in said

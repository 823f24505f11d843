"""The shared corpus through intake, firmar over HTTP, and the link.

Source: decisions "PDFs".
"""

from pathlib import Path

import pytest

from bench.corpus import sign_corpus, table
from tests.ledger import PYHANKO_FAILS, read_ledger
from tests.parts.appliance import Appliance, TestPerson

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*.pdf"))
AT_LEAST = 73
"""Files that must be signed; the others need a password, or have no page tree."""
NO_VERDICT = {"issue15557.pdf"}
"""pyHanko fails where it compares their forms, once validation data follows.

`document_faults` then asks our own verifier, and says more where that says no."""


@pytest.mark.skipif(
    not FILES, reason="the shared corpus does not stand beside the project"
)
def test_corpus_is_signed_and_valid_or_refused_by_name(
    on_sqlite: Appliance, people: list[TestPerson], tmp_path: Path
) -> None:
    """Each file both ways valid for pyHanko and pdfsig, or refused by a code."""
    lines = sign_corpus(on_sqlite, people[0], FILES)

    (tmp_path / "corpus.md").write_text("\n".join(table(lines)))
    odd = [line for line in lines if not (line.signed or line.refused)]
    assert {line.name for line in odd} <= NO_VERDICT, odd
    assert all({line.invisible, line.visible} == {PYHANKO_FAILS} for line in odd)
    assert all(line.refused.startswith("PDF_") for line in lines if line.refused)
    assert sum(line.signed for line in lines) >= AT_LEAST
    # Each document was looked at just now; the record and the files were not.
    newest = read_ledger(on_sqlite).newest
    assert read_ledger(on_sqlite, after=newest).faults() == []

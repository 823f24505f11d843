"""The page of a trial: its lines with curl, run as they are printed."""

from collections.abc import Iterator

import pytest

from tests.support.appliance.manual import run_block
from tests.support.appliance.trial import Trial, running_trial
from tests.support.documents.validators import pdfsig
from tests.support.processes.scratch import short_folder

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    """A fresh one."""
    with short_folder() as folder, running_trial(folder) as running:
        yield running


def test_document_is_signed_with_curl(trial: Trial) -> None:
    """In one shell, block after block: asked for, signed, saved below `var`."""
    lines: list[str] = []
    run_block("trial.md", "Sign with curl", 0, lines.append)
    run_block("trial.md", "Sign with curl", 1, lines.append)
    run_block("trial.md", "Sign with curl", 2, lines.append)
    run_block("trial.md", "Sign with curl", 3, lines.append)
    run_block("trial.md", "Sign with curl", 4, lines.append)
    run_block("trial.md", "Sign with curl", 5, lines.append)
    before = {path.name for path in trial.folder.iterdir()}

    trial.run("\n".join(lines))

    assert pdfsig((trial.folder / "var/firmado.pdf").read_bytes())[-1].valid
    # Nothing is left beside `var`, where a clone would show it.
    assert {path.name for path in trial.folder.iterdir()} == before

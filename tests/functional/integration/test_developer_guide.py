"""The guide of ten minutes, as the appliance serves it: each block as it is printed."""

import html
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.appliance.manual import DOCS
from tests.support.appliance.trial import Trial, running_trial
from tests.support.patience import CALL_S
from tests.support.processes.scratch import short_folder

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    """A fresh one."""
    with short_folder() as folder, running_trial(folder) as running:
        yield running


def printed(trial: Trial, lang: str) -> list[str]:
    """The blocks that a reader is to run, from the page in a language."""
    page = (
        httpx.get(f"{trial.web_url}/docs/{lang}/guide", timeout=CALL_S)
        .raise_for_status()
        .text
    )
    found = re.findall(r'<code class="language-sh">(.*?)</code>', page, re.DOTALL)
    return [html.unescape(each) for each in found]


def test_guide_runs_from_key_to_signed_pdf(trial: Trial) -> None:
    """Unattended: key, signer, request, mail, session, signature, event, PDF.

    It ends with no webhook, no receiver and no secret left.
    """
    blocks = printed(trial, "es")
    assert blocks == printed(trial, "en")

    before = set(trial.folder.iterdir())

    said = trial.run("\n".join(blocks))

    assert said.splitlines()[-1] == "[]"
    # What stays is among the trial's own data, which no clone has under control.
    assert set(trial.folder.iterdir()) == before
    signed = trial.folder / "var/firmado.pdf"
    assert "PREPROD" in said
    assert "/embed/?sessionToken=" in said
    assert "solicitud.firmada" in (trial.folder / "var/events.txt").read_text()
    assert signed.read_bytes().startswith(b"%PDF-")
    checked = subprocess.run(
        ["pdfsig", signed], capture_output=True, text=True, check=False
    )
    assert "Signature is Valid" in checked.stdout
    # What the guide explains, and nothing else is odd about it.
    assert "Not total document signed" in checked.stdout


def test_guide_can_be_begun_again(trial: Trial) -> None:
    """With the same integrator, and another key."""
    key = printed(trial, "es")[0]

    for _ in range(2):
        said = trial.run(key)
        assert "ALREADY_EXISTS" not in said
        assert said.splitlines()[-1] == "PREPROD"


def test_page_of_a_trial_deletes_what_is_in_memory(trial: Trial) -> None:
    """The folder that its line computes is the one of the trial, which tells it too."""
    page = (DOCS / "trial.md").read_text(encoding="utf-8")
    [folder] = re.findall(r'^rm -rf var \.venv ("/dev/shm/.*")$', page, re.MULTILINE)

    named = trial.run(f"echo {folder}").strip()
    shown = trial.run(".venv/bin/rubrica --settings var/settings.toml demo show")

    assert Path(named).is_dir()
    assert f"in memory:      {named} " in shown

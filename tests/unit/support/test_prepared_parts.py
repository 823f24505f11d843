"""What a run has made is there for the next one, as long as it is of this product."""

import os
import time
from pathlib import Path

import pytest

from tests.support.processes import setup_cache

_DAY_S = 24 * 3600


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Folders in which a part was made; runs keep theirs in a folder of this test."""
    monkeypatch.delenv("RUBRICA_TEST_PREPARED", raising=False)
    monkeypatch.setattr(setup_cache, "SCRATCH", tmp_path)
    monkeypatch.setattr(setup_cache, "_KEPT", tmp_path / "kept")
    return []


def run(made: list[Path]) -> str:
    """A run that wants the part; what its HSM's configuration says."""

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "hsm").mkdir()
        (folder / "hsm" / "softhsm2.conf").write_text(f"dir = {folder}/hsm")

    end = setup_cache.begin_run()
    try:
        folder = setup_cache.prepared("token", make)
        assert folder is not None
        assert setup_cache.prepared("token", make) == folder
        told = (folder / "hsm" / "softhsm2.conf").read_text()
        assert told == f"dir = {folder}/hsm"
    finally:
        end()
    assert not folder.exists()
    return told


def test_next_run_has_what_one_made(made: list[Path]) -> None:
    """Each has a copy of its own."""
    assert run(made) != run(made)
    assert len(made) == 1


def test_another_product_makes_its_own(
    made: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And what the other has made goes."""
    run(made)
    monkeypatch.setattr(setup_cache, "_state_of_what_makes_it", lambda: "another")
    run(made)

    assert len(made) == 2
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["another"]


def test_what_is_a_day_old_is_made_again(made: list[Path], tmp_path: Path) -> None:
    """Lists of revoked certificates in it would have ended."""
    run(made)
    (done,) = (tmp_path / "kept").glob("*/*.done")
    before = time.time() - _DAY_S - 1
    os.utime(done, (before, before))
    run(made)

    assert len(made) == 2

"""Who knows of calls for one document in work on a host."""

import os
import socket
import stat
from pathlib import Path

import pytest

from appliance.admission.single_calls_here import SingleCallsHere


def test_all_processes_of_a_host_know(tmp_path: Path) -> None:
    """Of each that has begun one, until all are over."""
    front, other, worker = (SingleCallsHere(tmp_path) for _ in range(3))
    assert not worker.are_any()
    front.note(1, has_any=True)
    other.note(2, has_any=True)
    front.note(1, has_any=False)
    assert worker.are_any()
    other.note(2, has_any=False)
    assert not worker.are_any()


def test_containers_share_a_folder_of_that_name(tmp_path: Path) -> None:
    """Not all of `run_dir`, which in the signing workers' holds keys; and no word."""
    (tmp_path / "calls").mkdir()
    front, worker = (SingleCallsHere(tmp_path) for _ in range(2))
    front.note(1, has_any=True)
    assert worker.are_any()
    assert [path.name for path in tmp_path.iterdir()] == ["calls"]


def test_what_is_over_in_one_container_is_not_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both have the same process number."""
    monkeypatch.setattr(socket, "gethostname", lambda: "5b1f0c2a9d3e")
    front = SingleCallsHere(tmp_path)
    monkeypatch.setattr(socket, "gethostname", lambda: "0d77e6a1f4b2")
    other = SingleCallsHere(tmp_path)
    front.note(1, has_any=True)
    other.note(1, has_any=True)
    front.note(1, has_any=False)
    assert front.are_any()
    other.note(1, has_any=False)
    assert not front.are_any()


def test_what_a_dead_process_left_counts_no_more(tmp_path: Path) -> None:
    """After a second; so does a call that something else holds up."""
    now = [1]
    front, worker = (SingleCallsHere(tmp_path, lambda: now[0]) for _ in range(2))
    front.note(1, has_any=True)
    now[0] += 999_999_999
    assert worker.are_any()
    now[0] += 1
    assert not worker.are_any()


def test_time_that_is_yet_to_come_counts_no_more(tmp_path: Path) -> None:
    """The machine was started anew since, and the folder kept."""
    SingleCallsHere(tmp_path, lambda: 5_000).note(1, has_any=True)
    assert not SingleCallsHere(tmp_path, lambda: 4_000).are_any()


@pytest.mark.parametrize("mask", [0o007, 0o022, 0o077])
def test_processes_of_the_group_may_say_so(tmp_path: Path, mask: int) -> None:
    """Whoever makes it, by whatever umask: roles have users of their own."""
    before = os.umask(mask)
    try:
        SingleCallsHere(tmp_path).note(1, has_any=True)
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_who_only_opens_it_makes_no_file(tmp_path: Path) -> None:
    """An operator's command, whose user is another."""
    SingleCallsHere(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_word_of_another_process_stays(tmp_path: Path) -> None:
    """Of two that have the same one: who began last says when it is over."""
    front, other, worker = (SingleCallsHere(tmp_path) for _ in range(3))
    front.note(1, has_any=True)
    other.note(257, has_any=True)
    front.note(1, has_any=False)
    assert worker.are_any()
    other.note(257, has_any=False)
    assert not worker.are_any()


def test_folder_that_cannot_be_shared_is_no_fault(tmp_path: Path) -> None:
    """Each knows of itself alone."""
    front, worker = (SingleCallsHere(tmp_path / "none") for _ in range(2))
    front.note(1, has_any=True)
    assert front.are_any()
    assert not worker.are_any()


def test_file_that_is_cut_off_ends_nobody(tmp_path: Path) -> None:
    """Whoever may write to it; the next call stands in it again."""
    front, worker = (SingleCallsHere(tmp_path) for _ in range(2))
    front.note(1, has_any=True)
    (path,) = tmp_path.iterdir()
    for size in (12, 0):
        os.truncate(path, size)
        assert not worker.are_any()
    front.note(1, has_any=True)
    assert worker.are_any()


def test_link_is_not_followed(tmp_path: Path) -> None:
    """To a file of somebody else's."""
    other = tmp_path / "other"
    other.write_bytes(b"x")
    (tmp_path / "single-calls").symlink_to(other)
    SingleCallsHere(tmp_path).note(1, has_any=True)
    assert other.read_bytes() == b"x"


def test_what_is_no_file_is_no_fault(tmp_path: Path) -> None:
    """A pipe say: nobody knows of anything."""
    os.mkfifo(tmp_path / "single-calls")
    here = SingleCallsHere(tmp_path)
    here.note(1, has_any=True)
    assert not here.are_any()

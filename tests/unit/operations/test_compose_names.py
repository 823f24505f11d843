"""Names of the containers of compose.yaml, by which the record knows processes.

tests/functional/installation/test_compose.py starts them.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from appliance.operations.health.processes import BEATING
from appliance.operations.metrics.reading import ROLES

_ROOT: Final = Path(__file__).resolve().parents[3]
_TEXT: Final = (_ROOT / "packaging/compose/compose.yaml").read_text("utf-8")


def services() -> dict[str, str]:
    """Lines of each service by its name, those of its anchor before them."""
    start, end = _TEXT.index("\nservices:\n"), _TEXT.index("\nsecrets:\n")
    parts = re.split(
        r"^  ([\w-]+):(?: &(\w+))?\n", _TEXT[start:end], flags=re.MULTILINE
    )
    found: dict[str, str] = {}
    anchors: dict[str, str] = {}
    for name, anchor, lines in zip(*(parts[at::3] for at in (1, 2, 3)), strict=True):
        base = re.search(r"<<: \*(\w+)", lines)
        found[name] = anchors.get(base[1] if base else "", "") + lines
        anchors[anchor or ""] = found[name]
    return found


def hostnames(role: str) -> set[str]:
    """Names of the hosts of a role's containers; empty for one without a name."""
    command = rf"command: \[(?:serve, |worker, )?{role}\b"
    those = [lines for lines in services().values() if re.search(command, lines)]
    assert those, role
    named = (
        re.findall(r"^    hostname: (\S+)$", lines, re.MULTILINE) for lines in those
    )
    return {names[-1] if names else "" for names in named}


def test_every_role_has_a_name_of_its_own_that_stays() -> None:
    """A container made again takes the place of the one before, and of no other."""
    assert set(BEATING) <= set(ROLES)
    names = [hostnames(role) for role in ROLES]

    assert all(len(each) == 1 and "" not in each for each in names)
    assert len(set.union(*names)) == len(ROLES)


@pytest.mark.parametrize("role", ["signing", "chores"])
def test_workers_of_one_name_share_their_locks(role: str) -> None:
    """Two of one name and number would take each other for the same worker."""
    volume = re.search(rf"^  {role}:\n    driver_opts: ", _TEXT, re.MULTILINE)
    those = [lines for lines in services().values() if f"worker, {role}" in lines]

    assert volume
    assert all(f"- {role}:/run/rubrica\n" in lines for lines in those)
    assert all("tmpfs: [/tmp]\n" in lines for lines in those)


@pytest.mark.parametrize("service", ["metrics", "operator", "doctor"])
def test_whoever_tells_of_the_installation_reads_all_figures(service: str) -> None:
    """`status` and `doctor` would take what they cannot see for well."""
    lines = services()[service]

    for role in ROLES:
        assert f"- figures-{role}:/run/metrics/{role}:ro\n" in lines

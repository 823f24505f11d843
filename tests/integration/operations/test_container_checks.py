"""What the doctor of containers finds in their folder, figures and database.

Source: docs/installing.md, "What is amiss";
tests/functional/installation/test_compose.py runs it in its container.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from appliance.metrics.metrics_file import FORMAT
from appliance.operations import compose, system
from appliance.operations.doctor import container_checks
from appliance.operations.installation_checks import Finding
from appliance.operations.metrics.reading import LATEST_S
from appliance.operations.setup.questions import ask_all
from appliance.operations.setup_answers import settings_text
from appliance.settings import Settings, load_settings
from tests.support.appliance.separate_users import SeparateUsers

_COMPOSE: Final = Path(__file__).resolve().parents[3] / "packaging" / "compose"
_ALL: Final = (
    *("api", "embed", "admin", "signing-1", "signing-2", "chores", "sandbox"),
)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to give away")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an installation's compose.yaml stands."""
    monkeypatch.setattr(system, "COMPOSE", _COMPOSE)
    answers = ask_all({}, interactive=False, layout=compose.LAYOUT)
    compose.make(tmp_path, answers)
    return tmp_path


def settings_with(folder: Path, *changes: tuple[str, str]) -> Settings:
    """Settings of containers, with something elsewhere."""
    answers = ask_all({}, interactive=False, layout=compose.LAYOUT)
    text = settings_text(answers, compose.LAYOUT)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = folder / "other.toml"
    path.write_text(text)
    return load_settings(path)


def told(found: Iterator[Finding]) -> list[str]:
    """What is amiss, in words."""
    return [each.what for each in found]


@as_root
def test_folder_as_it_was_made_is_well(folder: Path) -> None:
    """Whatever else an operator has there."""
    (folder / "compose.override.yaml").write_text("services: {}\n")
    (folder / "work" / "contrato.pdf").write_bytes(b"%PDF")

    assert told(container_checks.look_at_folder(folder)) == []


@as_root
def test_owners_and_modes_are_told_and_mended_as_it_says(folder: Path) -> None:
    """Of files and folders; what is to be done is done in the folder."""
    (folder / "secrets" / "pepper").chmod(0o644)
    (folder / "roles.sql").chmod(0o444)
    os.chown(folder / "secrets" / "database-api", 0, 0)
    os.chown(folder / "work", 1000, 1000)

    found = list(container_checks.look_at_folder(folder))
    for each in found:
        subprocess.run(["sh", "-euc", each.remedy], cwd=folder, check=True)

    assert [each.what for each in found] == [
        "work is 0700 1000:1000, and not 0700 10001:10001",
        "roles.sql is 0444 10002:10002, and not 0400 10002:10002",
        "secrets/database-api is 0600 0:0, and not 0600 10001:10001",
        "secrets/pepper is 0644 10001:10001, and not 0600 10001:10001",
    ]
    assert told(container_checks.look_at_folder(folder)) == []


@as_root
def test_what_another_version_left_or_nobody_made_is_told(folder: Path) -> None:
    """Setup brings it to this version."""
    (folder / "compose.yaml").write_text("services: {}\n")
    (folder / "redis.conf").unlink()

    found = list(container_checks.look_at_folder(folder))
    compose.make(folder, None)

    assert [each.what for each in found] == [
        "redis.conf: No such file or directory",
        "compose.yaml is not this version's",
    ]
    assert {"setup --compose" in each.remedy for each in found} == {True}
    assert told(container_checks.look_at_folder(folder)) == []


def hand_over(figures: Path, name: str, *, age_s: float = 0) -> None:
    """Write what a role does, so long ago."""
    role, _, number = name.partition("-")
    (figures / role).mkdir(parents=True, exist_ok=True)
    path = figures / role / f"{number or 1}.json"
    path.write_text(json.dumps({"format": FORMAT, "host": "here", "samples": []}))
    then = time.time() - age_s
    os.utime(path, (then, then))


def test_roles_that_hand_nothing_over_are_told(tmp_path: Path) -> None:
    """One that never did, one that does no more, and a worker beyond the two."""
    figures = tmp_path / "figures"
    settings = settings_with(tmp_path, ('"/run/metrics"', f'"{figures}"'))
    for name in _ALL:
        hand_over(figures, name)
    assert told(container_checks.look_at_containers(settings)) == []

    (figures / "api" / "1.json").unlink()
    hand_over(figures, "signing-2", age_s=LATEST_S + 1)
    hand_over(figures, "signing-3", age_s=LATEST_S + 1)
    (figures / "chores" / "1.json").write_text("{")

    found = list(container_checks.look_at_containers(settings))

    assert [each.what.partition(":")[0] for each in found] == [
        *("api", "signing-2", "signing-3", "chores"),
    ]
    assert found[0].remedy.splitlines() == [
        "docker compose ps api; docker compose logs --tail 20 api",
        "docker compose up --detach",
    ]
    assert found[3].what == "chores: its figures cannot be read (malformed)"


@as_root
def test_users_who_do_not_get_in_are_told(folder: Path) -> None:
    """By PostgreSQL's words, each alone; one that is away is told once."""
    with SeparateUsers.made() as cluster:
        cluster.run_as_superuser((folder / "roles.sql").read_text())
        place = urlsplit(cluster.server.tcp_url())
        settings = settings_with(
            folder,
            (
                '"postgresql:///rubrica?host=/run/postgresql"',
                f'"postgresql://{place.hostname}:{place.port}/rubrica"',
            ),
            ('"/run/secrets/database"', f'"{folder}/secrets/database"'),
        )
        (folder / "secrets" / "database-embed").write_text("another\n")

        (refused,) = container_checks.look_at_database(settings)

    assert refused.what.startswith("rubrica-embed: password authentication failed")
    assert "setup --compose" in refused.remedy
    (away,) = container_checks.look_at_database(settings)
    assert "does not answer" in away.what
    assert "docker compose logs --tail 20 database" in away.remedy

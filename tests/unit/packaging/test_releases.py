"""The releases that were made, and what of them may not change any more."""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]
MIGRATIONS: Final = ROOT / "appliance/database/migrations/versions"


def releases() -> list[dict[str, Any]]:
    """All of them, as they are written down."""
    text = (ROOT / "packaging/releases.toml").read_text("utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["release"]
    return found


def numbers(version: str) -> tuple[int, ...]:
    """A version to be compared; one in development is that which it will be."""
    return tuple(int(each) for each in version.partition(".dev")[0].split("."))


def test_migrations_of_releases_are_as_they_were() -> None:
    """Somebody's tables were made by them: what is to change is a new one's to do."""
    assert releases()
    for release in releases():
        assert release["migrations"]
        for name, digest in release["migrations"].items():
            found = hashlib.sha256((MIGRATIONS / name).read_bytes()).hexdigest()
            assert found == digest, f"{name} is of release {release['version']}"


def test_each_release_has_its_migrations_and_those_before() -> None:
    """They are numbered without a gap."""
    for release in releases():
        known = sorted(int(name[:4]) for name in release["migrations"])
        assert known == list(range(1, len(known) + 1))


def test_releases_are_in_order_and_in_the_changelog() -> None:
    """With their days, and what is worked on comes after them."""
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    told = re.findall(r"^## \[([0-9.]+)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    made = [(each["version"], each["date"].isoformat()) for each in releases()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert told == made[::-1]
    order = [numbers(version) for version, _ in made]
    assert order == sorted(set(order))
    assert numbers(project["version"]) > order[-1]
    assert all(re.fullmatch(r"[0-9a-f]{40}", each["commit"]) for each in releases())


def test_image_is_labelled_with_the_version() -> None:
    """Which a build without git and Python cannot ask the project for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (ROOT / "Containerfile").read_text("utf-8")

    assert re.findall("^ARG VERSION=(.*)$", text, re.MULTILINE) == [project["version"]]

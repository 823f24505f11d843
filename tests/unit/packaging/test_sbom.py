"""The bill of materials, of the environment that the tests run in."""

import json
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


def printed() -> str:
    """What the script prints."""
    done = subprocess.run(
        [sys.executable, "packaging/sbom.py", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    """It, read."""
    read: dict[str, Any] = json.loads(printed())
    return read


def test_every_locked_package_is_in_it(bill: dict[str, Any]) -> None:
    """By name and version, as a scanner for known holes looks for them."""
    lock = (ROOT / "requirements.lock").read_text("ascii")
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE)
    known = {each["purl"] for each in bill["components"]}

    assert len(locked) > 30
    assert {f"pkg:pypi/{name}@{version}" for name, version in locked} <= known


def test_browser_libraries_have_their_hashes(bill: dict[str, Any]) -> None:
    """Those that they were fetched by."""
    path = ROOT / "appliance/web/vendor/package-lock.json"
    locked = json.loads(path.read_text("ascii"))["packages"]
    found = {each["name"]: each for each in bill["components"]}

    for name in ("htmx.org", "pdfjs-dist"):
        told = locked[f"node_modules/{name}"]
        (digest,) = found[name]["hashes"]
        assert found[name]["purl"] == f"pkg:npm/{name}@{told['version']}"
        assert digest["alg"] == "SHA-512"
        expected = b64decode(told["integrity"].removeprefix("sha512-"))
        assert bytes.fromhex(digest["content"]) == expected


def test_what_wheels_bring_along_is_in_it(bill: dict[str, Any]) -> None:
    """What is compiled into a package, and shared libraries beside it."""
    inner = {
        each["name"]: {part["name"] for part in each.get("components", ())}
        for each in bill["components"]
    }

    assert "openssl" in inner["cryptography"]
    assert "libqpdf" in inner["pikepdf"]


def test_whoever_needs_another_names_one_that_is_there(bill: dict[str, Any]) -> None:
    """No reference leads nowhere, and our own are those of pyproject.toml."""
    refs = {each["bom-ref"] for each in bill["components"]}
    needed = {each["ref"]: set(each["dependsOn"]) for each in bill["dependencies"]}

    assert set(needed) <= refs | {"rubrica"}
    assert set().union(*needed.values()) <= refs
    assert {ref.partition("@")[0] for ref in needed["rubrica"]} >= {
        "pkg:pypi/pyhanko",
        "pkg:pypi/python-pkcs11",
        "pkg:pypi/quart",
    }


def test_the_same_installation_gives_the_same_bytes() -> None:
    """Two builds can be compared."""
    assert printed() == printed()

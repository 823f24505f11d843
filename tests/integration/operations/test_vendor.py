"""Browser libraries: what may be served, and what is fetched."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.web import vendor
from appliance.web.vendor import (
    VendorError,
    check_files,
    fetch,
    manifest,
    vendor_path,
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of the fetched files that a test may spoil."""
    return Path(shutil.copytree(vendor.FILES, tmp_path / "files"))


def test_fetched_files_are_those_of_the_manifest() -> None:
    """What pages get is what was locked, and nothing lies beside it."""
    check_files()

    found = {
        str(path.relative_to(vendor.FILES))
        for path in vendor.FILES.rglob("*")
        if path.is_file()
    }
    assert found == set(manifest())


@pytest.mark.parametrize(
    "name", ["pdfjs/pdf.min.mjs", "pdfjs/pdf.worker.min.mjs", "htmx/htmx.min.js"]
)
def test_library_is_found_by_name(name: str) -> None:
    """The files that pages name are there."""
    content = vendor_path(name).read_bytes()

    assert hashlib.sha256(content).hexdigest() == manifest()[name]


@pytest.mark.parametrize(
    "name", ["../__init__.py", "/etc/passwd", "pdfjs", "pdfjs/quickjs-eval.js", ""]
)
def test_name_beside_the_manifest_is_refused(name: str) -> None:
    """A name from a request opens nothing that the manifest does not list."""
    with pytest.raises(VendorError, match="not a browser library's file"):
        vendor_path(name)


def test_missing_files_are_told_with_the_remedy(tmp_path: Path) -> None:
    """Who forgot the set-up reads what to run."""
    with pytest.raises(VendorError, match=r"is missing; fetch them with \./quickstart"):
        check_files(tmp_path)


def test_changed_file_is_found(files: Path) -> None:
    """A byte more in a library keeps a role from starting."""
    with (files / "htmx/htmx.min.js").open("ab") as file:
        file.write(b"\n")

    with pytest.raises(VendorError, match=r"htmx\.min\.js is not the file"):
        check_files(files)


def test_lock_pins_by_hash_and_names_no_address() -> None:
    """Each package has a version and a SHA-512; where it comes from is not ours."""
    lock = json.loads((vendor.FOLDER / "package-lock.json").read_text())
    packages = {
        name: entry
        for name, entry in lock["packages"].items()
        if name.startswith("node_modules/") and not entry.get("link")
    }

    assert {name: entry["version"] for name, entry in packages.items()} == {
        "node_modules/htmx.org": "4.0.1",
        "node_modules/pdfjs-dist": "6.5.438",
    }
    assert all(e["integrity"].startswith("sha512-") for e in packages.values())
    assert not any("resolved" in entry for entry in packages.values())


@pytest.mark.long  # asks the registry
def test_altered_lock_fetches_nothing(tmp_path: Path) -> None:
    """A hash that does not fit stops npm, and what was there stays."""
    folder = tmp_path / "vendor"
    shutil.copytree(vendor.FOLDER, folder, ignore=shutil.ignore_patterns("files"))
    lock = folder / "package-lock.json"
    text = lock.read_text()
    start = text.index("sha512-") + len("sha512-")
    other = "A" if text[start] != "A" else "B"
    lock.write_text(text[:start] + other + text[start + 1 :])
    before = folder / "files" / "kept"
    before.parent.mkdir()
    before.touch()

    done = subprocess.run(
        [sys.executable, folder / "fetch.py"],
        env={**os.environ, "npm_config_cache": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "EINTEGRITY" in done.stderr
    assert before.exists()
    assert not list(folder.glob(".fetch-*"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"SSL_CERT_FILE": "bundle"}, "bundle"),
        ({"REQUESTS_CA_BUNDLE": "bundle"}, "bundle"),
        ({"SSL_CERT_FILE": "absent", "CURL_CA_BUNDLE": "bundle"}, "bundle"),
        ({"NODE_EXTRA_CA_CERTS": "own", "SSL_CERT_FILE": "bundle"}, "own"),
    ],
)
def test_npm_is_told_the_authorities_of_the_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    expected: str,
) -> None:
    """Node reads no system store: it gets the bundle that other programs were given."""
    for name in (*fetch.CA_VARIABLES, "NODE_EXTRA_CA_CERTS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bundle").touch()
    for name, value in given.items():
        monkeypatch.setenv(name, str(tmp_path / value))

    environment = fetch.npm_environment()

    assert environment["NODE_EXTRA_CA_CERTS"] == str(tmp_path / expected)
    assert environment["PATH"] == os.environ["PATH"]

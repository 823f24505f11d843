"""`rubrica documents`, by the command itself, as an operator runs it."""

import hashlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.domain.errors import ApplianceError
from appliance.domain.ids import IntegratorId
from appliance.domain.vocab import EventKind
from appliance.services.document_keys import IntegratorDocumentKeys
from appliance.storage.documents import LocalDocuments
from appliance.storage.key_files import KeyFile
from appliance.storage.sealed_files import MAGIC
from tests.parts.stores import Desk, open_desk

MAIN = "import sys; from appliance.commands import main; sys.exit(main())"
SETTINGS = """\
data_dir = "."
run_dir = "."
[hsm.firma]
label = "firma"
pin_file = "pin"
[hsm.pki]
label = "pki"
pin_file = "pin"
[secrets]
pepper_file = "pepper"
data_key_file = "data-key"
lookup_key_file = "lookup-key"
"""


@dataclass
class Place:
    """An installation's folder with the integrator `acme`."""

    folder: Path
    desk: Desk
    acme: IntegratorId

    @property
    def documents(self) -> LocalDocuments:
        """Its store, as a role that runs beside the command has it."""
        desk = self.desk
        keys = IntegratorDocumentKeys(desk.store, desk.sealer, desk.clock)
        return LocalDocuments(self.folder / "documents", keys)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        settings = ["--settings", str(self.folder / "settings.toml")]
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *settings, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command to its end; what it says."""
        with self.begin(*words) as process:
            out, err = process.communicate(timeout=120)
        assert process.returncode == status, out + err
        return out

    def add_plain(self, content: bytes) -> str:
        """A document as earlier versions stored it."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.folder / "documents" / self.acme / sha256[:2] / f"{sha256}.pdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return sha256

    def plain(self) -> list[Path]:
        """Files that are not encrypted."""
        found = (self.folder / "documents").rglob("*.pdf")
        return [path for path in found if not path.read_bytes().startswith(MAGIC)]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """A fresh installation."""
    for name in ("pepper", "data-key", "lookup-key"):
        path = tmp_path / name
        path.write_text(secrets.token_hex(32))
        path.chmod(0o600)
    (tmp_path / "settings.toml").write_text(SETTINGS)
    keys = KeyFile(tmp_path / "data-key"), KeyFile(tmp_path / "lookup-key")
    async with open_desk(tmp_path, "sqlite", keys) as desk:
        acme = await desk.integrators.create("operator", "acme", "ACME S.A.")
        yield Place(tmp_path, desk, acme.id)


async def test_documents_of_before_are_encrypted_though_killed(place: Place) -> None:
    """Killed in the middle and begun again; what is damaged is named and left."""
    contents = [b"%%PDF %d" % number for number in range(300)]
    names = [place.add_plain(content) for content in contents]
    damaged = place.folder / "documents" / place.acme / "00" / f"{'0' * 64}.pdf"
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(b"another")

    with place.begin("documents", "encrypt") as process:
        assert process.stderr is not None
        process.stderr.readline()
        os.kill(process.pid, signal.SIGKILL)
    halfway = len(place.plain())
    said = place.run("documents", "encrypt", status=1)

    assert 1 < halfway <= 290
    assert f"{halfway - 1} documents were encrypted" in said
    assert f"{place.acme}/{'0' * 64}: not there, or not what" in said
    assert place.plain() == [damaged]
    assert "0 documents were encrypted" in place.run("documents", "encrypt", status=1)
    for name, content in zip(names, contents, strict=True):
        assert await place.documents.get(place.acme, name) == content


async def test_documents_open_under_another_data_key(place: Place) -> None:
    """The key of documents is sealed anew with all else; no file is touched."""
    sha256 = await place.documents.put(place.acme, b"%PDF")

    said = place.run("secrets", "rotate", "data")
    place.run("secrets", "retire", "data", "1")

    assert "1 values were brought to version 2" in said
    assert await place.documents.get(place.acme, sha256) == b"%PDF"


async def test_shredding_is_said_twice_and_done_for_good(place: Place) -> None:
    """Not without `--yes`; then nothing opens, in a process that runs on either."""
    sha256 = await place.documents.put(place.acme, b"%PDF")

    place.run("documents", "shred", "acme", status=2)
    assert await place.documents.get(place.acme, sha256) == b"%PDF"
    said = place.run("documents", "shred", "acme", "--yes")

    assert "none of its documents opens any more" in said
    with pytest.raises(ApplianceError):
        await place.documents.get(place.acme, sha256)
    assert "no key" in place.run("documents", "shred", "acme", "--yes")
    place.run("documents", "shred", "nobody", "--yes", status=1)
    assert len(await place.desk.audited(EventKind.DOCUMENT_KEY_DESTROYED)) == 1

"""`rubrica documents`, by the command itself, as an operator runs it."""

import hashlib
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.documents.document_files import MAGIC
from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import IntegratorId
from appliance.domain.vocab import EventKind
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import SecretBox
from tests.support.installation.installation import Installation
from tests.support.installation.services import Services
from tests.support.processes.command_folder import CommandFolder, make_command_folder


@dataclass
class AcmeFolder(CommandFolder):
    """An installation's folder with the integrator `acme`."""

    services: Services
    acme: IntegratorId

    @property
    def documents(self) -> LocalBlobStore:
        """Its store, as a role that runs beside the command has it."""
        services = self.services
        sealer = SecretBox(KeyFile(self.folder / "document-key"))
        keys = IntegratorDocumentKeys(services.store, sealer, services.clock)
        return LocalBlobStore(self.folder / "documents", keys)

    def add_plain(self, content: bytes) -> str:
        """A document as earlier versions stored it."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.folder / "documents" / self.acme / sha256[:2] / f"{sha256}.pdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return sha256

    def files(self) -> dict[Path, tuple[int, int]]:
        """Every file of the store, with what changes when it is written."""
        found = (self.folder / "documents").rglob("*.pdf")
        looks = ((path, path.stat()) for path in found)
        return {path: (look.st_ino, look.st_mtime_ns) for path, look in looks}

    def plain(self) -> list[Path]:
        """Files that are not encrypted."""
        found = (self.folder / "documents").rglob("*.pdf")
        return [path for path in found if not path.read_bytes().startswith(MAGIC)]


@pytest.fixture
async def acme_folder(tmp_path: Path) -> AsyncIterator[AcmeFolder]:
    """A fresh installation."""
    make_command_folder(tmp_path)
    async with Installation(tmp_path).services() as services:
        acme = await services.integrators.create("operator", "acme", "ACME S.A.")
        yield AcmeFolder(tmp_path, services, acme.id)


async def test_documents_of_before_are_encrypted_though_killed(
    acme_folder: AcmeFolder,
) -> None:
    """Killed in the middle and begun again; what is damaged is named and left."""
    contents = [b"%%PDF %d" % number for number in range(300)]
    names = [acme_folder.add_plain(content) for content in contents]
    damaged = (
        acme_folder.folder / "documents" / acme_folder.acme / "00" / f"{'0' * 64}.pdf"
    )
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(b"another")

    with acme_folder.begin("documents", "encrypt") as process:
        assert process.stderr is not None
        # After what the log has to say: Redis is away.
        while "documents" not in process.stderr.readline():
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    halfway = len(acme_folder.plain())
    said = acme_folder.run("documents", "encrypt", status=1)

    assert 1 < halfway <= 290
    assert f"{halfway - 1} documents were encrypted" in said
    assert f"{acme_folder.acme}/{'0' * 64}: not there, or not what" in said
    assert acme_folder.plain() == [damaged]
    assert "0 documents were encrypted" in acme_folder.run(
        "documents", "encrypt", status=1
    )
    for name, content in zip(names, contents, strict=True):
        assert await acme_folder.documents.get(acme_folder.acme, name) == content


async def test_documents_open_under_another_document_key(
    acme_folder: AcmeFolder,
) -> None:
    """The integrators' keys are sealed anew; no document's file is touched."""
    sha256 = await acme_folder.documents.put(acme_folder.acme, b"%PDF")
    before = acme_folder.files()

    status = acme_folder.run("secrets", "status")
    other = acme_folder.run("secrets", "rotate", "data")
    said = acme_folder.run("secrets", "rotate", "document")
    acme_folder.run("secrets", "retire", "document", "1")

    assert "document  1        in use  1 document_key.key_sealed" in status
    assert "0 values were brought to version 2" in other
    assert "1 values were brought to version 2" in said
    assert await acme_folder.documents.get(acme_folder.acme, sha256) == b"%PDF"
    assert acme_folder.files() == before


async def test_shredding_is_said_twice_and_done_for_good(
    acme_folder: AcmeFolder,
) -> None:
    """Not without `--yes`; then nothing opens, in a process that runs on either."""
    sha256 = await acme_folder.documents.put(acme_folder.acme, b"%PDF")

    acme_folder.run("documents", "shred", "acme", status=2)
    assert await acme_folder.documents.get(acme_folder.acme, sha256) == b"%PDF"
    said = acme_folder.run("documents", "shred", "acme", "--yes")

    assert "none of its documents opens any more" in said
    with pytest.raises(ApplianceError):
        await acme_folder.documents.get(acme_folder.acme, sha256)
    assert "no key" in acme_folder.run("documents", "shred", "acme", "--yes")
    acme_folder.run("documents", "shred", "nobody", "--yes", status=1)
    assert (
        len(await acme_folder.services.audited(EventKind.DOCUMENT_KEY_DESTROYED)) == 1
    )

"""`rubrica verify` where no appliance runs."""

from pathlib import Path

from tests.support.documents.pdfs import one_page
from tests.support.processes.command_folder import CommandFolder, make_command_folder
from tests.support.services.server_certificates import make_authority


def test_file_is_checked_by_a_sandbox_of_its_own(tmp_path: Path) -> None:
    """It says what is so of the file, and leaves nothing behind."""
    make_command_folder(tmp_path)
    place = CommandFolder(tmp_path)
    place.run("migrate")
    (tmp_path / "pki").mkdir()
    made = make_authority(tmp_path, "root")
    made.certificate.rename(tmp_path / "pki" / "root.pem")
    file = tmp_path / "a.pdf"
    file.write_bytes(one_page())

    said = place.run("verify", str(file), status=1)

    assert said == f"{file}: NOT VALID\n  it carries no signature\n"
    assert not (tmp_path / "sandbox.sock").exists()

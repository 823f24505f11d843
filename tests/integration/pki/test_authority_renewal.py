"""A new certificate of the CA, or of root and CA, for the keys that they have.

Source: docs/key-ceremony.md, "A new certificate of the CA or the root".
"""

from pathlib import Path

import pytest
from cryptography import x509

from tests.support.appliance.manual import blocks
from tests.support.hsm.hsm_installation import HsmInstallation


def _certificates(made: HsmInstallation) -> list[x509.Certificate]:
    """Of root and CA."""
    paths = (made.settings.root_file, made.settings.ca_file)
    return [x509.load_pem_x509_certificate(path.read_bytes()) for path in paths]


def _move_away(made: HsmInstallation, line: str) -> None:
    """What a line of the manual does: `mv ca.pem ca-before.pem`."""
    _, name, other = line.split()
    folder = made.settings.ca_file.parent
    (folder / name).rename(folder / other)


@pytest.mark.parametrize("which", ["ca", "both"])
def test_certificate_is_made_anew_for_the_key_it_had(
    tmp_path: Path, which: str
) -> None:
    """What was issued before hangs on the new one, and the new one on what was."""
    made = HsmInstallation.ready(tmp_path)
    before = _certificates(made)
    lines = [
        line
        for block in blocks(
            "A new certificate of the CA or the root", "key-ceremony.md"
        )
        for line in block.text.splitlines()
        if line.startswith("mv ")
    ]
    assert [line.split()[1] for line in lines] == ["ca.pem", "root.pem"]
    for line in lines if which == "both" else lines[:1]:
        _move_away(made, line)

    status, said = made.command("init")

    assert status == 0, said
    assert f"made  CA certificate {made.settings.ca_file}" in said
    assert (f"made  root certificate {made.settings.root_file}" in said) is (
        which == "both"
    )
    assert "made  root key" not in said
    assert "made  CA key" not in said
    after = _certificates(made)
    for one, other in zip(before, after, strict=True):
        assert one.subject == other.subject
        assert one.public_key() == other.public_key()
        assert (one.serial_number == other.serial_number) is (
            which == "ca" and one == before[0]
        )
    before[1].verify_directly_issued_by(after[0])
    after[1].verify_directly_issued_by(before[0])


def test_root_alone_is_not_made_anew(tmp_path: Path) -> None:
    """It looks like a loss while the CA's certificate is there."""
    made = HsmInstallation.ready(tmp_path)
    made.settings.root_file.rename(made.settings.root_file.with_name("root-1.pem"))

    status, said = made.command("init")

    assert status == 1
    assert "put the root's certificate back" in said
    assert not made.settings.root_file.exists()

"""The sheet of a key ceremony: what it says, and that no secret is in it."""

import hashlib

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from appliance.domain.keys.hsm_keys import TokenRole
from hsm_config.pkcs11.module import find_token, opened
from hsm_config.provisioning.signing_token import identity_path
from tests.support.hsm.hsm_installation import HsmInstallation

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def initialised_hsm(tmp_path_factory: pytest.TempPathFactory) -> HsmInstallation:
    """An installation with two members after `hsm init`."""
    return HsmInstallation.ready(tmp_path_factory.mktemp("made"), members=2)


@pytest.fixture(scope="module")
def sheet(initialised_hsm: HsmInstallation) -> str:
    """Its record, as the command writes it: trying all kinds of keys takes a while."""
    out = initialised_hsm.folder / "acta.md"
    status, said = initialised_hsm.command("ceremony-record", "--out", str(out))
    assert status == 0, said
    return out.read_text("utf-8")


def test_file_that_cannot_be_written_is_told(initialised_hsm: HsmInstallation) -> None:
    """In one sentence, by the status of what is named wrongly."""
    out = initialised_hsm.folder / "nowhere" / "acta.md"

    status, said = initialised_hsm.command("ceremony-record", "--out", str(out))

    assert status == 78
    assert said == f"{out}: cannot be written (No such file or directory)\n"


def test_sheet_names_tokens_by_their_serial_numbers(
    initialised_hsm: HsmInstallation, sheet: str
) -> None:
    """All three of them."""
    with opened(initialised_hsm.settings.hsm, initialised_hsm.profile) as library:
        for label in ("firma", "firma-2", "pki"):
            serial = find_token(library, label).serial.decode().strip("\0 ")
            assert any(label in row and serial in row for row in sheet.splitlines())


def test_sheet_has_the_fingerprint_of_each_key(
    initialised_hsm: HsmInstallation, sheet: str
) -> None:
    """Of pairs by their public half; none may leave its token."""
    plain = sheet.replace(" ", "")
    pem = identity_path(initialised_hsm.settings).read_bytes()
    end = b"-----END PUBLIC KEY-----\n"
    pinned = [load_pem_public_key(part + end) for part in pem.split(end) if part]
    for key in pinned:
        der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        assert hashlib.sha256(der).hexdigest() in plain

    keys = [row for row in sheet.splitlines() if "| rubrica-" in row]
    assert sum("rubrica-mwk-1" in row for row in keys) == 2
    assert sum("rubrica-ca" in row for row in keys) >= 1
    assert all(row.endswith("| no |") for row in keys)


def test_sheet_has_the_check_and_room_for_names(sheet: str) -> None:
    """Spanish first."""
    assert sheet.startswith("# Acta de ceremonia de claves / Key ceremony record")
    assert "Resultado / verdict: apto / fit" in sheet
    assert sheet.count("| &nbsp; | &nbsp; | &nbsp; | &nbsp; |") == 10


def test_sheet_holds_no_secret(initialised_hsm: HsmInstallation, sheet: str) -> None:
    """It is printed and filed."""
    for role in TokenRole:
        assert initialised_hsm.pin(role) not in sheet

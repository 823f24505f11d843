"""Calls of the API as the manual writes them, with curl, on an appliance that runs."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.manual import run_block
from tests.support.documents import pdfs
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import OutsideCa, bundle
from tests.support.processes.operator_shell import OperatorShell
from tests.support.processes.scratch import short_folder

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def own() -> Iterator[Appliance]:
    """An appliance with all that the reference tells of."""
    with (
        short_folder() as folder,
        Installation(folder, timestamps={"public": True}).whole() as made,
    ):
        yield made


@pytest.fixture
def person(own: Appliance) -> TestPerson:
    """Somebody who signs."""
    return own.new_person()


@pytest.fixture
def shell(own: Appliance, person: TestPerson, tmp_path: Path) -> OperatorShell:
    """Of somebody who has signed in, by the reference's lines."""
    made = OperatorShell.of(own, tmp_path)
    made.variables.update(
        LOGIN_PASSWORD=person.login_password,
        SIGN_PASSWORD=person.signing_password,
        CODIGO=person.totp.now(),
    )
    base = ("http://127.0.0.1:8080", own.base_url)
    run_block("api.md", "", 0, made.run, base, ("20-26756539-3", person.cuil))
    run_block("api.md", "Sign in", 0, made.run)
    return made


def told(said: str) -> dict[str, object]:
    """The first JSON object that something said has."""
    found, _ = json.JSONDecoder().raw_decode(said, said.index("{"))
    assert isinstance(found, dict)
    return found


def taken(folder: Path) -> list[bytes]:
    """The documents in a folder, which they leave."""
    found = sorted(folder.glob("contrato*.pdf"))
    documents = [each.read_bytes() for each in found]
    for each in found:
        each.unlink()
    return documents


def test_requests_are_listed_shown_and_rejected(
    own: Appliance, person: TestPerson, shell: OperatorShell
) -> None:
    """By the one who is to sign them."""
    request = own.new_request(person, pdfs.one_page())
    seven = ("solicitudes/7", f"solicitudes/{request}")

    listed = run_block("api.md", "List", 0, shell.run)
    run_block("api.md", "One request", 0, shell.run, seven)
    previewed = run_block("api.md", "Preview", 0, shell.run, seven)
    rejected = run_block("api.md", "Reject", 0, shell.run, seven)

    assert [each["solicitudId"] for each in json.loads(listed)] == [request]
    assert (shell.folder / "contrato.pdf").read_bytes() == pdfs.one_page()
    assert (shell.folder / "page.png").read_bytes().startswith(b"\x89PNG")
    assert '"texto"' in previewed
    assert told(rejected)["estado"] == "rechazada"


def test_documents_are_signed_and_fetched(
    own: Appliance, person: TestPerson, shell: OperatorShell
) -> None:
    """One by its number, one that is sent along, several at once; then by links."""
    pdf = pdfs.pages(2)
    requests = [own.new_request(person, pdf) for _ in range(5)]
    (shell.folder / "contrato.pdf").write_bytes(pdf)
    first, second, *several = map(str, requests)
    quoted = r"\"solicitudId\":7"

    signed = run_block(
        "api.md", "Sign", 0, shell.run, (quoted, quoted.replace("7", first))
    )
    run_block("api.md", "Sign", 1, shell.run, (quoted, quoted.replace("7", second)))
    at_once = run_block(
        "api.md",
        "Sign several at once",
        0,
        shell.run,
        ("[7,8,9]", f"[{','.join(several)}]"),
        only='curl -sS "$BASE_URL/solicitudes/firmar/lote"',
    )
    sent, signed_at_once = taken(shell.folder)[::-1]
    shell.variables["DOCUMENTO_FIRMADO"] = str(told(signed)["documentoFirmado"])
    seven = ("solicitudes/7", f"solicitudes/{first}")
    run_block("api.md", "Download", 0, shell.run, only='curl -sS "$DOCUMENTO_FIRMADO"')
    (by_link,) = taken(shell.folder)
    run_block("api.md", "Download", 0, shell.run, seven, only='curl -sS "$BASE_URL')
    (by_bearer,) = taken(shell.folder)

    assert told(at_once)["firmadas"] == len(several)
    assert by_link == by_bearer
    assert sent == pdf
    for each in (by_link, signed_at_once):
        assert each.startswith(pdf)
        assert b"/ByteRange" in each[len(pdf) :]


def test_keys_and_certificates(
    own: Appliance, person: TestPerson, shell: OperatorShell
) -> None:
    """One from outside is imported, the password changed, the key revoked."""
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    (shell.folder / "outside.pem").write_bytes(bundle(outside.root))
    sha256 = outside.root.fingerprint(hashes.SHA256()).hex()
    shell.run(f"rubrica trust add outside.pem --fingerprint {sha256}")
    with own.client(person) as client:
        (credential,) = client.get("/credenciales").json()
    seven = ("credenciales/7", f"credenciales/{credential['id']}")

    def run(lines: str) -> str:
        asked, _, imported = lines.partition("\n")
        said = shell.run(asked)
        request = x509.load_pem_x509_csr((shell.folder / "request.pem").read_bytes())
        spki = request.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        chain = bundle(outside.certify(spki, person.cuil), outside.issuing)
        (shell.folder / "chain.pem").write_bytes(chain)
        return said + shell.run(imported)

    imported = run_block("api.md", "Certificates from outside", 0, run, seven)
    run_block("api.md", "Change of the signing password", 0, shell.run)
    of_keys = run_block("api.md", "Credentials", 0, shell.run, seven)

    assert '"externa"' in imported
    assert '"pin"' in of_keys.lower()


def test_what_anybody_may_ask_for(own: Appliance, shell: OperatorShell) -> None:
    """Keys, health, certificates, CRLs, OCSP and timestamps."""
    somebody = own.new_person("Juana Azurduy")
    with own.client(somebody) as client:
        (credential,) = client.get("/credenciales").json()
        path = f"/credenciales/{credential['id']}/certificado"
        (shell.folder / "signer.der").write_bytes(client.get(path).content)
    shell.run("openssl x509 -in signer.der -out signer.pem")
    (shell.folder / "contract.pdf").write_bytes(pdfs.one_page())

    health = run_block("api.md", "Keys and health", 0, shell.run)
    status = run_block("api.md", "Certificates and their status", 0, shell.run)
    stamped = run_block("api.md", "Timestamps", 0, shell.run)

    assert '"kty"' in health
    assert "signer.pem: good" in status
    assert "Verification: OK" in stamped


def test_integrator_opens_a_session(own: Appliance, shell: OperatorShell) -> None:
    """By the reference's line, and by that of the page on embedding; with a code."""
    shell.run("rubrica integrator create acme ACME")
    key = shell.run("rubrica integrator key create acme backend")
    (shell.variables["API_KEY"],) = re.findall(r"rbk_test_\w+", key)
    shell.variables["INTEGRATOR_ID"] = "acme"
    somebody = own.new_person("Manuela Pedraza")
    (shell.folder / ".venv").symlink_to(shell.folder)
    (shell.folder / "var").symlink_to(own.folder)

    first = run_block("api.md", "Session of the iframe", 0, shell.run)
    second = run_block(
        "embedding.md", "Your backend: a session for each signature", 0, shell.run
    )
    code = run_block("embedding.md", "svc.init", 0, shell.run, ("USER", somebody.cuil))

    assert told(first)["tokenSession"] != told(second)["tokenSession"]
    assert re.search(r"\b\d{6}\b", code)

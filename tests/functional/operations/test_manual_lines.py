"""Lines of the manual that an operator types on an installation that runs.

They are taken from it, and run by a shell in which `rubrica` is this checkout's.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from PIL import Image

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import signed_pdf
from tests.support.appliance.manual import run_block, run_lines
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid
from tests.support.installation.installation import Installation
from tests.support.pki.outside_ca import OutsideCa, bundle, der
from tests.support.processes.operator_shell import OperatorShell
from tests.support.processes.scratch import short_folder

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def own() -> Iterator[Appliance]:
    """An appliance that these lines may change."""
    with (
        short_folder() as folder,
        Installation(folder, timestamps={"public": True}).whole() as made,
    ):
        yield made


@pytest.fixture
def shell(own: Appliance, tmp_path: Path) -> OperatorShell:
    """Of an operator of that appliance."""
    return OperatorShell.of(own, tmp_path)


@pytest.fixture(scope="module")
def person(own: Appliance) -> TestPerson:
    """Somebody who signs."""
    return own.new_person()


def certificate_of(own: Appliance, person: TestPerson) -> tuple[int, str]:
    """Somebody's credential, and its certificate's PEM."""
    with own.client(person) as client:
        (credential,) = client.get("/credenciales").json()
        told = client.get(f"/credenciales/{credential['id']}/certificado").content
    found = (
        x509.load_pem_x509_certificate(told)
        if told.startswith(b"-----")
        else x509.load_der_x509_certificate(told)
    )
    return credential["id"], found.public_bytes(Encoding.PEM).decode()


def test_administrators(shell: OperatorShell) -> None:
    """Made, listed, kept out, let in, and helped with what they lost."""
    shell.run("rubrica console-user create eva")  # the last one stays
    shown = run_block("console.md", "Start it", 0, shell.run)
    told = run_lines("console.md", "Who gets in", 0, shell.run)

    assert "otpauth://" in shown
    said = {line.split("#")[0].strip(): text for line, text in told.items()}
    assert re.search(
        r"^marta +enabled", said["rubrica console-user list"], re.MULTILINE
    )
    assert "otpauth://" in said["rubrica console-user reset-totp marta"]
    assert "new password" in said["rubrica console-user passwd marta"]


def test_integrator_with_key_domain_and_session(shell: OperatorShell) -> None:
    """From nothing to a session, and a person who is to sign there."""
    told = run_lines("integrators.md", "API keys", 0, shell.run)
    (key,) = re.findall(r"rbk_test_\w+", "".join(told.values()))
    bound = run_lines("integrators.md", "API keys", 1, shell.run)
    domains = run_lines("integrators.md", "Domains", 0, shell.run)
    shell.variables["API_KEY"] = key
    session = run_block("integrators.md", "A session", 0, shell.run)
    invited = run_block("integrators.md", "Signers", 0, shell.run)

    listed = bound["rubrica integrator key list acme"]
    assert re.search(
        r" billing .* 192\.0\.2\.7/32, 2001:db8::/32$", listed, re.MULTILINE
    )
    assert re.search(r" back office .* all +10\.0\.0\.0/8$", listed, re.MULTILINE)
    assert "https://app.example" in list(domains.values())[1]
    assert '"tokenSession"' in session
    assert f"{shell.appliance.base_url}/alta/" in invited


def test_logos(shell: OperatorShell) -> None:
    """The installation's and an integrator's, which is taken away again."""
    for name in ("escudo.png", "acme.png"):
        Image.new("RGB", (40, 20), "navy").save(shell.folder / name)

    given = ("--integrator acme", "--integrator demo")
    told = run_lines("stamp.md", "Logos", 0, shell.run, given)

    assert len(told) == 3


def test_certificates_are_published_and_revoked(
    own: Appliance, shell: OperatorShell
) -> None:
    """OpenSSL verifies one by what is published, and OCSP tells how it stands."""
    somebody = own.new_person("Juana Azurduy")
    _, pem = certificate_of(own, somebody)
    (shell.folder / "signer.pem").write_text(pem)
    serial = f"{x509.load_pem_x509_certificate(pem.encode()).serial_number:x}"

    published = run_block("pki.md", "What is published", 0, shell.run)
    told = run_lines("pki.md", "Revoking", 0, shell.run, ("5f3a…", serial))

    assert "signer.pem: OK" in published
    assert "signer.pem: good" in published
    assert serial in next(iter(told.values())).replace(":", "").lower()


def test_certificate_from_outside(
    own: Appliance, shell: OperatorShell, person: TestPerson
) -> None:
    """Asked for, its root trusted, imported, and good for a signature."""
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    credential, _ = certificate_of(own, person)
    shell.variables.update(
        ID=str(credential),
        TOKEN=own.bearer(person),
        SIGN_PASSWORD=person.signing_password,
    )
    (shell.folder / "root.pem").write_bytes(bundle(outside.root))

    def run(line: str) -> str:
        if line.startswith("rubrica certificate import"):
            asked = (shell.folder / "request.pem").read_bytes()
            key = x509.load_pem_x509_csr(asked).public_key()
            spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            chain = bundle(outside.certify(spki, person.cuil), outside.issuing)
            (shell.folder / "chain.pem").write_bytes(chain)
        return shell.run(line)

    given = ("5A:3F:…", outside.root.fingerprint(hashes.SHA256()).hex(":").upper())
    told = run_lines("pki.md", "Certificates of outside CAs", 0, run, given)

    assert "verify OK" in list(told.values())[1]
    with own.client(person) as client:
        pdf = signed_pdf(client, person, own.new_request(person, pdfs.one_page()))
    assert pyhanko_valid(pdf, [der(outside.root), *own.roots])


def test_roots_are_trusted_and_no_longer(shell: OperatorShell) -> None:
    """By the fingerprint that their CA publishes."""
    root = OutsideCa(datetime.now(UTC).replace(microsecond=0)).root
    published = root.fingerprint(hashes.SHA256()).hex(":").upper()
    (shell.folder / "root.pem").write_bytes(bundle(root))

    def run(line: str) -> str:
        if line.endswith(" ID"):
            listed = shell.run("rubrica trust list").splitlines()
            sha256 = root.fingerprint(hashes.SHA256()).hex()
            (found,) = (each.split()[0] for each in listed if sha256 in each)
            return shell.run(line.removesuffix("ID") + found)
        return shell.run(line)

    told = run_lines("pki.md", "The trust store", 0, run, ("5A:3F:…", published))

    assert len(told) == 3


def test_roots_are_pinned_on_the_signing_host(shell: OperatorShell) -> None:
    """From the trust store, from a file, and no longer."""
    root = OutsideCa(datetime.now(UTC).replace(microsecond=0)).root
    published = root.fingerprint(hashes.SHA256()).hex(":").upper()
    (shell.folder / "root.pem").write_bytes(bundle(root))
    shell.run(f"rubrica trust add root.pem --fingerprint {published}")

    told = run_lines(
        "pki.md",
        "Roots that a signing host believes",
        0,
        shell.run,
        ("5A:3F:…", published),
    )

    assert len(told) == 4
    assert "pinned: AC de afuera" in list(told.values())[1]


def test_timestamps(own: Appliance, shell: OperatorShell, person: TestPerson) -> None:
    """OpenSSL is stamped; a certificate is revoked, a key made anew and one retired."""
    (shell.folder / "contract.pdf").write_bytes(pdfs.one_page())
    (shell.folder / "signer.pem").write_text(certificate_of(own, own.new_person())[1])
    run_block("pki.md", "What is published", 0, shell.run)

    stamped = run_block(
        "timestamps.md", "Stamping for others: `POST /tsa`", 0, shell.run
    )

    assert "Verification: OK" in stamped
    listed = shell.run("rubrica timestamps list")
    serial = re.findall(r"\b[0-9a-f]{16,40}\b", listed)[0]
    told = run_lines("timestamps.md", "Revoking it", 0, shell.run, ("SERIAL", serial))
    assert serial in next(iter(told.values()))
    run_block("timestamps.md", "A new key", 0, shell.run)
    with own.client(person) as client:
        pdf = signed_pdf(client, person, own.new_request(person, pdfs.one_page()))
    assert b"/ByteRange" in pdf


def test_timestamping_authority_outside(shell: OperatorShell) -> None:
    """Its root is trusted for timestamps; who stamps is tried out."""
    root = OutsideCa(datetime.now(UTC).replace(microsecond=0)).root
    (shell.folder / "tsa-root.pem").write_bytes(bundle(root))
    given = ("5A:3F:…", root.fingerprint(hashes.SHA256()).hex(":").upper())

    told = run_block("timestamps.md", "Authorities outside", 0, shell.run, given)

    assert "internal" in told


def test_record_is_looked_after(shell: OperatorShell) -> None:
    """The audit is read again, and documents of earlier versions are encrypted."""
    audit = run_block("running.md", "Is the audit as it was written?", 0, shell.run)
    compared = run_block(
        "running.md", "Does the audit explain what happened?", 0, shell.run
    )
    run_block("storage.md", "Encryption", 0, shell.run)

    assert "all whole" in audit
    assert "all explained" in compared

"""A certificate from outside, from the request to a signature; and its end."""

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem, sign, signed_pdf
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid
from tests.support.patience import CALL_S
from tests.support.pki.outside_ca import OutsideCa, bundle, der


@pytest.fixture(scope="module")
def person(appliance: Appliance) -> TestPerson:
    """Somebody whose key gets a certificate from outside, and is revoked."""
    return appliance.new_person("Lucía Ángela Ñáñez")


def test_outside_certificate_signs_until_it_is_revoked(
    appliance: Appliance, person: TestPerson, tmp_path: Path
) -> None:
    """Request, certify, trust the root, import, sign, revoke, sign no more."""
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    with appliance.client(person) as client:
        (before,) = client.get("/credenciales").json()
        here = f"/credenciales/{before['id']}"
        wrong = client.post(f"{here}/csr", json={"password": "otra clave de firma"})
        problem(wrong, 403, "SIGN_PASSWORD_WRONG")

        made = client.post(f"{here}/csr", json={"password": person.signing_password})
        request = _request(made, person, tmp_path)
        assert spki_of(request) == spki_of(_certificate(client, here))

        chain = bundle(outside.certify(spki_of(request), person.cuil), outside.issuing)
        body = {"cadena": chain.decode()}
        problem(client.post(f"{here}/cadena", json=body), 422, "CHAIN_INCOMPLETE")
        _trust(appliance, outside, tmp_path)
        after = client.post(f"{here}/cadena", json=body).json()
        assert (after["ca"], after["emisor"]) == ("externa", "AC de afuera")
        assert after["numeroDeSerie"] != before["numeroDeSerie"]

        pdf = signed_pdf(client, person, appliance.new_request(person, pdfs.one_page()))
        # The timestamp is of the TSA of the installation.
        assert pyhanko_valid(pdf, [der(outside.root), *appliance.roots])
        signed = tmp_path / "signed.pdf"
        signed.write_bytes(pdf)
        assert "VALID" in appliance.rubrica("verify", str(signed)).stdout.split()

        waiting = appliance.new_request(person, pdfs.one_page())
        revoked = client.post(f"{here}/revocar", json={"motivo": "reemplazo"})
        assert revoked.status_code == 202
        problem(sign(client, person, waiting), 409, "CERTIFICATE_NOT_USABLE")


def _request(
    answer: httpx.Response, person: TestPerson, folder: Path
) -> x509.CertificateSigningRequest:
    """Check a request as an outside CA does: by OpenSSL, and what it names."""
    assert answer.status_code == 200, answer.text
    path = folder / "request.pem"
    path.write_bytes(answer.content)
    checked = subprocess.run(
        ["openssl", "req", "-verify", "-noout", "-in", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    request = x509.load_pem_x509_csr(answer.content)
    named = {attribute.oid: attribute.value for attribute in request.subject}
    assert named == {
        x509.NameOID.COUNTRY_NAME: "AR",
        x509.NameOID.COMMON_NAME: "Lucía Ángela Ñáñez",
        x509.NameOID.SERIAL_NUMBER: f"CUIL {person.cuil}",
    }
    usage = request.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature
    assert usage.content_commitment
    return request


def spki_of(
    of: x509.CertificateSigningRequest | x509.Certificate,
) -> bytes:
    """The key that a request or certificate is of, DER."""
    return of.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _certificate(client: httpx.Client, here: str) -> x509.Certificate:
    answer = client.get(
        f"{here}/certificado", headers={"Accept": "application/pkix-cert"}
    )
    return x509.load_der_x509_certificate(answer.content)


def _trust(appliance: Appliance, outside: OutsideCa, folder: Path) -> None:
    """Trust a root by the command line; a wrong fingerprint is refused."""
    path = folder / "root.pem"
    path.write_bytes(bundle(outside.root))
    sha256 = outside.root.fingerprint(hashes.SHA256()).hex()
    wrong = appliance.rubrica("trust", "add", str(path), "--fingerprint", "0" * 64)
    assert wrong.returncode == 1
    assert "ANCHOR_FINGERPRINT" in wrong.stderr
    added = appliance.rubrica("trust", "add", str(path), "--fingerprint", sha256)
    assert added.returncode == 0, added.stderr
    pinned = appliance.rubrica("hsm", "anchors", "--pin", sha256)
    assert pinned.returncode == 0, pinned.stderr
    assert sha256 in appliance.rubrica("trust", "list").stdout
    assert "oldest" in appliance.rubrica("levels", "status").stdout
    assert "serial" in appliance.rubrica("timestamps", "list").stdout


def test_revocation_pin_of_a_new_person_revokes(
    appliance: Appliance, tmp_path: Path
) -> None:
    """The PIN that `rubrica person create` shows works on the page, once signed off."""
    cuil = appliance.next_cuil()
    secrets = tmp_path / "passwords"
    secrets.write_text("una clave de ingreso\nuna clave de firma\n")
    created = appliance.rubrica(
        *("person", "create", "--cuil", cuil, "--name", "Raúl Gómez"),
        *("--email", f"{cuil}@demo.example", "--vouched-by", "demo"),
        *("--passwords-file", str(secrets)),
    )
    assert created.returncode == 0, created.stderr
    shown = re.search(r"revocation PIN \(shown once\): (\S+)", created.stdout)
    assert shown is not None

    form = {
        "cuil": cuil,
        "pin": shown[1],
        "motivo": "clave_comprometida",
        "confirmo": "si",
    }
    done = httpx.post(f"{appliance.base_url}/revocar", data=form, timeout=CALL_S)

    assert "tu certificado está revocado" in done.text
    again = httpx.post(f"{appliance.base_url}/revocar", data=form, timeout=CALL_S)
    assert "No queda nada por revocar" in again.text
    assert shown[1] not in appliance.log.read_text()

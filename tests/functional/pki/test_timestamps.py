"""`POST /tsa` through the whole appliance, and what is published of its TSA.

Source: RFC 3161; docs/timestamps.md.
"""

import subprocess
from pathlib import Path

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.clock import SystemClock
from tests.support.appliance.appliance import Appliance
from tests.support.pki.timestamps import DATA, Trusted, openssl, signed, trusting

QUERY = "application/timestamp-query"


def certificate(client: httpx.Client, name: str) -> x509.Certificate:
    """One of the CA's own, as it is published."""
    return x509.load_der_x509_certificate(client.get(f"/pki/{name}.cer").content)


def test_openssl_asks_the_appliance(
    limited_appliance: Appliance, tmp_path: Path
) -> None:
    """It takes the answer, and OCSP knows the certificate that made it."""
    data, asked, answered = (tmp_path / name for name in ("data", "asked", "answered"))
    data.write_bytes(DATA)
    openssl("-query", "-data", data, "-sha256", "-cert", "-out", asked)

    with limited_appliance.client() as client:
        headers = {"Content-Type": QUERY}
        answer = client.post("/tsa", content=asked.read_bytes(), headers=headers)
        assert answer.status_code == 200, answer.text
        answered.write_bytes(answer.content)
        root, ca = certificate(client, "root"), certificate(client, "ca")
        trusted = Trusted(root, ca, SystemClock().now())
        words = ("-verify", "-in", answered, "-queryfile", asked)
        assert "OK" in openssl(*words, *trusting(trusted, tmp_path))
        assert "good" in status(client, tmp_path, answer.content)


def status(client: httpx.Client, folder: Path, answer: bytes) -> str:
    """What the appliance's OCSP tells of the authority that made an answer."""
    token = folder / "token"
    (folder / "answer").write_bytes(answer)
    openssl("-reply", "-in", folder / "answer", "-token_out", "-out", token)
    for one in signed(token.read_bytes())["certificates"]:
        carried = x509.load_der_x509_certificate(one.chosen.dump())
        if "TSA" in carried.subject.rfc4514_string():
            (folder / "tsa.pem").write_bytes(carried.public_bytes(Encoding.PEM))
    about = ("-no_nonce", "-issuer", folder / "ca.pem", "-cert", folder / "tsa.pem")
    ocsp("-reqout", folder / "asked.ocsp", *about)
    headers = {"Content-Type": "application/ocsp-request"}
    content = (folder / "asked.ocsp").read_bytes()
    answered = client.post("/pki/ocsp", content=content, headers=headers)
    (folder / "answered.ocsp").write_bytes(answered.content)
    respin = ("-respin", folder / "answered.ocsp", "-CAfile", folder / "root.pem")
    return ocsp(*respin, *about)


def ocsp(*words: str | Path) -> str:
    """What `openssl ocsp` says."""
    done = subprocess.run(
        ["openssl", "ocsp", *words], capture_output=True, text=True, check=True
    )
    return done.stdout

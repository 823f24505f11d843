"""Power: a certificate signing request on a key of the attacker is handed to a signer.

The request of a task stands in the record until its signer fetches it. An outside CA
that is sent another one certifies the attacker's key in the signer's name.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from appliance.database.engines import open_engines
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem
from tests.support.processes.event_loops import run_apart

_TRIGGER = """
CREATE TRIGGER attack AFTER UPDATE ON hsm_task
WHEN NEW.kind = 'csr' AND NEW.state = 'done' AND NEW.output <> '{output}'
BEGIN UPDATE hsm_task SET output = '{output}' WHERE id = NEW.id; END
"""
"""At once, so that nobody reads what the worker wrote."""


@pytest.fixture(scope="module")
def signer(sqlite_appliance: Appliance) -> TestPerson:
    """Somebody who asks an outside CA for a certificate."""
    return sqlite_appliance.new_person("Eva Sosa")


def alter(appliance: Appliance, statement: str) -> None:
    """Run SQL behind everybody's back."""

    async def run() -> None:
        engines = open_engines(appliance.settings)
        try:
            async with engines.writing() as connection:
                await connection.exec_driver_sql(statement)
        finally:
            await engines.dispose()

    run_apart(run())


@contextmanager
def answering(appliance: Appliance, csr: str) -> Iterator[None]:
    """Have each task for a signing request end with this one."""
    alter(appliance, _TRIGGER.format(output=json.dumps({"csr": csr})))
    try:
        yield
    finally:
        alter(appliance, "DROP TRIGGER attack")


def request_on_a_new_key(cuil: str, name: str) -> str:
    """A request that names somebody, on a key that is not theirs."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, f"CUIL {cuil}"),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(Encoding.PEM).decode()


def asked(signer: TestPerson, client: httpx.Client) -> httpx.Response:
    """Ask for a signing request."""
    (credential,) = client.get("/credenciales").json()
    body = {"password": signer.signing_password}
    return client.post(f"/credenciales/{credential['id']}/csr", json=body)


def test_request_on_another_key_is_not_handed_out(
    sqlite_appliance: Appliance, signer: TestPerson
) -> None:
    """It names the signer and is well signed, by another key."""
    forged = request_on_a_new_key(signer.cuil, "Eva Sosa")

    with sqlite_appliance.client(signer) as client:
        with answering(sqlite_appliance, forged):
            refused = asked(signer, client)
        honest = asked(signer, client)

    problem(refused, 503, "TASK_FAILED")
    assert honest.status_code == httpx.codes.OK


def test_what_is_no_request_is_not_handed_out(
    sqlite_appliance: Appliance, signer: TestPerson
) -> None:
    """Nor one with a byte changed, under the signature of before."""
    with sqlite_appliance.client(signer) as client:
        own = asked(signer, client).text
        lines = own.splitlines()
        lines[1] = lines[1][:20] + ("A" if lines[1][20] != "A" else "B") + lines[1][21:]
        for altered in ("\n".join(lines), "-----BEGIN CERTIFICATE REQUEST-----", ""):
            with answering(sqlite_appliance, altered):
                problem(asked(signer, client), 503, "TASK_FAILED")

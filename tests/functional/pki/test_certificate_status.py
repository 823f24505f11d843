"""Chain, CRL and OCSP as OpenSSL and pyHanko see them, and what revoking does.

Source: design §6; RFC 5280; RFC 6960; RFC 5019.
"""

import base64
import io
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from asn1crypto import crl as asn1_crl
from asn1crypto import ocsp as asn1_ocsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import async_validate_pdf_signature
from pyhanko_certvalidator import ValidationContext
from sqlalchemy import select

from appliance.bootstrap import ServiceRegistry
from appliance.database.tables import certificate
from appliance.domain.pki.certificates import CertificateView
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.vocab import (
    CertificateState,
    CredentialState,
    RevocationReason,
    SignatureLevel,
)
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from appliance.pki.revocation_store import RevocationStore
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import problem
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import newest, order_crash, until
from tests.support.processes.event_loops import run_apart
from worker.failpoints import REVOCATION_SIGNED, REVOCATION_STORED

REQUEST = "application/ocsp-request"


@dataclass(frozen=True, slots=True)
class Checker:
    """Somebody who has the root and checks a signer's certificate."""

    appliance: Appliance
    person: TestPerson
    folder: Path
    http: httpx.Client

    @property
    def view(self) -> CertificateView:
        """The person's newest certificate, as operators see it."""

        async def find(front: ServiceRegistry) -> CertificateView:
            views = await front.certificates.list(100)
            return next(view for view in views if view.person == self.person.id)

        return self.appliance.do(find)

    @property
    def serial(self) -> str:
        """Its serial number."""
        return self.view.certificate.serial

    def write(self, name: str, content: bytes) -> Path:
        """A file of the checker's."""
        path = self.folder / name
        path.write_bytes(content)
        return path

    def files(self) -> tuple[Path, Path, Path]:
        """Root, CA (both as published) and signer, PEM."""
        certificates = (
            self.http.get("/pki/root.cer").content,
            self.http.get("/pki/ca.cer").content,
            self.view.certificate.der,
        )
        names = ("root.pem", "ca.pem", "signer.pem")
        pems = [
            x509.load_der_x509_certificate(one).public_bytes(Encoding.PEM)
            for one in certificates
        ]
        root, ca, signer = map(self.write, names, pems)
        return root, ca, signer

    def crls(self) -> Path:
        """Both CRLs, PEM."""
        return self.write(
            "crls.pem",
            b"".join(
                x509.load_der_x509_crl(
                    self.http.get(f"/pki/{name}.crl").content
                ).public_bytes(Encoding.PEM)
                for name in ("root", "ca")
            ),
        )

    def ask(self, method: str = "POST") -> tuple[str, httpx.Response]:
        """Have OpenSSL make a question, and judge the answer to it."""
        root, ca, signer = self.files()
        asked = self.folder / "asked.der"
        trusted = ("-CAfile", root, "-issuer", ca, "-cert", signer)
        openssl("ocsp", "-no_nonce", "-issuer", ca, "-cert", signer, "-reqout", asked)
        answer = ask(self.http, asked.read_bytes(), method)
        assert answer.status_code == 200
        answered = self.write("answered.der", answer.content)
        said = openssl("ocsp", *trusted, "-respin", answered, "-no_nonce")
        assert "Response verify OK" in said
        return said, answer

    def revoke(self, reason: str = "keyCompromise") -> str:
        """What `rubrica certificate revoke` says."""
        command = ("certificate", "revoke", self.serial, "--reason", reason)
        done = self.appliance.rubrica(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def verify(self, answer: httpx.Response) -> tuple[int, str]:
        """Exit status and output of `rubrica verify` on a signed document."""
        link = answer.json()["documentoFirmado"]
        file = self.write("signed.pdf", self.http.get(link).content)
        done = self.appliance.rubrica("verify", str(file))
        return done.returncode, done.stdout

    def sign(self, wishes: ProfileWishes = NO_WISHES) -> tuple[int, httpx.Response]:
        """Try to sign a document."""
        request = self.appliance.new_request(
            self.person, pdfs.one_page(), wishes=wishes
        )
        with self.appliance.client(self.person) as client:
            answer = client.post(
                "/solicitudes/firmar",
                json={
                    "solicitudId": request,
                    "password": self.person.signing_password,
                },
            )
        return request, answer


def openssl(*words: str | Path) -> str:
    """What openssl says; it must end well."""
    done = subprocess.run(
        ["openssl", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def ask(http: httpx.Client, asked: bytes, method: str = "POST") -> httpx.Response:
    """Put an OCSP question."""
    if method == "POST":
        headers = {"Content-Type": REQUEST}
        return http.post("/pki/ocsp", content=asked, headers=headers)
    return http.get(f"/pki/ocsp/{quote(base64.b64encode(asked), safe='')}")


@pytest.fixture(
    params=[
        "sqlite_appliance",
        pytest.param("postgres_appliance", marks=pytest.mark.long),
    ]
)
def checker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checker]:
    """A checker of a new person's certificate, on each database."""
    appliance: Appliance = request.getfixturevalue(request.param)
    with appliance.client() as http:
        yield Checker(appliance, appliance.new_person(), tmp_path, http)


def test_openssl_verifies_chain_and_crls(checker: Checker) -> None:
    """Strictly, with the policy and both CRLs, from the root alone."""
    root, ca, signer = checker.files()
    crls = checker.crls()

    openssl(
        *("verify", "-x509_strict", "-policy_check", "-purpose", "smimesign"),
        *("-crl_check_all", "-CRLfile", crls),
        *("-CAfile", root, "-untrusted", ca, signer),
    )
    for name, issuer in (("root", root), ("ca", ca)):
        der = checker.write("list.crl", checker.http.get(f"/pki/{name}.crl").content)
        said = openssl(
            *("crl", "-inform", "DER", "-in", der, "-CAfile", issuer),
            *("-noout", "-text", "-verify"),
        )
        assert "verify OK" in said
        assert "Version 2" in said
        assert "X509v3 CRL Number" in said
        assert "X509v3 Authority Key Identifier" in said


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_openssl_takes_the_ocsp_answer(checker: Checker, method: str) -> None:
    """Good, signed by the delegated responder, the same bytes to everybody."""
    said, answer = checker.ask(method)
    _, again = checker.ask(method)

    assert "signer.pem: good" in said
    assert answer.headers["Content-Type"] == "application/ocsp-response"
    assert again.content == answer.content
    told = ocsp.load_der_ocsp_response(answer.content)
    assert told.next_update_utc is not None
    assert told.produced_at_utc.microsecond == told.this_update_utc.microsecond == 0
    (responder,) = told.certificates
    usages = responder.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [usage._name for usage in usages] == ["OCSPSigning"]


def test_caches_may_keep_answers(checker: Checker) -> None:
    """Validators and times of RFC 5019; a repeated look is a 304."""
    _, answer = checker.ask("GET")

    for path in (answer.url.raw_path.decode(), "/pki/ca.crl", "/pki/root.crl"):
        first = checker.http.get(path)
        tag = first.headers["ETag"]
        again = checker.http.get(path, headers={"If-None-Match": tag})

        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
        assert again.headers["ETag"] == tag
        assert {"last-modified", "expires"} <= set(first.headers)
        caching = first.headers["Cache-Control"].split(", ")
        assert {"public", "no-transform", "must-revalidate"} < set(caching)
        assert 0 < int(caching[0].removeprefix("max-age=")) <= 3600


@pytest.mark.parametrize(
    ("level", "status", "words"),
    [
        (SignatureLevel.B_B, 3, "no trusted timestamp proves that the signature is"),
        (SignatureLevel.B_LT, 0, "VALID"),
    ],
)
def test_revocation_counts_by_the_proven_time(
    checker: Checker, level: SignatureLevel, status: int, words: str
) -> None:
    """A timestamp saves what was signed before; without one nothing can be said."""
    _, answer = checker.sign(ProfileWishes(level=level))
    signed_by = int(time.time())
    assert checker.verify(answer)[0] == 0

    # Revocations have whole seconds: within that of the signature it would come first.
    until(lambda: int(time.time()) > signed_by)
    checker.revoke()

    found = checker.verify(answer)
    assert found[0] == status
    assert words in found[1]


def test_revoked_certificate_is_told_and_signs_no_more(checker: Checker) -> None:
    """CRL and OCSP say since when and why; firmar refuses before the password."""
    assert checker.sign()[1].status_code == 200
    checker.ask()

    said = checker.revoke()

    assert "CRL number" in said
    told, _ = checker.ask()
    assert "signer.pem: revoked" in told
    assert "Reason: keyCompromise" in told
    root, ca, signer = checker.files()
    refused = subprocess.run(
        [
            *("openssl", "verify", "-crl_check_all", "-CRLfile", checker.crls()),
            *("-CAfile", root, "-untrusted", ca, signer),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "certificate revoked" in refused.stderr
    request, answer = checker.sign()
    problem(answer, 409, "CERTIFICATE_NOT_USABLE")
    with checker.appliance.client(checker.person) as client:
        wrong = {"solicitudId": request, "password": "not the password"}
        answer = client.post("/solicitudes/firmar", json=wrong)
    problem(answer, 409, "CERTIFICATE_NOT_USABLE")
    shown = checker.appliance.rubrica("certificate", "show", checker.serial)
    assert "keyCompromise" in shown.stdout
    again = checker.appliance.rubrica(
        *("certificate", "revoke", checker.serial),
        *("--reason", "superseded"),
    )
    assert again.returncode != 0
    assert "CERTIFICATE_STATE" in again.stderr


@pytest.mark.parametrize("point", [REVOCATION_SIGNED, REVOCATION_STORED])
def test_worker_killed_while_revoking_leaves_all_or_nothing(
    checker: Checker, point: str
) -> None:
    """Refused from the asking on; told by CRL and OCSP together, after a restart."""
    checker.ask()
    serial = checker.serial
    order = order_crash(checker.appliance, point)
    seen: list[bool] = []

    async def revoke(front: ServiceRegistry) -> None:
        reason = RevocationReason.SUPERSEDED
        await front.revocations.ask(serial, reason, "operator")

    checker.appliance.do(revoke)
    problem(checker.sign()[1], 409, "CERTIFICATE_NOT_USABLE")
    until(lambda: whole(checker, seen))

    assert not order.exists()
    assert seen == [True] * len(seen)
    assert (
        read_ledger(checker.appliance, after=newest(checker.appliance)).faults() == []
    )
    assert "signer.pem: revoked" in checker.ask()[0]


def whole(checker: Checker, seen: list[bool]) -> bool:
    """Look at everything at once, note whether it agrees; whether all is done."""
    serial = checker.serial

    async def look(front: ServiceRegistry) -> list[bool]:
        # Locked, so that the commit falls before or after this look.
        async with front.core.store.write() as transaction:
            await transaction.connection.execute(
                select(certificate.c.serial)
                .where(certificate.c.serial == serial)
                .with_for_update()
            )
            view = await CertificateStore(transaction).view(serial)
            assert view is not None
            answer = await PublicationStore(transaction).answer(serial)
            entries = await RevocationStore(transaction).revoked(
                view.certificate.issuer
            )
            crl = await PublicationStore(transaction).crl(view.certificate.issuer)
        assert crl is not None
        listed = x509.load_der_x509_crl(crl.der)
        return [
            view.certificate.state is CertificateState.REVOKED,
            view.credential_state is CredentialState.REVOKED,
            answer is not None and answer.state is CertificateState.REVOKED,
            serial in {entry.serial for entry in entries},
            listed.get_revoked_certificate_by_serial_number(int(serial, 16))
            is not None,
        ]

    facts = checker.appliance.do(look)
    seen.append(len(set(facts)) == 1)
    return all(facts)


def test_pyhanko_validates_a_document_with_what_is_published(checker: Checker) -> None:
    """From the root alone, no certificate's status left unknown."""
    request, answer = checker.sign()
    assert answer.status_code == 200, answer.text
    with checker.appliance.client(checker.person) as client:
        pdf = client.get(f"/solicitudes/{request}/documento").content
    _, answered = checker.ask()

    good = judge(checker, pdf, answered.content)
    checker.revoke()
    _, answered = checker.ask()

    assert good
    assert not judge(checker, pdf, answered.content)


def judge(checker: Checker, pdf: bytes, answered: bytes) -> bool:
    """What pyHanko says of a document, its revocation checks compulsory."""
    http = checker.http
    context = ValidationContext(
        trust_roots=[asn1_x509.Certificate.load(http.get("/pki/root.cer").content)],
        crls=[
            asn1_crl.CertificateList.load(http.get(f"/pki/{name}.crl").content)
            for name in ("root", "ca")
        ],
        ocsps=[asn1_ocsp.OCSPResponse.load(answered)],
        revocation_mode="hard-fail",
        allow_fetching=False,
    )
    (signature,) = PdfFileReader(io.BytesIO(pdf)).embedded_regular_signatures
    status = run_apart(async_validate_pdf_signature(signature, context))
    return bool(status.bottom_line)

"""What strangers may ask under /pki, with nobody there who signs."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asn1crypto import ocsp as asn1
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import ocsp
from cryptography.x509.ocsp import OCSPResponseStatus as Status
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appliance.domain.ids import CredentialId, TaskId, new_id
from appliance.domain.pki.certificates import CertificateRecord, Crl, OcspAnswer
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    RevocationReason,
    TaskKind,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.ca_certificates import read_authority
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from appliance.pki.revocation_store import RevocationStore
from tests.support.installation.api import ApiServices, create_api
from tests.support.installation.installation import Installation
from tests.support.installation.record import new_credential
from tests.support.processes.event_loops import run_apart

_POINT = PublicFormat.UncompressedPoint
KEY = ec.generate_private_key(ec.SECP256R1())
DAY = timedelta(days=1)
OCSP_TYPE = "application/ocsp-request"


def _certificate(name: str, key: ec.EllipticCurvePrivateKey = KEY) -> x509.Certificate:
    """Self-signed, good for a year around now."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(tz=UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + 365 * DAY)
        .sign(key, hashes.SHA256())
    )


ROOT, CA = _certificate("root"), _certificate("ca")


@dataclass(frozen=True, slots=True)
class PkiAddresses:
    """The addresses under /pki, and what lies behind them."""

    parts: ApiServices
    client: Any
    issuer: str

    async def ask(self, asked: bytes) -> Status:
        """POST a question; the answer's status."""
        headers = {"Content-Type": OCSP_TYPE}
        response = await self.client.post("/pki/ocsp", data=asked, headers=headers)
        return await self.status(response)

    async def ask_by_address(self, asked: bytes) -> Status:
        """The same by GET."""
        encoded = base64.b64encode(asked).decode().replace("/", "%2F")
        return await self.status(await self.client.get(f"/pki/ocsp/{encoded}"))

    @staticmethod
    async def status(response: Any) -> Status:
        """What an answer says of itself."""
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "application/ocsp-response"
        told = await response.get_data()
        return ocsp.load_der_ocsp_response(told).response_status

    async def add(
        self,
        serial: int,
        *,
        days: float = 365,
        state: CertificateState = CertificateState.VALID,
    ) -> None:
        """A certificate of somebody's."""
        person, _ = await self.parts.add_person()
        now = self.parts.clock.now()
        credential = CredentialId(new_id())
        async with self.parts.store.write() as transaction:
            await CredentialStore(transaction).add(
                new_credential(person, id=credential, certificate=b"x", chain=())
            )
            await CertificateStore(transaction).add(
                CertificateRecord(
                    serial=f"{serial:x}",
                    kind=CertificateKind.SIGNER,
                    issuer=self.issuer,
                    credential=credential,
                    der=b"x",
                    not_before=now - DAY,
                    not_after=now + days * DAY,
                )
            )
            if state is CertificateState.REVOKING:
                why = RevocationReason.UNSPECIFIED
                await RevocationStore(transaction).begin(
                    credential, now, why, TaskId(new_id())
                )

    async def store_answer(self, serial: int, der: bytes) -> None:
        """An answer that is good for a day."""
        now = self.parts.clock.now()
        answer = OcspAnswer(f"{serial:x}", CertificateState.VALID, der, now, now + DAY)
        async with self.parts.store.write() as transaction:
            assert await PublicationStore(transaction).put_answer(answer)

    async def tasks(self) -> bool:
        """Whether anything was asked of the HSM."""
        async with self.parts.store.read() as transaction:
            return await HsmTaskStore(transaction).any_open(TaskKind.PUBLISH)


@pytest.fixture
async def pki_addresses(tmp_path: Path) -> AsyncIterator[PkiAddresses]:
    """A desk whose CA is there, and no worker."""
    folder = tmp_path / "pki"
    folder.mkdir()
    for name, certificate in (("root", ROOT), ("ca", CA)):
        pem = certificate.public_bytes(Encoding.PEM)
        (folder / f"{name}.pem").write_bytes(pem)
    async with Installation(
        tmp_path, pki={"requests_per_minute_address": 500}
    ).api() as api_services:
        issuer = read_authority(api_services.settings).ca_id
        yield PkiAddresses(api_services, create_api(api_services).test_client(), issuer)


def question(
    serial: int = 7, ca: x509.Certificate = CA, **changes: hashes.HashAlgorithm
) -> bytes:
    """An OCSP request."""
    algorithm = changes.get("algorithm", hashes.SHA1())  # noqa: S303 (RFC 5019)
    name = hashes.Hash(algorithm)
    name.update(ca.subject.public_bytes())
    key = hashes.Hash(algorithm)
    key.update(ca.public_key().public_bytes(Encoding.X962, _POINT))
    built = ocsp.OCSPRequestBuilder().add_certificate_by_hash(
        name.finalize(), key.finalize(), serial, algorithm
    )
    return built.build().public_bytes(Encoding.DER)


async def test_unknown_is_unauthorized_and_makes_no_work(
    pki_addresses: PkiAddresses,
) -> None:
    """Unknown serial, another CA, another hash, the responder's own, one that ended."""
    await pki_addresses.add(9, days=-0.5)
    async with pki_addresses.parts.store.write() as transaction:
        now = pki_addresses.parts.clock.now()
        own = CertificateRecord(
            serial="8",
            kind=CertificateKind.OCSP,
            issuer=pki_addresses.issuer,
            credential=None,
            der=b"x",
            not_before=now,
            not_after=now + DAY,
        )
        await CertificateStore(transaction).add(own)
    other = _certificate("ca", ec.generate_private_key(ec.SECP256R1()))

    told = {
        await pki_addresses.ask(asked)
        for asked in (
            question(),
            question(2**159),
            question(8),
            question(9),
            question(ca=other),
            question(ca=ROOT),
            question(algorithm=hashes.SHA256()),
        )
    }

    assert told == {Status.UNAUTHORIZED}
    assert not await pki_addresses.tasks()


async def test_known_without_answer_asks_for_one_and_says_later(
    pki_addresses: PkiAddresses,
) -> None:
    """However often it is asked: one task."""
    await pki_addresses.add(7)

    told = [await pki_addresses.ask(question()) for _ in range(3)]
    told.append(await pki_addresses.ask_by_address(question()))

    assert told == [Status.TRY_LATER] * 4
    async with pki_addresses.parts.store.write() as transaction:
        now = pki_addresses.parts.clock.now()
        first = await HsmTaskStore(transaction).claim_next(
            "w", "h", now, DAY, 5, list(TaskKind)
        )
        second = await HsmTaskStore(transaction).claim_next(
            "w", "h", now, DAY, 5, list(TaskKind)
        )
    assert first is not None
    assert first.kind is TaskKind.PUBLISH
    assert second is None


async def test_known_that_is_being_revoked_waits_for_the_revocation(
    pki_addresses: PkiAddresses,
) -> None:
    """Nothing else is asked of the HSM."""
    await pki_addresses.add(7, state=CertificateState.REVOKING)

    assert await pki_addresses.ask(question()) is Status.TRY_LATER
    assert not await pki_addresses.tasks()


async def test_stored_answer_is_given_until_its_end(
    pki_addresses: PkiAddresses,
) -> None:
    """To the byte, and not a second longer."""
    await pki_addresses.add(7)
    stored = asn1.OCSPResponse({"response_status": "internal_error"}).dump()
    await pki_addresses.store_answer(7, stored)

    assert await pki_addresses.ask(question()) is Status.INTERNAL_ERROR
    assert await pki_addresses.ask_by_address(question()) is Status.INTERNAL_ERROR
    pki_addresses.parts.clock.forward(86_400)
    assert await pki_addresses.ask(question()) is Status.TRY_LATER


async def test_request_of_two_certificates_is_malformed(
    pki_addresses: PkiAddresses,
) -> None:
    """The profile has one a question."""
    asked = asn1.OCSPRequest.load(question())
    one = asked["tbs_request"]["request_list"][0]
    tbs = {"request_list": [one, one.copy()]}
    two = asn1.OCSPRequest({"tbs_request": tbs}).dump()

    assert await pki_addresses.ask(two) is Status.MALFORMED_REQUEST


async def test_nonce_is_passed_over(pki_addresses: PkiAddresses) -> None:
    """A question with one has the answer that everybody has."""
    await pki_addresses.add(7)
    await pki_addresses.store_answer(7, b"\x30\x03\x0a\x01\x02")
    asked = (
        ocsp.OCSPRequestBuilder()
        .add_certificate(CA, CA, hashes.SHA1())  # noqa: S303 (RFC 5019)
        .add_extension(x509.OCSPNonce(b"n" * 16), critical=False)
        .build()
        .public_bytes(Encoding.DER)
    )

    assert await pki_addresses.ask(asked) is Status.UNAUTHORIZED


@pytest.mark.parametrize(
    "path", ["MA", "MAA%3D%3D", "M//A", "-_-_", "MA" * 3000, "%C3%B1"]
)
async def test_address_that_is_no_question_is_malformed(
    pki_addresses: PkiAddresses, path: str
) -> None:
    """Base64 of nothing, of no OCSP, too much of it, no Base64."""
    response = await pki_addresses.client.get(f"/pki/ocsp/{path}")

    assert await pki_addresses.status(response) is Status.MALFORMED_REQUEST
    assert response.headers["Cache-Control"] == "no-store"


async def test_body_of_another_kind_or_size_is_refused(
    pki_addresses: PkiAddresses,
) -> None:
    """415 and 413, in our shape."""
    asked = question()

    plain = await pki_addresses.client.post("/pki/ocsp", data=asked)
    headers = {"Content-Type": OCSP_TYPE}
    large = await pki_addresses.client.post(
        "/pki/ocsp", data=b"0" * 4097, headers=headers
    )

    assert (plain.status_code, large.status_code) == (415, 413)


async def test_crl_is_served_once_there_is_one(pki_addresses: PkiAddresses) -> None:
    """503 before; the bytes of the record after."""
    before = await pki_addresses.client.get("/pki/ca.crl")
    now = pki_addresses.parts.clock.now()
    async with pki_addresses.parts.store.write() as transaction:
        await PublicationStore(transaction).put_crl(
            Crl(pki_addresses.issuer, 1, b"list", now, now + DAY)
        )

    after = await pki_addresses.client.get("/pki/ca.crl")
    root = await pki_addresses.client.get("/pki/root.cer")

    assert before.status_code == 503
    assert (await before.get_json())["code"] == "HSM_UNAVAILABLE"
    assert await pki_addresses.tasks()
    assert (after.status_code, await after.get_data()) == (200, b"list")
    assert after.headers["Content-Type"] == "application/pkix-crl"
    assert await root.get_data() == ROOT.public_bytes(Encoding.DER)


async def test_file_has_the_name_that_every_client_knows(
    pki_addresses: PkiAddresses,
) -> None:
    """Where Accept names it, which caches are told; a question may come so, too."""
    octets = {"Accept": "application/octet-stream"}

    plain = await pki_addresses.client.get("/pki/root.cer")
    asked = await pki_addresses.client.get("/pki/root.cer", headers=octets)
    both = await pki_addresses.client.get(
        "/pki/root.cer", headers={"Accept": "application/octet-stream;q=0.5, */*"}
    )
    of_one = await pki_addresses.client.get(
        "/pki/root.cer",
        headers={"Accept": "application/pkix-cert, application/octet-stream;q=0.9"},
    )
    keys = await pki_addresses.client.get("/.well-known/jwks.json", headers=octets)
    question_in_octets = await pki_addresses.client.post(
        "/pki/ocsp",
        data=question(),
        headers={"Content-Type": "application/octet-stream"},
    )

    types = [each.headers["Content-Type"] for each in (plain, asked, both, of_one)]
    assert types == [
        "application/pkix-cert",
        "application/octet-stream",
        "application/octet-stream",
        "application/pkix-cert",
    ]
    assert await asked.get_data() == await plain.get_data()
    assert {each.headers["Vary"] for each in (plain, asked)} == {"Accept"}
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert await pki_addresses.status(question_in_octets) is Status.UNAUTHORIZED


async def test_address_that_asks_too_much_is_told_to_wait(
    pki_addresses: PkiAddresses,
) -> None:
    """Until its minute is over."""
    for _ in range(500):
        assert (await pki_addresses.client.get("/pki/ca.cer")).status_code == 200

    refused = await pki_addresses.client.get("/pki/ca.cer")
    pki_addresses.parts.clock.forward(60)
    after = await pki_addresses.client.get("/pki/ca.cer")

    assert (refused.status_code, after.status_code) == (429, 200)
    assert 0 < int(refused.headers["Retry-After"]) <= 60


async def test_nothing_is_there_before_the_ca_is(tmp_path: Path) -> None:
    """404, and OCSP knows of no certificate."""
    async with Installation(tmp_path).api() as api_services:
        client = create_api(api_services).test_client()
        headers = {"Content-Type": OCSP_TYPE}

        answers = [
            await client.get(f"/pki/{name}")
            for name in ("root.cer", "ca.cer", "root.crl", "ca.crl")
        ]
        asked = await client.post("/pki/ocsp", data=question(), headers=headers)

        assert [answer.status_code for answer in answers] == [404] * 4
        assert await PkiAddresses.status(asked) is Status.UNAUTHORIZED


GOOD = question()


@st.composite
def harmed(draw: st.DrawFn) -> bytes:
    """A question with some bytes changed, lost or added."""
    asked = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(asked) - 1))
        asked[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=4))
    return bytes(asked) or b"0"


def test_no_question_breaks_the_desk(tmp_path: Path) -> None:
    """Anything gets an OCSP answer; nothing makes the HSM work."""
    folder = tmp_path / "pki"
    folder.mkdir()
    for name, certificate in (("root", ROOT), ("ca", CA)):
        pem = certificate.public_bytes(Encoding.PEM)
        (folder / f"{name}.pem").write_bytes(pem)

    async def fuzz() -> None:
        limit = {"requests_per_minute_address": 1_000_000}
        async with Installation(tmp_path, pki=limit).api() as api_services:
            services = PkiAddresses(
                api_services, create_api(api_services).test_client(), ""
            )
            for asked in collected:
                told = {await services.ask(asked)}
                # No question begins so, and an address has no empty part there.
                if not base64.b64encode(asked).startswith(b"/"):
                    told.add(await services.ask_by_address(asked))
                assert len(told) == 1
                assert told <= {Status.MALFORMED_REQUEST, Status.UNAUTHORIZED}
            assert not await services.tasks()

    collected: list[bytes] = []

    @settings(max_examples=300, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(harmed(), st.binary(min_size=1, max_size=200)))
    def collect(asked: bytes) -> None:
        collected.append(asked)

    collect()
    run_apart(fuzz())
    assert len(collected) >= 300

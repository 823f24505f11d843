"""Power: code in a signing worker, with both tokens, the document key and its own rows.

It needs nobody's password for what it opens meanwhile, and the CA signs what it wants.
What it cannot is open a key that nobody's password opened.

Statements of the database are those that its own user of PostgreSQL may run:
`test_publication.py`.

Source: docs/keys.md "What is not claimed".
"""

import hashlib
import io
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigFieldSpec, SigSeedSubFilter

from appliance.bootstrap import ServiceRegistry
from appliance.database.engines import open_engines
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ActivationInvalidError
from appliance.domain.ids import RequestId
from appliance.domain.keys.hsm_keys import SignatureScheme
from appliance.domain.vocab import EventKind, VouchedBy
from appliance.keys.key_encryption import open_outer, signing_key
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, normalize
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database
from appliance.secrets.key_files import read_key_ring
from hsm_config.profile import load_profile
from hsm_config.provisioning.ca_certificates import read_ca
from tests.functional.powers.test_operator_attacks import put
from tests.functional.powers.test_signature_page import (
    REFUTED,
    SIGNED,
    forged,
    look,
    signed_with_code,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import pyhanko_valid
from tests.support.pki.outside_ca import spki_of
from tests.support.processes.event_loops import run_apart
from worker.hsm.session import HsmSession
from worker.pki.certificate_authority import Authority, CertificateSubject

Result = TypeVar("Result")
SLOT: Final = "signing/h/1"


@pytest.fixture(scope="module", params=["sqlite_appliance", "postgres_appliance"])
def appliance(request: pytest.FixtureRequest) -> Appliance:
    """An appliance on each database."""
    found: Appliance = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs."""
    return appliance.new_person("Ana Ruiz")


def in_worker(
    appliance: Appliance, work: Callable[[HsmSession], Awaitable[Result]]
) -> Result:
    """Do something with the worker's session of both tokens."""
    hsm = appliance.settings.hsm

    async def opened() -> Result:
        async with HsmSession(hsm, load_profile(hsm.profile)) as session:
            return await work(session)

    return run_apart(opened())


def opened_unlock(appliance: Appliance, person: TestPerson) -> bytes:
    """The unlock key that a seal of the person's has: `test_theft.py` opens one."""
    pepper = read_key_ring(appliance.settings.secrets.pepper_file)
    credential = appliance.credential(person)

    async def read(front: ServiceRegistry) -> bytes:
        async with front.core.store.read() as transaction:
            secret = await PersonStore(transaction).signing_secret(person.id)
        assert secret is not None
        passwords = SigningPasswords(pepper, HashSlots())
        typed = normalize(person.signing_password)
        return (await passwords.check(typed, secret, [credential.id])).unlock[
            credential.id
        ]

    return appliance.do(read)


# -- sign, key, swap, batch, twice ---------------------------------------------------


def test_opened_key_signs_what_the_code_wants(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Another document, one more, one twice: as long as it holds the unlock key."""
    credential = appliance.credential(victim)
    unlock = opened_unlock(appliance, victim)
    aad = credential.aad(appliance.settings.installation)
    key = signing_key(credential, open_outer(unlock, credential.outer, aad))
    wanted = [hashlib.sha256(text).digest() for text in (b"swap", b"more", b"more")]

    async def sign(session: HsmSession) -> list[bytes]:
        return [
            await session.sign(key, digest, SignatureScheme.RSA_PKCS1)
            for digest in wanted
        ]

    public = x509.load_der_x509_certificate(credential.certificate).public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    for digest, value in zip(wanted, in_worker(appliance, sign), strict=True):
        public.verify(value, digest, padding.PKCS1v15(), utils.Prehashed(SHA256()))


def test_key_that_nobody_opened_stays_closed(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Another's unlock key opens it no more than none does."""
    closed = appliance.credential(appliance.new_person("Luis Paz"))
    aad = closed.aad(appliance.settings.installation)
    for unlock in (
        opened_unlock(appliance, victim),
        bytes(32),
        secrets.token_bytes(32),
    ):
        with pytest.raises(ActivationInvalidError) as caught:
            open_outer(unlock, closed.outer, aad)
        assert caught.value.layer == "outer"


# -- certify, version, page ----------------------------------------------------------


def certified(appliance: Appliance, person: TestPerson) -> SoftwareSigner:
    """A key of the code's own, that the CA certifies in somebody's name."""
    settings, own = appliance.settings, rsa.generate_private_key(65537, 2048)
    subject = CertificateSubject("Ana Ruiz", person.cuil, VouchedBy.DEMO)

    async def issue(session: HsmSession) -> tuple[bytes, tuple[bytes, ...]]:
        authority = Authority(session, read_ca(settings), settings)
        made = await authority.issue(subject, spki_of(own), datetime.now(UTC))
        return made.certificate, tuple(made.chain)

    certificate, chain = in_worker(appliance, issue)
    return SoftwareSigner(own, certificate, (*chain, *appliance.roots))


def signature_of(
    pdf: bytes, signer: SoftwareSigner, field: str, address: str = ""
) -> bytes:
    """The document with a signature by that key, in a field that names a code."""
    metadata = PdfSignatureMetadata(
        field_name=field, md_algorithm="sha256", subfilter=SigSeedSubFilter.PADES
    )
    spec = SigFieldSpec(field, readable_field_name=address or None)
    made = PdfSigner(metadata, signer=signer.stock(), new_field_spec=spec)
    writer, out = IncrementalPdfFileWriter(io.BytesIO(pdf)), io.BytesIO()
    run_apart(made.async_sign_pdf(writer, output=out))
    return out.getvalue()


def test_ca_certifies_any_key_in_anybodys_name(
    appliance: Appliance, victim: TestPerson
) -> None:
    """What is signed with it is valid by the installation's root."""
    signer = certified(appliance, victim)

    pdf = signature_of(pdfs.one_page(), signer, "Firma-1")

    assert pyhanko_valid(pdf, appliance.roots)


def test_signed_document_is_replaced_by_one_of_that_key(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Another text, the victim's name, the code of her signature: it is served."""
    with appliance.client(victim) as client:
        request, code, _ = signed_with_code(appliance, victim, client)
        before = look(appliance, code)
        honest = appliance.rubrica("audit", "verify")
        false = signature_of(
            pdfs.one_page("Otro importe"),
            certified(appliance, victim),
            f"Firma-{request}",
            f"{appliance.base_url}/verificar/{code}",
        )
        put(appliance, request, false)
        record(appliance, request, false)
        served = client.get(f"/solicitudes/{request}/documento").content

    assert SIGNED in before
    assert honest.returncode == 0, honest.stdout
    assert served == false
    # Its own chain explains it; that it is no continuation of the first one does not.
    assert appliance.rubrica("audit", "verify").returncode == 0
    assert REFUTED in look(appliance, code)


def test_signature_that_nobody_consented_to_is_told(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The page goes by the file, which the CA's key vouches for; the audit does not.

    On PostgreSQL the worker's user may not even insert the activation.
    """
    with appliance.client(victim) as client:
        signed, _, _ = signed_with_code(appliance, victim, client)
    request = appliance.new_request(victim, pdfs.one_page("Otro importe"))
    false = signature_of(
        pdfs.one_page("Otro importe"), certified(appliance, victim), f"Firma-{request}"
    )
    put(appliance, request, false)

    with forged(appliance, request, signed, hashlib.sha256(false).hexdigest()) as code:
        page = look(appliance, code)
        found = appliance.rubrica("audit", "reconcile", "--json")

    assert SIGNED in page
    *findings, _ = map(json.loads, found.stdout.splitlines())
    told = {each["check"] for each in findings if each["request"] == request}
    assert {"used_without_consent", "version_unrecorded"} <= told


def record(appliance: Appliance, request: int, pdf: bytes) -> None:
    """Say that the file is a later version, in the worker's own chain of the audit."""
    sha256 = hashlib.sha256(pdf).hexdigest()

    async def write() -> None:
        store = Database(open_engines(appliance.settings), SystemClock(), SLOT)
        try:
            async with store.write() as transaction:
                documents = DocumentStore(transaction)
                view = await documents.signed(RequestId(request))
                assert view is not None
                later = replace(
                    view, version=view.version + 1, sha256=sha256, size_bytes=len(pdf)
                )
                await documents.sealed(later.request, later, datetime.now(UTC))
                transaction.audit.add(
                    AuditEvent(
                        EventKind.DOCUMENT_RAISED,
                        f"worker:{SLOT}",
                        integrator=view.integrator,
                        request=request,
                        detail={
                            "version": later.version,
                            "before": {"sha256": view.sha256, "level": view.level},
                            "after": {"sha256": sha256, "level": view.level},
                        },
                    )
                )
        finally:
            await store.close()

    run_apart(write())

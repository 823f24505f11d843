"""Powers: who writes to the database and has the PIN of one token.

The PIN of `firma` uses resident keys, the master key and the worker identity; it opens
no wrapped key. The PIN of `pki` certifies anything. Each thief has one PIN, opens that
token by PKCS#11, and knows no password.

Source: docs/keys.md "Where the pieces are", "What is not claimed".
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pkcs11
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    load_der_public_key,
    load_pem_public_key,
)
from pkcs11 import Attribute, KeyType, ObjectClass
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigSeedSubFilter

from appliance.database import tables
from appliance.domain.audit.reconciliation import Check
from appliance.domain.keys.hsm_keys import (
    KeyMode,
    KeyReference,
    SignatureScheme,
    TokenRole,
)
from appliance.domain.people.identity import Credential, SigningSecret
from appliance.domain.vocab import EventKind, RequestState
from appliance.keys.key_encryption import open_outer
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords, normalize
from appliance.secrets.key_files import read_key_ring
from hsm_config.pkcs11 import objects, signatures
from hsm_config.pkcs11.master_keys import MasterKeys
from hsm_config.pkcs11.module import (
    PinRefusedError,
    find_token,
    log_in,
    opened,
    token_settings,
)
from hsm_config.pkcs11.pin import Pin, obtain_pin
from hsm_config.pkcs11.wrap_mechanisms import WrapMethods, iv_bytes
from hsm_config.profile import load_profile
from hsm_config.provisioning.ca_certificates import HsmRsaPrivateKey, private_key_of
from tests.functional.powers.test_signature_page import SIGNED, forged, look
from tests.functional.powers.writer_scene import (
    DATABASES,
    appliance_on,
    audited,
    row_of,
    rows_of,
    state_of,
    unexplained,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign, sign_at_last
from tests.support.documents import pdfs
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import pyhanko_valid
from tests.support.faults.altered_rows import altered
from tests.support.faults.fault_injection import held, restarted, until
from tests.support.hsm.hsm_installation import verify
from tests.support.pki.outside_ca import der, ec_key, named, spki_of
from tests.support.processes.event_loops import run_apart
from tests.support.services.postgres import PostgresServer

FIRMA, PKI = TokenRole.FIRMA, TokenRole.PKI
DIGEST: Final = hashlib.sha256(b"of the thief's choice").digest()
_SIGNING: Final = "workers = 1\nwait_s = 0.1"


@pytest.fixture(scope="module", params=DATABASES)
def appliance(
    request: pytest.FixtureRequest, postgres_server: PostgresServer
) -> Iterator[Appliance]:
    """An appliance with one signing worker, whose calls do not wait."""
    with appliance_on(request.param, postgres_server, signing=_SIGNING) as made:
        yield made


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody with a wrapped key."""
    return appliance.new_person("Ana Ruiz")


@pytest.fixture(scope="module")
def resident(appliance: Appliance) -> Credential:
    """A key that stays on the token."""
    with restarted(appliance, hsm='key_mode = "resident"'):
        made = appliance.credential(appliance.new_person("Luis Paz"))
    assert made.key_mode is KeyMode.RESIDENT
    return made


def pin_of(appliance: Appliance, role: TokenRole) -> Pin:
    """The stolen PIN."""
    settings = appliance.settings
    return obtain_pin(token_settings(settings.hsm, role), settings.environment)


@contextmanager
def token(
    appliance: Appliance, role: TokenRole, pin: Pin | None = None
) -> Iterator[pkcs11.Session]:
    """A token, opened with its PIN or another one."""
    hsm = appliance.settings.hsm
    with opened(hsm, load_profile(hsm.profile)) as library:
        label = token_settings(hsm, role).label
        yield log_in(find_token(library, label), pin or pin_of(appliance, role))


@pytest.mark.parametrize("role", TokenRole)
def test_pin_opens_its_own_token_alone(appliance: Appliance, role: TokenRole) -> None:
    """Two PINs are two, for who has the one."""
    other = PKI if role is FIRMA else FIRMA
    with token(appliance, role) as session:
        assert objects.search(session, {})
    with (
        pytest.raises(PinRefusedError),
        token(appliance, other, pin_of(appliance, role)),
    ):
        pass


# -- firma -----------------------------------------------------------------------------


def test_pin_of_firma_signs_with_resident_keys(
    appliance: Appliance, resident: Credential
) -> None:
    """A user's and the worker identity's, without any password."""
    assert resident.cka_id is not None
    with token(appliance, FIRMA) as session:
        private = objects.private_key(session, resident.cka_id)
        value = signatures.sign(private, DIGEST, SignatureScheme.RSA_PKCS1)
        identity = objects.private_key(session, objects.IDENTITY_KEY.cka_id)
        statement = signatures.sign(identity, DIGEST, SignatureScheme.ECDSA)
    verify(resident.spki, value, DIGEST)
    pinned = load_pem_public_key(appliance.settings.worker_identity_file.read_bytes())
    assert isinstance(pinned, ec.EllipticCurvePublicKey)
    pinned.verify(statement, DIGEST, ec.ECDSA(utils.Prehashed(hashes.SHA256())))


def test_pin_of_firma_uses_no_wrapped_key(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The master key gives W in clear; what W wraps is still locked by the password.

    The control: with the unlock key, which follows from password and pepper, the
    private key comes out in clear.
    """
    key = appliance.credential(victim)
    with token(appliance, FIRMA) as session:
        w = unwrapped_w(appliance, session, key)
        aad = key.aad(appliance.settings.installation)
        nonce, rest = key.outer[:12], key.outer[12:]
        for guess in (w, hashlib.sha256(w).digest()):
            with pytest.raises(InvalidTag):
                AESGCM(guess).decrypt(nonce, rest, aad)
        for blob in (key.outer, rest, rest[:-16]):
            with pytest.raises(pkcs11.PKCS11Error):
                private_in_clear(appliance, session, key, w, blob)

        blob_k = open_outer(unlock_of(appliance, victim, key), key.outer, aad)
        exponent = private_in_clear(appliance, session, key, w, blob_k)
    public = load_der_public_key(key.spki)
    assert isinstance(public, rsa.RSAPublicKey)
    numbers = public.public_numbers()
    assert pow(pow(2, exponent, numbers.n), numbers.e, numbers.n) == 2


_READABLE: Final = {Attribute.SENSITIVE: False, Attribute.EXTRACTABLE: True}


def unwrapped_w(
    appliance: Appliance, session: pkcs11.Session, key: Credential
) -> bytes:
    """W of a wrapped key, by a template of the thief's."""
    assert key.master is not None
    assert key.blob_w is not None
    assert key.method_w is not None
    methods = WrapMethods(load_profile(appliance.settings.hsm.profile).keys)
    size = iv_bytes(key.method_w)
    template = {**_READABLE, Attribute.UNWRAP: True}
    master: Any = MasterKeys(session).get(key.master)
    how = methods.parameters(key.method_w, key.blob_w[:size])
    w = master.unwrap_key(
        ObjectClass.SECRET_KEY,
        KeyType.AES,
        key.blob_w[size:],
        template=template,
        **how,
    )
    return bytes(w[Attribute.VALUE])


def private_in_clear(
    appliance: Appliance,
    session: pkcs11.Session,
    key: Credential,
    w: bytes,
    blob: bytes,
) -> int:
    """Private exponent of the key that a blob holds, unwrapped by W.

    Raises:
        PKCS11Error: W does not open it.
    """
    assert key.method_k is not None
    methods = WrapMethods(load_profile(appliance.settings.hsm.profile).keys)
    size = iv_bytes(key.method_k)
    by: Any = session.create_object(
        {
            Attribute.CLASS: ObjectClass.SECRET_KEY,
            Attribute.KEY_TYPE: KeyType.AES,
            Attribute.VALUE: w,
            Attribute.UNWRAP: True,
            Attribute.WRAP: True,
            Attribute.TOKEN: False,
        }
    )
    how = methods.parameters(key.method_k, blob[:size])
    private = by.unwrap_key(
        ObjectClass.PRIVATE_KEY, KeyType.RSA, blob[size:], template=_READABLE, **how
    )
    return int.from_bytes(private[Attribute.PRIVATE_EXPONENT])


def unlock_of(appliance: Appliance, person: TestPerson, key: Credential) -> bytes:
    """The unlock key, by the password and the pepper."""
    row = row_of(appliance, tables.signing_secret, person=person.id)
    secret = SigningSecret(
        row.salt, row.argon2, row.pepper_version, row.verifier_sha256
    )
    pepper = read_key_ring(appliance.settings.secrets.pepper_file)
    passwords = SigningPasswords(pepper, HashSlots())
    typed = normalize(person.signing_password)
    return run_apart(passwords.check(typed, secret, [key.id])).unlock[key.id]


# -- pki -------------------------------------------------------------------------------


@contextmanager
def authority(appliance: Appliance) -> Iterator[HsmRsaPrivateKey]:
    """The CA's key, by the PIN of `pki`."""
    cka_id = objects.CA_KEY.cka_id
    with token(appliance, PKI) as session:
        public = objects.public_key(session, cka_id)
        yield private_key_of(public, objects.private_key(session, cka_id))


def certified(
    appliance: Appliance, spki: bytes, like: Credential, subject: x509.Name
) -> bytes:
    """A certificate of the true CA over any key, in any name.

    Args:
        appliance: whose CA it is.
        spki: of the key.
        like: whose certificate gives dates and extensions.
        subject: whom it names.
    """
    model = x509.load_der_x509_certificate(like.certificate)
    public = load_der_public_key(spki)
    assert isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(model.issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(model.not_valid_before_utc)
        .not_valid_after(model.not_valid_after_utc)
    )
    for extension in model.extensions:
        value = extension.value
        if isinstance(value, x509.SubjectKeyIdentifier):
            value = x509.SubjectKeyIdentifier.from_public_key(public)
        builder = builder.add_extension(value, extension.critical)
    with authority(appliance) as key:
        return der(builder.sign(key, hashes.SHA256()))


@pytest.mark.parametrize(
    "ref",
    [objects.ROOT_KEY, objects.CA_KEY, objects.OCSP_KEY, objects.TSA_KEY],
    ids=lambda ref: ref.cka_id.decode(),
)
def test_pin_of_pki_uses_the_keys_of_the_authorities(
    appliance: Appliance, ref: KeyReference
) -> None:
    """Each of them signs, and its public key verifies that."""
    with token(appliance, PKI) as session:
        objects.self_test(session, ref.cka_id)


def test_pin_of_pki_has_no_key_of_a_user(
    appliance: Appliance, resident: Credential
) -> None:
    """All private keys there are the installation's own."""
    with token(appliance, PKI) as session:
        wanted = {Attribute.CLASS: ObjectClass.PRIVATE_KEY}
        names = [key[Attribute.ID] for key in objects.search(session, wanted)]
        assert objects.find(session, resident.cka_id or b"") == []
    assert names
    assert all(KeyReference(PKI, name).is_own for name in names)


def test_pin_of_pki_certifies_any_key_in_anybodys_name(
    appliance: Appliance, victim: TestPerson
) -> None:
    """A document signed at the thief's home is valid, and no row knows of it."""
    before = len(rows_of(appliance, tables.certificate))
    pdf = signed_at_home(appliance, victim, pdfs.one_page(), "Firma1")

    assert pyhanko_valid(pdf, appliance.roots)
    assert len(rows_of(appliance, tables.certificate)) == before


def signed_at_home(
    appliance: Appliance, victim: TestPerson, pdf: bytes, field: str
) -> bytes:
    """A document that a software key signed, certified in the victim's name."""
    held, key = appliance.credential(victim), ec_key()
    subject = x509.load_der_x509_certificate(held.certificate).subject
    made = certified(appliance, spki_of(key), held, subject)
    thief = SoftwareSigner(key, made, (*held.chain, *appliance.roots))
    metadata = PdfSignatureMetadata(
        field_name=field, md_algorithm="sha256", subfilter=SigSeedSubFilter.PADES
    )
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    out = io.BytesIO()
    run_apart(
        PdfSigner(metadata, signer=thief.stock()).async_sign_pdf(writer, output=out)
    )
    return out.getvalue()


def test_page_of_a_file_that_a_stolen_authority_certified_is_told_of(
    appliance: Appliance, victim: TestPerson
) -> None:
    """The page reads the file, and calls it signed; no use of a key explains it."""
    with appliance.client(victim) as client:
        signed = appliance.new_request(victim, pdfs.one_page())
        assert sign_at_last(client, victim, signed).status_code == 200
    request = appliance.new_request(victim, pdfs.one_page())
    pdf = signed_at_home(appliance, victim, pdfs.one_page(), f"Firma-{request}")
    # Any document that comes in is kept by its SHA-256.
    appliance.new_request(victim, pdf)
    sha256 = hashlib.sha256(pdf).hexdigest()

    with forged(appliance, request, signed, sha256) as code:
        page = look(appliance, code)
        told = unexplained(appliance, request=request)

    assert SIGNED in page
    assert "A••• R•••" in page
    assert told >= {Check.SIGNATURE_UNRECORDED, Check.VERSION_UNRECORDED}


@pytest.mark.parametrize("name", ["Ana Ruiz", "Otra Persona"])
def test_certificate_of_the_true_ca_is_swapped_after_the_consent_in_vain(
    appliance: Appliance, name: str
) -> None:
    """Over the signer's own key: all checks of whose key it is pass, the seal holds."""
    person = appliance.new_person("Ana Ruiz")
    own = appliance.credential(person)
    subject = named(name, f"CUIL {person.cuil}")
    swapped = certified(appliance, own.spki, own, subject)
    request = appliance.new_request(person, pdfs.one_page())
    with ExitStack() as swap:
        with held(appliance):
            with appliance.client(person) as client:
                assert sign(client, person, request).status_code == 202
            for table, row, values in (
                (tables.credential, own.id, {"certificate": swapped}),
                (tables.person, person.id, {"name": name}),
            ):
                swap.enter_context(altered(appliance, table, row, **values))
        until(lambda: state_of(appliance, request) != RequestState.IN_PROGRESS.value)

        assert state_of(appliance, request) == RequestState.PENDING.value
        (back,) = audited(appliance, EventKind.REQUEST_RETURNED, request)
        assert (back["reason"], back["layer"]) == ("ACTIVATION_INVALID", "seal")
        assert audited(appliance, EventKind.KEY_INTENDED, request) == []
    with appliance.client(person) as client:
        assert sign_at_last(client, person, request).status_code == 200

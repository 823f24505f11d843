"""A chain from outside is taken only where all of it fits; each fault has its name."""

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.pki.validation.path_validation import Expected, check_chain, check_root
from tests.support.factories.fakes import NOON
from tests.support.pki.outside_ca import (
    Form,
    OutsideCa,
    bundle,
    der,
    ec_key,
    make,
    named,
    rsa_key,
    spki_of,
    usage,
)

CUIL = "20267565393"
KEY = ec_key()
SPKI = spki_of(KEY)
EXPECTED = Expected(SPKI, CUIL)
CA = OutsideCa(NOON)
OTHER = OutsideCa(NOON, "Otra AC")
SOUND = CA.certify(SPKI, CUIL)
SOON = NOON + timedelta(days=1)


def refused(pem: bytes, *anchors: x509.Certificate) -> ApplianceError:
    """How a chain is refused."""
    with pytest.raises(ApplianceError) as caught:
        check_chain(pem, EXPECTED, [der(a) for a in anchors or (CA.root,)], NOON)
    return caught.value


@pytest.mark.parametrize("with_root", [True, False])
def test_sound_chain_is_taken_without_its_root(with_root: bool) -> None:
    """With or without its root the chain is the same; the dates are the signer's."""
    sent = (SOUND, CA.issuing, CA.root) if with_root else (SOUND, CA.issuing)

    checked = check_chain(
        bundle(*sent), EXPECTED, [der(OTHER.root), der(CA.root)], NOON
    )

    assert checked.certificate == der(SOUND)
    assert checked.issuers == (der(CA.issuing),)
    assert checked.not_after == SOUND.not_valid_after_utc
    assert checked.serial == SOUND.serial_number


def test_rsa_chain_is_taken() -> None:
    """The same of RSA keys, signed by RSA."""
    root, key = rsa_key("root"), rsa_key("person")
    name = named("Raíz RSA")
    span: dict[str, Any] = {"start": NOON, "end": SOON}
    certified = Form(name, ca=True, usage=usage("key_cert_sign"), purposes=None, **span)
    anchor = make(certified, spki_of(root), name, root)
    form = Form(named("Ana", f"CUIL {CUIL}"), digest=hashes.SHA384(), **span)
    signer = make(form, spki_of(key), name, root)

    checked = check_chain(
        bundle(signer), Expected(spki_of(key), CUIL), [der(anchor)], NOON
    )

    assert checked.issuers == ()


SIGNER_FAULTS: dict[str, tuple[ErrorCode, Callable[[], x509.Certificate]]] = {
    "key": (
        ErrorCode.CERTIFICATE_KEY_DIFFERS,
        lambda: CA.certify(spki_of(ec_key()), CUIL),
    ),
    "no cuil": (
        ErrorCode.CERTIFICATE_CUIL_MISSING,
        lambda: CA.certify(SPKI, CUIL, subject=named("Ana")),
    ),
    "cuit": (
        ErrorCode.CERTIFICATE_CUIL_MISSING,
        lambda: CA.certify(SPKI, CUIL, subject=named("Ana", f"CUIT {CUIL}")),
    ),
    "cuil": (
        ErrorCode.CERTIFICATE_CUIL_DIFFERS,
        lambda: CA.certify(SPKI, "20055361682"),
    ),
    "not yet": (
        ErrorCode.CERTIFICATE_NOT_YET_VALID,
        lambda: CA.certify(SPKI, CUIL, start=NOON + timedelta(seconds=1)),
    ),
    "expired": (
        ErrorCode.CERTIFICATE_EXPIRED,
        lambda: CA.certify(SPKI, CUIL, end=NOON),
    ),
    "is a ca": (ErrorCode.CERTIFICATE_IS_CA, lambda: CA.certify(SPKI, CUIL, ca=True)),
    "may sign certificates": (
        ErrorCode.CERTIFICATE_IS_CA,
        lambda: CA.certify(
            SPKI, CUIL, usage=usage("digital_signature", "key_cert_sign")
        ),
    ),
    "usage": (
        ErrorCode.CERTIFICATE_KEY_USAGE,
        lambda: CA.certify(SPKI, CUIL, usage=usage("key_encipherment")),
    ),
    "no usage": (
        ErrorCode.CERTIFICATE_KEY_USAGE,
        lambda: CA.certify(SPKI, CUIL, usage=None),
    ),
    "purpose": (
        ErrorCode.CERTIFICATE_EXTENDED_KEY_USAGE,
        lambda: CA.certify(SPKI, CUIL, purposes=(ExtendedKeyUsageOID.SERVER_AUTH,)),
    ),
    "critical": (
        ErrorCode.CERTIFICATE_EXTENSION_UNKNOWN,
        lambda: CA.certify(SPKI, CUIL, critical="1.2.3.4"),
    ),
    "hash": (
        ErrorCode.CERTIFICATE_WEAK_ALGORITHM,
        lambda: CA.certify(SPKI, CUIL, digest=hashes.SHA224()),
    ),
}


@pytest.mark.parametrize("fault", SIGNER_FAULTS)
def test_each_fault_of_the_signers_certificate_has_its_name(fault: str) -> None:
    """One thing wrong, one code, and where it stands in the file."""
    code, certify = SIGNER_FAULTS[fault]

    error = refused(bundle(certify(), CA.issuing))

    assert error.code is code
    assert error.extras == {"field": "cadena", "certificado": 0}
    assert "?" not in error.told(error.sentence)


@pytest.mark.parametrize(
    ("sent", "code", "place"),
    [
        ((CA.issuing, SOUND), ErrorCode.CHAIN_ORDER, 0),
        ((SOUND, CA.root, CA.issuing), ErrorCode.CHAIN_ORDER, 0),
        ((SOUND, CA.issuing, OTHER.root), ErrorCode.CHAIN_ORDER, 1),
        ((SOUND,), ErrorCode.CHAIN_INCOMPLETE, 0),
        ((SOUND, OTHER.issuing), ErrorCode.CHAIN_INCOMPLETE, 0),
    ],
    ids=["reversed", "root first", "another root", "no issuer", "another issuer"],
)
def test_order_and_gaps_of_the_chain(
    sent: tuple[x509.Certificate, ...], code: ErrorCode, place: int
) -> None:
    """A chain out of order is told apart from one that lacks a certificate."""
    error = refused(bundle(*sent))

    assert (error.code, error.extras["certificado"]) == (code, place)


def test_root_out_of_the_store() -> None:
    """A whole chain to a root that nobody trusts; without the root it is a gap."""
    whole = refused(bundle(SOUND, CA.issuing, CA.root), OTHER.root)
    bare = refused(bundle(SOUND, CA.issuing), OTHER.root)

    assert (whole.code, whole.extras["certificado"]) == (
        ErrorCode.CHAIN_ROOT_UNTRUSTED,
        2,
    )
    assert bare.code is ErrorCode.CHAIN_INCOMPLETE


def test_certificate_signed_by_somebody_else() -> None:
    """The name of an issuer is not its signature: in the file and at the root."""
    twin = OutsideCa(NOON)

    within = refused(bundle(SOUND, twin.issuing), CA.root, twin.root)
    at_root = refused(bundle(SOUND, CA.issuing), twin.root)

    assert (within.code, within.extras["certificado"]) == (ErrorCode.CHAIN_SIGNATURE, 0)
    assert (at_root.code, at_root.extras["certificado"]) == (
        ErrorCode.CHAIN_SIGNATURE,
        1,
    )


@pytest.mark.parametrize(
    ("issuing", "code"),
    [
        ({"ca": False, "usage": usage("digital_signature")}, "CHAIN_ISSUER_NOT_CA"),
        ({"ca": None, "usage": None}, "CHAIN_ISSUER_NOT_CA"),
        ({"usage": usage("crl_sign")}, "CHAIN_ISSUER_NOT_CA"),
        ({"end": NOON}, "CERTIFICATE_EXPIRED"),
        ({"start": SOON}, "CERTIFICATE_NOT_YET_VALID"),
        ({"critical": "1.2.3.4"}, "CERTIFICATE_EXTENSION_UNKNOWN"),
    ],
    ids=["no ca", "no constraints", "no cert sign", "expired", "not yet", "critical"],
)
def test_issuer_that_may_not_issue(issuing: dict[str, Any], code: str) -> None:
    """A CA in the chain is held to what a CA is; the refusal says which one."""
    ca = OutsideCa(NOON, **issuing)

    error = refused(bundle(ca.certify(SPKI, CUIL), ca.issuing), ca.root)

    assert (error.code.value, error.extras["certificado"]) == (code, 1)


def test_more_cas_than_one_of_them_allows() -> None:
    """PathLenConstraint 0 allows no CA below it."""
    ca = OutsideCa(NOON, path_length=0)
    below, name = ec_key(), named("AC de más")
    form = Form(
        name,
        NOON,
        SOON,
        ca=True,
        usage=usage("key_cert_sign"),
        purposes=None,
    )
    third = make(form, spki_of(below), ca.name, ca.key)
    signer = make(ca.form(CUIL, start=NOON, end=SOON), SPKI, name, below)

    error = refused(bundle(signer, third, ca.issuing), ca.root)

    assert (error.code, error.extras["certificado"]) == (ErrorCode.CHAIN_PATH_LENGTH, 2)


@pytest.mark.parametrize("bits", [1024])
def test_small_keys_are_refused(bits: int) -> None:
    """RSA below 2048 bits and curves of no standard, wherever they are."""
    key = rsa_key("small", bits)
    expected = Expected(spki_of(key), CUIL)
    with pytest.raises(ApplianceError) as caught:
        check_chain(
            bundle(CA.certify(spki_of(key), CUIL), CA.issuing),
            expected,
            [der(CA.root)],
            NOON,
        )
    assert caught.value.code is ErrorCode.CERTIFICATE_WEAK_ALGORITHM
    assert "RSA 1024" in caught.value.told(caught.value.sentence)
    odd = ec.generate_private_key(ec.SECP192R1())
    with pytest.raises(ApplianceError) as caught:
        check_chain(
            bundle(CA.certify(spki_of(odd), CUIL), CA.issuing),
            Expected(spki_of(odd), CUIL),
            [der(CA.root)],
            NOON,
        )
    assert caught.value.code is ErrorCode.CERTIFICATE_WEAK_ALGORITHM


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"nada",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n\xff\n-----END CERTIFICATE-----\n",
        bundle(SOUND)[:-40],
        bundle(*[SOUND] * 11),
    ],
    ids=["empty", "text", "no der", "no base64", "cut", "too many"],
)
def test_what_is_no_chain(pem: bytes) -> None:
    """Anything that is not 1 to 10 certificates is one code."""
    assert refused(pem).code is ErrorCode.CHAIN_MALFORMED


def in_pem(content: bytes) -> bytes:
    """Whatever octets, in the wrapping of a certificate."""
    inner = base64.encodebytes(content)
    return b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n" % inner


ROOT_NAMED = CA.root_name.public_bytes()[-12:]


def test_name_that_is_no_text_is_no_chain() -> None:
    """A library reads a name only when it is asked for."""
    issuing = der(CA.issuing).replace(ROOT_NAMED, b"\xff" * 12)

    told = refused(bundle(SOUND) + in_pem(issuing))

    assert told.code is ErrorCode.CHAIN_MALFORMED


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (bytes.fromhex("a003020102"), bytes.fromhex("a003020107")),
        (ROOT_NAMED, b"\xff" * 12),
    ],
    ids=["version", "name"],
)
@pytest.mark.parametrize("wrap", [bytes, in_pem])
def test_what_cannot_be_read_is_no_root(
    good: bytes, bad: bytes, wrap: Callable[[bytes], bytes]
) -> None:
    """The same of a root, in either form."""
    with pytest.raises(ApplianceError) as caught:
        check_root(wrap(der(CA.root).replace(good, bad)), NOON)

    assert caught.value.code is ErrorCode.CHAIN_MALFORMED


@pytest.mark.parametrize("form", [bundle, der])
def test_root_is_taken_in_pem_and_der(
    form: Callable[[x509.Certificate], bytes],
) -> None:
    """Both forms in which CAs publish their root."""
    assert check_root(form(CA.root), NOON) == CA.root


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (bundle(CA.issuing), "ANCHOR_NOT_A_ROOT"),
        (bundle(CA.root, OTHER.root), "CHAIN_MALFORMED"),
        (b"\x30\x03\x02\x01\x01", "CHAIN_MALFORMED"),
        (
            bundle(make(CA.form(CUIL, subject=CA.root_name), SPKI, CA.root_name, KEY)),
            "CHAIN_ISSUER_NOT_CA",
        ),
    ],
    ids=["issuing", "two", "no certificate", "not a ca"],
)
def test_what_is_no_root(content: bytes, code: str) -> None:
    """Only one certificate of a CA, signed by itself, may be trusted."""
    with pytest.raises(ApplianceError) as caught:
        check_root(content, NOON)
    assert caught.value.code.value == code


def test_root_past_its_end_is_refused() -> None:
    """A root is trusted only within its dates."""
    with pytest.raises(ApplianceError) as caught:
        check_root(bundle(CA.root), NOON + timedelta(days=4000))
    assert caught.value.code is ErrorCode.CERTIFICATE_EXPIRED

"""A certificate written otherwise is known by the same fingerprints.

Source: RFC 5280, 4.1.1.2; SEC 1, 4.1.4.
"""

import datetime as dt

import pytest
from asn1crypto import core
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.serialization import Encoding

from tests.support.pki.outside_ca import named, rsa_key
from worker.sandbox.verify.certificate_twins import fingerprints, names_one_algorithm

_NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_CURVES = [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1(), ec.BrainpoolP256R1()]


def issued(by: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> asn1_x509.Certificate:
    """A certificate that a key signed."""
    made = (
        x509.CertificateBuilder()
        .subject_name(named("Ana"))
        .issuer_name(named("CA"))
        .public_key(rsa_key("ana").public_key())
        .serial_number(7)
        .not_valid_before(_NOW)
        .not_valid_after(_NOW + dt.timedelta(days=9))
        .sign(by, hashes.SHA256())
    )
    return asn1_x509.Certificate.load(made.public_bytes(Encoding.DER))


@pytest.mark.parametrize("curve", _CURVES, ids=lambda curve: str(curve.name))
def test_twin_of_an_ecdsa_value_is_known(curve: ec.EllipticCurve) -> None:
    """Its issuer's key verifies both, and the record knows one of them."""
    key = ec.generate_private_key(curve)
    certificate = issued(key)
    r, s = decode_dss_signature(certificate["signature_value"].native)
    twin = certificate.copy()
    value = encode_dss_signature(r, curve.group_order - s)
    twin["signature_value"] = core.OctetBitString(value)
    twin = asn1_x509.Certificate.load(twin.dump(force=True))
    content = twin["tbs_certificate"].dump()
    key.public_key().verify(value, content, ec.ECDSA(hashes.SHA256()))

    assert twin.sha256 != certificate.sha256
    assert certificate.sha256.hex() == fingerprints(certificate)[0]
    assert certificate.sha256.hex() in fingerprints(twin)
    assert twin.sha256.hex() in fingerprints(certificate)


@pytest.mark.parametrize("algorithm", ["1.2.3.4", "2.16.840.1.101.3.4.3.14"])
def test_unknown_algorithm_has_no_twin(algorithm: str) -> None:
    """Anybody may append a signature by such a certificate."""
    certificate = issued(rsa_key("ca"))
    certificate["signature_algorithm"] = {"algorithm": algorithm}
    other = asn1_x509.Certificate.load(certificate.dump(force=True))

    assert fingerprints(other) == [other.sha256.hex()]


def test_value_that_is_none_has_no_twin() -> None:
    """An ECDSA value is a sequence of two numbers."""
    certificate = issued(ec.generate_private_key(ec.SECP256R1()))
    certificate["signature_value"] = core.OctetBitString(b"\4\1x")
    other = asn1_x509.Certificate.load(certificate.dump(force=True))

    assert fingerprints(other) == [other.sha256.hex()]


def test_rsa_has_no_twin_but_by_the_name_of_the_algorithm() -> None:
    """The second name of the algorithm is not signed: it has to be the first."""
    certificate = issued(rsa_key("ca"))
    other = certificate.copy()
    other["signature_algorithm"] = {"algorithm": "sha1_rsa"}
    other = asn1_x509.Certificate.load(other.dump(force=True))

    assert len(fingerprints(certificate)) == 1
    assert names_one_algorithm(certificate)
    assert other.sha256 != certificate.sha256
    assert not names_one_algorithm(other)

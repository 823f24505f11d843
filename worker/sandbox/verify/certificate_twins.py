"""Other encodings of a certificate that its issuer's signature fits as well.

The record knows a certificate by its SHA-256. Anybody can write it in another way that
its issuer's signature fits as well: an ECDSA value (r, s) has the twin (r, n - s), and
no signature covers the second name of the algorithm.

Source: RFC 5280, 4.1.1.2; SEC 1, 4.1.4.
"""

import hashlib
from typing import Final

from asn1crypto import algos, core, parser, x509
from cryptography.hazmat.primitives.asymmetric import ec

_ORDERS: Final = tuple(
    curve.group_order
    for curve in (
        ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1(), ec.SECP256K1(),
        ec.BrainpoolP256R1(), ec.BrainpoolP384R1(), ec.BrainpoolP512R1(),
    )
)  # fmt: skip


def names_one_algorithm(certificate: x509.Certificate) -> bool:
    """Return whether its two names of the signature's algorithm are alike, by bytes."""
    signed: bytes = certificate["tbs_certificate"]["signature"].dump()
    named: bytes = certificate["signature_algorithm"].dump()
    return signed == named


def fingerprints(certificate: x509.Certificate) -> list[str]:
    """Return the SHA-256 of a certificate and of its twins, in hexadecimal.

    Args:
        certificate: whose first one is its own. The curve of its issuer's key is
            unknown: there is a twin for each that may be.
    """
    found = [certificate.sha256.hex()]
    try:
        if certificate["signature_algorithm"].signature_algo != "ecdsa":
            return found
        value = algos.DSASignature.load(certificate["signature_value"].native)
        r, s = value["r"].native, value["s"].native
    except (ValueError, TypeError, KeyError):
        return found  # of an algorithm that is unknown here: nobody verifies it
    for order in _ORDERS:
        if 0 < r < order and 0 < s < order:
            twin = algos.DSASignature({"r": r, "s": order - s})
            parts = [
                certificate["tbs_certificate"].dump(),
                certificate["signature_algorithm"].dump(),
                core.OctetBitString(twin.dump()).dump(),
            ]
            whole = parser.emit(0, 1, core.Sequence.tag, b"".join(parts))
            found.append(hashlib.sha256(whole).hexdigest())
    return found

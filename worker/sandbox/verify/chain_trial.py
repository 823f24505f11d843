"""Trial of a chain of certificates, without any of its keys; runs in a job only.

A stand-in of each certificate is made: the same but for key and signature, which are
the job's own, and dates. With the first of them a sample is signed and verified as any
document is. So names, purposes and extensions are tried by the very code that will
judge signatures, and no authority ever certifies a key that is not the signer's.

Keys, signatures and dates of the chain itself are checked by whoever took it.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Final

from asn1crypto import algos, keys, x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from appliance.domain.documents.verification import VerificationReport
from worker.pades.algorithms import method_for
from worker.pades.sample import SampleIdentity, complete_sample, prepare_sample
from worker.sandbox.verify.verify import verify

_NAME: Final = "Sample"
_AROUND: Final = dt.timedelta(days=1)
"""Time for which stand-ins are valid, before now and after it."""


def try_chain(path: Sequence[bytes]) -> VerificationReport:
    """Verify a sample that is signed under stand-ins of a chain.

    Args:
        path: the signer's certificate, then each one's issuer up to the root, DER; two
            at least.

    Raises:
        Exception: of any kind, for a certificate that cannot be read.
    """
    # Each has a key of its own: a signature that fits two certificates is no signature
    # of either.
    made = [ec.generate_private_key(ec.SECP256R1()) for _ in path]
    issuing = [*made[1:], made[-1]]
    leaf, *issuers = [
        _stand_in(der, key, issuer)
        for der, key, issuer in zip(path, made, issuing, strict=True)
    ]
    identity = SampleIdentity(_NAME, leaf, tuple(issuers[:-1]))
    method = method_for(leaf)
    prepared = prepare_sample(identity, method, dt.datetime.now(dt.UTC))
    value = made[0].sign(prepared.digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
    pdf = complete_sample(prepared, value, identity, method)
    return verify(pdf, issuers[-1:])


def _stand_in(
    der: bytes, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> bytes:
    """Write a certificate with another key, valid now, signed by another issuer's key.

    Key identifiers stay: issuers are found by them, and by name.

    Source: RFC 5280, 4.1.1.
    """
    certificate = x509.Certificate.load(der)
    algorithm = algos.SignedDigestAlgorithm({"algorithm": "sha256_ecdsa"})
    body = certificate["tbs_certificate"]
    body["signature"] = algorithm
    body["subject_public_key_info"] = keys.PublicKeyInfo.load(
        key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    )
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    body["validity"] = x509.Validity(
        {
            "not_before": x509.Time({"utc_time": now - _AROUND}),
            "not_after": x509.Time({"utc_time": now + _AROUND}),
        }
    )
    value = issuer.sign(body.dump(), ec.ECDSA(hashes.SHA256()))
    made = x509.Certificate(
        {
            "tbs_certificate": body,
            "signature_algorithm": algorithm,
            "signature_value": value,
        }
    )
    return bytes(made.dump())

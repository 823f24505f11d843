"""Key pairs: generate one, and read its public half into pyca's form."""

from typing import Any, Final, TypeAlias

import pkcs11
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pkcs11 import Attribute, KeyType, Mechanism

from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from hsm_config.pkcs11 import templates
from hsm_config.pkcs11.templates import Template

PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
"""A public key outside the HSM."""

RSA_BITS: Final = {
    KeyAlgorithm.RSA_2048: 2048,
    KeyAlgorithm.RSA_3072: 3072,
    KeyAlgorithm.RSA_4096: 4096,
}
EC_PARAMS: Final = {
    KeyAlgorithm.EC_P256: bytes.fromhex("06082a8648ce3d030107"),
    KeyAlgorithm.EC_P384: bytes.fromhex("06052b81040022"),
}
"""The named curves as CKA_EC_PARAMS, DER. Source: RFC 5480, 2.1.1.1."""
GENERATES: Final = {
    **dict.fromkeys(RSA_BITS, Mechanism.RSA_PKCS_KEY_PAIR_GEN),
    **dict.fromkeys(EC_PARAMS, Mechanism.EC_KEY_PAIR_GEN),
}
"""The mechanism that makes each kind."""
_CURVES: Final[dict[bytes, ec.EllipticCurve]] = {
    EC_PARAMS[KeyAlgorithm.EC_P256]: ec.SECP256R1(),
    EC_PARAMS[KeyAlgorithm.EC_P384]: ec.SECP384R1(),
}
_UNCOMPRESSED: Final = 0x04
_OCTET_STRING: Final = 0x04


def generate_pair(
    session: pkcs11.Session,
    algorithm: KeyAlgorithm,
    private: Template,
    *,
    cka_id: bytes | None = None,
    label: str | None = None,
    store: bool = False,
) -> tuple[pkcs11.PublicKey, pkcs11.PrivateKey]:
    """Generate a signing pair.

    Args:
        session: logged in, read-write.
        algorithm: its kind.
        private: attributes of the private half.
        cka_id: CKA_ID of both halves.
        label: label of both halves.
        store: whether it stays on the token; otherwise it ends with the session.

    Returns:
        Both halves.

    Raises:
        PKCS11Error: the token failed, or has no such keys.
    """
    names: dict[str, Any] = {
        "id": cka_id,
        "label": label,
        "store": store,
        "capabilities": templates.UNSAID,
        "public_template": templates.PUBLIC,
        "private_template": private,
    }
    if algorithm.is_ec:
        curve = session.create_domain_parameters(
            KeyType.EC, {Attribute.EC_PARAMS: EC_PARAMS[algorithm]}, local=True
        )
        return curve.generate_keypair(**names)
    return session.generate_keypair(KeyType.RSA, RSA_BITS[algorithm], **names)


def read_public(key: pkcs11.PublicKey) -> PublicKey:
    """Read a public key object.

    Raises:
        HsmRefusedError: no RSA key, and on no curve of ours; or half a key.
        PKCS11Error: the token failed.
    """
    if key.key_type is KeyType.RSA:
        numbers = rsa.RSAPublicNumbers(
            e=int.from_bytes(key[Attribute.PUBLIC_EXPONENT]),
            n=int.from_bytes(key[Attribute.MODULUS]),
        )
        try:
            return numbers.public_key()
        except ValueError as exc:
            msg = f"public key {key.label} is no RSA key: its file may be damaged"
            raise HsmRefusedError(msg) from exc
    try:
        curve = _CURVES[key[Attribute.EC_PARAMS]]
        return ec.EllipticCurvePublicKey.from_encoded_point(
            curve, _point(key[Attribute.EC_POINT], curve)
        )
    except (KeyError, ValueError) as exc:
        msg = f"public key {key.label} is on no curve that we know"
        raise HsmRefusedError(msg) from exc


def _point(value: bytes, curve: ec.EllipticCurve) -> bytes:
    """The bare point of a CKA_EC_POINT.

    A DER OCTET STRING by the standard; older modules give the bare point, and
    both begin with the same byte.
    """
    size = 1 + 2 * ((curve.key_size + 7) // 8)
    if len(value) == size and value[0] == _UNCOMPRESSED:
        return value
    if len(value) == size + 2 and value[:2] == bytes([_OCTET_STRING, size]):
        return value[2:]
    raise ValueError


def point_attribute(public: ec.EllipticCurvePublicKey) -> bytes:
    """A public key's CKA_EC_POINT: its point in a DER OCTET STRING."""
    point = public.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    return bytes([_OCTET_STRING, len(point)]) + point


def algorithm_of(public: PublicKey) -> KeyAlgorithm:
    """The kind of a key.

    Raises:
        HsmRefusedError: none of ours.
    """
    kinds = {
        **{f"RSA {bits}": kind for kind, bits in RSA_BITS.items()},
        **{f"EC {_CURVES[params].name}": kind for kind, params in EC_PARAMS.items()},
    }
    name = (
        f"RSA {public.key_size}"
        if isinstance(public, rsa.RSAPublicKey)
        else f"EC {public.curve.name}"
    )
    if name not in kinds:
        msg = f"keys of kind {name} are not used here"
        raise HsmRefusedError(msg)
    return kinds[name]


def spki(public: PublicKey) -> bytes:
    """SubjectPublicKeyInfo in DER."""
    return public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def load_spki(der: bytes) -> PublicKey:
    """Read a SubjectPublicKeyInfo in DER.

    Raises:
        HsmRefusedError: it is none, or neither RSA nor EC.
    """
    try:
        public = serialization.load_der_public_key(der)
    except (ValueError, TypeError) as exc:
        msg = "that is no public key"
        raise HsmRefusedError(msg) from exc
    if not isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        msg = "only RSA and EC keys are used here"
        raise HsmRefusedError(msg)
    return public

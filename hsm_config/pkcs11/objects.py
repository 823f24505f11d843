"""Key objects that stay on a token: find, generate, destroy, test.

Works on a session that is logged in, in the thread that owns it. A search is
always read to its end: the binding closes a half-read one whenever Python
frees it, in whatever thread that happens.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

import pkcs11
from pkcs11 import Attribute

from appliance.domain.errors import ErrorCode, HsmRefusedError, KeyNotFoundError
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyReference, TokenRole
from hsm_config.pkcs11 import signatures, templates
from hsm_config.pkcs11.key_pairs import PublicKey, generate_pair, read_public, spki

ROOT_KEY: Final = KeyReference(TokenRole.PKI, b"rubrica-root-1")
"""Of the internal CA's root: signs the CA below it and the root's CRL."""
ROOT_LABEL: Final = "rubrica-root"
CA_KEY: Final = KeyReference(TokenRole.PKI, b"rubrica-ca-1")
"""Of the internal CA that issues: signs certificates and its CRL."""
CA_LABEL: Final = "rubrica-ca"
OCSP_KEY: Final = KeyReference(TokenRole.PKI, b"rubrica-ocsp-1")
"""Of the responder that answers for the CA."""
OCSP_LABEL: Final = "rubrica-ocsp"
TSA_KEY: Final = KeyReference(TokenRole.PKI, b"rubrica-tsa-1")
"""Of the timestamping authority: signs timestamps alone (RFC 3161, 2.3)."""
TSA_LABEL: Final = "rubrica-tsa"
KEEP_ALIVE_KEY: Final = KeyReference(TokenRole.FIRMA, b"rubrica-keep-alive")
"""A key that certifies nothing and nobody, for test signatures."""
KEEP_ALIVE_LABEL: Final = "rubrica-keep-alive"
IDENTITY_KEY: Final = KeyReference(TokenRole.FIRMA, b"rubrica-worker-identity")
"""By it workers prove to fronts that they hold the token (design §4)."""
IDENTITY_LABEL: Final = "rubrica-worker-identity"

_K = TypeVar("_K", pkcs11.PrivateKey, pkcs11.PublicKey)


def find(session: pkcs11.Session, cka_id: bytes) -> list[pkcs11.Object]:
    """All objects with that CKA_ID.

    Raises:
        HsmRefusedError: the id is empty, which would match anything.
        PKCS11Error: the search failed.
    """
    if not cka_id:
        msg = "an empty CKA_ID names no key"
        raise HsmRefusedError(msg, ErrorCode.INTERNAL)
    return search(session, {Attribute.ID: cka_id})


def find_label(session: pkcs11.Session, label: str) -> list[pkcs11.Object]:
    """All objects with that label, a pair's two halves among them."""
    return search(session, {Attribute.LABEL: label})


def search(
    session: pkcs11.Session,
    wanted: Mapping[Attribute, object],
) -> list[pkcs11.Object]:
    """Search to the end, on a session that answers.

    The binding closes a search even where opening it failed, and complains of
    that on stderr; asking for a random byte first fails properly.
    """
    session.generate_random(8)
    return list(session.get_objects(dict(wanted)))


def private_key(session: pkcs11.Session, cka_id: bytes) -> pkcs11.PrivateKey:
    """The one private key with that CKA_ID.

    Raises:
        KeyNotFoundError: this session shows none.
        HsmRefusedError: it shows more than one.
        PKCS11Error: the search failed.
    """
    return _one(pkcs11.PrivateKey, session, cka_id)


def public_key(session: pkcs11.Session, cka_id: bytes) -> PublicKey:
    """The one public key with that CKA_ID.

    Raises:
        KeyNotFoundError: this session shows none.
        HsmRefusedError: it shows more than one.
        PKCS11Error: the search failed.
    """
    return read_public(_one(pkcs11.PublicKey, session, cka_id))


def _one(kind: type[_K], session: pkcs11.Session, cka_id: bytes) -> _K:
    found = [key for key in find(session, cka_id) if isinstance(key, kind)]
    if not found:
        raise KeyNotFoundError(f"no {kind.__name__} with CKA_ID {cka_id.hex()}")
    if len(found) > 1:
        msg = f"{len(found)} keys share CKA_ID {cka_id.hex()}; destroy the wrong one"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    return found[0]


def refuse_taken(session: pkcs11.Session, cka_id: bytes) -> None:
    """Refuse a CKA_ID that anything on the token has.

    Raises:
        HsmRefusedError: it is taken.
        PKCS11Error: the search failed.
    """
    if find(session, cka_id):
        msg = f"CKA_ID {cka_id.hex()} is taken"
        raise HsmRefusedError(msg, ErrorCode.ALREADY_EXISTS)


def generate(
    session: pkcs11.Session, cka_id: bytes, label: str, algorithm: KeyAlgorithm
) -> bytes:
    """Generate a key pair that stays in the token and can only sign.

    Args:
        session: logged in, read-write.
        cka_id: its CKA_ID; the caller has made sure that it is free.
        label: its label, for people.
        algorithm: its kind.

    Returns:
        The public key, SubjectPublicKeyInfo in DER.

    Raises:
        PKCS11Error: the token failed, or makes no such keys.
    """
    public, _ = generate_pair(
        session,
        algorithm,
        templates.RESIDENT_PRIVATE,
        cka_id=cka_id,
        label=label,
        store=True,
    )
    return spki(read_public(public))


def destroy(session: pkcs11.Session, cka_id: bytes) -> int:
    """Destroy all that has that CKA_ID, private keys first.

    Returns:
        How many objects there were.

    Raises:
        PKCS11Error: the token failed; what is left is destroyed the next time.
    """
    found = find(session, cka_id)
    for item in sorted(found, key=lambda one: not isinstance(one, pkcs11.PrivateKey)):
        item.destroy()
    return len(found)


def self_test(session: pkcs11.Session, cka_id: bytes) -> None:
    """Sign a random digest and verify it with the public key, outside the HSM.

    Raises:
        KeyNotFoundError: half of the pair, or all of it, is missing.
        HsmRefusedError: there are twins, or the pair does not fit together.
        PKCS11Error: the token failed.
    """
    public = public_key(session, cka_id)
    signatures.self_test(private_key(session, cka_id), public)


def make_anew(
    session: pkcs11.Session, cka_id: bytes, label: str, algorithm: KeyAlgorithm
) -> None:
    """Make one of our own pairs, in place of what is left of it.

    Raises:
        HsmRefusedError: the new pair does not fit together.
        PKCS11Error: the token failed.
    """
    destroy(session, cka_id)
    generate(session, cka_id, label, algorithm)
    self_test(session, cka_id)


def refuse_twins(session: pkcs11.Session, label: str, cka_id: bytes) -> None:
    """Refuse a second key under one of our labels or CKA_IDs.

    Raises:
        HsmRefusedError: there is one.
        PKCS11Error: the search failed.
    """
    for key in find_label(session, label):
        if key[Attribute.ID] != cka_id:
            msg = f"another key is labelled {label}; relabel or destroy it"
            raise HsmRefusedError(msg)
    found = find(session, cka_id)
    for kind in (pkcs11.PrivateKey, pkcs11.PublicKey):
        if sum(isinstance(one, kind) for one in found) > 1:
            msg = f"two keys share CKA_ID {cka_id.hex()}; destroy the wrong one"
            raise HsmRefusedError(msg)

"""The internal TSA's keys on the pki token, by generation: the newest one stamps.

Generation n has the CKA_ID `rubrica-tsa-n`. Source: docs/timestamps.md.
"""

import re
from typing import Final

import pkcs11
from pkcs11 import Attribute, ObjectClass

from appliance.domain.errors import KeyNotFoundError
from appliance.domain.keys.hsm_keys import KeyReference, TokenRole
from hsm_config.pkcs11 import objects
from hsm_config.pkcs11.key_pairs import spki

FIRST: Final = 1
"""What `hsm init` makes where there is none."""
_ID: Final = re.compile(rb"rubrica-tsa-([1-9][0-9]{0,5})")


def reference(generation: int) -> KeyReference:
    """Where a generation is."""
    return KeyReference(TokenRole.PKI, f"rubrica-tsa-{generation}".encode())


def label_of(generation: int) -> str:
    """Its label, for people."""
    first = generation == FIRST
    return objects.TSA_LABEL if first else f"{objects.TSA_LABEL}-{generation}"


def generations(session: pkcs11.Session) -> tuple[int, ...]:
    """Which generations the token has, ascending; half a pair may be among them.

    Args:
        session: of the pki token, logged in.

    Raises:
        PKCS11Error: the search failed.
    """
    keys = objects.search(session, {Attribute.CLASS: ObjectClass.PRIVATE_KEY})
    ids = (_ID.fullmatch(bytes(key[Attribute.ID])) for key in keys)
    return tuple(sorted({int(found[1]) for found in ids if found}))


def newest(session: pkcs11.Session) -> KeyReference:
    """The newest generation.

    Raises:
        KeyNotFoundError: there is none.
        PKCS11Error: the search failed.
    """
    found = generations(session)
    if not found:
        raise KeyNotFoundError("no key of the internal TSA")
    return reference(found[-1])


def of_key(session: pkcs11.Session, public: bytes) -> KeyReference:
    """The generation with a certain public key.

    Args:
        session: of the pki token, logged in.
        public: SubjectPublicKeyInfo in DER.

    Raises:
        KeyNotFoundError: there is none.
        PKCS11Error: the search failed.
    """
    for generation in reversed(generations(session)):
        ref = reference(generation)
        if spki(objects.public_key(session, ref.cka_id)) == public:
            return ref
    raise KeyNotFoundError("no key of the internal TSA with that public half")

"""Whether a key can be read: tried, not asked.

What a token says of a key's attributes is no proof: openCryptoki's software
token hands out the value of a key that it calls sensitive (see docs/hsm.md).
"""

from typing import Final

import pkcs11
from pkcs11 import Attribute, KeyType
from pkcs11.exceptions import PKCS11Error

from appliance.domain.errors import HsmRefusedError

_SECRET_PARTS: Final = {
    KeyType.RSA: (Attribute.PRIVATE_EXPONENT, Attribute.PRIME_1),
    KeyType.EC: (Attribute.VALUE,),
    KeyType.AES: (Attribute.VALUE,),
}


def refuse_readable(key: pkcs11.Key) -> None:
    """Try to read a key that nobody should be able to read.

    Args:
        key: a private or secret key.

    Raises:
        HsmRefusedError: it can be read, or its attributes say that it might be.
        PKCS11Error: the token failed at telling the attributes.
    """
    if any(_value(key, part) for part in _SECRET_PARTS[key.key_type]):
        msg = f"the secret value of the {key.key_type.name} key can be read"
        raise HsmRefusedError(msg)
    if not key[Attribute.SENSITIVE] or key[Attribute.EXTRACTABLE]:
        msg = "a key is not sensitive, or extractable, against its template"
        raise HsmRefusedError(msg)


def _value(key: pkcs11.Key, part: Attribute) -> bytes:
    """What the token hands out of a secret part; any refusal will do."""
    try:
        return bytes(key[part])
    except PKCS11Error:
        return b""

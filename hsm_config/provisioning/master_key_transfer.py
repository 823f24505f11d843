"""Copying a master key from one token into another, while it may still leave.

It travels wrapped by a public key whose private half was made in the receiving
token and dies there. Source: PKCS#11 v2.40 mechanisms, 2.1.8 (RSA OAEP).
"""

from typing import Any, Final, TypeVar

import pkcs11
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass
from pkcs11.types import UnwrapMixin, WrapMixin

from appliance.domain.errors import HsmRefusedError
from hsm_config.pkcs11 import templates
from hsm_config.pkcs11.key_exposure import refuse_readable
from hsm_config.pkcs11.master_keys import label_of
from hsm_config.pkcs11.templates import Template

_T = TypeVar("_T")
_TRANSPORT_BITS: Final = 3072
_TRANSPORT_PUBLIC: Final[Template] = {Attribute.WRAP: True, Attribute.VERIFY: False}
_TRANSPORT_PRIVATE: Final[Template] = {
    Attribute.PRIVATE: True,
    Attribute.SENSITIVE: True,
    Attribute.EXTRACTABLE: False,
    Attribute.UNWRAP: True,
    Attribute.DECRYPT: False,
    Attribute.SIGN: False,
}
_METHODS: Final = (Mechanism.RSA_PKCS_OAEP, Mechanism.RSA_PKCS)
"""How a master key travels, in the order of preference."""


def transport(master: pkcs11.SecretKey, receiver: pkcs11.Session, version: int) -> None:
    """Copy a master key that may still leave its token into another one.

    Args:
        master: extractable.
        receiver: logged in, read-write; it has no master key of that version.
        version: of the key.

    Raises:
        HsmRefusedError: the tokens have no way in common, or the receiver lets the
            key be read or leave; it is destroyed there then.
        PKCS11Error: a token failed.
    """
    sender = master.session
    method = way_between(sender, receiver)
    public, private = receiver.generate_keypair(
        KeyType.RSA,
        _TRANSPORT_BITS,
        capabilities=templates.UNSAID,
        public_template=_TRANSPORT_PUBLIC,
        private_template=_TRANSPORT_PRIVATE,
    )
    try:
        wrapper = sender.create_object(
            {
                Attribute.CLASS: ObjectClass.PUBLIC_KEY,
                Attribute.KEY_TYPE: KeyType.RSA,
                Attribute.TOKEN: False,
                Attribute.MODULUS: public[Attribute.MODULUS],
                Attribute.PUBLIC_EXPONENT: public[Attribute.PUBLIC_EXPONENT],
                **_TRANSPORT_PUBLIC,
            }
        )
        try:
            blob = _as(WrapMixin, wrapper).wrap_key(master, mechanism=method)
        finally:
            wrapper.destroy()
        label = label_of(version)
        arrived = _as(UnwrapMixin, private).unwrap_key(
            ObjectClass.SECRET_KEY,
            KeyType.AES,
            blob,
            mechanism=method,
            id=label.encode(),
            label=label,
            store=True,
            capabilities=templates.UNSAID,
            template=templates.MASTER,
        )
        try:
            refuse_readable(arrived)
        except HsmRefusedError:
            arrived.destroy()
            raise
    finally:
        private.destroy()
        public.destroy()


def way_between(sender: pkcs11.Session, receiver: pkcs11.Session) -> Mechanism:
    """By which mechanism a master key travels from one token to another.

    Raises:
        HsmRefusedError: the tokens have none in common.
        PKCS11Error: a token failed.
    """
    both = [one.token.slot.get_mechanisms() for one in (sender, receiver)]
    for method in _METHODS:
        if all(method in mechanisms for mechanisms in both):
            return method
    msg = (
        f"the tokens {sender.token.label} and {receiver.token.label} have no RSA "
        "mechanism in common by which a master key travels"
    )
    raise HsmRefusedError(msg)


def seal(master: pkcs11.SecretKey) -> None:
    """Switch CKA_EXTRACTABLE off, for good.

    Raises:
        HsmRefusedError: the token leaves it on.
        PKCS11Error: the token failed.
    """
    if master[Attribute.EXTRACTABLE]:
        master[Attribute.EXTRACTABLE] = False
    if master[Attribute.EXTRACTABLE]:
        msg = f"master key {master.label} stays extractable, whatever is asked"
        raise HsmRefusedError(msg)


def _as(mixin: type[_T], key: Any) -> _T:
    """A key that may do something, by the binding's type of it.

    Raises:
        HsmRefusedError: it may not.
    """
    if not isinstance(key, mixin):
        msg = "a key for transport may neither wrap nor unwrap"
        raise HsmRefusedError(msg)
    return key

"""Attributes of the keys that we make and unwrap, and none by default.

The binding adds attributes of its own choice to a template, and some modules
refuse those (SoftHSM: VERIFY or WRAP of a private key that is unwrapped). So
each template says all that matters, and `ExplicitTemplates` adds nothing.
"""

from typing import Any, Final, TypeAlias

from pkcs11 import Attribute, MechanismFlag, ObjectClass
from pkcs11.attributes import AttributeMapper, Handler, handle_bytes

Template: TypeAlias = dict[Attribute, Any]
"""Attributes and their values; not to be changed once made."""

UNSAID: Final = MechanismFlag(0)
"""For the binding's argument `capabilities`, which our templates do not use: it
would otherwise choose some by the key's type."""

_VENDOR: Final = 0x80000000
"""CKA_VENDOR_DEFINED. Source: PKCS#11 2.40, 4.1.2."""


class ExplicitTemplates(AttributeMapper):
    """Hands templates on as they are; vendors' attributes are plain bytes."""

    def public_key_template(
        self,
        *,
        capabilities: MechanismFlag | int,  # noqa: ARG002 (the parent's form)
        id_: bytes | None,
        label: str | None,
        store: bool,
    ) -> dict[Attribute, Any]:
        """Class, name and place of a public key."""
        return _named({Attribute.CLASS: ObjectClass.PUBLIC_KEY}, id_, label, store)

    def private_key_template(
        self,
        *,
        capabilities: MechanismFlag | int,  # noqa: ARG002 (the parent's form)
        id_: bytes | None,
        label: str | None,
        store: bool,
    ) -> dict[Attribute, Any]:
        """Class, name and place of a private key."""
        return _named({Attribute.CLASS: ObjectClass.PRIVATE_KEY}, id_, label, store)

    def secret_key_template(
        self,
        *,
        capabilities: MechanismFlag | int,  # noqa: ARG002 (the parent's form)
        id_: bytes | None,
        label: str | None,
        store: bool,
    ) -> dict[Attribute, Any]:
        """Class, name and place of a secret key."""
        return _named({Attribute.CLASS: ObjectClass.SECRET_KEY}, id_, label, store)

    def generic_key_template(
        self,
        base_template: dict[Attribute, Any],
        *,
        capabilities: MechanismFlag | int,  # noqa: ARG002 (the parent's form)
        id_: bytes | None,
        label: str | None,
        store: bool,
    ) -> dict[Attribute, Any]:
        """What an unwrapped key is, its name and place."""
        return _named(base_template, id_, label, store)

    def _handler(self, key: Attribute) -> Handler:
        if int(key) & _VENDOR:
            return handle_bytes
        return super()._handler(key)


def _named(
    base: dict[Attribute, Any], id_: bytes | None, label: str | None, store: object
) -> dict[Attribute, Any]:
    template = {**base, Attribute.TOKEN: bool(store)}
    if id_:
        template[Attribute.ID] = id_
    if label:
        template[Attribute.LABEL] = label
    return template


PUBLIC: Final[Template] = {
    Attribute.PRIVATE: False,
    Attribute.VERIFY: True,
    Attribute.ENCRYPT: False,
    Attribute.WRAP: False,
}
"""The public half of a signing pair."""

_SIGN_ONLY: Final[Template] = {
    Attribute.PRIVATE: True,
    Attribute.SENSITIVE: True,
    Attribute.SIGN: True,
    Attribute.DECRYPT: False,
    Attribute.UNWRAP: False,
}

RESIDENT_PRIVATE: Final[Template] = {
    **_SIGN_ONLY,
    Attribute.DERIVE: False,
    Attribute.EXTRACTABLE: False,
}
"""A private key that stays on its token."""

NEW_PRIVATE: Final[Template] = {
    **_SIGN_ONLY,
    Attribute.DERIVE: False,
    Attribute.EXTRACTABLE: True,
}
"""A private key that is made to be wrapped and destroyed at once."""

UNWRAPPED_PRIVATE: Final[Template] = {**_SIGN_ONLY, Attribute.EXTRACTABLE: False}
"""A private key that was unwrapped to sign once. DERIVE is left out: SoftHSM
refuses it here."""

_WRAPS: Final[Template] = {
    Attribute.PRIVATE: True,
    Attribute.SENSITIVE: True,
    Attribute.ENCRYPT: False,
    # What a wrapping key may also decrypt, it gives away in the clear.
    Attribute.DECRYPT: False,
    Attribute.SIGN: False,
    Attribute.VERIFY: False,
    Attribute.DERIVE: False,
}

MASTER: Final[Template] = {
    **_WRAPS,
    Attribute.WRAP: True,
    Attribute.UNWRAP: True,
    Attribute.EXTRACTABLE: False,
}
"""A master key (MWK)."""

NEW_W: Final[Template] = {
    **_WRAPS,
    Attribute.WRAP: True,
    Attribute.UNWRAP: False,
    Attribute.EXTRACTABLE: True,
}
"""W at its making: wraps one private key and is wrapped itself."""

UNWRAPPED_W: Final[Template] = {
    **_WRAPS,
    Attribute.WRAP: False,
    Attribute.UNWRAP: True,
    Attribute.EXTRACTABLE: False,
}
"""W to sign by: it unwraps one private key."""

MOVING_W: Final[Template] = {
    **_WRAPS,
    Attribute.WRAP: False,
    Attribute.UNWRAP: False,
    Attribute.EXTRACTABLE: True,
}
"""W on its way from one master key to another: it does nothing by itself."""

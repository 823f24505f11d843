"""The ways to wrap a key: what each needs of a token, and how a blob begins."""

from collections.abc import Container
from contextlib import suppress
from typing import Any, Final, NamedTuple

from pkcs11 import Mechanism
from pkcs11.mechanisms import GCMParams

from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.hsm_keys import WrapMethod
from hsm_config.profile import HsmKeys


class _Form(NamedTuple):
    """The mechanism of a method, and how many bytes precede its ciphertext."""

    mechanism: Mechanism
    iv_bytes: int


_FORMS: Final = {
    WrapMethod.AES_KWP: _Form(Mechanism.AES_KEY_WRAP_KWP, 0),
    WrapMethod.AES_KEY_WRAP_PAD_5649: _Form(Mechanism.AES_KEY_WRAP_PAD, 0),
    WrapMethod.AES_KEY_WRAP_PAD_3394: _Form(Mechanism.AES_KEY_WRAP_PAD, 0),
    WrapMethod.AES_GCM: _Form(Mechanism.AES_GCM, 12),
    WrapMethod.AES_CBC_PAD: _Form(Mechanism.AES_CBC_PAD, 16),
    WrapMethod.AES_KEY_WRAP: _Form(Mechanism.AES_KEY_WRAP, 0),
}
_SAME_FORMAT: Final = {
    WrapMethod.AES_KWP: WrapMethod.AES_KEY_WRAP_PAD_5649,
    WrapMethod.AES_KEY_WRAP_PAD_5649: WrapMethod.AES_KWP,
}
"""Two names of RFC 5649: who opens the one opens the other."""
_TAG_BITS: Final = 128


def iv_bytes(method: WrapMethod) -> int:
    """Length of the IV or nonce before the ciphertext, in bytes."""
    return _FORMS[method].iv_bytes


class WrapMethods:
    """The methods of one make of HSM.

    Args:
        keys: of its profile.
    """

    def __init__(self, keys: HsmKeys) -> None:
        self._keys = keys
        self.mechanisms = {method: _mechanism(keys, method) for method in WrapMethod}
        """The mechanism that each method needs of this make."""

    def pick(self, available: Container[int]) -> WrapMethod:
        """The first method of the make's preference that a token offers.

        Args:
            available: the mechanisms that the token lists.

        Raises:
            HsmRefusedError: there is none.
        """
        for method in self.wrapping(available):
            return method
        listed = ", ".join(self._keys.wrap) or "none: this make keeps keys resident"
        msg = f"no method to wrap keys by; the profile names {listed}"
        raise HsmRefusedError(msg)

    def opened(self, available: Container[int]) -> frozenset[WrapMethod]:
        """The methods whose blobs this make opens, its own and others'.

        Args:
            available: the mechanisms that the token lists.
        """
        named = {*self._keys.wrap, *self._keys.opens}
        twins = {_SAME_FORMAT[method] for method in named if method in _SAME_FORMAT}
        return frozenset(
            method for method in named | twins if self.mechanisms[method] in available
        )

    def wrapping(self, available: Container[int]) -> list[WrapMethod]:
        """The methods by which this make wraps a pair's private key, best first.

        Args:
            available: the mechanisms that the token lists.
        """
        return [one for one in self._keys.wrap if self.mechanisms[one] in available]

    def parameters(self, method: WrapMethod, iv: bytes) -> dict[str, Any]:
        """The binding's arguments to wrap or unwrap by a method.

        Args:
            method: which.
            iv: `iv_bytes(method)` bytes.
        """
        parameter: object = iv or None
        if method is WrapMethod.AES_GCM:
            parameter = GCMParams(iv, None, _TAG_BITS)
        return {"mechanism": self.mechanisms[method], "mechanism_param": parameter}


def _mechanism(keys: HsmKeys, method: WrapMethod) -> Mechanism:
    if method in keys.wrap_numbers:
        return _numbered(keys.wrap_numbers[method])
    twin = _SAME_FORMAT.get(method)
    if method not in keys.wrap:
        if method in keys.opens:
            return _numbered(keys.opens[method])
        if twin is not None and (twin in keys.opens or twin in keys.wrap):
            return _mechanism(keys, twin)
    return _FORMS[method].mechanism


def _numbered(number: int) -> Mechanism:
    """A mechanism by its number, also one that the binding's enumeration lacks.

    The binding takes members of that enumeration alone, and reads their number.
    """
    with suppress(ValueError):
        return Mechanism(number)
    mechanism = int.__new__(Mechanism, number)
    mechanism._name_ = f"VENDOR_{number:#x}"
    mechanism._value_ = number
    return mechanism

"""Signatures by a key that lives outside the HSM: six PKCS#11 calls for one of them.

The key is unwrapped, used and destroyed, as `Wrapping.unwrapped` has it; what
differs is that nothing is asked of the token but that. Of several signatures each
one more takes two calls.
"""

from collections.abc import Callable, Iterable
from typing import Final, cast

import pkcs11
from pkcs11 import Attribute, KeyType, ObjectClass
from pkcs11.exceptions import PKCS11Error
from pkcs11.types import UnwrapMixin

from appliance.domain.errors import ErrorCode, HsmRefusedError
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    SignatureScheme,
    WrapMethod,
    WrappedKey,
)
from hsm_config.pkcs11 import signatures, templates
from hsm_config.pkcs11.errors import said_no
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError, private_template
from hsm_config.pkcs11.raw_pkcs11 import PackedTemplate, SessionCalls
from hsm_config.pkcs11.templates import Template
from hsm_config.pkcs11.wrap_mechanisms import WrapMethods, iv_bytes
from hsm_config.profile import HsmProfile


def _packed(kind: ObjectClass, key_type: KeyType, template: Template) -> PackedTemplate:
    named = {Attribute.CLASS: kind, Attribute.KEY_TYPE: key_type}
    return PackedTemplate({**named, Attribute.TOKEN: False, **template})


_W: Final = _packed(ObjectClass.SECRET_KEY, KeyType.AES, templates.UNWRAPPED_W)
_ECDSA: Final = signatures.MECHANISMS[SignatureScheme.ECDSA]
_PRIVATE: Final = {
    algorithm: _packed(
        ObjectClass.PRIVATE_KEY,
        KeyType.EC if algorithm.is_ec else KeyType.RSA,
        templates.UNWRAPPED_PRIVATE,
    )
    for algorithm in KeyAlgorithm
}


class OneUse:
    """Signs with wrapped keys, each of which is in the session for that only.

    Args:
        calls: of a session that is logged in.
        profile: the make.
    """

    def __init__(self, calls: SessionCalls, profile: HsmProfile) -> None:
        self._calls = calls
        self._methods = WrapMethods(profile.keys)
        self._quirks = profile.quirks

    def sign(
        self,
        key: WrappedKey,
        master: pkcs11.SecretKey,
        order: signatures.Order,
    ) -> bytes:
        """Unwrap a key, sign a digest with it, destroy it; see `sign_all`.

        Returns:
            As `signatures.sign`.
        """
        made: list[bytes] = []
        self.sign_all(key, master, (order,), made.append)
        return made[0]

    def sign_all(
        self,
        key: WrappedKey,
        master: pkcs11.SecretKey,
        orders: Iterable[signatures.Order],
        made: Callable[[bytes], object],
    ) -> None:
        """Unwrap a key, sign digests with it one after the other, destroy it.

        While it is there the key is sensitive, not extractable, sign only, a
        session object; it and W are destroyed whatever happens.

        Args:
            key: as it was made.
            master: the master key of its version, of the same session.
            orders: each digest and how to sign it (`signatures.order_for`).
            made: told each value, as `signatures.sign` gives it, before the next one
                is made.

        Raises:
            DoesNotUnwrapError: the token does not take a blob.
            HsmRefusedError: a master key that may not unwrap, or a public key that
                cannot be read.
            PKCS11Error: the token failed or refused.
        """
        if not isinstance(master, UnwrapMixin):
            msg = "that key may not unwrap"
            raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
        template = _PRIVATE[key.algorithm]
        if self._quirks.ec_unwrap_point is not None and key.algorithm.is_ec:
            with_point = private_template(key, self._quirks)
            template = _packed(ObjectClass.PRIVATE_KEY, KeyType.EC, with_point)
        w = self._unwrap(key.blob_w, cast(int, master.handle), key.method_w, _W)
        try:
            private = self._unwrap(key.blob_k, w, key.method_k, template)
            try:
                for order in orders:
                    raw = self._calls.sign(private, *order)
                    is_ecdsa = order.mechanism is _ECDSA
                    made(signatures.ecdsa_value(raw) if is_ecdsa else raw)
            finally:
                self._calls.destroy(private)
        finally:
            self._calls.destroy(w)

    def _unwrap(
        self, blob: bytes, by: int, method: WrapMethod, template: PackedTemplate
    ) -> int:
        """The handle of an unwrapped key.

        Raises:
            DoesNotUnwrapError: the token does not take the blob.
            PKCS11Error: the token failed.
        """
        size = iv_bytes(method)
        how = self._methods.parameters(method, blob[:size])
        mechanism, parameter = how["mechanism"], how["mechanism_param"]
        try:
            return self._calls.unwrap(by, mechanism, parameter, blob[size:], template)
        except PKCS11Error as exc:
            reason = said_no(exc)
        raise DoesNotUnwrapError(reason, ErrorCode.SIGNING_FAILED)

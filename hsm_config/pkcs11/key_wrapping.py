"""Keys that live outside the HSM: made, wrapped, unwrapped for one use, destroyed.

A user's private key is wrapped by a key W of its own, W by the master key (MWK)
that never leaves the token. In the HSM all but the master key are session
objects, sensitive, and gone when the block that needed them ends. Source: design §4.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, cast

import pkcs11
from cryptography.hazmat.primitives.asymmetric import ec
from pkcs11 import Attribute, KeyType, ObjectClass
from pkcs11.exceptions import PKCS11Error
from pkcs11.types import UnwrapMixin, WrapMixin

from appliance.domain.errors import ErrorCode, HsmRefusedError
from appliance.domain.keys.hsm_keys import KeyAlgorithm, WrapMethod, WrappedKey
from hsm_config.pkcs11 import signatures, templates
from hsm_config.pkcs11.errors import said_no
from hsm_config.pkcs11.key_exposure import refuse_readable
from hsm_config.pkcs11.key_pairs import (
    generate_pair,
    load_spki,
    point_attribute,
    read_public,
    spki,
)
from hsm_config.pkcs11.templates import Template
from hsm_config.pkcs11.wrap_mechanisms import WrapMethods, iv_bytes
from hsm_config.profile import HsmProfile, HsmQuirks

_W_BITS: Final = 256


class DoesNotUnwrapError(HsmRefusedError):
    """A blob that this token does not open.

    Altered, of another key, or the token is in trouble: modules do not tell.
    """


def private_template(key: WrappedKey, quirks: HsmQuirks) -> Template:
    """The template of an unwrapped private key, with what the make wants besides.

    Args:
        key: which.
        quirks: of the make.

    Raises:
        HsmRefusedError: its public key is of another kind.
    """
    attribute = quirks.ec_unwrap_point
    if not key.algorithm.is_ec or attribute is None:
        return templates.UNWRAPPED_PRIVATE
    public = load_spki(key.spki)
    if not isinstance(public, ec.EllipticCurvePublicKey):
        msg = "a wrapped EC key has another kind of public key"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    point = point_attribute(public)
    return {**templates.UNWRAPPED_PRIVATE, cast(Attribute, attribute): point}


class Wrapping:
    """Wraps and unwraps keys as one make of HSM does.

    Args:
        profile: the make.
    """

    def __init__(self, profile: HsmProfile) -> None:
        self.methods = WrapMethods(profile.keys)
        self._quirks = profile.quirks

    def wrap(self, key: pkcs11.Key, by: pkcs11.SecretKey, method: WrapMethod) -> bytes:
        """Wrap a key, under a fresh IV where the method has one.

        Args:
            key: extractable.
            by: a key that may wrap.
            method: how.

        Returns:
            The blob: IV, if any, and ciphertext.

        Raises:
            HsmRefusedError: `by` may not wrap.
            PKCS11Error: the token failed or refused.
        """
        if not isinstance(by, WrapMixin):
            msg = "that key may not wrap"
            raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
        iv = secrets.token_bytes(iv_bytes(method))
        return iv + bytes(by.wrap_key(key, **self.methods.parameters(method, iv)))

    def wrap_out(
        self, key: pkcs11.Key, session: pkcs11.Session, method: WrapMethod
    ) -> bytes:
        """Wrap a key by one that was made for this alone, which is lost then.

        Raises:
            PKCS11Error: the token failed or refused.
        """
        w = _make_w(session)
        try:
            return self.wrap(key, w, method)
        finally:
            w.destroy()

    def make(
        self,
        session: pkcs11.Session,
        algorithm: KeyAlgorithm,
        master: tuple[int, pkcs11.SecretKey],
        method: WrapMethod,
    ) -> WrappedKey:
        """Make a key pair that leaves nothing in the HSM.

        Args:
            session: logged in, read-write.
            algorithm: kind of the pair.
            master: version and handle of the master key that wraps.
            method: how both keys are wrapped.

        Returns:
            The pair, not tried yet.

        Raises:
            HsmRefusedError: the public key cannot be read.
            PKCS11Error: the token failed.
        """
        version, by = master
        with ExitStack() as made:
            w = _make_w(session)
            made.callback(w.destroy)
            public, private = generate_pair(session, algorithm, templates.NEW_PRIVATE)
            made.callback(public.destroy)
            made.callback(private.destroy)
            return WrappedKey(
                algorithm=algorithm,
                spki=spki(read_public(public)),
                master=version,
                blob_w=self.wrap(w, by, method),
                method_w=method,
                blob_k=self.wrap(private, w, method),
                method_k=method,
            )

    def generate(
        self,
        session: pkcs11.Session,
        algorithm: KeyAlgorithm,
        master: tuple[int, pkcs11.SecretKey],
        method: WrapMethod,
    ) -> WrappedKey:
        """Make a key pair as `make` does, and try it.

        Returns:
            The pair, after it was unwrapped again, found unreadable, and has signed.

        Raises:
            HsmRefusedError: the unwrapped key can be read, or does not sign.
            PKCS11Error: the token failed.
        """
        key = self.make(session, algorithm, master, method)
        with self.unwrapped(key, master[1]) as again:
            refuse_readable(again)
            signatures.self_test(again, load_spki(key.spki))
        return key

    @contextmanager
    def unwrapped(
        self, key: WrappedKey, master: pkcs11.SecretKey
    ) -> Iterator[pkcs11.PrivateKey]:
        """Have a wrapped private key in the session, to look at or sign with.

        To sign with it once, `OneUse` is quicker.

        Args:
            key: as it was made.
            master: the master key of its version.

        Yields:
            The private key: sensitive, not extractable, sign only, a session
            object. It and W are destroyed when the block ends, however it does.

        Raises:
            DoesNotUnwrapError: the token does not take a blob.
            HsmRefusedError: the public key cannot be read.
            PKCS11Error: the token failed.
        """
        kind = KeyType.EC if key.algorithm.is_ec else KeyType.RSA
        template = private_template(key, self._quirks)
        with (
            self._unwrapped_w(key, master) as w,
            self._unwrapped(
                key.blob_k, w, key.method_k, (ObjectClass.PRIVATE_KEY, kind), template
            ) as private,
        ):
            yield private

    def rewrap(
        self,
        blob_w: bytes,
        method_w: WrapMethod,
        old: pkcs11.SecretKey,
        new: pkcs11.SecretKey,
        method: WrapMethod,
    ) -> bytes:
        """Wrap W by another master key; no password and no user's key is needed.

        Args:
            blob_w: W, wrapped by the old master key.
            method_w: how.
            old: the old master key.
            new: the new one.
            method: how the new one wraps.

        Returns:
            W, wrapped by the new master key.

        Raises:
            DoesNotUnwrapError: the token does not take the blob.
            PKCS11Error: the token failed.
        """
        kind = (ObjectClass.SECRET_KEY, KeyType.AES)
        with self._unwrapped(blob_w, old, method_w, kind, templates.MOVING_W) as w:
            return self.wrap(w, new, method)

    @contextmanager
    def _unwrapped_w(
        self, key: WrappedKey, master: pkcs11.SecretKey
    ) -> Iterator[pkcs11.SecretKey]:
        kind = (ObjectClass.SECRET_KEY, KeyType.AES)
        with self._unwrapped(
            key.blob_w, master, key.method_w, kind, templates.UNWRAPPED_W
        ) as w:
            yield w

    @contextmanager
    def _unwrapped(
        self,
        blob: bytes,
        by: pkcs11.SecretKey,
        method: WrapMethod,
        kind: tuple[ObjectClass, KeyType],
        template: Template,
    ) -> Iterator[Any]:
        """Have an unwrapped key in the session for as long as the block lasts.

        Raises:
            DoesNotUnwrapError: the token does not take the blob.
            HsmRefusedError: `by` may not unwrap.
            PKCS11Error: the token failed, or the key cannot be destroyed.
        """
        if not isinstance(by, UnwrapMixin):
            msg = "that key may not unwrap"
            raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
        size = iv_bytes(method)
        try:
            key = by.unwrap_key(
                *kind,
                blob[size:],
                capabilities=templates.UNSAID,
                template=template,
                **self.methods.parameters(method, blob[:size]),
            )
        except PKCS11Error as exc:
            reason = said_no(exc)
        else:
            try:
                yield key
            finally:
                key.destroy()
            return
        raise DoesNotUnwrapError(reason, ErrorCode.SIGNING_FAILED)


def _make_w(session: pkcs11.Session) -> pkcs11.SecretKey:
    return session.generate_key(
        KeyType.AES,
        _W_BITS,
        capabilities=templates.UNSAID,
        template=templates.NEW_W,
    )

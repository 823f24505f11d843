"""What a connection does with keys that live outside the HSM.

Plain functions of an `HsmConnection`, for the one HSM thread; `HsmSession` is
how callers reach them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from appliance.domain.keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    KeyReference,
    SignatureScheme,
    TokenRole,
    WrapMethod,
    WrappedKey,
)
from hsm_config.pkcs11 import signatures
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError, Wrapping
from hsm_config.pkcs11.raw_pkcs11 import SessionCalls
from hsm_config.pkcs11.unwrap_and_sign import OneUse
from worker.hsm.connection import HsmConnection


def generate(link: HsmConnection, algorithm: KeyAlgorithm) -> WrappedKey:
    """Make a pair, wrapped, under the newest master key.

    Raises:
        KeyNotFoundError: there is no master key.
        HsmRefusedError: the make wraps no keys, or the key can be read.
        PKCS11Error: the token failed.
    """
    session = link.session(TokenRole.FIRMA)
    version = link.masters.newest()
    master = version, link.masters.get(version)
    return _wrapping(link).generate(session, algorithm, master, _method(link))


def sign(
    link: HsmConnection,
    key: KeyReference | WrappedKey,
    digest: bytes,
    scheme: SignatureScheme,
    digest_algorithm: DigestAlgorithm = DigestAlgorithm.SHA256,
) -> bytes:
    """Sign a digest with a key, wherever the key is kept.

    Args:
        link: to the key's token.
        key: which.
        digest: as long as its algorithm says.
        scheme: how.
        digest_algorithm: what made the digest.

    Returns:
        As `signatures.sign`.

    Raises:
        KeyNotFoundError: there is no such key, or no such master key.
        HsmRefusedError: there are twins, a blob that does not open, or a key
            that may not sign so.
        PKCS11Error: the token failed.
    """
    if isinstance(key, KeyReference):
        private = link.private_key(key)
        return signatures.sign(private, digest, scheme, digest_algorithm)
    master = link.masters.get(key.master)
    calls = SessionCalls(link.module.running, link.session(TokenRole.FIRMA))
    one_use = OneUse(calls, link.token.profile)
    with _told_apart(link):
        return one_use.sign(key, master, digest, scheme, digest_algorithm)


def rewrap(
    link: HsmConnection,
    wrapped: tuple[bytes, WrapMethod],
    old: int,
    new: int,
    method: WrapMethod | None,
) -> tuple[bytes, WrapMethod]:
    """Wrap W by another master key, or by another method.

    Args:
        link: to the token.
        wrapped: W as a master key wraps it, and how.
        old: version of that master key.
        new: version of the one that shall.
        method: by which it shall; the make's own unless told.

    Raises:
        KeyNotFoundError: there is no such master key.
        HsmRefusedError: the blob does not open.
        PKCS11Error: the token failed.
    """
    method = method or _method(link)
    keys = link.masters.get(old), link.masters.get(new)
    with _told_apart(link):
        blob = _wrapping(link).rewrap(*wrapped, *keys, method)
    return blob, method


@contextmanager
def _told_apart(link: HsmConnection) -> Iterator[None]:
    """Tell a bad blob from a token in trouble: a healthy token still signs.

    Raises:
        HsmRefusedError: the blob does not open.
        PKCS11Error: the token failed.
    """
    try:
        yield
    except DoesNotUnwrapError:
        link.exercise()
        raise


def _method(link: HsmConnection) -> WrapMethod:
    mechanisms = link.session(TokenRole.FIRMA).token.slot.get_mechanisms()
    return _wrapping(link).methods.pick(mechanisms)


def _wrapping(link: HsmConnection) -> Wrapping:
    return Wrapping(link.token.profile)

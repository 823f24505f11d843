"""Master keys (MWK): the only keys of wrapped mode that stay on the token.

Version n is the AES-256 key labelled `rubrica-mwk-n` on the firma token. It
wraps and unwraps and does nothing else.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pkcs11
from pkcs11 import Attribute, KeyType, ObjectClass

from appliance.domain.errors import ErrorCode, HsmRefusedError, KeyNotFoundError
from hsm_config.pkcs11 import templates
from hsm_config.pkcs11.objects import find_label, search

MASTER_BITS: Final = 256
_LABEL: Final = re.compile(r"rubrica-mwk-([1-9][0-9]{0,8})")


def label_of(version: int) -> str:
    """Label, and CKA_ID in ASCII, of a version."""
    return f"rubrica-mwk-{version}"


class MasterKeys:
    """The master keys of a token; a handle is looked up once.

    Args:
        session: of the firma token, logged in.
    """

    def __init__(self, session: pkcs11.Session) -> None:
        self._session = session
        self._known: dict[int, pkcs11.SecretKey] = {}

    def versions(self) -> tuple[int, ...]:
        """Which versions the token has now, ascending.

        Raises:
            PKCS11Error: the search failed.
        """
        # Of the token alone: another session's W may be gone before it is looked at.
        wanted = {Attribute.CLASS: ObjectClass.SECRET_KEY, Attribute.TOKEN: True}
        keys = search(self._session, wanted)
        labels = (_LABEL.fullmatch(_label(key)) for key in keys)
        return tuple(sorted({int(label[1]) for label in labels if label}))

    def newest(self) -> int:
        """The version that new keys are wrapped by.

        Raises:
            KeyNotFoundError: there is none.
            PKCS11Error: the search failed.
        """
        versions = self.versions()
        if not versions:
            raise KeyNotFoundError("no master key (MWK)")
        return versions[-1]

    def get(self, version: int) -> pkcs11.SecretKey:
        """One version's key.

        Raises:
            KeyNotFoundError: the token has none of that version.
            HsmRefusedError: it has more than one.
            PKCS11Error: the search failed.
        """
        key = self._known.get(version)
        if key is None:
            key = self._known[version] = _find(self._session, version)
        return key

    def make(self, version: int, *, to_travel: bool = False) -> pkcs11.SecretKey:
        """Make a version, which the token must not have.

        Args:
            version: at least 1.
            to_travel: it may leave the token until `replicas.seal`.

        Raises:
            HsmRefusedError: it has.
            PKCS11Error: the token failed.
        """
        if version in self.versions():
            msg = f"there is a master key {version} already"
            raise HsmRefusedError(msg, ErrorCode.ALREADY_EXISTS)
        label = label_of(version)
        _generate(
            self._session,
            to_travel=to_travel,
            id=label.encode(),
            label=label,
            store=True,
        )
        return self.get(version)

    def destroy(self, version: int) -> int:
        """Destroy a version, for good; how many keys that were.

        Raises:
            PKCS11Error: the token failed.
        """
        self._known.pop(version, None)
        found = _all(self._session, version)
        for key in found:
            key.destroy()
        return len(found)


@contextmanager
def temporary(session: pkcs11.Session) -> Iterator[pkcs11.SecretKey]:
    """Have a master key that is on no token, to try an HSM with.

    Raises:
        PKCS11Error: the token failed.
    """
    key = _generate(session)
    try:
        yield key
    finally:
        key.destroy()


def _generate(
    session: pkcs11.Session, *, to_travel: bool = False, **names: Any
) -> pkcs11.SecretKey:
    return session.generate_key(
        KeyType.AES,
        MASTER_BITS,
        capabilities=templates.UNSAID,
        template={**templates.MASTER, Attribute.EXTRACTABLE: to_travel},
        **names,
    )


def _label(key: pkcs11.Object) -> str:
    return str(key.label or "") if isinstance(key, pkcs11.SecretKey) else ""


def _find(session: pkcs11.Session, version: int) -> pkcs11.SecretKey:
    found = _all(session, version)
    if not found:
        raise KeyNotFoundError(f"no master key (MWK) of version {version}")
    if len(found) > 1:
        msg = f"{len(found)} keys are labelled {label_of(version)}"
        raise HsmRefusedError(msg, ErrorCode.SIGNING_FAILED)
    return found[0]


def _all(session: pkcs11.Session, version: int) -> list[pkcs11.SecretKey]:
    named = find_label(session, label_of(version))
    return [key for key in named if isinstance(key, pkcs11.SecretKey)]

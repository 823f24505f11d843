"""Which restore of an installation a token serves: a number that the record has too.

A record that was brought back and the one that was believed lost would sign the same
requests with the same keys. Each take-over raises the number in the HSM and in the
record that takes over; workers of a record with a lower one use no key.

The number stands in the CKA_ID of a pair that signs nothing: every make keeps pairs,
few keep data objects. Nothing in PKCS#11 lets one of two hosts be the first to make an
object. So take-overs that are begun at once may find the same number free; each adds a
random mark, its pair stands beside the other's, and the greater one counts.
Source: docs/backup.md "One HSM, one record".
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import pkcs11
from pkcs11 import Attribute
from pkcs11.exceptions import ObjectHandleInvalid, PKCS11Error

from appliance.domain.errors import HsmRefusedError, KeyNotFoundError
from appliance.domain.keys.generation import NONE, Generation
from hsm_config.pkcs11 import objects
from hsm_config.provisioning.signing_token import KEEP_ALIVE_ALGORITHM

LABEL: Final = "rubrica-generation"
_ID: Final = LABEL.encode() + b"-"
_LOOKS: Final = 5
"""How often pairs are looked for while others are making and destroying some."""


def read(session: pkcs11.Session) -> Generation:
    """The last take-over; `NONE` when there was none.

    Args:
        session: of a firma token, logged in.

    Raises:
        HsmRefusedError: a pair that is labelled as one is of no take-over.
        PKCS11Error: the token failed.
    """
    return max(_all(session), default=NONE)


def write(session: pkcs11.Session, generation: Generation) -> None:
    """Give a token a take-over, unless it has that or a greater one.

    Where it got a greater one meanwhile, that one stays: `read` tells.

    Args:
        session: of a firma token, logged in, read-write.
        generation: its number at least 1.

    Raises:
        HsmRefusedError: the new pair does not fit together; or as `read`.
        KeyNotFoundError: half of it is missing.
        PKCS11Error: the token failed.
    """
    if generation > read(session):
        # The lower ones go when it stands: killed between, the higher one counts.
        try:
            objects.make_anew(session, _id(generation), LABEL, KEEP_ALIVE_ALGORITHM)
        except (KeyNotFoundError, PKCS11Error):
            # Who made a greater one destroyed it before it was tried.
            if read(session) <= generation:
                raise
    # Of one look: what comes after it may be greater, and stays.
    found = sorted(set(_all(session)))
    for older in found[:-1]:
        with suppress(ObjectHandleInvalid):  # somebody else just destroyed it
            objects.destroy(session, _id(older))


def carry(session: pkcs11.Session, others: Iterable[pkcs11.Session]) -> None:
    """Give other tokens the take-over of one.

    Raises:
        HsmRefusedError, KeyNotFoundError: as `write`.
        PKCS11Error: a token failed.
    """
    generation = read(session)
    for other in others if generation > NONE else ():
        write(other, generation)


def _id(generation: Generation) -> bytes:
    return _ID + str(generation).encode()


def _all(session: pkcs11.Session) -> list[Generation]:
    """Each that the token has, a pair's twice.

    Raises:
        HsmRefusedError: as `read`.
        PKCS11Error: the token failed.
    """
    for _ in range(_LOOKS):
        # One that is destroyed meanwhile made room for one that was not found yet.
        with suppress(ObjectHandleInvalid):
            return _found(session)
    return _found(session)


def _found(session: pkcs11.Session) -> list[Generation]:
    ids = [bytes(key[Attribute.ID]) for key in objects.find_label(session, LABEL)]
    return [_parsed(each) for each in ids if each.startswith(_ID)]


def _parsed(cka_id: bytes) -> Generation:
    try:
        return Generation.parse(cka_id.removeprefix(_ID).decode())
    except ValueError as exc:
        # It may be of a newer version: to pass over it could let two records sign.
        msg = (
            f"the firma token has a key labelled {LABEL} of no take-over, CKA_ID "
            f"{cka_id.hex()}: no key is used before it is known whose it is; if it is "
            "nobody's, destroy it with the HSM's own tools"
        )
        raise HsmRefusedError(msg) from exc

"""Which restore of an installation a token serves: a number that the record has too.

A record that was brought back and the one that was believed lost would sign the same
requests with the same keys. Each take-over raises the number in the HSM and in the
record that takes over; workers of a record with a lower one use no key.

The number stands in the CKA_ID of a pair that signs nothing: every make keeps pairs,
few keep data objects. Source: docs/backup.md "One HSM, one record".
"""

from collections.abc import Iterable
from typing import Final

import pkcs11
from pkcs11 import Attribute

from hsm_config import objects
from hsm_config.firma_keys import KEEP_ALIVE_ALGORITHM

LABEL: Final = "rubrica-generation"
_ID: Final = LABEL.encode() + b"-"


def read(session: pkcs11.Session) -> int:
    """The number of the last take-over; 0 when there was none.

    Args:
        session: of a firma token, logged in.

    Raises:
        PKCS11Error: the token failed.
    """
    return max(_numbers(session), default=0)


def write(session: pkcs11.Session, number: int) -> None:
    """Give a token a number, unless it has that or a higher one.

    Args:
        session: of a firma token, logged in, read-write.
        number: at least 1.

    Raises:
        HsmRefusedError: the new pair does not fit together.
        PKCS11Error: the token failed.
    """
    if number > read(session):
        # The lower ones go when it stands: killed between, the higher one counts.
        objects.make_anew(session, _id(number), LABEL, KEEP_ALIVE_ALGORITHM)
    newest = read(session)
    for older in set(_numbers(session)) - {newest}:
        objects.destroy(session, _id(older))


def carry(session: pkcs11.Session, others: Iterable[pkcs11.Session]) -> None:
    """Give other tokens the number of one.

    Raises:
        HsmRefusedError: as `write`.
        PKCS11Error: a token failed.
    """
    number = read(session)
    for other in others if number else ():
        write(other, number)


def _id(number: int) -> bytes:
    return _ID + str(number).encode()


def _numbers(session: pkcs11.Session) -> list[int]:
    ids = [bytes(key[Attribute.ID]) for key in objects.find_label(session, LABEL)]
    return [int(each.removeprefix(_ID)) for each in ids if each.startswith(_ID)]

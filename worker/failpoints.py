"""Named points at which a test can have a worker die, or freeze.

They do nothing unless the variable names a folder, which `rubrica up` and the
units never set. A test puts a file named like a point there; the first worker
that passes removes it and dies as by `kill -9`, or stops as by `kill -STOP`
when the file says so. A file named like a point and a request or task
(`before_sign-7`) is for that one alone: empty, it stays and kills every worker
that passes with it; saying something, it is obeyed once, like the others.
"""

import os
import signal
from pathlib import Path
from typing import Final

VARIABLE: Final = "RUBRICA_TEST_CRASH_POINTS"
OPENING: Final = "opening"
"""An activation is in the host's journal; its seal is still shut."""
BEFORE_SIGN: Final = "before_sign"
"""The intent is committed; the key was not used."""
AFTER_SIGN: Final = "after_sign"
"""The key was used; its signature is stored nowhere."""
RECORDED: Final = "recorded"
"""The signature is stored; the host's journal does not say so."""
KEYED: Final = "keyed"
"""The signature is stored; the document is not."""
STAMPED: Final = "stamped"
"""The signature's timestamp was made; it is stored nowhere."""
FILE_WRITTEN: Final = "file_written"
"""The signed document is stored; the record does not name it yet."""
PUBLISHED: Final = "published"
"""`firmada` is committed; nobody was told."""
POINTS: Final = (
    OPENING,
    BEFORE_SIGN,
    AFTER_SIGN,
    RECORDED,
    KEYED,
    FILE_WRITTEN,
    PUBLISHED,
)
"""Those of a signature, in the order in which it passes them."""
UPKEEP_STORED: Final = "upkeep_stored"
"""A later version of a document is stored; the record does not name it yet."""
FETCHED: Final = "fetched"
"""A server outside has given something; it is stored nowhere."""
DELIVERED: Final = "delivered"
"""What a server outside gave is stored; nobody was told."""
KEY_MADE: Final = "key_made"
"""A new key was made and tested; nobody has certified it."""
CERTIFIED: Final = "certified"
"""A new key is certified; the record knows neither (reliability C12)."""
SAMPLED: Final = "sampled"
"""A new key has signed the sample; nobody has verified it."""
ISSUED: Final = "issued"
"""The credential is committed; nobody was told."""
ISSUE_POINTS: Final = (KEY_MADE, CERTIFIED, SAMPLED, ISSUED)
"""Those of an enrolment, in the order in which it passes them."""
REVOCATION_SIGNED: Final = "revocation_signed"
"""CRL and OCSP answers of a revocation are signed; nothing of it is stored."""
REVOCATION_STORED: Final = "revocation_stored"
"""All of a revocation is stored; nobody was told."""
WEBHOOK_SENT: Final = "webhook_sent"
"""A receiver has answered; the record does not know."""
MAIL_TAKEN: Final = "mail_taken"
"""The server has a mail; the record does not know it."""
BATCH_GROUP: Final = "batch_group"
"""The outcome of a group of a batch's documents is committed; others may be left."""
FREEZE: Final = "freeze"
"""Content of a file that stops the worker instead of killing it."""
ONCE: Final = "once"
"""Content of a file of one request or task that kills one worker and no more."""
_KILLED: Final = 137


def crash_point(name: str, subject: object = None) -> None:
    """Die or freeze here if a test asked for it.

    Args:
        name: one of the points.
        subject: the request or task in hand, where there is one.
    """
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return
    _obey(Path(folder, f"{name}-{subject}"), stays=True)
    _obey(Path(folder, name), stays=False)


def _obey(order: Path, *, stays: bool) -> None:
    """Do what a file wants, if it is there.

    Args:
        order: the file.
        stays: an empty one is not removed.
    """
    try:
        wish = order.read_text("ascii")
        # Whoever removes the file obeys it: exactly one worker a file.
        if wish or not stays:
            order.unlink()
    except FileNotFoundError:
        return
    if wish != FREEZE:
        os._exit(_KILLED)
    os.kill(os.getpid(), signal.SIGSTOP)

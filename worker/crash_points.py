"""Named points at which a test can have a worker die, or freeze.

They do nothing unless the variable names a folder, which `rubrica up` and the
units never set. A test puts a file named like a point there; the first worker
that passes removes it and dies as by `kill -9`, or stops as by `kill -STOP`
when the file says so. A file named like a point and a request (`before_sign-7`)
stays, and kills every worker that passes with that request.
"""

import os
import signal
from pathlib import Path
from typing import Final

VARIABLE: Final = "RUBRICA_TEST_CRASH_POINTS"
BEFORE_SIGN: Final = "before_sign"
"""The intent is committed; the key was not used."""
AFTER_SIGN: Final = "after_sign"
"""The key was used; its signature is stored nowhere."""
KEYED: Final = "keyed"
"""The signature is stored; the document is not."""
FILE_WRITTEN: Final = "file_written"
"""The signed document is stored; the record does not name it yet."""
PUBLISHED: Final = "published"
"""`firmada` is committed; nobody was told."""
POINTS: Final = (BEFORE_SIGN, AFTER_SIGN, KEYED, FILE_WRITTEN, PUBLISHED)
"""Those of a signature, in the order in which it passes them."""
REVOCATION_SIGNED: Final = "revocation_signed"
"""CRL and OCSP answers of a revocation are signed; nothing of it is stored."""
REVOCATION_STORED: Final = "revocation_stored"
"""All of a revocation is stored; nobody was told."""
FREEZE: Final = "freeze"
"""Content of a file that stops the worker instead of killing it."""
_KILLED: Final = 137


def crash_point(name: str, request: int | None = None) -> None:
    """Die or freeze here if a test asked for it.

    Args:
        name: one of the points.
        request: the request in hand, where there is one.
    """
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return
    if Path(folder, f"{name}-{request}").exists():
        os._exit(_KILLED)
    order = Path(folder, name)
    try:
        wish = order.read_text("ascii")
        # Whoever removes the file obeys it: exactly one worker a file.
        order.unlink()
    except FileNotFoundError:
        return
    if wish != FREEZE:
        os._exit(_KILLED)
    os.kill(os.getpid(), signal.SIGSTOP)

"""Named points at which a test can have a worker die.

They do nothing unless the variable names a folder, which `rubrica up` and the
units never set. A test puts a file named like a point there; the first worker
that passes removes it and dies as by `kill -9`.
"""

import os
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
_KILLED: Final = 137


def crash_point(name: str) -> None:
    """Die here if a test asked for it."""
    folder = os.environ.get(VARIABLE)
    if folder is None:
        return
    try:
        # Whoever removes the file dies: exactly one worker a file.
        Path(folder, name).unlink()
    except FileNotFoundError:
        return
    os._exit(_KILLED)

"""The visit key of a trial that is open to a private network.

Whoever has it is shown the demo people's passwords, codes and mails.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from appliance.system.durable_files import write_durably

_BYTES: Final = 18
_LENGTH: Final = 24
"""Characters that so many bytes have in Base64."""


def read_visit_key(path: Path) -> str:
    """Read the visit key.

    Args:
        path: of its file.

    Returns:
        The key; empty where there is none, or one too short to be a secret, as an
        earlier version left it whose disk was full.

    Raises:
        OSError: the file is there and cannot be read.
    """
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        key = path.read_text(encoding="ascii").strip()
        if len(key) >= _LENGTH:
            return key
    return ""


def keep_visit_key(path: Path) -> None:
    """Make a visit key, for its owner's eyes, unless there is one.

    Args:
        path: of its file; its folder is its owner's alone.
    """
    if not read_visit_key(path):
        key = secrets.token_urlsafe(_BYTES).encode()
        write_durably(path, [key], lambda file: os.fchmod(file, 0o600))

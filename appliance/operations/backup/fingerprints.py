"""Which keys a backup's record was sealed with, told without telling them.

Record and secrets each say in their first member which keys their installation had
then, so that a restore refuses two that do not belong together before it begins.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from appliance.secrets.key_files import read_key_ring
from appliance.settings import Settings, SettingsError

KEYS: Final = "keys"
"""Member of what a backup says of itself."""
_DOMAIN: Final = b"rubrica/backup/fingerprint/1\0"
_HEX_DIGITS: Final = 32

Fingerprints = dict[str, list[str]]
"""By key of `[secrets]`: that of each version, the one in use first."""


def fingerprints_of(settings: Settings) -> Fingerprints:
    """Those of an installation's keys; a file that cannot be read is left out."""
    files = {
        "pepper_file": settings.secrets.pepper_file,
        "data_key_file": settings.secrets.data_key_file,
        "document_key_file": settings.document_key_file,
        "lookup_key_file": settings.secrets.lookup_key_file,
    }
    found: Fingerprints = {}
    for key, path in files.items():
        # Who backs up the record alone may have no right to read it.
        with suppress(SettingsError):
            ring = read_key_ring(path)
            found[key] = [_fingerprint(ring.keys[each]) for each in ring.versions]
    return found


def fingerprints_in(about: Mapping[str, Any]) -> Fingerprints:
    """Those in what a backup says of itself; what is none is left out."""
    told = about.get(KEYS)
    return {
        key: [str(each) for each in versions]
        for key, versions in (told.items() if isinstance(told, dict) else ())
        if isinstance(versions, list)
    }


def differing(record: Fingerprints, secrets: Fingerprints) -> list[str]:
    """Keys of `[secrets]` that a record needs, and that are others in the secrets.

    Args:
        record: those of its time.
        secrets: those that there are.

    Returns:
        Where the version in use is not among the secrets'; one that either side says
        nothing of is none of them.
    """
    return [
        key
        for key, versions in record.items()
        if versions and key in secrets and versions[0] not in secrets[key]
    ]


def _fingerprint(key: bytes) -> str:
    """Of 32 random bytes, which nobody finds by guessing."""
    return hashlib.sha256(_DOMAIN + key).hexdigest()[:_HEX_DIGITS]

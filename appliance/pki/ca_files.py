"""Certificates of the installation's own CA, as `rubrica hsm init` left them."""

from pathlib import Path

import structlog
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.errors import FilesAwayError
from appliance.settings import SettingsError, certificate_file

_log = structlog.get_logger(__name__)


def read_certificate(path: Path) -> bytes | None:
    """Read the certificate of a PEM file, DER; None where there is none yet.

    Args:
        path: of the file.

    Raises:
        FilesAwayError: what is there cannot be read, or may be
            written by others than its owner.
    """
    try:
        made = certificate_file.read_certificate(path)
    except SettingsError as exc:
        if isinstance(exc.__cause__, FileNotFoundError):
            return None
        _log.error("ca.certificate_unreadable", path=str(path))
        raise FilesAwayError from exc
    return made.public_bytes(Encoding.DER)

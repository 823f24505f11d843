"""Certificates of the installation's own CA, as `rubrica hsm init` left them."""

from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.settings import SettingsError, certificate_file


def read_certificate(path: Path) -> bytes | None:
    """Read the certificate of a PEM file, DER; None where there is none yet.

    Args:
        path: of the file.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: what is there cannot be read, or may be
            written by others than its owner.
    """
    try:
        made = certificate_file.read_certificate(path)
    except SettingsError as exc:
        if isinstance(exc.__cause__, FileNotFoundError):
            return None
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
    return made.public_bytes(Encoding.DER)

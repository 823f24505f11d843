"""Certificates of the installation's own CA, as `rubrica hsm init` left them."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.errors import ApplianceError, ErrorCode


def read_certificate(path: Path) -> bytes | None:
    """Read the certificate of a PEM file, DER; None where there is none yet.

    Args:
        path: of the file.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: what is there cannot be read.
    """
    try:
        made = x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
    return made.public_bytes(Encoding.DER)

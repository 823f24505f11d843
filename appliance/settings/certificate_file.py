"""A certificate of the internal CA, in a file of `data_dir`."""

import os
from pathlib import Path
from typing import Final

from cryptography import x509

from appliance.settings.section import SettingsError

_WRITTEN_BY_OTHERS: Final = 0o022
"""Mode bits by which the group, or everybody, may write."""


def read_certificate(path: Path) -> x509.Certificate:
    """The certificate of a PEM file.

    Args:
        path: of the file.

    Raises:
        SettingsError: it is not there, cannot be read, may be written by others than
            its owner, or holds no certificate.
    """
    try:
        with path.open("rb") as file:
            mode, pem = os.fstat(file.fileno()).st_mode, file.read()
        if mode & _WRITTEN_BY_OTHERS:
            # Whoever puts another one there is the CA of this installation.
            msg = f"{path}: others may write it; mend its owner and mode"
            raise SettingsError(msg)
        return x509.load_pem_x509_certificate(pem)
    except FileNotFoundError as exc:
        msg = f"{path}: is not there; run `rubrica hsm init`"
        raise SettingsError(msg) from exc
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror}); mend its owner and mode"
        raise SettingsError(msg) from exc
    except ValueError as exc:
        msg = f"{path}: holds no certificate; bring it back from a backup"
        raise SettingsError(msg) from exc

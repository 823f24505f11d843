"""A certificate of the internal CA, in a file of `data_dir`."""

from pathlib import Path

from cryptography import x509

from appliance.settings.section import SettingsError


def read_certificate(path: Path) -> x509.Certificate:
    """The certificate of a PEM file.

    Args:
        path: of the file.

    Raises:
        SettingsError: it is not there, cannot be read, or holds no certificate.
    """
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError as exc:
        msg = f"{path}: is not there; run `rubrica hsm init`"
        raise SettingsError(msg) from exc
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror}); mend its owner and mode"
        raise SettingsError(msg) from exc
    except ValueError as exc:
        msg = f"{path}: holds no certificate; bring it back from a backup"
        raise SettingsError(msg) from exc

"""Certificates for the servers of a test, by openssl.

made = make_authority(folder)
made.certify(folder, "localhost")
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA of a test's own."""

    certificate: Path
    key: Path

    def certify(self, folder: Path, host: str) -> tuple[Path, Path]:
        """A certificate of a server and its key (PEM).

        Args:
            folder: where they go.
            host: its name, the only one that it has.
        """
        certificate, key = folder / "server.pem", folder / "server.key"
        _openssl(
            *("req", "-x509", *_KEY, "-keyout", key, "-out", certificate),
            *("-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-CA", self.certificate, "-CAkey", self.key, "-days", "2"),
        )
        key.chmod(0o600)
        return certificate, key


def make_authority(folder: Path, name: str = "ca") -> Authority:
    """Make a CA.

    Args:
        folder: where its files go.
        name: of it and its files.
    """
    made = Authority(folder / f"{name}.pem", folder / f"{name}.key")
    _openssl(
        *("req", "-x509", *_KEY, "-keyout", made.key, "-out", made.certificate),
        *("-subj", f"/CN={name}", "-days", "2"),
    )
    return made


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)

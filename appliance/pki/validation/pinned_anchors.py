"""Roots of outside CAs that a signing host believes, from a file of its own.

The trust store of the record lets chains be imported. That a key signs with such a
chain is for the host's operator to allow: nobody writes this file over the network.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.errors import ChainRefusedError, FilesAwayError
from appliance.pki.validation.certificate_rules import der_of, reading
from appliance.system.pinned_files import PinnedFile, Version

_log = structlog.get_logger(__name__)
_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL
)


class PinnedAnchors:
    """Certificates of a PEM file, read again whenever the file is another.

    Args:
        path: of the file; without it nothing is pinned.
    """

    def __init__(self, path: Path) -> None:
        self._file = PinnedFile(path)
        self._read_at: Version | None = None
        self._anchors: tuple[bytes, ...] = ()

    def certificates(self) -> tuple[bytes, ...]:
        """Every pinned root, DER.

        Raises:
            FilesAwayError: the file is there and cannot be read,
                or is not to be relied on.
        """
        try:
            version = self._file.version()
            if version != self._read_at:
                self._anchors = parse(self._file.path.read_bytes())
                self._read_at = version
        except FileNotFoundError:
            self._anchors, self._read_at = (), None
        except OSError as exc:
            _log.error("anchors.unreadable", path=str(self._file.path))
            raise FilesAwayError from exc
        return self._anchors


def parse(pem: bytes) -> tuple[bytes, ...]:
    """The certificates of a file; a damaged block is passed over, and so not believed.

    Args:
        pem: certificates, and any text between them.
    """
    anchors: list[bytes] = []
    for block in _PEM.findall(pem):
        try:
            with reading():
                anchors.append(der_of(x509.load_pem_x509_certificate(block)))
        except ChainRefusedError:
            continue
    return tuple(anchors)


def to_pem(anchors: Sequence[bytes]) -> bytes:
    """Roots as the file has them, each below its name and fingerprint.

    Args:
        anchors: DER.
    """
    blocks = []
    for der in anchors:
        root = x509.load_der_x509_certificate(der)
        sha256 = hashlib.sha256(der).hexdigest()
        # On one line, without dashes: a name begins no block.
        name = " ".join(root.subject.rfc4514_string().replace("-----", "").split())
        head = f"# {name}\n# SHA-256 {sha256}\n"
        blocks.append(head.encode() + root.public_bytes(Encoding.PEM))
    return b"".join(blocks)

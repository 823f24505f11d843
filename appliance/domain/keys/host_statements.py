"""Statements behind an activation key of format 2: what identity and host each sign.

A front believes such a key only with both signatures. The worker identity proves that
the HSM was there; its PIN and the database do not suffice, because the host signs too,
by a key that is in no HSM. The host's key does not suffice either: each statement is of
one X25519 key of one epoch, so no signature can be used for another key.

Each statement begins with a context of its own (domain separation), and no context is
the beginning of another.

Source: RFC 8785 (canonical JSON); RFC 8032 (Ed25519); RFC 5280, 4.1 (SPKI).
"""

from dataclasses import dataclass
from typing import Final

from appliance.domain.text.canonical_json import canonical_json

_BY_IDENTITY: Final = b"rubrica/host-activation-key/1/identity\0"
_BY_HOST: Final = b"rubrica/host-activation-key/1/host\0"


@dataclass(frozen=True, slots=True)
class HostStatement:
    """An activation key of format 2, and on whose word it is believed."""

    installation: str
    """The setting of that name."""
    host: str
    """Name of the signing host."""
    host_key: bytes
    """The host's Ed25519 public key, 32 bytes."""
    epoch: int
    """Number of a 60-second epoch."""
    public: bytes
    """The X25519 public key, 32 bytes."""
    identity: str
    """SHA-256, in hex, of the worker identity's SubjectPublicKeyInfo."""

    def by_identity(self) -> bytes:
        """Bytes that the worker identity signs, in the HSM."""
        return _BY_IDENTITY + canonical_json(self._claim)

    def by_host(self) -> bytes:
        """Bytes that the host's own key signs."""
        return _BY_HOST + canonical_json({**self._claim, "identity": self.identity})

    @property
    def _claim(self) -> dict[str, object]:
        return {
            "installation": self.installation,
            "host": self.host,
            "hostKey": self.host_key.hex(),
            "epoch": self.epoch,
            "public": self.public.hex(),
        }

"""Keys from files: what seals and finds secrets, and whom a front believes."""

from typing import Protocol

from appliance.domain.signing.activation import ActivationFormat


class Sealer(Protocol):
    """Keeps secrets of the database under a key from a file (design §4)."""

    def seal(self, secret: bytes, *, table: str, row: str, column: str) -> bytes:
        """Encrypt a value so that it opens only in its own place."""
        ...

    def open(self, sealed: bytes, *, table: str, row: str, column: str) -> bytes:
        """Decrypt what `seal` made for the same place.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: another key, another place, or
                an altered value.
        """
        ...


class LookupIndex(Protocol):
    """Finds secrets by a keyed hash, so that the database holds none."""

    def index(self, purpose: str, value: str) -> str:
        """Index of a value for one purpose, to be stored; 64 characters."""
        ...

    def indexes(self, purpose: str, value: str) -> tuple[str, ...]:
        """All that may stand stored for it, by each version; `index` first."""
        ...


class WorkerIdentities(Protocol):
    """The HSM's worker identities that this front has pinned (design §4)."""

    @property
    def version(self) -> object:
        """Another value once others are pinned."""
        ...

    def signed(self, identity: str, statement: bytes, signature: bytes) -> bool:
        """Whether a pinned identity signed a statement.

        Args:
            identity: SHA-256, in hex, of its SubjectPublicKeyInfo.
            statement: what was signed.
            signature: ECDSA (DER) or RSASSA-PKCS1-v1_5, over SHA-256.
        """
        ...


class AdmittedHostKeys(Protocol):
    """The signing hosts that this machine's fronts admit, each by its own key."""

    @property
    def version(self) -> object:
        """Another value once others are admitted."""
        ...

    @property
    def is_whole(self) -> bool:
        """False where it cannot be told, or not of all hosts, who is admitted."""
        ...

    def key_of(self, host: str) -> bytes | None:
        """Return a host's Ed25519 public key, 32 bytes; None if not admitted."""
        ...

    def signed(self, host: str, statement: bytes, signature: bytes) -> bool:
        """Return whether an admitted host signed a statement.

        Args:
            host: its name.
            statement: what was signed.
            signature: Ed25519.
        """
        ...


class OldestFormat(Protocol):
    """The oldest format of activations that counts on this machine, from a file."""

    @property
    def oldest(self) -> ActivationFormat:
        """The format, as the file says now."""
        ...

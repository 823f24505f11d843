"""This machine as a signing host: its key, and its own admission to its own fronts.

    own = prepare_own_host(settings)

Whoever prepares the HSM here, or runs all roles here, vouches for this machine. Fronts
of other machines admit it by `rubrica hsm admit`.
"""

import os
import socket
from dataclasses import dataclass
from typing import Final

from appliance.domain.signing.activation import ActivationFormat
from appliance.secrets.admitted_hosts import admit, listed
from appliance.secrets.host_key import make_host_key
from appliance.settings import Settings
from appliance.system.durable_files import write_durably

_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class OwnHost:
    """This signing host, and what was changed for it."""

    name: str
    public: bytes
    """Its Ed25519 public key, 32 bytes."""
    is_key_new: bool
    is_newly_admitted: bool
    """The fronts of this machine did not know it, or knew another key of it."""


def own_name() -> str:
    """Return the name by which this machine's signing workers are known."""
    return socket.gethostname()


def prepare_own_host(settings: Settings, *, here: bool = True) -> OwnHost:
    """Make this host's key where there is none, and admit the host on this machine.

    Args:
        settings: of the installation.
        here: admit it; else its key alone is made.

    Raises:
        SettingsError: the key cannot be used, or a file cannot be written.
    """
    key, is_new = make_host_key(settings.host_key_file)
    path, name = settings.signing_hosts_file, own_name()
    is_newly_admitted = here and listed(path).get(name) != key.public
    if is_newly_admitted:
        admit(path, name, key.public)
    return OwnHost(name, key.public, is_new, is_newly_admitted)


def pin_format(settings: Settings, oldest: ActivationFormat) -> None:
    """Write which format of activations is the oldest that counts on this machine.

    Args:
        settings: of the installation.
        oldest: the format.

    Raises:
        OSError: the file cannot be written.
    """
    path = settings.activation_format_file
    write_durably(
        path,
        [f"{oldest.value}\n".encode()],
        # Every role reads it, whatever the umask of who writes.
        lambda handle: os.fchmod(handle, _MODE),
    )

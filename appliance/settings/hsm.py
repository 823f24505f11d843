"""`[hsm]`: the HSM, its tokens, and the keys made in it."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode
from appliance.settings.section import Seconds, Section


class TokenSettings(Section):
    """One token of the HSM."""

    label: str
    """Its label."""
    pin_source: Literal["file", "credential", "environment", "prompt"] = "file"
    """Where its PIN is: `file` (see `pin_file`); `credential`, the systemd
    credential with the name of `pin_file`; `environment`, the variable
    `RUBRICA_PIN_` and the label in capitals, refused in PROD; `prompt`, asked for
    at the terminal, which only `rubrica hsm` can do."""
    pin_file: Path
    """File with its PIN, read once at the start of the worker. Of one in
    `/etc/rubrica/hsm`, what systemd hands over under its name is read in its place
    (see docs/hsm.md, "PINs")."""

    @property
    def so_pin_file(self) -> Path:
        """Where the security officer's PIN stands: beside the user's.

        Only `rubrica hsm init` reads it; keep it off the machine once all is made.
        """
        pin = self.pin_file
        return pin.with_name(f"{pin.stem}-so{pin.suffix}")


class ReplicaSettings(TokenSettings):
    """One more token behind the logical HSM "firma", with the same master keys."""

    module: Path | None = None
    """Its PKCS#11 module; the default is that of `hsm.firma`."""
    config: Path | None = None
    """Its module's own configuration file; the default is that of `hsm.firma`.
    A module has one: another configuration needs a module of its own."""


class HsmSettings(Section):
    """The HSM (see `hsm_config/profiles`)."""

    profile: str = "softhsm2"
    """Name of a profile in `hsm_config/profiles`, or a path to one."""
    module: Path | None = None
    """PKCS#11 module; the default is the profile's first that exists."""
    firma: TokenSettings
    """Token of the users' keys."""
    pki: TokenSettings
    """Token of the CA's key, with another PIN."""
    replicas: tuple[ReplicaSettings, ...] = Field(default=(), max_length=14)
    """More tokens that hold what `firma` holds (see docs/hsm-faults.md). A worker
    uses any that is there; worker n prefers the n-th."""
    softhsm_conf: Path | None = None
    """The module's own configuration file, where the profile has a `config_env`
    (SoftHSM: `SOFTHSM2_CONF`)."""
    sessions: int = Field(default=1, ge=1, le=64)
    """Sessions of each token that a worker process has open, and so how many calls
    it makes at once. More than one needs a module that several threads may call
    (`quirks.several_threads` of the profile; see docs/hsm.md, "Several sessions")."""
    keep_alive_s: Seconds = 60
    """Time between two test signatures of an idle worker, in seconds."""
    group_ms: int = Field(default=50, ge=1, le=1_000)
    """Longest that documents signed together keep the HSM from others, in
    milliseconds: as many of a batch are signed at a time as it signs in that."""
    call_limit_s: Seconds = 20
    """Longest that a call into the HSM may take, in seconds; a worker whose call
    takes longer is killed, and what it had in hand goes on elsewhere."""
    key_mode: KeyMode = KeyMode.WRAPPED
    """Where a new user's key is kept: `wrapped` (in the record, under the HSM's
    master key and the signing password) or `resident` (on the token)."""
    key_algorithm: KeyAlgorithm = KeyAlgorithm.RSA_2048
    """Kind of a new user's key."""
    signature_scheme: Literal["auto", "rsa-pss"] = "auto"
    """How RSA keys sign: `auto` is PKCS#1 v1.5. EC keys sign by ECDSA."""
    activation_dir: Path | None = None
    """Folder of the activation keys' private halves, on tmpfs; the default is
    one under `/dev/shm` that is named after `data_dir`."""

    @model_validator(mode="after")
    def _group_is_no_hang(self) -> Self:
        if self.group_ms / 1000 > self.call_limit_s / 2:
            msg = "group_ms: at most half of call_limit_s, or a group looks like a hang"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _members_hold_the_same(self) -> Self:
        if self.replicas and self.key_mode is KeyMode.RESIDENT:
            msg = "replicas: a resident key is on one token alone; wrapped keys go"
            raise ValueError(msg)
        return self

"""Levels of signatures: what is wished for, what is reached, what is due later.

Source: EN 319 142-1, 6; decisions "level"; docs/levels.md.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.vocab import SignatureLevel, TimestampPolicy

_ORDER: Final = tuple(SignatureLevel)
INTERNAL_TSA: Final = "internal"
"""Name of the installation's own timestamping authority."""
INTERNAL: Final = (INTERNAL_TSA,)
TSA_NAMES_MOST: Final = 8
"""Authorities that a profile may name."""
TSA_NAME_MOST: Final = 64
"""Longest name of one, in characters."""


def reaches(reached: SignatureLevel, wanted: SignatureLevel) -> bool:
    """Whether a level has all of another one."""
    return _ORDER.index(reached) >= _ORDER.index(wanted)


@dataclass(frozen=True, slots=True)
class ProfileWishes:
    """What an integrator or a request asks for; None: nothing of its own."""

    level: SignatureLevel | None = None
    timestamp_policy: TimestampPolicy | None = None
    digest: DigestAlgorithm | None = None
    """Of RSA keys; a curve has its own."""
    tsa: tuple[str, ...] | None = None
    """As `SignatureProfile.tsa`."""


NO_WISHES: Final = ProfileWishes()


@dataclass(frozen=True, slots=True)
class SignatureProfile:
    """How one signature is made."""

    level: SignatureLevel
    timestamp_policy: TimestampPolicy
    digest: DigestAlgorithm
    tsa: tuple[str, ...] = INTERNAL
    """Names of the timestamping authorities, in the order to ask them."""

    @property
    def has_outside_tsa(self) -> bool:
        """Whether an authority outside is to be asked."""
        return self.level is not SignatureLevel.B_B and self.tsa != INTERNAL

    def to_json(self) -> dict[str, object]:
        """For the record, and for what a seal is bound to."""
        return {
            "level": self.level.value,
            "timestampPolicy": self.timestamp_policy.value,
            "digest": self.digest.value,
            "tsa": list(self.tsa),
        }

    def narrowed(self, wishes: ProfileWishes) -> "SignatureProfile":
        """The same, with what a narrower scope asks for."""
        return SignatureProfile(
            wishes.level or self.level,
            wishes.timestamp_policy or self.timestamp_policy,
            wishes.digest or self.digest,
            wishes.tsa or self.tsa,
        )


@dataclass(frozen=True, slots=True)
class ValidationData:
    """What proves, later and without a network, that certificates were good."""

    certificates: tuple[bytes, ...] = field(default=(), repr=False)
    """DER, as all of it."""
    ocsps: tuple[bytes, ...] = field(default=(), repr=False)
    """OCSPResponse."""
    crls: tuple[bytes, ...] = field(default=(), repr=False)

    def with_more(self, other: "ValidationData") -> "ValidationData":
        """Both, each piece once."""
        return ValidationData(
            tuple(dict.fromkeys(self.certificates + other.certificates)),
            tuple(dict.fromkeys(self.ocsps + other.ocsps)),
            tuple(dict.fromkeys(self.crls + other.crls)),
        )


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What a published document still needs, by itself and later."""

    wanted: SignatureLevel
    due: datetime
    tsa: tuple[str, ...] = INTERNAL
    """As `SignatureProfile.tsa`."""
    outside: bool = False
    """True where servers outside are needed; settled once, with the signature."""


@dataclass(frozen=True, slots=True)
class UpkeepClaim:
    """A published document's upkeep in the hands of one worker."""

    id: str
    request: RequestId
    integrator: IntegratorId
    wanted: SignatureLevel
    tries: int
    """How often it failed since it last got on."""
    fence: int
    tsa: tuple[str, ...] = INTERNAL
    outside: bool = False
    """True where servers outside are needed."""


@dataclass(frozen=True, slots=True)
class UpkeepCount:
    """Published documents with the same needs."""

    wanted: SignatureLevel
    is_below: bool
    """Whether they have not reached that level yet; else they are stamped anew."""
    reason: str
    """Code of why the last try failed; empty where none did."""
    documents: int
    overdue: int
    """Of these, how many are due, those among them that a failure put off."""
    oldest: datetime
    """When the first of them fell due, or will."""

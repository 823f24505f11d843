"""Persons, integrators, signing secrets and credentials."""

from dataclasses import dataclass, field
from datetime import datetime

from appliance.domain.identity import Person
from appliance.domain.ids import IntegratorId
from appliance.domain.vocab import VouchedBy


@dataclass(frozen=True, slots=True)
class Integrator:
    """Who sends documents to be signed."""

    id: IntegratorId
    code: str
    name: str


@dataclass(frozen=True, slots=True)
class NewPerson:
    """A person to be recorded, with what proves who they are at sign-in."""

    person: Person
    email_sealed: bytes = field(repr=False)
    email_index: str = field(repr=False)
    vouched_by: VouchedBy
    login_phc: str = field(repr=False)
    totp_sealed: bytes = field(repr=False)
    signing: "SigningSecret"


@dataclass(frozen=True, slots=True)
class InvitedPerson:
    """A person to be recorded without secrets, who will choose them."""

    person: Person
    email_sealed: bytes = field(repr=False)
    email_index: str = field(repr=False)
    vouched_by: VouchedBy


@dataclass(frozen=True, slots=True)
class Contact:
    """How a person is reached, and who answers for who they are."""

    email_sealed: bytes = field(repr=False)
    vouched_by: VouchedBy


@dataclass(frozen=True, slots=True)
class ChosenSecrets:
    """What is kept of the secrets that a person chose at enrolment."""

    login_phc: str = field(repr=False)
    totp_sealed: bytes = field(repr=False)
    last_step: int
    """Number of the TOTP step whose code confirmed the seed."""
    signing: "SigningSecret"


@dataclass(frozen=True, slots=True)
class SigningSecret:
    """What is kept of a signing password (design §4 "Password")."""

    salt: bytes = field(repr=False)
    """16 random bytes."""
    argon2: dict[str, int]
    """`t`, `m` (KiB), `p` and `v` of the Argon2id derivation."""
    pepper_version: int
    verifier_sha256: str = field(repr=False)
    counted: int = 0
    """Wrong passwords since the last right one."""
    locked_at: datetime | None = None

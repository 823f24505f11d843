"""Persons, integrators, signing secrets and credentials."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.identity import Credential, Person
from appliance.domain.ids import CredentialId, IntegratorId, PersonId
from appliance.domain.vocab import CredentialState, VouchedBy


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


class PeopleRecords(Protocol):
    """Persons, integrators and signing secrets."""

    async def add(self, new: NewPerson) -> None:
        """Record a person with their secrets.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a CUIL or e-mail in use.
        """
        ...

    async def invite(self, new: InvitedPerson) -> None:
        """Record a person without secrets.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a CUIL or e-mail in use.
        """
        ...

    async def contact(self, person: PersonId) -> Contact | None:
        """How a person is reached."""
        ...

    async def enrol(self, person: PersonId, chosen: ChosenSecrets) -> bool:
        """Give an invited person their secrets; False if they have some."""
        ...

    async def forget_secrets(self, person: PersonId) -> None:
        """Delete what proves a person, who is to choose anew."""
        ...

    async def get(self, person: PersonId) -> Person | None:
        """A person by id."""
        ...

    async def sign_out(self, person: PersonId, at: datetime) -> None:
        """Say that what a person has proven until now counts no more."""
        ...

    async def set_totp(self, person: PersonId, sealed: bytes) -> bool:
        """Set a TOTP seed in the place of the one before; False if there was none."""
        ...

    async def by_cuil(self, cuil: str) -> Person | None:
        """A person by the eleven digits."""
        ...

    async def by_dni(self, dni: str) -> list[Person]:
        """People whose CUIL has these eight digits: two of them at most."""
        ...

    async def by_email_index(self, indexes: Sequence[str]) -> Person | None:
        """A person by the HMAC of their e-mail address."""
        ...

    async def add_integrator(self, integrator: Integrator) -> None:
        """Record an integrator.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a code in use.
        """
        ...

    async def integrator(self, code: str) -> Integrator | None:
        """An integrator by code."""
        ...

    async def signing_secret(
        self, person: PersonId, *, lock: bool = False
    ) -> SigningSecret | None:
        """A person's signing secret; `lock` keeps others from changing it."""
        ...

    async def set_counted(
        self, person: PersonId, counted: int, locked_at: datetime | None
    ) -> None:
        """Set the count of wrong passwords and the lock."""
        ...

    async def replace_signing_secret(
        self, person: PersonId, secret: SigningSecret
    ) -> None:
        """Keep another signing password; the count and the lock stay."""
        ...


class CredentialRecords(Protocol):
    """Keys and certificates."""

    async def add(self, credential: Credential) -> None:
        """Record a credential; the person's earlier active ones give way."""
        ...

    async def locked(self, person: PersonId) -> list[Credential]:
        """Those of a person that may sign, now or later, by id.

        Each has an `outer` that the person's signing password opens.
        """
        ...

    async def relock(self, credential: CredentialId, outer: bytes) -> None:
        """Keep what is in `outer` under another unlock key."""
        ...

    async def get(
        self, credential: CredentialId, *, lock: bool = False
    ) -> Credential | None:
        """A credential by id; `lock` keeps others from changing it."""
        ...

    async def set_state(self, credential: CredentialId, state: CredentialState) -> None:
        """Move a credential to a state."""
        ...

    async def renewed(self, renewed: Credential) -> None:
        """Record the certificate, chain and dates that a credential now has."""
        ...

    async def certified(self, certificate: bytes) -> Credential | None:
        """The one that signs with a certificate, DER, locked; None: nobody does."""
        ...

    async def active(self, person: PersonId) -> Credential | None:
        """The credential a person signs with."""
        ...

    async def of_person(self, person: PersonId) -> list[Credential]:
        """Every credential of a person, newest first."""
        ...

"""Persons, as an operator records them.

A key is made only once it stands recorded how the person was vouched for
(decisions "who may be certified"); from here that is `demo`, in a trial alone,
or `officer`: whoever runs the command answers for the identity. Those of the test mode
are recorded by the same steps, as `test`.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import PersonId, TaskId, new_id
from appliance.domain.people.identity import (
    NewPerson,
    Person,
    certificate_name,
    typed_cuil,
)
from appliance.domain.people.new_password import check_new, own_words
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind, PersonState, VouchedBy
from appliance.identity import totp
from appliance.identity.login import (
    account_indexes,
    email_index,
    email_indexes,
    refuse_known_email,
)
from appliance.keys.password_hashing import Passwords
from appliance.keys.signing_password import (
    SigningPasswords,
    UnlockKeys,
    normalize,
)
from appliance.people.person_store import PersonStore
from appliance.pki.issuance import Issuance, IssuePlan
from appliance.pki.revocation_pins import RevocationPins
from appliance.record.unit_of_work import Database, Transaction

_ATOM: Final = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_EMAIL: Final = re.compile(
    rf"(?=[^@]{{1,64}}@[^@]{{1,189}}\Z){_ATOM}(?:\.{_ATOM})*"
    rf"@(?:localhost|{_LABEL}(?:\.{_LABEL})+)",
    re.ASCII,
)
"""An address in lower case: atoms with dots between them, and a domain in full; no
quoted name and no address literal. Source: RFC 5321, 4.1.2."""
_NAME_BYTES: Final = 64
"""What a common name in a certificate may have (X.520, ub-common-name)."""


Beside: TypeAlias = Callable[[Transaction, Person], Awaitable[None]]
"""What else is recorded of a new person, in the same transaction."""


@dataclass(frozen=True, slots=True)
class NewPersonOrder:
    """What an operator says of a new person."""

    cuil: str
    name: str
    email: str = field(repr=False)
    login_password: str = field(repr=False)
    signing_password: str = field(repr=False)
    vouched_by: VouchedBy
    locale: str = "es"


@dataclass(frozen=True, slots=True)
class CreatedPerson:
    """A new person, and what is shown once."""

    id: PersonId
    totp_uri: str = field(repr=False)
    """`otpauth://…` for an authenticator app."""
    task: TaskId
    """The HSM task that makes key and certificate."""
    revocation_pin: str = field(repr=False)


class People:
    """The use cases of an operator around persons."""

    def __init__(
        self,
        store: Database,
        sealer: Sealer,
        lookup: LookupIndex,
        login_passwords: Passwords,
        signing_passwords: SigningPasswords,
        issuing: Issuance,
        clock: Clock,
        installation: str,
        pins: RevocationPins,
        *,
        trial: bool,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._lookup = lookup
        self._login_passwords = login_passwords
        self._signing_passwords = signing_passwords
        self._issuing = issuing
        self._clock = clock
        self._installation = installation
        self._pins = pins
        self._trial = trial

    async def create_person(
        self,
        order: NewPersonOrder,
        actor: str = "operator",
        beside: Beside | None = None,
    ) -> CreatedPerson:
        """Record a person and ask the HSM for a key and a certificate.

        Args:
            order: whom.
            actor: for the audit.
            beside: what else is recorded, or refuses by raising.

        Raises:
            FieldInvalidError: `cuil`, `name`, `email`, or a password that is
                not 8 to 1024 bytes, or the same password twice.
            ApplianceError: `ALREADY_EXISTS`; `NOT_A_TRIAL` for `demo` outside
                a trial.
            HsmUnavailableError: no host can make a key now.
        """
        if order.vouched_by is VouchedBy.DEMO and not self._trial:
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        person, email = _checked(order)
        seed = totp.new_seed()
        plan = await self._issuing.plan()
        new, unlock = await self._with_secrets(order, person, email, seed, plan)
        pin = await self._pins.make()
        async with self._store.write() as transaction:
            await refuse_known_email(transaction, self._lookup, email)
            await PersonStore(transaction).add(new)
            if beside is not None:
                await beside(transaction, person)
            # What strangers tried at either name before is nobody's.
            await LoginAttemptStore(transaction).forget(
                account_indexes(self._lookup, person.cuil, email)
            )
            await self._pins.put(transaction, person.id, pin, actor)
            transaction.audit.add(
                AuditEvent(
                    EventKind.PERSON_CREATED,
                    actor,
                    detail={
                        "person": person.id,
                        "vouchedBy": order.vouched_by.value,
                        "task": plan.task,
                    },
                )
            )
            await self._issuing.submit(
                transaction, plan, person.id, order.vouched_by, unlock, actor
            )
        uri = totp.provisioning_uri(seed, email, self._installation)
        return CreatedPerson(person.id, uri, plan.task, pin.text)

    async def holder(
        self, transaction: Transaction, cuil: str | None, email: str | None
    ) -> Person | None:
        """Return who has a CUIL or, if none is given, an address.

        Args:
            transaction: the caller's.
            cuil: eleven digits.
            email: in any case.
        """
        people = PersonStore(transaction)
        if cuil is not None:
            return await people.by_cuil(cuil)
        if email is None:
            return None
        return await people.by_email_index(email_indexes(self._lookup, email))

    async def readmit(
        self, transaction: Transaction, person: Person, email: str, actor: str
    ) -> None:
        """Make a disabled test signer active again, with all their tries.

        Their secrets, keys and signatures stay as they are.

        Args:
            transaction: the caller's.
            person: disabled, with a signing password.
            email: their address.
            actor: for the audit.

        Raises:
            ApplianceError: `PERSON_STATE` if they are in another state.
        """
        people = PersonStore(transaction)
        moved = await people.move(person.id, PersonState.DISABLED, PersonState.ACTIVE)
        secret = await people.signing_secret(person.id, lock=True)
        if not moved or secret is None:
            raise ApplianceError(ErrorCode.PERSON_STATE)
        await self._issuing.begin_tries(transaction, person.id, secret)
        await LoginAttemptStore(transaction).forget(
            account_indexes(self._lookup, person.cuil, email)
        )
        transaction.audit.add(
            AuditEvent(
                # `person.enabled` is the word of an officer alone.
                EventKind.PERSON_CREATED,
                actor,
                detail={
                    "person": person.id,
                    "vouchedBy": VouchedBy.TEST.value,
                    "before": {"state": PersonState.DISABLED.value},
                    "after": {"state": PersonState.ACTIVE.value},
                },
            )
        )

    async def _with_secrets(
        self,
        order: NewPersonOrder,
        person: Person,
        email: str,
        seed: str,
        plan: IssuePlan,
    ) -> tuple[NewPerson, UnlockKeys]:
        """Derive and seal what is kept of the secrets; the new key's unlock key."""
        derived = await self._signing_passwords.derive_new(
            normalize(order.signing_password, "signing_password"), (plan.credential,)
        )
        new = NewPerson(
            person=person,
            email_sealed=self._sealer.seal(
                email.encode(), table="person", row=person.id, column="email_sealed"
            ),
            email_index=email_index(self._lookup, email),
            vouched_by=order.vouched_by,
            login_phc=await self._login_passwords.hash(
                normalize(order.login_password, "login_password")
            ),
            totp_sealed=self._sealer.seal(
                seed.encode(), table="login_secret", row=person.id, column="totp_sealed"
            ),
            signing=derived.secret,
        )
        return new, derived.unlock


def _checked(order: NewPersonOrder) -> tuple[Person, str]:
    """The person and their address, as they are kept.

    Raises:
        FieldInvalidError: a field has no allowed value.
    """
    person, email = checked_person(order.cuil, order.name, order.email, order.locale)
    check_differ(
        normalize(order.login_password, "login_password"),
        normalize(order.signing_password, "signing_password"),
    )
    own = own_words(person, email)
    check_new(order.login_password, "login_password", own)
    check_new(order.signing_password, "signing_password", own)
    return person, email


def check_differ(login: bytes, signing: bytes) -> None:
    """Refuse a signing password that is the login password.

    Args:
        login: as it is hashed.
        signing: as it is hashed.

    Raises:
        FieldInvalidError: they are the same.
    """
    if login == signing:
        # One theft must not be enough (design §4).
        raise FieldInvalidError("signing_password", "not the login password")


def normal_email(email: str) -> str:
    """Return an address as it is kept.

    Args:
        email: as it was typed.
    """
    return email.strip().lower()


def checked_person(
    cuil: str,
    name: str,
    email: str,
    locale: str,
    state: PersonState = PersonState.ACTIVE,
) -> tuple[Person, str]:
    """A new person and their address, as they are kept.

    Args:
        cuil: as typed (`typed_cuil`).
        name: as the certificate will have it.
        email: where links and notices go.
        locale: `es` or `en`.
        state: of the new person.

    Raises:
        FieldInvalidError: a field has no allowed value.
    """
    name = certificate_name(name, "name", _NAME_BYTES)
    email = normal_email(email)
    if not _EMAIL.fullmatch(email):
        raise FieldInvalidError("email", "name@domain")
    if locale not in {"es", "en"}:
        raise FieldInvalidError("locale", ["es", "en"])
    person = Person(PersonId(new_id()), typed_cuil(cuil), name, state, locale)
    return person, email

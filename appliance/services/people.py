"""Persons and integrators, as an operator records them.

A key is made only once it stands recorded how the person was vouched for
(decisions "who may be certified"); from here that is `demo`, in a trial alone,
or `officer`: whoever runs the command answers for the identity.
"""

import re
import secrets
import unicodedata
from base64 import b32encode
from dataclasses import dataclass, field
from typing import Final

import pyotp

from appliance.domain.audit import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import IntegratorId, PersonId, TaskId, new_id
from appliance.domain.person import Person, parse_cuil
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.records import Store
from appliance.domain.records.people import Integrator, NewPerson
from appliance.domain.vocab import EventKind, PersonState, VouchedBy
from appliance.services.hsm_tasks import submit_issue
from appliance.services.login import email_index
from appliance.services.passwords import Passwords
from appliance.services.signing_password import SigningPasswords, normalize

_EMAIL: Final = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,189}", re.ASCII)
_CODE: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_NAME_BYTES: Final = 64
"""What a common name in a certificate may have (X.520, ub-common-name)."""
_TOTP_BYTES: Final = 20
"""RFC 4226, 4, R6."""


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


class People:
    """The use cases of an operator around persons and integrators."""

    def __init__(
        self,
        store: Store,
        sealer: Sealer,
        lookup: LookupIndex,
        login_passwords: Passwords,
        signing_passwords: SigningPasswords,
        clock: Clock,
        installation: str,
        *,
        trial: bool,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._lookup = lookup
        self._login_passwords = login_passwords
        self._signing_passwords = signing_passwords
        self._clock = clock
        self._installation = installation
        self._trial = trial

    async def create_integrator(self, code: str, name: str) -> IntegratorId:
        """Record an integrator.

        Raises:
            FieldInvalidError: a code that is not lower-case letters, digits
                and dashes, up to 40.
            ApplianceError: `ALREADY_EXISTS`.
        """
        if not _CODE.fullmatch(code):
            raise FieldInvalidError("code", "a-z, 0-9 and -, up to 40")
        integrator = Integrator(IntegratorId(new_id()), code, name)
        async with self._store.write() as records:
            await records.people.add_integrator(integrator)
            records.audit.add(
                AuditEvent(
                    EventKind.INTEGRATOR_CREATED,
                    "operator",
                    integrator=integrator.id,
                    detail={"code": code},
                )
            )
        return integrator.id

    async def create_person(self, order: NewPersonOrder) -> CreatedPerson:
        """Record a person and ask the HSM for a key and a certificate.

        Raises:
            FieldInvalidError: `cuil`, `name`, `email`, or a password that is
                not 8 to 1024 bytes, or the same password twice.
            ApplianceError: `ALREADY_EXISTS`; `NOT_A_TRIAL` for `demo` outside
                a trial.
        """
        if order.vouched_by is VouchedBy.DEMO and not self._trial:
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        person, email = _checked(order)
        seed = b32encode(secrets.token_bytes(_TOTP_BYTES)).decode()
        task = TaskId(new_id())
        new = await self._with_secrets(order, person, email, seed)
        async with self._store.write() as records:
            await records.people.add(new)
            records.audit.add(
                AuditEvent(
                    EventKind.PERSON_CREATED,
                    "operator",
                    detail={
                        "person": person.id,
                        "vouchedBy": order.vouched_by.value,
                        "task": task,
                    },
                )
            )
            await submit_issue(records, person.id, order.vouched_by, self._clock, task)
        uri = pyotp.TOTP(seed).provisioning_uri(
            name=email, issuer_name=self._installation
        )
        return CreatedPerson(person.id, uri, task)

    async def _with_secrets(
        self, order: NewPersonOrder, person: Person, email: str, seed: str
    ) -> NewPerson:
        """Derive and seal what is kept of the secrets."""
        signing = await self._signing_passwords.new_secret(
            normalize(order.signing_password, "signing_password")
        )
        return NewPerson(
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
            signing=signing,
        )


def _checked(order: NewPersonOrder) -> tuple[Person, str]:
    """The person and their address, as they are kept.

    Raises:
        FieldInvalidError: a field has no allowed value.
    """
    name = " ".join(unicodedata.normalize("NFC", order.name).split())
    if not name or len(name.encode()) > _NAME_BYTES or not name.isprintable():
        raise FieldInvalidError("name", f"1 to {_NAME_BYTES} printable bytes")
    email = order.email.strip().lower()
    if not _EMAIL.fullmatch(email):
        raise FieldInvalidError("email", "name@domain")
    if order.locale not in {"es", "en"}:
        raise FieldInvalidError("locale", ["es", "en"])
    login = normalize(order.login_password, "login_password")
    if login == normalize(order.signing_password, "signing_password"):
        # One theft must not be enough (design §4).
        raise FieldInvalidError("signing_password", "not the login password")
    person = Person(
        id=PersonId(new_id()),
        cuil=parse_cuil(order.cuil),
        name=name,
        state=PersonState.ACTIVE,
        locale=order.locale,
    )
    return person, email

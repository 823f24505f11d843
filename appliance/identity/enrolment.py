"""Enrolment by a one-time link: the person chooses the secrets.

The seed of the one-time codes is made of a secret of the link, which stays on the
server's side, and of a random value for each opening of the form, which stays in the
browser that it is shown to. So nobody chooses a seed, and whoever opened the link
before knows none that counts: a code is checked against the seed that came with its
own form. A scanner of mail that opens links disturbs nobody, as it would if only the
latest seed counted.

Source: decisions "who may be certified"; design §4 "Enrolment".
"""

import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.admission.known_addresses import remember_address
from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.console.lists import EnrolmentRow
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.integrators.integrators import Enrolled, EnrolmentView
from appliance.domain.people.identity import ChosenSecrets, Contact, Person
from appliance.domain.people.new_password import check_new, own_words, weakness
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import EventKind, PersonState, TaskKind
from appliance.identity import totp
from appliance.identity.invitations import code_indexes
from appliance.identity.login import account_indexes
from appliance.identity.people import check_differ
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.password_hashing import Passwords
from appliance.keys.signing_password import (
    MIN_BYTES,
    SigningPasswords,
    UnlockKeys,
    normalize,
)
from appliance.people.console_user_store import EnrolmentStore
from appliance.people.person_store import PersonStore
from appliance.pki.issuance import Issuance, IssuePlan
from appliance.pki.kept_pins import KeptPins
from appliance.pki.revocation_pins import RevocationPins
from appliance.record.unit_of_work import Database, Transaction

_CODE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_OPENING_BYTES: Final = 32


class Fault(StrEnum):
    """What is wrong with a field of a choice."""

    SHORT = "short"
    UNUSABLE = "unusable"
    """Too long, or with what no password can have."""
    COMMON = "common"
    """A common password; see `appliance.domain.people.new_password`."""
    OWN = "own"
    """It consists of the person's name, CUIL or e-mail address."""
    SAME = "same"
    """The signing password is the login password."""
    NO_CODE = "no_code"
    """Not six digits."""
    WRONG_CODE = "wrong_code"


class Issued(StrEnum):
    """How far key and certificate of somebody who enrolled are."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    """They can be asked for again."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person typed at enrolment."""

    login_password: str = field(repr=False)
    signing_password: str = field(repr=False)
    totp_code: str = field(repr=False)
    """Six digits, of the seed that the page shows."""
    opening: str = field(repr=False)
    """Of the form in which it was shown."""


class Enrolment:
    """The page behind a link: shows, and takes what the person chose.

    Args:
        store: the record.
        lookup: finds links.
        sealer: opens seeds and e-mail addresses.
        clock: the time.
        login_passwords: hashes login passwords.
        signing_passwords: derives from signing passwords.
        issuing: asks for keys and certificates.
        installation: shown in the authenticator app.
        pins: makes revocation PINs.
        kept_pins: seals them for the browser that they are shown in.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        login_passwords: Passwords,
        signing_passwords: SigningPasswords,
        issuing: Issuance,
        installation: str,
        pins: RevocationPins,
        kept_pins: KeptPins,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._login_passwords = login_passwords
        self._signing_passwords = signing_passwords
        self._issuing = issuing
        self._installation = installation
        self._pins = pins
        self._kept_pins = kept_pins

    async def look(self, code: str, opening: str = "") -> EnrolmentView:
        """What the page shows, with a seed of this opening alone.

        Args:
            code: of the link, as it came.
            opening: of a form that was shown before, which is shown again with its
                seed; what is none begins a new one.

        Raises:
            ApplianceError: `ENROLMENT_UNKNOWN`, `ENROLMENT_EXPIRED`,
                `ENROLMENT_USED`.
        """
        found = await self._find(code)
        email = self._email(found)
        if not _CODE.fullmatch(opening):
            opening = secrets.token_urlsafe(_OPENING_BYTES)
        seed = totp.seed_of(found.secret, opening)
        return EnrolmentView(
            person=found.person.id,
            cuil=found.person.cuil,
            name=found.person.name,
            email=email,
            until=found.until,
            totp_uri=totp.provisioning_uri(seed, email, self._installation),
            totp_secret=seed,
            totp_issuer=self._installation,
            opening=opening,
        )

    async def faults(self, code: str, choice: Choice) -> dict[str, Fault]:
        """Everything that is wrong with a choice, before any of it is taken.

        Args:
            code: of the link.
            choice: as it was typed.

        Returns:
            By name of a field of `Choice`; none if `complete` would take it.

        Raises:
            ApplianceError: `ENROLMENT_UNKNOWN`, `ENROLMENT_EXPIRED`,
                `ENROLMENT_USED`.
        """
        found = await self._find(code)
        wrong: dict[str, Fault] = {}
        typed: dict[str, bytes] = {}
        for name in ("login_password", "signing_password"):
            password = getattr(choice, name)
            try:
                typed[name] = normalize(password, name)
            except FieldInvalidError:
                is_short = len(password) < MIN_BYTES
                wrong[name] = Fault.SHORT if is_short else Fault.UNUSABLE
                continue
            if (weak := weakness(password, self._own_words(found))) is not None:
                wrong[name] = Fault(weak.value)
        if not wrong and typed["login_password"] == typed["signing_password"]:
            wrong["signing_password"] = Fault.SAME
        if not totp.is_code(choice.totp_code):
            wrong["totp_code"] = Fault.NO_CODE
        elif self._step(found, choice) is None:
            wrong["totp_code"] = Fault.WRONG_CODE
        return wrong

    def _email(self, found: "_Found") -> str:
        return self._sealer.open(
            found.contact.email_sealed,
            table="person",
            row=found.person.id,
            column="email_sealed",
        ).decode()

    def _own_words(self, found: "_Found") -> tuple[str, ...]:
        return own_words(found.person, self._email(found))

    def _step(self, found: "_Found", choice: Choice) -> int | None:
        """The step whose code was typed, of the seed that was shown with it."""
        if not _CODE.fullmatch(choice.opening):
            return None
        seed = totp.seed_of(found.secret, choice.opening)
        return totp.step_of(seed, choice.totp_code, self._clock)

    async def complete(
        self, code: str, choice: Choice, address: str | None = None
    ) -> Enrolled:
        """Take the secrets, once, and ask the HSM for key and certificate.

        Args:
            code: of the link.
            choice: both passwords and a code of the seed shown with them.
            address: where the call came from: the person is known there from now
                on.

        Raises:
            FieldInvalidError: a password is not 8 to 1024 bytes, or weak
                (`appliance.domain.people.new_password`), or both are the same.
            ApplianceError: `OTP_INVALID`; `ENROLMENT_UNKNOWN`,
                `ENROLMENT_EXPIRED`, `ENROLMENT_USED`.
            HsmUnavailableError: no host can make a key now; the link stays good.
        """
        found = await self._find(code)
        login = normalize(choice.login_password, "login_password")
        signing = normalize(choice.signing_password, "signing_password")
        own = self._own_words(found)
        check_new(choice.login_password, "login_password", own)
        check_new(choice.signing_password, "signing_password", own)
        check_differ(login, signing)
        step = self._step(found, choice)
        if step is None:
            raise ApplianceError(ErrorCode.OTP_INVALID)
        plan = await self._issuing.plan()
        derived = await self._signing_passwords.derive_new(signing, (plan.credential,))
        chosen = ChosenSecrets(
            login_phc=await self._login_passwords.hash(login),
            totp_sealed=self._sealer.seal(
                totp.seed_of(found.secret, choice.opening).encode(),
                table="login_secret",
                row=found.person.id,
                column="totp_sealed",
            ),
            last_step=step,
            signing=derived.secret,
        )
        return await self._commit(found, chosen, plan, derived.unlock, address)

    async def _commit(
        self,
        found: "_Found",
        chosen: ChosenSecrets,
        plan: IssuePlan,
        unlock: UnlockKeys,
        address: str | None,
    ) -> Enrolled:
        """Use the link up and record what was chosen, with its consequences.

        Raises:
            ApplianceError: `ENROLMENT_USED`.
        """
        person, vouched_by = found.person.id, found.contact.vouched_by
        actor = f"person:{person}"
        pin = await self._pins.make()
        async with self._store.write() as transaction:
            # Before the link, as whoever makes another one locks them.
            await PersonStore(transaction).hold(person)
            if not await EnrolmentStore(transaction).use(
                found.enrolment, self._clock.now()
            ):
                raise ApplianceError(ErrorCode.ENROLMENT_USED)
            if not await PersonStore(transaction).enrol(person, chosen):
                raise ApplianceError(ErrorCode.ENROLMENT_USED)
            await self._begin_tries(transaction, found, address)
            transaction.audit.add(
                AuditEvent(
                    EventKind.PERSON_ENROLLED,
                    actor,
                    detail={
                        "person": person,
                        "vouchedBy": vouched_by.value,
                        "task": plan.task,
                        "before": {"state": PersonState.INVITED.value},
                        "after": {"state": PersonState.ACTIVE.value},
                    },
                )
            )
            await self._issuing.begin_tries(transaction, person, chosen.signing)
            await self._issuing.submit(
                transaction, plan, person, vouched_by, unlock, actor
            )
            await self._pins.put(transaction, person, pin, actor)
        kept = self._kept_pins.seal(person, pin)
        return Enrolled(person, plan.task, vouched_by, pin.text, kept)

    async def _begin_tries(
        self, transaction: Transaction, found: "_Found", address: str | None
    ) -> None:
        """Have who enrolled be let in from where they did, whatever others try.

        What strangers tried at CUIL and address before does not count.
        """
        person, email = found.person, self._email(found)
        await LoginAttemptStore(transaction).forget(
            account_indexes(self._lookup, person.cuil, email), person.id
        )
        if address is not None:
            await remember_address(
                transaction, self._lookup, person.id, address, self._clock.now()
            )

    async def standing(self, code: str) -> tuple[Person, Issued]:
        """Who enrolled by a link, while it is good, and what came of it.

        Args:
            code: of the link, as it came.

        Raises:
            ApplianceError: `ENROLMENT_USED` where it is over for its person;
                `ENROLMENT_UNKNOWN`, `ENROLMENT_EXPIRED`.
        """
        row = await self._row(code)
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(row.person)
            has_key = bool(await CredentialStore(transaction).locked(row.person))
            coming = await HsmTaskStore(transaction).open_for(
                row.person, TaskKind.ISSUE
            )
        if person is None or person.state is not PersonState.ACTIVE or row.used is None:
            raise ApplianceError(ErrorCode.ENROLMENT_USED)
        if self._clock.now() >= row.until:
            over = ErrorCode.ENROLMENT_USED if has_key else ErrorCode.ENROLMENT_EXPIRED
            raise ApplianceError(over)
        if has_key:
            return person, Issued.DONE
        return person, Issued.PENDING if coming else Issued.FAILED

    async def unfinished(self, code: str) -> Person:
        """Who enrolled by a link, while it is good, and has no key to show for it.

        Args:
            code: of the link, as it came.

        Raises:
            ApplianceError: `ENROLMENT_USED` for who has a key or is getting one;
                those of `standing`.
        """
        person, issued = await self.standing(code)
        if issued is not Issued.FAILED:
            raise ApplianceError(ErrorCode.ENROLMENT_USED)
        return person

    async def again(self, code: str, password: str) -> Enrolled:
        """Ask once more for a key that could not be made.

        Args:
            code: of the link.
            password: the signing password that was chosen with it.

        Raises:
            FieldInvalidError: no password is so short or long.
            ApplianceError: those of `unfinished` and of `Issuance.again`.
        """
        person = await self.unfinished(code)
        signer = Signer(person.id, f"person:{person.id}", ("link",), self._clock.now())
        async with self._store.read() as transaction:
            contact = await PersonStore(transaction).contact(person.id)
        if contact is None:
            raise ApplianceError(ErrorCode.ENROLMENT_UNKNOWN)
        task = await self._issuing.again(signer, password)
        return Enrolled(person.id, task, contact.vouched_by)

    async def _find(self, code: str) -> "_Found":
        """A link that can be used, and all that hangs on it.

        Raises:
            ApplianceError: `ENROLMENT_UNKNOWN`, `ENROLMENT_EXPIRED`,
                `ENROLMENT_USED`.
        """
        row = await self._row(code)
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(row.person)
            contact = await PersonStore(transaction).contact(row.person)
        if person is None or contact is None:
            raise ApplianceError(ErrorCode.ENROLMENT_UNKNOWN)
        if row.used is not None or person.state is not PersonState.INVITED:
            raise ApplianceError(ErrorCode.ENROLMENT_USED)
        if self._clock.now() >= row.until:
            raise ApplianceError(ErrorCode.ENROLMENT_EXPIRED)
        secret = self._sealer.open(
            row.totp_sealed, table="enrolment", row=row.id, column="totp_sealed"
        ).decode()
        return _Found(row.id, person, contact, row.until, secret)

    async def _row(self, code: str) -> EnrolmentRow:
        """A link, over or not.

        Raises:
            ApplianceError: `ENROLMENT_UNKNOWN`.
        """
        row = None
        if _CODE.fullmatch(code):
            async with self._store.read() as transaction:
                row = await EnrolmentStore(transaction).by_code(
                    code_indexes(self._lookup, code)
                )
        if row is None:
            raise ApplianceError(ErrorCode.ENROLMENT_UNKNOWN)
        return row


@dataclass(frozen=True, slots=True)
class _Found:
    """A link that can be used, and all that hangs on it."""

    enrolment: str
    person: Person
    contact: Contact = field(repr=False)
    until: datetime
    secret: str = field(repr=False)
    """Of the link, of which its seeds are made."""

"""Test mode: signers that an integrator's backend makes up and acts for.

They have all that an enrolled person has, and go the same ways. Their secrets are kept,
sealed, for the integrator that made them, which alone sees them. Only in PREPROD: in
PROD nobody can be made up, and who was can neither sign in nor sign.

Source: docs/integration.md "Test mode".
"""

import contextlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import IntegratorId, PersonId, ProcessId, RequestId, TaskId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.people.identity import Person, certificate_name, cuils_of
from appliance.domain.ports import Sealer
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import Environment, EventKind, PersonState, VouchedBy
from appliance.identity.people import NewPersonOrder, People, normal_email
from appliance.integration.signers import SignerState
from appliance.integrators.integrator_store import IntegratorStore
from appliance.keys.credential_store import CredentialStore
from appliance.keys.signing_password import normalize
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import SignerForTests, SignerForTestsStore
from appliance.pki.issuance import Issuance
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.process_store import ProcessStore
from appliance.signing.signer_readiness import refusal_of

SIGNERS_AT_MOST: Final = 100
"""Test signers of one integrator."""
MARK: Final = "PRUEBA SIN VALIDEZ"
"""Begins the name of each: so it stands in stamps, signatures and certificates."""
FACTORS: Final = ("test",)
"""What stands in the audit and the activation in place of what a signer proves."""
_NAME: Final = "Firmante"
_LOCALE: Final = "es"
_NAME_BYTES: Final = 42
"""What the mark leaves of a name in a certificate."""
_DOMAIN: Final = "prueba.invalid"
"""Never delivered to anybody (RFC 2606)."""
_FIRST_DNI: Final = 98_000_000
_DNI: Final = slice(2, 10)
"""Digits of a CUIL."""
_DNIS: Final = 2_000_000
"""From there on none was ever given to anybody."""
_TRIES: Final = 5
_SEALED: Final = ("password_sealed", "sign_password_sealed")
_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class SignerForTestsOrder:
    """Whom a backend wants; what is None is made up."""

    name: str | None = None
    cuil: str | None = None
    """Eleven digits."""
    email: str | None = field(default=None, repr=False)
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class SignerForTestsView:
    """A test signer, as the integrator that made them sees them."""

    person: Person
    email: str = field(repr=False)
    password: str = field(repr=False)
    """For sign-in."""
    sign_password: str = field(repr=False)
    totp: str = field(repr=False)
    """Seed of the one-time codes, in Base32."""
    created: datetime
    state: SignerState


class AwaitedTasks(Protocol):
    """What the HSM is asked for, as `HsmTasks` has it."""

    async def wait(self, task: TaskId, timeout_s: float) -> dict[str, object]:
        """Wait until a task is done.

        Raises:
            ApplianceError: `TASK_FAILED`, or `HSM_UNAVAILABLE` after the time.
        """
        ...


class SignersForTests:
    """The use cases of an integrator's backend around its test signers.

    Args:
        store: the record.
        people: records people.
        sealer: with the data key.
        tasks: makes keys and certificates.
        clock: the time.
        environment: of the installation.
        issuing: asks for the key of a signer who is made up again.
    """

    def __init__(
        self,
        store: Database,
        people: People,
        sealer: Sealer,
        tasks: AwaitedTasks,
        clock: Clock,
        environment: Environment,
        issuing: Issuance,
    ) -> None:
        self._store = store
        self._people = people
        self._sealer = sealer
        self._tasks = tasks
        self._clock = clock
        self._environment = environment
        self._issuing = issuing

    async def create(
        self, asking: IntegratorCaller, order: SignerForTestsOrder
    ) -> SignerForTestsView:
        """Make somebody up who can sign; waits a while for the certificate.

        CUIL or address of one whom this integrator removed brings that one back.

        Raises:
            FieldInvalidError: `nombre`; `cuil` or `email` that somebody real may have.
            ApplianceError: `NOT_FOUND` in PROD; `TEST_SIGNERS_TOO_MANY`;
                `ALREADY_EXISTS` for a CUIL or an address that somebody has.
            HsmUnavailableError: no host can make a key now.
        """
        self._demand_preprod()
        _demand_nobodys(order)
        restored = await self._restored(asking, order)
        if restored is not None:
            return await self.get(asking.integrator.id, restored.cuil)
        for left in reversed(range(_TRIES)):
            cuil = order.cuil or _made_up_cuil()
            try:
                await self._create(asking, order, cuil)
                break
            except ApplianceError as refusal:
                is_taken = refusal.code is ErrorCode.ALREADY_EXISTS
                if order.cuil or order.email or not is_taken or not left:
                    raise
        return await self.get(asking.integrator.id, cuil)

    async def _create(
        self, asking: IntegratorCaller, order: SignerForTestsOrder, cuil: str
    ) -> None:
        password, sign_password = secrets.token_urlsafe(9), secrets.token_urlsafe(9)
        new = NewPersonOrder(
            cuil=cuil,
            name=_marked(order.name or _NAME),
            email=order.email or f"{cuil}@{_DOMAIN}",
            login_password=password,
            signing_password=sign_password,
            vouched_by=VouchedBy.TEST,
            locale=order.locale or _LOCALE,
        )
        beside = partial(self._record, asking.integrator.id, (password, sign_password))
        made = await self._people.create_person(new, asking.actor, beside)
        # Without its certificate by then it is ready soon after.
        with contextlib.suppress(ApplianceError):
            await self._tasks.wait(made.task, _WAIT_S)

    async def _record(
        self,
        whose: IntegratorId,
        passwords: tuple[str, str],
        transaction: Transaction,
        person: Person,
    ) -> None:
        """Say whose a new person is, if there is room for one more.

        Raises:
            ApplianceError: `TEST_SIGNERS_TOO_MANY`.
        """
        await _demand_room(transaction, whose)
        sealed = [
            self._sealer.seal(
                secret.encode(), table="test_signer", row=person.id, column=column
            )
            for secret, column in zip(passwords, _SEALED, strict=True)
        ]
        await SignerForTestsStore(transaction).add(person.id, whose, *sealed)

    async def _restored(
        self, asking: IntegratorCaller, order: SignerForTestsOrder
    ) -> Person | None:
        """Bring back a test signer of the integrator who was removed.

        The row stays theirs for good: documents, evidence and audit name it. So whoever
        is made up under its CUIL again is the same person, with the same secrets.

        Returns:
            None where nobody is as ordered.

        Raises:
            ApplianceError: `TEST_SIGNERS_TOO_MANY`; `ALREADY_EXISTS`: another call
                was first.
            HsmUnavailableError: they need a key, and no host can make one now.
        """
        whose = asking.integrator.id
        async with self._store.read() as transaction:
            who = await self._people.holder(transaction, order.cuil, order.email)
            found = who and await SignerForTestsStore(transaction).removed(
                who.id, whose
            )
            if not found or not self._is_ordered(found, order):
                return None
            has_key = bool(await CredentialStore(transaction).locked(found.person.id))
        if not has_key:
            await self._issuing.plan()
        async with self._store.write() as transaction:
            await _demand_room(transaction, whose)
            if not await SignerForTestsStore(transaction).restore(found.person.id):
                raise ApplianceError(
                    ErrorCode.ALREADY_EXISTS, params={"field": "cuil / email"}
                )
            await self._people.readmit(
                transaction, found.person, self._email(found), asking.actor
            )
        if not has_key:
            await self._issue(asking, found)
        return found.person

    def _is_ordered(self, found: SignerForTests, order: SignerForTestsOrder) -> bool:
        """Return whether a signer who was removed is as an order wants them."""
        person = found.person
        return (
            person.state is PersonState.DISABLED
            and (order.name is None or _marked(order.name) == person.name)
            and (order.email is None or normal_email(order.email) == self._email(found))
            and order.locale in {None, person.locale}
        )

    async def _issue(self, asking: IntegratorCaller, found: SignerForTests) -> None:
        """Ask for another key of a signer whose last one is over; waits a while."""
        password = self._sealer.open(
            found.sign_password_sealed,
            table="test_signer",
            row=found.person.id,
            column=_SEALED[1],
        ).decode()
        who = Signer(found.person.id, asking.actor, FACTORS, self._clock.now())
        # Without its certificate by then it is ready soon after.
        with contextlib.suppress(ApplianceError):
            await self._tasks.wait(await self._issuing.again(who, password), _WAIT_S)

    def _email(self, found: SignerForTests) -> str:
        return self._sealer.open(
            found.email_sealed,
            table="person",
            row=found.person.id,
            column="email_sealed",
        ).decode()

    async def get(self, whose: IntegratorId, cuil: str) -> SignerForTestsView:
        """One of an integrator's.

        Args:
            whose: the integrator.
            cuil: eleven digits.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `NOT_FOUND` in PROD.
        """
        self._demand_preprod()
        async with self._store.read() as transaction:
            found = await self._found(transaction, whose, cuil)
            return await self._view(transaction, found)

    async def page(
        self, whose: IntegratorId, before: tuple[datetime, str] | None, limit: int
    ) -> list[SignerForTestsView]:
        """Those of an integrator, newest first.

        Args:
            whose: the integrator.
            before: time and id of the one that the page begins after; None: the first.
            limit: how many.

        Raises:
            ApplianceError: `NOT_FOUND` in PROD.
        """
        self._demand_preprod()
        async with self._store.read() as transaction:
            found = await SignerForTestsStore(transaction).page(whose, before, limit)
            return [await self._view(transaction, each) for each in found]

    async def remove(self, asking: IntegratorCaller, cuil: str) -> None:
        """Have a test signer be gone: they sign no more, and are seen by nobody.

        What they signed stays. Their CUIL and address are free again for this
        integrator alone; see `create`.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `NOT_FOUND` in PROD.
        """
        self._demand_preprod()
        async with self._store.write() as transaction:
            found = await self._found(transaction, asking.integrator.id, cuil)
            who = found.person.id
            # First, as the check of an `If-Match` does.
            await PersonStore(transaction).hold(who)
            await SignerForTestsStore(transaction).remove(who, self._clock.now())
            if await PersonStore(transaction).move(
                who, PersonState.ACTIVE, PersonState.DISABLED
            ):
                transaction.audit.add(_disabled(asking, who))

    async def acting(self, asking: IntegratorCaller, cuil: str) -> tuple[Signer, bytes]:
        """A test signer as signing knows them, and their signing password.

        The audit has the integrator as who did it, and `test` as what was proven.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `NOT_FOUND` in PROD.
        """
        found = await self.get(asking.integrator.id, cuil)
        signer = Signer(found.person.id, asking.actor, FACTORS, self._clock.now())
        return signer, normalize(found.sign_password)

    async def request_of(
        self, whose: IntegratorId, signer: PersonId, wanted: ProcessId | RequestId
    ) -> RequestId:
        """The request of a signer in a process; one that is named is taken as it is.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`.
        """
        if not isinstance(wanted, str):
            return wanted
        async with self._store.read() as transaction:
            process = await ProcessStore(transaction).get(whose, wanted)
        for view in () if process is None else process.requests:
            if view.person == signer:
                return view.id
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)

    def _demand_preprod(self) -> None:
        """Refuse whatever is asked for in PROD, where the test mode is not.

        Raises:
            ApplianceError: `NOT_FOUND`.
        """
        if self._environment is not Environment.PREPROD:
            raise ApplianceError(ErrorCode.NOT_FOUND)

    @staticmethod
    async def _found(
        transaction: Transaction, whose: IntegratorId, cuil: str
    ) -> SignerForTests:
        """One of an integrator's.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`.
        """
        found = await SignerForTestsStore(transaction).get(whose, cuil)
        if found is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return found

    async def _view(
        self, transaction: Transaction, found: SignerForTests
    ) -> SignerForTestsView:
        person = found.person
        login = await LoginSecretStore(transaction).secret(person.id)
        if login is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        refusal = await refusal_of(transaction, person.id, self._clock.now())
        password, sign_password, email, totp = (
            self._sealer.open(sealed, table=table, row=person.id, column=name).decode()
            for sealed, table, name in (
                (found.password_sealed, "test_signer", _SEALED[0]),
                (found.sign_password_sealed, "test_signer", _SEALED[1]),
                (found.email_sealed, "person", "email_sealed"),
                (login.totp_sealed, "login_secret", "totp_sealed"),
            )
        )
        return SignerForTestsView(
            person,
            email,
            password,
            sign_password,
            totp,
            found.created,
            SignerState(person.cuil, person.state, refusal, person.id),
        )


def _demand_nobodys(order: SignerForTestsOrder) -> None:
    """Refuse CUIL and address that are not reserved for test signers.

    Else an integrator could keep anybody real from ever being enrolled.

    Raises:
        FieldInvalidError: `cuil`, `email`.
    """
    if order.cuil is not None and int(order.cuil[_DNI]) < _FIRST_DNI:
        raise FieldInvalidError("cuil", f"a DNI of {_FIRST_DNI} or more")
    domain = (order.email or _DOMAIN).rpartition("@")[2].casefold()
    if domain != _DOMAIN and not domain.endswith(f".{_DOMAIN}"):
        raise FieldInvalidError("email", f"…@{_DOMAIN}")


async def _demand_room(transaction: Transaction, whose: IntegratorId) -> None:
    """Refuse one more than an integrator may have.

    Raises:
        ApplianceError: `TEST_SIGNERS_TOO_MANY`.
    """
    # Of two at a time the second waits, and counts the first.
    await IntegratorStore(transaction).lock_keys(whose)
    if await SignerForTestsStore(transaction).count(whose) >= SIGNERS_AT_MOST:
        raise ApplianceError(
            ErrorCode.TEST_SIGNERS_TOO_MANY, params={"most": SIGNERS_AT_MOST}
        )


def _marked(name: str) -> str:
    """A name that says that nothing signed in it has any effect.

    Raises:
        FieldInvalidError: it is none, or is too long for that.
    """
    return certificate_name(name, "nombre", _NAME_BYTES, before=f"{MARK} · ")


def _made_up_cuil() -> str:
    """Of a number that nobody has."""
    while True:
        dni = f"{_FIRST_DNI + secrets.randbelow(_DNIS)}"
        for cuil in cuils_of(dni):
            return cuil


def _disabled(asking: IntegratorCaller, who: PersonId) -> AuditEvent:
    return AuditEvent(
        EventKind.PERSON_DISABLED,
        asking.actor,
        integrator=asking.integrator.id,
        detail={
            "person": who,
            "before": {"state": PersonState.ACTIVE.value},
            "after": {"state": PersonState.DISABLED.value},
        },
    )

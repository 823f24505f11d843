"""People as an integrator's backend sees them: whether they can sign, and its guests.

Source: decisions "who may be certified"; docs/integration.md "Signers".
"""

from dataclasses import dataclass, field
from datetime import datetime

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.integrators.integrators import IntegratorCaller, Invitation
from appliance.domain.people.identity import Person
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.identity.invitations import Invitations
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import seen_by
from appliance.people.vouch_store import Vouch, VouchStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.signing.signer_readiness import refusal_of


@dataclass(frozen=True, slots=True)
class SignerState:
    """Whether somebody could sign now."""

    cuil: str
    """Eleven digits."""
    state: PersonState | None
    """None for somebody who is not known here."""
    refusal: ApplianceError | None
    """Why somebody who is enrolled could not."""
    person: PersonId | None = None
    """Their id."""

    @property
    def may_sign(self) -> bool:
        """Whether nothing keeps them from it."""
        return self.state is PersonState.ACTIVE and self.refusal is None


@dataclass(frozen=True, slots=True)
class VouchOrder:
    """An integrator's word for who somebody is."""

    cuil: str
    """Eleven digits."""
    name: str
    email: str = field(repr=False)
    method: str
    by: str
    checked: datetime
    locale: str = "es"
    wants_link: bool = False
    """Whether a new link is wanted for somebody whom it invited already."""
    by_mail: bool = False
    """Whether a link that is made goes to them by mail as well."""


@dataclass(frozen=True, slots=True)
class Vouched:
    """What a vouch came to."""

    state: SignerState
    invitation: Invitation | None
    """The link of a new person, or the new one that was asked for; shown once."""
    is_new: bool


class BackendSigners:
    """The use cases of an integrator's backend around people.

    Args:
        store: the record.
        invitations: invite.
        clock: the time.
    """

    def __init__(self, store: Database, invitations: Invitations, clock: Clock) -> None:
        self._store = store
        self._invitations = invitations
        self._clock = clock

    async def state(self, whose: IntegratorId, cuil: str) -> SignerState:
        """Whether somebody could sign now, and why not.

        Args:
            whose: the integrator that asks.
            cuil: eleven digits.
        """
        async with self._store.read() as transaction:
            found = await PersonStore(transaction).by_cuil(cuil)
            person = await seen_by(transaction, found, whose)
            return await self._state(transaction, cuil, person)

    async def _state(
        self, transaction: Transaction, cuil: str, person: Person | None
    ) -> SignerState:
        if person is None:
            return SignerState(cuil, None, None)
        refusal = None
        if person.state is PersonState.ACTIVE:
            refusal = await refusal_of(transaction, person.id, self._clock.now())
        return SignerState(cuil, person.state, refusal, person.id)

    async def vouch(self, asking: IntegratorCaller, order: VouchOrder) -> Vouched:
        """Answer for who somebody is, and invite them where they are not known.

        Somebody who is known already stays as they are, and nothing is recorded; a new
        link is given to the integrator that invited them, and to no other.

        Args:
            asking: an integrator that may vouch.
            order: for whom.

        Raises:
            FieldInvalidError: `cuil`, `nombre`, `email`, or `identidad.cuando` in
                the future.
            ApplianceError: `VOUCH_REFUSED` for an integrator that may not;
                `ALREADY_EXISTS` for an address that somebody else has;
                `PERSON_STATE` for a link of somebody who has enrolled;
                `PERSON_NOT_FOUND` for one of somebody else's invitation, and for
                another integrator's test signer; `MAIL_OFF`.
        """
        if not asking.integrator.may_vouch:
            raise ApplianceError(ErrorCode.VOUCH_REFUSED)
        if order.by_mail:
            self._invitations.demand_mail()
        if order.checked > self._clock.now():
            raise FieldInvalidError("identidad.cuando", "a time that has been")
        try:
            return await self._vouch(asking, order)
        except ApplianceError as refusal:
            if refusal.code is not ErrorCode.ALREADY_EXISTS:
                raise
        # Recorded by somebody else meanwhile, or the address is another person's.
        async with self._store.read() as transaction:
            if await PersonStore(transaction).by_cuil(order.cuil) is None:
                raise ApplianceError(
                    ErrorCode.ALREADY_EXISTS,
                    params={"field": "email"},
                    extras={"field": "email"},
                )
        return await self._vouch(asking, order)

    async def _vouch(self, asking: IntegratorCaller, order: VouchOrder) -> Vouched:
        """Do it, in one transaction.

        Raises:
            FieldInvalidError: see `vouch`.
            ApplianceError: see `vouch`.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            person = await PersonStore(transaction).by_cuil(order.cuil)
            whose = asking.integrator.id
            if person and await seen_by(transaction, person, whose) is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            is_new = person is None
            invitation = await self._invite(transaction, asking, order, person)
            if invitation is not None and order.by_mail:
                await self._invitations.post(
                    transaction, invitation, asking.integrator.id
                )
            known = await PersonStore(transaction).by_cuil(order.cuil)
            # Who is known was vouched for by whoever invited them, and nobody else:
            # a later word must not open what an invitation opens.
            if known is not None and is_new:
                vouch = Vouch(
                    known.id,
                    asking.integrator.id,
                    asking.key,
                    order.method,
                    order.by,
                    order.checked,
                )
                await VouchStore(transaction).add(vouch, now)
            state = await self._state(transaction, order.cuil, known)
        return Vouched(state, invitation, is_new)

    async def _invite(
        self,
        transaction: Transaction,
        asking: IntegratorCaller,
        order: VouchOrder,
        person: Person | None,
    ) -> Invitation | None:
        """The link of a new person, or of one whom this integrator invited.

        Raises:
            FieldInvalidError: see `vouch`.
            ApplianceError: see `vouch`.
        """
        if person is None:
            try:
                return await self._invitations.invite_in(
                    transaction,
                    asking.actor,
                    order.cuil,
                    order.name,
                    order.email,
                    VouchedBy.VOUCHED,
                    order.locale,
                )
            except FieldInvalidError as fault:
                if fault.field != "name":
                    raise
                # By the name that it was sent under.
                raise FieldInvalidError("nombre", fault.allowed) from fault
        if not order.wants_link:
            return None
        if person.state is not PersonState.INVITED:
            raise ApplianceError(
                ErrorCode.PERSON_STATE, params={"state": person.state.value}
            )
        # Whoever has the link becomes that person: it is theirs alone who invited.
        if not await VouchStore(transaction).is_from(person.id, asking.integrator.id):
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        contact = await PersonStore(transaction).contact(person.id)
        if contact is None or contact.vouched_by is not VouchedBy.VOUCHED:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return await self._invitations.link(
            transaction, asking.actor, person.id, contact.vouched_by
        )

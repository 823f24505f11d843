"""Inviting people: who invites answers for who the person is, and sees no secret.

Apart from `appliance.identity.enrolment`, because the console's role invites
and must never hold the pepper.

Source: decisions "who may be certified".
"""

import secrets
from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.console.lists import EnrolmentRow
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId, new_id
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.mail.mails import MailKind
from appliance.domain.people.identity import InvitedPerson, typed_cuil
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.vocab import EventKind, PersonState, VouchedBy
from appliance.identity import totp
from appliance.identity.login import email_index, refuse_known_email
from appliance.identity.people import checked_person
from appliance.mail.invitation_mail import send_invitation
from appliance.mail.mail_store import MailStore
from appliance.people.console_user_store import EnrolmentStore
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import Settings

_CODE_BYTES: Final = 32
PATH: Final = "/alta/"
"""Where the page behind a link is, on the address of the API."""


class Invitations:
    """Inviting people; needs no secret but the data and lookup keys.

    Args:
        store: the record.
        lookup: indexes of links and e-mail addresses.
        sealer: seals seeds and e-mail addresses.
        clock: the time.
        settings: addresses, lifetime of a link, whether this is a trial.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        sealer: Sealer,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._sealer = sealer
        self._clock = clock
        self._trial = settings.trial
        self._base_url = settings.web.base_url
        self._ttl = timedelta(seconds=settings.auth.enrolment_ttl_s)
        self._mail_is_on = settings.mail.is_on

    async def invite(
        self,
        actor: str,
        cuil: str,
        name: str,
        email: str,
        vouched_by: VouchedBy,
        locale: str = "es",
        *,
        by_mail: bool = False,
    ) -> Invitation:
        """Record a person without secrets, and make their link.

        Args:
            actor: for the audit; answers for the identity.
            cuil: with or without dashes.
            name: as the certificate will have it.
            email: where notices go.
            vouched_by: `officer`, or `demo` in a trial.
            locale: `es` or `en`.
            by_mail: whether it is sent to them as well.

        Returns:
            The link, shown once.

        Raises:
            FieldInvalidError: `cuil`, `name`, `email` or `locale`.
            ApplianceError: `ALREADY_EXISTS`; `NOT_A_TRIAL` for `demo` outside
                a trial; `MAIL_OFF`.
        """
        if by_mail:
            self.demand_mail()
        async with self._store.write() as transaction:
            made = await self.invite_in(
                transaction, actor, cuil, name, email, vouched_by, locale
            )
            if by_mail:
                await self.post(transaction, made)
        return made

    def demand_mail(self) -> None:
        """Refuse what is to go by mail where none is sent.

        Raises:
            ApplianceError: `MAIL_OFF`.
        """
        if not self._mail_is_on:
            raise ApplianceError(ErrorCode.MAIL_OFF)

    async def post(
        self,
        transaction: Transaction,
        invitation: Invitation,
        integrator: IntegratorId | None = None,
    ) -> None:
        """Have a link sent to whose it is.

        Args:
            transaction: in which it was made.
            invitation: it.
            integrator: that invites; None: the installation.
        """
        await send_invitation(transaction, self._sealer, invitation, integrator)

    async def invite_in(
        self,
        transaction: Transaction,
        actor: str,
        cuil: str,
        name: str,
        email: str,
        vouched_by: VouchedBy,
        locale: str = "es",
    ) -> Invitation:
        """Invite as one step of a larger change.

        Args:
            transaction: the caller's.
            actor: as `invite`, and so are the others.
            cuil: with or without dashes.
            name: as the certificate will have it.
            email: where notices go.
            vouched_by: `officer`, `vouched`, or `demo` in a trial.
            locale: `es` or `en`.

        Raises:
            FieldInvalidError: as `invite`.
            ApplianceError: as `invite`.
        """
        if vouched_by is VouchedBy.DEMO and not self._trial:
            raise ApplianceError(ErrorCode.NOT_A_TRIAL)
        person, email = checked_person(cuil, name, email, locale, PersonState.INVITED)
        new = InvitedPerson(
            person=person,
            email_sealed=self._sealer.seal(
                email.encode(), table="person", row=person.id, column="email_sealed"
            ),
            email_index=email_index(self._lookup, email),
            vouched_by=vouched_by,
        )
        await refuse_known_email(transaction, self._lookup, email)
        await PersonStore(transaction).invite(new)
        return await self.link(transaction, actor, person.id, vouched_by)

    async def renew(
        self, actor: str, cuil: str, *, by_mail: bool = False
    ) -> Invitation:
        """Make a new link for somebody invited; the earlier one ends.

        Args:
            actor: for the audit.
            cuil: of the invited person.
            by_mail: whether it is sent to them as well.

        Raises:
            FieldInvalidError: `cuil`.
            ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who has
                enrolled already; `MAIL_OFF`.
        """
        if by_mail:
            self.demand_mail()
        async with self._store.write() as transaction:
            person = await PersonStore(transaction).by_cuil(typed_cuil(cuil))
            if person is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            if person.state is not PersonState.INVITED:
                raise ApplianceError(
                    ErrorCode.PERSON_STATE, params={"state": person.state.value}
                )
            contact = await PersonStore(transaction).contact(person.id)
            if contact is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            made = await self.link(transaction, actor, person.id, contact.vouched_by)
            if by_mail:
                await self.post(transaction, made)
        return made

    async def link(
        self,
        transaction: Transaction,
        actor: str,
        person: PersonId,
        vouched_by: VouchedBy,
    ) -> Invitation:
        """Make the link of somebody invited, within the caller's transaction.

        Args:
            transaction: the caller's.
            actor: for the audit.
            person: invited; an earlier link ends.
            vouched_by: as it stands recorded.
        """
        # Of two at once the second ends the link of the first.
        await PersonStore(transaction).hold(person)
        code = secrets.token_urlsafe(_CODE_BYTES)
        row_id = new_id()
        now = self._clock.now()
        row = EnrolmentRow(
            id=row_id,
            person=person,
            totp_sealed=self._sealer.seal(
                totp.new_seed().encode(),
                table="enrolment",
                row=row_id,
                column="totp_sealed",
            ),
            until=now + self._ttl,
            used=None,
        )
        await MailStore(transaction).withdraw(person, MailKind.INVITATION)
        await EnrolmentStore(transaction).add(code_index(self._lookup, code), row, now)
        after = {
            "state": PersonState.INVITED.value,
            "vouchedBy": vouched_by.value,
            "until": row.until.isoformat(timespec="milliseconds"),
        }
        transaction.audit.add(
            AuditEvent(
                EventKind.PERSON_INVITED,
                actor,
                detail={"person": person, "before": None, "after": after},
            )
        )
        url = f"{self._base_url}{PATH}{code}"
        return Invitation(person, code, url, row.until)


def code_index(lookup: LookupIndex, code: str) -> str:
    """The index by which a link is found.

    Args:
        lookup: makes it.
        code: of the link.
    """
    return code_indexes(lookup, code)[0]


def code_indexes(lookup: LookupIndex, code: str) -> tuple[str, ...]:
    """All indexes that a link may have; see `code_index`."""
    return lookup.indexes("enrolment", code)

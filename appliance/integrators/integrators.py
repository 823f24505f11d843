"""Integrators, and the origins whose pages may show the frame.

Every change is recorded with what was before and what is after. Each holds the
integrator's row: two at once change one after the other, each what it was given.

Source: decisions "Sessions, integrators, people".
"""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import IntegratorId, new_id
from appliance.domain.integrators.integrators import (
    DELIVERY_LIMIT_BYTES,
    EVENT_PREFIX,
    BlockedView,
    DomainView,
    IntegratorView,
)
from appliance.domain.integrators.origins import parse_origin
from appliance.domain.integrators.sign_urls import is_sign_url
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.text.idn_hosts import ascii_host
from appliance.domain.vocab import EventKind
from appliance.integrators.api_keys import ApiKeys, audit, integrator_of, words
from appliance.integrators.integrator_store import IntegratorStore
from appliance.integrators.session_store import SessionStore
from appliance.record.unit_of_work import Transaction

_CODE: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_NAME_CHARS: Final = 120
_DELIVERY_AT_MOST: Final = 104_857_600
_REMINDERS: Final = 5
_LATEST_REMINDER: Final = 60
_Integrators = list[IntegratorView]
_Domains = list[DomainView]
_Blocked = list[BlockedView]


def check_code(code: str) -> None:
    """Refuse what no integrator can have as its code.

    Args:
        code: as typed.

    Raises:
        FieldInvalidError: `code`.
    """
    if not _CODE.fullmatch(code):
        raise FieldInvalidError("code", "a-z, 0-9 and -, up to 40")


def checked_name(name: str) -> str:
    """Read an integrator's name.

    Args:
        name: as typed.

    Raises:
        FieldInvalidError: `name`.
    """
    return words(name, "name", _NAME_CHARS)


def checked_reminders(days: Collection[int]) -> tuple[int, ...]:
    """Read the days after which signers are reminded: each once, the first first.

    Args:
        days: as typed.

    Raises:
        FieldInvalidError: `reminder_days`.
    """
    told = tuple(sorted({*days}))
    if told and (len(told) > _REMINDERS or told[0] < 1 or told[-1] > _LATEST_REMINDER):
        raise FieldInvalidError("reminder_days", "up to 5 numbers from 1 to 60")
    return told


def check_sign_url(sign_url: str) -> None:
    """Refuse what signers cannot be sent to.

    Args:
        sign_url: as typed; empty for none.

    Raises:
        FieldInvalidError: `sign_url`.
    """
    if sign_url and not is_sign_url(ascii_host(sign_url)):
        raise FieldInvalidError(
            "sign_url",
            "https://… , with {procesoId}, {solicitudId} or {loteId} if you like",
        )


class Integrators(ApiKeys):
    """The use cases of whoever administers integrators, their keys included."""

    async def list(self) -> _Integrators:
        """Every integrator, by code."""
        async with self._store.read() as transaction:
            return await IntegratorStore(transaction).all()

    async def get(self, code: str) -> IntegratorView:
        """An integrator by code.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            return await integrator_of(transaction, code)

    async def create(self, actor: str, code: str, name: str) -> IntegratorView:
        """Record an integrator.

        Args:
            actor: for the audit.
            code: lower-case letters, digits and hyphens, up to 40; `id` of the
                session endpoint.
            name: shown to signers.

        Raises:
            FieldInvalidError: `code` or `name`.
            ApplianceError: `ALREADY_EXISTS`.
        """
        check_code(code)
        new = IntegratorView(
            id=IntegratorId(new_id()),
            code=code,
            name=checked_name(name),
            delivery_limit_bytes=DELIVERY_LIMIT_BYTES,
            may_vouch=False,
            created=self._clock.now(),
        )
        async with self._store.write() as transaction:
            await IntegratorStore(transaction).add(new)
            audit(
                transaction,
                EventKind.INTEGRATOR_CREATED,
                actor,
                new,
                {"code": code, "before": None, "after": _integrator_json(new)},
            )
        return new

    async def change(
        self,
        actor: str,
        code: str,
        *,
        name: str | None = None,
        delivery_limit_bytes: int | None = None,
        may_vouch: bool | None = None,
        event_prefix: str | None = None,
    ) -> IntegratorView:
        """Change what is given, and leave the rest.

        Args:
            actor: for the audit.
            code: of the integrator.
            name: shown to signers.
            delivery_limit_bytes: largest PDF delivered inline, 0 to 100 MiB.
            may_vouch: whether its backend may vouch for people.
            event_prefix: of its frames' messages; empty: as the setting says. Frames
                that are open already go on with the earlier one.

        Raises:
            FieldInvalidError: `name`, `delivery_limit_bytes` or `event_prefix`.
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        limit = delivery_limit_bytes
        if limit is not None and not 0 <= limit <= _DELIVERY_AT_MOST:
            raise FieldInvalidError("delivery_limit_bytes", f"0 to {_DELIVERY_AT_MOST}")
        if event_prefix and not re.fullmatch(EVENT_PREFIX, event_prefix, re.ASCII):
            raise FieldInvalidError(
                "event_prefix", "a-z, then a-z, 0-9 and -, up to 32"
            )
        async with self._store.write() as transaction:
            before = await integrator_of(transaction, code, lock=True)
            after = replace(
                before,
                event_prefix=(
                    before.event_prefix
                    if event_prefix is None
                    else event_prefix or None
                ),
                name=before.name if name is None else checked_name(name),
                delivery_limit_bytes=(
                    before.delivery_limit_bytes if limit is None else limit
                ),
                may_vouch=before.may_vouch if may_vouch is None else may_vouch,
            )
            await _change(transaction, actor, before, after)
        return after

    async def set_mail(
        self,
        actor: str,
        code: str,
        *,
        mails_signers: bool | None = None,
        reminder_days: Collection[int] | None = None,
        sign_url: str | None = None,
    ) -> IntegratorView:
        """Change how its signers are written to: what is given, and not the rest.

        Args:
            actor: for the audit.
            code: of the integrator.
            mails_signers: whether they are.
            reminder_days: days after which they are reminded, up to five of 1 to 60.
            sign_url: where they sign; empty: its name says where.

        Raises:
            FieldInvalidError: `reminder_days` or `sign_url`.
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        days = None if reminder_days is None else checked_reminders(reminder_days)
        check_sign_url(sign_url or "")
        sign_url = sign_url and ascii_host(sign_url)
        async with self._store.write() as transaction:
            before = await integrator_of(transaction, code, lock=True)
            after = replace(
                before,
                mails_signers=(
                    before.mails_signers if mails_signers is None else mails_signers
                ),
                reminder_days=before.reminder_days if days is None else days,
                sign_url=before.sign_url if sign_url is None else sign_url or None,
            )
            await _change(transaction, actor, before, after)
        return after

    async def disable(self, actor: str, code: str) -> int:
        """Let no key of an integrator open a session; open ones end at once.

        Args:
            actor: for the audit.
            code: of the integrator; disabled already: nothing changes.

        Returns:
            How many sessions ended.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            before = await integrator_of(transaction, code, lock=True)
            if before.disabled is not None:
                return 0
            await IntegratorStore(transaction).lock_keys(before.id)
            await _change(transaction, actor, before, replace(before, disabled=now))
            ended = await SessionStore(transaction).end_of_integrator(before.id, now)
            for public_id in ended:
                audit(
                    transaction,
                    EventKind.SESSION_ENDED,
                    actor,
                    before,
                    {"session": public_id},
                )
        return len(ended)

    async def enable(self, actor: str, code: str) -> None:
        """Undo `disable`; keys and domains are those of before.

        Args:
            actor: for the audit.
            code: of the integrator.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            before = await integrator_of(transaction, code, lock=True)
            await _change(transaction, actor, before, replace(before, disabled=None))

    async def set_profile(
        self, actor: str, code: str, wishes: ProfileWishes
    ) -> IntegratorView:
        """Set how signatures for an integrator are made from now on.

        Args:
            actor: for the audit.
            code: of the integrator.
            wishes: all four; None: the installation's.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            before = await integrator_of(transaction, code, lock=True)
            after = replace(
                before,
                level=wishes.level,
                timestamp_policy=wishes.timestamp_policy,
                digest=wishes.digest,
                tsa=wishes.tsa,
            )
            await _change(transaction, actor, before, after)
        return after

    async def domains(self, code: str) -> _Domains:
        """Origins whose pages may show the frame.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            integrator = await integrator_of(transaction, code)
            return await IntegratorStore(transaction).domains(integrator.id)

    async def add_domain(
        self, actor: str, code: str, text: str, *, in_private_network: bool = False
    ) -> DomainView:
        """Allow an origin.

        Args:
            actor: for the audit.
            code: of the integrator.
            text: the origin, as typed.
            in_private_network: see `parse_origin`.

        Raises:
            DomainInvalidError: it is no exact origin, or not one for this
                environment.
            ApplianceError: `INTEGRATOR_NOT_FOUND`, `ALREADY_EXISTS`.
        """
        origin = parse_origin(
            text, self._environment, in_private_network=in_private_network
        )
        new = DomainView(new_id(), origin, None)
        async with self._store.write() as transaction:
            integrator = await integrator_of(transaction, code)
            before = await IntegratorStore(transaction).domains(integrator.id)
            await IntegratorStore(transaction).add_domain(
                integrator.id, new, self._clock.now()
            )
            origins = [domain.origin for domain in before]
            audit(
                transaction,
                EventKind.DOMAIN_ADDED,
                actor,
                integrator,
                {
                    "origin": new.origin,
                    "before": origins,
                    "after": sorted([*origins, new.origin]),
                },
            )
        return new

    async def remove_domain(self, actor: str, domain_id: str) -> None:
        """Take an origin back; frames that are open stay as they are.

        Args:
            actor: for the audit.
            domain_id: of the registered origin.

        Raises:
            ApplianceError: `NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            row = await IntegratorStore(transaction).domain(domain_id)
            if row is None:
                raise ApplianceError(ErrorCode.NOT_FOUND)
            before = await IntegratorStore(transaction).domains(row.integrator.id)
            if not await IntegratorStore(transaction).remove_domain(domain_id):
                raise ApplianceError(ErrorCode.NOT_FOUND)
            origins = [domain.origin for domain in before]
            audit(
                transaction,
                EventKind.DOMAIN_REMOVED,
                actor,
                row.integrator,
                {
                    "origin": row.domain.origin,
                    "before": origins,
                    "after": [o for o in origins if o != row.domain.origin],
                },
            )

    async def blocked_origins(self, code: str) -> _Blocked:
        """Origins whose pages tried to show the frame and were not listed.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            integrator = await integrator_of(transaction, code)
            return await IntegratorStore(transaction).blocked(integrator.id)


async def _change(
    transaction: Transaction, actor: str, before: IntegratorView, after: IntegratorView
) -> None:
    """Record how an integrator is from now on, where that is new."""
    if after != before:
        await IntegratorStore(transaction).change(after)
        audit(
            transaction,
            EventKind.INTEGRATOR_CHANGED,
            actor,
            after,
            {"before": _integrator_json(before), "after": _integrator_json(after)},
        )


def _integrator_json(view: IntegratorView) -> dict[str, object]:
    return {
        "name": view.name,
        "deliveryLimitBytes": view.delivery_limit_bytes,
        "mayVouch": view.may_vouch,
        **({"eventPrefix": view.event_prefix} if view.event_prefix else {}),
        **({"level": view.level.value} if view.level else {}),
        **(
            {"timestampPolicy": view.timestamp_policy.value}
            if view.timestamp_policy
            else {}
        ),
        **({"digest": view.digest.value} if view.digest else {}),
        **({"tsa": list(view.tsa)} if view.tsa else {}),
        **({"mailsSigners": True} if view.mails_signers else {}),
        **({"reminderDays": list(view.reminder_days)} if view.reminder_days else {}),
        **({"signUrl": view.sign_url} if view.sign_url else {}),
        **({"state": "disabled"} if view.disabled else {}),
    }

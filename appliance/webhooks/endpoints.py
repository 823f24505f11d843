"""Integrators' webhooks as whoever administers them sees and changes them.

A secret is shown once and kept sealed. Every change is recorded with what was before
and what is after. What belongs to another integrator is as absent as what does not
exist.

Source: docs/webhooks.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, new_id
from appliance.domain.integrators.webhooks import (
    WebhookEndpoint,
    WebhookMessage,
    new_secret,
)
from appliance.domain.ports import Sealer
from appliance.domain.vocab import (
    EventKind,
    MessageState,
    WebhookDisabled,
    WebhookEvent,
)
from appliance.integrators.api_keys import words
from appliance.record.unit_of_work import Database, Transaction
from appliance.webhooks.bodies import body
from appliance.webhooks.endpoint_address import AddressRules, check_address, host_of
from appliance.webhooks.endpoint_secrets import FORMER, opened_secret, sealed_secret
from appliance.webhooks.endpoint_store import EndpointStore
from appliance.webhooks.fan_out_store import FanOutStore

ENDPOINTS_AT_MOST: Final = 20
"""Of one integrator."""
OVERLAP: Final = timedelta(hours=24)
"""How long the secret before signs as well."""
LABEL_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class EndpointChange:
    """What is to be different of an endpoint; None: it stays."""

    url: str | None = None
    label: str | None = None
    events: tuple[str, ...] | None = None
    is_on: bool | None = None
    """Whether anything is to be sent to it."""


@dataclass(frozen=True, slots=True)
class NewWebhookSecret:
    """An endpoint with a new secret and, this once, the secret itself."""

    endpoint: WebhookEndpoint
    secret: str = field(repr=False)
    """`whsec_…`."""


def checked_label(label: str) -> str:
    """Read an endpoint's label.

    Args:
        label: as typed.

    Raises:
        FieldInvalidError: `label`.
    """
    return words(label, "label", LABEL_CHARS)


class WebhookEndpoints:
    """The use cases around endpoints.

    Args:
        store: the record.
        sealer: seals secrets.
        clock: the time.
        addresses: which ones are taken.
    """

    def __init__(
        self,
        store: Database,
        sealer: Sealer,
        clock: Clock,
        addresses: AddressRules,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._addresses = addresses

    async def list(self, whose: IntegratorId) -> list[WebhookEndpoint]:
        """An integrator's endpoints, oldest first."""
        async with self._store.read() as transaction:
            return await EndpointStore(transaction).of(whose)

    async def get(self, whose: IntegratorId, endpoint: str) -> WebhookEndpoint:
        """One of them.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            return await endpoint_of(transaction, whose, endpoint)

    async def pending(self, whose: IntegratorId) -> Mapping[str, int]:
        """How many messages are to be sent to each of them; those with none lack."""
        async with self._store.read() as transaction:
            return await EndpointStore(transaction).pending(whose)

    async def create(
        self,
        actor: str,
        whose: IntegratorId,
        url: str,
        label: str,
        events: Sequence[str] = (),
    ) -> NewWebhookSecret:
        """Record an endpoint; its secret is shown this once.

        Args:
            actor: for the audit.
            whose: it is to be.
            url: where messages go.
            label: what tells it from others; empty: its host.
            events: what it is to be told of; none: everything.

        Raises:
            FieldInvalidError: `url` or `label`.
            ApplianceError: `WEBHOOKS_TOO_MANY`.
        """
        url = self.checked_url(url)
        new = WebhookEndpoint(
            id=new_id(),
            integrator=whose,
            url=url,
            label=checked_label(label or host_of(url)[:LABEL_CHARS]),
            events=_chosen(events),
            created=self._clock.now(),
        )
        secret = new_secret()
        async with self._store.write() as transaction:
            endpoints = EndpointStore(transaction)
            # Locked, then counted anew: of two at a time the second waits.
            await endpoints.of(whose, lock=True)
            if len(await endpoints.of(whose)) >= ENDPOINTS_AT_MOST:
                raise ApplianceError(
                    ErrorCode.WEBHOOKS_TOO_MANY, params={"most": ENDPOINTS_AT_MOST}
                )
            await endpoints.add(new, sealed_secret(self._sealer, new.id, secret))
            _audit(
                transaction,
                EventKind.WEBHOOK_CREATED,
                actor,
                new,
                {"before": None, "after": _endpoint_json(new)},
            )
        return NewWebhookSecret(new, secret)

    async def change(
        self, actor: str, whose: IntegratorId, endpoint: str, change: EndpointChange
    ) -> WebhookEndpoint:
        """Change what is given, and leave the rest.

        One that is enabled again begins as a new one: what it failed before is
        forgotten. What was withdrawn meanwhile stays so until it is sent again.

        Raises:
            FieldInvalidError: `url` or `label`.
            ApplianceError: `WEBHOOK_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            before = await endpoint_of(transaction, whose, endpoint, lock=True)
            after = self._changed(before, change)
            if after != before:
                await EndpointStore(transaction).change(after)
                if before.is_on and not after.is_on:
                    await EndpointStore(transaction).withdraw(endpoint)
                _audit(
                    transaction,
                    EventKind.WEBHOOK_CHANGED,
                    actor,
                    after,
                    {"before": _endpoint_json(before), "after": _endpoint_json(after)},
                )
        return after

    def checked_url(self, url: str) -> str:
        """Read the address of an endpoint.

        Args:
            url: as typed.

        Raises:
            FieldInvalidError: `url`.
        """
        return check_address(url, self._addresses)

    def _changed(
        self, before: WebhookEndpoint, change: EndpointChange
    ) -> WebhookEndpoint:
        """An endpoint as it is after a change.

        Raises:
            FieldInvalidError: `url` or `label`.
        """
        after = before
        if change.url is not None:
            after = replace(after, url=self.checked_url(change.url))
        if change.label is not None:
            after = replace(after, label=checked_label(change.label))
        if change.events is not None:
            after = replace(after, events=_chosen(change.events))
        if change.is_on is None or change.is_on == before.is_on:
            return after
        if change.is_on:
            return replace(
                after, disabled=None, disabled_reason=None, failing_since=None
            )
        return replace(
            after,
            disabled=self._clock.now(),
            disabled_reason=WebhookDisabled.BY_INTEGRATOR,
        )

    async def rotate(
        self, actor: str, whose: IntegratorId, endpoint: str, *, at_once: bool = False
    ) -> NewWebhookSecret:
        """Make another secret; the one before signs as well for `OVERLAP`.

        Args:
            actor: for the audit.
            whose: the endpoint is.
            endpoint: its id.
            at_once: whether the one before signs no more.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        secret = new_secret()
        async with self._store.write() as transaction:
            before = await endpoint_of(transaction, whose, endpoint, lock=True)
            after = replace(before, former_until=now if at_once else now + OVERLAP)
            endpoints = EndpointStore(transaction)
            former = None
            if not at_once:
                # Sealed for its place, which is another one now.
                present = await endpoints.secret(endpoint)
                opened = opened_secret(self._sealer, endpoint, present)
                former = sealed_secret(self._sealer, endpoint, opened, FORMER)
            await endpoints.replace_secret(
                endpoint,
                sealed_secret(self._sealer, endpoint, secret),
                former,
                after.former_until or now,
            )
            _audit(
                transaction,
                EventKind.WEBHOOK_ROTATED,
                actor,
                after,
                {"until": _instant(after.former_until)},
            )
        return NewWebhookSecret(after, secret)

    async def remove(self, actor: str, whose: IntegratorId, endpoint: str) -> None:
        """Send nothing to an endpoint ever again.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            before = await endpoint_of(transaction, whose, endpoint, lock=True)
            endpoints = EndpointStore(transaction)
            await endpoints.change(replace(before, removed=self._clock.now()))
            await endpoints.withdraw(endpoint)
            _audit(
                transaction,
                EventKind.WEBHOOK_REMOVED,
                actor,
                before,
                {"before": _endpoint_json(before), "after": None},
            )

    async def test(
        self, actor: str, whose: IntegratorId, endpoint: str
    ) -> WebhookMessage:
        """Have a trial sent to an endpoint, whatever it wants to be told of.

        Raises:
            ApplianceError: `WEBHOOK_NOT_FOUND`, `WEBHOOK_DISABLED`.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            to = await endpoint_of(transaction, whose, endpoint, lock=True)
            demand_on(to)
            message = WebhookMessage(
                id=new_id(),
                endpoint=endpoint,
                event=None,
                kind=WebhookEvent.WEBHOOK_TEST,
                request=None,
                body=body(WebhookEvent.WEBHOOK_TEST, now, {"webhookId": endpoint}),
                created=now,
                state=MessageState.PENDING,
                tries=0,
                due=now,
            )
            await FanOutStore(transaction).add([message])
            _audit(
                transaction,
                EventKind.WEBHOOK_TESTED,
                actor,
                to,
                {"message": message.id},
            )
        return message


async def endpoint_of(
    transaction: Transaction, whose: IntegratorId, endpoint: str, *, lock: bool = False
) -> WebhookEndpoint:
    """An integrator's endpoint.

    Args:
        transaction: the caller's.
        whose: it is.
        endpoint: its id.
        lock: keep it from others until the transaction ends.

    Raises:
        ApplianceError: `WEBHOOK_NOT_FOUND`.
    """
    found = await EndpointStore(transaction).get(whose, endpoint, lock=lock)
    if found is None:
        raise ApplianceError(ErrorCode.WEBHOOK_NOT_FOUND)
    return found


def demand_on(endpoint: WebhookEndpoint) -> None:
    """Refuse what would be sent to a disabled endpoint.

    Raises:
        ApplianceError: `WEBHOOK_DISABLED`.
    """
    if not endpoint.is_on:
        raise ApplianceError(ErrorCode.WEBHOOK_DISABLED)


def _chosen(events: Sequence[str]) -> tuple[str, ...]:
    """Each of them once, in their own order; unknown ones are let go."""
    return tuple(each.value for each in WebhookEvent if each in events)


def _audit(
    transaction: Transaction,
    event: EventKind,
    actor: str,
    endpoint: WebhookEndpoint,
    detail: dict[str, object],
) -> None:
    transaction.audit.add(
        AuditEvent(
            event,
            actor,
            integrator=endpoint.integrator,
            detail={"endpoint": endpoint.id, **detail},
        )
    )


def _endpoint_json(endpoint: WebhookEndpoint) -> dict[str, object]:
    return {
        "url": endpoint.url,
        "label": endpoint.label,
        "events": [*endpoint.events],
        "disabled": _instant(endpoint.disabled),
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds")

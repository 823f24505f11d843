"""What is wrong with how an integrator is set up, as its backend asks.

Source: docs/integration.md "What is wrong".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import (
    BlockedView,
    DomainView,
    IntegratorCaller,
    KeyView,
)
from appliance.domain.integrators.webhooks import WebhookEndpoint
from appliance.integrators.integrator_store import IntegratorStore
from appliance.record.unit_of_work import Database
from appliance.webhooks.endpoint_store import EndpointStore

_SOON: Final = timedelta(days=14)
_MOST_BLOCKED: Final = 50
"""Origins that are told, the newest."""


class Amiss(StrEnum):
    """Something that keeps an integrator from working, or soon will."""

    KEY_FLAGGED = "clave_expuesta"
    KEY_ENDS = "clave_por_vencer"
    NO_DOMAIN = "sin_dominios"
    DOMAIN_UNSEEN = "dominio_sin_uso"
    ORIGIN_BLOCKED = "origen_bloqueado"
    WEBHOOK_OFF = "webhook_apagado"
    WEBHOOK_FAILING = "webhook_con_fallas"
    NO_VOUCH = "sin_derecho_a_responder"


@dataclass(frozen=True, slots=True)
class Found:
    """One of those, and what it is about."""

    what: Amiss
    about: str = ""
    """Origin, address of a webhook, id of a key."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How an integrator is set up."""

    key: KeyView
    """The one that asks."""
    key_ends: datetime | None
    domains: Sequence[DomainView]
    blocked: Sequence[BlockedView]
    webhooks: Sequence[WebhookEndpoint]
    pending: Mapping[str, int]
    """By webhook: what waits to be sent."""
    has_mail: bool
    """A server is set."""
    mails_signers: bool
    """And the integrator's signers are written to."""
    may_vouch: bool
    found: Sequence[Found] = ()


class BackendDiagnosis:
    """Looks at how integrators are set up.

    Args:
        store: the record.
        clock: the time.
        has_mail: whether a mail server is set.
    """

    def __init__(self, store: Database, clock: Clock, *, has_mail: bool) -> None:
        self._store = store
        self._clock = clock
        self._has_mail = has_mail

    async def look(self, asking: IntegratorCaller) -> Diagnosis:
        """What an integrator has, and what is amiss with it.

        Args:
            asking: whose backend, with which key.

        Raises:
            ApplianceError: `API_KEY_INVALID`: the key was revoked meanwhile.
        """
        whose = asking.integrator
        async with self._store.read() as transaction:
            integrators = IntegratorStore(transaction)
            endpoints = EndpointStore(transaction)
            row = await integrators.key(asking.key)
            if row is None:
                raise ApplianceError(ErrorCode.API_KEY_INVALID)
            ends = [
                each for each in (row.key.expires, row.key.ends) if each is not None
            ]
            seen = Diagnosis(
                key=row.key,
                key_ends=min(ends, default=None),
                domains=await integrators.domains(whose.id),
                blocked=(await integrators.blocked(whose.id))[:_MOST_BLOCKED],
                webhooks=await endpoints.of(whose.id),
                pending=await endpoints.pending(whose.id),
                has_mail=self._has_mail,
                mails_signers=self._has_mail and bool(whose.mails_signers),
                may_vouch=whose.may_vouch,
            )
        return _with_faults(seen, self._clock.now())


def _with_faults(seen: Diagnosis, now: datetime) -> Diagnosis:
    found = [*_of_key(seen, now), *_of_pages(seen), *_of_webhooks(seen)]
    if ApiKeyScope.PEOPLE_WRITE in seen.key.scopes and not seen.may_vouch:
        found.append(Found(Amiss.NO_VOUCH))
    return replace(seen, found=found)


def _of_key(seen: Diagnosis, now: datetime) -> Iterator[Found]:
    if seen.key.flagged is not None:
        yield Found(Amiss.KEY_FLAGGED, seen.key.id)
    if seen.key_ends is not None and seen.key_ends < now + _SOON:
        yield Found(Amiss.KEY_ENDS, seen.key.id)


def _of_pages(seen: Diagnosis) -> Iterator[Found]:
    """Of where the iframe may stand, for a key that opens sessions."""
    if ApiKeyScope.SESSIONS_WRITE in seen.key.scopes:
        if not seen.domains:
            yield Found(Amiss.NO_DOMAIN)
        for domain in seen.domains:
            if domain.seen is None:
                yield Found(Amiss.DOMAIN_UNSEEN, domain.origin)
    for origin in seen.blocked:
        yield Found(Amiss.ORIGIN_BLOCKED, origin.origin)


def _of_webhooks(seen: Diagnosis) -> Iterator[Found]:
    for webhook in seen.webhooks:
        if webhook.disabled is not None:
            yield Found(Amiss.WEBHOOK_OFF, webhook.url)
        elif webhook.failing_since is not None:
            yield Found(Amiss.WEBHOOK_FAILING, webhook.url)

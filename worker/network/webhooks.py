"""Delivers webhooks' messages: one try after another, several receivers at once.

Any answer of 2xx is a delivery; a redirect is none, for nobody chose where it leads.
A receiver that hangs takes up its own share of the hands alone, and one that fails a
single one; all of an integrator's together take up a quarter.
"""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from operator import attrgetter
from typing import Final

import aiohttp
import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.vocab import DeliveryFailure
from appliance.metrics import metrics
from appliance.settings import SettingsError, WebhookSettings
from appliance.webhooks.delivery import Outcome, WebhookDelivery
from appliance.webhooks.message_queue import Full, MessageClaim
from worker.failpoints import WEBHOOK_SENT, crash_point
from worker.leased_worker import FencedOffError, GiveBack, LeasedWorker, Work
from worker.network.address_guard import RefusedAddressError
from worker.network.guarded_http import (
    FAILURES,
    Answer,
    BadUrlError,
    GuardedHttp,
    host_of,
)

_log = structlog.get_logger(__name__)
_RENEW_S: Final = 30.0
_LOOK_S: Final = 1.0
"""Time between two looks for what is due."""
_INTEGRATORS_AT_LEAST: Final = 4
"""That have messages in hand before none is free."""
_ANSWER_CHARS: Final = 1000
_GOOD: Final = range(200, 300)
_REDIRECTS: Final = range(300, 400)


def tls_context(settings: WebhookSettings) -> ssl.SSLContext:
    """What receivers' certificates are checked by.

    Raises:
        SettingsError: `ca_file` cannot be used.
    """
    context = ssl.create_default_context()
    if settings.ca_file is not None:
        try:
            context.load_verify_locations(cafile=settings.ca_file)
        except OSError as exc:
            msg = f"webhooks.ca_file: {settings.ca_file} cannot be used ({exc})"
            raise SettingsError(msg) from exc
    return context


@dataclass(slots=True)
class WebhookSender:
    """Has tries in hand until it is told to stop.

    Args:
        delivery: this worker's transactions.
        http: goes out.
        clock: the time of signatures.
        settings: how many tries at once.
    """

    delivery: WebhookDelivery
    http: GuardedHttp
    clock: Clock
    settings: WebhookSettings
    _has_released: bool = field(init=False, default=False)
    _messages: Work[MessageClaim] = field(init=False)
    _worker: LeasedWorker = field(init=False)

    def __post_init__(self) -> None:
        self._messages = Work(
            "message",
            attrgetter("id"),
            self._next_work,
            self.delivery.renew,
            self.send,
            _RENEW_S,
        )
        self._worker = LeasedWorker([self._messages], _LOOK_S)

    async def run(self, stop: asyncio.Event) -> None:
        """Deliver until told to stop; what is in hand then is let finish.

        Args:
            stop: set when it is to.
        """
        await self._worker.run(stop)

    def wake(self) -> None:
        """Look for messages at once."""
        self._worker.wake.set()

    async def _next_work(self) -> MessageClaim | None:
        """Take a message, if a hand is free; of those who have not had their share.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not self._has_released:
            # Of an earlier start of this slot, which is dead.
            await self.delivery.release_own()
            self._has_released = True
        in_hand = self._messages.in_hand
        if len(in_hand) >= self.settings.concurrency:
            return None
        return await self.delivery.claim_next(self._full(in_hand))

    def _full(self, in_hand: Sequence[MessageClaim]) -> Full:
        """Who has had their share; that of an integrator is a quarter of the hands."""
        failing = {each.endpoint for each in in_hand if each.failing_since is not None}
        most = self.settings.endpoint_concurrency
        share = max(1, self.settings.concurrency // _INTEGRATORS_AT_LEAST)
        endpoints = Counter(each.endpoint for each in in_hand)
        integrators = Counter(each.integrator for each in in_hand)
        return Full(
            [each for each, n in endpoints.items() if each in failing or n >= most],
            [each for each, n in integrators.items() if n >= share],
        )

    async def send(self, claim: MessageClaim) -> GiveBack | None:
        """Try once.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        outcome = await self._try(claim)
        crash_point(WEBHOOK_SENT, claim.id)
        failure = outcome.failure
        metrics.WEBHOOK_TRIES.labels(failure or "delivered").inc()
        if failure is not None:
            _log.warning(
                "webhook.failed",
                endpoint=claim.endpoint,
                host=host_of(claim.url),
                failure=failure.value,
                status=outcome.status,
                tries=claim.tries + 1,
            )
        if not await self.delivery.settle(claim, outcome):
            raise FencedOffError
        return None

    async def _try(self, claim: MessageClaim) -> Outcome:
        """Go there and back."""
        at, began = self.clock.now(), time.monotonic()
        answer, failure = None, None
        try:
            headers = self.delivery.headers(claim, at)
        except (ApplianceError, ValueError):
            # A try like any other, or it would be claimed again for ever.
            return Outcome(at, timedelta(0), failure=DeliveryFailure.SECRET)
        try:
            answer = await self.http.tell(claim.url, headers, claim.body.encode())
        except FAILURES as exc:
            failure = failure_of(exc)
        took = timedelta(seconds=time.monotonic() - began)
        if answer is None:
            return Outcome(at, took, failure=failure)
        return Outcome(
            at,
            took,
            answer.status,
            _refusal(answer),
            _shown(answer.beginning),
            answer.retry_after,
        )


def _refusal(answer: Answer) -> DeliveryFailure | None:
    """Why an answer is no delivery; None: it is one."""
    if answer.status in _GOOD:
        return None
    if answer.status in _REDIRECTS:
        return DeliveryFailure.REDIRECT
    if answer.status == HTTPStatus.GONE:
        return DeliveryFailure.GONE
    return DeliveryFailure.STATUS


def failure_of(error: BaseException) -> DeliveryFailure:
    """Why there was no answer.

    Args:
        error: one of `FAILURES`.
    """
    # aiohttp wraps what the resolver and the socket raise.
    causes = _causes(error)
    if any(isinstance(each, RefusedAddressError) for each in causes):
        return DeliveryFailure.REFUSED_ADDRESS
    for kinds, failure in _KINDS:
        if isinstance(error, kinds):
            return failure
    return DeliveryFailure.CONNECTION


_KINDS: Final = (
    (TimeoutError, DeliveryFailure.TIMEOUT),
    ((BadUrlError, aiohttp.InvalidURL), DeliveryFailure.BAD_URL),
    (aiohttp.ClientConnectorDNSError, DeliveryFailure.NAME),
    (
        (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch, ssl.SSLError),
        DeliveryFailure.TLS,
    ),
    (
        (aiohttp.ClientResponseError, aiohttp.ClientPayloadError),
        DeliveryFailure.BAD_ANSWER,
    ),
    ((aiohttp.ClientError, OSError), DeliveryFailure.CONNECTION),
    (ValueError, DeliveryFailure.BAD_URL),
)
"""The first that fits."""


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _shown(beginning: bytes) -> str:
    text = beginning.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text)[:_ANSWER_CHARS]

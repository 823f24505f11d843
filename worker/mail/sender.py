"""Sends the mails of the record, a few at a time.

A mail that the server took, and whose row does not say so yet when the process dies,
is sent again with the Message-ID that it had.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final

import structlog

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.mail.mails import MailClaim, MailState
from appliance.mail.contents import MailContents
from appliance.mail.message import mail_message
from appliance.mail.smtp import Delivery, MailServer, Taken
from appliance.mail.work import MailWork
from appliance.settings import Settings
from worker.failpoints import MAIL_TAKEN, crash_point
from worker.leased_worker import FencedOffError, GiveBack, LeasedWorker, Work

_log = structlog.get_logger(__name__)
_POLL_S: Final = 3.0
_AT_ONCE: Final = 4
_RENEW_S: Final = 20.0


@dataclass(slots=True)
class MailSender:
    """Hands mails to the server.

    Args:
        work: this worker's transactions.
        contents: looks up what they tell.
        server: takes them.
        settings: of the installation.
        poll_s: time between two looks for mail, in seconds.
    """

    work: MailWork
    contents: MailContents
    server: MailServer
    settings: Settings
    poll_s: float = _POLL_S
    _has_released: bool = field(init=False, default=False)
    _mails: Work[MailClaim] = field(init=False)
    _worker: LeasedWorker = field(init=False)

    def __post_init__(self) -> None:
        self._mails = Work(
            "mail",
            attrgetter("id"),
            self._next,
            self.work.renew,
            self._send,
            _RENEW_S,
        )
        self._worker = LeasedWorker([self._mails], self.poll_s)

    async def run(self, stop: asyncio.Event) -> None:
        """Send until told to stop; what is in hand then is let finish.

        Args:
            stop: set when it is to.
        """
        await self._worker.run(stop)

    async def _next(self) -> MailClaim | None:
        """Take a mail, if a hand is free.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not self._has_released:
            await self.work.release_own()
            self._has_released = True
        if len(self._mails.in_hand) >= _AT_ONCE:
            return None
        return await self.work.claim_next()

    async def _send(self, claim: MailClaim) -> GiveBack | None:
        """Send one mail, or how to put it off.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        try:
            due = await self.work.may_go_from(claim)
            if due is not None and due > self.work.now():
                return partial(self.work.wait, claim, due)
            content = None if due is None else await self.contents.of(claim)
            if content is None:
                await self._end(claim, MailState.WITHDRAWN)
                return None
            message = mail_message(content, self.settings, claim.id, claim.created)
        except ApplianceError as exc:
            # A record that is away does not take this either; a document that is gone
            # counts as a try.
            return self._later(claim, exc.code.value)
        except Exception:  # noqa: BLE001 (whatever is wrong with one, the others go)
            _log.exception("mail.failed")
            return self._later(claim, ErrorCode.INTERNAL.value)
        delivery = await self.server.send(message)
        if delivery.taken is Taken.LATER:
            return self._later(claim, delivery.answer)
        await self._taken(claim, delivery, content.requests)
        return None

    async def _taken(
        self, claim: MailClaim, delivery: Delivery, told: Collection[RequestId]
    ) -> None:
        """Write that a mail was sent, or refused.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        crash_point(MAIL_TAKEN, claim.id)
        if delivery.taken is Taken.REFUSED:
            # Its first word is a number; what follows may quote an address.
            status = delivery.answer.partition(" ")[0]
            _log.warning("mail.refused", kind=claim.kind.value, status=status)
            await self._end(claim, MailState.REFUSED, delivery.answer)
            return
        _log.info("mail.sent", kind=claim.kind.value)
        await self._end(claim, MailState.SENT, delivery.answer, told)

    async def _end(
        self,
        claim: MailClaim,
        state: MailState,
        answer: str = "",
        told: Collection[RequestId] = (),
    ) -> None:
        """End a claim.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not await self.work.end(claim, state, answer, told):
            raise FencedOffError

    def _later(self, claim: MailClaim, answer: str) -> GiveBack:
        status = answer.partition(" ")[0]
        _log.info("mail.waits", kind=claim.kind.value, status=status)
        return partial(self.work.failed, claim, answer)

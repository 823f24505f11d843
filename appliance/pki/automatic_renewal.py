"""Certificates of the internal CA are renewed by themselves before they end.

A renewal keeps the key: nobody has to type anything. What an outside CA issued
is its to renew; of that there are warnings alone.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ErrorCode
from appliance.domain.vocab import TaskKind
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.certificates import Certificates
from appliance.record.unit_of_work import Database

_BATCH: Final = 200
_REFUSALS: Final = (
    ErrorCode.CERTIFICATE_UNVERIFIABLE.value,
    # The credential's own certificate does not state what its row says.
    ErrorCode.CERTIFICATE_NOT_USABLE.value,
)
_REFUSED_FOR: Final = timedelta(days=1)
"""The same rows give the same refusal, until somebody or an upgrade mends them."""
_WORTH: Final = timedelta(days=1)
"""A renewal that brings less than that is none: the CA itself ends."""


class AutoRenewal:
    """The use case of the chores that renew.

    Args:
        store: the record.
        certificates: asks for renewals.
        clock: the time.
        days: before its end a certificate is renewed; 0: never.
        ca_end: gives the end of the issuing CA, or None before there is one.
    """

    def __init__(
        self,
        store: Database,
        certificates: Certificates,
        clock: Clock,
        days: int,
        ca_end: Callable[[], datetime | None],
    ) -> None:
        self._store = store
        self._certificates = certificates
        self._clock = clock
        self._ahead = timedelta(days=days)
        self._ca_end = ca_end

    async def submit_due(self) -> int:
        """Ask for the renewals that are due; how many.

        Nothing while earlier ones are still to be done: what fails, as while a
        signature is being made, is asked for again in a later round; what was refused,
        a day later.
        """
        now, ca_end = self._clock.now(), self._ca_end()
        if not self._ahead or ca_end is None:
            return 0
        until = min(now + self._ahead, ca_end - _WORTH)
        async with self._store.read() as transaction:
            if await HsmTaskStore(transaction).any_open(TaskKind.RENEW):
                return 0
            refused = await HsmTaskStore(transaction).failed_by(
                TaskKind.RENEW,
                _REFUSALS,
                now - _REFUSED_FOR,
            )
            due = await CertificateStore(transaction).renewable(
                now,
                until,
                _BATCH,
                without={str(given["credential"]) for given in refused},
            )
        return sum(
            [
                await self._certificates.renew_due(credential, until, "system")
                for credential in due
            ]
        )

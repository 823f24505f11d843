"""API keys as they are presented: found, and flagged where they must never be seen.

Source: decisions "API keys".
"""

from datetime import timedelta
from typing import Final

import structlog

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import (
    LOOKS_LIKE_ONE,
    ApiKeyScope,
    is_of_another,
    read_api_key,
)
from appliance.domain.integrators.integrators import FlagReason, KeyRow
from appliance.domain.integrators.key_networks import is_within
from appliance.domain.ports import LookupIndex
from appliance.domain.vocab import Environment, EventKind
from appliance.integrators.api_keys import key_purpose
from appliance.integrators.integrator_store import IntegratorStore
from appliance.record.unit_of_work import Database

_log = structlog.get_logger(__name__)
_USE_TOLD: Final = timedelta(minutes=1)
"""A key in steady use has its last use written so often."""
_LONGEST: Final = 256
"""Most characters of a key that are looked at."""
_VALUES: Final = 8
"""Values of an address that are looked at."""


class ApiKeyAuth:
    """Keys by the text that somebody presented.

    Args:
        store: the record.
        lookup: makes the hashes that keys are kept as.
        clock: the time.
        environment: of the installation; keys of another one are none.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        clock: Clock,
        environment: Environment,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._environment = environment

    async def find(self, api_key: str) -> KeyRow | None:
        """The key of a text; what is none costs the same look-up."""
        indexes = self.indexes(api_key)
        async with self._store.read() as transaction:
            return await IntegratorStore(transaction).key_by_index(indexes)

    async def demand(
        self,
        api_key: str,
        scope: ApiKeyScope | None,
        address: str,
        *,
        integrator: str | None = None,
        from_browser: bool = False,
    ) -> KeyRow:
        """The key that a call shows, if it may be used for something; it is used then.

        Args:
            api_key: as it came.
            scope: what for; None: for any one that may do something.
            address: where the call came from: an IP address, or `LOCAL`.
            integrator: code or UUID of whose key it must be; None: anybody's.
            from_browser: the call shows marks of a browser: it is refused,
                and the key flagged.

        Raises:
            ApplianceError: `API_KEY_IN_BROWSER`, `API_KEY_MISSING`,
                `API_KEY_ENVIRONMENT`, `API_KEY_INVALID`, `API_KEY_ADDRESS`,
                `INTEGRATOR_DISABLED`, `API_KEY_SCOPE`.
        """
        row = await self.find(api_key)
        if from_browser:
            await self.flag(row, FlagReason.BROWSER)
            raise ApplianceError(ErrorCode.API_KEY_IN_BROWSER)
        self.check_form(api_key)
        if (
            row is None
            or integrator not in {None, row.integrator.code, row.integrator.id}
            or not row.key.usable(self._clock.now())
        ):
            raise ApplianceError(ErrorCode.API_KEY_INVALID)
        # From here on for who showed a good key of theirs, and from where it may be.
        _check_address(row, address)
        if row.integrator.disabled is not None:
            raise ApplianceError(ErrorCode.INTEGRATOR_DISABLED)
        if not row.key.scopes or scope not in {None, *row.key.scopes}:
            wanted = ", ".join(ApiKeyScope) if scope is None else scope.value
            raise ApplianceError(ErrorCode.API_KEY_SCOPE, params={"scope": wanted})
        await self._note_use(row, self.indexes(api_key)[0])
        return row

    async def _note_use(self, row: KeyRow, key_index: str) -> None:
        """Write that a key was used, once a minute, and under its newest index."""
        now = self._clock.now()
        before, last = now - _USE_TOLD, row.key.last_used
        if last is None or last <= before or row.key_index != key_index:
            async with self._store.write() as transaction:
                await IntegratorStore(transaction).used_key(
                    row.key.id, key_index, now, before
                )

    def check_form(self, api_key: str) -> None:
        """Refuse what can be no key here by what everybody may read of it.

        Raises:
            ApplianceError: `API_KEY_MISSING`, `API_KEY_ENVIRONMENT`.
        """
        if not api_key:
            raise ApplianceError(ErrorCode.API_KEY_MISSING)
        if is_of_another(api_key, self._environment):
            raise ApplianceError(
                ErrorCode.API_KEY_ENVIRONMENT,
                params={"environment": self._environment.value},
            )

    def indexes(self, api_key: str) -> tuple[str, ...]:
        """All that may stand stored for a text; the present one first."""
        read = read_api_key(api_key[:_LONGEST], self._environment)
        text = read.text if read is not None else "none"
        return self._lookup.indexes(key_purpose(self._environment), text)

    async def flag_in_url(self, values: list[str]) -> None:
        """Flag the keys among the values of an address.

        Args:
            values: of the query string, as they came.
        """
        for value in values[:_VALUES]:
            if LOOKS_LIKE_ONE.search(value):
                await self.flag(await self.find(value), FlagReason.URL)

    async def flag(self, row: KeyRow | None, reason: FlagReason) -> None:
        """Mark a key that was seen where it must never be."""
        if row is None:
            return
        async with self._store.write() as transaction:
            await IntegratorStore(transaction).flag_key(
                row.key.id, reason, self._clock.now()
            )
            if row.key.flag_reason is not reason:
                # The first time tells; a page that retries must not flood.
                transaction.audit.add(
                    AuditEvent(
                        EventKind.API_KEY_FLAGGED,
                        "anonymous",
                        integrator=row.integrator.id,
                        detail={
                            "key": row.key.id,
                            "reason": reason.value,
                            "before": row.key.flag_reason,
                            "after": reason.value,
                        },
                    )
                )


def _check_address(row: KeyRow, address: str) -> None:
    """Refuse a good key from where it may not be used.

    Raises:
        ApplianceError: `API_KEY_ADDRESS`.
    """
    if not is_within(address, row.key.networks):
        _log.warning(
            "api_key.elsewhere",
            id=row.key.id,
            integrator=row.integrator.code,
            address=address,
        )
        raise ApplianceError(ErrorCode.API_KEY_ADDRESS, params={"address": address})

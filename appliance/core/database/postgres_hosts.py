"""Connecting to PostgreSQL: the hosts of a failover, and links that die.

    create_async_engine(url, connect_args={"async_creator_fn": PostgresHosts().connect})

asyncpg has one time-out for all of its hosts together, which the first uses up that
does not answer; here each has its own, and who answered last is asked first.
"""

from typing import Any, Final

import asyncpg

from appliance.core.dead_links import NOTICED_S, notice_dead_link

_PASSED_OVER: Final = (
    # Nobody there, or nobody who answers in time.
    OSError,
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    # A standby.
    asyncpg.TargetServerAttributeNotMatched,
)
SERVER_SETTINGS: Final = {
    # What a host of ours that vanished holds locked, the server lets go of likewise.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    # Twice as long: here a client that is slow to read counts as dead, too.
    "tcp_user_timeout": str(2 * NOTICED_S * 1000),
    # Of a process that was stopped in mid-transaction; its lease was over long before.
    "idle_in_transaction_session_timeout": "60000",
}
"""Of each session. Source: PostgreSQL 12, 20.3.2 and 20.11.1."""


class _Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg is not typed
    """One that breaks soon after its link."""

    __slots__ = ()

    def __init__(self, protocol: Any, transport: Any, *more: Any) -> None:
        super().__init__(protocol, transport, *more)
        notice_dead_link(transport.get_extra_info("socket"))


class PostgresHosts:
    """Where the record is, whichever host has it now."""

    def __init__(self) -> None:
        self._first = 0

    async def connect(
        self,
        *,
        host: str | list[str] | None = None,
        port: int | list[int] | None = None,
        **options: Any,
    ) -> asyncpg.Connection:
        """Connect to the first host that will do, from the last one on that did.

        Args:
            host: one, or several; None for asyncpg's own choice.
            port: of it, or of each.
            options: of `asyncpg.connect`; `timeout` is that of each host.

        Raises:
            OSError, asyncpg.PostgresError, asyncpg.InterfaceError: what the last host
                that was asked said.
        """
        hosts = host if isinstance(host, list) else [host]
        ports = port if isinstance(port, list) else [port] * len(hosts)
        error: Exception = OSError("no host is named")
        for number in range(len(hosts)):
            place = (self._first + number) % len(hosts)
            try:
                connection = await asyncpg.connect(
                    host=hosts[place],
                    port=ports[place],
                    connection_class=_Connection,
                    server_settings=SERVER_SETTINGS,
                    **options,
                )
            except _PASSED_OVER as exc:
                error = exc
            else:
                self._first = place
                return connection
        raise error

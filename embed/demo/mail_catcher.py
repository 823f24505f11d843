"""A mail server that delivers nothing: what the trial's mails are caught with.

It takes every mail and keeps the newest in memory, to be read at a page of the demo
integrator's site. It listens on this machine alone.
"""

import asyncio
import ssl
import threading
import weakref
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any, Final, Self

from aiosmtpd.smtp import SMTP, Envelope, Session

from appliance.runtime.processes import bind

KEPT: Final = 200
"""Mails, the newest."""
KEPT_BYTES: Final = 67_108_864
"""Of all of them together."""
_PARSER: Final = BytesParser(policy=policy.default)
_TAKEN: Final = "250 taken"
_BACKLOG: Final = 100


@dataclass(frozen=True, slots=True)
class CaughtMail:
    """A mail that came."""

    number: int
    """From 1, in the order they came."""
    at: datetime
    recipients: tuple[str, ...]
    content: bytes = field(repr=False)

    @property
    def message(self) -> EmailMessage:
        """The mail, read."""
        read: EmailMessage = _PARSER.parsebytes(self.content)
        return read


class _Connection(SMTP):
    """A connection whose transport, before TLS, is known.

    Args:
        opened: gets them.
        handler: of mails.
        options: of aiosmtpd's `SMTP`.
    """

    def __init__(
        self,
        opened: "weakref.WeakSet[asyncio.BaseTransport]",
        handler: "MailCatcher",
        **options: Any,
    ) -> None:
        super().__init__(handler, **options)
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if transport.get_extra_info("sslcontext") is None:
            self._opened.add(transport)
        super().connection_made(transport)


class MailCatcher:
    """Catches mails from the moment it is entered, in a thread of its own.

    Args:
        listen: `host:port`; port 0 for one that is free.
        tls: from the first byte; None: none, or by what the options say.
        options: of aiosmtpd's `SMTP`.

    Raises:
        SettingsError: it cannot listen there; the text says why.
    """

    def __init__(
        self, listen: str, tls: ssl.SSLContext | None = None, **options: Any
    ) -> None:
        host = listen.rpartition(":")[0]
        self._lock = threading.Lock()
        self._caught: deque[CaughtMail] = deque(maxlen=KEPT)
        self._count = 0
        self._name, self._tls, self._options = host, tls, options
        self._socket = bind(listen, _BACKLOG)
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._open: weakref.WeakSet[asyncio.BaseTransport] = weakref.WeakSet()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(
            self._connection,
            sock=self._socket,
            ssl=self._tls,
        )

    def _connection(self) -> SMTP:
        return _Connection(
            self._open, self, hostname=self._name, loop=self._loop, **self._options
        )

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # The library leaves a connection open that failed while TLS began.
        for transport in self._open:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
        # Each is closed by what `abort` had the loop do next.
        await asyncio.sleep(0)

    @property
    def caught(self) -> list[CaughtMail]:
        """What came, oldest first."""
        with self._lock:
            return list(self._caught)

    async def handle_DATA(  # noqa: N802 (aiosmtpd's name)
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        """Keep a mail.

        Args:
            server: of the connection.
            session: of the connection.
            envelope: with the mail.
        """
        del server, session
        content = envelope.content or b""
        if isinstance(content, str):
            content = content.encode()
        with self._lock:
            self._count += 1
            self._caught.append(
                CaughtMail(
                    self._count, datetime.now(UTC), tuple(envelope.rcpt_tos), content
                )
            )
            while sum(len(mail.content) for mail in self._caught) > KEPT_BYTES:
                self._caught.popleft()
        return _TAKEN

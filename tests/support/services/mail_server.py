"""A mail server for tests: takes mails, or says what it is told to say.

with mail_server() as server:
    settings = mail_settings(server)
    ...
    server.caught[0].message
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from embed.demo.mail_catcher import MailCatcher

USER, PASSWORD = "rubrica", "clave de prueba"


class TestMailServer(MailCatcher):
    """Catches mails, but for those that it is to refuse."""

    __test__ = False
    at_recipient: str | None = None
    """Answers RCPT, in the place of taking it."""
    at_data: str | None = None
    """Answers the mail, in the place of taking it."""
    hangs_up = False
    """Whether it closes the connection when the mail has come, and takes it not."""
    tried = 0
    """Mails that came, taken or not."""

    async def handle_RCPT(  # noqa: N802 (aiosmtpd's name)
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        del server, session, options
        if self.at_recipient is not None:
            return self.at_recipient
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 (aiosmtpd's name)
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        self.tried += 1
        if self.hangs_up:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        if self.at_data is not None:
            return self.at_data
        if self.hangs_up:
            return "451 gone"
        return await super().handle_DATA(server, session, envelope)


def _authenticate(
    server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any
) -> AuthResult:
    del server, session, envelope, mechanism
    good = (
        isinstance(given, LoginPassword)
        and given.login == USER.encode()
        and given.password == PASSWORD.encode()
    )
    return AuthResult(success=good, handled=False)


def server_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS of a server with that certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


@contextmanager
def mail_server(
    tls: ssl.SSLContext | None = None, *, implicit: bool = False, auth: bool = False
) -> Iterator[TestMailServer]:
    """A server on a free port of this machine.

    Args:
        tls: by STARTTLS, which it insists on; None: none.
        implicit: TLS from the first byte instead.
        auth: whether it knows `USER` by `PASSWORD`, and with STARTTLS insists on it.
    """
    options: dict[str, Any] = {}
    if auth:
        options |= {"authenticator": _authenticate, "auth_required": not implicit}
    if implicit:
        options |= {"tls": tls, "auth_require_tls": False}
    elif tls is not None:
        options |= {"tls_context": tls, "require_starttls": True}
    server = TestMailServer("127.0.0.1:0", **options)
    with server:
        yield server

"""The server that takes our mails, by SMTP (aiosmtplib).

Source: RFC 5321; RFC 3207 (STARTTLS), RFC 8314 (TLS from the first byte).
"""

import asyncio
import re
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from enum import Enum, auto
from typing import Final

import aiosmtplib

from appliance.database.password_files import read_password
from appliance.settings import MailSettings, SettingsError
from appliance.system.tls import read_authorities

_ANSWER: Final = 200
"""Characters that are kept of what a server says."""
_ADDRESS: Final = re.compile(r"\S*@\S*")
_FOR_GOOD: Final = 500


class Taken(Enum):
    """What became of a mail at the server."""

    SENT = auto()
    REFUSED = auto()
    """For good: this mail, or this recipient."""
    LATER = auto()
    """Now it cannot be, whosever fault that is."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a mail, and what the server said."""

    taken: Taken
    answer: str
    """Code and words, without addresses; or what failed."""


class _Client(aiosmtplib.SMTP):
    """A client whose connection is closed by the time `close` lets the loop go on.

    The library waits for a server's end of TLS (30 s by Python's default), and nothing
    waits for the library: the socket stayed open when the loop ended before that.
    """

    def close(self) -> None:
        """Close the connection, and send the end of TLS without waiting for it."""
        transport = self.transport
        super().close()
        if isinstance(transport, asyncio.WriteTransport):
            # All that was written has been answered, or is of no more use.
            transport.abort()


class MailServer:
    """Hands mails to the server of the settings.

    Args:
        settings: with a host.

    Raises:
        SettingsError: a file that they name cannot be used.
    """

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        # A password that is replaced is read at the next mail; one that cannot be
        # read stops the start.
        self._password()
        self._tls = (
            None
            if settings.tls == "none"
            else read_authorities(settings.root_certificate_file)
        )

    def _password(self) -> str | None:
        path = self._settings.password_file
        return None if path is None else read_password(path)

    def _client(self) -> _Client:
        settings = self._settings
        return _Client(
            hostname=settings.host,
            port=settings.server_port,
            timeout=settings.timeout_s,
            use_tls=settings.tls == "implicit",
            start_tls=settings.tls == "starttls",
            tls_context=self._tls,
            username=settings.user,
            password=self._password(),
        )

    async def reach(self) -> str | None:
        """Connect, begin TLS and sign in, as for a mail; what failed, or None."""
        try:
            async with self._client() as client:
                await client.noop()
        except _FAILURES as exc:
            return _told(exc)
        return None

    async def send(self, message: EmailMessage) -> Delivery:
        """Hand one message on.

        Args:
            message: to one recipient.
        """
        sender = self._settings.from_address or ""
        recipient = message["To"].addresses[0].addr_spec
        accepted = ""
        try:
            async with self._client() as client:
                _, accepted = await client.sendmail(
                    sender, [recipient], message.as_bytes()
                )
        except _FAILURES as exc:
            if accepted:
                # It has the mail; that it did not say good-bye changes nothing.
                return Delivery(Taken.SENT, shown_answer(accepted))
            taken = Taken.REFUSED if _is_refusal(exc) else Taken.LATER
            return Delivery(taken, _told(exc))
        return Delivery(Taken.SENT, shown_answer(accepted))


_FAILURES: Final = (
    aiosmtplib.SMTPException,
    OSError,
    ssl.SSLError,
    SettingsError,
    ValueError,
)


def _is_refusal(exc: Exception) -> bool:
    """Whether a server said that it never takes this mail.

    That it does not let us in, or not in this sender's name, is a matter of the
    settings: the mail waits until they are mended.
    """
    if isinstance(exc, aiosmtplib.SMTPRecipientsRefused):
        return all(each.code >= _FOR_GOOD for each in exc.recipients)
    return isinstance(exc, aiosmtplib.SMTPDataError) and exc.code >= _FOR_GOOD


def _told(exc: Exception) -> str:
    if isinstance(exc, aiosmtplib.SMTPRecipientsRefused):
        exc = exc.recipients[0]
    if isinstance(exc, aiosmtplib.SMTPResponseException):
        return shown_answer(f"{exc.code} {exc.message}")
    if isinstance(exc, ssl.SSLCertVerificationError):
        return shown_answer(f"certificate: {exc.verify_message}")
    return shown_answer(f"{type(exc).__name__}: {exc}")


def shown_answer(text: str) -> str:
    """What a server said, on one line, without addresses, cut.

    Bytes that are not UTF-8 come as lone surrogates, which no record takes.
    """
    shown = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(_ADDRESS.sub("…", shown).split())[:_ANSWER]

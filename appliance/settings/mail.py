"""`[mail]`: the server that takes our mails, and whose they are."""

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from appliance.settings.named_files import CHORES, Content, Holds
from appliance.settings.section import Seconds, Section

_ADDRESS: Final = re.compile(
    r"(?=.{3,254}\Z)[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]+", re.ASCII
)
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|[0-9a-f:]{2,45}", re.ASCII)
PORTS: Final = {"starttls": 587, "implicit": 465, "none": 25}


def is_address(text: str) -> bool:
    """Whether a text is an address that mail can go to, in ASCII.

    Args:
        text: as it was typed.
    """
    return _ADDRESS.fullmatch(text) is not None


class MailSettings(Section):
    """Mails to signers; without `host` none is sent. See `docs/mail.md`."""

    host: str | None = None
    """The SMTP server that takes them; none: mail is off."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Its port; the default is 587 for `starttls`, 465 for `implicit` and 25 for
    `none`."""
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    """TLS to it: begun by STARTTLS, from the first byte, or `none`, which in PROD is
    for a server on this machine alone. Its certificate is checked."""
    root_certificate_file: Annotated[
        Path | None, Holds(Content.CERTIFICATES, CHORES)
    ] = None
    """Certificates (PEM) that the server's is checked by; the default is the
    system's."""
    user: str | None = Field(default=None, min_length=1, max_length=320)
    """Whom we sign in as; none: we do not."""
    password_file: Annotated[Path | None, Holds(Content.PASSWORD, CHORES)] = None
    """File with that user's password; read by `chores` alone."""
    from_address: str | None = None
    """Address that mails come from; needed with `host`."""
    from_name: str = Field(default="", max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")
    """Name beside it; the default is `installation`. Mails on an integrator's behalf
    have its name before it."""
    reply_to: str | None = None
    """Address that answers go to; the default is `from_address`."""
    timeout_s: Seconds = 30
    """Longest that one step of a conversation with the server may take, in seconds."""
    per_hour: int = Field(default=1000, ge=1, le=1_000_000)
    """Most mails an hour on behalf of one integrator; the rest waits."""
    attachment_bytes: int = Field(default=5_000_000, ge=0, le=50_000_000)
    """Largest signed document that is attached, in bytes; 0: none is."""

    @property
    def is_on(self) -> bool:
        """Whether mails are sent."""
        return self.host is not None

    @property
    def server_port(self) -> int:
        """The server's port."""
        return self.port or PORTS[self.tls]

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, given: str | None) -> str | None:
        if given is not None and not _HOST.fullmatch(given):
            msg = "must be a host's name or address, without a port"
            raise ValueError(msg)
        return given

    @field_validator("from_address", "reply_to")
    @classmethod
    def _is_an_address(cls, given: str | None) -> str | None:
        if given is not None and not is_address(given):
            msg = "must be an address, name@example.org"
            raise ValueError(msg)
        return given

"""The answers about the mail server, looked at: it is reached and signed in to at once.

Source: docs/mail.md "Setting it up".
"""

import asyncio
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from appliance.database.password_files import read_password
from appliance.mail.smtp import MailServer
from appliance.operations.reachability import CONNECT_S
from appliance.operations.setup.addresses import addresses_of_host
from appliance.operations.setup_answers import Answers, settings_text
from appliance.settings import MailSettings, SettingsError
from appliance.system.tls import read_authorities

_FOR_A_HOST = "is for mail_host; give that too, or leave this out"


def look_at_host(answers: Answers) -> Iterator[str]:
    """What is wrong with the server's name.

    Args:
        answers: those so far.
    """
    if answers.mail_host:
        try:
            addresses_of_host(answers.mail_host)
        except SettingsError as exc:
            yield str(exc)


def look_at_sender(answers: Answers) -> Iterator[str]:
    """What is wrong with the address that mails come from, beside its form.

    Args:
        answers: those so far.
    """
    if answers.mail_from and not answers.mail_host:
        yield _FOR_A_HOST


def look_at_authorities(answers: Answers) -> Iterator[str]:
    """What is wrong with those who certify the server, or with the way to it.

    Args:
        answers: those so far, with host, TLS and port.
    """
    if answers.mail_ca and not answers.mail_host:
        yield _FOR_A_HOST
    elif answers.mail_ca and answers.mail_tls == "none":
        yield "is for mail_tls = starttls or implicit"
    elif answers.mail_host:
        yield from _reach(answers, signs_in=False)


def look_at_user(answers: Answers) -> Iterator[str]:
    """What is missing beside whom to sign in as.

    Args:
        answers: those so far.
    """
    if answers.mail_user and not answers.mail_host:
        yield _FOR_A_HOST


def look_at_password(answers: Answers) -> Iterator[str]:
    """What is wrong with the password, or what the server says of it.

    Args:
        answers: those so far, with all others of the server.
    """
    path = answers.mail_password_file
    if not answers.mail_user:
        if path:
            yield "is for mail_user; give that too, or leave this out"
    elif not path:
        yield "is missing; mail_user needs it"
    elif answers.mail_host:
        yield from _reach(answers, signs_in=True)


def _reach(answers: Answers, *, signs_in: bool) -> Iterator[str]:
    """Connect by the settings' TLS, and sign in."""
    authorities, password = answers.mail_ca, answers.mail_password_file
    try:
        read_authorities(Path(authorities) if authorities else None)
        if signs_in:
            read_password(Path(password))
        tables = tomllib.loads(settings_text(answers))["mail"]
        settings = MailSettings.model_validate(tables).model_copy(
            update={
                # Where the settings say that files are, setup has not put them yet.
                "root_certificate_file": Path(authorities) if authorities else None,
                "password_file": Path(password) if signs_in else None,
                "user": answers.mail_user if signs_in else None,
                "timeout_s": CONNECT_S,
            }
        )
        told = asyncio.run(MailServer(settings).reach())
    except ValidationError:
        return  # told of by the answer that it is about
    except SettingsError as exc:
        told = str(exc)
    if told:
        yield told

"""Administrators prove themselves once more: by a code, or together with a second.

A step that cannot be undone asks for a code, unless one was given in this session
within the last five minutes (`RECENT`). Steps that touch what proves somebody ask for
a code each time (`ALWAYS`), and some for a second administrator as well. All others
can be undone at the console (`REVERSIBLE`). Each form is in one of the three.
"""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from quart import Response, g, request, url_for

from admin_ui import edits, session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import Environment
from appliance.identity.console_login import SignIn
from appliance.record.unit_of_work import demanding
from appliance.web.server.client_address import client_address, read_typed

_CODE: Final = re.compile(r"[0-9]{6}", re.ASCII)
_FAULTS_OF_TYPING: Final = frozenset(
    {ErrorCode.OTP_INVALID, ErrorCode.LOGIN_FAILED, ErrorCode.RATE_LIMITED}
)
RECENT_FOR: Final = timedelta(minutes=5)
"""How long a code counts for further steps of the same session."""

RECENT: Final = frozenset(
    {
        "credentials.revoke",
        "domains.remove",
        "integrators.disable",
        "integrators.set_vouch",
        "keys.revoke",
        "keys.rotate",
        "person.disable",
        "person.renew",
        "requests.cancel",
        "stamp.drop_logo",
        "trust.remove",
        "webhooks.disable",
        "webhooks.remove",
        "webhooks.rotate",
    }
)
"""Forms that ask for a code unless one was given of late.

They end something for good: a certificate, a key, a secret, a request, a link, open
sessions or messages that wait; or they let others vouch for people.
"""

ALWAYS: Final = frozenset(
    {
        "account.offer_totp",
        "account.set_password",
        "account.take_totp",
        "administrators.disable",
        "administrators.enable",
        "administrators.end_sessions",
        "administrators.forget",
        "administrators.reset_totp",
        "administrators.set_password",
        "credentials.new_pin",
        "credentials.reissue",
        "login.enter",
        "person.forget",
        "person.reset_totp",
        "person.unlock",
    }
)
"""Forms that ask for a code themselves, each time.

`administrators.end_sessions` does not for one's own other sessions.
"""

REVERSIBLE: Final = frozenset(
    {
        "credentials.import_chain",
        "credentials.renew",
        "domains.add",
        "integrators.create",
        "integrators.enable",
        "integrators.rename",
        "integrators.set_mail",
        "integrators.set_prefix",
        "keys.create",
        "login.choose_language",
        "login.leave",
        "people.create",
        "person.close_help",
        "person.enable",
        "profile.change",
        "requests.ask_again",
        "requests.create",
        "stamp.show_logo",
        "trust.add",
        "webhooks.change",
        "webhooks.create",
        "webhooks.enable",
        "webhooks.replay",
        "webhooks.replay_given_up",
        "webhooks.test",
    }
)
"""Forms whose step another step at the console undoes, or that add something which can
be disabled, removed, revoked or cancelled."""


def holds_until() -> datetime | None:
    """Return until when the last code of this session counts; None if it does not."""
    signed_in = g.get("console")
    if signed_in is None or signed_in.proven is None:
        return None
    until: datetime = signed_in.proven + RECENT_FOR
    return until if core().clock.now() < until else None


async def demand_recent() -> Response | None:
    """Ask for a code before a step of `RECENT`, unless one was given of late.

    Returns:
        The page that asks, with everything that was typed in its form; None to go on.

    Raises:
        ApplianceError: an error that is not the form's fault.
    """
    endpoint = request.endpoint or ""
    if request.method != "POST" or endpoint not in RECENT:
        return None
    if holds_until() is not None:
        return None
    sent = session.form()
    faults = NONE
    if is_code(sent.text("code")):
        faults = await confirm()
        if not faults:
            return None
    elif "code" in sent.fields:
        faults = Faults({"code": words.say("Write the six digits of the code.")})
    return await again(
        "proof.html",
        faults,
        carried=edits.typed_fields(),
        version=sent.text(edits.VERSION),
        back=url_for(edits.FORMS[endpoint].page, **(request.view_args or {})),
    )


async def _note() -> None:
    """Have the code that was just given count for the next steps as well."""
    proven = await core().console.note_proof(session.token())
    g.console = replace(session.current(), proven=proven)


def is_code(text: str) -> bool:
    """Whether a text has the form of a one-time code; it may be wrong or used up."""
    return _CODE.fullmatch(text) is not None


def needs_two() -> bool:
    """Whether a second officer has to agree (decisions "a known person")."""
    return core().settings.environment is Environment.PROD


async def confirm() -> Faults:
    """Check the own code in field `code`; what is wrong with it.

    Raises:
        ApplianceError: what is not the form's fault.
    """
    code = session.form().text("code")
    try:
        # What is used up by it is no part of the change.
        with demanding(None):
            await core().console.confirm(session.current(), code, client_address())
            await _note()
    except ApplianceError as exc:
        return _told(exc, "code")
    return NONE


async def password_and_code() -> Faults:
    """Check the own `present` password and `code`; what is wrong with them.

    Raises:
        ApplianceError: what is not the form's fault.
    """
    sent = session.form()
    wrong = incomplete_code()
    if not sent.raw("present"):
        wrong = {"present": words.say("Write your present password."), **wrong}
    if wrong:
        return Faults(wrong)
    try:
        with demanding(None):
            await core().console.prove(
                session.current(),
                sent.raw("present"),
                sent.text("code"),
                client_address(),
            )
            await _note()
    except ApplianceError as exc:
        if exc.code is not ErrorCode.LOGIN_FAILED:
            return _told(exc, "code")
        told = words.say("The password or the code is wrong. Check both.")
        return Faults({"present": told})
    return NONE


async def witness() -> tuple[str | None, Faults]:
    """Check the second officer; who it is, and what is wrong.

    Raises:
        ApplianceError: what is not the form's fault.
    """
    sent = session.form()
    typed = SignIn(
        sent.text("witness"), sent.raw("witness_password"), sent.text("witness_code")
    )
    try:
        with demanding(None):
            found = await core().console.witness(
                session.current(), typed, client_address()
            )
    except ApplianceError as exc:
        return None, _told(exc, "witness")
    return found, NONE


async def of_two() -> tuple[str | None, Faults]:
    """Check the own code and, where two are needed, the second officer.

    Returns:
        How the audit names the second, where there is one; what is wrong.

    Raises:
        ApplianceError: what is not the form's fault.
    """
    # Told before the own code is used up by a form that is refused.
    wrong = incomplete_two()
    if wrong:
        return None, Faults(wrong)
    faults = await confirm()
    if faults or not needs_two():
        return None, faults
    return await witness()


def incomplete_code() -> dict[str, str]:
    """Say what is wrong with the form of the own `code`, which is not tried."""
    if is_code(session.form().text("code")):
        return {}
    return {"code": words.say("Write the six digits of the code.")}


def incomplete_two() -> dict[str, str]:
    """Say what is missing of the own code and of the second officer, field by field."""
    wrong = incomplete_code()
    if not needs_two():
        return wrong
    sent = session.form()
    if not sent.text("witness"):
        wrong["witness"] = words.say("Write the second officer's name.")
    if not sent.raw("witness_password"):
        wrong["witness_password"] = words.say(
            "The second officer's password is missing."
        )
    if not is_code(sent.text("witness_code")):
        wrong["witness_code"] = words.say("Write the six digits of their code.")
    return wrong


def known_address() -> tuple[str | None, Faults]:
    """Read field `address`, from which somebody is let in; what is wrong with it.

    Returns:
        It as attempts are counted by, None where it was left empty; what is wrong with
        it and with the form of the own code beside it.
    """
    sent = session.form().text("address")
    address = read_typed(sent)
    wrong = incomplete_code()
    if sent and address is None:
        told = words.say("This is no IP address. For example: 192.0.2.7.")
        wrong = {"address": told, **wrong}
    return (None if wrong else address), Faults(wrong)


def _told(error: ApplianceError, field: str) -> Faults:
    """Say at a field that what was typed is not right.

    Raises:
        ApplianceError: the error itself, when the form is not at fault.
    """
    if error.code not in _FAULTS_OF_TYPING:
        raise error
    return Faults({field: words.error(error)})

"""Administrators prove themselves once more: by a code, or together with a second."""

import re
from typing import Final

from admin_ui import session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import Environment
from appliance.identity.console_login import SignIn
from appliance.web.server.client_address import client_address, read_typed

_CODE: Final = re.compile(r"[0-9]{6}", re.ASCII)
_FAULTS_OF_TYPING: Final = frozenset(
    {ErrorCode.OTP_INVALID, ErrorCode.LOGIN_FAILED, ErrorCode.RATE_LIMITED}
)


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
        await core().console.confirm(session.current(), code, client_address())
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
        await core().console.prove(
            session.current(),
            sent.raw("present"),
            sent.text("code"),
            client_address(),
        )
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
        found = await core().console.witness(session.current(), typed, client_address())
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

"""The words of each mail, in the recipient's language, without any layout."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from appliance.core.system.catalogues import translate
from appliance.domain.mail.mails import MailKind
from appliance.domain.text.civil_time import with_zone
from appliance.domain.text.sentences import Sentence
from appliance.mail.contents import MailContent

CATALOGUE: Final = "mail"
_LISTED: Final = 10
"""File names that one mail lists."""
Say = Callable[[str], Sentence]


@dataclass(frozen=True, slots=True)
class MailText:
    """What a mail says, in order."""

    subject: str
    greeting: str
    before: tuple[str, ...]
    """Paragraphs above the way on."""
    facts: tuple[tuple[str, str], ...] = ()
    """Labels and values."""
    message: str = ""
    """The integrator's own words, of several lines."""
    action: tuple[str, str] | None = None
    """A label, and the address where to go on."""
    after: tuple[str, ...] = ()
    """Paragraphs below it."""
    footer: tuple[str, ...] = ()


def words(content: MailContent, installation: str) -> MailText:
    """Say what a mail tells.

    Args:
        content: it.
        installation: name of the installation.
    """
    say: Say = partial(translate, content.lang, first=CATALOGUE)
    subject, before, facts, action, after = _PARTS[content.kind](say, content)
    return MailText(
        subject=subject,
        greeting=say("Hello, {name}:").format(name=content.name),
        before=before,
        facts=facts,
        message=content.message,
        action=action,
        after=after,
        footer=_footer(say, content, installation),
    )


_Parts = tuple[
    str,
    tuple[str, ...],
    tuple[tuple[str, str], ...],
    tuple[str, str] | None,
    tuple[str, ...],
]


def _invitation(say: Say, content: MailContent) -> _Parts:
    until = "" if content.expires is None else with_zone(content.expires, content.lang)
    return (
        say("{sender} invites you to sign electronically").format(
            sender=content.sender
        ),
        (
            say(
                "To sign you need a certificate of your own. Getting it takes a few "
                "minutes: you choose your passwords, and read a code with your phone."
            ),
        ),
        ((say("Good until"), until),),
        None if content.url is None else (say("Enrol"), content.url),
        (
            say(
                "The link is yours alone and serves once. Whoever has it can enrol in "
                "your place: do not pass it on."
            ),
            say("If you expected no invitation, you can ignore this mail."),
        ),
    )


def _request(say: Say, content: MailContent) -> _Parts:
    subject = (
        say("{sender} asks you to sign {document}").format(
            sender=content.sender, document=content.documents[0]
        )
        if len(content.documents) == 1
        else say("{sender} asks you to sign {count} documents").format(
            sender=content.sender, count=len(content.documents)
        )
    )
    return _asking(say, content, subject)


def _reminder(say: Say, content: MailContent) -> _Parts:
    subject = (
        say("Reminder: {document} waits for your signature").format(
            document=content.documents[0]
        )
        if len(content.documents) == 1
        else say("Reminder: {count} documents wait for your signature").format(
            count=len(content.documents)
        )
    )
    return _asking(say, content, subject)


def _asking(say: Say, content: MailContent, subject: str) -> _Parts:
    before = (
        say("A document waits for your signature.")
        if len(content.documents) == 1
        else say("These documents wait for your signature.")
    )
    facts = [*_documents(say, content), (say("Asked by"), content.sender)]
    if content.expires is not None:
        facts.append((say("Until"), with_zone(content.expires, content.lang)))
    where = say("You sign it where you always do with {sender}.").format(
        sender=content.sender
    )
    return (
        subject,
        (before,),
        tuple(facts),
        None if content.url is None else (say("See and sign"), content.url),
        () if content.url is not None else (where,),
    )


def _signed(say: Say, content: MailContent) -> _Parts:
    told = (
        say(
            "The signed document comes with this mail. Keep the file: its signatures "
            "are in it, and a printed copy has none."
        )
        if content.pdf is not None
        else say(
            "The signed document is too large to come with this mail: ask {sender} "
            "for it."
        ).format(sender=content.sender)
    )
    return (
        say("Signed: {document}").format(document=content.documents[0]),
        (say("All who had to sign have signed."), told),
        (*_documents(say, content), (say("Asked by"), content.sender)),
        None,
        (),
    )


def _documents(say: Say, content: MailContent) -> list[tuple[str, str]]:
    label: str = say("Document")
    listed: list[tuple[str, str]] = [
        (label, name) for name in content.documents[:_LISTED]
    ]
    if more := len(content.documents) - len(listed):
        listed.append(("", say("and {count} more").format(count=more)))
    return listed


def _notice(
    subject: str, told: str, advice: str
) -> Callable[[Say, MailContent], _Parts]:
    """Something that happened to somebody's account."""

    def parts(say: Say, content: MailContent) -> _Parts:
        return (
            say(subject),
            (say(told),),
            ((say("When"), with_zone(content.at, content.lang)),),
            None,
            (say(advice).format(installation=content.sender),),
        )

    return parts


def _footer(say: Say, content: MailContent, installation: str) -> tuple[str, ...]:
    sent = (
        say("Sent by {installation} on behalf of {sender}.").format(
            installation=installation, sender=content.sender
        )
        if content.on_behalf
        else say("Sent by {installation}.").format(installation=installation)
    )
    never = say("We never ask for passwords or codes by mail.")
    return (sent, never)


def N_(msgid: str) -> str:  # noqa: N802 (gettext's word for it)
    """Mark a sentence that is said later."""
    return msgid


_NOT_YOU: Final = N_(
    "If it was not you, tell those who run {installation} now, and revoke your "
    "certificate."
)
_PARTS: Final[dict[MailKind, Callable[[Say, MailContent], _Parts]]] = {
    MailKind.INVITATION: _invitation,
    MailKind.REQUEST: _request,
    MailKind.REMINDER: _reminder,
    MailKind.SIGNED: _signed,
    MailKind.ENROLLED: _notice(
        N_("You are enrolled"),
        N_(
            "Your enrolment was completed: passwords and codes are set, and your "
            "certificate is being made."
        ),
        _NOT_YOU,
    ),
    MailKind.CODES_SET: _notice(
        N_("Your sign-in codes are new"),
        N_(
            "The codes that you sign in with come from a new key; those of before "
            "count no more."
        ),
        _NOT_YOU,
    ),
    MailKind.PASSWORD_CHANGED: _notice(
        N_("Your signing password was changed"),
        N_(
            "From now on you sign with the new password; the one before counts no more."
        ),
        _NOT_YOU,
    ),
    MailKind.PASSWORD_LOCKED: _notice(
        N_("Your signing password is locked"),
        N_(
            "It was typed wrong too often. Nothing can be signed in your name until "
            "those who run the service unlock it."
        ),
        _NOT_YOU,
    ),
    MailKind.CERTIFIED: _notice(
        N_("You have a new certificate"),
        N_("A certificate was issued in your name: you can sign with it from now on."),
        _NOT_YOU,
    ),
    MailKind.TEST: _notice(
        N_("A mail to try the server"),
        N_("If you read this, the mails of this installation get out."),
        N_("Nothing is to be done about it."),
    ),
    MailKind.REVOKED: _notice(
        N_("Your certificate was revoked"),
        N_(
            "Nothing can be signed with it any more. What was signed before stays good."
        ),
        N_("If you did not want that, speak with those who run {installation}."),
    ),
}

"""The words of each mail, in the recipient's language, without any layout."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from appliance.domain.mail.mails import MailKind
from appliance.domain.text.civil_time import with_zone
from appliance.domain.text.sentences import Sentence
from appliance.domain.vocab import RequestState
from appliance.mail.contents import Enrolment, MailContent
from appliance.system.catalogues import translate

CATALOGUE: Final = "mail"
_LISTED: Final = 10
"""File names that one mail lists."""
Say = Callable[[str], Sentence]


Fact = tuple[str, tuple[str, ...]]
"""A label and its values: one beside it, or several below it."""


@dataclass(frozen=True, slots=True)
class MailText:
    """What a mail says, in order."""

    subject: str
    greeting: str
    before: tuple[str, ...]
    """Paragraphs above the way on."""
    facts: tuple[Fact, ...] = ()
    message: str = ""
    """The integrator's own words, of several lines."""
    action: tuple[str, str] | None = None
    """A label, and the address where to go on."""
    after: tuple[str, ...] = ()
    """Paragraphs below it."""
    links: tuple[tuple[str, str], ...] = ()
    """Labels and addresses of what may be done besides."""
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
        links=_links(say, content),
        footer=_footer(say, content, installation),
    )


_Parts = tuple[
    str,
    tuple[str, ...],
    tuple[Fact, ...],
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
        ((say("Good until"), (until,)),),
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
    facts = [_documents(say, content), _asked_by(say, content)]
    if content.expires is not None:
        facts.append((say("Until"), (with_zone(content.expires, content.lang),)))
    where = say("You sign it where you always do with {sender}.").format(
        sender=content.sender
    )
    return (
        subject,
        (before, *_first_of_all(say, content)),
        tuple(facts),
        None if content.url is None else (say("See and sign"), content.url),
        () if content.url is not None else (where,),
    )


def _first_of_all(say: Say, content: MailContent) -> tuple[str, ...]:
    """What somebody has to do before they can sign; nothing, where they can."""
    if content.enrolment is Enrolment.TO_BE_INVITED:
        return (
            say(
                "Before you can sign you have to enrol, and your invitation is good no "
                "more: ask {sender} for another one."
            ).format(sender=content.sender),
        )
    if content.enrolment is Enrolment.DONE or content.enrol_until is None:
        return ()
    until = with_zone(content.enrol_until, content.lang)
    return (
        say(
            "Before you can sign you have to enrol: open the link of your invitation, "
            "which is good until {until}. If you do not have it, ask {sender} for "
            "another one."
        ).format(until=until, sender=content.sender),
    )


def _signed(say: Say, content: MailContent) -> _Parts:
    if content.is_batch:
        return _signed_batch(say, content)
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
        (
            say("You have signed, and nobody else has to.")
            if content.is_alone
            else say("All who had to sign have signed."),
            told,
        ),
        (_documents(say, content), _asked_by(say, content)),
        None,
        (),
    )


def _signed_batch(say: Say, content: MailContent) -> _Parts:
    """How a batch ended: how many are signed, which are not, and where they are."""
    name = content.documents[0] if content.documents else ""
    signed, total = len(content.documents), len(content.documents + content.unsigned)
    counts = {"count": signed, "total": total, "sender": content.sender}
    subject = (
        say("Signed: {count} of {total} documents").format(**counts)
        if content.unsigned
        else say("Signed: {count} documents").format(**counts)
        if total > 1
        else say("Signed: {document}").format(document=name)
    )
    told = (
        say(
            "{sender} asked you to sign {total} documents together. Signed: {count}. "
            "The others can be signed no more."
        ).format(**counts)
        if content.unsigned
        else say("All that {sender} asked you to sign together is signed.").format(
            **counts
        )
    )
    unsigned = [
        say("{document} ({reason})").format(document=name, reason=say(_WHY[state]))
        for name, state in content.unsigned
    ]
    where = say("You find the signed documents where you sign with {sender}.").format(
        sender=content.sender
    )
    return (
        subject,
        (told,),
        (
            *_listed(say, say("Not signed"), unsigned),
            *_listed(say, say("Signed"), content.documents),
            _asked_by(say, content),
        ),
        None if content.url is None else (say("See the documents"), content.url),
        () if content.url is not None else (where,),
    )


def _over(
    one: str, several: str, told_one: str, told_several: str
) -> Callable[[Say, MailContent], _Parts]:
    """What somebody was asked to sign, and cannot any more."""

    def parts(say: Say, content: MailContent) -> _Parts:
        is_one = len(content.documents) == 1
        given = {
            "document": content.documents[0],
            "count": len(content.documents),
            "sender": content.sender,
        }
        return (
            say(one if is_one else several).format(**given),
            (say(told_one if is_one else told_several).format(**given),),
            (_documents(say, content), _asked_by(say, content)),
            None,
            (),
        )

    return parts


def _documents(say: Say, content: MailContent) -> Fact:
    label = say("Document") if len(content.documents) == 1 else say("Documents")
    return label, _names(say, content.documents)


def _asked_by(say: Say, content: MailContent) -> Fact:
    return say("Asked by"), (content.sender,)


def _listed(say: Say, label: str, names: Sequence[str]) -> list[Fact]:
    """Some names by their label; nothing, where there are none."""
    return [(label, _names(say, names))] if names else []


def _names(say: Say, names: Sequence[str]) -> tuple[str, ...]:
    """The first of some names, and how many more there are."""
    listed = tuple(names[:_LISTED])
    more = len(names) - len(listed)
    return (*listed, say("and {count} more").format(count=more)) if more else listed


def _notice(
    subject: str, told: str, advice: str
) -> Callable[[Say, MailContent], _Parts]:
    """Something that happened to somebody's account."""

    def parts(say: Say, content: MailContent) -> _Parts:
        return (
            say(subject),
            (say(told),),
            ((say("When"), (with_zone(content.at, content.lang),)),),
            None,
            (
                say(advice).format(installation=content.sender),
                *_whom_to_ask(say, content),
            ),
        )

    return parts


def _help_asked(say: Say, content: MailContent) -> _Parts:
    """That somebody asked for help in the reader's name; they may withdraw it."""
    return (
        say("You asked for help to sign"),
        (
            say(
                "Somebody asked those who run {installation} for help in your name, "
                "because you cannot sign. Nothing has changed in your account: first "
                "they check that it is you who asks."
            ).format(installation=content.sender),
            say(
                "If it was not you, or you need no help any more, withdraw the request."
            ),
        ),
        ((say("When"), (with_zone(content.at, content.lang),)),),
        None if content.url is None else (say("Withdraw the request"), content.url),
        _whom_to_ask(say, content),
    )


def _whom_to_ask(say: Say, content: MailContent) -> tuple[str, ...]:
    """The contact that the settings name; nothing, where they name none."""
    if not content.contact:
        return ()
    return (say("Contact: {contact}").format(contact=content.contact),)


def _links(say: Say, content: MailContent) -> tuple[tuple[str, str], ...]:
    """What somebody may do at once about a notice on their account."""
    links = []
    if content.kind in _OF_HELP and content.help_url:
        links.append((say("Ask for help"), content.help_url))
    if content.kind in _OF_REVOCATION and content.revocation_url:
        label = say("Revoke your certificate with your revocation PIN")
        links.append((label, content.revocation_url))
    return tuple(links)


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
_OF_REVOCATION: Final = frozenset(
    {
        MailKind.ENROLLED,
        MailKind.CODES_SET,
        MailKind.PASSWORD_CHANGED,
        MailKind.PASSWORD_LOCKED,
        MailKind.SIGNED_IN_ELSEWHERE,
        MailKind.CERTIFIED,
        MailKind.HELP_ASKED,
    }
)
"""Mails about what somebody else may have done: their reader may stop the key."""
_OF_HELP: Final = frozenset({MailKind.PASSWORD_LOCKED, MailKind.REVOKED})
"""Mails after which their reader cannot sign."""
_WHY: Final[dict[RequestState, str]] = {
    RequestState.REJECTED: N_("you rejected it"),
    RequestState.CANCELLED: N_("cancelled"),
    RequestState.EXPIRED: N_("expired"),
    RequestState.FAILED: N_("it could not be signed"),
}
"""Why a document of a batch that is over is not signed."""
_PARTS: Final[dict[MailKind, Callable[[Say, MailContent], _Parts]]] = {
    MailKind.INVITATION: _invitation,
    MailKind.REQUEST: _request,
    MailKind.REMINDER: _reminder,
    MailKind.SIGNED: _signed,
    MailKind.CANCELLED: _over(
        N_("You need not sign {document} any more"),
        N_("You need not sign {count} documents any more"),
        N_("The request was cancelled before you signed. There is nothing to do."),
        N_("The requests were cancelled before you signed. There is nothing to do."),
    ),
    MailKind.EXPIRED: _over(
        N_("The time to sign {document} is over"),
        N_("The time to sign {count} documents is over"),
        N_(
            "It can be signed no more. If your signature is still needed, {sender} has "
            "to ask you for it again."
        ),
        N_(
            "They can be signed no more. If your signature is still needed, {sender} "
            "has to ask you for it again."
        ),
    ),
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
    MailKind.SIGNED_IN_ELSEWHERE: _notice(
        N_("Somebody signed in from elsewhere"),
        N_(
            "Your account was signed in to from an address that you have not used "
            "lately. If it was you, there is nothing to do."
        ),
        N_(
            "If it was not you, tell those who run {installation} now, and change "
            "your passwords."
        ),
    ),
    MailKind.CERTIFIED: _notice(
        N_("You have a new certificate"),
        N_("A certificate was issued in your name: you can sign with it from now on."),
        _NOT_YOU,
    ),
    MailKind.HELP_ASKED: _help_asked,
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

"""Forms that change what is stored, and the version that each of them was opened with.

A page puts the version into its form (`ui.hidden(csrf, seen("integrators.rename"))`).
A form that comes back with another version than is stored now changes nothing: its
page is shown again with what was typed, beside what is stored meanwhile (`changed`).
From there it can be sent again.

`FORMS` has an entry for each form that changes something, so that a form without a
version cannot be sent. Those in `ADDING` make something new beside what is there, and
those in `NOT_STORED` change no record that two people could edit.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from quart import g, request, url_for

from admin_ui import session, webhook_words, words
from admin_ui.core import core
from appliance.domain.console.edit_subjects import Subject, Values
from appliance.domain.errors import ApplianceError, ChangedMeanwhileError
from appliance.domain.text.civil_time import day_and_time
from appliance.domain.vocab import (
    CredentialState,
    PersonState,
    RequestState,
    WebhookEvent,
)
from appliance.record.edit_versions import Precondition, version_of
from appliance.record.unit_of_work import demand_here
from appliance.web import forms

_COMMA: Final = ", "
VERSION: Final = "version"
"""Field of every form that changes something."""
SECRET: Final = frozenset(
    {
        session.CSRF_FIELD,
        VERSION,
        "again",
        "code",
        "offer",
        "password",
        "present",
        "witness_code",
        "witness_password",
    }
)
"""Fields that are never shown again: secrets, and what each page makes anew."""
_NO_SECRET: Final[Mapping[str, frozenset[str]]] = {
    # The integrator's short code; elsewhere `code` is a one-time code.
    "integrators.create": frozenset({"code"}),
}
"""Fields of `SECRET` that are none in a form, by endpoint."""


@dataclass(frozen=True)
class ShownOnce:
    """A secret that a form makes, and that the page after it shows once.

    A form that was sent twice makes one secret, and the browser shows the second
    answer: its administrator may never have seen the secret.
    """

    value: str
    """Stored value that differs once the secret was made."""
    remedy: str
    """Msgid: how to get a secret that can be seen."""
    unless: str = "state"
    """Stored value that, if it differs too, explains the difference of `value`."""

    def was_made(self, changed: Collection[str], form: "EditForm") -> bool:
        """Return whether the secret was made since the form was opened.

        Args:
            changed: values that are not those of the form's version.
            form: that was sent. Of a version that cannot be read, all of its values
                count as changed, which says nothing.
        """
        is_read = len(changed) < len(form.values)
        return is_read and self.value in changed and self.unless not in changed


@dataclass(frozen=True)
class EditForm:
    """A form that changes stored values."""

    subject: Subject
    key: str
    """Argument of the address that names the subject; `me`: who is signed in."""
    values: tuple[str, ...]
    """Stored values that it shows, or that whoever sends it decides by."""
    page: str
    """Endpoint of the page with the form."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Stored values that are typed, with their fields in the form."""
    stands: Callable[[Values], bool] | None = None
    """Return whether the step was taken already; nothing is typed in such forms. None:
    the stored values do not say it."""
    also: tuple[str, ...] = ()
    """Endpoints of further pages with the form."""
    once: ShownOnce | None = None
    """The secret that it makes and shows once."""


def _is_set(name: str) -> Callable[[Values], bool]:
    return lambda values: values.get(name) is not None


def _is_empty(name: str) -> Callable[[Values], bool]:
    return lambda values: values.get(name) is None


def _is(name: str, *states: str) -> Callable[[Values], bool]:
    return lambda values: values.get(name) in states


_I: Final = (Subject.INTEGRATOR, "code")
_K: Final = (Subject.API_KEY, "key_id")
_W: Final = (Subject.WEBHOOK, "webhook")
_P: Final = (Subject.PERSON, "person_id")
_C: Final = (Subject.CREDENTIAL, "credential_id")
_A: Final = (Subject.ADMINISTRATOR, "name")
_ME: Final = (Subject.ADMINISTRATOR, "me")
_SEND_AGAIN: Final = words.N_(
    "If you did not see it, send the form again: it creates another one, and the "
    "earlier one stops working."
)

FORMS: Final[Mapping[str, EditForm]] = {
    "integrators.rename": EditForm(
        *_I, ("name",), "integrators.ask_name", {"name": "name"}
    ),
    "integrators.set_prefix": EditForm(
        *_I, ("event_prefix",), "integrators.summary", {"event_prefix": "event_prefix"}
    ),
    "integrators.set_vouch": EditForm(
        *_I, ("may_vouch",), "integrators.ask_vouch", {"may_vouch": "allow"}
    ),
    "integrators.set_mail": EditForm(
        *_I,
        ("mails_signers", "reminder_days", "sign_url"),
        "integrators.ask_mail",
        {
            "mails_signers": "mails_signers",
            "reminder_days": "reminder_days",
            "sign_url": "sign_url",
        },
    ),
    "integrators.disable": EditForm(
        *_I,
        ("name", "disabled"),
        "integrators.ask_disable",
        stands=_is_set("disabled"),
    ),
    "integrators.enable": EditForm(
        *_I, ("disabled",), "integrators.summary", stands=_is_empty("disabled")
    ),
    "profile.change": EditForm(
        *_I,
        ("level", "timestamp_policy", "digest", "tsa"),
        "profile.show",
        {"level": "level", "timestamp_policy": "policy", "digest": "digest"},
    ),
    "stamp.show_logo": EditForm(Subject.LOGO, "code", ("logo",), "stamp.show"),
    "stamp.drop_logo": EditForm(
        Subject.LOGO, "code", ("logo",), "stamp.show", stands=_is_empty("logo")
    ),
    "domains.remove": EditForm(
        Subject.DOMAIN, "domain_id", ("origin",), "domains.ask_remove"
    ),
    "keys.rotate": EditForm(
        *_K,
        ("label", "expires", "ends", "revoked"),
        "keys.ask_rotate",
        once=ShownOnce(
            "ends",
            words.N_(
                "If you did not see the new key, look for it in the list of keys and "
                "rotate that one."
            ),
        ),
    ),
    "keys.revoke": EditForm(
        *_K,
        ("label", "expires", "ends", "revoked"),
        "keys.ask_revoke",
        stands=_is_set("revoked"),
    ),
    "webhooks.change": EditForm(
        *_W,
        ("url", "label", "events"),
        "webhooks.ask_change",
        {"url": "url", "label": "label", "events": "events"},
    ),
    "webhooks.rotate": EditForm(
        *_W,
        ("url", "label", "former_until"),
        "webhooks.ask_rotate",
        once=ShownOnce(
            "former_until",
            words.N_(
                "If you did not see the new secret, send the form again and put the "
                "one that it shows into the backend at once: the one that the backend "
                "has now stops signing."
            ),
        ),
    ),
    "webhooks.disable": EditForm(
        *_W,
        ("url", "label", "disabled"),
        "webhooks.ask_disable",
        stands=_is_set("disabled"),
    ),
    "webhooks.enable": EditForm(
        *_W, ("url", "disabled"), "webhooks.one", stands=_is_empty("disabled")
    ),
    "webhooks.remove": EditForm(
        *_W, ("url", "label", "disabled"), "webhooks.ask_remove"
    ),
    "person.renew": EditForm(
        *_P,
        ("name", "state", "link"),
        "person.ask_renew",
        once=ShownOnce("link", _SEND_AGAIN),
    ),
    "person.unlock": EditForm(
        *_P,
        ("name", "state", "locked_at"),
        "person.ask_unlock",
        stands=_is_empty("locked_at"),
    ),
    "person.forget": EditForm(*_P, ("name", "state"), "person.ask_forget"),
    "person.disable": EditForm(
        *_P,
        ("name", "state"),
        "person.ask_disable",
        stands=_is("state", PersonState.DISABLED),
    ),
    "person.enable": EditForm(
        *_P, ("name", "state"), "person.show", stands=_is("state", PersonState.ACTIVE)
    ),
    "person.reset_totp": EditForm(
        *_P,
        ("name", "state", "signed_out"),
        "person.ask_totp",
        once=ShownOnce("signed_out", _SEND_AGAIN),
    ),
    "credentials.new_pin": EditForm(
        *_P,
        ("name", "pin"),
        "credentials.ask_pin",
        once=ShownOnce("pin", _SEND_AGAIN),
    ),
    "credentials.reissue": EditForm(
        *_P,
        ("name", "state", "signed_out", "link"),
        "credentials.ask_reissue",
        once=ShownOnce(
            "link",
            words.N_(
                "If you did not see it, create a new enrolment link on the person's "
                "page."
            ),
            # With the link the person is invited again.
            unless="",
        ),
    ),
    "credentials.renew": EditForm(
        *_C, ("state", "not_after", "certificate"), "credentials.ask_renew"
    ),
    "credentials.import_chain": EditForm(
        *_C, ("state", "not_after", "certificate"), "credentials.ask_chain"
    ),
    "credentials.revoke": EditForm(
        *_C,
        ("state", "not_after", "certificate"),
        "credentials.ask_revoke",
        stands=_is("state", "revoking", "revoked"),
    ),
    "requests.cancel": EditForm(
        Subject.REQUEST,
        "number",
        ("state",),
        "requests.ask_cancel",
        stands=_is("state", RequestState.CANCELLED),
    ),
    "trust.remove": EditForm(
        Subject.ANCHOR, "anchor_id", ("sha256", "purpose"), "trust.ask_remove"
    ),
    "administrators.disable": EditForm(
        *_A, ("disabled",), "administrators.ask_disable", stands=_is_set("disabled")
    ),
    "administrators.enable": EditForm(
        *_A, ("disabled",), "administrators.ask_enable", stands=_is_empty("disabled")
    ),
    "administrators.end_sessions": EditForm(
        *_A, ("disabled",), "administrators.ask_end_sessions", also=("account.show",)
    ),
    "administrators.forget": EditForm(*_A, ("disabled",), "administrators.ask_forget"),
    "administrators.reset_totp": EditForm(
        *_A,
        ("disabled", "totp"),
        "administrators.ask_totp",
        once=ShownOnce("totp", _SEND_AGAIN),
    ),
    "administrators.set_password": EditForm(
        *_A, ("disabled", "password"), "administrators.ask_password"
    ),
    "account.set_password": EditForm(*_ME, ("password",), "account.ask_password"),
    "account.take_totp": EditForm(
        *_ME, ("totp",), "account.ask_totp", also=("account.offer_totp",)
    ),
}
"""Every form that changes a stored value, by endpoint."""

ADDING: Final = frozenset(
    {
        "domains.add",
        "integrators.create",
        "keys.create",
        "people.create",
        "requests.ask_again",
        "requests.create",
        "trust.add",
        "webhooks.create",
        "webhooks.replay",
        "webhooks.replay_given_up",
        "webhooks.test",
    }
)
"""Forms that make something new. Of one name or label there is one: a second one is
refused as a fault of the form. A request is asked for again once: later forms lead to
what the first one made. A message that is sent again is sent once more, and no earlier
attempt is changed."""

NOT_STORED: Final = frozenset(
    {
        "account.offer_totp",
        "login.choose_language",
        "login.enter",
        "login.leave",
        # It closes the request for help that the page shows, and no later one.
        "person.close_help",
    }
)
"""Forms that change nothing which somebody else could have changed meanwhile."""

LABELS: Final[Mapping[str, str]] = {
    "disabled": words.N_("Disabled since"),
    "digest": words.N_("Hash algorithm"),
    "ends": words.N_("Works until"),
    "event_prefix": words.N_("Prefix of messages"),
    "events": words.N_("What it is told of"),
    "expires": words.N_("Expires"),
    "former_until": words.N_("The former secret signs until"),
    "label": words.N_("Label"),
    "level": words.N_("Level"),
    "locked_at": words.N_("Locked since"),
    "logo": words.N_("Logo"),
    "mails_signers": words.N_("Write to those whom it asks to sign"),
    "may_vouch": words.N_("May vouch for identities"),
    "name": words.N_("Name"),
    "not_after": words.N_("Valid until"),
    "origin": words.N_("Origin"),
    "pin": words.N_("Revocation PIN of"),
    "purpose": words.N_("Purpose"),
    "reminder_days": words.N_("Reminders"),
    "revoked": words.N_("Revoked since"),
    "sha256": "SHA-256",
    "sign_url": words.N_("Where they sign"),
    "signed_out": words.N_("Signed out since"),
    "state": words.N_("State"),
    "timestamp_policy": words.N_("If the timestamp or revocation data is missing"),
    "tsa": words.N_("Timestamping authorities"),
    "url": words.N_("Address"),
}
"""What values are called on the page that compares them."""
UNSEEN: Final[Mapping[str, str]] = {
    "certificate": words.N_("The certificate was replaced."),
    "link": words.N_("Another enrolment link was created."),
    "password": words.N_("The password was changed."),
    "totp": words.N_("The authenticator app was changed."),
}
"""What is said of values that nobody may see, or that say nothing."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A value as the administrator wants it and as it is stored."""

    label: str
    mine: str | None
    """None: it is not typed in this form."""
    theirs: str


@dataclass(frozen=True, slots=True)
class Changed:
    """What the page of a form that came too late tells."""

    title: str
    differences: tuple[Difference, ...]
    sentences: tuple[str, ...]
    """Of values that cannot be shown."""
    advice: str
    """How to go on; empty if the page has no such form any more."""
    back: tuple[str, str]
    """Address and label of a link for whoever does not go on."""


async def begin() -> None:
    """Read the versions of the present page's forms, or check that of the sent one.

    Before the page reads anything: a change between the two makes a version that is
    too old, and the form that carries it is refused.

    Raises:
        ChangedMeanwhileError: the form that was sent is older than what is stored.
    """
    demand_here(None)
    g.versions = {}
    endpoint = request.endpoint or ""
    shown = _forms_beside(endpoint)
    if not shown:
        return
    wanted = {name: (form.subject, _key(form)) for name, form in shown.items()}
    subjects = list(dict.fromkeys(wanted.values()))
    found = dict(zip(subjects, await core().edits.read(*subjects), strict=True))
    g.versions = {
        name: version_of(found[wanted[name]], form.values)
        for name, form in shown.items()
    }
    if request.method == "POST" and endpoint in FORMS:
        await _demand(endpoint)


def _forms_beside(endpoint: str) -> dict[str, EditForm]:
    """Return the forms of a page, or of the pages on which a form stands."""
    own = FORMS.get(endpoint)
    pages = {endpoint} if own is None else {endpoint, own.page, *own.also}
    return {
        name: form
        for name, form in FORMS.items()
        if name == endpoint or pages & {form.page, *form.also}
    }


async def _demand(endpoint: str) -> None:
    """Have the change check the version that its form brought.

    Raises:
        ChangedMeanwhileError: it does not hold already now.
    """
    form, sent = FORMS[endpoint], session.form()
    # A form without a version is as old as can be.
    seen = sent.text(VERSION)
    precondition = Precondition(
        form.subject, _key(form), form.values, seen, _stands(form, sent)
    )
    await core().edits.check(precondition)
    g.versions[endpoint] = seen
    demand_here(precondition)


def _key(form: EditForm) -> str:
    """Return the key of the subject that the present address is about."""
    named = (request.view_args or {}).get(form.key)
    # Pages of the own account name nobody.
    return session.current().user.name if named is None else str(named)


def _stands(form: EditForm, sent: forms.Form) -> Callable[[Values], bool]:
    """Return what says whether all that was typed is stored already."""
    if not form.fields:
        return form.stands or (lambda _: False)

    def is_stored(values: Values) -> bool:
        return all(
            typed == as_typed(values.get(name))
            for name, typed in _typed(form, sent).items()
        )

    return is_stored


def _typed(form: EditForm, sent: forms.Form) -> dict[str, str]:
    """Return what was typed, by the names of the stored values."""
    return {
        name: _chosen_events(sent) if field == "events" else sent.text(field)
        for name, field in form.fields.items()
    }


def _chosen_events(sent: forms.Form) -> str:
    return as_typed([each.value for each in WebhookEvent if sent.text(f"event-{each}")])


def as_typed(value: object) -> str:
    """Write a stored value as it stands in a form.

    Args:
        value: of the record.
    """
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case list() | tuple():
            return _COMMA.join(map(str, value))
        case _:
            return str(value)


def seen(endpoint: str) -> str:
    """Return the version that a form carries, for templates.

    Args:
        endpoint: of the form.

    Raises:
        KeyError: `FORMS` does not say that the present page has this form.
    """
    version: str = g.versions[endpoint]
    return version


def seen_here() -> str:
    """Return the version of the one form of the present page, for templates."""
    (version,) = g.versions.values()
    return str(version)


def kept(name: str, value: Any) -> Any:
    """Return what was typed in a field before, else its value, for templates.

    Args:
        name: of the field.
        value: that the page gives it.
    """
    typed: Mapping[str, str] | None = g.get("typed")
    return value if typed is None else typed.get(name, value)


def kept_box(name: str, checked: Any) -> bool:
    """Return whether a box was checked before, else whether it is, for templates.

    Args:
        name: of the box.
        checked: what the page says of it.
    """
    typed: Mapping[str, str] | None = g.get("typed")
    return bool(checked) if typed is None else bool(typed.get(name))


def typed_fields() -> dict[str, str]:
    """Return the fields of the form that was sent which may be shown again."""
    return without_secrets(session.form().fields)


def without_secrets(sent: Mapping[str, str]) -> dict[str, str]:
    """Return those fields of the form of the present endpoint that are no secret.

    Args:
        sent: text by field.
    """
    secret = SECRET - _NO_SECRET.get(request.endpoint or "", frozenset())
    return {name: text for name, text in sent.items() if name not in secret}


def conflict(error: ApplianceError, back: tuple[str, str] | None) -> bool:
    """Prepare the page of a form that came too late.

    Args:
        error: raised by the change.
        back: address and label of the subject's page, where it has one.

    Returns:
        False for any other error.
    """
    form = FORMS.get(request.endpoint or "")
    if form is None or not isinstance(error, ChangedMeanwhileError):
        return False
    g.versions = {**g.get("versions", {}), request.endpoint: error.version}
    sent = session.form()
    typed = _typed(form, sent)
    g.typed = typed_fields() if form.fields else None
    names = [name for name in error.changed if name in error.stored]
    stay = url_for(form.page, **(request.view_args or {}))
    if form.fields or back is None:
        back = stay, words.say("Leave it as it is now")
    title, advice = _say_what_happened(form, error.changed)
    g.changed = Changed(
        title,
        tuple(
            Difference(
                words.say(LABELS[name]),
                _say(name, typed[name]) if name in typed else None,
                _say(name, error.stored[name]),
            )
            for name in names
        ),
        tuple(words.say(UNSEEN[n]) for n in error.changed if n in UNSEEN),
        advice,
        back,
    )
    return True


def _say_what_happened(form: EditForm, changed: Collection[str]) -> tuple[str, str]:
    """Return the title of the page and how to go on."""
    if form.once is not None and form.once.was_made(changed, form):
        title = words.say(
            "It was created already, perhaps by this same form. Nothing was created "
            "now."
        )
        return title, words.say(form.once.remedy)
    if form.fields or form.stands or form.once:
        # Sent twice by one author, such a form is answered in another way.
        title = words.say(
            "It was changed while you had it open, so nothing of yours was saved."
        )
    else:
        title = words.say(
            "It was changed while you had it open, perhaps by this same form. Nothing "
            "was done now."
        )
    if form.fields:
        return title, words.say(
            "The form below still has what you filled in. Correct it, or send it again "
            "to replace what is there now."
        )
    return title, words.say(
        "Look at it once more; if you still want to go on, send the form again."
    )


def without_form() -> None:
    """Have the page of a form that came too late say nothing of how to go on."""
    g.changed = replace(g.changed, advice="")


def _say(name: str, value: object) -> str:
    """Say a value to people."""
    if name in {"mails_signers", "may_vouch"}:
        return words.say("yes") if value in {True, "yes"} else words.say("no")
    if name == "events":
        return _say_events(as_typed(value))
    if value in (None, "", [], ()):
        return words.say("empty")
    if isinstance(value, datetime):
        return day_and_time(value, words.lang())
    if name == "state":
        return _say_state(str(value))
    return as_typed(value)


def _say_events(kinds: str) -> str:
    if not kinds:
        return words.say("Everything")
    told = (webhook_words.event_word(kind) for kind in kinds.split(_COMMA))
    return _COMMA.join(map(words.say, told))


def _say_state(state: str) -> str:
    form = FORMS[request.endpoint or ""]
    if form.subject is Subject.PERSON:
        return words.say(words.PERSON_STATES[PersonState(state)][0])
    if form.subject is Subject.REQUEST:
        return words.say(words.REQUEST_STATES[RequestState(state)][0])
    return words.say(words.CREDENTIAL_STATES[CredentialState(state)][0])

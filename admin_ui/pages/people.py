"""People: the list, and inviting somebody."""

from dataclasses import dataclass

from quart import Blueprint, Response, url_for

from admin_ui import lists, session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, page
from appliance.domain.console.lists import Page, PeopleFilter, PersonRow
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import PersonState, VouchedBy
from appliance.identity.people import checked_person

blueprint = Blueprint("people", __name__, url_prefix="/admin/people")
_FIELDS = {
    "cuil": "cuil",
    "name": "name",
    "email": "email",
    "locale": "locale",
    "ALREADY_EXISTS": "cuil",
    "NOT_A_TRIAL": "vouched_by",
}
_SOUND = {"cuil": "20267565393", "name": "A", "email": "a@a.a", "locale": "es"}
"""Values that are right, to try one field at a time."""
_WAYS = {
    VouchedBy.OFFICER.value: VouchedBy.OFFICER,
    VouchedBy.DEMO.value: VouchedBy.DEMO,
}


@dataclass(frozen=True, slots=True)
class _InvitationForm:
    """Fields of the form *Invite a person*; a box is `yes` or empty."""

    cuil: str = ""
    name: str = ""
    email: str = ""
    vouched_by: str = VouchedBy.OFFICER.value
    locale: str = "es"
    checked: str = ""
    by_mail: str = ""


def _say_state(value: str) -> str:
    return words.say(words.PERSON_STATES[PersonState(value)][0])


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/people`; `?q=`, `?state=`, `?locked=yes`, `?help=yes`."""
    asked = lists.asked("people.show", "q", "state", "locked", "help")
    wanted = PeopleFilter(
        text=asked.text("q"),
        state=asked.word("state", PersonState),
        locked=bool(asked.text("locked")),
        asks_help=bool(asked.text("help")),
    )
    found: Page[PersonRow] = Page((), None)
    if not asked.wrong:
        found = await core().views.people(wanted, lists.cursor())
    named = [
        ("q", words.say("Search"), lists.plain),
        ("state", words.say("State"), _say_state),
        ("locked", words.say("Signing password"), lambda _: words.say("locked")),
        ("help", words.say("Help"), lambda _: words.say("asked for")),
    ]
    return await lists.show("people.html", asked, named, found.following, found=found)


@blueprint.get("/new")
async def new() -> Response:
    """`GET /admin/people/new`."""
    return await page("person_new.html", faults=NONE, typed=_InvitationForm())


@blueprint.post("")
async def create() -> Response:
    """`POST /admin/people`: record somebody and show their link, this once."""
    typed = session.typed(_InvitationForm)
    faults = _faults(typed)
    if faults:
        return await again("person_new.html", faults, typed=typed)
    try:
        made = await core().invitations.invite(
            session.actor(),
            typed.cuil,
            typed.name,
            typed.email,
            _WAYS[typed.vouched_by],
            typed.locale,
            by_mail=typed.by_mail == "yes",
        )
    except ApplianceError as exc:
        faults = await _refused(exc, typed)
        return await again("person_new.html", faults, typed=typed)
    person = await core().views.person(made.person)
    return await page("person_invited.html", made=made, row=person.row)


async def _refused(exc: ApplianceError, typed: _InvitationForm) -> Faults:
    """What is wrong; of somebody who is there already, who it is."""
    known = None
    if exc.code is ErrorCode.ALREADY_EXISTS:
        known = await core().views.known(typed.cuil, typed.email)
    if known is None:
        return faults_of(exc, _FIELDS)
    name, row = known
    to = words.say("See %(name)s", name=row.name)
    link = (to, url_for("person.show", person_id=row.id))
    return Faults({name: words.say(words.EXISTING[name])}, links={name: link})


def _faults(typed: _InvitationForm) -> Faults:
    """All that is wrong at once; who answers for the identity has to be said."""
    found: dict[str, str] = {}
    for name in _SOUND:
        # The service stops at the first fault: each field is tried by itself.
        tried = {**_SOUND, name: str(getattr(typed, name))}
        try:
            checked_person(
                tried["cuil"],
                tried["name"],
                tried["email"],
                tried["locale"],
                PersonState.INVITED,
            )
        except ApplianceError as exc:
            found |= faults_of(exc, _FIELDS).fields
    if typed.vouched_by not in _WAYS:
        found["vouched_by"] = words.say("Choose an option from the list.")
    elif typed.vouched_by == VouchedBy.OFFICER.value and not typed.checked:
        found["checked"] = words.say("Confirm that you checked who this person is.")
    return Faults(found)

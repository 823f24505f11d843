"""One person: certificate, lock, link, and whether they may do anything."""

from typing import Final

from quart import Blueprint, Response

from admin_ui import mail_words, proof, session
from admin_ui.authenticator_entry import authenticator_entry
from admin_ui.core import core
from admin_ui.pages.credentials import is_revoked
from admin_ui.render import NONE, again, go, page
from admin_ui.session import is_partial
from appliance.domain.console.lists import PersonView, RequestFilter
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import CredentialState, PersonState, RequestState
from appliance.pki.validation.certificate_rules import crl_addresses

blueprint = Blueprint("person", __name__, url_prefix="/admin/people/<person_id>")
_SHOWN = 5
_WAITING: Final = frozenset({RequestState.PENDING, RequestState.WAITING})


async def _found(person_id: str) -> PersonView:
    return await core().views.person(PersonId(person_id))


@blueprint.get("")
async def show(person_id: str) -> Response:
    """`GET /admin/people/{id}`."""
    view = await _found(person_id)
    requests = await core().views.requests(RequestFilter(person=view.row.id))
    credentials = await core().credentials.of(view.row.id)
    faults = await core().credential_faults.of(view.row.id)
    is_active = view.row.state is PersonState.ACTIVE
    revoked = is_active and is_revoked(credentials)
    # One who enrolled anew has the revoked one still, and a key that is being made.
    key = await core().views.asked_key(view.row.id)
    making = revoked and key is not None and key.is_open
    failed = key if key is not None and key.has_failed else None
    renewals = await core().views.renewals(view.row.id)
    attacked = await core().failed_tries.attacked_person(view.row.id)
    return await page(
        "parts/certificates.html" if is_partial() else "person.html",
        view=view,
        credentials=credentials,
        crls={one.id: crl_addresses(one.certificate) for one in credentials},
        credential_faults=faults,
        attacked=attacked,
        helps=await core().help_desk.of_person(view.row.id),
        now=core().clock.now(),
        # Enrolled, and the HSM has not made key and certificate yet.
        waiting=making or (is_active and not credentials and failed is None),
        failed=failed if is_active and (revoked or not credentials) else None,
        renewals=renewals,
        revoked=revoked and not making,
        moving=any(c.state is CredentialState.REVOKING for c in credentials)
        or any(renewal.is_open for renewal in renewals.values()),
        bar=await core().views.bar(view.row.id),
        asked=sum(request.state in _WAITING for request in requests.rows),
        requests=requests.rows[:_SHOWN],
        mails=await core().mails.of_person(view.row.id),
        mail_words=mail_words,
    )


async def _invited(person_id: str) -> PersonView:
    """Somebody who has not enrolled yet.

    Raises:
        ApplianceError: `PERSON_STATE`.
    """
    view = await _found(person_id)
    if view.row.state is not PersonState.INVITED:
        raise ApplianceError(
            ErrorCode.PERSON_STATE, params={"state": view.row.state.value}
        )
    return view


@blueprint.get("/link")
async def ask_renew(person_id: str) -> Response:
    """`GET /admin/people/{id}/link`: that the earlier link ends.

    Raises:
        ApplianceError: `PERSON_STATE` for one who has enrolled.
    """
    view = await _invited(person_id)
    return await page("person_link.html", faults=NONE, view=view)


@blueprint.post("/link")
async def renew(person_id: str) -> Response:
    """`POST /admin/people/{id}/link`: a new link; the earlier one ends.

    Raises:
        ApplianceError: `PERSON_STATE` for one who has enrolled.
    """
    view = await _invited(person_id)
    made = await core().invitations.renew(
        session.actor(),
        view.row.cuil,
        by_mail=session.form().text("by_mail") == "yes",
    )
    return await page("person_invited.html", made=made, row=view.row)


@blueprint.get("/unlock")
async def ask_unlock(person_id: str) -> Response:
    """`GET /admin/people/{id}/unlock`: the officer's own code is asked for."""
    return await page("person_unlock.html", faults=NONE, view=await _found(person_id))


@blueprint.post("/unlock")
async def unlock(person_id: str) -> Response:
    """`POST /admin/people/{id}/unlock`.

    Raises:
        ApplianceError: what is not the form's fault.
    """
    view = await _found(person_id)
    faults = await proof.confirm()
    if faults:
        return await again("person_unlock.html", faults, view=view)
    try:
        await core().officers.unlock(session.actor(), view.row.id)
    except ApplianceError as exc:
        if exc.code is not ErrorCode.NOT_LOCKED:
            raise
    return go("person.show", person_id=person_id, done="unlocked")


@blueprint.get("/tries")
async def ask_forget(person_id: str) -> Response:
    """`GET /admin/people/{id}/tries`: what it means, and the officer's own code."""
    view = await _found(person_id)
    return await page("person_tries.html", faults=NONE, view=view, address="")


@blueprint.post("/tries")
async def forget(person_id: str) -> Response:
    """`POST /admin/people/{id}/tries`: forget the wrong tries on the account."""
    view = await _found(person_id)
    address, faults = proof.known_address()
    faults = faults or await proof.confirm()
    if faults:
        typed = session.form().text("address")
        return await again("person_tries.html", faults, view=view, address=typed)
    await core().failed_tries.forget_person(session.actor(), view.row.id, address)
    return go("person.show", person_id=person_id, done="forgotten")


@blueprint.post("/help")
async def close_help(person_id: str) -> Response:
    """`POST /admin/people/{id}/help`: close the request for help that was shown."""
    view = await _found(person_id)
    closed = await core().help_desk.close(
        session.actor(), view.row.id, session.form().text("request")
    )
    done = "help-closed" if closed else "help-over"
    return go("person.show", person_id=person_id, done=done)


@blueprint.get("/disable")
async def ask_disable(person_id: str) -> Response:
    """`GET /admin/people/{id}/disable`: what it means."""
    view = await _found(person_id)
    pending = await core().views.requests(
        RequestFilter(person=view.row.id, state=RequestState.PENDING)
    )
    return await page("person_disable.html", view=view, pending=pending)


@blueprint.post("/disable")
async def disable(person_id: str) -> Response:
    """`POST /admin/people/{id}/disable`.

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who is invited.
    """
    try:
        await core().officers.disable(session.actor(), PersonId(person_id))
    except ApplianceError as exc:
        _demand_state(exc, PersonState.DISABLED)
    return go("person.show", person_id=person_id, done="disabled")


@blueprint.post("/enable")
async def enable(person_id: str) -> Response:
    """`POST /admin/people/{id}/enable`.

    Raises:
        ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for one who is invited.
    """
    try:
        await core().officers.enable(session.actor(), PersonId(person_id))
    except ApplianceError as exc:
        _demand_state(exc, PersonState.ACTIVE)
    return go("person.show", person_id=person_id, done="enabled")


def _demand_state(error: ApplianceError, wanted: PersonState) -> None:
    """Pass over an error that says that a person is in the wanted state already.

    Raises:
        ApplianceError: any other error.
    """
    is_state = error.code is ErrorCode.PERSON_STATE
    if not is_state or error.params.get("state") != wanted.value:
        raise error


@blueprint.get("/totp")
async def ask_totp(person_id: str) -> Response:
    """`GET /admin/people/{id}/totp`: what it means, and the officer's own code."""
    view = await _found(person_id)
    two = proof.needs_two()
    return await page("person_totp.html", faults=NONE, view=view, two=two)


@blueprint.post("/totp")
async def reset_totp(person_id: str) -> Response:
    """`POST /admin/people/{id}/totp`: make new codes and show them, this once."""
    view = await _found(person_id)
    witness, faults = await proof.of_two()
    if faults:
        two = proof.needs_two()
        return await again("person_totp.html", faults, view=view, two=two)
    uri = await core().person_factor.reset(session.actor(), view.row.id, witness)
    entry = authenticator_entry(uri)
    return await page("person_totp_made.html", view=view, entry=entry)

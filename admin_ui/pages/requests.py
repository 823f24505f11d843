"""Signature requests: the list, a new one from a file, and one's story."""

from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

from quart import Blueprint, Response, request

from admin_ui import lists, mail_words, session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, go, page
from admin_ui.session import is_partial, uploads
from appliance.console.views import RequestHistory
from appliance.domain.console.lists import (
    BatchView,
    IntegratorFilter,
    Page,
    RequestFilter,
    RequestRow,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import MAX_REQUEST_ID, PersonId, RequestBatchId, RequestId
from appliance.domain.people.identity import typed_cuil, typed_cuils
from appliance.domain.requests.levels import ProfileWishes, reaches
from appliance.domain.requests.request import LEGAL_MOVES, RequestView
from appliance.domain.vocab import EventKind, RequestState, SignatureLevel
from appliance.requests.intake import IntakeOrder
from appliance.signing.request_again import may_be_asked_again
from appliance.web.document_response import document_response
from appliance.web.document_warnings import DAMAGES, FINDINGS

blueprint = Blueprint("requests", __name__, url_prefix="/admin/requests")
ORIGIN: Final = "consola"
_MOVING: Final = frozenset({RequestState.PENDING, RequestState.IN_PROGRESS})
_DAYS_AT_MOST: Final = 3650
_DAYS_DIGITS: Final = len(str(_DAYS_AT_MOST))
_NEW: Final = ("integrator", "cuil", "then", "level", "days")
"""Fields of a new request, besides its file."""
_FILTERS: Final = (
    *("q", "state", "integrator", "person", "batch", "again", "since", "until"),
)
"""Of the list; `again=no`: without failed ones that were asked for again."""
_FIELDS: Final = {
    "cuil": "cuil",
    "then": "then",
    "INTEGRATOR_NOT_FOUND": "integrator",
    "PERSON_NOT_FOUND": "cuil",
    "FILENAME": "file",
    "DOCUMENT_EMPTY": "file",
    "DOCUMENT_TOO_LARGE": "file",
    "PDF_MALFORMED": "file",
    "PDF_PASSWORD_NEEDED": "file",
    "PDF_ENCRYPTED": "file",
    "PDF_XFA": "file",
    "PDF_NO_PAGES": "file",
    "PDF_TOO_COMPLEX": "file",
    "PDF_UNVERIFIABLE": "file",
    "PDF_AMBIGUOUS": "file",
    "PDF_EXTERNAL_CONTENT": "file",
    "PDF_LOCKED": "file",
}


def _say_state(value: str) -> str:
    return words.say(words.REQUEST_STATES[RequestState(value)][0])


async def _say_person(asked: lists.Asked) -> str:
    if not asked.text("person"):
        return ""
    view = await core().views.person(PersonId(asked.text("person")))
    return view.row.name


def _called(batches: Sequence[BatchView], lote: str) -> str:
    """What a batch is called; its id where its integrator says nothing."""
    return next((batch.reference for batch in batches if batch.reference), lote)


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/requests`; filters in the address.

    Raises:
        ApplianceError: `QUERY_INVALID` for a value that no link of the console has.
    """
    asked = lists.asked("requests.show", *_FILTERS)
    if asked.text("again") not in {"", "no"}:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": "again"})
    wanted = RequestFilter(
        text=asked.text("q"),
        state=asked.word("state", RequestState),
        integrator=await lists.integrator_code(asked),
        person=PersonId(asked.text("person")) if asked.text("person") else None,
        batch=RequestBatchId(asked.text("batch")) if asked.text("batch") else None,
        since=asked.since("since"),
        before=asked.until("until"),
        unreplaced=asked.text("again") == "no",
    )
    asked.refuse_backwards(wanted.since, wanted.before)
    found: Page[RequestRow] = Page((), None)
    batches: tuple[BatchView, ...] = ()
    if not asked.wrong:
        found = await core().views.requests(wanted, lists.cursor())
        batches = await core().views.batches(wanted)
    person = await _say_person(asked)
    named = [
        ("q", words.say("Search"), lists.plain),
        ("state", words.say("State"), _say_state),
        ("integrator", words.say("Integrator"), lists.plain),
        ("person", words.say("Signer"), lambda _: person),
        ("batch", words.say("Batch"), lambda lote: _called(batches, lote)),
        ("again", words.say("Asked for again"), words.say),
        ("since", words.say("From"), lists.plain),
        ("until", words.say("Until"), lists.plain),
    ]
    template = "parts/request_list.html" if is_partial() else "requests.html"
    return await lists.show(
        template, asked, named, found.following, found=found, batches=batches
    )


async def _form(typed: dict[str, str], faults: Faults = NONE) -> Response:
    there = (await core().views.listed_integrators(IntegratorFilter())).rows
    if len(there) == 1 and not typed["integrator"]:
        # There is nothing to choose.
        typed = {**typed, "integrator": there[0].code}
    context: dict[str, Any] = {"typed": typed, "nobody": not there}
    limit = core().settings.documents.limit_bytes
    if faults:
        return await again("request_new.html", faults, limit=limit, **context)
    return await page("request_new.html", faults=NONE, limit=limit, **context)


@blueprint.get("/new")
async def new() -> Response:
    """`GET /admin/requests/new`; `?cuil=` fills the signer in."""
    cuil = request.args.get("cuil", "")[:20]
    return await _form({**dict.fromkeys(_NEW, ""), "cuil": cuil, "days": "30"})


@blueprint.post("")
@uploads
async def create() -> Response:
    """`POST /admin/requests`: a PDF that somebody is to sign."""
    sent = session.form()
    typed = {name: sent.text(name) for name in _NEW}
    file = sent.files.get("file")
    wrong = _wrong(typed)
    if file is None:
        wrong = {"file": words.say("Choose a PDF file."), **wrong}
    meant, is_named = await core().views.meant_integrator(typed["integrator"])
    if meant is not None:
        typed["integrator"] = meant.code
        if not is_named:
            # Whose document it is, nobody should have guessed.
            wrong["integrator"] = words.say(
                "Is it %(name)s (%(code)s)? Its code is filled in now: check it.",
                name=meant.name,
                code=meant.code,
            )
    elif typed["integrator"]:
        wrong.setdefault("integrator", _said(ErrorCode.INTEGRATOR_NOT_FOUND))
    if wrong or file is None:
        wrong = {**await _unknown_signers(typed), **wrong}
        return await _form(typed, Faults(wrong))
    try:
        made = await core().intake.create_request(
            _order(typed, file.name), file.content
        )
    except ApplianceError as exc:
        return await _form(typed, faults_of(exc, _FIELDS))
    return go("requests.one", number=str(made), done="request-created")


def _wrong(typed: dict[str, str]) -> dict[str, str]:
    """What no service would be asked for: field to sentence."""
    wrong = {}
    days = typed["days"]
    is_number = days.isascii() and days.isdigit() and len(days) <= _DAYS_DIGITS
    if not typed["integrator"]:
        wrong["integrator"] = words.say("Write the integrator's code or name.")
    if typed["level"] and typed["level"] not in set(SignatureLevel):
        wrong["level"] = words.say("Choose an option from the list.")
    wrong |= _wrong_signers(typed)
    if days and not (is_number and 1 <= int(days) <= _DAYS_AT_MOST):
        wrong["days"] = words.say(
            "Write a number of days from 1 to %(most)s.", most=_DAYS_AT_MOST
        )
    return wrong


def _wrong_signers(typed: dict[str, str]) -> dict[str, str]:
    """What is wrong with the CUILs: field to sentence."""
    wrong: dict[str, str] = {}
    for name, read in (("cuil", typed_cuil), ("then", _read_then)):
        try:
            read(typed[name])
        except ApplianceError as exc:
            wrong |= faults_of(exc, _FIELDS).fields
    return wrong


async def _unknown_signers(typed: dict[str, str]) -> dict[str, str]:
    """Who of those that were typed is nobody here: field to sentence."""
    wrong: dict[str, str] = {}
    for name, typed_text in (("cuil", typed["cuil"]), ("then", typed["then"])):
        try:
            cuils = _read_then(typed_text)
        except ApplianceError:
            continue
        for cuil in cuils:
            if await core().views.known(cuil, "") is None:
                wrong[name] = _said(ErrorCode.PERSON_NOT_FOUND)
    return wrong


def _said(code: ErrorCode) -> str:
    return words.error(ApplianceError(code))


def _read_then(text: str) -> tuple[str, ...]:
    """The CUILs of those who sign after the first, in order.

    Raises:
        FieldInvalidError: `then`.
    """
    return typed_cuils(text, "then")


def _order(typed: dict[str, str], file_name: str) -> IntakeOrder:
    """The order that a form makes.

    Raises:
        FieldInvalidError: `cuil` or `then`.
    """
    days, level = typed["days"], typed["level"]
    return IntakeOrder(
        integrator_code=typed["integrator"],
        cuil=typed_cuil(typed["cuil"]),
        file_name=file_name,
        expires=core().clock.now() + timedelta(days=int(days)) if days else None,
        origin=ORIGIN,
        actor=session.actor(),
        then=_read_then(typed["then"]),
        wishes=ProfileWishes(SignatureLevel(level) if level else None),
    )


@blueprint.get("/<digits:number>")
async def one(number: str) -> Response:
    """`GET /admin/requests/{id}`: its state, document and story.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`.
    """
    found = await core().views.request(_id(number))
    view = found.view
    return await page(
        "parts/request.html" if is_partial() else "request.html",
        view=view,
        signed=found.signed,
        level=None if found.signed is None else SignatureLevel(found.signed.level),
        upkeep=found.upkeep,
        note=found.note,
        batch=found.batch,
        mails=await core().mails.of_request(view),
        mail_words=mail_words,
        is_raised=found.signed is not None
        and found.upkeep is not None
        and reaches(SignatureLevel(found.signed.level), found.upkeep.wanted),
        profile=core().settings.signature_profile.narrowed(view.wishes),
        signer=found.signer,
        steps=found.steps,
        story=found.story,
        moving=view.state in _MOVING,
        cancellable=_cancellable(view),
        cause=_cause(found),
        bar=found.bar,
        barred=found.barred,
        askable=may_be_asked_again(view),
        successor=found.successor,
        replaces=found.replaces,
        findings=[FINDINGS[kind] for kind in view.inspection.findings],
        damages=[DAMAGES[kind] for kind in view.repair.damage] if view.repair else [],
    )


def _cause(found: RequestHistory) -> dict[str, str]:
    """What the audit has of why it failed: `tsa` and `cause`, each perhaps empty."""
    details = [
        row.event.detail or {}
        for row in found.story.page.rows
        if row.event.event is EventKind.REQUEST_FAILED
    ]
    last = details[-1] if details else {}
    return {name: str(last.get(name, "")) for name in ("tsa", "cause")}


@blueprint.post("/<digits:number>/again")
async def ask_again(number: str) -> Response:
    """`POST /admin/requests/{id}/again`: a new request in the place of a failed one.

    Sent twice, or by two administrators, it leads to the same new request.

    Raises:
        ApplianceError: as `RequestAgain.ask`.
    """
    made = await core().request_again.ask(_id(number), session.actor(), ORIGIN)
    return go("requests.one", number=str(made), done="request-asked-again")


def _id(number: str) -> RequestId:
    """Read the number in an address.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND` for one that no request can have.
    """
    if len(number) > len(str(MAX_REQUEST_ID)) or int(number) > MAX_REQUEST_ID:
        raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
    return RequestId(int(number))


@blueprint.get("/<digits:number>/original")
async def original(number: str) -> Response:
    """`GET /admin/requests/{id}/original`: the PDF that is to be signed."""
    name, sha256, pdf = await core().requests.download(
        session.actor(), _id(number), signed=False
    )
    return document_response(pdf, name, sha256)


@blueprint.get("/<digits:number>/received")
async def received(number: str) -> Response:
    """`GET /admin/requests/{id}/received`: the file as it came in."""
    name, sha256, pdf = await core().requests.download(
        session.actor(), _id(number), signed=False, as_received=True
    )
    return document_response(pdf, name, sha256)


@blueprint.get("/<digits:number>/signed")
async def signed(number: str) -> Response:
    """`GET /admin/requests/{id}/signed`: the newest signed PDF."""
    name, sha256, pdf = await core().requests.download(
        session.actor(), _id(number), signed=True
    )
    return document_response(pdf, name, sha256)


@blueprint.get("/<digits:number>/cancel")
async def ask_cancel(number: str) -> Response:
    """`GET /admin/requests/{id}/cancel`: what it means."""
    found = await core().views.request(_id(number))
    if _cancellable(found.view):
        return await page("request_cancel.html", **_cancel(found, NONE))
    told = words.say("This request's state does not allow that any more.")
    # By this status a form that came too late is not shown on a page without it.
    return await page(
        "request_cancel.html",
        HTTPStatus.CONFLICT,
        **_cancel(found, Faults(general=told)),
    )


def _cancel(found: RequestHistory, faults: Faults) -> dict[str, Any]:
    """What the page that asks shows; the button only while it can do anything."""
    cancellable = _cancellable(found.view)
    return {"found": found, "faults": faults, "cancellable": cancellable}


def _cancellable(view: RequestView) -> bool:
    return RequestState.CANCELLED in LEGAL_MOVES[view.state]


@blueprint.post("/<digits:number>/cancel")
async def cancel(number: str) -> Response:
    """`POST /admin/requests/{id}/cancel`; what is being signed cannot be.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`; an error that is not the form's fault.
    """
    try:
        await core().requests.cancel(_id(number), session.actor())
    except ApplianceError as exc:
        found = await core().views.request(_id(number))
        if _is_cancelled_already(exc, found.view):
            return go("requests.one", number=number, done="request-cancelled")
        return await again("request_cancel.html", **_cancel(found, faults_of(exc)))
    return go("requests.one", number=number, done="request-cancelled")


def _is_cancelled_already(error: ApplianceError, view: RequestView) -> bool:
    is_state = error.code is ErrorCode.STATE
    return is_state and view.state is RequestState.CANCELLED

"""The same-origin API of the frame's page: parse, call one service, render.

Everything but `init` and `legacy` carries the session's bearer in a header; there is
no cookie, so a call that a page of another origin makes carries nothing.

Source: decisions "Iframe".
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from appliance.domain.documents.inspected import signed_name
from appliance.domain.embedding import EmbedSessionState, EmbedSessionView, SignOrder
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.embedding.batch import PAGE
from appliance.web import i18n, request_log
from appliance.web.auth import bearer, public
from appliance.web.body import (
    brings_document,
    check_type,
    read_document,
    read_object,
)
from appliance.web.document_response import document_response
from appliance.web.responses import PDF, file_response, json_response
from appliance.web.server.client_address import client_address
from embed import wire
from embed.core import core, frame_session

blueprint = Blueprint("api", __name__, url_prefix="/embed/api")

LATE: Final = frozenset(
    {"api.state", "api.batch", "api.completed", "api.download", "api.renew"}
)
"""Routes for which a session's time may be over: what was begun is told, and a new
token may take over."""
_TOKEN_AT_MOST: Final = 256
_PASSWORD_AT_MOST: Final = 1024
_CODE_AT_MOST: Final = 16
_REASON_AT_MOST: Final = 500
_WARNED_AT_MOST: Final = 1000
_warned: OrderedDict[str, None] = OrderedDict()
_uploading: set[str] = set()


@blueprint.post("/init")
@public
async def init() -> Response:
    """`POST init`: a bearer for the token of the initial message.

    The token of another session than the page's gives none, unless the page adopts
    that session and no page of its own was asked for: a page that is being left would
    answer for the one that comes.
    """
    body = await read_object()
    order = wire.init_order(body)
    other = await core().framing.other_session(order)
    adopts = body.get("adopt") is True and not core().served.has(other)
    if other and not adopts:
        return json_response({"isOther": True})
    opened = await core().framing.init(order)
    _note(opened.view)
    return json_response({"bearer": opened.bearer, "session": _told(opened.view)})


@blueprint.post("/legacy")
@public
async def legacy() -> Response:
    """`POST legacy`: a host sent an API key to the page; its value stays there."""
    public_id = wire.text(await read_object(), "session", 64)
    if public_id not in _warned:
        _warned[public_id] = None
        while len(_warned) > _WARNED_AT_MOST:
            _warned.popitem(last=False)
        await core().framing.warn_legacy(public_id)
    return json_response({})


@blueprint.post("/note")
@public
async def take_note() -> Response:
    """`POST note`: an error that the page found by itself, for the log alone.

    Its reference is shown to people: whoever asks about it is found by it.
    """
    body = await read_object()
    public_id = wire.text(body, "session", 64)
    code, reference = wire.page_error(body)
    if core().told.admits(client_address(), public_id):
        request_log.note(pageError=code.value, pageReference=reference)
        request_log.note(session=public_id)
    return json_response({})


@blueprint.post("/sent")
async def sent() -> Response:
    """`POST sent`: the host sent a document that the page itself refused."""
    await core().framing.note_host_document(frame_session())
    return json_response({})


@blueprint.post("/renew")
async def renew() -> Response:
    """`POST renew`: go on under a new token."""
    token = wire.text(await read_object(), "sessionToken", _TOKEN_AT_MOST)
    opened = await core().framing.renew(bearer(), token)
    return json_response({"bearer": opened.bearer, "session": _told(opened.view)})


@blueprint.get("/state")
async def state() -> Response:
    """`GET state`: where the session stands; `?wait=1` waits for an outcome."""
    wait = request.args.get("wait") == "1"
    return _session(await core().signing.view(frame_session(), wait=wait))


@blueprint.post("/document")
@brings_document
async def take_document() -> Response:
    """`POST document`: a PDF, to be examined and signed."""
    name = wire.file_name()
    check_type(PDF)
    session = frame_session()
    by_host = request.headers.get("X-File-From") == "host"
    with _one_upload(session.public_id):
        view = await core().framing.take_document(
            session, name, read_document, by_host=by_host
        )
    return _session(view)


@blueprint.get("/document")
async def document() -> Response:
    """`GET document`: the PDF to be signed, or the range of it that is asked for."""
    shown, pdf = await core().framing.document(frame_session())
    return document_response(pdf, shown.name, shown.sha256)


@blueprint.get("/page/<digits:number>")
async def page(number: str) -> Response:
    """`GET page/{n}`: one page as a picture."""
    png = await core().framing.page_picture(frame_session(), int(number[:9]))
    return file_response(png, "image/png", f"{number[:9]}.png")


@blueprint.post("/identify")
async def identify() -> Response:
    """`POST identify`: who the signer says to be."""
    claim = wire.claim(await read_object())
    matched = await core().framing.identify(frame_session(), claim, client_address())
    return json_response({"ask": "code" if matched else "cuil"})


@blueprint.post("/otp")
async def otp() -> Response:
    """`POST otp`: the code that proves it."""
    code = wire.text(await read_object(), "code", _CODE_AT_MOST)
    return _session(await core().framing.prove(frame_session(), code, client_address()))


@blueprint.post("/help")
async def ask_help() -> Response:
    """`POST help`: the signer forgot the password, or has no phone."""
    topic = wire.help_topic(await read_object())
    session = frame_session()
    core().asked.count(client_address())
    await core().help_requests.ask_in_frame(
        session.person,
        topic,
        session.integrator.id,
        proven=session.otp_at is not None,
    )
    return json_response({})


@blueprint.get("/requests")
async def requests() -> Response:
    """`GET requests`: what waits for this signer's signature."""
    waiting = await core().framing.waiting(frame_session())
    return json_response({"list": [wire.listed(view) for view in waiting]})


@blueprint.post("/choose")
async def choose() -> Response:
    """`POST choose`: sign one of those."""
    wanted = wire.request_id(await read_object())
    session = frame_session()
    if session.batch is not None:
        return _session(await core().batches.open(session, wanted))
    return _session(await core().framing.choose(session, wanted))


@blueprint.post("/seen")
async def seen() -> Response:
    """`POST seen`: the signer was shown the document."""
    sha256 = wire.text(await read_object(), "sha256", 64)
    await core().framing.saw(frame_session(), sha256)
    return json_response({})


@blueprint.post("/place")
async def place() -> Response:
    """`POST place`: where the mark would lie."""
    choice = wire.choice(await read_object())
    placed = await core().signing.placement(frame_session(), choice)
    return json_response(wire.placement(placed))


@blueprint.post("/sign")
async def sign() -> Response:
    """`POST sign`: the signing password; the outcome, or 202 while it goes on."""
    body = await read_object()
    order = SignOrder(
        place=wire.choice(body),
        seen=wire.text(body, "sha256", 64),
        password=wire.text(body, "password", _PASSWORD_AT_MOST),
    )
    with core().signing_calls.known():
        return _session(await core().signing.sign(frame_session(), order))


@blueprint.get("/batch")
async def batch() -> Response:
    """`GET batch?after=`: documents of the session's batch, a page of them."""
    after = wire.request_number(request.args.get("after", "0"))
    found = await core().batches.documents(frame_session(), after)
    lang = i18n.requested()
    listed = [
        wire.batch_document(each, found.signed.get(each.request), lang)
        for each in found.documents
    ]
    more = len(listed) == PAGE
    return json_response({"list": listed, "more": more, "message": found.message})


@blueprint.post("/sign-batch")
async def sign_batch() -> Response:
    """`POST sign-batch`: the signing password for all that waits; 202, it goes on."""
    password = wire.text(await read_object(), "password", _PASSWORD_AT_MOST)
    begun = await core().batches.sign(frame_session(), password)
    refused = wire.refused(begun.refused, i18n.requested())
    return _session(begun.view, refused=refused)


@blueprint.post("/finish")
async def finish() -> Response:
    """`POST finish`: leave a batch at what is signed of it."""
    return _session(await core().batches.finish(frame_session()))


@blueprint.get("/completed")
async def completed() -> Response:
    """`GET completed`: what the host is told, with a fresh download address.

    In a session for a batch `?request=` says of which document.
    """
    session = frame_session()
    if session.batch is not None:
        number = wire.request_number(request.args.get("request", ""))
        return json_response(await core().batches.completed(session, number))
    return json_response(await core().signing.completed(session))


@blueprint.get("/download")
async def download() -> Response:
    """`GET download`: the signed PDF; of a batch the one of `?request=`."""
    session = frame_session()
    if session.batch is not None:
        number = wire.request_number(request.args.get("request", ""))
        view, pdf = await core().batches.signed(session, number)
    else:
        view, pdf = await core().signing.signed(session)
    return document_response(pdf, signed_name(view.file_name), view.sha256)


@blueprint.post("/cancel")
async def cancel() -> Response:
    """`POST cancel`: leave without a signature."""
    reason = wire.text(await read_object(), "reason", 16)
    await core().signing.cancel(frame_session(), by_signer=reason == "signer")
    return json_response({})


@blueprint.post("/reject")
async def reject() -> Response:
    """`POST reject`: the signer refuses to sign, for good; of a batch one document."""
    reason = wire.optional_text(await read_object(), "reason", _REASON_AT_MOST)
    session = frame_session()
    if session.batch is not None:
        return _session(await core().batches.reject(session, reason))
    await core().signing.reject(session, reason)
    return json_response({})


@contextmanager
def _one_upload(session: str) -> Iterator[None]:
    """Let a session bring one document at a time.

    Raises:
        ApplianceError: `IN_PROGRESS` while it brings another.
    """
    if session in _uploading:
        raise ApplianceError(ErrorCode.IN_PROGRESS)
    _uploading.add(session)
    try:
        yield
    finally:
        _uploading.discard(session)


def _session(view: EmbedSessionView, **more: object) -> Response:
    _note(view)
    going_on = view.state is EmbedSessionState.SIGNING
    status = HTTPStatus.ACCEPTED if going_on else HTTPStatus.OK
    return json_response({**_told(view), **more}, status)


def _told(view: EmbedSessionView) -> dict[str, object]:
    return wire.snapshot(view, i18n.requested())


def _note(view: EmbedSessionView) -> None:
    """Name session and request in the log's event."""
    request_log.note(session=view.session.public_id)
    if view.session.batch is not None:
        request_log.note(lote=view.session.batch)
    if view.session.request is not None:
        request_log.note(solicitudId=view.session.request)

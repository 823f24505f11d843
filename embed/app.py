"""The `embed` role as an ASGI application.

async with open_front(settings, clock, "embed") as front:
    await serve(create_embed(front), config)
"""

from collections.abc import Container
from typing import Final

from quart import Blueprint, Quart, Response, g, request

from appliance.admission.address_rates import AddressRate
from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.bootstrap import ServiceRegistry
from appliance.settings import Settings
from appliance.web import auth, body, request_log
from appliance.web.app import HttpProfile, create_app
from appliance.web.responses import json_response
from embed import api, page
from embed.assets import Assets, load_assets
from embed.core import KEY, EmbedCore
from embed.reports import Reports
from embed.served import ServedSessions

_OK: Final = "ok"
_health = Blueprint("health", __name__)


def create_embed(
    front: ServiceRegistry,
    assets: Assets | None = None,
    known: Container[str] = (),
) -> Quart:
    """Make the frame's role over an open front.

    Args:
        front: services and settings; outlives the application.
        assets: the page's files, or None to read them now.
        known: see `HttpProfile`.

    Returns:
        The application, for Hypercorn.
    """
    core = EmbedCore(
        settings=front.settings,
        clock=front.clock,
        sessions=front.sessions,
        framing=front.framing,
        signing=front.frame_signing,
        signing_calls=front.signing_calls,
        batches=front.frame_batches,
        health=front.health,
        logos=front.logos,
        assets=assets or load_assets(),
        help_requests=front.help_requests,
        asked=AddressRate(front.settings.auth.login_per_minute_address, front.clock),
        tried=Reports(front.clock),
        told=Reports(front.clock),
        served=ServedSessions(),
    )
    app = create_app(
        "embed", settings=front.settings, face=_face(front.settings, core, known)
    )
    app.extensions[KEY] = core
    app.register_blueprint(page.blueprint)
    app.register_blueprint(api.blueprint)
    app.register_blueprint(_health)
    return app


def _face(settings: Settings, core: EmbedCore, known: Container[str]) -> HttpProfile:
    """A bearer of a session in, problems out; documents come as they are."""

    async def admit(public: bool) -> None:  # noqa: FBT001 (the type has no names)
        if public:
            return
        late = request.endpoint in api.LATE
        session = await core.sessions.by_bearer(auth.bearer(), late=late)
        g.frame_session = session
        body.hold_as(
            {
                f"session {session.public_id}": body.PARTY_PART,
                f"integrator {session.integrator.id}": body.GROUP_PART,
            }
        )
        WORK_OWNER.set(WorkOwner(session.integrator.id, f"session:{session.id}"))
        request_log.note(session=session.public_id, integrator=session.integrator.code)
        if session.person is not None:
            request_log.note(person=session.person)

    return HttpProfile(settings.web.iframe_url, admit, page.refuse, known=known)


@_health.get("/healthz")
@auth.public
async def healthz() -> Response:
    """`GET /healthz`: this process answers."""
    return json_response({"status": _OK})

"""The `api` role as an ASGI application.

async with open_core(settings, clock) as core:
    await serve(create_api(core), config)
"""

from collections.abc import Container
from dataclasses import replace

from quart import Quart

from appliance.admission.address_rates import AddressRate
from appliance.api import (
    auth,
    ayuda,
    clave,
    credenciales,
    developer_docs,
    enrolment,
    home,
    lotes,
    pages,
    pki,
    public,
    revocar,
    sessions,
    solicitudes,
    tsa,
    verificar,
)
from appliance.api.core import KEY
from appliance.api.integration import batches as integration_batches
from appliance.api.integration import diagnose as integration_diagnose
from appliance.api.integration import documents as integration_documents
from appliance.api.integration import limits as integration_limits
from appliance.api.integration import requests as integration_requests
from appliance.api.integration import sessions as integration_sessions
from appliance.api.integration import signers as integration_signers
from appliance.api.integration import signers_for_tests
from appliance.api.integration import webhooks as integration_webhooks
from appliance.api.openapi import routes as openapi
from appliance.bootstrap import ServiceRegistry
from appliance.domain.vocab import Environment
from appliance.web import sdk
from appliance.web.app import create_app, rest_face
from appliance.web.content_negotiation import as_octets
from appliance.web.made_once import MadeOnce
from appliance.web.server.public_path import PublicPaths, paths_of


def create_api(core: ServiceRegistry, known: Container[str] = ()) -> Quart:
    """Make the REST API over an open core.

    Args:
        core: services and settings; outlives the application.
        known: see `HttpProfile`.

    Returns:
        The application, for Hypercorn.
    """
    app = create_app(
        "appliance.api",
        settings=core.settings,
        authenticate=core.tokens.verify,
        face=replace(
            rest_face(core.settings), refuse=pages.refuse_anybody, known=known
        ),
    )
    app.extensions[KEY] = core
    app.after_request(as_octets)
    web = core.settings.web
    if prefixes := paths_of(web.base_url, web.web_url):
        under = PublicPaths(app.asgi_app, prefixes)
        app.asgi_app = under  # type: ignore[method-assign]  # as Quart says
    per_minute = core.settings.pki.requests_per_minute_address
    app.extensions[pki.RATE] = AddressRate(per_minute, core.clock)
    per_minute = core.settings.timestamps.requests_per_minute_address
    app.extensions[tsa.RATE] = AddressRate(per_minute, core.clock)
    app.register_blueprint(solicitudes.blueprint)
    app.register_blueprint(lotes.blueprint)
    app.register_blueprint(credenciales.blueprint)
    app.register_blueprint(clave.blueprint)
    app.register_blueprint(auth.blueprint)
    app.register_blueprint(sessions.blueprint)
    app.register_blueprint(integration_requests.blueprint)
    app.register_blueprint(integration_batches.blueprint)
    app.register_blueprint(integration_sessions.blueprint)
    app.register_blueprint(integration_signers.blueprint)
    if core.settings.environment is Environment.PREPROD:
        app.register_blueprint(signers_for_tests.blueprint)
    app.register_blueprint(integration_documents.blueprint)
    app.register_blueprint(integration_limits.blueprint)
    app.register_blueprint(integration_diagnose.blueprint)
    app.register_blueprint(integration_webhooks.blueprint)
    app.extensions[openapi.KEPT] = MadeOnce()
    app.register_blueprint(openapi.blueprint)
    app.register_blueprint(enrolment.blueprint)
    per_minute = core.settings.auth.login_per_minute_address
    app.extensions[ayuda.RATE] = AddressRate(per_minute, core.clock)
    app.extensions[verificar.RATE] = AddressRate(
        core.settings.stamp.looks_per_minute_address, core.clock
    )
    app.extensions[verificar.EXAMINED_RATE] = AddressRate(
        verificar.EXAMINED_PER_MINUTE, core.clock
    )
    app.register_blueprint(home.blueprint)
    app.register_blueprint(revocar.blueprint)
    app.register_blueprint(ayuda.blueprint)
    app.register_blueprint(verificar.blueprint)
    app.register_blueprint(pages.files)
    app.extensions[developer_docs.KEPT] = MadeOnce()
    app.register_blueprint(developer_docs.blueprint)
    sdk.built()
    app.register_blueprint(sdk.blueprint)
    app.register_blueprint(public.blueprint)
    app.register_blueprint(pki.blueprint)
    app.register_blueprint(tsa.blueprint)
    return app

"""The console as an ASGI application.

async with open_admin(settings, clock) as console:
    await serve(create_console(console), config)
"""

from collections.abc import Container, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Final

from jinja2 import StrictUndefined
from quart import Blueprint, Quart, g, redirect, request, url_for
from quart.typing import ResponseReturnValue

from admin_ui import (
    assets,
    audit_words,
    edits,
    figures,
    guard,
    health_report,
    health_words,
    pages,
    proof,
    session,
    times,
    words,
)
from admin_ui.core import KEY, core
from admin_ui.render import error_page
from appliance.bootstrap import AdminServiceRegistry
from appliance.domain.people.identity import format_cuil
from appliance.domain.text.civil_time import (
    ZONE_NAME,
    day_alone,
    day_and_time,
    time_alone,
)
from appliance.domain.text.idn_hosts import host_in_letters
from appliance.web import brand
from appliance.web.app import HttpProfile, create_app
from appliance.web.auth import public

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    # With `no-referrer` a browser sends forms with `Origin: null`.
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=()",
}


def create_console(console: AdminServiceRegistry, known: Container[str] = ()) -> Quart:
    """Make the console over an open core.

    Args:
        console: services and settings; outlives the application.
        known: see `HttpProfile`.

    Returns:
        The application, for Hypercorn.
    """
    face = HttpProfile(
        console.settings.web.admin_url, guard.admit, error_page, _HEADERS, known
    )
    app = create_app("admin_ui", settings=console.settings, face=face)
    app.extensions[KEY] = console
    app.extensions[health_report.KEY] = health_report.LatestReport()
    app.extensions[figures.KEY] = figures.figures_in_reach(console.settings)
    health_report.profile_named(console.settings.hsm.profile)
    _prepare_templates(app)
    for short in ("/", "/admin"):
        app.add_url_rule(short, "root", public(_root))
    app.register_blueprint(assets.blueprint)
    for blueprint in page_blueprints():
        app.register_blueprint(blueprint)
    return app


def page_blueprints() -> Iterator[Blueprint]:
    """Of every module below `admin_ui.pages`, by its name."""
    for module in walk_packages(pages.__path__, f"{pages.__name__}."):
        if not module.ispkg:
            yield import_module(module.name).blueprint


async def _root() -> ResponseReturnValue:
    return redirect(url_for("home.show"))


def _prepare_templates(app: Quart) -> None:
    """Give templates their words, times and addresses."""
    words.load()
    app.jinja_options |= {
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "autoescape": True,
        "extensions": ["jinja2.ext.i18n"],
    }
    env = app.jinja_env
    env.install_gettext_callables(  # type: ignore[attr-defined]  # of jinja2.ext.i18n
        words.say, words.say_many, newstyle=True
    )
    env.filters["chain_name"] = audit_words.chain_name
    env.filters["cuil"] = format_cuil
    env.filters["in_letters"] = host_in_letters
    env.filters["absolute"] = lambda at: day_and_time(at, words.lang())
    env.filters["day"] = lambda at: day_alone(at, words.lang())
    env.filters["time"] = time_alone
    env.filters["precise"] = lambda at: day_and_time(at, words.lang(), seconds=True)
    env.filters["relative"] = lambda at: times.relative(
        at, core().clock.now(), words.lang()
    )
    env.filters["is_ahead"] = lambda at: at > core().clock.now()
    env.filters["size"] = words.size
    env.filters["machine"] = times.machine
    env.globals["asset"] = assets.address
    env.globals["mark"] = brand.MARK
    env.globals["zone"] = ZONE_NAME
    env.filters["seconds"] = health_words.seconds
    env.filters["percent"] = health_words.percent
    env.globals["words"] = words
    env.globals["kept"] = edits.kept
    env.globals["kept_box"] = edits.kept_box
    env.globals["seen"] = edits.seen
    env.globals["seen_here"] = edits.seen_here
    env.globals["health_words"] = health_words
    env.globals["stories"] = audit_words
    env.globals["N_"] = words.N_
    app.context_processor(_context)


async def _context() -> dict[str, Any]:
    """What every page shows."""
    settings = core().settings
    signed_in = g.get("console")
    has_mark = signed_in and (
        not session.is_partial() or request.endpoint == "health.mark"
    )
    return {
        "lang": words.lang(),
        "environment": settings.environment.value,
        "installation": settings.installation,
        "trial": settings.trial,
        "mail_is_on": settings.mail.is_on,
        "session": signed_in,
        "health_mark": await health_report.latest().recent() if has_mark else None,
        "csrf": signed_in.csrf if signed_in else "",
        "changed": g.get("changed"),
        "restored": g.get("restored", False),
        "proof_until": proof.holds_until(),
        "place": request.blueprint or "",
        "here": request.full_path.rstrip("?"),
    }

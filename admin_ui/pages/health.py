"""Health: each part, and each worker."""

from datetime import timedelta
from importlib.metadata import version
from typing import Final

from quart import Blueprint, Response

from admin_ui.core import core
from admin_ui.render import page
from admin_ui.session import is_partial

blueprint = Blueprint("health", __name__, url_prefix="/admin/health")
_ALIVE: Final = timedelta(seconds=15)


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/health`."""
    settings = core().settings
    since = core().clock.now() - _ALIVE
    workers = [(worker, worker.at >= since) for worker in await core().views.workers()]
    return await page(
        "parts/health.html" if is_partial() else "health.html",
        checks=await core().health.ready(),
        workers=workers,
        ends=await core().expiry.overview(),
        overdue=await core().views.overdue(),
        now=core().clock.now(),
        version=version("rubrica"),
        database="SQLite" if settings.database.url == "sqlite" else "PostgreSQL",
        web=settings.web,
    )

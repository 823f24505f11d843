"""Health: each part, and each process of every role."""

from datetime import timedelta
from importlib.metadata import version
from typing import Final

from quart import Blueprint, Response

from admin_ui import words
from admin_ui.core import core
from admin_ui.render import page
from admin_ui.session import is_partial
from appliance.domain.records.tasks import WorkerStatus
from appliance.services.installation_state import look

blueprint = Blueprint("health", __name__, url_prefix="/admin/health")
_ALIVE: Final = timedelta(seconds=15)
_VERSION: Final = version("rubrica")


def role_of(slot: str) -> str:
    """The role in a process's slot, `<role>/<host>/<n>`."""
    return slot.partition("/")[0]


def _roles(workers: list[tuple[WorkerStatus, bool]]) -> set[str]:
    return {role_of(worker.slot) for worker, _ in workers}


def _order(slot: str) -> int:
    roles = list(words.ROLES)
    return roles.index(role_of(slot)) if role_of(slot) in roles else len(roles)


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/health`."""
    settings = core().settings
    since = core().clock.now() - _ALIVE
    workers = [(worker, worker.at >= since) for worker in await core().views.workers()]
    workers.sort(key=lambda row: (_order(row[0].slot), row[0].slot))
    missing = [role for role in words.ROLES if role not in _roles(workers)]
    return await page(
        "parts/health.html" if is_partial() else "health.html",
        checks=await core().health.ready(),
        workers=workers,
        missing=missing,
        attacked=await core().failed_tries.attacked(),
        ends=await core().expiry.overview(),
        overdue=await core().views.overdue(),
        state=await look(core().core.store, core().clock, settings),
        now=core().clock.now(),
        version=_VERSION,
        database="SQLite" if settings.database.url == "sqlite" else "PostgreSQL",
        web=settings.web,
    )

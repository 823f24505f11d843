"""The first page: whether everything works, and what waits for somebody."""

from quart import Blueprint, Response

from admin_ui import health_report
from admin_ui.core import core
from admin_ui.render import page
from admin_ui.session import is_partial

blueprint = Blueprint("home", __name__, url_prefix="/admin")
_HELPS_SHOWN = 5


@blueprint.get("/")
async def show() -> Response:
    """`GET /admin/`: the health report's troubles, and numbers with their lists."""
    health = await health_report.assessed()
    numbers, blocked = await core().views.home()
    return await page(
        "parts/home.html" if is_partial() else "home.html",
        checks=health.checks,
        report=health.report,
        numbers=numbers,
        overdue=sum(each.documents for each in health.state.overdue),
        attacked=len(await core().failed_tries.attacked()),
        blocked=blocked,
        helps=await core().help_desk.newest(_HELPS_SHOWN),
        empty=not await core().integrators.list(),
    )

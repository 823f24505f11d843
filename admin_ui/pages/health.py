"""Health: each part, and each process of every role, by host.

What the record knows is told of all hosts; what processes measure of themselves, of
those whose figures are in reach (`admin_ui.figures`). What is not in reach is said.
"""

import socket
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

from quart import Blueprint, Response, g

from admin_ui import health_report, mail_words, words
from admin_ui.core import core
from admin_ui.health_report import Assessment
from admin_ui.render import page
from admin_ui.session import is_partial
from appliance.operations.health.processes import missing_roles, unseen_hosts
from appliance.operations.metrics import installation as verdicts
from appliance.operations.metrics.verdicts import UNKNOWN, alarm
from appliance.web.auth import public

blueprint = Blueprint("health", __name__, url_prefix="/admin/health")
_VERSION: Final = version("rubrica")


def _processes(health: Assessment) -> dict[str, Any]:
    """What is shown of processes, and of what they measured."""
    rows, facts = health.report.rows, health.facts
    return {
        "rows": rows,
        "missing": missing_roles(rows),
        "facts": facts,
        "console_host": socket.gethostname(),
        "unseen": unseen_hosts(rows),
        "asks_hosts": bool(core().settings.metrics.hosts),
        "mixed": alarm("RubricaVersionsDiffer") if len(facts.versions) > 1 else None,
    }


def _installation(health: Assessment) -> dict[str, Any]:
    """What is shown of the installation as a whole."""
    settings, now, state = core().settings, core().clock.now(), health.state
    profile, ends = health_report.hsm_profile(), state.first_ends
    is_software = None if profile is None else profile.quirks.software
    return {
        "queues": [(each, verdicts.of_queue(each)) for each in state.queues],
        "published": [
            (each, verdicts.of_publication(each)) for each in state.publications
        ],
        "overdue": state.overdue,
        "levels": verdicts.of_levels(state.overdue),
        "deliveries": [
            ("webhooks", verdicts.of_webhooks(state.webhooks), state.webhooks.count),
            ("mails", verdicts.of_mails(state.mails), state.mails.count),
            (
                "signers",
                verdicts.of_revoked_signers(state.revoked_signers),
                state.revoked_signers,
            ),
        ],
        "backup": state.backup,
        "backups": verdicts.of_backup(state.backup, now, trial=settings.trial),
        "audit": state.audit,
        "audit_verdict": verdicts.of_audit(state.audit),
        "hsm": profile,
        "hsm_kind": verdicts.of_hsm_kind(
            settings.environment,
            is_software=is_software,
            is_weak=health.facts.is_hsm_weak,
        ),
        "first_ends": [
            (kind, ends[kind], verdicts.of_certificate(kind, ends[kind], now))
            for kind in words.ENDING
            if kind in ends
        ],
    }


async def _undelivered(health: Assessment) -> dict[str, Any]:
    """Webhooks, mails and signers, as they are shown one by one."""
    state = health.state
    counts = state.webhooks.count, state.mails.count, state.revoked_signers
    more: list[int] = []
    found = await core().views.undelivered() if any(counts) else None
    if found is not None:
        listed = len(found.webhooks), len(found.mails), len(found.signers)
        more = [count - shown for count, shown in zip(counts, listed, strict=True)]
    return {"undelivered": found, "more": more, "mail_words": mail_words}


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/health`."""
    settings = core().settings
    health = await health_report.assessed()
    return await page(
        "parts/health.html" if is_partial() else "health.html",
        checks=health.checks,
        troubles=health.report.sections,
        attacked=await core().failed_tries.attacked(),
        ends=await core().expiry.overview(),
        now=core().clock.now(),
        version=_VERSION,
        unknown=UNKNOWN,
        **await _undelivered(health),
        documents_in_bucket=settings.documents.url is not None,
        database="SQLite" if settings.database.url == "sqlite" else "PostgreSQL",
        web=settings.web,
        **_installation(health),
        **_processes(health),
    )


@blueprint.get("/mark")
@public
async def mark() -> Response:
    """`GET /admin/health/mark`: the mark on the menu, for pages that stay open.

    Without a session it is empty: nobody who types into a form is sent to the sign-in.
    """
    if g.console is None:
        return Response(status=HTTPStatus.NO_CONTENT)
    return await page("parts/health_mark.html")

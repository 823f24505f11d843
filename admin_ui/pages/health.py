"""Health: each part, and each process of every role, by host.

What the record knows is told of all hosts; what processes measure of themselves, of
those whose figures are in reach (`admin_ui.figures`). What is not in reach is said.
"""

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import health_words, words
from admin_ui.core import core
from admin_ui.figures import figures_now
from admin_ui.render import page
from admin_ui.session import is_partial
from appliance.console.installation_state import look
from appliance.core.installation_store import InstallationStore
from appliance.domain.hsm_tasks import WorkerStatus
from appliance.keys.health import OK
from appliance.operations.metrics import installation as verdicts
from appliance.operations.metrics.facts import Facts, ProcessFact
from appliance.operations.metrics.verdicts import UNKNOWN, State, Verdict, alarm, worst
from appliance.settings import SettingsError
from hsm_config.profile import HsmProfile, load_profile

blueprint = Blueprint("health", __name__, url_prefix="/admin/health")
_ALIVE: Final = timedelta(seconds=15)
_VERSION: Final = version("rubrica")
_WELL: Final = frozenset({"ready", "none"})
_ORDER: Final = (*words.ROLES, *health_words.MORE_ROLES)


@dataclass(frozen=True, slots=True)
class Row:
    """A process, by its sign of life in the record, by its figures, or by both."""

    slot: str
    """`<role>/<host>/<number>`."""
    beat: WorkerStatus | None
    is_alive: bool
    figures: ProcessFact | None

    @property
    def role(self) -> str:
        """Its role."""
        return self.slot.partition("/")[0]

    @property
    def state(self) -> State:
        """How it is, its HSM included."""
        found = [self.figures.verdict.state] if self.figures else []
        if self.beat is not None:
            is_well = self.is_alive and self.beat.hsm in _WELL
            found.append(State.GOOD if is_well else State.BAD)
        return worst(found)

    @property
    def host(self) -> str:
        """Its host."""
        return self.slot.partition("/")[2].rpartition("/")[0]


def rows_of(
    beats: Iterable[tuple[WorkerStatus, bool]], figures: Iterable[ProcessFact]
) -> list[Row]:
    """Processes by role, host and number.

    Args:
        beats: signs of life, and whether they are of now.
        figures: of the processes in reach.
    """
    left: dict[str, ProcessFact] = {each.slot: each for each in figures}
    rows = [
        Row(beat.slot, beat, alive, left.pop(beat.slot, None)) for beat, alive in beats
    ]
    rows += [Row(slot, None, each.is_alive, each) for slot, each in left.items()]
    return sorted(rows, key=lambda row: (_order(row.role), row.slot))


def _order(role: str) -> int:
    return _ORDER.index(role) if role in _ORDER else len(_ORDER)


def out_of_reach(rows: Iterable[Row]) -> list[str]:
    """Hosts with a process that lives by the record and has no figures in reach.

    By process: another one's figures say of which host they are, and may lie.
    """
    unseen = (row for row in rows if row.beat and row.is_alive and not row.figures)
    return sorted({row.host for row in unseen})


async def _processes() -> dict[str, Any]:
    """What is shown of processes, and of what they measured."""
    since = core().clock.now() - _ALIVE
    facts = await figures_now()
    beats = [(beat, beat.at >= since) for beat in await core().views.workers()]
    rows = rows_of(beats, facts.processes)
    return {
        "rows": rows,
        "missing": [r for r in words.ROLES if r not in {row.role for row in rows}],
        "facts": facts,
        "console_host": socket.gethostname(),
        "unseen": out_of_reach(rows),
        "asks_hosts": bool(core().settings.metrics.hosts),
        "mixed": alarm("RubricaVersionsDiffer") if len(facts.versions) > 1 else None,
    }


async def _installation() -> dict[str, Any]:
    """What is shown of the installation as a whole."""
    settings, now = core().settings, core().clock.now()
    async with core().core.store.read() as transaction:
        backup = await InstallationStore(transaction).last_backup()
        audit = await InstallationStore(transaction).last_audit_check()
    overdue = await core().views.overdue()
    ends = await core().expiry.first_ends()
    state = await look(core().core.store, core().clock, settings)
    return {
        "queues": [(each, verdicts.of_queue(each)) for each in state.queues],
        "published": [
            (each, verdicts.of_publication(each)) for each in state.publications
        ],
        "overdue": overdue,
        "levels": verdicts.of_levels(overdue),
        "backup": backup,
        "backups": verdicts.of_backup(backup, now, trial=settings.trial),
        "audit": audit,
        "audit_verdict": verdicts.of_audit(audit),
        "first_ends": [
            (kind, ends[kind], verdicts.of_certificate(kind, ends[kind], now))
            for kind in words.ENDING
            if kind in ends
        ],
    }


def _troubles(
    checks: Mapping[str, str], whole: Mapping[str, Any], each: Mapping[str, Any]
) -> list[tuple[str, State]]:
    """Sections of the page with something that is not well, and the worst of each."""
    facts: Facts = each["facts"]

    def of(verdicts: Iterable[Verdict]) -> list[State]:
        return [one.state for one in verdicts]

    backups = [whole["backups"]] if whole["backups"] else []
    audited = [whole["audit_verdict"]] if whole["audit_verdict"] else []
    missing = [State.BAD] * len(each["missing"])
    mixed = of([each["mixed"]] if each["mixed"] else [])
    unread = [State.ATTENTION] * len(facts.unreadable)
    unread += of(one.verdict for one in facts.unreached)
    found = {
        "parts": [State.GOOD if told == OK else State.BAD for told in checks.values()],
        "waiting": of([*(one for _, one in whole["queues"]), whole["levels"]]),
        "published": of(one for _, one in whole["published"]),
        "ground": of([*backups, *audited, *(one.verdict for one in facts.grounds)]),
        "certificates": of(one for *_, one in whole["first_ends"]),
        "tsas": of(one.verdict for one in facts.tsas),
        "status": of(one.verdict for one in facts.outside),
        "workers": [*(row.state for row in each["rows"]), *missing, *mixed, *unread],
        "tokens": of(one.verdict for one in facts.tokens),
        "pools": of(one.verdict for one in facts.pools),
    }
    worst_of = [(name, worst(found[name])) for name in health_words.SECTIONS]
    return [one for one in worst_of if one[1] in {State.BAD, State.ATTENTION}]


@cache
def _hsm() -> HsmProfile | None:
    """The make of the HSM; None where this host's settings name none that is here."""
    try:
        return load_profile(core().settings.hsm.profile)
    except SettingsError:
        return None


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/health`."""
    settings = core().settings
    checks = await core().health.ready()
    whole, each = await _installation(), await _processes()
    return await page(
        "parts/health.html" if is_partial() else "health.html",
        checks=checks,
        troubles=_troubles(checks, whole, each),
        attacked=await core().failed_tries.attacked(),
        ends=await core().expiry.overview(),
        now=core().clock.now(),
        version=_VERSION,
        unknown=UNKNOWN,
        documents_in_bucket=settings.documents.url is not None,
        database="SQLite" if settings.database.url == "sqlite" else "PostgreSQL",
        web=settings.web,
        hsm=_hsm(),
        **whole,
        **each,
    )

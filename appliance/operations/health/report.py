"""One health report: every item with its state, the worst first.

    report = assess(state, facts, now, environment, trial=False, checks=checks)
    if report.worst is not State.GOOD:
        for item in report.troubles: ...

The console's *Inicio*, *Salud* and menu, `rubrica status` and `rubrica doctor` read it;
the alert rules fire by the same bounds (`appliance.operations.metrics.verdicts`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.console.installation_state import InstallationState
from appliance.domain.vocab import Environment
from appliance.keys.health import OK
from appliance.operations.health.processes import (
    ProcessRow,
    missing_roles,
    rows_of,
)
from appliance.operations.metrics import installation as verdicts
from appliance.operations.metrics.facts import Facts
from appliance.operations.metrics.verdicts import (
    State,
    Verdict,
    alarm,
    by_urgency,
    worst,
)

SECTIONS: Final = (
    "parts",
    "waiting",
    "delivery",
    "published",
    "ground",
    "certificates",
    "tsas",
    "status",
    "workers",
    "tokens",
    "pools",
)
"""Sections of *Salud*, in order: each item belongs to one."""
UNREADABLE: Final = "unreadable"
"""Name of the item that lists roles whose figures this process may not read."""
_BY_FIGURES: Final = frozenset(
    {"ground", "tsas", "status", "workers", "tokens", "pools"}
)
"""Sections that are assessed by figures: without them an item there is not known."""
_NO_FIGURES: Final = frozenset({"RubricaFiguresAway", "RubricaFiguresRefused"})
"""Alerts that say that figures could not be read."""


@dataclass(frozen=True, slots=True)
class HealthItem:
    """One thing that works or does not."""

    section: str
    """One of `SECTIONS`."""
    name: str
    """What is assessed: a part, queue, role, TSA, token, pool or certificate."""
    verdict: Verdict
    subject: str = ""
    """Which one, where there are several: a slot, host or address."""
    code: str = ""
    """What `/readyz` says of a part that does not work."""
    count: int = 0
    """How many of it are concerned."""

    def belongs_to(self, section: str) -> bool:
        """Return whether somebody who asks for one section has to be shown the item.

        Figures that cannot be read belong to every section that is assessed by them:
        there, nothing else would tell "not known" from "fine".

        Args:
            section: one of `SECTIONS`.
        """
        hides_others = self.verdict.alert in _NO_FIGURES
        return self.section == section or (hides_others and section in _BY_FIGURES)


@dataclass(frozen=True, slots=True)
class HealthReport:
    """All items of an installation."""

    items: tuple[HealthItem, ...]
    rows: tuple[ProcessRow, ...] = ()
    """Processes, which the items of the section `workers` are made of."""
    is_known: bool = True
    """False: the installation could not be assessed, and there are no items."""

    @property
    def worst(self) -> State:
        """State to look at first."""
        return worst(each.verdict.state for each in self.items)

    @property
    def troubles(self) -> tuple[HealthItem, ...]:
        """Items that are bad or want attention, the worst first."""
        found = [each for each in self.items if each.verdict.is_trouble]
        return tuple(sorted(found, key=lambda each: by_urgency(each.verdict.state)))

    @property
    def sections(self) -> tuple[tuple[str, State], ...]:
        """Sections with a trouble, in their order, each with its worst state."""
        states: dict[str, list[State]] = {}
        for each in self.troubles:
            states.setdefault(each.section, []).append(each.verdict.state)
        return tuple((name, worst(states[name])) for name in SECTIONS if name in states)


def assess(
    state: InstallationState,
    facts: Facts,
    now: datetime,
    environment: Environment,
    *,
    trial: bool,
    checks: Mapping[str, str] | None = None,
    is_software: bool | None = None,
) -> HealthReport:
    """Assess all that is known of an installation.

    Args:
        state: by its record.
        facts: by the figures in reach.
        now: the time.
        environment: of the installation.
        trial: the installation is one.
        checks: parts by `/readyz`, each `ok` or a code; None: they were not checked.
        is_software: keys are kept by a software token, by the HSM's profile; None: no
            profile can be read. What signing workers measured goes before it.
    """
    rows = rows_of(state.workers, facts.processes, now)
    backup = verdicts.of_backup(state.backup, now, trial=trial)
    audit = verdicts.of_audit(state.audit)
    items = [
        *_parts(checks or {}),
        *_of_record(state),
        *_ground(facts),
        *_ends(state, now),
        *_processes(rows, facts),
        *_outside(facts),
    ]
    if backup is not None:
        items.append(HealthItem("ground", "backup", backup))
    if audit is not None:
        items.append(HealthItem("ground", "audit", audit))
    kind = verdicts.of_hsm_kind(
        environment, is_software=is_software, is_weak=facts.is_hsm_weak
    )
    items.append(HealthItem("ground", "kind", kind))
    return HealthReport(tuple(items), tuple(rows))


def unread(code: str) -> HealthReport:
    """Report that the record could not be read.

    Args:
        code: of the error.
    """
    away = Verdict(State.BAD)
    return HealthReport((HealthItem("parts", "database", away, code=code),))


def unassessed() -> HealthReport:
    """Report that the installation could not be assessed."""
    return HealthReport((), is_known=False)


def _parts(checks: Mapping[str, str]) -> Iterator[HealthItem]:
    for name, code in checks.items():
        is_good = code == OK
        verdict = Verdict(State.GOOD if is_good else State.BAD)
        yield HealthItem("parts", name, verdict, code="" if is_good else code)


def _of_record(state: InstallationState) -> Iterator[HealthItem]:
    for queue in state.queues:
        verdict = verdicts.of_queue(queue)
        yield HealthItem("waiting", queue.name, verdict, count=queue.length)
    documents = sum(each.documents for each in state.overdue)
    levels = verdicts.of_levels(state.overdue)
    yield HealthItem("waiting", "levels", levels, count=documents)
    webhooks, mails = state.webhooks, state.mails
    yield HealthItem(
        "delivery", "webhooks", verdicts.of_webhooks(webhooks), count=webhooks.count
    )
    yield HealthItem("delivery", "mails", verdicts.of_mails(mails), count=mails.count)
    yield HealthItem(
        "delivery",
        "signers",
        verdicts.of_revoked_signers(state.revoked_signers),
        count=state.revoked_signers,
    )
    for each in state.publications:
        yield HealthItem("published", each.name, verdicts.of_publication(each))


def _ground(facts: Facts) -> Iterator[HealthItem]:
    for ground in facts.grounds:
        yield HealthItem("ground", ground.kind, ground.verdict, ground.host)
    for damaged in facts.damaged:
        yield HealthItem("ground", "damaged", damaged.verdict, damaged.host)


def _ends(state: InstallationState, now: datetime) -> Iterator[HealthItem]:
    for kind, end in state.first_ends.items():
        verdict = verdicts.of_certificate(kind, end, now)
        yield HealthItem("certificates", kind.value, verdict)


def _processes(rows: Iterable[ProcessRow], facts: Facts) -> Iterator[HealthItem]:
    rows = list(rows)
    for row in rows:
        yield HealthItem("workers", row.role, row.verdict, row.slot)
    for role in missing_roles(rows):
        yield HealthItem("workers", role, alarm("RubricaRoleDown"), role)
    if len(facts.versions) > 1:
        mixed = alarm("RubricaVersionsDiffer")
        yield HealthItem("workers", "versions", mixed, ", ".join(facts.versions))
    if facts.unreadable:
        unreadable = alarm("RubricaFiguresRefused")
        roles = ", ".join(facts.unreadable)
        yield HealthItem("workers", UNREADABLE, unreadable, roles)
    for host in facts.unreached:
        yield HealthItem("workers", "figures", host.verdict, host.address)


def _outside(facts: Facts) -> Iterator[HealthItem]:
    for section, answers in (("tsas", facts.tsas), ("status", facts.outside)):
        for each in answers:
            yield HealthItem(section, each.name, each.verdict, each.host)
    for token in facts.tokens:
        yield HealthItem("tokens", token.token, token.verdict, token.slot)
    for pool in facts.pools:
        yield HealthItem("pools", pool.name, pool.verdict)


def counted(report: HealthReport) -> Mapping[State, int]:
    """Troubles by state.

    Args:
        report: of an installation.
    """
    return Counter(each.verdict.state for each in report.troubles)

"""Facts, alerts and their words: one idea, told once."""

import re
from pathlib import Path
from typing import Final

import pytest

from admin_ui import health_words
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.operations.metrics import facts, installation
from appliance.operations.metrics.verdicts import SEVERITIES, State
from appliance.signing.level_maintenance import OVERDUE

_DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
_RULES: Final = (_DOCS / "samples" / "rubrica-alerts.yaml").read_text("utf-8")
_STATES: Final = {"critical": State.BAD, "warning": State.ATTENTION}


def rule(alert: str) -> str:
    """The lines of a rule."""
    found = re.search(
        rf"- alert: {alert}\n(.*?)(?=\n *- alert:|\n  - name:|\Z)", _RULES, re.DOTALL
    )
    assert found, alert
    return found[1]


@pytest.mark.parametrize("alert", sorted(SEVERITIES))
def test_state_is_that_of_the_alert(alert: str) -> None:
    """And the page that the console names has a section for it."""
    severity = re.search(r"severity: (\w+)", rule(alert))
    assert severity
    assert SEVERITIES[alert] is _STATES[severity[1]]
    assert f"\n### {alert}\n" in (_DOCS / "alerts.md").read_text("utf-8")


def test_every_state_and_alert_has_words() -> None:
    """None more, and none less."""
    assert health_words.REMEDIES.keys() == SEVERITIES.keys()
    assert set(health_words.STATES) == {state.value for state in State}
    assert tuple(health_words.POOLS) == facts.POOLS
    assert tuple(health_words.TOKENS) == facts.TOKENS
    assert tuple(health_words.STATUSES) == facts.STATUSES


@pytest.mark.parametrize(
    ("alert", "bound"),
    [
        ("RubricaEventLoopLags", f"> {facts.LAG_S:.0f}\n"),
        ("RubricaDescriptorsRunOut", f"> {facts.DESCRIPTORS}\n"),
        ("RubricaClockOff", f"> {facts.CLOCK_OFF_S:.0f}\n"),
        ("RubricaDiskFull", f"< {facts.DISK_BYTES}\n"),
        ("RubricaOutsideStatusFails", f"[{facts.OUTSIDE.seconds // 60}m]"),
        ("RubricaHsmFaults", f"[{facts.FAULTS.seconds // 60}m]"),
        ("RubricaPoolFull", f"[{facts.REFUSALS.seconds // 60}m]"),
        (
            "RubricaBackupOld",
            f"> {installation.BACKUP.total_seconds() / 3600:.0f} * 3600",
        ),
        ("RubricaCertificateEnds", f"< {installation.ENDS.days} * 86400"),
        (
            "RubricaCertificateEnds",
            f"< {installation.ENDS_OF[ExpiringKind.OCSP].days} * 86400",
        ),
        (
            "RubricaSignersEnd",
            f"< {installation.ENDS_OF[ExpiringKind.SIGNER].days} * 86400",
        ),
        ("RubricaLevelsBehind", f"> {OVERDUE.seconds}\n"),
    ],
)
def test_bound_is_that_of_the_rule(alert: str, bound: str) -> None:
    """What Prometheus would fire by is what the console goes by."""
    assert bound in rule(alert)


def test_pools_are_those_of_the_page_of_figures() -> None:
    """In any order."""
    page = (_DOCS / "metrics.md").read_text("utf-8")
    told = page[page.index("A pool's name (`pool`)") : page.index("<!-- Made by")]
    assert set(re.findall(r"`(\w+)`", told)) - {"pool"} == set(facts.POOLS)

"""The alert rules: each fires by what it is for and is silent else, each has a page.

promtool's own tests of rules are run, one for each alert that fires and one that does
not. A minute of a case is a minute of Prometheus'.
"""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.metrics.metrics import FAMILIES
from appliance.operations.metrics.exposition import OF_FILES
from tests.support.appliance.manual import fenced

_DOCS: Final = Path(__file__).resolve().parents[3] / "docs"
RULES: Final = _DOCS / "samples" / "rubrica-alerts.yaml"
MINUTES: Final = 120
_AT: Final = '{job="rubrica",instance="a"'

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        shutil.which("promtool") is None,
        reason="promtool is not installed (Debian's prometheus)",
    ),
]


def one(name: str, labels: str, values: str) -> dict[str, str]:
    """A series of a process: `labels` beside job and instance, in promtool's words."""
    return {"series": f"{name}{_AT},{labels}}}", "values": values}


def still(value: float) -> str:
    """One value for all of the time."""
    return f"{float(value)}x{MINUTES}"


SIGNING: Final = 'role="signing",number="1"'
CHORES: Final = 'role="chores",number="1"'
API: Final = 'role="api",number="1"'
UP: Final = f"1x{MINUTES}"
DOWN: Final = f"1x5 0x{MINUTES}"
HOUR: Final = 3600.0
DAY: Final = 86_400.0
_CRL: Final = "rubrica_crl_{}_update_timestamp_seconds"
_OCSP: Final = (
    "rubrica_ocsp_oldest_this_update_timestamp_seconds",
    "rubrica_ocsp_first_next_update_timestamp_seconds",
)
_END: Final = "rubrica_certificate_not_after_timestamp_seconds"
_REQUESTS: Final = "rubrica_http_requests_total"
_BUCKETS: Final = "rubrica_http_request_seconds_bucket"
_STATUS: Final = "rubrica_outside_status_requests_total"
_LAST: Final = "rubrica_tsa_last_{}_timestamp_seconds"


def gauge(name: str, labels: str, bad: float, good: float) -> tuple[Any, Any]:
    """A figure that is bad, and one that is good, all of the time."""
    return [one(name, labels, still(bad))], [one(name, labels, still(good))]


def counted(name: str, labels: str, bad: int, good: int) -> tuple[Any, Any]:
    """A counter that grows by so many a minute."""
    return (
        [one(name, labels, f"0+{bad}x{MINUTES}")],
        [one(name, labels, f"0+{good}x{MINUTES}")],
    )


def slow(seconds: str) -> list[dict[str, str]]:
    """Signing calls of which all take up to so long."""
    bounds = ["1", "5", "10", "+Inf"]
    first = bounds.index(seconds)
    route = 'route="/solicitudes/firmar"'
    return [
        one(
            _BUCKETS,
            f'{API},{route},le="{bound}"',
            f"0+{60 if place >= first else 0}x{MINUTES}",
        )
        for place, bound in enumerate(bounds)
    ]


def errors(failed: int) -> list[dict[str, str]]:
    """A hundred answers a minute, so many of them 5xx."""
    route = f'{API},route="/x",method="GET"'
    return [
        one(_REQUESTS, f'{route},status="5xx"', f"0+{failed}x{MINUTES}"),
        one(_REQUESTS, f'{route},status="2xx"', f"0+{100 - failed}x{MINUTES}"),
    ]


def signatures(failed: int) -> list[dict[str, str]]:
    """A hundred signatures a minute, of which so many fail."""
    name = "rubrica_signatures_total"
    return [
        one(name, f'{SIGNING},outcome="SIGNING_FAILED"', f"0+{failed}x{MINUTES}"),
        one(name, f'{SIGNING},outcome="signed"', f"0+{100 - failed}x{MINUTES}"),
    ]


def crl(made: float, ends: float) -> list[dict[str, str]]:
    """The CRL of a CA; times count from the beginning of the case."""
    ca = f'{CHORES},ca="issuing"'
    return [
        one(_CRL.format("this"), ca, still(made)),
        one(_CRL.format("next"), ca, still(ends)),
    ]


def answers(made: float, ends: float) -> list[dict[str, str]]:
    """The OCSP answer that ends first."""
    return [
        one(name, CHORES, still(at))
        for name, at in zip(_OCSP, (made, ends), strict=True)
    ]


def status(good: int) -> list[dict[str, str]]:
    """Questions to outside CAs: one a minute fails, and so many do not."""
    return [
        one(_STATUS, f'{CHORES},kind="ocsp",outcome="failed"', f"0+1x{MINUTES}"),
        one(_STATUS, f'{CHORES},kind="ocsp",outcome="good"', f"0+{good}x{MINUTES}"),
    ]


def tsa(failed: float, granted: float) -> list[dict[str, str]]:
    """When an authority last failed, and last did well."""
    name = f'{CHORES},tsa="outside"'
    return [
        one(_LAST.format("failure"), name, still(failed)),
        one(_LAST.format("success"), name, still(granted)),
    ]


def builds(*versions: str) -> list[dict[str, str]]:
    """Roles, each in a version."""
    return [
        one("rubrica_build_info", f'role="r{n}",number="1",version="{each}"', UP)
        for n, each in enumerate(versions)
    ]


_PIN = f'{SIGNING},token="firma",fault="pin"'
_FAULTS = f'{SIGNING},token="firma",fault="session"'
_POOL = f'{API},pool="sandbox",cause="late"'
CASES: Final[dict[str, tuple[Any, Any]]] = {
    "RubricaFiguresAway": (
        [{"series": f"up{_AT}}}", "values": DOWN}],
        [{"series": f"up{_AT}}}", "values": UP}],
    ),
    "RubricaRoleDown": (
        [one("rubrica_role_up", SIGNING, DOWN)],
        [one("rubrica_role_up", SIGNING, UP)],
    ),
    "RubricaRoleRestarts": (
        [one("rubrica_process_start_time_seconds", SIGNING, f"1+60x{MINUTES}")],
        [one("rubrica_process_start_time_seconds", SIGNING, f"1x60 9x{MINUTES}")],
    ),
    "RubricaFiguresRefused": gauge("rubrica_metrics_dropped_samples", API, 3, 0),
    "RubricaVersionsDiffer": (builds("0.1", "0.2"), builds("0.2", "0.2")),
    "RubricaEventLoopLags": gauge("rubrica_event_loop_lag_seconds", API, 2, 0.2),
    "RubricaDescriptorsRunOut": (
        [
            one("rubrica_process_open_fds", API, still(90)),
            one("rubrica_process_max_fds", API, still(100)),
        ],
        [
            one("rubrica_process_open_fds", API, still(70)),
            one("rubrica_process_max_fds", API, still(100)),
        ],
    ),
    "RubricaNoSigningWorker": gauge(
        "rubrica_signing_workers", f'{CHORES},hsm="ready"', 0, 1
    ),
    "RubricaQueueWaits": gauge(
        "rubrica_queue_oldest_seconds", f'{CHORES},queue="activations"', 90, 3
    ),
    "RubricaSignaturesFail": (signatures(20), signatures(5)),
    "RubricaSigningSlow": (slow("10"), slow("5")),
    "RubricaServerErrors": (errors(10), errors(2)),
    "RubricaRedisAway": gauge("rubrica_redis_connected", SIGNING, 0, 1),
    "RubricaHsmUnavailable": gauge("rubrica_hsm_ready", f'{SIGNING},token="pki"', 0, 1),
    "RubricaHsmPinRefused": gauge("rubrica_hsm_faults_total", _PIN, 1, 0),
    "RubricaHsmFaults": counted("rubrica_hsm_faults_total", _FAULTS, 1, 0),
    "RubricaTsaFails": (tsa(200, 100), tsa(100, 200)),
    "RubricaOutsideStatusFails": (status(0), status(1)),
    "RubricaCrlOld": (crl(0, 2 * HOUR), crl(0, DAY)),
    "RubricaOcspOld": (answers(0, 2 * HOUR), answers(0, DAY)),
    "RubricaCertificateEnds": gauge(_END, f'{CHORES},kind="tsa"', 20 * DAY, 90 * DAY),
    "RubricaSignersEnd": gauge(_END, f'{CHORES},kind="signer"', 2 * DAY, 20 * DAY),
    "RubricaLevelsBehind": gauge(
        "rubrica_documents_behind_oldest_seconds", f'{CHORES},level="B-T"', 4000, 60
    ),
    "RubricaDatabaseAway": gauge("rubrica_record_up", CHORES, 0, 1),
    "RubricaClockOff": gauge("rubrica_clock_offset_seconds", CHORES, 3, 0.1),
    "RubricaDiskFull": gauge("rubrica_documents_disk_free_bytes", CHORES, 1e9, 9e9),
    "RubricaBackupOld": gauge(
        "rubrica_backup_last_success_timestamp_seconds", CHORES, -2 * DAY, -DAY
    ),
    "RubricaAuditWrong": gauge("rubrica_audit_wrong", CHORES, 1, 0),
    "RubricaWebhooksFail": gauge("rubrica_webhook_endpoints_failing", CHORES, 1, 0),
    "RubricaMailFails": gauge("rubrica_mails_undelivered", CHORES, 1, 0),
    "RubricaSignersRevoked": gauge("rubrica_revoked_signers_waiting", CHORES, 1, 0),
    "RubricaSoftwareHsm": gauge("rubrica_hsm_software_in_production", SIGNING, 1, 0),
    "RubricaDocumentDamaged": gauge(
        "rubrica_document_damaged_timestamp_seconds", API, 60, -2 * DAY
    ),
    "RubricaPoolFull": counted("rubrica_pool_refused_total", _POOL, 3, 0),
    "RubricaSandboxCuts": counted(
        "rubrica_sandbox_jobs_total", 'role="sandbox",number="1",outcome="cut"', 5, 1
    ),
}
"""By alert: series that have it fire, and series that do not."""


BURST: Final = f"_x106 100x{MINUTES}"
"""A counter that is not there, and then has counted a hundred."""
FURTHER: Final[dict[str, tuple[str, Any, bool]]] = {
    "errors, the first of a process": (
        "RubricaServerErrors",
        [one(_REQUESTS, f'{API},route="/x",method="GET",status="5xx"', BURST)],
        True,
    ),
    "probes that are told no": (
        "RubricaServerErrors",
        [
            one(
                _REQUESTS,
                f'{API},route="/readyz",method="GET",status="5xx"',
                f"0+12x{MINUTES}",
            )
        ],
        False,
    ),
    "a batch that fails, the first of a process": (
        "RubricaSignaturesFail",
        [one("rubrica_signatures_total", f'{SIGNING},outcome="X"', BURST)],
        True,
    ),
    "one worker asked a TSA in vain long ago, another does well": (
        "RubricaTsaFails",
        [
            *tsa(100, 50),
            one(
                _LAST.format("success"),
                'role="signing",number="2",tsa="outside"',
                still(5000),
            ),
        ],
        False,
    ),
    "no backup was ever made": (
        "RubricaBackupOld",
        [one("rubrica_backup_last_success_timestamp_seconds", CHORES, still(-1.7e9))],
        True,
    ),
    "a webhook that was turned off since it failed": (
        "RubricaWebhooksFail",
        [
            one("rubrica_webhook_endpoints_failing", CHORES, still(0)),
            one("rubrica_webhook_endpoints_stopped", CHORES, still(1)),
        ],
        True,
    ),
    "an OCSP responder's certificate before it is made anew": (
        "RubricaCertificateEnds",
        [one(_END, f'{CHORES},kind="ocsp"', still(27 * DAY))],
        False,
    ),
    "an OCSP responder's certificate that was not made anew": (
        "RubricaCertificateEnds",
        [one(_END, f'{CHORES},kind="ocsp"', still(18 * DAY))],
        True,
    ),
}
"""What an alert got wrong once: its name, series, and whether it fires."""


_LIVE: Final = "faults/test_alerts_by_fault.py"
_RECORD: Final = "integration/operations/test_figures_of_the_record.py"
_ROLES: Final = "integration/operations/test_figures_of_roles.py"
_FILES: Final = "integration/operations/test_metrics_files.py"
SHOWN: Final[dict[str, dict[str, str]]] = {
    "RubricaFiguresAway": {_LIVE: "test_listener_that_goes"},
    "RubricaRoleDown": {
        _LIVE: "test_processes_that_are_not_well",
        _FILES: "test_dead_process_is_down_and_tells_nothing",
    },
    "RubricaRoleRestarts": {
        _LIVE: "test_role_that_dies_again_and_again",
        _ROLES: "test_process_that_starts_again_says_since_when",
    },
    "RubricaFiguresRefused": {
        _LIVE: "test_processes_that_are_not_well",
        _FILES: "test_garbage_is_said_and_breaks_nothing",
    },
    "RubricaVersionsDiffer": {
        _LIVE: "test_processes_that_are_not_well",
        _ROLES: "test_process_of_another_version_says_so",
    },
    "RubricaEventLoopLags": {
        _LIVE: "test_process_that_gets_on_slowly",
        _ROLES: "test_event_loop_that_is_held_up_says_how_late_it_was",
    },
    "RubricaDescriptorsRunOut": {
        _LIVE: "test_processes_that_are_not_well",
        _ROLES: "test_process_with_many_files_open_says_so",
    },
    "RubricaNoSigningWorker": {
        _LIVE: "test_workers_that_hang",
        _RECORD: "test_workers_lose_their_hsm_and_are_gone",
    },
    "RubricaQueueWaits": {
        _LIVE: "test_workers_that_hang",
        _RECORD: "test_what_waits_grows_old_until_it_is_taken_up",
    },
    "RubricaSignaturesFail": {
        _LIVE: "test_hsm_that_refuses_to_sign",
        _ROLES: "test_signatures_that_fail_are_counted_by_their_code",
    },
    "RubricaSigningSlow": {
        _LIVE: "test_workers_that_hang",
        _ROLES: "test_calls_are_counted_by_their_end_and_time",
    },
    "RubricaServerErrors": {
        _LIVE: "test_database_that_goes",
        _ROLES: "test_calls_are_counted_by_their_end_and_time",
    },
    "RubricaRedisAway": {_LIVE: "test_processes_that_are_not_well"},
    "RubricaHsmUnavailable": {
        _LIVE: "test_token_that_goes",
        _ROLES: "test_token_that_goes_is_not_ready_until_it_is_back",
    },
    "RubricaHsmPinRefused": {
        _LIVE: "test_pin_that_is_refused",
        _ROLES: "test_refused_pin_is_a_fault_of_that_token",
    },
    "RubricaHsmFaults": {
        _LIVE: "test_hsm_that_refuses_to_sign",
        _ROLES: "test_faults_of_calls_are_counted_by_kind",
    },
    "RubricaTsaFails": {
        _LIVE: "test_world_outside_that_fails_and_what_ends",
        _ROLES: "test_tsa_that_fails_and_answers_again",
    },
    "RubricaOutsideStatusFails": {
        _LIVE: "test_world_outside_that_fails_and_what_ends",
        _ROLES: "test_outside_ca_that_fails_and_answers_again",
    },
    "RubricaCrlOld": {
        _LIVE: "test_workers_that_hang",
        _RECORD: "test_crl_grows_old_and_is_made_anew",
    },
    "RubricaOcspOld": {
        _LIVE: "test_workers_that_hang",
        _RECORD: "test_ocsp_answer_grows_old_and_is_made_anew",
    },
    "RubricaCertificateEnds": {
        _LIVE: "test_world_outside_that_fails_and_what_ends",
        _RECORD: "test_certificate_of_each_kind_comes_to_its_end",
    },
    "RubricaSignersEnd": {
        _LIVE: "test_world_outside_that_fails_and_what_ends",
        _RECORD: "test_signers_certificate_comes_to_its_end",
    },
    "RubricaLevelsBehind": {
        _LIVE: "test_world_outside_that_fails_and_what_ends",
        _RECORD: "test_level_falls_behind_while_the_tsa_is_away",
    },
    "RubricaDatabaseAway": {
        _LIVE: "test_database_that_goes",
        _RECORD: "test_database_goes_away_and_comes_back",
    },
    "RubricaClockOff": {
        _LIVE: "test_world_outside_that_fails_and_what_ends",
        _RECORD: "test_clock_goes_wrong",
    },
    "RubricaDiskFull": {
        _LIVE: "test_disk_that_is_small",
        _RECORD: "test_documents_disk_fills",
    },
    "RubricaBackupOld": {_LIVE: "test_backups_that_fail_for_long"},
    "RubricaAuditWrong": {_LIVE: "test_record_that_the_audit_does_not_explain"},
    "RubricaWebhooksFail": {_LIVE: "test_what_reaches_nobody"},
    "RubricaMailFails": {_LIVE: "test_what_reaches_nobody"},
    "RubricaSignersRevoked": {_LIVE: "test_what_reaches_nobody"},
    "RubricaSoftwareHsm": {_LIVE: "test_hsm_of_production_that_is_software"},
    "RubricaDocumentDamaged": {_LIVE: "test_document_that_is_gone"},
    "RubricaPoolFull": {
        _LIVE: "test_sandbox_that_hangs_while_many_ask",
        _FILES: "test_pool_tells_how_it_stands",
    },
    "RubricaSandboxCuts": {
        _LIVE: "test_documents_that_take_too_long_to_draw",
        _ROLES: "test_jobs_of_the_sandbox_are_counted_by_their_end",
    },
}
"""By alert: the test that has it fire in a running installation by a real fault, and
the one in which the real event moves the very figure that its rule reads, if any."""


def names() -> list[str]:
    """The alerts of the file, in its order."""
    return re.findall(r"- alert: (\w+)", RULES.read_text("utf-8"))


def run(*arguments: str, folder: Path | None = None) -> None:
    """Run promtool, which must be content."""
    done = subprocess.run(
        ["promtool", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_are_rules() -> None:
    """As promtool reads them."""
    run("check", "rules", str(RULES))


def test_configuration_of_the_manual_is_one(tmp_path: Path) -> None:
    """As promtool reads it, rules included: those of the package."""
    (text,) = (
        block.text
        for block in fenced((_DOCS / "metrics.md").read_text("utf-8"))
        if block.language == "yaml"
    )
    installed = "/opt/rubrica/docs/samples/rubrica-alerts.yaml"
    assert text.count(installed) == 1
    (tmp_path / "prometheus.yml").write_text(text.replace(installed, str(RULES)))

    run("check", "config", str(tmp_path / "prometheus.yml"))


def test_every_alert_has_a_case() -> None:
    """And every case an alert."""
    assert sorted(names()) == sorted(CASES)


def test_every_alert_is_shown() -> None:
    """Each live, by a fault of its kind; a new one without fails."""
    assert [alert for alert in names() if _LIVE not in SHOWN.get(alert, {})] == []
    assert SHOWN.keys() == set(names())


@pytest.mark.parametrize("alert", SHOWN)
def test_alert_is_shown_where_the_table_says(alert: str) -> None:
    """That test waits for it to fire; or it is about that alert."""
    for file, test in SHOWN[alert].items():
        text = (_DOCS.parent / "tests" / file).read_text("utf-8")
        (found,) = [
            ast.get_source_segment(text, each) or ""
            for each in ast.parse(text).body
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
            and each.name == test
        ]
        fires = re.findall(r'(?:fires|until_firing)\(\s*"(\w+)"', found)
        is_live = file == _LIVE
        assert alert in fires or (not is_live and f"{alert}: " in found), test


def test_no_live_alert_stands_nowhere() -> None:
    """What is waited for there stands in the table."""
    text = (_DOCS.parent / "tests" / _LIVE).read_text("utf-8")
    fires = set(re.findall(r'(?:fires|until_firing)\(\s*"(\w+)"', text))
    assert fires == {alert for alert, where in SHOWN.items() if _LIVE in where}


def _evaluated(folder: Path, alert: str, series: object, *, fires: bool) -> None:
    """Have promtool evaluate an alert's rule over some series, and look for it.

    That rule alone: all of them, two hours long for each case, take twenty times as
    long, and no rule asks for another one's alert.
    """
    rule = (
        f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
        if fires
        else f'count(ALERTS{{alertname="{alert}"}}) or vector(0)'
    )
    (folder / "rule.yaml").write_text(_rule_alone(alert))
    case = {
        "rule_files": ["rule.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": [
                    {
                        "expr": f"clamp_max({rule}, 1)",
                        "eval_time": f"{MINUTES - 10}m",
                        "exp_samples": [{"labels": "{}", "value": int(fires)}],
                    }
                ],
            }
        ],
    }
    # JSON is YAML.
    (folder / "case.yaml").write_text(json.dumps(case))
    run("test", "rules", "case.yaml", folder=folder)


def _rule_alone(alert: str) -> str:
    """The file of the rules, without the other ones."""
    text = RULES.read_text("utf-8")
    rules = re.split(r"(?m)^(?=      - alert: )|^(?=  - name: )", text)
    (rule,) = (one for one in rules if one.startswith(f"      - alert: {alert}\n"))
    return f"groups:\n  - name: alone\n    rules:\n{rule}"


def test_no_rule_asks_for_the_alert_of_another() -> None:
    """Each can be evaluated by itself."""
    assert not re.search(r"\bALERTS\b|- record:", RULES.read_text("utf-8"))


@pytest.mark.parametrize("alert", CASES)
def test_alert_fires(tmp_path: Path, alert: str) -> None:
    """By a fault of its kind."""
    _evaluated(tmp_path, alert, CASES[alert][0], fires=True)


def test_alert_waits_as_long_as_its_page_says(tmp_path: Path) -> None:
    """As the file has it, to the minute: pending for so long, and not a minute less.

    A rule that is evaluated every minute is pending as often as its `for:` has minutes,
    and a fault that is over sooner has nobody called.
    """
    page = (_DOCS / "alerts.md").read_text("utf-8")
    said = re.findall(r"^### (\w+)\n\n\*\w+\*(?:, after (\w+))?\.", page, re.MULTILINE)
    minutes = {alert: _minutes(after) for alert, after in said}
    assert minutes.keys() == CASES.keys()
    tests = [
        {
            "name": alert,
            "interval": "1m",
            "input_series": CASES[alert][0],
            "promql_expr_test": [
                {
                    "expr": "sum(count_over_time(ALERTS{"
                    f'alertname="{alert}",alertstate="{state}"}}[3h])) or vector(0)',
                    "eval_time": f"{MINUTES - 1}m",
                    "exp_samples": [{"labels": "{}", "value": times}],
                }
                for state, times in (("pending", minutes[alert]),)
            ],
        }
        for alert in CASES
    ]
    case = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "case.yaml").write_text(json.dumps(case))
    run("test", "rules", "case.yaml", folder=tmp_path)


def _minutes(after: str) -> int:
    """What `for:` says; nothing is at once."""
    if not after:
        return 0
    return int(after[:-1]) * {"m": 1, "h": 60}[after[-1]]


@pytest.mark.parametrize("alert", CASES)
def test_alert_is_silent_else(tmp_path: Path, alert: str) -> None:
    """Not even waiting to fire."""
    _evaluated(tmp_path, alert, CASES[alert][1], fires=False)


@pytest.mark.parametrize("case", FURTHER)
def test_alert_is_right(tmp_path: Path, case: str) -> None:
    """Where it once was not."""
    alert, series, fires = FURTHER[case]
    _evaluated(tmp_path, alert, series, fires=fires)


def test_alerts_ask_for_figures_that_there_are() -> None:
    """Names and labels: what nobody measures would be silent for ever."""
    known = {each.name: each for each in (*FAMILIES.values(), *OF_FILES)}
    text = RULES.read_text("utf-8")
    asked = set(re.findall(r"\brubrica_[a-z_]+", text))
    for name in asked:
        plain = re.sub(r"_(total|bucket)$", "", name)
        assert name in known or plain in known, name
    for name, labels in re.findall(r"(rubrica_[a-z_]+)\{([^}]*)\}", text):
        family = known[re.sub(r"_(total|bucket)$", "", name)]
        given = set(re.findall(r"(\w+)(?:=~|!=|=)\"", labels))
        assert given <= {*family.labels, "role", "number"}, name


def test_every_alert_says_what_it_means_and_what_to_do() -> None:
    """By a summary, and a runbook line that leads to a heading of its own."""
    page = (_DOCS / "alerts.md").read_text("utf-8")
    headings = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    rules = RULES.read_text("utf-8").split("- alert: ")[1:]

    assert headings == names()
    for rule, part in zip(rules, page.split("### ")[1:], strict=True):
        name = rule.split("\n", 1)[0]
        assert f"runbook: docs/alerts.md#{name.lower()}\n" in rule
        assert re.search(r'summary: "[^"]+"', rule)
        assert "- Look at: " in part
        assert "- Do: " in part


def test_pages_of_alerts_lead_somewhere() -> None:
    """Each link to a page or a heading is there."""
    page = (_DOCS / "alerts.md").read_text("utf-8")
    links = re.findall(r"\]\(([a-z-]*\.md)?(?:#([a-z0-9-]+))?\)", page)
    assert links
    for name, anchor in links:
        text = (_DOCS / (name or "alerts.md")).read_text("utf-8")
        found = {
            re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        }
        assert not anchor or anchor in found, (name, anchor)

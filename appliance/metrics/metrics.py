"""What each process counts and measures of itself, for `/metrics`.

    metrics.SIGNATURES.labels("signed").inc()
    metrics.watch_pool("hashes", self._queue, FairQueue.state)

Every family stands here, with the labels that it has: the role that serves them takes
no other. A label's values are few and ours, or an operator's (a route, a step, an
error code, the name of a TSA); none is a person, a document or anything that an
integrator chose. Each process hands its own over through a file
(`appliance.metrics.metrics_file`), so counting costs a lock and an addition.

Source: Prometheus, "Metric and label naming".
"""

import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_T = TypeVar("_T")

REGISTRY: Final = CollectorRegistry()
"""What this process measured."""


@dataclass(frozen=True, slots=True)
class Family:
    """What belongs together under one name."""

    name: str
    """Without the `_total` of a counter."""
    kind: str
    """`counter`, `gauge` or `histogram`."""
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram's, without infinity."""
    roles: frozenset[str] = frozenset()
    """Who measures it; empty: everybody."""

    def is_of(self, role: str) -> bool:
        """Whether a role measures it."""
        return not self.roles or role in self.roles


_families: dict[str, Family] = {}
FAMILIES: Final[Mapping[str, Family]] = _families
"""By name: all that a process may hand over."""


def _family(
    name: str,
    kind: str,
    text: str,
    labels: tuple[str, ...],
    buckets: tuple[float, ...] = (),
    roles: tuple[str, ...] = (),
) -> str:
    _families[name] = Family(name, kind, text, labels, buckets, frozenset(roles))
    return name


def _counter(
    name: str, text: str, *labels: str, roles: tuple[str, ...] = ()
) -> Counter:
    _family(name, "counter", text, labels, roles=roles)
    return Counter(name, text, labels, registry=REGISTRY)


def _gauge(name: str, text: str, *labels: str, roles: tuple[str, ...] = ()) -> Gauge:
    _family(name, "gauge", text, labels, roles=roles)
    gauge = Gauge(name, text, labels, registry=REGISTRY)
    if not labels:
        # Nothing is told before it is known; what counts up and down begins at 0.
        gauge.set(math.nan)
    return gauge


def _histogram(
    name: str,
    text: str,
    *labels: str,
    buckets: tuple[float, ...],
    roles: tuple[str, ...] = (),
) -> Histogram:
    _family(name, "histogram", text, labels, buckets, roles)
    return Histogram(name, text, labels, registry=REGISTRY, buckets=buckets)


_FACES: Final = ("api", "embed", "admin", "metrics")
_WORKERS: Final = ("signing", "chores")
_SIGNING: Final = ("signing",)
_CHORES: Final = ("chores",)
_CALL_S: Final = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_STEP_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)

# -- HTTP ------------------------------------------------------------------------

HTTP_REQUESTS: Final = _counter(
    "rubrica_http_requests",
    "Requests answered; status is a class such as 2xx, or 499: the client left.",
    "route",
    "method",
    "status",
    roles=_FACES,
)
HTTP_SECONDS: Final = _histogram(
    "rubrica_http_request_seconds",
    "Time from a request's head to the end of its answer.",
    "route",
    buckets=_CALL_S,
    roles=_FACES,
)

# -- signing ---------------------------------------------------------------------

SIGNATURES: Final = _counter(
    "rubrica_signatures",
    "Documents signed and published (signed), or why one was not, by its code.",
    "outcome",
    roles=_WORKERS,
)
SIGNATURE_STEP_SECONDS: Final = _histogram(
    "rubrica_signature_step_seconds",
    "Time of each step of a signature.",
    "step",
    buckets=_STEP_S,
    roles=_WORKERS,
)
IN_HAND: Final = _gauge(
    "rubrica_worker_in_hand",
    "Activations and HSM tasks that a worker has in hand.",
    roles=_SIGNING,
)
TASKS: Final = _counter(
    "rubrica_hsm_tasks",
    "HSM tasks by how a try at them ended: done, postponed or an error's code.",
    "kind",
    "outcome",
    roles=_SIGNING,
)
BELL_CONNECTED: Final = _gauge(
    "rubrica_redis_connected",
    "Whether a signing worker hears Redis: 1, or 0 while it polls; none while it"
    " starts or ends.",
    roles=_SIGNING,
)

# -- the HSM ---------------------------------------------------------------------

HSM_READY: Final = _gauge(
    "rubrica_hsm_ready",
    "Whether keys of this token can be used now.",
    "token",
    roles=_SIGNING,
)
HSM_SESSIONS: Final = _gauge(
    "rubrica_hsm_sessions",
    "Sessions that a process has open, by token.",
    "token",
    roles=_SIGNING,
)
HSM_OPERATIONS: Final = _counter(
    "rubrica_hsm_operations",
    "Calls for the HSM, by how they ended.",
    "token",
    "outcome",
    roles=_SIGNING,
)
HSM_SECONDS: Final = _histogram(
    "rubrica_hsm_operation_seconds",
    "Time of a call for the HSM, waiting for its thread included.",
    "token",
    buckets=_STEP_S,
    roles=_SIGNING,
)
HSM_WAITING: Final = _gauge(
    "rubrica_hsm_calls_open",
    "Calls for the HSM that run or wait for its thread.",
    roles=_SIGNING,
)
HSM_FAULTS: Final = _counter(
    "rubrica_hsm_faults",
    "Faults of PKCS#11 calls, by kind.",
    "token",
    "fault",
    roles=_SIGNING,
)
HSM_LAST_FAULT: Final = _gauge(
    "rubrica_hsm_last_fault_timestamp_seconds",
    "When a call last had one.",
    "token",
    roles=_SIGNING,
)
HSM_SOFTWARE: Final = _gauge(
    "rubrica_hsm_software_in_production",
    "1 if this is PROD and the HSM profile is a software token's.",
    roles=_SIGNING,
)
HSM_WAITING.set(0)
IN_HAND.set(0)
BELL_CONNECTED.set(math.nan)

# -- timestamps and revocation ---------------------------------------------------

TSA_REQUESTS: Final = _counter(
    "rubrica_tsa_requests",
    "Questions to a TSA, by how they ended.",
    "tsa",
    "outcome",
    roles=_WORKERS,
)
TSA_SECONDS: Final = _histogram(
    "rubrica_tsa_request_seconds",
    "Time of a question to a TSA.",
    "tsa",
    buckets=_CALL_S,
    roles=_WORKERS,
)
TSA_LAST_GOOD: Final = _gauge(
    "rubrica_tsa_last_success_timestamp_seconds",
    "When a TSA last gave a good token.",
    "tsa",
    roles=_WORKERS,
)
TSA_LAST_BAD: Final = _gauge(
    "rubrica_tsa_last_failure_timestamp_seconds",
    "When a TSA last gave none.",
    "tsa",
    roles=_WORKERS,
)
STATUS_REQUESTS: Final = _counter(
    "rubrica_outside_status_requests",
    "Questions to outside CAs for OCSP answers and CRLs, by how they ended.",
    "kind",
    "outcome",
    roles=_CHORES,
)
STATUS_LAST_GOOD: Final = _gauge(
    "rubrica_outside_status_last_success_timestamp_seconds",
    "When an outside CA last gave a good answer or CRL.",
    "kind",
    roles=_CHORES,
)
STATUS_LAST_BAD: Final = _gauge(
    "rubrica_outside_status_last_failure_timestamp_seconds",
    "When one last gave none.",
    "kind",
    roles=_CHORES,
)

# -- webhooks --------------------------------------------------------------------

WEBHOOK_TRIES: Final = _counter(
    "rubrica_webhook_tries",
    "Tries to deliver a webhook's message, by how they ended.",
    "outcome",
    roles=_CHORES,
)
WEBHOOKS_PENDING: Final = _gauge(
    "rubrica_webhook_messages_pending",
    "Messages that are to be sent, or sent again.",
    roles=_CHORES,
)
WEBHOOKS_OLDEST: Final = _gauge(
    "rubrica_webhook_oldest_pending_seconds",
    "Age of the oldest of them.",
    roles=_CHORES,
)
WEBHOOKS_FAILING: Final = _gauge(
    "rubrica_webhook_endpoints_failing",
    "Endpoints at which the last try failed, and that are not disabled.",
    roles=_CHORES,
)
WEBHOOKS_STOPPED: Final = _gauge(
    "rubrica_webhook_endpoints_stopped",
    "Endpoints that were disabled because every try failed, or by their server.",
    roles=_CHORES,
)

# -- the sandbox -----------------------------------------------------------------

SANDBOX_JOBS: Final = _counter(
    "rubrica_sandbox_jobs",
    "Jobs by how they ended: answered, cut, died, or left by who asked.",
    "outcome",
    roles=("sandbox",),
)

# -- the record, as the chores look at it ----------------------------------------

RECORD_UP: Final = _gauge(
    "rubrica_record_up",
    "Whether the database answered when it was looked at last.",
    roles=_CHORES,
)
RECORD_SECONDS: Final = _gauge(
    "rubrica_record_look_seconds",
    "Time that the last look at the database took.",
    roles=_CHORES,
)
QUEUE_LENGTH: Final = _gauge(
    "rubrica_queue_length",
    "What nobody has in hand of activations, hsm_tasks and batches that are prepared; "
    "of outside (what needs the network) all that is not done, of mail what is due.",
    "queue",
    roles=_CHORES,
)
QUEUE_OLDEST: Final = _gauge(
    "rubrica_queue_oldest_seconds",
    "Age of the oldest of it; 0 of none.",
    "queue",
    roles=_CHORES,
)
MAILS_ENDED: Final = _gauge(
    "rubrica_mails_ended",
    "Mails of the last 90 days by how they ended: sent, refused, given_up, withdrawn, "
    "caught.",
    "state",
    roles=_CHORES,
)
MAILS_UNDELIVERED: Final = _gauge(
    "rubrica_mails_undelivered",
    "Mails that failed and are tried again, and those of the last day that were "
    "refused or given up.",
    roles=_CHORES,
)
REVOKED_WAITING: Final = _gauge(
    "rubrica_revoked_signers_waiting",
    "Signers without a certificate in use whose last one was revoked, and for whom a "
    "request waits.",
    roles=_CHORES,
)
SIGNING_WORKERS: Final = _gauge(
    "rubrica_signing_workers",
    "Signing workers of all hosts that are alive, by the state of their HSM.",
    "hsm",
    roles=_CHORES,
)
BEHIND: Final = _gauge(
    "rubrica_documents_behind",
    "Published documents that are below the level they were promised.",
    "level",
    roles=_CHORES,
)
BEHIND_OLDEST: Final = _gauge(
    "rubrica_documents_behind_oldest_seconds",
    "How long the longest of them has been due.",
    "level",
    roles=_CHORES,
)
CRL_THIS_UPDATE: Final = _gauge(
    "rubrica_crl_this_update_timestamp_seconds",
    "When a CRL of ours was made.",
    "ca",
    roles=_CHORES,
)
CRL_NEXT_UPDATE: Final = _gauge(
    "rubrica_crl_next_update_timestamp_seconds",
    "Until when it is good.",
    "ca",
    roles=_CHORES,
)
OCSP_THIS_UPDATE: Final = _gauge(
    "rubrica_ocsp_oldest_this_update_timestamp_seconds",
    "When the OCSP answer that ends first was made.",
    roles=_CHORES,
)
OCSP_NEXT_UPDATE: Final = _gauge(
    "rubrica_ocsp_first_next_update_timestamp_seconds",
    "When the first OCSP answer of a certificate in force ends.",
    roles=_CHORES,
)
NOT_AFTER: Final = _gauge(
    "rubrica_certificate_not_after_timestamp_seconds",
    "End of the certificate of each kind that ends first: ca (root or issuing), "
    "ocsp, tsa, anchor, signer.",
    "kind",
    roles=_CHORES,
)
SIGNERS_ENDING: Final = _gauge(
    "rubrica_signer_certificates_ending",
    "Signers' certificates in use that end within 30 days.",
    roles=_CHORES,
)
CLOCK_OFF: Final = _gauge(
    "rubrica_clock_offset_seconds",
    "How far this host's clock is off, by the database's or the kernel's word.",
    roles=_CHORES,
)
BACKUP_MADE: Final = _gauge(
    "rubrica_backup_last_success_timestamp_seconds",
    "When the last backup was made; 0 if none ever was, not told in a trial then.",
    roles=_CHORES,
)
AUDIT_WRONG: Final = _gauge(
    "rubrica_audit_wrong",
    "Broken chains and unexplained facts that the last check of the audit found; not "
    "told where none ever ran.",
    roles=_CHORES,
)
AUDIT_CHECKED: Final = _gauge(
    "rubrica_audit_last_check_timestamp_seconds",
    "When that check ended.",
    roles=_CHORES,
)
DISK_FREE: Final = _gauge(
    "rubrica_documents_disk_free_bytes",
    "Free room on the disk of the documents.",
    roles=_CHORES,
)

# -- every process ---------------------------------------------------------------

DOCUMENT_DAMAGED: Final = _gauge(
    "rubrica_document_damaged_timestamp_seconds",
    "When a stored file was last found missing or altered.",
)

LOOP_LAG: Final = _gauge(
    "rubrica_event_loop_lag_seconds", "How late the event loop last woke its writer."
)
POOL_REFUSED: Final = _counter(
    "rubrica_pool_refused",
    "Callers that found no place: full (too many waited), late (it took too long).",
    "pool",
    "cause",
)
POOL_LAST_REFUSED: Final = _gauge(
    "rubrica_pool_last_refused_timestamp_seconds",
    "When one last found no place.",
    "pool",
)
POOL_WAITS: Final = _counter(
    "rubrica_pool_waits", "Callers that had to wait for a place.", "pool"
)
POOL_WAIT_SECONDS: Final = _counter(
    "rubrica_pool_wait_seconds", "Time that they waited, in sum.", "pool"
)


def count_refused(pool: str, cause: str) -> None:
    """Count a caller that found no place.

    Args:
        pool: as in docs/limits.md.
        cause: `full` or `late`.
    """
    POOL_REFUSED.labels(pool, cause).inc()
    POOL_LAST_REFUSED.labels(pool).set_to_current_time()


def count_hsm_fault(token: str, fault: str) -> None:
    """Count a fault of a call for the HSM.

    Args:
        token: its role.
        fault: its kind.
    """
    HSM_FAULTS.labels(token, fault).inc()
    HSM_LAST_FAULT.labels(token).set_to_current_time()


def count_status(kind: str, *, good: bool) -> None:
    """Count a question to an outside CA.

    Args:
        kind: `ocsp` or `crl`.
        good: whether its answer can be used.
    """
    STATUS_REQUESTS.labels(kind, "good" if good else "failed").inc()
    (STATUS_LAST_GOOD if good else STATUS_LAST_BAD).labels(kind).set_to_current_time()


@dataclass(frozen=True, slots=True)
class PoolState:
    """How a pool stands: places, or bytes where its name ends so."""

    places: int
    held: int
    waiting: int = 0


_POOL_PLACES: Final = _family(
    "rubrica_pool_places", "gauge", "Places of a pool (docs/limits.md).", ("pool",)
)
_POOL_HELD: Final = _family(
    "rubrica_pool_held", "gauge", "Places of it that are held.", ("pool",)
)
_POOL_WAITING: Final = _family(
    "rubrica_pool_waiting", "gauge", "Callers that wait for one.", ("pool",)
)
_BUILD: Final = _family(
    "rubrica_build_info", "gauge", "1, with the version that runs.", ("version",)
)
_START: Final = _family(
    "rubrica_process_start_time_seconds", "gauge", "When the process began.", ()
)
_CPU: Final = _family(
    "rubrica_process_cpu_seconds", "counter", "Processor time that it used.", ()
)
_MEMORY: Final = _family(
    "rubrica_process_resident_bytes", "gauge", "Memory that it holds.", ()
)
_FILES: Final = _family(
    "rubrica_process_open_fds", "gauge", "Descriptors that it has open.", ()
)
_FILES_MOST: Final = _family(
    "rubrica_process_max_fds", "gauge", "Descriptors that it may open.", ()
)

_pools: "WeakKeyDictionary[Any, list[tuple[str, Callable[[Any], PoolState]]]]" = (
    WeakKeyDictionary()
)


def watch_pool(
    name: str, owner: _T, state: Callable[[_T], PoolState], *, refuses: bool = True
) -> None:
    """Show how a pool stands, for as long as it lives.

    Args:
        name: as in docs/limits.md; pools of one name are added up.
        owner: the pool; it is not kept alive.
        state: reads it; a function that does not hold the owner itself.
        refuses: whether it counts whom it turns away.
    """
    _pools.setdefault(owner, []).append((name, state))
    for cause in ("full", "late") if refuses else ():
        # Told from the start: an increase from nothing is none to Prometheus.
        POOL_REFUSED.labels(name, cause)


class _Pools(Collector):
    def collect(self) -> Iterator[Metric]:
        """Add up pools of one name."""
        sums: dict[str, tuple[int, int, int]] = {}
        for owner, watched in list(_pools.items()):
            for name, read in watched:
                state, so_far = read(owner), sums.get(name, (0, 0, 0))
                sums[name] = (
                    so_far[0] + state.places,
                    so_far[1] + state.held,
                    so_far[2] + state.waiting,
                )
        for place, name in enumerate((_POOL_PLACES, _POOL_HELD, _POOL_WAITING)):
            family = GaugeMetricFamily(name, FAMILIES[name].help, labels=("pool",))
            for pool, numbers in sorted(sums.items()):
                family.add_metric((pool,), numbers[place])
            yield family


class _Process(Collector):
    def __init__(self) -> None:
        self._pid = 0
        self._began = 0.0

    def collect(self) -> Iterator[Metric]:
        """Look at this process; of what cannot be seen nothing is told."""
        if self._pid != os.getpid():
            # A forked child is a process of its own.
            self._pid, self._began = os.getpid(), time.time()
        used = resource.getrusage(resource.RUSAGE_SELF)
        yield CounterMetricFamily(
            _CPU, FAMILIES[_CPU].help, value=used.ru_utime + used.ru_stime
        )
        build = GaugeMetricFamily(_BUILD, FAMILIES[_BUILD].help, labels=("version",))
        build.add_metric((_VERSION,), 1)
        yield build
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        values: dict[str, float] = {_START: self._began, _FILES_MOST: files}
        try:
            with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 (asked every few seconds)
                pages = int(statm.read().split()[1])
            values[_MEMORY] = pages * os.sysconf("SC_PAGE_SIZE")
            values[_FILES] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (the same)
        except OSError:
            pass
        for name, value in values.items():
            yield GaugeMetricFamily(name, FAMILIES[name].help, value=value)


_VERSION: Final = version("rubrica")
REGISTRY.register(_Pools())
REGISTRY.register(_Process())

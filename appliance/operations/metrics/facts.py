"""What figures mean: facts with their state, and the alert that tells what to do.

    found = facts(processes, here="sign-1", now=clock.now())

The console's *Salud* shows them by role and host. What rules tell from how a counter
rises, this tells from when it last rose: nothing is remembered, so a look costs the
same however long an installation has run.

Figures are the word of strangers (`appliance.operations.metrics.reading`): whatever
they say, there is a fact.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from appliance.operations.metrics.reading import FOLDER, Process
from appliance.operations.metrics.verdicts import GOOD, UNKNOWN, Verdict, alarm

LAG_S: Final = 1.0
DESCRIPTORS: Final = 0.8
CLOCK_OFF_S: Final = 2.0
DISK_BYTES: Final = 2_147_483_648
OUTSIDE: Final = timedelta(minutes=30)
"""So long no outside CA gave anything good."""
FAULTS: Final = timedelta(minutes=10)
REFUSALS: Final = timedelta(minutes=5)
DAMAGED: Final = timedelta(days=1)
"""A damaged file counts for so long after it was last met."""
_LAST_S: Final = 4_102_444_800.0
"""2100-01-01: a time after it is none that a process measured."""
_MOST: Final = 10**15
POOLS: Final = (
    "connections",
    "body_bytes",
    "database",
    "database_write",
    "database_turns",
    "database_write_turns",
    "signing_calls",
    "signing_passwords",
    "other_passwords",
    "tries",
    "sandbox",
    "sandbox_jobs",
    "pictures",
    "tsa",
)
"""In the order of docs/limits.md; of others, which a role may make up, nothing is
said, and the same goes for tokens and names below."""
TOKENS: Final = ("firma", "pki")
STATUSES: Final = ("ocsp", "crl")


@dataclass(frozen=True, slots=True)
class ProcessFact:
    """A process that handed figures over, now or once."""

    slot: str
    """`<role>/<host>/<number>`, as in its signs of life."""
    is_alive: bool
    version: str
    began: datetime | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody outside, or the own TSA, as a host's processes were answered."""

    name: str
    host: str
    """Empty: nobody asked yet."""
    last_good: datetime | None
    last_bad: datetime | None
    good: int
    """Since those processes began."""
    failed: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class TokenFact:
    """A token as one process uses it."""

    slot: str
    token: str
    sessions: int
    faults: int
    """Since that process began."""
    last_fault: datetime | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PoolUse:
    """How much of a pool one process uses."""

    slot: str
    held: int
    places: int


@dataclass(frozen=True, slots=True)
class PoolFact:
    """A pool of docs/limits.md, in all processes that have it."""

    name: str
    uses: tuple[PoolUse, ...]
    """The fullest first."""
    waiting: int
    refused: int
    """Since those processes began."""
    last_refused: datetime | None
    verdict: Verdict


_GROUNDS: Final = ("database", "redis", "disk", "clock")


@dataclass(frozen=True, slots=True)
class Ground:
    """Something that a host stands on."""

    kind: str
    """`database`, `redis`, `disk` or `clock`."""
    host: str
    value: float | None
    """Seconds of a look, share of workers, free bytes, or seconds off. None of Redis:
    no figure says it, but the process that made the report pinged it."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class DamagedFact:
    """A stored file that a process of a host found missing or altered."""

    host: str
    at: datetime
    """When the last one was found."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HostFact:
    """Another host that tells nothing, or not all."""

    address: str
    """Of its figures, as the settings have it."""
    detail: str
    """What was wrong, in a word."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the figures in reach tell."""

    processes: tuple[ProcessFact, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Roles whose folder may not be read."""
    unreached: tuple[HostFact, ...] = ()
    """Hosts that the settings name."""
    tsas: tuple[Asked, ...] = ()
    outside: tuple[Asked, ...] = ()
    tokens: tuple[TokenFact, ...] = ()
    pools: tuple[PoolFact, ...] = ()
    grounds: tuple[Ground, ...] = ()
    damaged: tuple["DamagedFact", ...] = ()
    """Hosts that found a stored file missing or altered."""
    is_hsm_weak: bool | None = None
    """True if a signing worker keeps keys of PROD in a software token; None: no worker
    tells."""

    @property
    def versions(self) -> tuple[str, ...]:
        """Those that run; more than one while an upgrade goes on, or did not end."""
        return tuple(sorted({each.version for each in self.processes if each.version}))


class _Figures:
    """What one living process handed over, by name."""

    def __init__(self, process: Process, here: str) -> None:
        self.host = _host(process, here)
        self.slot = f"{process.role}/{self.host}/{process.number}"
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for (name, labels), value in process.samples.items():
            self._samples.setdefault(name, []).append((dict(labels), value))

    def one(self, name: str) -> float | None:
        """A figure without labels; None where it is not told."""
        return next((value for _, value in self._samples.get(name, ())), None)

    def by(self, name: str, label: str, **only: str) -> dict[str, float]:
        """Figures by a label, summed up over the others."""
        found: dict[str, float] = defaultdict(float)
        for labels, value in self._samples.get(name, ()):
            if only.items() <= labels.items():
                found[labels[label]] += value
        return dict(found)


def facts(
    processes: Sequence[Process],
    here: str,
    now: datetime,
    tsas: Iterable[str] = (),
    unreached: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> Facts:
    """What the figures of some processes tell.

    Args:
        processes: as they were read.
        here: the host of a process that does not name its own.
        now: the present time.
        tsas: names of those that may be asked: each stands there, asked or not.
        unreached: addresses of hosts that told nothing, or not all: fault and cause
            as of `HostAnswer`.
    """
    told = [each for each in processes if each.number != FOLDER]
    alive = [_Figures(each, here) for each in told if each.is_alive]
    stamping = _Question("tsa", "rubrica_tsa", "granted")
    status = _Question("kind", "rubrica_outside_status", "good")
    return Facts(
        tuple(_process(each, here) for each in told),
        tuple(each.role for each in processes if each.number == FOLDER),
        tuple(_host_away(*each) for each in unreached.items()),
        tuple(_asked(alive, stamping, tsas, _of_tsa)),
        tuple(_asked(alive, status, STATUSES, lambda a, b: _of_status(a, b, now))),
        tuple(fact for each in alive for fact in _tokens(each, now)),
        tuple(_pools(alive, now)),
        tuple(_grounds(alive)),
        tuple(_damaged(alive, now)),
        _is_hsm_weak(alive),
    )


def with_redis(found: Facts, host: str, *, does_answer: bool | None) -> Facts:
    """Add what the reporting process itself heard from Redis.

    A Redis that does not answer is an alarm whatever the host's workers say: a busy
    worker notices it only once it is free. One that answers is added where no figure
    tells of it.

    Args:
        found: by the figures in reach.
        host: of the reporting process.
        does_answer: to a ping; None: the process may not connect to it.
    """
    is_own = [each.kind == "redis" and each.host == host for each in found.grounds]
    if does_answer is None or (does_answer and any(is_own)):
        return found
    verdict = GOOD if does_answer else alarm("RubricaRedisAway")
    others = (each for each, own in zip(found.grounds, is_own, strict=True) if not own)
    grounds = (*others, Ground("redis", host, None, verdict))
    by_host = sorted(grounds, key=lambda each: (each.host, _GROUNDS.index(each.kind)))
    return replace(found, grounds=tuple(by_host))


def _host(process: Process, here: str) -> str:
    """Its host; what would not stand in a slot is left out of it."""
    return process.host.replace("/", "") or here


def _instant(value: float | None) -> datetime | None:
    """A time of a figure; None of none, and of what no clock told."""
    if value is None or not 0 < value < _LAST_S:
        return None
    return datetime.fromtimestamp(value, UTC)


def _count(value: float) -> int:
    return int(min(max(value, 0.0), _MOST))


def _latest(values: Iterable[float]) -> datetime | None:
    return max(filter(None, map(_instant, values)), default=None)


# -- processes -------------------------------------------------------------------


def _process(process: Process, here: str) -> ProcessFact:
    figures = _Figures(process, here)
    versions = figures.by("rubrica_build_info", "version")
    return ProcessFact(
        figures.slot,
        process.is_alive,
        min(versions, default=""),
        _instant(figures.one("rubrica_process_start_time_seconds")),
        _of_process(process, figures),
    )


def _of_process(process: Process, figures: _Figures) -> Verdict:
    if process.fault:
        return alarm("RubricaFiguresRefused")
    if not process.is_alive:
        return alarm("RubricaRoleDown")
    if process.dropped:
        return alarm("RubricaFiguresRefused")
    if (figures.one("rubrica_event_loop_lag_seconds") or 0) > LAG_S:
        return alarm("RubricaEventLoopLags")
    most = figures.one("rubrica_process_max_fds") or 0
    if most and (figures.one("rubrica_process_open_fds") or 0) > DESCRIPTORS * most:
        return alarm("RubricaDescriptorsRunOut")
    return GOOD


def _host_away(address: str, why: tuple[str, str]) -> HostFact:
    fault, cause = why
    away = fault == "unreachable"
    alert = "RubricaFiguresAway" if away else "RubricaFiguresRefused"
    detail = cause if away else f"{fault}: {cause}" if cause else fault
    return HostFact(address, detail, alarm(alert))


# -- who is asked ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Question:
    """Names of the figures of a kind of question."""

    label: str
    family: str
    good: str
    """The outcome that is one."""

    def counted(self, those: Iterable[_Figures], name: str, outcome: str) -> int:
        """How often processes asked somebody with an outcome."""
        counter = f"{self.family}_requests_total"
        told = (each.by(counter, self.label, outcome=outcome) for each in those)
        return _count(sum(each.get(name, 0) for each in told))

    def last(self, those: Iterable[_Figures], name: str, end: str) -> datetime | None:
        """When one of them last came to an end of a kind."""
        gauge = f"{self.family}_last_{end}_timestamp_seconds"
        return _latest(each.by(gauge, self.label).get(name, 0) for each in those)


def _asked(
    alive: Sequence[_Figures],
    question: _Question,
    names: Iterable[str],
    verdict: Callable[[datetime | None, datetime | None], Verdict],
) -> Iterator[Asked]:
    """By name and host, together of all processes there; each name at least once."""
    counter = f"{question.family}_requests_total"
    for name in names:
        by_host: dict[str, list[_Figures]] = defaultdict(list)
        for each in alive:
            if name in each.by(counter, question.label):
                by_host[each.host].append(each)
        for host, those in sorted(by_host.items()) or [("", [])]:
            good = question.last(those, name, "success")
            bad = question.last(those, name, "failure")
            yield Asked(
                name,
                host,
                good,
                bad,
                question.counted(those, name, question.good),
                question.counted(those, name, "failed"),
                verdict(good, bad),
            )


def _of_tsa(good: datetime | None, bad: datetime | None) -> Verdict:
    if bad is not None and (good is None or bad > good):
        return alarm("RubricaTsaFails")
    return UNKNOWN if good is None else GOOD


def _of_status(good: datetime | None, bad: datetime | None, now: datetime) -> Verdict:
    """One CA that fails is not all of them: the last good answer is what counts.

    Nor is a failure that is long past: nobody asked since.
    """
    is_failing = bad is not None and now - bad <= OUTSIDE
    if is_failing and (good is None or now - good > OUTSIDE):
        return alarm("RubricaOutsideStatusFails")
    return UNKNOWN if good is None else GOOD


# -- the HSM ---------------------------------------------------------------------


def _tokens(figures: _Figures, now: datetime) -> Iterator[TokenFact]:
    faults = figures.by("rubrica_hsm_faults_total", "token")
    pins = figures.by("rubrica_hsm_faults_total", "token", fault="pin")
    sessions = figures.by("rubrica_hsm_sessions", "token")
    last = figures.by("rubrica_hsm_last_fault_timestamp_seconds", "token")
    told = figures.by("rubrica_hsm_ready", "token")
    for token, ready in ((each, told[each]) for each in TOKENS if each in told):
        last_fault = _instant(last.get(token))
        if not ready:
            pin = pins.get(token, 0) > 0
            verdict = alarm("RubricaHsmPinRefused" if pin else "RubricaHsmUnavailable")
        elif last_fault is not None and now - last_fault < FAULTS:
            verdict = alarm("RubricaHsmFaults")
        else:
            verdict = GOOD
        yield TokenFact(
            figures.slot,
            token,
            _count(sessions.get(token, 0)),
            _count(faults.get(token, 0)),
            last_fault,
            verdict,
        )


def _is_hsm_weak(alive: Sequence[_Figures]) -> bool | None:
    told = _values(alive, "rubrica_hsm_software_in_production")
    return any(told) if told else None


# -- pools -----------------------------------------------------------------------


def _pools(alive: Sequence[_Figures], now: datetime) -> Iterator[PoolFact]:
    having: dict[str, list[_Figures]] = defaultdict(list)
    for each in alive:
        for pool in each.by("rubrica_pool_places", "pool"):
            having[pool].append(each)
    yield from (_pool(pool, having[pool], now) for pool in POOLS if pool in having)


def _pool(pool: str, those: Sequence[_Figures], now: datetime) -> PoolFact:
    def told(name: str) -> list[float]:
        return [each.by(f"rubrica_pool_{name}", "pool").get(pool, 0) for each in those]

    last = _latest(told("last_refused_timestamp_seconds"))
    waiting = told("waiting")
    uses = [
        PoolUse(each.slot, _count(held), _count(places))
        for each, held, places in zip(those, told("held"), told("places"), strict=True)
    ]
    is_full = any(
        waits and use.held >= use.places
        for use, waits in zip(uses, waiting, strict=True)
    )
    recent = last is not None and now - last < REFUSALS
    return PoolFact(
        pool,
        tuple(sorted(uses, key=lambda use: (-_share(use), use.slot))),
        _count(sum(waiting)),
        _count(sum(told("refused_total"))),
        last,
        alarm("RubricaPoolFull") if recent or is_full else GOOD,
    )


def _share(use: PoolUse) -> float:
    return use.held / use.places if use.places else 0.0


# -- what a host stands on -------------------------------------------------------


def _grounds(alive: Sequence[_Figures]) -> Iterator[Ground]:
    """By host; of several processes there, the one that is worst off."""
    by_host: dict[str, list[_Figures]] = defaultdict(list)
    for each in alive:
        by_host[each.host].append(each)
    for host, those in sorted(by_host.items()):
        up = _values(those, "rubrica_record_up")
        if up:
            looks = _values(those, "rubrica_record_look_seconds")
            is_up = GOOD if min(up) else alarm("RubricaDatabaseAway")
            yield Ground("database", host, max(looks, default=None), is_up)
        heard = _values(those, "rubrica_redis_connected")
        if heard:
            redis = GOOD if min(heard) else alarm("RubricaRedisAway")
            yield Ground("redis", host, sum(map(bool, heard)) / len(heard), redis)
        if up:
            free = min(
                _values(those, "rubrica_documents_disk_free_bytes"), default=None
            )
            yield Ground(
                "disk", host, free, _below(free, DISK_BYTES, "RubricaDiskFull")
            )
            off = max(_values(those, "rubrica_clock_offset_seconds"), default=None)
            clock = _below(
                None if off is None else -off, -CLOCK_OFF_S, "RubricaClockOff"
            )
            yield Ground("clock", host, off, clock)


def _damaged(alive: Sequence[_Figures], now: datetime) -> Iterator[DamagedFact]:
    """By host, where one was found of late."""
    by_host: dict[str, list[float]] = defaultdict(list)
    for each in alive:
        found = each.one("rubrica_document_damaged_timestamp_seconds")
        by_host[each.host].append(found or 0)
    for host, found_at in sorted(by_host.items()):
        last = _latest(found_at)
        if last is not None and now - last < DAMAGED:
            yield DamagedFact(host, last, alarm("RubricaDocumentDamaged"))


def _values(those: Iterable[_Figures], name: str) -> list[float]:
    found = (each.one(name) for each in those)
    return [max(-_MOST, min(value, _MOST)) for value in found if value is not None]


def _below(value: float | None, bound: float, alert: str) -> Verdict:
    if value is None:
        return UNKNOWN
    return alarm(alert) if value < bound else GOOD

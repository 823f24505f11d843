"""How every process writes its log: one event a line, to standard error.

Values are what handlers and workers name, under names that are listed (`FIELDS`), and
the ids of what the line is about, bound once: `requestId` to all that a call does,
`activation`, `request` and `task` to all that a worker does, in the HSM's thread too;
a front's lines name the activation that it made. The root logger of libraries joins in
at warnings. arq's own log is off: it prints the arguments of jobs. Where standard
error is systemd's journal, each line begins with its priority.
"""

import io
import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from appliance.settings import LogSettings

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_PRIORITIES: Final = (
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
)
"""syslog(3)'s numbers, by the least level that has them; below, 7."""


_OF_EVERY_LINE: Final = ("event", "level", "timestamp", "role")
_FIRST: Final = ("timestamp", "level", "event", "role")
"""These begin a line of JSON, in this order."""
# By id or code, never by name. A `token` is an HSM's, by its label.
_WHOSE: Final = (
    *("requestId", "activation", "request", "requests", "task", "attempt"),
    *("message", "mail"),
    *("credential", "certificate", "crl", "tsa", "token", "host", "slot", "user"),
    *("id", "kind", "serial", "sha256", "code", "cause", "reason", "error", "layer"),
    *("status", "failure", "remedy", "statement", "what", "was", "right"),
)
_NUMBERS: Final = (
    *("ms", "count", "times", "days", "until", "since", "epoch", "documents", "open"),
    *("limit_s", "call_s", "rest_s", "lived_s", "released", "left_behind", "unused"),
    *("tries", "version", "known", "reached", "wanted", "off_s", "hsm", "record"),
)
_PLACES: Final = (
    *("name", "pid", "path", "folder", "filesystem", "channel", "chore", "address"),
    *("bucket", "endpoint"),
)
_TRACES: Final = ("trace", "exception", "exc_info", "stack", "stack_info")
# A request's event; see `appliance.web.request_log.FIELDS`.
_OF_REQUESTS: Final = (
    *("method", "route", "bytes", "integrator", "session", "person", "solicitudId"),
    *("proceso", "documentoId", "webhook", "entrega"),
    *("lote", "firmadas", "fallidas", "pageError", "pageReference"),
)
FIELDS: Final = frozenset(
    _OF_EVERY_LINE + _WHOSE + _NUMBERS + _PLACES + _TRACES + _OF_REQUESTS
)
"""All that a line may say. What is not listed is left out, and named in `unlisted`:
a field that nobody thought about may hold what no log should."""
_OWN: Final = frozenset({"_record", "_from_structlog", "unlisted"})


class _ForJournal(structlog.stdlib.ProcessorFormatter):
    """Begins each line with its priority, as the journal wants it.

    Of a text of several lines each one is an entry of its own.

    Source: sd-daemon(3).
    """

    def format(self, record: logging.LogRecord) -> str:
        """Give the lines of a record."""
        number = next((n for least, n in _PRIORITIES if record.levelno >= least), 7)
        lines = super().format(record).splitlines()
        return "\n".join(f"<{number}>{line}" for line in lines)


def is_journal(stream: TextIO) -> bool:
    """Whether what is written there goes to systemd's journal.

    Args:
        stream: of this process; one without a descriptor does not.

    Source: systemd.exec(5), `$JOURNAL_STREAM`.
    """
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def configure_logging(settings: LogSettings, role: str) -> None:
    """Set the log up for this process.

    Args:
        settings: format and least level.
        role: what this process is; stands on every line.
    """
    level = _LEVELS[settings.level]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _own_fields(role),
    ]
    last: Processor
    if settings.format == "json":
        # Never the local variables of a frame: passwords are among them.
        transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        shared.append(structlog.processors.ExceptionRenderer(transform))
        last = structlog.processors.JSONRenderer(ensure_ascii=False)
    else:
        last = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=_visible_traceback
        )
    shared.append(_visible)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    kind = (
        _ForJournal if is_journal(sys.stderr) else structlog.stdlib.ProcessorFormatter
    )
    handler.setFormatter(
        kind(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in (
        "hypercorn",
        "asyncio",
        "alembic",
        "pyhanko",
        "aiosqlite",
        "fontTools",
        "pikepdf",
    ):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # arq prints the arguments of jobs; ours are ids, and stay out all the same.
    logging.getLogger("arq").setLevel(logging.CRITICAL)


def _visible(
    _logger: Any, _name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Have a line show what it says, with the fields of every line first.

    What others wrote may hold characters that a terminal obeys, that turn the
    direction of what follows, or that end a line.
    """
    first = {name: event[name] for name in _FIRST if name in event}
    shown = {key: _shown(value) for key, value in {**first, **event}.items()}
    event.clear()
    event.update(shown)
    return event


def _visible_traceback(into: TextIO, fault: ExcInfo) -> None:
    """Write a traceback, indented: its last lines may be in somebody's words."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, fault)
    into.write("\n    ".join(map(_shown, text.getvalue().split("\n"))))


def _shown(value: Any) -> Any:
    match value:
        case str():
            return "".join(_escaped(char) for char in value)
        case dict():
            return {_shown(key): _shown(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_shown(item) for item in value]
    return value


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return char.encode("unicode_escape").decode()


def _own_fields(role: str) -> Processor:
    """Name the role on every line, and leave out fields that are not listed."""

    def process(
        _logger: Any, _name: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        event.setdefault("role", role)
        unlisted = sorted(event.keys() - FIELDS - _OWN)
        for name in unlisted:
            del event[name]
        if unlisted:
            event["unlisted"] = unlisted
        return event

    return process

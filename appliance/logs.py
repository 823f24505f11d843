"""How every process writes its log: one event a line, to standard error.

Values are what handlers and workers name; the root logger of libraries joins in
at warnings. arq's own log is off: it prints the arguments of jobs.
"""

import logging
import sys
from typing import Any

import structlog
from structlog.typing import Processor

from appliance.settings import LogSettings

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


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
        _with_role(role),
    ]
    last: Processor
    if settings.format == "json":
        # Never the local variables of a frame: passwords are among them.
        transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        shared.append(structlog.processors.ExceptionRenderer(transform))
        last = structlog.processors.JSONRenderer(ensure_ascii=False)
    else:
        last = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
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


def _with_role(role: str) -> Processor:
    def add(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
        event.setdefault("role", role)
        return event

    return add  # type: ignore[return-value]  # structlog types it as MutableMapping

"""What frameworks compile for each application, compiled once in a process of tests.

A role makes one application and keeps it; tests make thousands, and half of the time
of a small one went into the same hundred routes and the same statements again. What is
compiled is the libraries' own and stays so; only when, and how often, differs.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.sql.elements import ClauseElement
from werkzeug.routing import Rule

_compile_builder = Rule._compile_builder
_compile_statement = ClauseElement._compile_w_cache
_compiled: dict[Any, Any] = {}
_dialects: dict[tuple[object, ...], Dialect] = {}


def _builder_when_asked(
    rule: Rule,
    append_unknown: bool = True,  # noqa: FBT002 (as there)
) -> Callable[..., tuple[str, str]]:
    """In the place of werkzeug's: its function, compiled when an address is built."""
    made: list[Callable[..., tuple[str, str]]] = []

    def build(bound: Rule, *args: Any, **values: Any) -> tuple[str, str]:
        if not made:
            made.append(_compile_builder(rule, append_unknown))
        return made[0](bound, *args, **values)

    return build


def _compile_once(statement: ClauseElement, dialect: Dialect, **options: Any) -> Any:
    """In the place of SQLAlchemy's, which keeps what it compiled for each engine."""
    if options["compiled_cache"] is not None:
        of_kind = (type(dialect), dialect.server_version_info)
        # It is part of the key, and equal to itself alone.
        dialect = _dialects.setdefault(of_kind, dialect)
        options["compiled_cache"] = _compiled
    return _compile_statement(statement, dialect, **options)


def compile_routes_late() -> None:
    """Have an address be compiled when one is first built of it."""
    Rule._compile_builder = _builder_when_asked  # type: ignore[assignment, method-assign]  # as above


def share_compiling() -> None:
    """Have the applications of this process share it."""
    compile_routes_late()
    ClauseElement._compile_w_cache = _compile_once  # type: ignore[assignment, method-assign]  # as above

"""Write docs/settings.md from appliance/settings.

`python -m tests.tools.settings_doc` does it. The docstrings there are the
reference; type, range and default come from the model. With `--check` nothing is
written and a stale file is an error.
"""

import ast
import inspect
import sys
import typing
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from appliance.settings import Settings
from tests.tools.made_pages import make_page

TARGET: Final = Path(__file__).resolve().parents[2] / "docs/settings.md"

_INTRO: Final = """\
# Settings

<!-- Made by `python -m tests.tools.settings_doc` from appliance/settings. -->

One TOML file holds every setting; each command takes it as `rubrica --settings FILE`.
A key that is not listed here is refused, with the file, the key and what is allowed
in its place, before anything starts, and so is every value that is not allowed:
`rubrica --settings FILE check-config` tells of all of them at once.
Relative paths count from the folder of the file. Secrets are never values, only paths
of files.
"""
_HEAD: Final = "| Key | Type | Range | Default | Meaning |\n|---|---|---|---|---|\n"
_NAMES: Final[dict[object, str]] = {
    bool: "boolean",
    float: "number",
    int: "integer",
    str: "string",
    Path: "path",
}
_SIGNS: Final = {Ge: "≥", Gt: ">", Le: "≤", Lt: "<"}


def render() -> str:
    """Make the whole page."""
    top = [item for item in _fields(Settings) if _section(item[1]) is None]
    parts = [_INTRO, "## Top level\n", _table(top)]
    for name, meaning, model in _sections(Settings, ""):
        fields = [item for item in _fields(model) if _section(item[1]) is None]
        parts += [f"## `{name}`\n", f"{meaning}\n", _table(fields)]
    return "\n".join(parts)


def _sections(
    model: type[BaseModel], prefix: str
) -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Every table's heading, meaning and model; inner ones after outer."""
    for key, field in _fields(model):
        if (section := _section(field)) is not None:
            name = f"{prefix}{key}"
            yield (
                f"[[{name}]]" if _is_list(field) else f"[{name}]",
                _line(field.description or section.__doc__ or ""),
                section,
            )
            yield from _sections(section, f"{prefix}{key}.")


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """Every key with its meaning, which stands below it in the source."""
    meanings: dict[str, str] = {}
    for kind in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        meanings |= _meanings(kind)
    for key, field in model.model_fields.items():
        field.description = meanings.get(key)
    return list(model.model_fields.items())


@cache
def _meanings(model: type) -> dict[str, str]:
    """The docstrings below a class's attributes."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for line, below in pairwise(definition.body):
        match line, below:
            case (
                ast.AnnAssign(target=ast.Name(id=key)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[key] = inspect.cleandoc(text)
    return found


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a table or of a list of tables, or None for a plain key."""
    kind = field.annotation
    if _is_list(field):
        kind = get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return None


def _is_list(field: FieldInfo) -> bool:
    return get_origin(field.annotation) is tuple


def _table(fields: Sequence[tuple[str, FieldInfo]]) -> str:
    rows = (
        [
            f"`{key}`",
            _kind(field.annotation),
            _range(field),
            _default(field),
            _line(field.description or ""),
        ]
        for key, field in fields
    )
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _kind(annotation: object) -> str:
    """Name a type in the words of TOML."""
    members = [kind for kind in get_args(annotation) if kind is not NoneType]
    if get_origin(annotation) in {typing.Union, UnionType}:
        return " or ".join(map(_kind, members))
    if get_origin(annotation) is Literal:
        return "string"
    if get_origin(annotation) is tuple:
        return f"list of {_kind(members[0])}s"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return "string"
    return _NAMES[annotation]


def _range(field: FieldInfo) -> str:
    """What the values may be; a pattern is shown as it is checked."""
    annotation = field.annotation
    if get_origin(annotation) is tuple:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return ", ".join(f"`{value}`" for value in annotation)
    said = []
    for mark in field.metadata:
        for kind, sign in _SIGNS.items():
            if isinstance(mark, kind):
                bound = getattr(mark, kind.__name__.lower())
                said.append(f"{sign} {bound}")
        if pattern := getattr(mark, "pattern", None):
            said.append(f"`{pattern}`".replace("|", "\\|"))
    return ", ".join(said)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (tuple, int, float)):
        return f"`{list(value) if isinstance(value, tuple) else value}`"
    return f'`"{value}"`'


def _line(text: str) -> str:
    """A docstring on one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or say that it is stale (`make_page`)."""
    return make_page("settings_doc", TARGET, lambda _: render(), argv)


if __name__ == "__main__":
    sys.exit(main())

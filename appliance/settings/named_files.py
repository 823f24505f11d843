"""Files that the settings name: what each holds, and which roles read it.

    password_file: Annotated[Path | None, Holds(Content.PASSWORD, STORING)] = None

`rubrica check-config` looks at them as the roles that read them do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

PASSWORDS: Final = frozenset({"api", "embed"})
"""Roles that take signing passwords."""
FRONTS: Final = PASSWORDS | {"admin"}
SEALING: Final = FRONTS | {"chores"}
"""Roles that open what is sealed with the data key."""
SIGNING: Final = frozenset({"signing"})
CHORES: Final = frozenset({"chores"})
SERVING: Final = FRONTS | SIGNING | CHORES
"""Roles that the database knows."""
STORING: Final = SERVING | {"migrate"}


class Content(Enum):
    """What a named file holds."""

    KEY = auto()
    """A secret key in its versions."""
    PASSWORD = auto()
    """One line."""
    CERTIFICATES = auto()
    """Certificates of authorities (PEM)."""
    TEXT = auto()
    """Anything but nothing."""
    FONTS = auto()
    """A folder of fonts."""


@dataclass(frozen=True, slots=True)
class Holds:
    """Marks a setting that names a file."""

    content: Content
    roles: frozenset[str]
    """Who reads it."""
    usual: str = ""
    """Property of the settings that says where it is if the setting does not."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that the settings of an installation name."""

    key: str
    """As it stands in the settings: `mail.password_file`."""
    path: Path
    content: Content
    roles: frozenset[str]


def named_files(settings: BaseModel) -> Iterator[NamedFile]:
    """Every file that settings name, in the order of the settings.

    Args:
        settings: all of them.
    """
    yield from _of(settings, settings, "")


def _of(table: BaseModel, settings: BaseModel, under: str) -> Iterator[NamedFile]:
    for name, field in type(table).model_fields.items():
        key, value = f"{under}{name}", getattr(table, name)
        for holds in field.metadata:
            if isinstance(holds, Holds):
                path = value or (
                    getattr(settings, holds.usual) if holds.usual else None
                )
                if path is not None:
                    yield NamedFile(key, path, holds.content, holds.roles)
        if isinstance(value, BaseModel):
            yield from _of(value, settings, f"{key}.")
        elif isinstance(value, tuple):
            for number, each in enumerate(value):
                if isinstance(each, BaseModel):
                    yield from _of(each, settings, f"{key}.{number}.")


def absolute(
    table: Mapping[str, Any], model: type[BaseModel], folder: Path
) -> dict[str, Any]:
    """Make every relative path of a table count from a folder.

    Args:
        table: as TOML gives it, unchecked.
        model: what it is to be.
        folder: of the settings file.
    """
    return {
        key: _absolute(value, model.model_fields.get(key), folder)
        for key, value in table.items()
    }


def _absolute(value: object, field: FieldInfo | None, folder: Path) -> object:
    kinds = set() if field is None else set(_kinds(field.annotation))
    if isinstance(value, str):
        return str(folder / value) if Path in kinds else value
    inner = next(
        (
            kind
            for kind in kinds
            if isinstance(kind, type) and issubclass(kind, BaseModel)
        ),
        None,
    )
    if inner is None:
        return value
    if isinstance(value, dict):
        return absolute(value, inner, folder)
    if isinstance(value, list):
        return [
            absolute(each, inner, folder) if isinstance(each, dict) else each
            for each in value
        ]
    return value


def _kinds(annotation: Any) -> Iterator[Any]:
    """The classes that an annotation is made of."""
    yield annotation
    for each in get_args(annotation):
        yield from _kinds(each)

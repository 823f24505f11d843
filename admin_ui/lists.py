"""Filters of lists: in the address, shown as chips that can be taken off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from quart import request, url_for

from admin_ui.core import core
from appliance.domain.errors import ApplianceError, ErrorCode

_Word = TypeVar("_Word", bound=StrEnum)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on, and the address of the list without it."""

    label: str
    value: str
    href: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address of a list asks for."""

    endpoint: str
    given: dict[str, str]
    """Filters that are on, by name."""

    def text(self, name: str) -> str:
        """A filter's text; empty when it is off.

        Args:
            name: of the filter.
        """
        return self.given.get(name, "")

    def word(self, name: str, words: type[_Word]) -> _Word | None:
        """A filter whose values are a vocabulary; None when it is off.

        Args:
            name: of the filter.
            words: its values.

        Raises:
            ApplianceError: `QUERY_INVALID`.
        """
        if not self.text(name):
            return None
        try:
            return words(self.text(name))
        except ValueError as exc:
            raise ApplianceError(
                ErrorCode.QUERY_INVALID, params={"field": name}
            ) from exc

    def chips(
        self, named: Sequence[tuple[str, str, Callable[[str], str]]]
    ) -> list[Chip]:
        """The filters that are on.

        Args:
            named: name, label, and how a value is said.
        """
        return [
            Chip(label, say(self.given[name]), self._without(name))
            for name, label, say in named
            if name in self.given
        ]

    def _without(self, name: str) -> str:
        left: dict[str, Any] = {
            key: value for key, value in self.given.items() if key != name
        }
        return url_for(self.endpoint, **left)

    def after(self, cursor: str | None) -> str | None:
        """The address of the next page, with the same filters.

        Args:
            cursor: of the next page, or None at the end.
        """
        if cursor is None:
            return None
        given: dict[str, Any] = self.given
        return url_for(self.endpoint, **given, cursor=cursor)

    @property
    def first(self) -> str:
        """The address of the first page, with the same filters."""
        given: dict[str, Any] = self.given
        return url_for(self.endpoint, **given)


def asked(endpoint: str, *names: str) -> Asked:
    """Read the filters of a list from the present request's address.

    Args:
        endpoint: of the list.
        names: of its filters; others are not looked at.

    Raises:
        ApplianceError: `QUERY_INVALID`: one comes twice or is too long.
    """
    given = {}
    for name in (*names, "cursor"):
        values = request.args.getlist(name)
        if len(values) > 1 or any(
            len(value) > _LONGEST or not value.isprintable() for value in values
        ):
            raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": name})
        if name in names and values and values[0].strip():
            given[name] = values[0].strip()
    return Asked(endpoint, given)


async def integrator_code(asked: Asked) -> str:
    """The integrator of a filter, by its code; empty when it is off.

    Args:
        asked: of the list; the filter may be a name, or part of one.
    """
    text = asked.text("integrator")
    return await core().views.integrator_code(text) if text else ""


def cursor() -> str:
    """Where the page asked for begins; empty for the first."""
    return request.args.get("cursor", "")


def plain(value: str) -> str:
    """Say a filter's value as it is.

    Args:
        value: of the filter.
    """
    return value

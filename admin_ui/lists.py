"""Filters of lists: in the address, shown as chips that can be taken off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, TypeVar

from quart import Response, request, url_for

from admin_ui import times, words
from admin_ui.core import core
from admin_ui.render import Faults, page
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.record.pagination import read_number

_Word = TypeVar("_Word", bound=StrEnum)
_Read = TypeVar("_Read")
LONGEST: Final = 200
"""Characters of a filter."""
_TYPED: Final = frozenset(
    {
        *("q", "integrator", "request", "since", "until"),
        *("motivo", "lugar", "fontColor", "fontSize"),
    }
)
"""Filters that people type, and may get wrong; others come from our own links."""


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
    refused: dict[str, str] = field(default_factory=dict)
    """What was typed for filters that cannot be on, by name."""
    wrong: dict[str, str] = field(default_factory=dict)
    """What is wrong with each of those, in words."""
    about: dict[str, Any] = field(default_factory=dict)
    """What else the address names: whose list it is."""

    @property
    def faults(self) -> Faults:
        """What is wrong with the filters, for their form."""
        return Faults(self.wrong)

    def text(self, name: str) -> str:
        """A filter's text as it was typed; empty when it is off.

        Args:
            name: of the filter.
        """
        return self.given.get(name) or self.refused.get(name, "")

    def number(self, name: str) -> int | None:
        """A filter that is a number; None when it is off, or none.

        Args:
            name: of the filter.
        """
        told = words.say("Write a number, such as 1024.")
        return self._read(name, lambda: read_number(self.text(name)), told)

    def since(self, name: str) -> datetime | None:
        """The first instant of a filter that is a day; None when it is off, or none.

        Args:
            name: of the filter.
        """
        told = words.say(words.DAY)
        return self._read(name, lambda: times.read_since(self.text(name), name), told)

    def until(self, name: str) -> datetime | None:
        """The first instant after a filter's day; None when it is off, or none.

        Args:
            name: of the filter.
        """
        told = words.say(words.DAY)
        return self._read(name, lambda: times.read_until(self.text(name), name), told)

    def refuse_backwards(self, since: datetime | None, before: datetime | None) -> None:
        """Refuse filters `since` and `until`, at both fields, if no day is in both.

        Args:
            since: as `Asked.since` read it.
            before: as `Asked.until` read it.
        """
        if since is None or before is None or since < before:
            return
        told = words.say("The last day is before the first one.")
        for name in ("since", "until"):
            self.refuse(name, self.given.pop(name), told)

    def _read(
        self, name: str, read: Callable[[], _Read | None], told: str
    ) -> _Read | None:
        if name in self.wrong:
            return None
        try:
            return read()
        except ApplianceError as exc:
            if exc.code is not ErrorCode.QUERY_INVALID:
                raise
        self.refuse(name, self.given.pop(name), told)
        return None

    def refuse(self, name: str, typed: str, told: str) -> None:
        """Leave a filter off, and say why.

        Args:
            name: of the filter.
            typed: for it.
            told: what is wrong with that.
        """
        self.refused[name], self.wrong[name] = typed, told

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
        return url_for(self.endpoint, **self.about, **left)

    def after(self, cursor: str | None) -> str | None:
        """The address of the next page, with the same filters.

        Args:
            cursor: of the next page, or None at the end.
        """
        if cursor is None:
            return None
        given: dict[str, Any] = self.given
        return url_for(self.endpoint, **self.about, **given, cursor=cursor)

    @property
    def first(self) -> str:
        """The address of the first page, with the same filters."""
        given: dict[str, Any] = self.given
        return url_for(self.endpoint, **self.about, **given)


def asked(endpoint: str, *names: str) -> Asked:
    """Read the filters of a list from the present request's address.

    Args:
        endpoint: of the list.
        names: of its filters; others are not looked at.

    Raises:
        ApplianceError: `QUERY_INVALID`: one comes twice, or one that nobody types
            is too long.
    """
    found = Asked(endpoint, {}, about=dict(request.view_args or {}))
    for name in (*names, "cursor"):
        values = request.args.getlist(name)
        told = _wrong(values[0]) if values else ""
        if len(values) > 1 or (told and name not in _TYPED):
            raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": name})
        if told:
            found.refuse(name, values[0], told)
        elif name in names and values and values[0].strip():
            found.given[name] = values[0].strip()
    return found


def _wrong(text: str) -> str:
    """Why a text is no filter's; empty for one that may be."""
    if len(text) > LONGEST:
        return words.say("Write up to %(most)s characters.", most=LONGEST)
    if not text.isprintable():
        return words.say("Write it without line breaks, tabs or invisible characters.")
    return ""


async def show(
    template: str,
    asked: Asked,
    named: Sequence[tuple[str, str, Callable[[str], str]]],
    following: str | None,
    **context: Any,
) -> Response:
    """Show a list and the filters that are on, or what is wrong with them.

    Args:
        template: of the page.
        asked: of the list.
        named: its filters, as `Asked.chips` takes them.
        following: cursor of the next page, or None at the end.
        context: for the template.
    """
    status = HTTPStatus.UNPROCESSABLE_ENTITY if asked.wrong else HTTPStatus.OK
    return await page(
        template,
        status,
        asked=asked,
        faults=asked.faults,
        longest=LONGEST,
        chips=asked.chips(named),
        following=asked.after(following),
        paged=bool(cursor()),
        **context,
    )


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

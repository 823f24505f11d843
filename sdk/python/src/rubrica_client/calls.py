"""How the calls are described: once, for the client that waits and the one that awaits.

    class Requests(Resource[R]):
        @operation("GET", "/api/integration/requests/{procesoId}")
        def get(self, process: str) -> Call[Request]:
            return Call(process)

`client.requests.get("…")` gives a `Request` on a `RubricaClient`, and a coroutine of
one on an `AsyncRubricaClient`.
"""

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    IO,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    overload,
)
from urllib.parse import quote

T = TypeVar("T")
P = ParamSpec("P")

Source = bytes | Path | IO[bytes]
"""A document: its bytes, its file, or a file that is open and can be rewound."""


def pdf_name(document: Source) -> str | None:
    """What a document's own file is called, where that is a PDF's name.

    Args:
        document: whose.
    """
    if isinstance(document, Path) and document.suffix.lower() == ".pdf":
        return document.name
    return None


@dataclass(frozen=True, slots=True)
class Upload:
    """Documents that are sent by multipart, from their files in pieces."""

    parts: Mapping[str, Source] = field(repr=False)
    """By the names of their parts."""
    options: Mapping[str, Any] | None = None
    """What goes beside them, as JSON."""


class Call(Generic[T]):
    """One call, which answers with a `T`.

    Args:
        at: values of the places of its address, in order.
        query: parameters; those that are None are left out.
        body: JSON.
        upload: documents, in place of the body.
        idempotency_key: by which it can be repeated; None for a call that has none.
        save_to: where the answer is written to, in place of being read.
        member: of an answer that is an object: its list that is paged.
        passing: `estado` of the answer that will pass: the call is made again until
            it has.
        longest_s: longest wait for that, in seconds.
    """

    def __init__(
        self,
        *at: str,
        query: Mapping[str, str | int | None] | None = None,
        body: Mapping[str, Any] | None = None,
        upload: Upload | None = None,
        idempotency_key: str | None = None,
        save_to: Path | None = None,
        member: str | None = None,
        passing: str | None = None,
        longest_s: float = 0.0,
    ) -> None:
        self.at = at
        self.query = query or {}
        self.body = body
        self.upload = upload
        self.idempotency_key = idempotency_key
        self.save_to = save_to
        self.member = member
        self.passing = passing
        self.longest_s = longest_s


@dataclass(frozen=True, slots=True)
class Route:
    """Method and address, as docs/integration.md has them."""

    method: str
    path: str

    def filled(self, values: Sequence[str]) -> str:
        """The address with its places filled.

        Args:
            values: in order.
        """
        left = iter(values)
        parts = (
            quote(next(left), safe="") if part.startswith("{") else part
            for part in self.path.split("/")
        )
        return "/".join(parts)


class Runner(Protocol):
    """Makes calls."""

    def run(self, route: Route, call: Call[Any]) -> Any:
        """Make one."""

    def pages(self, route: Route, call: Call[Any]) -> Any:
        """Make one after the other, for as long as a page follows."""


class SyncRunner(Runner, Protocol):
    """Makes them while the caller waits."""

    def run(self, route: Route, call: Call[T]) -> T:
        """Make one."""

    def pages(self, route: Route, call: Call[T]) -> Iterator[T]:
        """The elements of every page."""


class AsyncRunner(Runner, Protocol):
    """Makes them while others work."""

    def run(self, route: Route, call: Call[T]) -> Coroutine[Any, Any, T]:
        """Make one."""

    def pages(self, route: Route, call: Call[T]) -> AsyncIterator[T]:
        """The elements of every page."""


R = TypeVar("R", bound=Runner)


def given(**fields: Any) -> dict[str, Any]:
    """Fields that were given a value."""
    return {name: value for name, value in fields.items() if value is not None}


class Resource(Generic[R]):
    """Calls that belong together.

    Args:
        runner: makes them.
    """

    def __init__(self, runner: R) -> None:
        self._runner = runner


class operation:  # noqa: N801 (a decorator)
    """Makes a method of what builds its call.

    Args:
        method: HTTP method.
        path: address, with its places in `{}`.
    """

    def __init__(self, method: str, path: str) -> None:
        self.route = Route(method, path)

    def __call__(
        self, build: Callable[Concatenate[Any, P], Call[T]]
    ) -> "_Operation[P, T]":
        """Describe the call by a function."""
        return _Operation(self.route, build)


class listing:  # noqa: N801 (a decorator)
    """As `operation`, of a list: the method iterates over all pages.

    Args:
        method: HTTP method.
        path: address, with its places in `{}`.
    """

    def __init__(self, method: str, path: str) -> None:
        self.route = Route(method, path)

    def __call__(
        self, build: Callable[Concatenate[Any, P], Call[T]]
    ) -> "_Listing[P, T]":
        """Describe the call by a function."""
        return _Listing(self.route, build)


class _Described(ABC, Generic[P, T]):
    """A route and what builds its call."""

    def __init__(
        self, route: Route, build: Callable[Concatenate[Any, P], Call[T]]
    ) -> None:
        self.route = route
        self.build = build
        # What `help` and editors show: name, text and arguments of what is called.
        functools.update_wrapper(self, build)
        self._signatures = {
            is_awaited: self._shown(is_awaited=is_awaited)
            for is_awaited in (False, True)
        }
        self.__signature__ = self._signatures[False]

    def __call__(
        self, resource: Resource[Any], *args: P.args, **kwargs: P.kwargs
    ) -> Any:
        """Call it on a resource, as a method of a class can be."""
        return self.__get__(resource, type(resource))(*args, **kwargs)

    @abstractmethod
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        """The method, as its client makes calls."""

    @abstractmethod
    def _answer(self, answer: Any, *, is_awaited: bool) -> Any:
        """What the method returns whose call answers with a type."""

    def _shown(self, *, is_awaited: bool) -> inspect.Signature:
        """The signature of the method, by what it is called with and returns."""
        built = inspect.signature(self.build)
        (answer,) = get_args(built.return_annotation)
        shown = self._answer(answer, is_awaited=is_awaited)
        return built.replace(return_annotation=shown)

    def _call(self, resource: Resource[Any], how: str) -> Callable[..., Any]:
        runner = resource._runner  # noqa: SLF001 (of this module)

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            made = self.build(resource, *args, **kwargs)
            return getattr(runner, how)(self.route, made)

        shown = self._signatures[inspect.iscoroutinefunction(runner.run)]
        _, *parameters = shown.parameters.values()
        functools.update_wrapper(call, self.build)
        call.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call


class _Operation(_Described[P, T]):
    """A method that makes one call."""

    @overload
    def __get__(self, resource: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, resource: Resource[SyncRunner], owner: type
    ) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncRunner], owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        """The method, as its client makes calls."""
        return self if resource is None else self._call(resource, "run")

    def _answer(self, answer: Any, *, is_awaited: bool) -> Any:
        return Awaitable[answer] if is_awaited else answer


class _Listing(_Described[P, T]):
    """A method that iterates."""

    @overload
    def __get__(self, resource: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, resource: Resource[SyncRunner], owner: type
    ) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncRunner], owner: type
    ) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        """The method, as its client makes calls."""
        return self if resource is None else self._call(resource, "pages")

    def _answer(self, answer: Any, *, is_awaited: bool) -> Any:
        return AsyncIterator[answer] if is_awaited else Iterator[answer]

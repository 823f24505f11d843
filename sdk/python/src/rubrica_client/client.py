"""The clients: one that waits, and one that awaits.

with RubricaClient("https://api.example.com", api_key) as client:
    made = client.requests.create(Path("contrato.pdf"), [{"cuil": "20-26756539-3"}])
    client.requests.document_to(made["procesoId"], Path("firmado.pdf"))
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import httpx

from rubrica_client.calls import AsyncRunner, Call, R, Route, SyncRunner
from rubrica_client.conversation import (
    Options,
    Outcome,
    Send,
    Wait,
    converse,
    converse_pages,
)
from rubrica_client.resources import (
    Batches,
    Documents,
    Installation,
    Requests,
    Sessions,
    Signers,
    Webhooks,
)
from rubrica_client.test_mode import Test

T = TypeVar("T")

_TIMEOUT_S: Final = 90.0
"""Of a call: the service settles what it is asked for within 60 s."""


class _Api(Generic[R]):
    """Everything that can be called."""

    _runner: R

    @property
    def requests(self) -> Requests[R]:
        """Requests to sign a document."""
        return Requests(self._runner)

    @property
    def batches(self) -> Batches[R]:
        """Many documents for one signer, by one call."""
        return Batches(self._runner)

    @property
    def documents(self) -> Documents[R]:
        """Documents that are uploaded once, and named later."""
        return Documents(self._runner)

    @property
    def sessions(self) -> Sessions[R]:
        """Sessions of the iframe."""
        return Sessions(self._runner)

    @property
    def signers(self) -> Signers[R]:
        """People who sign."""
        return Signers(self._runner)

    @property
    def webhooks(self) -> Webhooks[R]:
        """Addresses that are told of what happens."""
        return Webhooks(self._runner)

    @property
    def installation(self) -> Installation[R]:
        """What the integrator is given by the installation."""
        return Installation(self._runner)

    @property
    def test(self) -> Test[R]:
        """The test mode, which is there outside PROD alone."""
        return Test(self._runner)


def _options(
    web_url: str, api_key: str, language: str, attempts: int, longest_wait_s: float
) -> Options:
    return Options(web_url.rstrip("/"), api_key, language, attempts, longest_wait_s)


class RubricaClient(_Api[SyncRunner]):
    """A client whose calls return when they are answered; threads may share it.

    Args:
        web_url: `{web_url}` of the installation, without `/api`.
        api_key: of that environment.
        language: of the sentences of errors, `es` or `en`.
        attempts: of a call that may be repeated, the first one included.
        longest_wait_s: longest wait between them; where the service asks for more,
            the error is raised, with `retry_after_s`.
        http: an httpx client of yours, for a proxy or a private authority; it stays
            open when this one is closed.
    """

    def __init__(
        self,
        web_url: str,
        api_key: str,
        *,
        language: str = "es",
        attempts: int = 4,
        longest_wait_s: float = 60.0,
        http: httpx.Client | None = None,
    ) -> None:
        self._is_own = http is None
        self._http = http or httpx.Client(timeout=_TIMEOUT_S)
        options = _options(web_url, api_key, language, attempts, longest_wait_s)
        self._runner = _Waiting(self._http, options)

    def close(self) -> None:
        """Close its connections."""
        if self._is_own:
            self._http.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        self.close()


class AsyncRubricaClient(_Api[AsyncRunner]):
    """A client whose calls are awaited; lists are iterated by `async for`.

    Args:
        web_url: `{web_url}` of the installation, without `/api`.
        api_key: of that environment.
        language: of the sentences of errors, `es` or `en`.
        attempts: of a call that may be repeated, the first one included.
        longest_wait_s: longest wait between them; where the service asks for more,
            the error is raised, with `retry_after_s`.
        http: an httpx client of yours; it stays open when this one is closed.
    """

    def __init__(
        self,
        web_url: str,
        api_key: str,
        *,
        language: str = "es",
        attempts: int = 4,
        longest_wait_s: float = 60.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._is_own = http is None
        self._http = http or httpx.AsyncClient(timeout=_TIMEOUT_S)
        options = _options(web_url, api_key, language, attempts, longest_wait_s)
        self._runner = _Awaiting(self._http, options)

    async def aclose(self) -> None:
        """Close its connections."""
        if self._is_own:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        await self.aclose()


class _Waiting:
    """Does what conversations say, by an httpx client."""

    def __init__(self, http: httpx.Client, options: Options) -> None:
        self._http = http
        self._options = options

    def run(self, route: Route, call: Call[T]) -> T:
        """Make one call."""
        talk = converse(self._options, route, call)
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome = self._do(step)

    def pages(self, route: Route, call: Call[T]) -> Iterator[T]:
        """Make calls, one for each page."""
        talk = converse_pages(self._options, route, call)
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(step, list):
                yield from step
            else:
                outcome = self._do(step)

    def _do(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return None
        try:
            with self._http.stream(step.method, step.url, **step.request) as answer:
                if step.sink is None or not answer.is_success:
                    answer.read()
                else:
                    for piece in answer.iter_bytes():
                        step.sink.write(piece)
        except httpx.TransportError as exc:
            return exc
        return answer


class _Awaiting:
    """The same, by an asynchronous one."""

    def __init__(self, http: httpx.AsyncClient, options: Options) -> None:
        self._http = http
        self._options = options

    async def run(self, route: Route, call: Call[T]) -> T:
        """Make one call."""
        talk = converse(self._options, route, call)
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome = await self._do(step)

    async def pages(self, route: Route, call: Call[T]) -> AsyncIterator[T]:
        """Make calls, one for each page."""
        talk = converse_pages(self._options, route, call)
        outcome: Outcome = None
        while True:
            try:
                step = talk.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(step, list):
                for each in step:
                    yield each
            else:
                outcome = await self._do(step)

    async def _do(self, step: Send | Wait) -> Outcome:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return None
        asked: Any = self._http.stream(step.method, step.url, **step.request)
        try:
            async with asked as answer:
                if step.sink is None or not answer.is_success:
                    await answer.aread()
                else:
                    async for piece in answer.aiter_bytes():
                        step.sink.write(piece)
        except httpx.TransportError as exc:
            return exc
        outcome: httpx.Response = answer
        return outcome

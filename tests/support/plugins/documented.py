"""A pytest plugin that holds every answer of the API to the OpenAPI document.

Whatever a test asks of the API, by httpx or by Quart's test client, fails it where the
answer has a status, a media type, a header or a member that is not documented. A call
of an address of the API at another listener says so: `extensions={OTHER_FACE: True}`.
"""

import sys
from typing import Any

import pytest

OTHER_FACE = "other_face"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Watch the clients that the tests of this process have imported."""
    del session
    # Not earlier: most unit tests need neither.
    if "httpx" in sys.modules:
        _watch_httpx()
    if "quart.testing.client" in sys.modules:
        _watch_quart()


def _watch_httpx() -> None:
    import httpx  # noqa: PLC0415 (only where tests have it)

    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def checked(self: httpx.Client, request: httpx.Request, **more: Any) -> Any:
        response = send(self, request, **more)
        _check(request, response)
        return response

    async def checked_async(
        self: httpx.AsyncClient, request: httpx.Request, **more: Any
    ) -> Any:
        response = await send_async(self, request, **more)
        _check(request, response)
        return response

    httpx.Client.send = checked  # type: ignore[method-assign]
    httpx.AsyncClient.send = checked_async  # type: ignore[method-assign]


def _check(request: Any, response: Any) -> None:
    from tests.support.faces import documented_answers  # noqa: PLC0415 (as above)

    if OTHER_FACE in request.extensions:
        return
    documented_answers.check(
        request.method,
        request.url.path,
        response.status_code,
        response.headers,
        response.content if response.is_stream_consumed else None,
    )


def _watch_quart() -> None:
    from quart.testing.client import QuartClient  # noqa: PLC0415 (as above)

    from tests.support.faces import documented_answers  # noqa: PLC0415 (as above)

    make = QuartClient._make_request

    async def checked(
        self: QuartClient, path: str, method: str, *more: Any, **named: Any
    ) -> Any:
        response = await make(self, path, method, *more, **named)
        if self.app.import_name == "appliance.api":
            documented_answers.check(
                method,
                path.partition("?")[0],
                response.status_code,
                dict(response.headers),
                await response.get_data(as_text=False),
            )
        return response

    QuartClient._make_request = checked  # type: ignore[method-assign]

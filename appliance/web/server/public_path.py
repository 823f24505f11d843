"""The path of a face's public address, taken from what is asked for.

`{base_url}` may have a path (`https://firma.example/firma-api`). The web server before
us may keep it or strip it: both are understood, for no route of ours begins with it.
Links always carry it, for they are made of the address in the settings.

Source: decisions "base addresses".
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

Asgi: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


def paths_of(*urls: str) -> tuple[str, ...]:
    """The paths of addresses, longest first, without those that have none.

    Args:
        urls: without a final slash.
    """
    paths = {urlsplit(url).path for url in urls} - {""}
    return tuple(sorted(paths, key=len, reverse=True))


def without(path: str, prefixes: Iterable[str]) -> str:
    """What is asked for, as our routes have it.

    Args:
        path: of a call, decoded.
        prefixes: public paths, longest first.
    """
    for prefix in prefixes:
        if path == prefix:
            return "/"
        if path.startswith(f"{prefix}/"):
            return path[len(prefix) :]
    return path


class PublicPaths:
    """An ASGI application that is asked under its public paths, or without them.

    Args:
        app: what answers.
        prefixes: public paths, longest first.
    """

    def __init__(self, app: Asgi, prefixes: tuple[str, ...]) -> None:
        self._app = app
        self._prefixes = prefixes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a call."""
        if scope["type"] == "http":
            scope = {**scope, "path": without(scope["path"], self._prefixes)}
        await self._app(scope, receive, send)

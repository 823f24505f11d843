"""The public API as any client sees it, for `demo sign` and `sample`."""

import json
import urllib.error
import urllib.request
from typing import Any, Final

from appliance.settings import Settings

_CALL_S: Final = 60


def own_address(settings: Settings) -> str:
    """Where the API listens on this machine; its public address by a Unix socket.

    Args:
        settings: of the installation.
    """
    listen = settings.web.listen("api")
    if not listen or listen.startswith("unix:"):
        return settings.web.base_url
    return f"http://{listen}"


class ApiClient:
    """The public API as a client sees it.

    Args:
        base_url: where it is asked.
        public_url: what its own links begin with, where that is another address.
    """

    def __init__(self, base_url: str, public_url: str | None = None) -> None:
        self._base_url = base_url
        self._public_url = public_url or base_url
        self.bearer = ""

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return json.loads(self.fetch(self._base_url + path))

    def post(self, path: str, body: dict[str, object]) -> Any:
        """The JSON that a JSON body gets."""
        return json.loads(self.fetch(self._base_url + path, json.dumps(body).encode()))

    def fetch(self, url: str, body: bytes | None = None) -> bytes:
        """The bytes at an address; a refusal ends the program with its words."""
        headers = {"Authorization": f"Bearer {self.bearer}"} if self.bearer else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if url.startswith(self._public_url):
            url = self._base_url + url.removeprefix(self._public_url)
        request = urllib.request.Request(url, body, headers)  # noqa: S310 (our own address, from the settings)
        try:
            with urllib.request.urlopen(request, timeout=_CALL_S) as answer:  # noqa: S310 (same)
                content: bytes = answer.read()
        except urllib.error.HTTPError as exc:
            raise SystemExit(f"{exc.code} {exc.read().decode()}") from exc
        return content

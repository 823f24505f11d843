"""`rubrica webhooks listen`: an integrator's messages, to a machine nobody can reach.

It asks the API for what was made to be sent to one webhook, whatever came of that, and
posts it to an address of the developer's own. It keeps nothing: what was made before
it began is not told, and what its receiver does not take it posts again, so that a
message comes at least once.
"""

import argparse
import json
import os
import sys
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from appliance.cli.arguments import Subparsers
from appliance.cli.terminal import note, read_text, say
from appliance.domain.clock import Clock, SystemClock
from appliance.domain.integrators.webhooks import new_secret, signed_headers

if TYPE_CHECKING:
    import aiohttp

KEY_VARIABLE: Final = "RUBRICA_API_KEY"
_PATH: Final = "/api/integration/webhooks"
_EVERY_S: Final = 2
_LATE: Final = timedelta(minutes=5)
"""How much later than its time a message may be found: it is listed once its
transaction ends, and clocks differ."""
_PAGE: Final = 200
_TIMEOUT_S: Final = 30
_OURS: Final = 500
_REST_MOST_S: Final = 3600


class _TooOftenError(Exception):
    """The API was asked too often; how many seconds it wants to be left alone."""

    def __init__(self, rest_s: int) -> None:
        super().__init__(f"{rest_s} s")
        self.rest_s = rest_s


def register(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add `webhooks`.

    Args:
        commands: of the `rubrica` parser.
    """
    webhooks = commands.add_parser("webhooks", help="webhooks, for who develops")
    actions = webhooks.add_subparsers(dest="action", required=True)
    listen = actions.add_parser(
        "listen",
        help="post a webhook's messages to an address of this machine, until Ctrl+C",
    )
    listen.add_argument("webhook", help="its id")
    listen.add_argument("--forward", required=True, help="http://127.0.0.1:3000/hook")
    listen.add_argument("--web-url", required=True, help="web_url of the installation")
    listen.add_argument(
        "--key-file",
        type=Path,
        help=f"file with an API key of webhooks:read (default: ${KEY_VARIABLE})",
    )
    listen.add_argument(
        "--secret-file",
        type=Path,
        help="file with the secret to sign by (default: a new one, which is shown)",
    )
    listen.set_defaults(run=_listen)


def _listen(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415 (heavy)

    key = read_text(args.key_file) if args.key_file else os.environ.get(KEY_VARIABLE)
    if not key:
        sys.stderr.write(f"give an API key by --key-file or ${KEY_VARIABLE}\n")
        return 2
    secret = read_text(args.secret_file).strip() if args.secret_file else new_secret()
    if not args.secret_file:
        _tell(f"signed by, until this ends: {secret}")
    address = f"{args.web_url.rstrip('/')}{_PATH}/{args.webhook}/deliveries"
    try:
        asyncio.run(_run(address, key.strip(), args.forward, secret))
    except KeyboardInterrupt:
        return 0
    return 1


async def _run(address: str, key: str, forward: str, secret: str) -> None:
    """Listen until the API refuses."""
    import asyncio  # noqa: PLC0415 (heavy)

    import aiohttp  # noqa: PLC0415 (heavy)

    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        listener = Listener(http, address, key, SystemClock())
        while await listener.look(forward, secret):  # noqa: ASYNC110 (another machine)
            await asyncio.sleep(listener.rest_s)


class Listener:
    """Posts what is made from now on.

    Args:
        http: of the caller.
        address: of the webhook's deliveries.
        key: an API key of `webhooks:read`.
        clock: the time.
    """

    def __init__(
        self, http: "aiohttp.ClientSession", address: str, key: str, clock: Clock
    ) -> None:
        self._http = http
        self._address = address
        self._headers = {"X-Api-Key": key}
        self._clock = clock
        self._since: datetime | None = None
        self._known: set[str] = set()
        self.rest_s = _EVERY_S
        """How long to wait for the next look, in seconds."""

    async def look(self, forward: str, secret: str) -> bool:
        """Post what is new, oldest first; False where the API refuses.

        Args:
            forward: where to.
            secret: signs it.
        """
        import aiohttp  # noqa: PLC0415 (heavy)

        self.rest_s = _EVERY_S
        is_first = self._since is None
        since = self._since or self._clock.now() - _LATE
        try:
            found = await self._listed(since)
            if found is None:
                return False
            self._since = since
            if is_first:
                self._known.update(each["entregaId"] for each in found)
                _tell("listening")
            for each in reversed(found):
                if each["entregaId"] not in self._known:
                    await self._hand_on(each, forward, secret)
            self._go_on(found)
        except _TooOftenError as exc:
            self.rest_s = exc.rest_s
            note(f"asked too often: asked again in {exc.rest_s} s")
        except (aiohttp.ClientError, TimeoutError) as exc:
            note(f"not reached, and asked again: {exc}")
        return True

    def _go_on(self, found: list[dict[str, Any]]) -> None:
        """Ask no more for what all is known, and old enough."""
        if found and all(each["entregaId"] in self._known for each in found):
            newest = datetime.fromisoformat(found[0]["creada"])
            self._since = max(self._since or newest, newest - _LATE)

    async def _listed(self, since: datetime) -> list[dict[str, Any]] | None:
        """All that was made since then, newest first; None where it is refused."""
        found: list[dict[str, Any]] = []
        url: str | None = self._address
        query = {"desde": since.isoformat(), "limite": str(_PAGE)}
        while url:
            async with self._http.get(
                url, headers=self._headers, params=query
            ) as response:
                _check_rate(response)
                if response.status >= _OURS:
                    response.raise_for_status()
                if response.status != HTTPStatus.OK:
                    note(f"HTTP {response.status}: {(await response.text())[:500]}")
                    return None
                found += await response.json()
                link = response.links.get("next")
                url = str(link["url"]) if link else None
                query = {}
        return found

    async def _hand_on(self, listed: dict[str, Any], forward: str, secret: str) -> None:
        """Post one; it is known once its receiver took it."""
        ident = listed["entregaId"]
        async with self._http.get(
            f"{self._address}/{ident}", headers=self._headers
        ) as response:
            _check_rate(response)
            response.raise_for_status()
            told = (await response.json())["cuerpo"]
        body = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        headers = dict(signed_headers(ident, body, self._clock.now(), [secret]))
        headers["Content-Type"] = "application/json"
        async with self._http.post(
            forward, data=body, headers=headers, allow_redirects=False
        ) as response:
            _tell(f"{listed['tipo']} {ident}: HTTP {response.status}")
            if response.ok:
                self._known.add(ident)


def _check_rate(response: "aiohttp.ClientResponse") -> None:
    """Go no further where the API was asked too often.

    Raises:
        _TooOftenError: it was.
    """
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        asked = response.headers.get("Retry-After", "")
        seconds = int(asked[:9]) if asked.isascii() and asked.isdigit() else 0
        raise _TooOftenError(min(max(seconds, _EVERY_S), _REST_MOST_S))


def _tell(line: str) -> None:
    """Write a line that is read as it comes, through a pipe too."""
    say(line)
    sys.stdout.flush()

"""Figures of other hosts, asked of their `metrics` roles for this console.

    answers = await OtherHosts(settings.metrics.hosts).read()

A host that gives none is named, with the reason, and the others are told as ever.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp

from appliance.core.system.http_client import BadAnswerError, HttpClient, read_up_to
from appliance.operations.metrics.processes_json import PATH, processes_from
from appliance.operations.metrics.reading import BadFileError, Process

ANSWER_BYTES: Final = 8_388_608
"""Longest answer of a host, in bytes."""
TIMEOUT_S: Final = 2.0
"""Longest time for an answer: somebody waits for the page."""
REST_S: Final = 15.0
"""Time in which a host that gave no answer is not asked again, in seconds."""
_FAILURES: Final = (BadAnswerError, aiohttp.ClientError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What one host told, or why it told nothing."""

    address: str
    """As the settings have it."""
    processes: tuple[Process, ...] = ()
    fault: str = ""
    """One of `unreachable`, `too-large`, `malformed`, `format`, or nothing."""


class OtherHosts:
    """The other hosts of an installation.

    Args:
        addresses: of their `metrics` roles, `http://host:port`.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = tuple(addresses)
        self._silent: dict[str, tuple[float, HostAnswer]] = {}

    async def read(self) -> list[HostAnswer]:
        """What each of them tells now, in the order of the settings."""
        async with _FiguresClient() as client:
            asked = (self._of(client, each) for each in self._addresses)
            return await asyncio.gather(*asked)

    async def _of(self, client: "_FiguresClient", address: str) -> HostAnswer:
        until, answer = self._silent.get(address, (0.0, HostAnswer(address)))
        if time.monotonic() < until:
            return answer
        try:
            body = await client.get(address + PATH)
            read = await asyncio.to_thread(processes_from, body, address)
            return HostAnswer(address, tuple(read))
        except BadFileError as exc:
            answer = HostAnswer(address, fault=exc.fault)
        except _FAILURES:
            answer = HostAnswer(address, fault="unreachable")
        self._silent[address] = (time.monotonic() + REST_S, answer)
        return answer


class _FiguresClient(HttpClient):
    """Asks hosts for their figures."""

    async def get(self, url: str) -> bytes:
        """The body of a good answer.

        Raises:
            BadFileError: `too-large`.
            BadAnswerError: of another status.
            ClientError, OSError, ValueError: there is none.
        """
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with self._session().get(
            url, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != HTTPStatus.OK:
                msg = f"HTTP {response.status}"
                raise BadAnswerError(msg)
            try:
                return await read_up_to(response, ANSWER_BYTES)
            except BadAnswerError as exc:
                fault = "too-large"
                raise BadFileError(fault) from exc

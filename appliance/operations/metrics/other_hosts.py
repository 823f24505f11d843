"""Figures of other hosts, asked of their `metrics` roles for this console.

    answers = await OtherHosts(settings.metrics.hosts).read()

A host that gives none is named, with the reason, and the others are told as ever.
"""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

import aiohttp
import structlog

from appliance.operations.metrics.processes_json import PATH, processes_from
from appliance.operations.metrics.reading import FOLDER, BadFileError, Process
from appliance.system.http_client import BadAnswerError, HttpClient, read_up_to

ANSWER_BYTES: Final = 4_194_304
"""Longest answer of a host, in bytes."""
TIMEOUT_S: Final = 2.0
"""Longest time for an answer: somebody waits for the page."""
REST_S: Final = 15.0
"""Time in which a host that gave no answer is not asked again, in seconds."""
_RESTS: Final = 10
"""An answer that takes a processor long to read rests so many times as long."""
_FAILURES: Final = (BadAnswerError, aiohttp.ClientError, OSError, ValueError)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What one host told, or why it told nothing."""

    address: str
    """As the settings have it."""
    processes: tuple[Process, ...] = ()
    fault: str = ""
    """`unreachable`, `too-large`, `malformed`, `format`, `unreadable` (a role's folder,
    there), `named-twice` (another host has that name), or nothing."""
    cause: str = ""
    """Of `unreachable`: a status, or the error's name."""


class OtherHosts:
    """The other hosts of an installation.

    Args:
        addresses: of their `metrics` roles, `http://host:port`.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = tuple(addresses)
        self._kept: dict[str, tuple[float, HostAnswer]] = {}
        self._reading = asyncio.Lock()
        # Of its own: the threads that all others share may wait for documents' folder.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hosts")

    async def read(self) -> list[HostAnswer]:
        """What each of them tells now, in the order of the settings."""
        async with _FiguresClient() as client:
            asked = (self._of(client, each) for each in self._addresses)
            return await asyncio.gather(*asked)

    @staticmethod
    def each_host_once(
        answers: Sequence[HostAnswer], own: set[str]
    ) -> list[HostAnswer]:
        """Answers without those that speak for a host that was heard already.

        Args:
            answers: in the order of the settings.
            own: names of the hosts whose figures this console reads itself.
        """
        heard, found = set(own), list[HostAnswer]()
        for answer in answers:
            named = {each.host for each in answer.processes}
            if named & heard:
                twice = replace(answer, processes=(), fault="named-twice")
                found.append(replace(twice, cause=", ".join(sorted(named & heard))))
            else:
                found.append(answer)
                heard |= named
        return found

    async def _of(self, client: "_FiguresClient", address: str) -> HostAnswer:
        until, before = self._kept.get(address, (0.0, HostAnswer(address)))
        if time.monotonic() < until:
            return before
        rest_s = REST_S
        try:
            body = await client.get(address + PATH)
            # One after the other: each may take memory, and hold up this process.
            async with self._reading:
                answer, took_s = await asyncio.get_running_loop().run_in_executor(
                    self._thread, _understood, body, address
                )
            rest_s = took_s * _RESTS
        except BadFileError as exc:
            answer = HostAnswer(address, fault=exc.fault)
        except _FAILURES as exc:
            cause = str(exc) if isinstance(exc, BadAnswerError) else type(exc).__name__
            answer = HostAnswer(address, fault="unreachable", cause=cause)
        if answer.fault and answer.fault != before.fault:
            cause = answer.cause or answer.fault
            _log.warning("metrics.host_untold", address=address, cause=cause)
        self._kept[address] = (time.monotonic() + rest_s, answer)
        return answer


def _understood(body: bytes, address: str) -> tuple[HostAnswer, float]:
    """What a host told, and how long a processor took to read it, in seconds."""
    began = time.thread_time()
    processes = tuple(processes_from(body, address))
    unread = any(each.number == FOLDER for each in processes)
    told = HostAnswer(address, processes, "unreadable" if unread else "")
    return told, time.thread_time() - began


class _FiguresClient(HttpClient):
    """Asks hosts for their figures."""

    async def get(self, url: str) -> bytes:
        """The body of a good answer.

        Raises:
            BadFileError: `too-large`; `format`: an earlier version has no such page.
            BadAnswerError: of another status.
            ClientError, OSError, ValueError: there is none.
        """
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with self._session().get(
            url, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                fault = "format"
                raise BadFileError(fault)
            if response.status != HTTPStatus.OK:
                msg = f"HTTP {response.status}"
                raise BadAnswerError(msg)
            try:
                return await read_up_to(response, ANSWER_BYTES)
            except BadAnswerError as exc:
                fault = "too-large"
                raise BadFileError(fault) from exc

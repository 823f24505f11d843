"""Calls that come at planned times, whatever became of those before them.

A caller who waits for an answer before the next call hides what overload does: here a
call that is answered late is late by its plan, also where the sender was late.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import aiohttp

from bench.firmar import Numbers, summary

_MS: Final = 1000.0
_ANSWER_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class SignCall:
    """One request to be signed, and by whom.

    Args:
        request: its `solicitudId`.
        cuil: of its signer.
        password: signing password of its signer.
        bearer: access token of its signer.
    """

    request: int
    cuil: str
    password: str = field(repr=False)
    bearer: str = field(repr=False, default="")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one call.

    Args:
        at_s: when it was planned, in seconds since the first one.
        ms: from its planned start to the end of the answer.
        status: of HTTP; 0 where there was none.
        retry_after: whether the answer says when to come again.
        why: the code of a refusal, or the kind of a broken connection.
    """

    request: int
    at_s: float
    ms: float
    status: int
    retry_after: bool = False
    why: str = ""

    @property
    def is_signed(self) -> bool:
        """Whether the signed document was answered."""
        return self.status == HTTPStatus.OK

    @property
    def is_refused(self) -> bool:
        """Whether it was turned away, and told when to come again."""
        return self.retry_after and self.status in {
            HTTPStatus.SERVICE_UNAVAILABLE,
            HTTPStatus.TOO_MANY_REQUESTS,
        }

    @property
    def is_error(self) -> bool:
        """Whether it is neither."""
        return not self.is_signed and not self.is_refused


class Callers:
    """Signs over HTTP, on as many warm connections as it takes.

    Args:
        base_url: of the API.
    """

    def __init__(self, base_url: str) -> None:
        self._url = f"{base_url}/solicitudes/firmar"

    def at_rate(self, calls: Sequence[SignCall], per_s: float) -> list[Answer]:
        """Begin so many calls a second, evenly, and wait for all answers.

        Args:
            calls: in this order.
            per_s: of them.
        """
        return asyncio.run(self._at_rate(calls, per_s))

    def at_a_time(self, calls: Sequence[SignCall], callers: int) -> list[Answer]:
        """Sign them all, each caller one after the other.

        Args:
            calls: of which each is made once.
            callers: how many there are.
        """
        return asyncio.run(self._at_a_time(calls, callers))

    async def _at_rate(self, calls: Sequence[SignCall], per_s: float) -> list[Answer]:
        async with self._session() as session:
            begun = time.perf_counter()
            tasks = []
            for number, call in enumerate(calls):
                planned = begun + number / per_s
                # One that is late sends at once: its lateness counts.
                await asyncio.sleep(max(0.0, planned - time.perf_counter()))
                one = self._call(session, call, planned, number / per_s)
                tasks.append(asyncio.create_task(one))
            return list(await asyncio.gather(*tasks))

    async def _at_a_time(self, calls: Sequence[SignCall], callers: int) -> list[Answer]:
        answers: list[Answer] = []
        left: Iterator[SignCall] = iter(calls)
        async with self._session() as session:
            begun = time.perf_counter()

            async def caller() -> None:
                for call in left:
                    now = time.perf_counter()
                    answers.append(await self._call(session, call, now, now - begun))

            await asyncio.gather(*(caller() for _ in range(callers)))
        return answers

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=_ANSWER_S),
        )

    async def _call(
        self,
        session: aiohttp.ClientSession,
        call: SignCall,
        planned: float,
        at_s: float,
    ) -> Answer:
        # With a stamp in sight, as people sign.
        body = {
            "solicitudId": call.request,
            "password": call.password,
            "page": 1,
            "x": 60,
            "y": 60,
        }
        headers = {"Authorization": f"Bearer {call.bearer}"}
        status, retry_after, why = 0, False, ""
        try:
            async with session.post(self._url, json=body, headers=headers) as answer:
                told = await answer.json()
                status, retry_after = answer.status, "Retry-After" in answer.headers
                why = str(told.get("code", ""))
        except (aiohttp.ClientError, TimeoutError) as exc:
            why = type(exc).__name__
        ms = (time.perf_counter() - planned) * _MS
        return Answer(call.request, at_s, ms, status, retry_after, why)


def told(answers: Sequence[Answer], seconds: float) -> dict[str, object]:
    """What became of some calls, those refused apart.

    Args:
        answers: to them, one at least.
        seconds: in which they were planned.
    """
    signed = [each.ms for each in answers if each.is_signed]
    refused = [each.ms for each in answers if each.is_refused]
    errors = [each for each in answers if each.is_error]
    found: dict[str, object] = {
        "calls": len(answers),
        "calls_per_s": round(len(answers) / seconds, 2),
        "signed": len(signed),
        "signed_per_s": round(len(signed) / seconds, 2),
        "refused": len(refused),
        "errors": len(errors),
    }
    times: dict[str, Numbers] = {}
    if signed:
        times["signed_ms"] = summary(signed)
    if refused:
        times["refused_ms"] = summary(refused)
    if errors:
        found["first_errors"] = [f"{e.status} {e.why}" for e in errors[:5]]
    return found | times


def well_again_s(
    answers: Sequence[Answer], good: Callable[[Sequence[Answer]], bool], window_s: float
) -> float | None:
    """After how many seconds all windows of time are good; None if never.

    Args:
        answers: to calls at a steady rate.
        good: whether the answers of one window are as they should be.
        window_s: its length.
    """
    last = max(each.at_s for each in answers)
    well: float | None = 0.0
    for number in range(int(last / window_s)):
        begin = number * window_s
        window = [a for a in answers if begin <= a.at_s < begin + window_s]
        if not good(window):
            well = None
        elif well is None:
            well = begin
    return well

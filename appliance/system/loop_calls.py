"""Questions that a thread has for the event loop which it works for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from appliance.domain.errors import ApplianceError, ErrorCode

_Answer = TypeVar("_Answer")
_PATIENCE_S: Final = 30.0


def asked_of_loop(
    question: Callable[[], Awaitable[_Answer]],
) -> Callable[[], _Answer]:
    """The same question, to be asked by a thread while it holds something.

    Args:
        question: of the present event loop.

    Returns:
        What blocks for the answer. It raises `STORE_UNAVAILABLE` after half a minute,
        or once the loop is closed.
    """
    loop = asyncio.get_running_loop()

    async def ask() -> _Answer:
        return await question()

    def asked() -> _Answer:
        asking = ask()
        try:
            answer = asyncio.run_coroutine_threadsafe(asking, loop)
        except RuntimeError as exc:
            asking.close()
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        try:
            return answer.result(_PATIENCE_S)
        except TimeoutError as exc:
            answer.cancel()
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc

    return asked

"""What is left of a caller's rates, in the headers of each answer.

Source: draft-ietf-httpapi-ratelimit-headers-10.
"""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from quart import Response, after_this_request, g, request
from werkzeug.wrappers import Response as WerkzeugResponse

from appliance.admission.call_rates import RateLimitedError, RateState
from appliance.api.core import core
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId
from appliance.web import body

AnyResponse: TypeAlias = Response | WerkzeugResponse
_STATES: Final = "rate_states"


async def demand_bytes(whose: IntegratorId) -> None:
    """Refuse a body that says it has more than its integrator may send.

    One that is larger than any may be is left to its reader, who says so.

    Raises:
        RateLimitedError: it is too much.
    """
    declared = request.content_length or 1
    if declared <= body.multipart_limit():
        await count(core().quotas.demand_bytes(whose, declared))


async def count_bytes(whose: IntegratorId, *, is_repeated: bool = False) -> None:
    """Count the body that was read.

    Args:
        whose: the integrator that sent it.
        is_repeated: it makes nothing new, and is never too much.

    Raises:
        RateLimitedError: it is too much; it did not say how long it is.
    """
    quotas, sent = core().quotas, body.taken()
    await count(
        quotas.repeated_bytes(whose, sent)
        if is_repeated
        else quotas.sent_bytes(whose, sent)
    )


async def count(taking: Awaitable[RateState]) -> None:
    """Take something, and have the present answer tell what is left.

    Args:
        taking: of `BackendQuotas` or `SignerQuotas`.

    Raises:
        RateLimitedError: there is no room for it.
    """
    try:
        state = await taking
    except RateLimitedError as refusal:
        _tell(refusal.state)
        raise
    _tell(state)


@asynccontextmanager
async def signing_command(person: PersonId) -> AsyncIterator[None]:
    """Count a signing command, unless the service is too busy to begin with it.

    Args:
        person: who signs.

    Raises:
        RateLimitedError: there were too many.
        ApplianceError: of the block.
    """
    await count(core().signer_quotas.command(person))
    try:
        yield
    except ApplianceError as refusal:
        if refusal.code is ErrorCode.OVERLOADED:
            await count(core().signer_quotas.not_begun(person))
        raise


def _tell(state: RateState) -> None:
    if _STATES not in g:
        g.rate_states = {}
        after_this_request(_write)
    g.rate_states[state.policy.name] = state


def _write(response: AnyResponse) -> AnyResponse:
    states: dict[str, RateState] = g.rate_states
    response.headers["RateLimit-Policy"] = ", ".join(
        f'"{name}";q={state.policy.most};w={state.policy.window_s}'
        for name, state in states.items()
    )
    response.headers["RateLimit"] = ", ".join(
        f'"{name}";r={state.remaining};t={state.reset_s}'
        for name, state in states.items()
    )
    return response

"""Whose backend asks: the API key of the present call, and what it may do.

Never for a browser: these routes answer no CORS, and a call that shows marks of one
is refused and its key flagged, as is a key that came in the address.
"""

from typing import Final

from quart import request

from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.api import rate_headers
from appliance.api.core import core
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import LOOKS_LIKE_ONE, ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.web import body, request_log
from appliance.web.server.client_address import full_address

_KEY_NAMES: Final = frozenset({"apikey", "xapikey", "key"})


async def caller(scope: ApiKeyScope | None) -> IntegratorCaller:
    """Who asks, if their key may be used for this.

    The views that call it are marked public, because they have this credential and
    no signer's bearer.

    Args:
        scope: what the route is for; None: for any key that may do something.

    Raises:
        ApplianceError: `API_KEY_MISSING`, `API_KEY_INVALID`, `API_KEY_ENVIRONMENT`,
            `API_KEY_IN_URL`, `API_KEY_IN_BROWSER`, `API_KEY_ADDRESS`,
            `INTEGRATOR_DISABLED`, `API_KEY_SCOPE`, `RATE_LIMITED`.
    """
    await refuse_key_in_url()
    row = await core().api_keys.demand(
        presented_key(), scope, full_address(), from_browser=is_browser()
    )
    asking = IntegratorCaller(row.integrator, row.key.id)
    WORK_OWNER.set(WorkOwner(row.integrator.id, asking.actor))
    # A body counts as the integrator's from here on, not as a stranger's.
    body.hold_as({f"integrator {row.integrator.id}": body.GROUP_PART})
    request_log.note(integrator=row.integrator.code)
    await rate_headers.count(core().quotas.call(asking.key))
    return asking


def presented_key() -> str:
    """The key of the header X-Api-Key, or of Authorization as a bearer; or empty."""
    api_key = request.headers.get("X-Api-Key", "")
    if api_key:
        return api_key
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else ""


async def refuse_key_in_url() -> None:
    """Refuse a key that came where proxies and logs keep it.

    Raises:
        ApplianceError: `API_KEY_IN_URL`.
    """
    items = [(name, value) for name, value in request.args.items(multi=True)]
    if any(_named_so(name) or LOOKS_LIKE_ONE.search(value) for name, value in items):
        await core().api_keys.flag_in_url([value for _, value in items])
        raise ApplianceError(ErrorCode.API_KEY_IN_URL)


def _named_so(name: str) -> bool:
    return name.lower().replace("-", "").replace("_", "") in _KEY_NAMES


def is_browser() -> bool:
    """Both marks: servers send one or the other, pages always both."""
    return "Origin" in request.headers and "Sec-Fetch-Site" in request.headers

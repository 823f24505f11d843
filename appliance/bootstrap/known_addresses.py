"""Addresses that a face knows while it serves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.admission.known_addresses import KnownAddresses
from appliance.bootstrap.core import Core
from appliance.domain.ports import LookupIndex


@asynccontextmanager
async def known_addresses(
    core: Core, lookup: LookupIndex
) -> AsyncIterator[KnownAddresses]:
    """Follow what the record knows of addresses, for the time of the block.

    Args:
        core: of the process.
        lookup: indexes addresses.
    """
    days = core.settings.auth.known_address_days
    known = KnownAddresses(core.store, lookup, core.clock, days)
    async with known.followed():
        yield known

"""What replaces secret keys stands on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.bootstrap.core import data_sealer, open_core
from appliance.domain.clock import Clock
from appliance.services.secret_rotation import SecretRotation
from appliance.settings import Settings
from appliance.storage.key_files import KeyFile
from appliance.storage.secretbox import LookupKey


@asynccontextmanager
async def open_secret_rotation(
    settings: Settings, clock: Clock
) -> AsyncIterator[SecretRotation]:
    """Build what replaces secret keys, and close it.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    sealer = data_sealer(settings)
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    async with open_core(settings, clock, "operator", sealer) as core:
        yield SecretRotation(core.store, sealer, lookup, clock)

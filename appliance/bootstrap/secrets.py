"""What replaces secret keys stands on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.bootstrap.core import data_sealer, document_sealer, open_core
from appliance.domain.clock import Clock
from appliance.domain.vocab import SecretName
from appliance.operations.secret_rotation import SecretRotation
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import Settings


@asynccontextmanager
async def open_secret_rotation(
    settings: Settings, clock: Clock
) -> AsyncIterator[SecretRotation]:
    """Build what replaces secret keys, and close it.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    sealers = {
        SecretName.DATA: data_sealer(settings),
        SecretName.DOCUMENT: document_sealer(settings),
    }
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    async with open_core(settings, clock, "operator") as core:
        yield SecretRotation(core.store, sealers, lookup, clock)

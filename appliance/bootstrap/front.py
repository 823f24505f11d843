"""What a face, or the command line, stands on: the services of every feature."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from appliance.bootstrap.core import (
    Core,
    OpensCore,
    data_sealer,
    document_sealer,
    open_core,
)
from appliance.bootstrap.services.embedding import (
    EmbeddingServices,
    embedding_services,
)
from appliance.bootstrap.services.foundation import lay_foundation
from appliance.bootstrap.services.identity import IdentityServices, identity_services
from appliance.bootstrap.services.integration import (
    IntegrationServices,
    integration_services,
)
from appliance.bootstrap.services.keys import KeyServices, key_services
from appliance.bootstrap.services.pki import PkiServices, pki_services
from appliance.bootstrap.services.signing import SigningServices, signing_services
from appliance.domain.clock import Clock
from appliance.domain.ports import LookupIndex, Sealer
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import LookupKey
from appliance.settings import Settings


@dataclass(frozen=True)
class ServiceRegistry(
    KeyServices,
    PkiServices,
    SigningServices,
    IdentityServices,
    IntegrationServices,
    EmbeddingServices,
):
    """What a face, or the command line, stands on.

    A service is a field of its feature's class, and made by the function beside it.
    """

    settings: Settings
    clock: Clock
    core: Core
    sealer: Sealer
    lookup: LookupIndex


@asynccontextmanager
async def open_front(
    settings: Settings, clock: Clock, role: str, opens: OpensCore = open_core
) -> AsyncIterator[ServiceRegistry]:
    """Build what a face stands on, and close it after what it began is done.

    Args:
        settings: of the installation.
        clock: the time.
        role: what this process is, for the audit.
        opens: the core below, where another than this machine's is to be there.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    sealer = data_sealer(settings)
    lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
    peppers = KeyFile(settings.secrets.pepper_file)
    async with opens(settings, clock, role, document_sealer(settings)) as core:
        on = lay_foundation(core, role, sealer, lookup, peppers)
        keys = key_services(on)
        pki = pki_services(on, keys)
        signing = signing_services(on, pki)
        identity = identity_services(on, pki)
        integration = integration_services(on, keys, pki, identity, signing)
        embedding = embedding_services(on, signing)
        features = (keys, pki, signing, identity, integration, embedding)
        services = {
            name: service
            for feature in features
            for name, service in vars(feature).items()
        }
        front = ServiceRegistry(
            settings=settings,
            clock=clock,
            core=core,
            sealer=sealer,
            lookup=lookup,
            **services,
        )
        listening = asyncio.create_task(core.completion_notifier.run())
        try:
            yield front
        finally:
            await front.signing_calls.close()
            await on.shielded.close()
            await on.rates.close()
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening

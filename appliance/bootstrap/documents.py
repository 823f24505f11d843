"""What operators' work on the store of documents stands on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from appliance.bootstrap.core import document_sealer, open_core
from appliance.documents.document_keys import IntegratorDocumentKeys
from appliance.documents.retention import Retention
from appliance.domain.clock import Clock
from appliance.settings import Settings


@asynccontextmanager
async def open_documents(settings: Settings, clock: Clock) -> AsyncIterator[Retention]:
    """Build what encrypts and shreds documents, and close it.

    Args:
        settings: of the installation.
        clock: the time.

    Raises:
        SettingsError: a secret file cannot be used.
    """
    sealer = document_sealer(settings)
    async with open_core(settings, clock, "operator", sealer) as core:
        keys = IntegratorDocumentKeys(core.store, sealer, clock)
        yield Retention(core.store, core.documents, keys, clock)

"""A host's activation keys: made in time, published, opened with, and let go.

Any signing worker of the host does it; the first one that finds an epoch
without a key makes it, and each makes sure that it stands published.

Source: design §4 "Activation keys".
"""

import asyncio
import hashlib
from datetime import timedelta
from typing import Final

import structlog

from appliance.domain.activation import (
    EPOCHS_KEPT,
    ActivationKey,
    Seal,
    epoch_at,
    epoch_start,
    key_statement,
)
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.keys.activation_keys import PublishedKeys
from appliance.keys.key_encryption import open_seal
from worker.hsm.session import HsmSession
from worker.signing.activation_key_files import ActivationFolder

_log = structlog.get_logger(__name__)
_AHEAD: Final = timedelta(seconds=60)
"""How long before an epoch its key is published, so that none begins without."""


class ActivationKeys:
    """The keys that fronts seal to on this host.

    Args:
        folder: of the private halves.
        published: of the public ones.
        session: signs that they are this host's.
        clock: the time.
        host: whose they are.
        installation: the setting of that name.
    """

    def __init__(
        self,
        folder: ActivationFolder,
        published: PublishedKeys,
        session: HsmSession,
        clock: Clock,
        host: str,
        installation: str,
    ) -> None:
        self._folder = folder
        self._published = published
        self._session = session
        self._clock = clock
        self._host = host
        self._installation = installation
        self._offered: set[int] = set()
        self._swept = 0

    async def keep(self) -> None:
        """Have the keys that are due, and none that are over.

        Raises:
            HsmUnavailableError: the HSM cannot sign for a new key now.
            ApplianceError: `STORE_UNAVAILABLE`: the record, or the folder.
        """
        now = self._clock.now()
        present = epoch_at(now)
        wanted = {present}
        if epoch_start(present + 1) - now <= _AHEAD:
            wanted.add(present + 1)
        for epoch in sorted(wanted):
            if epoch not in self._offered or not self._folder.has(epoch):
                await self._offer(epoch)
        self._offered &= wanted
        if self._swept != present:
            await asyncio.to_thread(self._folder.sweep, present - EPOCHS_KEPT + 1)
            await self._published.forget_before(present)
            self._swept = present

    async def _offer(self, epoch: int) -> None:
        """Make sure that the key of an epoch is there and published."""
        public = await asyncio.to_thread(self._folder.make, epoch)
        if not await self._published.has(self._host, epoch, public):
            statement = key_statement(self._installation, self._host, epoch, public)
            identity, signature = await self._session.identity_statement(statement)
            key = ActivationKey(
                host=self._host,
                epoch=epoch,
                public=public,
                identity=hashlib.sha256(identity).hexdigest(),
                signature=signature,
                made=self._clock.now(),
            )
            await self._published.publish(key)
            _log.info("activation.key_published", host=self._host, epoch=epoch)
        self._offered.add(epoch)

    def unlock(self, seal: Seal | None, info: bytes) -> bytes:
        """Open a seal: the unlock key, 32 bytes.

        Args:
            seal: what was sealed to this host, if anything was.
            info: what it is bound to, by what stands recorded.

        Raises:
            ActivationInvalidError: it does not open: something was altered.
            ApplianceError: `ACTIVATION_EXPIRED`: its private half is gone, with
                its epoch or with a reboot.
        """
        private = None if seal is None else self._folder.private(seal.epoch)
        if seal is None or private is None:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        return open_seal(private, seal.sealed, info)

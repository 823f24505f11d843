"""A published document whose upkeep needs a TSA and a CA outside.

async with outside_scene(core, fonts) as scene:
request = await scene.publish(L.B_LTA)
await scene.kept(request)
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import select, update

from appliance.database.tables import outside_material
from appliance.domain.ids import RequestId
from appliance.domain.pki.outside_material import MaterialState
from appliance.domain.requests.levels import Upkeep
from appliance.domain.vocab import SignatureLevel
from appliance.settings import RevocationSettings, SigningSettings, TimestampSettings
from appliance.signing.level_maintenance import UpkeepWork
from appliance.signing.outside_material import MaterialDesk
from tests.integration.signing.level_scene import (
    L,
    P,
    Scene,
    a_moment_ago,
    make_scene,
    profile,
)
from tests.support.installation.record import CoreFixture
from tests.support.pki.outside_ca import OutsideCa
from tests.support.services.fake_ca import FakeCa
from tests.support.services.fake_tsa import ExternalTsa, FakeTsa
from worker.leased_worker import hold
from worker.network.guarded_http import GuardedHttp
from worker.network.material_fetcher import MaterialFetcher, OutsideServers
from worker.network.recorded_status import RecordedStatus
from worker.network.revocation_status import ExternalStatus
from worker.network.tsa_client import TsaClient
from worker.network.tsa_failover import OutsideAuthorities
from worker.pades.appearance.fonts import StampFonts
from worker.signing.level_extension import ExtensionResult
from worker.signing.level_maintenance import LevelUpkeep
from worker.signing.outside_material import MaterialReader

NAME: Final = "afuera"


@dataclass
class Rung:
    """What workers were notified of."""

    works: list[str] = field(default_factory=list)

    async def notify(self, work: str) -> None:
        """See `WorkNotifier`."""
        self.works.append(work)


@dataclass
class OutsideScene:
    """A signing worker's upkeep, and a chores worker that fetches for it."""

    inside: Scene
    tsa: FakeTsa
    site: FakeCa
    reader: MaterialReader
    fetcher: MaterialFetcher
    rung: Rung
    roots: list[bytes]

    @property
    def core(self) -> CoreFixture:
        """The record."""
        return self.inside.core

    async def publish(self, wanted: SignatureLevel) -> RequestId:
        """A document at B-B, with what is due of it now."""
        pdf, _ = await self.inside.sign(profile(L.B_B, P.PREFERRED))
        due = Upkeep(wanted, self.inside.clock.now(), (NAME,), outside=True)
        return await self.inside.publish(pdf, ExtensionResult(b"", L.B_B, due))

    def upkeep(self) -> LevelUpkeep:
        """What the signing worker runs."""
        work = UpkeepWork(self.core.store, self.inside.clock, "signing/h/1")
        return LevelUpkeep(
            work, self.inside.documents, self.inside.levels, self.reader, self.rung
        )

    async def fetch(self) -> int:
        """Fetch what is wanted, once; returns the count of jobs."""
        jobs = self.fetcher._jobs
        count = 0
        while (claim := await jobs.claim()) is not None:
            jobs.in_hand.append(claim)
            await hold(jobs, claim)
            jobs.in_hand.clear()
            count += 1
        return count

    async def kept(self, most: int = 6) -> int:
        """Keep and fetch in turns until nothing gets on; returns the rounds."""
        for rounds in range(most):
            if await self.upkeep().run():
                return rounds
            if not await self.fetch():
                return -1
        return -1

    async def materials(self) -> list[Any]:
        """All material, that with a token first."""
        async with self.core.store.read() as transaction:
            rows = await transaction.connection.execute(
                select(outside_material).order_by(outside_material.c.kind.desc())
            )
            return list(rows)

    async def deliver(self, key: str, token: bytes) -> None:
        """Write a token, as code in chores may."""
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(outside_material)
                .where(outside_material.c.key == key)
                .values(state=MaterialState.THERE.value, token=token)
            )


@asynccontextmanager
async def outside_scene(
    core: CoreFixture, fonts: StampFonts
) -> AsyncIterator[OutsideScene]:
    """A scene whose servers outside are good."""
    inside = await make_scene(core, fonts, a_moment_ago())
    clock = inside.clock
    core.clock.at = clock.now()
    with FakeCa(clock) as site:
        now = clock.now().replace(microsecond=0)
        site.ca = OutsideCa(now, "AC de afuera", site=site.url)
        with FakeTsa(ExternalTsa(now, site.ca), clock) as tsa:
            settings = TimestampSettings.model_validate(
                {"outside": [{"url": tsa.url, "name": NAME}], "timeout_s": 60}
            )
            loopback = {"allowed_networks": ["127.0.0.0/8"], "timeout_s": 60}
            asking = RevocationSettings.model_validate(loopback)
            roots = [tsa.authority.root]

            async def trusted() -> list[bytes]:
                return roots

            signing = SigningSettings()
            rung = Rung()
            reader = MaterialReader(
                MaterialDesk(core.store, clock, signing),
                settings,
                RecordedStatus(core.store, clock),
                inside.tsa,
                trusted,
                trusted,
            )
            async with (
                TsaClient(settings, trusted, clock) as client,
                GuardedHttp(asking) as http,
            ):
                status = ExternalStatus(asking, http, core.store, clock)
                source = inside.levels._source.abroad(status, trusted)
                servers = OutsideServers(OutsideAuthorities(client), status, source)
                nothing: Any = None
                fetcher = MaterialFetcher(
                    core.fetching(), servers, nothing, rung, signing
                )
                scene = OutsideScene(inside, tsa, site, reader, fetcher, rung, roots)
                yield scene

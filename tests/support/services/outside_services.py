"""The world outside of an appliance: two TSAs, and a CA that tells of revocations.

with abroad() as world:
settings = world.settings  # TOML
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from appliance.domain.clock import SystemClock
from tests.support.pki.outside_ca import OutsideCa
from tests.support.services.fake_ca import FakeCa
from tests.support.services.fake_tsa import ExternalTsa, FakeTsa

FIRST: Final = "primera"
SECOND: Final = "segunda"


@dataclass
class OutsideServices:
    """All of one CA."""

    ca: OutsideCa
    site: FakeCa
    first: FakeTsa
    second: FakeTsa

    @property
    def settings(self) -> str:
        """What an appliance has to be told of it, TOML."""
        tables = [
            f'[[timestamps.outside]]\nname = "{name}"\nurl = "{tsa.url}"\n'
            for name, tsa in ((FIRST, self.first), (SECOND, self.second))
        ]
        tables.append('[revocation]\nallowed_networks = ["127.0.0.0/8"]\n')
        return "\n".join(tables)


@contextmanager
def running_outside_services() -> Iterator[OutsideServices]:
    """All of it, good until it is told otherwise."""
    clock = SystemClock()
    with FakeCa(clock) as site:
        now = clock.now().replace(microsecond=0)
        site.ca = OutsideCa(now, "AC de afuera del todo", site=site.url)
        tsa = ExternalTsa(now, site.ca)
        with FakeTsa(tsa, clock) as first, FakeTsa(tsa, clock) as second:
            yield OutsideServices(site.ca, site, first, second)

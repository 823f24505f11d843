"""What the services of every feature stand on."""

from dataclasses import dataclass
from functools import partial

from appliance.admission.call_rates import CallRates
from appliance.admission.login_throttle import Throttle
from appliance.appearance.content import Stamping
from appliance.bootstrap.core import Core
from appliance.bootstrap.hosts import open_belief
from appliance.domain.clock import Clock
from appliance.domain.ports import LookupIndex, Sealer
from appliance.keys.count_clearings import CountClearings
from appliance.keys.password_attempts import PasswordAttempts
from appliance.keys.password_hashing import HashSlots, Passwords
from appliance.keys.signing_hosts import SigningHosts
from appliance.keys.signing_password import SigningPasswords
from appliance.messaging.redis_link import connect, redis_settings
from appliance.record.unit_of_work import Database
from appliance.secrets.key_files import KeyFile
from appliance.settings import Settings
from appliance.system.background import Shielded


@dataclass(frozen=True)
class Foundation:
    """Settings, the core, the keys of the role's secret files, and what these make."""

    settings: Settings
    clock: Clock
    core: Core
    role: str
    """What this process is, for the audit."""
    sealer: Sealer
    lookup: LookupIndex
    login_passwords: Passwords
    signing_passwords: SigningPasswords
    shielded: Shielded
    rates: CallRates
    attempts: PasswordAttempts
    hosts: SigningHosts
    stamping: Stamping
    throttle: Throttle

    @property
    def store(self) -> Database:
        """The record."""
        return self.core.store


def lay_foundation(
    core: Core, role: str, sealer: Sealer, lookup: LookupIndex, peppers: KeyFile
) -> Foundation:
    """Make what the services of every feature stand on.

    Args:
        core: of the process.
        role: what this process is, for the audit.
        sealer: with the data key.
        lookup: with the lookup key.
        peppers: of signing passwords.
    """
    settings, clock, store = core.settings, core.clock, core.store
    slots = HashSlots()
    signing_passwords = SigningPasswords(peppers, slots)
    return Foundation(
        settings=settings,
        clock=clock,
        core=core,
        role=role,
        sealer=sealer,
        lookup=lookup,
        login_passwords=Passwords(slots),
        signing_passwords=signing_passwords,
        shielded=Shielded(),
        rates=CallRates(partial(connect, redis_settings(settings)), clock),
        attempts=PasswordAttempts(
            store,
            signing_passwords,
            clock,
            settings.signing,
            settings.installation,
            CountClearings(lookup),
        ),
        hosts=SigningHosts(store, open_belief(settings), clock),
        stamping=Stamping(settings.stamp, settings.verify_url),
        throttle=Throttle(store, lookup, clock, settings.auth),
    )

"""Services of keys: HSM tasks, health, another signing password."""

from dataclasses import dataclass

from appliance.bootstrap.services.foundation import Foundation
from appliance.keys.change_password import PasswordChange
from appliance.keys.health import Health, SharedHealth
from appliance.keys.hsm_tasks import HsmTasks


@dataclass(frozen=True)
class KeyServices:
    """What a face asks of keys and of those that hold them."""

    tasks: HsmTasks
    health: SharedHealth
    password_change: PasswordChange


def key_services(on: Foundation) -> KeyServices:
    """Make them."""
    core = on.core
    health = Health(
        on.store,
        core.inspector,
        on.clock,
        core.tables,
        core.clock_check,
        core.documents.check,
        on.hosts,
    )
    return KeyServices(
        tasks=HsmTasks(on.store, on.clock, on.role, core.process, core.work_notifier),
        health=SharedHealth(health),
        password_change=PasswordChange(
            on.store,
            on.attempts,
            on.signing_passwords,
            on.login_passwords,
            on.settings.installation,
            on.shielded,
            on.sealer,
        ),
    )

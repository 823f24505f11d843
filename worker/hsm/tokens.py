"""The tokens of a process: which they are, their PINs, and who comes first.

The logical HSM "firma" may have several members that hold the same master keys.
Worker n prefers member n, so that all of them work while all are there.
"""

from pathlib import Path

from appliance.domain.keys.hsm_keys import TokenRole
from appliance.domain.vocab import Environment
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import HsmSettings, SettingsError
from hsm_config.pkcs11.module import (
    members,
    module_path,
    token_settings,
)
from hsm_config.pkcs11.pin import obtain_pin
from hsm_config.profile import HsmProfile, refuse_sessions
from worker.hsm.connection import HsmToken
from worker.hsm.module import HsmModule
from worker.hsm.token_sessions import TokenSessions


def make_connections(
    hsm: HsmSettings,
    profile: HsmProfile,
    environment: Environment,
    number: int,
    watch: CallWatch,
) -> list[TokenSessions]:
    """Read the PINs and make what holds each token, not yet connected.

    Args:
        hsm: the installation's HSM.
        profile: its make.
        environment: in PROD, a PIN file open to others is refused.
        number: of the process among its kind, from 1.
        watch: for their calls.

    Returns:
        The members of firma, the preferred one first, then pki.

    Raises:
        SettingsError: a PIN file or a module cannot be used, or not by so many
            threads.
    """
    refuse_sessions(hsm, profile)
    modules: dict[Path, tuple[HsmSettings, HsmModule]] = {}
    connections = []
    for token_number, (role, label, own) in enumerate(_tokens(hsm)):
        path = module_path(own, profile)
        known, module = modules.setdefault(path, (own, HsmModule(own, profile)))
        if known.softhsm_conf != own.softhsm_conf:
            msg = f"hsm.replicas: {label}: a module ({path}) has one configuration"
            raise SettingsError(msg)
        pin = obtain_pin(token_settings(own, role), environment)
        token = HsmToken(token_number, role, label, pin, own, profile)
        connections.append(TokenSessions(token, module, watch))
    pki = connections.pop()
    first = (number - 1) % len(connections)
    return [*connections[first:], *connections[:first], pki]


def _tokens(hsm: HsmSettings) -> list[tuple[TokenRole, str, HsmSettings]]:
    """Every token: the members of firma in the order of the settings, then pki."""
    firma = [(TokenRole.FIRMA, own.firma.label, own) for own in members(hsm)]
    return [*firma, (TokenRole.PKI, hsm.pki.label, hsm)]

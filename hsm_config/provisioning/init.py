"""`rubrica hsm init`: from an empty HSM to tokens, keys, CA certificate.

Everything is looked at before it is made: a second run changes nothing, a run
that was killed is completed by the next one. What cannot be told apart from a
loss (a CA certificate without its key, twins) is refused, never made anew.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pkcs11
from pkcs11.exceptions import NoSuchToken, PKCS11Error

from appliance.domain.clock import Clock, SystemClock
from appliance.domain.errors import (
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.settings import Settings
from hsm_config.pkcs11.module import (
    Library,
    describe,
    find_token,
    log_in,
    opened,
    token_settings,
)
from hsm_config.pkcs11.pin import AskPin, obtain_pin
from hsm_config.pkcs11.tokens import make_configuration, make_token
from hsm_config.profile import HsmProfile, load_profile
from hsm_config.provisioning import own_host, pki_token, replicas, signing_token
from hsm_config.provisioning.init_report import ProvisionReport

_SYSTEM_CLOCK: Final = SystemClock()


def provision(
    settings: Settings, clock: Clock = _SYSTEM_CLOCK, ask: AskPin | None = None
) -> ProvisionReport:
    """Make what is missing of tokens, PINs, keys and the CA certificate.

    Must not run in a process that has the HSM open: it starts and finalises
    the module.

    Args:
        settings: the installation.
        clock: dates the CA certificate.
        ask: asks an operator for a PIN, where the settings want that.

    Returns:
        What was made and what was there.

    Raises:
        SettingsError: settings, profile or a PIN file cannot be used.
        HsmRefusedError: what is there contradicts itself; nothing was changed
            where it does.
        HsmUnavailableError: the module, a token or a PIN does not work.
    """
    profile = load_profile(settings.hsm.profile)
    replicas.check_apart(settings)
    report = ProvisionReport()
    try:
        with alone(settings.data_dir):
            _provision(settings, profile, clock, report, ask)
    except PKCS11Error as exc:
        msg = describe(exc)
        raise HsmUnavailableError(msg) from exc
    return report


@contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    """Let one command change the HSM at a time; a second one waits."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (data_dir / "hsm-init.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _provision(
    settings: Settings,
    profile: HsmProfile,
    clock: Clock,
    report: ProvisionReport,
    ask: AskPin | None,
) -> None:
    hsm = settings.hsm
    if profile.config_env and profile.quirks.makes_tokens and hsm.softhsm_conf:
        made = make_configuration(hsm.softhsm_conf)
        report.note(f"configuration {hsm.softhsm_conf}", made=made)
    # Nothing was enrolled before, so nothing of the first format can be under way.
    is_new = not settings.root_file.exists()
    with opened(hsm, profile) as library:
        for role in TokenRole:
            token = token_settings(hsm, role)
            news = make_token(library, token, settings, profile, ask)
            report.made.extend(news)
            if not news:
                report.note(f"token {token.label}", made=False)
        replicas.make_tokens(library, settings, profile, report, ask)
        pins = {
            role: obtain_pin(token_settings(hsm, role), settings.environment, ask)
            for role in TokenRole
        }
        if pins[TokenRole.FIRMA] == pins[TokenRole.PKI]:
            msg = "the tokens have the same PIN; give the pki token another"
            raise HsmRefusedError(msg)
        # Looked up anew: making the second token re-initialised the module.
        sessions = {
            role: log_in(_token(library, settings, role), pins[role])
            for role in TokenRole
        }
        firma = sessions[TokenRole.FIRMA]
        signing_token.provision(firma, settings, profile, report)
        with replicas.held(library, settings, profile, ask) as others:
            replicas.provision(firma, others, settings, profile, report)
        own_host.provision(settings, report, is_new=is_new)
        pki_token.provision(sessions[TokenRole.PKI], settings, profile, clock, report)


def _token(library: Library, settings: Settings, role: TokenRole) -> pkcs11.Token:
    label = token_settings(settings.hsm, role).label
    try:
        return find_token(library, label)
    except NoSuchToken:
        msg = f"token {label} is away"
        raise HsmUnavailableError(msg) from None

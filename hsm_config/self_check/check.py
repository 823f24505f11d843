"""`rubrica hsm check`: does this HSM do what the appliance needs, and how fast.

Makes and destroys keys of its own on each token, where it is to try kinds of keys;
touches no other. A PIN is tried once; the checks that need a login are left out
where it fails.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pkcs11
from pkcs11.exceptions import NoSuchToken, PKCS11Error, SessionCount

from appliance.domain.clock import Clock, SystemClock
from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    HsmUnavailableError,
)
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode, TokenRole, scheme_for
from appliance.settings import (
    HsmSettings,
    Settings,
    SettingsError,
    TokenSettings,
)
from appliance.system.cpu_count import usable_cores
from hsm_config.pkcs11 import key_pairs, signatures
from hsm_config.pkcs11.module import (
    Library,
    find_token,
    log_in,
    members,
    module_path,
    open_beside,
    opened,
)
from hsm_config.pkcs11.pin import AskPin, Pin, obtain_pin, pin_whence
from hsm_config.pkcs11.wrap_mechanisms import WrapMethods
from hsm_config.profile import HsmProfile, Standing, load_profile
from hsm_config.provisioning import replicas
from hsm_config.self_check import installation, throughput
from hsm_config.self_check.keys import reason_of, try_resident, try_wrapped
from hsm_config.self_check.report import CheckReport, Mark

_SYSTEM_CLOCK: Final = SystemClock()


@dataclass(slots=True)
class _Check:
    """One run: what it looks at, and what it found."""

    settings: Settings
    profile: HsmProfile
    clock: Clock
    ask: AskPin | None
    algorithms: Sequence[KeyAlgorithm]
    report: CheckReport = field(default_factory=CheckReport)
    pins: dict[TokenRole, Pin] = field(default_factory=dict)
    """Those that were right."""

    def line(self, name: str, look: Callable[[], str]) -> None:
        """Add what `look` says, or why it failed."""
        try:
            self.report.add(name, look())
        except (ApplianceError, PKCS11Error) as exc:
            self.report.add(name, reason_of(exc), Mark.BAD)


def check(
    settings: Settings,
    clock: Clock = _SYSTEM_CLOCK,
    *,
    ask: AskPin | None = None,
    algorithms: Sequence[KeyAlgorithm] | None = None,
    processes: Sequence[int] | None = None,
    rate_s: float = 1.0,
) -> CheckReport:
    """Look at module, tokens, PINs, mechanisms, keys, certificate and speed.

    Must not run in a process that has the HSM open.

    Args:
        settings: the installation.
        clock: judges the CA certificate's dates.
        ask: asks an operator for a PIN, where the settings want that.
        algorithms: kinds of keys to try; by default all of the profile. Where there
            is none no key is made, and the installation's own are looked at alone.
        processes: how many to measure the speed with; by default one, two and
            as many as there are processors.
        rate_s: how long to sign for each figure, in seconds.

    Returns:
        The report; HSM trouble is a line of it, never an exception.

    Raises:
        SettingsError: the profile cannot be used.
    """
    profile = load_profile(settings.hsm.profile)
    kinds = profile.keys.algorithms if algorithms is None else algorithms
    run = _Check(settings, profile, clock, ask, kinds)
    counts = sorted({1, 2, usable_cores()}) if processes is None else processes
    _look_at_profile(run)
    _look_at_host(run)
    try:
        run.report.add("module", str(module_path(settings.hsm, profile)))
        with opened(settings.hsm, profile) as library:
            run.report.add("library", _library(library))
            session = _look_at_firma(run, library)
            for own in members(settings.hsm)[1:]:
                _look_at_member(run, own, library, session)
            _look_at_pki(run, library)
    except SettingsError as exc:
        run.report.add("module", str(exc), Mark.BAD)
    except HsmUnavailableError as exc:
        run.report.add("module", exc.reason, Mark.BAD)
    # The module is closed here, so these processes are nobody's children in it.
    for count in counts:
        _measure(run, count, rate_s)
    return run.report


def _look_at_profile(run: _Check) -> None:
    said = {
        Standing.TESTED: "our tests run on this make",
        Standing.DOCUMENTED: "from the vendor's documents, never run by us",
        Standing.REFUSED: "tested, and not fit for users' keys",
    }[run.profile.standing]
    run.report.add("profile", f"{run.profile.name} ({said})")
    if run.profile.quirks.software:
        detail = "who has the token's files and its PIN has every key on it"
        run.report.add("software token", detail, Mark.WEAK)
    hsm = run.settings.hsm
    if hsm.key_mode is KeyMode.WRAPPED and run.profile.resident_only:
        detail = 'this make keeps keys resident only: set `hsm.key_mode = "resident"`'
        run.report.add("key mode", detail, Mark.BAD)
    if hsm.key_algorithm not in run.profile.keys.algorithms:
        detail = f"this make has no keys of kind {hsm.key_algorithm}"
        run.report.add("key algorithm", detail, Mark.BAD)


def _look_at_host(run: _Check) -> None:
    """Add the line of this host's own key, which is in no HSM."""
    try:
        run.report.add("host key", installation.host_key(run.settings))
    except (HsmRefusedError, SettingsError) as exc:
        run.report.add("host key", reason_of(exc), Mark.BAD)


def _library(library: Library) -> str:
    version = ".".join(str(part) for part in library.library_version)
    cryptoki = ".".join(str(part) for part in library.cryptoki_version)
    return f"{library.manufacturer_id} {version}, PKCS#11 {cryptoki}"


def _look_at_firma(run: _Check, library: Library) -> pkcs11.Session | None:
    """The lines of `hsm.firma`; its session, where there is one."""
    session = _log_in(run, library, run.settings.hsm.firma, TokenRole.FIRMA)
    if session is None:
        return None
    kind = run.settings.hsm.key_algorithm
    if run.algorithms:
        run.line("resident key", lambda: try_resident(session, kind))
    if not run.profile.resident_only:
        if run.algorithms:
            _try_wrapped(run, session)
        run.line("master key", lambda: installation.masters(session))
    run.line("worker identity", lambda: installation.identity(session, run.settings))
    run.line("keep-alive key", lambda: installation.keep_alive(session))
    return session


def _try_wrapped(run: _Check, session: pkcs11.Session) -> None:
    try:
        try_wrapped(run.report, session, run.profile, run.algorithms)
    except (HsmRefusedError, PKCS11Error) as exc:
        run.report.add("wrapped keys", reason_of(exc), Mark.BAD)


def _look_at_member(
    run: _Check, own: HsmSettings, library: Library, primary: pkcs11.Session | None
) -> None:
    """The lines of one more token behind the logical HSM "firma"."""
    label = own.firma.label
    try:
        with replicas.library_of(own, run.settings.hsm, run.profile, library) as its:
            session = _log_in(run, its, own.firma, TokenRole.FIRMA)
            if session is None:
                return
            if primary is not None and not run.profile.resident_only:
                look = partial(installation.same_masters, primary, session, run.profile)
                run.line(f"master key {label}", partial(look, label))
            run.line(
                f"worker identity {label}",
                lambda: installation.identity(session, run.settings),
            )
            run.line(
                f"keep-alive key {label}", lambda: installation.keep_alive(session)
            )
    except SettingsError as exc:
        run.report.add(f"token {label}", str(exc), Mark.BAD)
    except HsmUnavailableError as exc:
        run.report.add(f"token {label}", exc.reason, Mark.BAD)


def _look_at_pki(run: _Check, library: Library) -> None:
    session = _log_in(run, library, run.settings.hsm.pki, TokenRole.PKI)
    if session is None:
        return
    kind = KeyAlgorithm.RSA_2048
    if run.algorithms:
        run.line("keys pki", lambda: try_resident(session, kind))
    run.line("CA", lambda: installation.authority(session, run.settings, run.clock))


def _log_in(
    run: _Check, library: Library, wanted: TokenSettings, role: TokenRole
) -> pkcs11.Session | None:
    """The lines of one token; its session, unless one of them hides the rest."""
    own = run.settings.hsm
    known = wanted is own.pki or wanted is own.firma
    called = role.value if known else wanted.label
    name = f"token {called}"
    try:
        token = find_token(library, wanted.label)
    except NoSuchToken:
        run.report.add(name, f"no token labelled {wanted.label}", Mark.BAD)
        return None
    except (HsmRefusedError, PKCS11Error) as exc:
        run.report.add(name, reason_of(exc), Mark.BAD)
        return None
    serial = token.serial.decode("ascii", "replace").strip("\0 ")
    run.report.add(name, f"{wanted.label}: {token.model}, serial {serial}")
    run.line(f"mechanisms {called}", lambda: _mechanisms(run, token, role))
    try:
        pin = obtain_pin(wanted, run.settings.environment, run.ask)
        session = log_in(token, pin)
    except (SettingsError, HsmUnavailableError, PKCS11Error) as exc:
        run.report.add(f"PIN {called}", reason_of(exc), Mark.BAD)
        return None
    run.report.add(f"PIN {called}", f"right; from {pin_whence(wanted)}")
    run.line(f"sessions {called}", lambda: _sessions(own, session))
    if known:
        run.pins[role] = pin
    return session


def _sessions(hsm: HsmSettings, session: pkcs11.Session) -> str:
    """Open as many sessions as a worker process does, and close them again.

    Raises:
        PKCS11Error: the token does not open so many.
    """
    with ExitStack() as opened_beside:
        try:
            for _ in range(hsm.sessions - 1):
                opened_beside.callback(open_beside(session).close)
        except SessionCount:
            return f"{hsm.sessions} wanted; the token has fewer left beside those open"
    threads = "one thread" if hsm.sessions == 1 else "CKF_OS_LOCKING_OK"
    return f"{hsm.sessions} in each worker process ({threads})"


def _mechanisms(run: _Check, token: pkcs11.Token, role: TokenRole) -> str:
    """What this installation needs of a token.

    Raises:
        HsmRefusedError: something is missing.
    """
    hsm, available = run.settings.hsm, token.slot.get_mechanisms()
    kinds = {KeyAlgorithm.RSA_2048}
    if role is TokenRole.FIRMA:
        kinds.add(hsm.key_algorithm)
    else:
        kinds.add(run.profile.own_algorithm)
    pss = hsm.signature_scheme == "rsa-pss"
    needed = {key_pairs.GENERATES[kind] for kind in kinds}
    needed |= {signatures.MECHANISMS[scheme_for(kind)] for kind in kinds}
    needed |= {signatures.MECHANISMS[scheme_for(kind, pss=pss)] for kind in kinds}
    names = sorted(mechanism.name for mechanism in needed)
    missing = sorted(mechanism.name for mechanism in needed - available)
    if missing:
        msg = f"missing: {', '.join(missing)}"
        raise HsmRefusedError(msg)
    if role is TokenRole.FIRMA and hsm.key_mode is KeyMode.WRAPPED:
        methods = WrapMethods(run.profile.keys)
        method = methods.pick(available)
        names.append(f"{methods.mechanisms[method].name} for {method}")
    return ", ".join(names)


def _measure(run: _Check, processes: int, rate_s: float) -> None:
    """The speed of some processes; nothing where the PIN was not right."""
    pin = run.pins.get(TokenRole.FIRMA)
    if pin is None:
        return
    hsm = run.settings.hsm
    order = throughput.RateOrder(hsm, run.profile, pin, hsm.key_algorithm, rate_s)
    name = f"rate {processes} process{'es' if processes > 1 else ''}"
    try:
        made = throughput.measure(order, processes)
    except throughput.RateFailedError as exc:
        run.report.add(name, str(exc), Mark.BAD)
        return
    raw = f"{made.raw:.0f} {hsm.key_algorithm} signatures a second"
    if made.wrapped is None:
        run.report.add(name, raw)
        return
    run.report.add(name, f"{made.wrapped:.0f} wrapped, {raw} with the key at hand")

"""`rubrica hsm check`: does this HSM do what the appliance needs, and how fast.

Makes and destroys a key of its own on each token; touches no other. A PIN is
tried once; the checks that need a login are left out where it fails.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import pkcs11
from pkcs11.exceptions import NoSuchToken, PKCS11Error

from appliance.domain.clock import Clock, SystemClock
from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.hsm import KeyAlgorithm, SignatureScheme, TokenRole
from appliance.settings import Settings, SettingsError
from hsm_config import certificates, objects, pki_keys, signatures
from hsm_config.exposure import refuse_readable
from hsm_config.module import (
    Library,
    describe,
    find_token,
    log_in,
    module_path,
    opened,
    token_settings,
)
from hsm_config.pin import read_pin
from hsm_config.profile import load_profile

MECHANISMS: Final = (
    pkcs11.Mechanism.RSA_PKCS_KEY_PAIR_GEN,
    pkcs11.Mechanism.RSA_PKCS,
)
"""What a token must be able to do."""
_LABEL: Final = "rubrica-check"
_SYSTEM_CLOCK: Final = SystemClock()


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One thing that was looked at."""

    name: str
    good: bool
    detail: str


@dataclass(slots=True)
class CheckReport:
    """All that was looked at, in order."""

    lines: list[CheckLine] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether the appliance can work with this HSM."""
        return all(line.good for line in self.lines)

    def add(self, name: str, detail: str, *, good: bool = True) -> None:
        """Add a line."""
        self.lines.append(CheckLine(name, good, detail))

    def table(self) -> str:
        """The lines and the verdict, for a terminal."""
        width = max(len(line.name) for line in self.lines)
        rows = [
            f"{'ok ' if line.good else 'BAD'}  {line.name:<{width}}  {line.detail}"
            for line in self.lines
        ]
        bad = sum(not line.good for line in self.lines)
        verdict = "This HSM is ready." if self.good else f"Not ready: {bad} BAD."
        return "\n".join([*rows, "", verdict])


def check(
    settings: Settings, clock: Clock = _SYSTEM_CLOCK, rate_s: float = 1.0
) -> CheckReport:
    """Look at module, tokens, PINs, mechanisms, keys, certificate and speed.

    Must not run in a process that has the HSM open.

    Args:
        settings: the installation.
        clock: judges the CA certificate's dates.
        rate_s: how long to sign for the speed line, in seconds.

    Returns:
        The report; HSM trouble is a line of it, never an exception.

    Raises:
        SettingsError: the profile cannot be used.
    """
    profile = load_profile(settings.hsm.profile)
    report = CheckReport()
    report.add("profile", profile.name)
    try:
        report.add("module", str(module_path(settings.hsm, profile)))
        with opened(settings.hsm, profile) as library:
            report.add("library", _library(library))
            firma = _check_token(report, library, settings, TokenRole.FIRMA)
            if firma is not None:
                _line(report, "speed", lambda: _speed(firma, rate_s))
            pki = _check_token(report, library, settings, TokenRole.PKI)
            if pki is not None:
                _line(report, "CA", lambda: _authority(pki, settings, clock))
    except SettingsError as exc:
        report.add("module", str(exc), good=False)
    except HsmUnavailableError as exc:
        report.add("module", exc.reason, good=False)
    return report


def _library(library: Library) -> str:
    version = ".".join(str(part) for part in library.library_version)
    cryptoki = ".".join(str(part) for part in library.cryptoki_version)
    return f"{library.manufacturer_id} {version}, PKCS#11 {cryptoki}"


def _check_token(
    report: CheckReport,
    library: Library,
    settings: Settings,
    role: TokenRole,
) -> pkcs11.Session | None:
    """The lines of one token; its session, unless one of them hides the rest."""
    wanted = token_settings(settings.hsm, role)
    name = f"token {role}"
    try:
        token = find_token(library, wanted.label)
    except NoSuchToken:
        report.add(name, f"no token labelled {wanted.label}", good=False)
        return None
    except (HsmRefusedError, PKCS11Error) as exc:
        report.add(name, _reason(exc), good=False)
        return None
    serial = token.serial.decode("ascii", "replace").strip("\0 ")
    report.add(name, f"{wanted.label}: {token.model}, serial {serial}")
    _check_mechanisms(report, token, role)
    try:
        pin = read_pin(wanted.pin_file, settings.environment)
        session = log_in(token, pin)
    except (SettingsError, HsmUnavailableError, PKCS11Error) as exc:
        report.add(f"PIN {role}", _reason(exc), good=False)
        return None
    report.add(f"PIN {role}", f"right; from {wanted.pin_file}")
    _line(report, f"keys {role}", lambda: _exercise(session))
    return session


def _line(report: CheckReport, name: str, look: Callable[[], str]) -> None:
    """Add what `look` says, or why it failed."""
    try:
        report.add(name, look())
    except (ApplianceError, PKCS11Error) as exc:
        report.add(name, _reason(exc), good=False)


def _reason(exc: Exception) -> str:
    if isinstance(exc, PKCS11Error):
        return describe(exc)
    if isinstance(exc, (HsmRefusedError, HsmUnavailableError, KeyNotFoundError)):
        return exc.reason
    return str(exc)


def _check_mechanisms(
    report: CheckReport, token: pkcs11.Token, role: TokenRole
) -> None:
    has = token.slot.get_mechanisms()
    missing = [mechanism.name for mechanism in MECHANISMS if mechanism not in has]
    listed = ", ".join(mechanism.name for mechanism in MECHANISMS)
    detail = f"missing: {', '.join(missing)}" if missing else listed
    report.add(f"mechanisms {role}", detail, good=not missing)


def _exercise(session: pkcs11.Session) -> str:
    """Generate a pair, look whether it can be read, sign, verify, destroy.

    Raises:
        HsmRefusedError: the private key can be read, or the pair does not fit.
    """
    # What an interrupted check left.
    for left in objects.find_label(session, _LABEL):
        objects.destroy(session, left[pkcs11.Attribute.ID])
    cka_id = b"rubrica-check-" + secrets.token_bytes(8)
    started = time.perf_counter()
    try:
        objects.generate(session, cka_id, _LABEL, KeyAlgorithm.RSA_2048)
        took_ms = (time.perf_counter() - started) * 1000
        refuse_readable(objects.private_key(session, cka_id))
        objects.self_test(session, cka_id)
    finally:
        objects.destroy(session, cka_id)
    if objects.find(session, cka_id):
        msg = "a destroyed key is still there"
        raise HsmRefusedError(msg)
    return f"RSA-2048 generated ({took_ms:.0f} ms), signed, verified, destroyed"


def _speed(session: pkcs11.Session, rate_s: float) -> str:
    """Sign for a while with the keep-alive key."""
    objects.self_test(session, objects.KEEP_ALIVE_KEY.cka_id)
    key = objects.private_key(session, objects.KEEP_ALIVE_KEY.cka_id)
    digest = secrets.token_bytes(32)
    count = 0
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < rate_s:
        signatures.sign(key, digest, SignatureScheme.RSA_PKCS1)
        count += 1
    return f"{count / elapsed:.0f} RSA-2048 signatures a second in one process"


def _authority(session: pkcs11.Session, settings: Settings, clock: Clock) -> str:
    """Root, CA and responder: keys that sign, certificates of them and in date.

    Raises:
        HsmRefusedError: one of these is not so.
    """
    held = (
        ("root", objects.ROOT_KEY, certificates.read_root(settings)),
        ("CA", objects.CA_KEY, certificates.read_ca(settings)),
    )
    for name, ref, certificate in held:
        objects.self_test(session, ref.cka_id)
        if certificate.public_key() != objects.public_key(session, ref.cka_id):
            msg = f"the {name} certificate is of another key than the token's"
            raise HsmRefusedError(msg)
        if not certificate.not_valid_before_utc <= clock.now():
            msg = f"the {name} certificate is not valid yet: look at the clock"
            raise HsmRefusedError(msg)
        if not clock.now() <= certificate.not_valid_after_utc:
            msg = f"the {name} certificate has expired"
            raise HsmRefusedError(msg)
    objects.self_test(session, objects.OCSP_KEY.cka_id)
    pki_keys.check_certificates(settings)
    _, _, ca = held[1]
    until = ca.not_valid_after_utc.date().isoformat()
    return f"{ca.subject.rfc4514_string()}, until {until}, keys match, chain holds"

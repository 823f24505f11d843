"""What `rubrica hsm check` tries with keys: resident, wrapped, signing, reading.

Every key is made for the purpose and destroyed; no key of the installation is
used. A master key of the session takes the real one's place, so an HSM can be
judged before `rubrica hsm init`.
"""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pkcs11
from cryptography.exceptions import InvalidSignature
from pkcs11.exceptions import PKCS11Error

from appliance.domain.errors import HsmRefusedError
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
    WrapMethod,
    WrappedKey,
    scheme_for,
)
from hsm_config.pkcs11 import key_pairs, master_keys, objects, signatures
from hsm_config.pkcs11.key_exposure import refuse_readable
from hsm_config.pkcs11.key_wrapping import Wrapping
from hsm_config.pkcs11.module import describe
from hsm_config.profile import HsmProfile
from hsm_config.self_check.report import CheckReport, Mark

_LABEL: Final = "rubrica-check"
_DATA: Final = b"rubrica hsm check"


def try_resident(session: pkcs11.Session, algorithm: KeyAlgorithm) -> str:
    """Generate a pair on the token, try to read it, sign, verify, destroy.

    Raises:
        HsmRefusedError: the private key can be read, or the pair does not fit.
        PKCS11Error: the token failed.
    """
    # What an interrupted check left.
    for left in objects.find_label(session, _LABEL):
        objects.destroy(session, left[pkcs11.Attribute.ID])
    cka_id = b"rubrica-check-" + secrets.token_bytes(8)
    started = time.perf_counter()
    try:
        objects.generate(session, cka_id, _LABEL, algorithm)
        took_ms = (time.perf_counter() - started) * 1000
        refuse_readable(objects.private_key(session, cka_id))
        objects.self_test(session, cka_id)
    finally:
        objects.destroy(session, cka_id)
    if objects.find(session, cka_id):
        msg = "a destroyed key is still there"
        raise HsmRefusedError(msg)
    return f"{algorithm} generated ({took_ms:.0f} ms), unreadable, signed, destroyed"


def try_wrapped(
    report: CheckReport,
    session: pkcs11.Session,
    profile: HsmProfile,
    algorithms: Sequence[KeyAlgorithm],
) -> None:
    """Add the lines of wrapped mode: methods, reading, wrapping out, signing.

    Args:
        report: to add to.
        session: of the firma token.
        profile: its make, which can wrap.
        algorithms: kinds to sign by, the first of which is read and wrapped too.

    Raises:
        HsmRefusedError: something is not as the lines before it promised.
        PKCS11Error: the token failed.
    """
    with master_keys.temporary(session) as master:
        trial = _Trial(report, session, profile, Wrapping(profile), master)
        usable = [one for one in profile.keys.wrap if trial.method(one, algorithms[0])]
        if not usable:
            return
        trial.exposure(algorithms[0], usable[0])
        for algorithm in algorithms:
            trial.signing(algorithm, usable[0])


@dataclass(frozen=True, slots=True)
class _Trial:
    """Tries keys under a master key of the session."""

    report: CheckReport
    session: pkcs11.Session
    profile: HsmProfile
    wrapping: Wrapping
    master: pkcs11.SecretKey

    def _make(self, algorithm: KeyAlgorithm, method: WrapMethod) -> WrappedKey:
        return self.wrapping.make(self.session, algorithm, (1, self.master), method)

    def method(self, method: WrapMethod, algorithm: KeyAlgorithm) -> bool:
        """Wrap a pair and unwrap it, and wrap its W anew; whether a pair opens."""
        try:
            key = self._make(algorithm, method)
            with self.wrapping.unwrapped(key, self.master):
                sizes = f"W {len(key.blob_w)} bytes, {algorithm} {len(key.blob_k)}"
        except (HsmRefusedError, PKCS11Error) as exc:
            self.report.add(f"wrap {method}", reason_of(exc), Mark.BAD)
            return False
        self.report.add(f"wrap {method}", f"wrapped and unwrapped; {sizes} bytes")
        old = new = self.master
        try:
            self.wrapping.rewrap(key.blob_w, method, old, new, method)
        except (HsmRefusedError, PKCS11Error) as exc:
            said = f"W does not move to another master key: {reason_of(exc)}"
            self.report.add(f"rewrap {method}", said, Mark.BAD)
        return True

    def exposure(self, algorithm: KeyAlgorithm, method: WrapMethod) -> None:
        """Read an unwrapped key, and wrap it out."""
        key = self._make(algorithm, method)
        with self.wrapping.unwrapped(key, self.master) as private:
            _try_reading(self.report, private)
            if not private[pkcs11.Attribute.EXTRACTABLE]:
                self._taking_out(private, method)

    def _taking_out(self, private: pkcs11.PrivateKey, method: WrapMethod) -> None:
        """Wrap a key that is not extractable.

        Known of a make it is a weakness, and of one that should refuse it a fault.
        """
        try:
            self.wrapping.wrap_out(private, self.session, method)
        except PKCS11Error as exc:
            self.report.add("wrapping out", f"refused ({describe(exc)})")
            return
        said = "who has the PIN can wrap an unextractable key and take it out"
        known = self.profile.quirks.wraps_unextractable
        self.report.add("wrapping out", said, Mark.WEAK if known else Mark.BAD)

    def signing(self, algorithm: KeyAlgorithm, method: WrapMethod) -> None:
        """Sign by every scheme and digest with one unwrapped key of a kind."""
        pss = (False, self.profile.keys.pss)
        schemes = list(dict.fromkeys(scheme_for(algorithm, pss=each) for each in pss))
        try:
            key = self._make(algorithm, method)
            with self.wrapping.unwrapped(key, self.master) as private:
                for scheme in schemes:
                    _sign_and_verify(private, key, scheme)
        except (HsmRefusedError, PKCS11Error) as exc:
            self.report.add(f"sign {algorithm}", reason_of(exc), Mark.BAD)
            return
        said = f"{', '.join(schemes)} over {', '.join(DigestAlgorithm)}: verified"
        self.report.add(f"sign {algorithm}", said)


def _try_reading(report: CheckReport, private: pkcs11.PrivateKey) -> None:
    attributes = pkcs11.Attribute
    said = ", ".join(
        f"{name} {'yes' if private[attributes[name]] else 'no'}"
        for name in ("SENSITIVE", "EXTRACTABLE")
    )
    try:
        refuse_readable(private)
    except HsmRefusedError as exc:
        report.add("unwrapped key", f"{said}; {exc.reason}", Mark.BAD)
    else:
        report.add("unwrapped key", f"{said}; its value was asked for, and refused")


def _sign_and_verify(
    private: pkcs11.PrivateKey, key: WrappedKey, scheme: SignatureScheme
) -> None:
    public = key_pairs.load_spki(key.spki)
    for algorithm in DigestAlgorithm:
        digest = hashlib.new(algorithm, _DATA).digest()
        value = signatures.sign(private, digest, scheme, algorithm)
        try:
            signatures.verify(public, value, digest, scheme, algorithm)
        except InvalidSignature:
            msg = f"a signature by {scheme} over {algorithm} does not verify"
            raise HsmRefusedError(msg) from None


def reason_of(exc: Exception) -> str:
    """Why something failed, for people."""
    if isinstance(exc, PKCS11Error):
        return describe(exc)
    return str(getattr(exc, "reason", exc))

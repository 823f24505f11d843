"""What `rubrica hsm check` tries with keys: resident, wrapped, signing, reading.

Every key is made for the purpose and destroyed; no key of the installation is
used. A master key of the session takes the real one's place, so an HSM can be
judged before `rubrica hsm init`.
"""

import hashlib
import secrets
import time
from collections.abc import Sequence
from typing import Final

import pkcs11
from cryptography.exceptions import InvalidSignature
from pkcs11 import KeyType
from pkcs11.exceptions import PKCS11Error

from appliance.domain.errors import HsmRefusedError
from appliance.domain.hsm import (
    DigestAlgorithm,
    KeyAlgorithm,
    SignatureScheme,
    WrapMethod,
    WrappedKey,
    scheme_for,
)
from hsm_config import masters, objects, pairs, signatures, templates, wrapping
from hsm_config.check_report import CheckReport, Mark
from hsm_config.exposure import refuse_readable
from hsm_config.module import describe
from hsm_config.profile import HsmProfile, HsmQuirks

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
    """
    with masters.temporary(session) as master:
        usable = [
            method
            for method in profile.keys.wrap
            if _try_method(
                report, session, master, method, profile.quirks, algorithms[0]
            )
        ]
        if not usable:
            return
        key = wrapping.make_wrapped(session, algorithms[0], (1, master), usable[0])
        with wrapping.unwrapped(key, master, profile.quirks) as private:
            _try_reading(report, private)
            _try_taking_out(report, session, private, usable[0], profile.quirks)
        for algorithm in algorithms:
            _try_signing(report, session, master, usable[0], profile, algorithm)


def _try_method(
    report: CheckReport,
    session: pkcs11.Session,
    master: pkcs11.SecretKey,
    method: WrapMethod,
    quirks: HsmQuirks,
    algorithm: KeyAlgorithm,
) -> bool:
    """Wrap a pair and unwrap it, and wrap its W anew; whether a pair opens."""
    name = f"wrap {method}"
    try:
        key = wrapping.make_wrapped(session, algorithm, (1, master), method)
        with wrapping.unwrapped(key, master, quirks):
            sizes = f"W {len(key.blob_w)} bytes, {algorithm} {len(key.blob_k)} bytes"
    except (HsmRefusedError, PKCS11Error) as exc:
        report.add(name, reason_of(exc), Mark.BAD)
        return False
    report.add(name, f"wrapped and unwrapped; {sizes}")
    try:
        wrapping.rewrap(key.blob_w, method, master, master, method)
    except (HsmRefusedError, PKCS11Error) as exc:
        said = f"W does not move to another master key: {reason_of(exc)}"
        report.add(f"rewrap {method}", said, Mark.BAD)
    return True


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


def _try_taking_out(
    report: CheckReport,
    session: pkcs11.Session,
    private: pkcs11.PrivateKey,
    method: WrapMethod,
    quirks: HsmQuirks,
) -> None:
    """Wrap an unwrapped key, which is not extractable, by a key of our own.

    Known of a make it is a weakness, and of one that should refuse it a fault.
    """
    if private[pkcs11.Attribute.EXTRACTABLE]:
        return
    w = session.generate_key(
        KeyType.AES,
        wrapping.W_BITS,
        capabilities=templates.UNSAID,
        template=templates.NEW_W,
    )
    try:
        wrapping.wrap(private, w, method)
    except PKCS11Error as exc:
        report.add("wrapping out", f"refused ({describe(exc)})")
    else:
        said = "who has the PIN can wrap an unextractable key and take it out"
        known = quirks.wraps_unextractable
        report.add("wrapping out", said, Mark.WEAK if known else Mark.BAD)
    finally:
        w.destroy()


def _try_signing(
    report: CheckReport,
    session: pkcs11.Session,
    master: pkcs11.SecretKey,
    method: WrapMethod,
    profile: HsmProfile,
    algorithm: KeyAlgorithm,
) -> None:
    """Sign by every scheme and digest with one unwrapped key of a kind."""
    schemes = list(
        dict.fromkeys(
            scheme_for(algorithm, pss=pss) for pss in (False, profile.keys.pss)
        )
    )
    name = f"sign {algorithm}"
    try:
        key = wrapping.make_wrapped(session, algorithm, (1, master), method)
        with wrapping.unwrapped(key, master, profile.quirks) as private:
            for scheme in schemes:
                _sign_and_verify(private, key, scheme)
    except (HsmRefusedError, PKCS11Error) as exc:
        report.add(name, reason_of(exc), Mark.BAD)
    else:
        digests = ", ".join(DigestAlgorithm)
        report.add(name, f"{', '.join(schemes)} over {digests}: verified")


def _sign_and_verify(
    private: pkcs11.PrivateKey, key: WrappedKey, scheme: SignatureScheme
) -> None:
    public = pairs.load_spki(key.spki)
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

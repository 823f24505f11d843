"""One-time codes from a seed (TOTP): made, shown, and read.

Source: RFC 6238; RFC 4226, 4, R6 (160 bits of seed).
"""

import hmac
import math
import re
import secrets
from base64 import b32encode
from typing import Final

import pyotp
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from appliance.domain.clock import Clock

STEP_S: Final = 30
_SEED_BYTES: Final = 20
_SEED_INFO: Final = b"rubrica enrolment totp seed\0"
_CODE = re.compile(r"[0-9]{6}", re.ASCII)


def new_seed() -> str:
    """A fresh seed, in base32."""
    return b32encode(secrets.token_bytes(_SEED_BYTES)).decode()


def seed_of(secret: str, opening: str) -> str:
    """The seed of one opening of a form, in base32; another one at each.

    Args:
        secret: of the form's link, on the server's side alone.
        opening: random, held by the browser that the seed is shown to.

    Source: RFC 5869, 2.3.
    """
    expand = HKDFExpand(hashes.SHA256(), _SEED_BYTES, _SEED_INFO + opening.encode())
    return b32encode(expand.derive(secret.encode())).decode()


def provisioning_uri(seed: str, name: str, issuer: str) -> str:
    """What an authenticator app reads from a QR, `otpauth://…`.

    Args:
        seed: in base32.
        name: of the account.
        issuer: of the installation.
    """
    return pyotp.TOTP(seed).provisioning_uri(name=name, issuer_name=issuer)


def is_code(code: str) -> bool:
    """Whether this is six digits; spaces do not count."""
    return _CODE.fullmatch(code.replace(" ", "")) is not None


def step_of(seed: str, code: str, clock: Clock) -> int | None:
    """The step whose code this is, of the present one and its neighbours.

    Args:
        seed: in base32.
        code: as typed; spaces do not count.
        clock: the time.

    Returns:
        Its number, to be marked as used; None if the code is not right.
    """
    code = code.replace(" ", "")
    if not _CODE.fullmatch(code):
        return None
    totp = pyotp.TOTP(seed, interval=STEP_S)
    now = int(clock.now().timestamp()) // STEP_S
    found = None
    for step in (now - 1, now, now + 1):
        if hmac.compare_digest(totp.generate_otp(step), code):
            found = step
    return found


def next_unused(seed: str, last_step: int, clock: Clock) -> tuple[str, float]:
    """Make the next code that was not used yet, for people who have no telephone.

    Args:
        seed: in base32.
        last_step: the last step whose code was used; 0 for none.
        clock: the time.

    Returns:
        The code, and the seconds until it is accepted (0: now).
    """
    now_s = clock.now().timestamp()
    step = max(int(now_s) // STEP_S, last_step + 1)
    # A code is accepted from one step before its own.
    wait_s = max(0.0, (step - 1) * STEP_S - now_s)
    return pyotp.TOTP(seed, interval=STEP_S).generate_otp(step), wait_s


def next_code_in(step: int, last: int, clock: Clock) -> int:
    """Seconds until an app that shows a used code shows one that works.

    The app may be ahead of this clock, so count from the code that was typed.

    Args:
        step: of the code that was typed.
        last: the last step that was used.
        clock: the time.

    Returns:
        0 where the code is an older one: the app may show another one by now.
    """
    now_s = clock.now().timestamp()
    now = int(now_s) // STEP_S
    if step < now:
        return 0
    left_s = math.ceil((now + 1) * STEP_S - now_s)
    return left_s + STEP_S * max(last - step, 0)

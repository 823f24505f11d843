"""How many signatures a second an HSM makes, by the number of processes.

Each process is started afresh and logs in by itself: none is forked after a
login, and the caller must not have the HSM open. Nothing stays on the token.
"""

import multiprocessing
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from threading import BrokenBarrierError
from typing import Any, Final

import pkcs11

from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyAlgorithm, scheme_for
from appliance.settings import HsmSettings
from hsm_config.pkcs11 import master_keys, signatures, templates
from hsm_config.pkcs11.key_pairs import generate_pair
from hsm_config.pkcs11.key_wrapping import Wrapping
from hsm_config.pkcs11.module import Library, find_token, log_in, start, starting, stop
from hsm_config.pkcs11.pin import Pin
from hsm_config.pkcs11.raw_pkcs11 import SessionCalls
from hsm_config.pkcs11.unwrap_and_sign import OneUse
from hsm_config.profile import HsmProfile

_READY_S: Final = 120.0
"""Longest that processes wait for one another's start, in seconds."""


@dataclass(frozen=True, slots=True)
class RateOrder:
    """What the processes shall do."""

    hsm: HsmSettings
    """`firma` is the token."""
    profile: HsmProfile
    pin: Pin
    """Goes to the processes through a pipe; hidden from reprs."""
    algorithm: KeyAlgorithm
    """Kind of the key."""
    seconds: float
    """How long to sign, each way."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Signatures a second, of all processes together."""

    raw: float
    """With a key that stays in the session."""
    wrapped: float | None
    """Unwrapping the key before each one and destroying it after; None where the
    make keeps keys resident only."""


class RateFailedError(Exception):
    """A process could not do its part; the text says why."""


def measure(order: RateOrder, processes: int) -> Rate:
    """Sign in some processes at once.

    Args:
        order: what they do.
        processes: how many, from 1.

    Raises:
        RateFailedError: one of them could not.
    """
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(processes)
    with ProcessPoolExecutor(
        processes, context, initializer=_hold, initargs=(gate,)
    ) as pool:
        try:
            rates = list(pool.map(_work, [order] * processes))
        except (pkcs11.PKCS11Error, BrokenBarrierError, OSError, RuntimeError) as exc:
            msg = f"{type(exc).__name__}: {exc}".rstrip(": ")
            raise RateFailedError(msg) from exc
    wrapped = [rate.wrapped for rate in rates if rate.wrapped is not None]
    return Rate(sum(rate.raw for rate in rates), sum(wrapped) if wrapped else None)


_gate: Any = None
"""Of this process, once it was started."""


def _hold(gate: Any) -> None:
    """Keep what all processes wait at; only a start can hand it over."""
    global _gate  # noqa: PLW0603 (a pool's processes have no other place)
    _gate = gate


def _work(order: RateOrder) -> Rate:
    """Log in, wait for the others, sign; in a process of its own."""
    try:
        with starting(order.hsm, order.profile):
            library = start(order.hsm, order.profile)
            session = log_in(find_token(library, order.hsm.firma.label), order.pin)
        rate = _sign(order, library, session)
    except BaseException:
        # The others shall not wait in vain.
        _gate.abort()
        raise
    stop(library)
    return rate


def _sign(order: RateOrder, library: Library, session: pkcs11.Session) -> Rate:
    scheme = scheme_for(order.algorithm)
    digest = secrets.token_bytes(32)
    if order.profile.resident_only:
        public, private = generate_pair(
            session, order.algorithm, templates.RESIDENT_PRIVATE
        )
        _gate.wait(_READY_S)
        raw = _a_second(lambda: signatures.sign(private, digest, scheme), order.seconds)
        public.destroy()
        private.destroy()
        return Rate(raw, None)
    available = session.token.slot.get_mechanisms()
    wrapping = Wrapping(order.profile)
    method = wrapping.methods.pick(available)
    with master_keys.temporary(session) as master:
        key = wrapping.make(session, order.algorithm, (1, master), method)

        one_use = OneUse(SessionCalls(library, session), order.profile)
        asked = signatures.order_for(
            order.algorithm, digest, scheme, DigestAlgorithm.SHA256
        )
        _gate.wait(_READY_S)
        wrapped = _a_second(lambda: one_use.sign(key, master, asked), order.seconds)
        with wrapping.unwrapped(key, master) as kept:
            _gate.wait(_READY_S)
            raw = _a_second(
                lambda: signatures.sign(kept, digest, scheme), order.seconds
            )
    return Rate(raw, wrapped)


def _a_second(work: Callable[[], object], seconds: float) -> float:
    """How often a second something is done."""
    count = 0
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        work()
        count += 1
    return count / elapsed

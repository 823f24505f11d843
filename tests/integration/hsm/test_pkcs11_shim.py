"""The fault tool itself: passes through, disturbs as it is told, counts."""

import subprocess
import sys

import pytest

from tests.support.hsm.pkcs11_shim import Pkcs11Shim
from tests.support.hsm.softhsm import SoftHsm
from tests.support.patience import CALL_S

PIN = "123456"
DEVICE_ERROR = 0x30
USE = """\
import sys, pkcs11
from pkcs11 import KeyType, Mechanism

token = pkcs11.lib(sys.argv[1]).get_token(token_label="firma")
with token.open(rw=True, user_pin=sys.argv[2]) as session:
    public, private = session.generate_keypair(KeyType.RSA, 2048, id=b"k")
    for number in range(4):
        try:
            signature = private.sign(b"data", mechanism=Mechanism.RSA_PKCS)
            print(public.verify(b"data", signature, mechanism=Mechanism.RSA_PKCS))
        except pkcs11.PKCS11Error as exc:
            print(type(exc).__name__)
"""


TWO_THREADS = """\
import sys, threading, pkcs11
from hsm_config.pkcs11.raw_pkcs11 import LockingLibrary

path, kind = sys.argv[1], sys.argv[3]
library = LockingLibrary(path) if kind == "several" else pkcs11.lib(path)
token = library.get_token(token_label="firma")
first = token.open(rw=True, user_pin=sys.argv[2])
sessions = [first, token.open(rw=True)]
threads = [
    threading.Thread(target=lambda each=each: list(each.get_objects()))
    for each in sessions
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.finalize()
library.reinitialize()
library.finalize()
print("ended", library.initialized)
"""


@pytest.fixture
def shim(softhsm: SoftHsm) -> Pkcs11Shim:
    """A shim around a SoftHSM with one token."""
    softhsm.init_token("firma", PIN)
    return Pkcs11Shim(softhsm.tokens.parent, softhsm.module)


def start(softhsm: SoftHsm, shim: Pkcs11Shim) -> "subprocess.Popen[str]":
    """A process that makes a key and tries to sign four times."""
    return subprocess.Popen(
        [sys.executable, "-c", USE, str(shim.path), PIN],
        env=softhsm.environment | shim.environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(softhsm: SoftHsm, shim: Pkcs11Shim) -> list[str]:
    """What came of each of the four."""
    with start(softhsm, shim) as process:
        return process.communicate(timeout=CALL_S)[0].split()


def test_shim_passes_through_and_counts(softhsm: SoftHsm, shim: Pkcs11Shim) -> None:
    """Without rules it is the real module, and each signature is on its list."""
    assert said(softhsm, shim) == ["True"] * 4

    assert shim.count("C_Sign") == 4
    assert [(one.token, one.key, one.data) for one in shim.signed()] == [
        ("firma", b"k".hex(), b"data")
    ] * 4


def test_rule_disturbs_as_often_as_it_says(softhsm: SoftHsm, shim: Pkcs11Shim) -> None:
    """Twice, of all processes, and on that token alone."""
    with (
        shim.fault("C_Sign", "code", DEVICE_ERROR, at="pki") as other,
        shim.fault("C_Sign", "code", DEVICE_ERROR, at="firma", times=2) as rule,
    ):
        assert said(softhsm, shim) == ["DeviceError"] * 2 + ["True"] * 2
        assert said(softhsm, shim) == ["True"] * 4
        assert (shim.used(other), shim.used(rule)) == (0, 8)

    assert len(shim.signed()) == 6


def test_lost_result_was_signed(softhsm: SoftHsm, shim: Pkcs11Shim) -> None:
    """The module did its work; the caller does not know."""
    with shim.fault("C_Sign", "lose", DEVICE_ERROR, times=1):
        assert said(softhsm, shim) == ["DeviceError"] + ["True"] * 3

    assert len(shim.signed()) == 4


def test_abort_and_hang_are_what_they_say(softhsm: SoftHsm, shim: Pkcs11Shim) -> None:
    """A crash ends the process, a call that hangs does not end."""
    with shim.fault("C_Sign", "abort"), start(softhsm, shim) as crashed:
        assert crashed.wait(60) == -6
    with (
        shim.fault("C_Sign", "hang") as rule,
        start(softhsm, shim) as hanging,
    ):
        while not shim.used(rule):
            assert hanging.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            hanging.wait(0.5)
        hanging.kill()


@pytest.mark.parametrize(
    ("kind", "status", "words", "starts"),
    [("several", 0, "ended False", (0, 2)), ("one", -6, "", (1, 0))],
)
def test_two_threads_need_a_start_for_several(
    softhsm: SoftHsm,
    shim: Pkcs11Shim,
    kind: str,
    status: int,
    words: str,
    starts: tuple[int, int],
) -> None:
    """C_Initialize(NULL) and two threads at once crash; a real one does some time."""
    with shim.fault("C_FindObjectsInit", "delay", 500):
        done = subprocess.run(
            [sys.executable, "-c", TWO_THREADS, str(shim.path), PIN, kind],
            env=softhsm.environment | shim.environment,
            capture_output=True,
            text=True,
            timeout=CALL_S,
            check=False,
        )

    assert done.returncode == status, done
    assert done.stdout.strip() == words
    assert shim.starts() == starts

"""A process that is killed in its login must not take the token with it."""

import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hsm_config.pkcs11.softhsm_files import is_whole, keep_token_files
from tests.support.hsm.softhsm import SoftHsm

PIN = "123456"
LOG_IN = """\
import sys, pkcs11
token = pkcs11.lib(sys.argv[1]).get_token(token_label="firma")
print("begun", flush=True)
token.open(rw=True, user_pin=sys.argv[2]).close()
"""


@pytest.fixture
def token(softhsm: SoftHsm) -> Path:
    """The file of a token with its user PIN; a copy of it is kept."""
    softhsm.init_token("firma", PIN)
    assert keep_token_files(softhsm.conf) == []
    (file,) = softhsm.tokens.glob("*/token.object")
    return file


def begin_login(softhsm: SoftHsm) -> subprocess.Popen[str]:
    """Start a process that is about to log in."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOG_IN, str(softhsm.module), PIN],
        env=softhsm.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def logs_in(softhsm: SoftHsm) -> bool:
    """Whether the token is there and takes its PIN."""
    process = begin_login(softhsm)
    process.communicate()
    return process.returncode == 0


@pytest.mark.parametrize("left", [0, 8, 100, 319])
def test_token_file_cut_short_is_put_back(
    softhsm: SoftHsm, token: Path, left: int
) -> None:
    """Without the copy the token, and every key in it, would be gone."""
    token.write_bytes(token.read_bytes()[:left])

    assert keep_token_files(softhsm.conf) == [token.parent]

    assert logs_in(softhsm)
    assert keep_token_files(softhsm.conf) == []


def test_emptied_token_file_hides_the_token(softhsm: SoftHsm, token: Path) -> None:
    """What the copy is for: SoftHSM itself does not mend it."""
    token.write_bytes(b"")

    assert not logs_in(softhsm)


def test_copy_follows_a_changed_pin(softhsm: SoftHsm, token: Path) -> None:
    """An old copy would bring the old PIN back."""
    command = ["softhsm2-util", "--init-token", "--token", "firma", "--label", "firma"]
    subprocess.run(
        [*command, "--pin", "654321", "--so-pin", "12345678"],
        env=softhsm.environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    assert keep_token_files(softhsm.conf) == []
    changed = token.read_bytes()
    token.write_bytes(b"")

    assert keep_token_files(softhsm.conf) == [token.parent]

    assert token.read_bytes() == changed


def test_token_without_a_copy_is_left_as_it_is(softhsm: SoftHsm) -> None:
    """Nothing is made up; the module says that there is no such token."""
    softhsm.init_token("firma", PIN)
    (file,) = softhsm.tokens.glob("*/token.object")
    file.write_bytes(b"")

    assert keep_token_files(softhsm.conf) == []
    assert file.read_bytes() == b""


def test_kind_that_we_do_not_know_is_not_overwritten() -> None:
    """A later SoftHSM may write more than we can read."""
    attribute = (7).to_bytes(8, "big") + (9).to_bytes(8, "big") + b"more"

    assert is_whole((1).to_bytes(8, "big") + attribute)


@pytest.mark.parametrize("kills", [20, pytest.param(300, marks=pytest.mark.long)])
def test_killed_logins_leave_the_token_usable(
    softhsm: SoftHsm, token: Path, kills: int
) -> None:
    """Killed at any moment of it, about one in eight leaves the file empty."""
    del token
    for _ in range(kills):
        process = begin_login(softhsm)
        time.sleep(secrets.randbelow(6000) / 1e6)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        keep_token_files(softhsm.conf)

    assert logs_in(softhsm)

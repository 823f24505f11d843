"""The red case: an HSM that makes unwrapped keys readable is refused."""

from pathlib import Path

import pytest

from tests.support.hsm.opencryptoki import OpenCryptoki, why_not

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(why_not()), reason=why_not())]


def test_check_refuses_an_hsm_whose_unwrapped_keys_can_be_read(disk_dir: Path) -> None:
    """Exit code 1, and the line says what is wrong.

    Its processes have a /dev/shm of their own, and see no folder of tests there.
    """
    code, said = OpenCryptoki(disk_dir).command("check", "--quick")

    assert code == 1, said
    (line,) = [one for one in said.splitlines() if "unwrapped key " in one]
    assert line.startswith("BAD")
    assert "SENSITIVE no, EXTRACTABLE yes" in line
    assert "the secret value of the RSA key can be read" in line
    assert "not fit for users' keys" in said
    assert "Not ready" in said.splitlines()[-1]
    # All else of wrapped mode works there, so nothing but that reading tells.
    assert "ok    sign rsa-2048" in said

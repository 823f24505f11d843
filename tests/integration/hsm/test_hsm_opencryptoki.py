"""The red case: an HSM that makes unwrapped keys readable is refused."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.opencryptoki import OpenCryptoki, why_not

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A private folder outside /dev/shm, which is another one to its processes."""
    with tempfile.TemporaryDirectory(prefix="rbk-", dir="/var/tmp") as folder:
        yield Path(folder)


def test_check_refuses_an_hsm_whose_unwrapped_keys_can_be_read(on_disk: Path) -> None:
    """Exit code 1, and the line says what is wrong."""
    code, said = OpenCryptoki(on_disk).command("check", "--quick")

    assert code == 1, said
    (line,) = [one for one in said.splitlines() if "unwrapped key " in one]
    assert line.startswith("BAD")
    assert "SENSITIVE no, EXTRACTABLE yes" in line
    assert "the secret value of the RSA key can be read" in line
    assert "not fit for users' keys" in said
    assert "Not ready" in said.splitlines()[-1]
    # All else of wrapped mode works there, so nothing but that reading tells.
    assert "ok    sign rsa-2048" in said

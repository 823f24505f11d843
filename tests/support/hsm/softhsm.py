"""A private SoftHSM: its own configuration, its own tokens."""

import os
import subprocess
from pathlib import Path
from typing import Final

MODULES: Final = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/softhsm/libsofthsm2.so",
    "/usr/lib/pkcs11/libsofthsm2.so",
)


class SoftHsm:
    """A folder of tokens that nothing else on the machine knows of.

    Args:
        folder: an existing private folder.
    """

    def __init__(self, folder: Path) -> None:
        self.tokens = folder / "tokens"
        self.tokens.mkdir(mode=0o700)
        self.conf = folder / "softhsm2.conf"
        self.conf.write_text(
            f"directories.tokendir = {self.tokens}\n"
            "objectstore.backend = file\n"
            "log.level = ERROR\n"
            "slots.removable = false\n",
            "ascii",
        )

    @property
    def module(self) -> Path:
        """The PKCS#11 module.

        Raises:
            FileNotFoundError: SoftHSM is not installed.
        """
        for path in map(Path, MODULES):
            if path.exists():
                return path
        raise FileNotFoundError("no libsofthsm2.so: install the package softhsm2")

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which a process sees these tokens."""
        return {**os.environ, "SOFTHSM2_CONF": str(self.conf)}

    def init_token(self, label: str, pin: str, so_pin: str = "12345678") -> None:
        """Make one token."""
        command = ["softhsm2-util", "--init-token", "--free", "--label", label]
        subprocess.run(
            [*command, "--pin", pin, "--so-pin", so_pin],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )

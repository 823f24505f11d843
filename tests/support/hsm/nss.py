"""NSS softokn's tokens, and an installation on them: a second make of HSM.

The module wants its folders in C_Initialize; the shim passes them on.
"""

import subprocess
from pathlib import Path
from typing import Final

from appliance.domain.keys.hsm_keys import TokenRole
from tests.support.hsm.hsm_installation import HsmInstallation
from tests.support.hsm.pkcs11_shim import Pkcs11Shim

_MODULES: Final = (
    "/usr/lib/x86_64-linux-gnu/libsoftokn3.so",
    "/usr/lib/aarch64-linux-gnu/libsoftokn3.so",
    "/usr/lib64/libsoftokn3.so",
)
_PARAMS: Final = (
    "configdir='' certPrefix='' keyPrefix='' secmod='' flags=noCertDB,noModDB "
    "tokens=<{tokens}>"
)
_FIRST_SLOT: Final = 4
"""User's slots of the module count from here."""


class NssTokens:
    """The tokens in a folder, with their PIN files, and the shim to them.

    Args:
        folder: an existing private folder.
        members: tokens behind the logical HSM "firma": `firma`, `firma-2`, …
    """

    def __init__(self, folder: Path, *, members: int = 1) -> None:
        secrets = folder / "secrets"
        secrets.mkdir(mode=0o700)
        places = []
        more = [f"firma-{number}" for number in range(2, members + 1)]
        for number, label in enumerate([*TokenRole, *more]):
            place = folder / "nss" / label
            place.mkdir(parents=True, mode=0o700)
            pin = secrets / f"{label}.pin"
            pin.write_text(f"pin-of-{label}-{number}\n", "ascii")
            pin.chmod(0o600)
            command = ["certutil", "-N", "-d", f"sql:{place}", "-f", str(pin)]
            subprocess.run(command, check=True)
            places.append(
                f"{_FIRST_SLOT + number:#x}="
                f"[configDir='sql:{place}' tokenDescription='{label}']"
            )
        params = _PARAMS.format(tokens=" ".join(places))
        self.shim = Pkcs11Shim(folder, _module(), params)

    def installation(self, folder: Path, *, members: int = 1) -> HsmInstallation:
        """An installation on these tokens; its environment is the shim's."""
        lines = f'profile = "nss-softokn"\nmodule = "{self.shim.path}"'
        return HsmInstallation(
            folder,
            hsm_lines=lines,
            environment=self.shim.environment,
            members=members,
        )


def _module() -> Path:
    for path in map(Path, _MODULES):
        if path.exists():
            return path
    raise FileNotFoundError("no libsoftokn3.so: install the package libnss3")

"""openCryptoki's software token, in namespaces of its own.

Its configuration, its tokens and its daemon have fixed places on a machine, so a
command that shall see ours runs where those places are ours: own mounts, own
shared memory, own processes, all gone when the command ends. Needs root.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from appliance.domain.keys.hsm_keys import TokenRole
from tests.support.hsm.hsm_installation import HsmInstallation

_CONF: Final = """\
version opencryptoki-3.1
slot 0
{
stdll = libpkcs11_sw.so
tokname = firma
}
slot 1
{
stdll = libpkcs11_sw.so
tokname = pki
}
"""
_PINS: Final = {TokenRole.FIRMA: "82345670", TokenRole.PKI: "82345671"}
_SCRIPT: Final = """\
set -eu
folder=$1; shift
mount --bind "$folder/etc" /etc/opencryptoki
mount --bind "$folder/tokens" /var/lib/opencryptoki
mount --bind "$folder/locks" /run/lock/opencryptoki
mount -t tmpfs tmpfs /dev/shm
pkcsslotd
for _ in $(seq 100); do pkcsconf -t >/dev/null 2>&1 && break; sleep 0.05; done
if [ ! -e "$folder/made" ]; then
  for slot in 0 1; do
    label=$(sed -n "$((slot + 1))p" "$folder/labels")
    pin=$(sed -n "$((slot + 1))p" "$folder/pins")
    printf '87654321\\n%s\\n' "$label" | pkcsconf -c "$slot" -I
    pkcsconf -c "$slot" -P -S 87654321 -n 76543210
    pkcsconf -c "$slot" -u -S 76543210 -n 12345678
    pkcsconf -c "$slot" -p -U 12345678 -n "$pin"
  done >/dev/null
  touch "$folder/made"
fi
exec "$@"
"""


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin"


def why_not() -> str:
    """Why openCryptoki cannot be tried here; empty when it can."""
    if os.geteuid() != 0:
        return "openCryptoki's places are root's"
    if not shutil.which("pkcsslotd", path=_path()):
        return "the package opencryptoki is not installed"
    return ""


class OpenCryptoki:
    """Two tokens, firma and pki, and an installation on them.

    Args:
        folder: an existing private folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "opencryptoki"
        for name in ("etc", "tokens", "locks"):
            (self._folder / name).mkdir(parents=True)
        for role in TokenRole:
            (self._folder / "tokens" / role / "TOK_OBJ").mkdir(parents=True)
            (self._folder / "locks" / role).mkdir()
        for place in ("tokens", "locks"):
            for path in [self._folder / place, *(self._folder / place).rglob("*")]:
                shutil.chown(path, group="pkcs11")
                path.chmod(0o770)
        (self._folder / "etc" / "opencryptoki.conf").write_text(_CONF, "ascii")
        (self._folder / "labels").write_text("firma\npki\n", "ascii")
        (self._folder / "pins").write_text("\n".join(_PINS.values()) + "\n", "ascii")
        secrets = folder / "secrets"
        secrets.mkdir(mode=0o700)
        for role, pin in _PINS.items():
            file = secrets / f"{role}.pin"
            file.write_text(f"{pin}\n", "ascii")
            file.chmod(0o600)
        self.installation = HsmInstallation(
            folder, hsm_lines='profile = "opencryptoki-soft"'
        )

    def command(self, *words: str) -> tuple[int, str]:
        """Run `rubrica hsm …` where the tokens are."""
        isolated = ("unshare", "--mount", "--ipc", "--pid", "--fork", "--mount-proc")
        result = subprocess.run(
            [
                *isolated,
                *("--kill-child", "bash", "-c", _SCRIPT, "bash", str(self._folder)),
                *self.installation.command_line(*words),
            ],
            env={**self.installation.environment, "PATH": _path()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return result.returncode, result.stdout

"""An HSM that is not SoftHSM, brought in by the manual's steps, on a booted Debian.

It is NSS softokn, behind a module that gives it its folders as its maker's client
would: a library and two tokens that belong to a group, in a folder that it writes to.

Source: docs/installing.md, "Another HSM than SoftHSM".
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.appliance.manual import run_block
from tests.support.hosts.booted_machine import Booted, can_boot
from tests.support.hosts.debian_packages import built, debian_with
from tests.support.hosts.machine_load import ANSWERS, PARTS
from tests.support.hsm.pkcs11_shim import build

_INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes 2>&1"
_NSS: Final = ("libnss3", "libnss3-tools")
_MODULE: Final = "/usr/lib/hsm/libhsm.so"
_MAKERS: Final = """\
groupadd --system hsm
for token in firma pki; do
  install -d -g hsm -m 2770 /var/lib/hsm /var/lib/hsm/$token
  (umask 077; echo pin-of-$token >/root/$token.pin)
  certutil -N -d sql:/var/lib/hsm/$token -f /root/$token.pin
done
chmod -R g+rwX /var/lib/hsm
"""
"""What the maker's manual says: a group, two tokens and two PINs."""
_PARAMS: Final = (
    "configdir='' certPrefix='' keyPrefix='' secmod='' flags=noCertDB,noModDB tokens=<"
    "0x4=[configDir='sql:/var/lib/hsm/firma' tokenDescription='firma'] "
    "0x5=[configDir='sql:/var/lib/hsm/pki' tokenDescription='pki']>"
)
_DROP_IN: Final = "/etc/systemd/system/rubrica-signing@.service.d/override.conf"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Booted]:
    """A machine with the package and what the maker's manual brings."""
    package = built(tmp_path)
    (tmp_path / "machine").mkdir()
    with debian_with(tmp_path / "machine", package, (*PARTS, *_NSS)) as booted:
        library = next((booted.root / "usr/lib").glob("*/libsoftokn3.so"))
        variables = {
            "PKCS11_SHIM_MODULE": f"/{library.relative_to(booted.root)}",
            "PKCS11_SHIM_PARAMS": _PARAMS,
        }
        place = booted.root / _MODULE.lstrip("/")
        place.parent.mkdir()
        shutil.copy(build(tmp_path, variables), place)
        # As a package's are: those of the tests are nobody else's.
        for each in (place, place.parent):
            each.chmod(0o755)
        booted.run(f"{_INSTALL} /tmp/{package.name}")
        booted.run(_MAKERS)
        yield booted


def test_another_hsm_signs(machine: Booted) -> None:
    """Tokens, PINs and way are given; setup ends with a document that it signed."""
    told = ANSWERS + f'hsm_profile = "nss-softokn"\nhsm_module = "{_MODULE}"\n'
    (machine.root / "root/answers.toml").write_text(told)
    setup = "cd /root && rubrica setup --answers answers.toml"

    run_block(
        "installing.md",
        "Another HSM than SoftHSM",
        0,
        machine.run,
        ("GROUP", "hsm"),
        ("PIN-OF-FIRMA", "/root/firma.pin"),
        ("PIN-OF-PKI", "/root/pki.pin"),
    )
    machine.run(
        f"install -D -m 644 /dev/stdin {_DROP_IN}"
        " <<<$'[Service]\\nReadWritePaths=/var/lib/hsm'; systemctl daemon-reload"
    )
    signed = machine.run(setup).stdout

    assert "signed through the API" in signed
    assert "valid" in signed
    assert "AMISS" not in machine.run("rubrica doctor --deep").stdout
    assert not list((machine.root / "var/lib/rubrica/tokens").glob("*/*.object"))

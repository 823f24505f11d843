"""Which process has what: the cut between roles, read from the kernel.

Source: design §1, "must never touch".
"""

from pathlib import Path

import psutil
import pytest

from tests import pdfs
from tests.parts.appliance import Appliance, TestPerson

MODULE = "libsofthsm2"
PINS = ("firma.pin", "pki.pin")


def _maps(process: psutil.Process) -> str:
    return Path(f"/proc/{process.pid}/maps").read_text()


def _open_files(process: psutil.Process) -> set[str]:
    """Every open file, socket and pipe by its name."""
    return {str(path.readlink()) for path in Path(f"/proc/{process.pid}/fd").iterdir()}


def _under(appliance: Appliance, files: set[str]) -> set[str]:
    """Those in the appliance's folder, relative to it."""
    folder = f"{appliance.folder.resolve()}/"
    return {name.removeprefix(folder) for name in files if name.startswith(folder)}


@pytest.mark.parametrize("role", ["api", "chores", "sandbox"])
def test_role_has_no_hsm(appliance: Appliance, signer: TestPerson, role: str) -> None:
    """No PKCS#11 module mapped, no PIN file and no token's file open."""
    assert signer.id
    (process, *_) = appliance.children(role)

    assert MODULE not in _maps(process)
    held = _under(appliance, _open_files(process))
    assert not [name for name in held if name.startswith(("hsm/", "secrets/"))]


def test_signing_worker_has_the_hsm_and_no_listener(
    appliance: Appliance, signer: TestPerson
) -> None:
    """The module is mapped there; the PIN files were read and closed."""
    assert signer.id
    workers = appliance.children("signing")

    assert len(workers) == 2
    for process in workers:
        assert MODULE in _maps(process)
        held = _under(appliance, _open_files(process))
        assert not [name for name in held if name.endswith(PINS)]
        listening = [
            c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN
        ]
        assert listening == []


def test_sandbox_has_no_record(appliance: Appliance) -> None:
    """Neither database nor documents nor Redis are open in the sandbox."""
    (process,) = appliance.children("sandbox")

    held = _under(appliance, _open_files(process))
    assert not [
        name for name in held if name.startswith(("rubrica.db", "documents", "redis"))
    ]
    assert process.net_connections("inet") == []


def test_secret_in_no_environment_or_command_line(
    appliance: Appliance, signer: TestPerson
) -> None:
    """What `ps` and /proc show of any role says no secret."""
    assert signer.id
    files = (appliance.folder / "secrets").iterdir()
    secrets = {path.read_text().strip() for path in files} | appliance.secrets
    supervisor = psutil.Process(appliance.pid)

    for process in [supervisor, *supervisor.children(recursive=True)]:
        shown = " ".join([*process.cmdline(), *process.environ().values()])
        assert not [secret for secret in secrets if secret in shown]


def test_files_are_closed_to_others(appliance: Appliance, signer: TestPerson) -> None:
    """Secrets and tokens are their owner's; documents and record no stranger's.

    It does not take a closed data folder: an operator may have made that.
    """
    appliance.new_request(signer, pdfs.one_page())
    folder = appliance.folder
    secret = [*(folder / "secrets").rglob("*"), folder / "secrets"]
    private = [folder / "hsm" / "tokens", folder / "run", folder / "redis"]
    shared = [folder / "documents", *folder.glob("rubrica.db*")]

    assert len(secret) >= 6
    assert len(shared) >= 2
    assert {
        path.name for path in secret + private if path.stat().st_mode & 0o077
    } == set()
    assert {path.name for path in shared if path.stat().st_mode & 0o007} == set()

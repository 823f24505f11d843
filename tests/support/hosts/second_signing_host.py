"""A second signing host beside an appliance: one worker under another host name.

    with second_signing_host(appliance) as worker:
        worker.suspend()

It shares database, documents, sandbox and tokens with the appliance. Name, host key,
activation keys and journal are its own. Needs root, for the name, and PostgreSQL.
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from appliance.database import tables
from appliance.domain.signing.hsm_tasks import slot_host
from appliance.secrets.admitted_hosts import admit
from appliance.secrets.host_key import make_host_key
from appliance.settings import Settings, load_settings
from tests.support.appliance.appliance import Appliance
from tests.support.faults.fault_injection import until
from tests.support.faults.theft import read_rows
from tests.support.installation.settings import merged, toml
from tests.support.processes.rubrica import command_line

SECOND: Final = "second-host"
"""Its name."""
_END_S: Final = 60
_NAMED: Final = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', SECOND)


def can_name_hosts() -> bool:
    """Return whether this user may run a process under another host name."""
    return os.geteuid() == 0 and shutil.which("unshare") is not None


@contextmanager
def second_signing_host(appliance: Appliance) -> Iterator[psutil.Process]:
    """Run the host's signing worker, admitted by the appliance's fronts.

    Args:
        appliance: on PostgreSQL, up.
    """
    settings_file = _settings_file(appliance)
    settings = load_settings(settings_file)
    key, _ = make_host_key(settings.host_key_file)
    admit(appliance.settings.signing_hosts_file, SECOND, key.public)
    log = appliance.folder / f"{SECOND}.log"
    words = ("--settings", str(settings_file), "worker", "signing", "--slot", "1")
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_NAMED, *command_line(*words)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: _is_ready(appliance, process, log))
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait(_END_S)
        _remove_keys(settings)


def _settings_file(appliance: Appliance) -> Path:
    """Write its settings: the appliance's, but for what each host has of its own."""
    own = appliance.settings
    folder = appliance.folder / SECOND
    (folder / "run").mkdir(parents=True, mode=0o700)
    shutil.copytree(own.data_dir / "pki", folder / "pki")
    file = appliance.folder / f"{SECOND}.toml"
    tables_of_own = {
        "data_dir": str(folder),
        "run_dir": str(folder / "run"),
        "documents": {"path": str(own.documents_dir)},
        "sandbox": {"socket": str(own.sandbox_socket)},
    }
    usual = tomllib.loads(appliance.settings_file.read_text("utf-8"))
    file.write_text(toml(merged(usual, tables_of_own)))
    return file


def _is_ready(
    appliance: Appliance, process: subprocess.Popen[bytes], log: Path
) -> bool:
    """Return whether its worker says that it has its HSM."""
    assert process.poll() is None, log.read_text("utf-8", "replace")[-4000:]
    return any(
        slot_host(row.slot) == SECOND and row.hsm == "ready"
        for row in read_rows(appliance, tables.worker_status)
    )


def _remove_keys(settings: Settings) -> None:
    """Remove its activation keys, which outlive workers on purpose."""
    shutil.rmtree(settings.activation_dir, ignore_errors=True)

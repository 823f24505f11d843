"""Which process has what: the cut between roles, read from the kernel.

Source: design §1, "must never touch".
"""

import re
import socket
import time
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import psutil
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.processes.proc import open_files, status

MODULE = "libsofthsm2"
WITHOUT_HSM = ("api", "embed", "admin", "metrics", "chores", "sandbox")
FACES = ("api", "embed", "admin")
READERS = {
    "pepper": ("api", "embed"),
    "data-key": (*FACES, "chores"),
    "lookup-key": FACES,
    "document-key": (*FACES, "chores", "signing-1", "signing-2"),
}
"""Design §1 and §4: the others must never touch it."""
_READY_S = 60.0


def _maps(process: psutil.Process) -> str:
    return Path(f"/proc/{process.pid}/maps").read_text()


def _held(appliance: Appliance, process: psutil.Process) -> set[str]:
    """What is open of the appliance's folder, relative to it."""
    folder = f"{appliance.folder.resolve()}/"
    files = open_files(process.pid)
    return {name.removeprefix(folder) for name in files if name.startswith(folder)}


def _listening(process: psutil.Process) -> set[int]:
    """Ports that a process could accept connections on."""
    tcp = process.net_connections("tcp")
    return {each.laddr.port for each in tcp if each.status == psutil.CONN_LISTEN}


def _remembered(process: psutil.Process, *secrets: bytes) -> set[bytes]:
    """Which of these a process has anywhere in its memory, which is read once.

    Skips the test where the machine lets nobody look.
    """
    try:
        with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as memory:
            found: set[bytes] = set()
            return found.union(*_in_each_region(process, memory, secrets))
    except PermissionError:
        pytest.skip("this machine lets nobody read another process's memory")


def _in_each_region(
    process: psutil.Process, memory: BinaryIO | RawIOBase, secrets: tuple[bytes, ...]
) -> Iterator[set[bytes]]:
    """Which of the secrets are there, for each region that can be written."""
    for line in _maps(process).splitlines():
        place, rights, *_ = line.split()
        if not rights.startswith("rw") or line.endswith("[vvar]"):
            continue
        begin, end = (int(number, 16) for number in place.split("-"))
        memory.seek(begin)
        try:
            content = memory.read(end - begin) or b""
        except OSError:
            continue  # unmapped meanwhile
        yield {secret for secret in secrets if secret in content}


def _secret(appliance: Appliance, name: str) -> bytes:
    return (appliance.folder / "secrets" / name).read_text().strip().encode()


def test_every_role_is_looked_at(appliance: Appliance) -> None:
    """A role that nobody thought of here would be found by nobody."""
    known = {*WITHOUT_HSM, "signing-1", "signing-2", "redis"}

    started = re.findall(r"role\.started.* name=(\S+)", appliance.log.read_text())
    assert set(started) == known


@pytest.mark.parametrize("role", WITHOUT_HSM)
def test_role_has_no_hsm(appliance: Appliance, signer: TestPerson, role: str) -> None:
    """No PKCS#11 module mapped, no PIN file or token's file open, no PIN known."""
    assert signer.id
    (process, *_) = appliance.children(role)

    assert MODULE not in _maps(process)
    held = _held(appliance, process)
    assert not [name for name in held if name.startswith(("hsm", "secrets"))]
    pins = [_secret(appliance, name) for name in ("firma.pin", "pki.pin")]
    assert _remembered(process, *pins) == set()


def test_signing_workers_alone_have_the_hsm_and_no_listener(
    appliance: Appliance, signer: TestPerson
) -> None:
    """The module is mapped there and nowhere else; the PIN files were closed."""
    assert signer.id
    workers = appliance.children("signing")

    assert len(workers) == 2
    everyone = [psutil.Process(appliance.pid), *appliance.children("")]
    assert {each.pid for each in everyone if MODULE in _maps(each)} == {
        worker.pid for worker in workers
    }
    for process in workers:
        held = _held(appliance, process)
        assert not [name for name in held if name.startswith("secrets")]
        assert _listening(process) == set()


@pytest.mark.parametrize("role", FACES)
def test_face_has_its_own_listener_alone(appliance: Appliance, role: str) -> None:
    """Listeners of other faces, bound by the same parent, were closed."""
    (process,) = appliance.children(role)
    addresses = {
        "api": appliance.base_url,
        "embed": appliance.iframe_url,
        "admin": appliance.admin_url,
    }

    assert _listening(process) == {urlsplit(addresses[role]).port}


@pytest.mark.parametrize("role", [*WITHOUT_HSM, "signing-1", "signing-2"])
def test_secret_is_known_where_it_is_needed(
    appliance: Appliance, signer: TestPerson, role: str
) -> None:
    """The pepper not in the console, the data key not in the workers, and so on."""
    assert signer.id
    (process,) = appliance.children(role)
    texts = {name: _secret(appliance, name) for name in READERS}

    forms = {name: {t, bytes.fromhex(t.decode())} for name, t in texts.items()}
    found = _remembered(process, *(form for each in forms.values() for form in each))
    known = {name for name, each in forms.items() if each & found}
    assert known == {name for name, roles in READERS.items() if role in roles}


def test_workers_sign_where_the_data_key_is_not(
    sqlite_appliance: Appliance, people: list[TestPerson]
) -> None:
    """All started anew while its file is away, they read and write documents."""
    appliance, signer = sqlite_appliance, people[0]
    request = appliance.new_request(signer, pdfs.one_page())
    data_key = appliance.settings.secrets.data_key_file
    with appliance.client(signer) as client:
        away = data_key.rename(data_key.with_name("away"))
        try:
            for worker in appliance.children("signing"):
                worker.kill()
                worker.wait(_READY_S)
            answer = client.post(
                "/solicitudes/firmar",
                json={"solicitudId": request, "password": signer.signing_password},
            )
        finally:
            away.rename(data_key)
        shown = client.get(f"/solicitudes/{request}").json()

    assert answer.status_code == 200, answer.text
    assert shown["estado"] == "firmada"


def test_supervisor_knows_no_secret(appliance: Appliance) -> None:
    """What the parent of all roles never read, none of them inherits."""
    supervisor = psutil.Process(appliance.pid)
    written = [
        path.read_text().strip().encode()
        for path in (appliance.folder / "secrets").iterdir()
    ]

    assert len(written) >= 5
    assert _remembered(supervisor, *written) == set()


def test_sandbox_has_no_record(appliance: Appliance) -> None:
    """Neither database nor documents nor Redis are open in the sandbox."""
    (process,) = appliance.children("sandbox")

    held = _held(appliance, process)
    assert not [
        name for name in held if name.startswith(("rubrica.db", "documents", "redis"))
    ]
    assert process.net_connections("inet") == []


def test_sandbox_job_is_confined_before_its_request(appliance: Appliance) -> None:
    """Each child of the sandbox: filtered, no new privileges, one connection.

    What it then cannot do is tried in `test_sandbox_confinement`.
    """
    (sandbox,) = appliance.children("sandbox")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(appliance.settings.sandbox_socket))
        job = _new_job(sandbox)
        confined, files = status(job), open_files(job)

    assert (confined["Seccomp"], confined["NoNewPrivs"]) == ("2", "1")
    assert int(confined["Seccomp_filters"]) > int(
        status(sandbox.pid)["Seccomp_filters"]
    )
    assert confined["CapEff"] == "0" * 16
    *nulls, request = files
    assert nulls == ["/dev/null"] * 3
    assert request.startswith("socket:")


def _new_job(sandbox: psutil.Process) -> int:
    """The job of the client that just came, when it has nothing more to give up."""
    deadline = time.monotonic() + _READY_S
    template = status(sandbox.pid)["Seccomp_filters"]
    while time.monotonic() < deadline:
        for job in sandbox.children():
            try:
                if status(job.pid)["Seccomp_filters"] != template:
                    return job.pid
            except FileNotFoundError:
                continue  # of a client before us
        time.sleep(0.02)
    pytest.fail("no confined job")


def test_secret_in_no_environment_or_command_line(
    appliance: Appliance, signer: TestPerson
) -> None:
    """What `ps` and /proc show of any role says no secret."""
    assert signer.id
    files = (appliance.folder / "secrets").iterdir()
    secrets = {path.read_text().strip() for path in files} | appliance.secrets

    for process in [psutil.Process(appliance.pid), *appliance.children("")]:
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

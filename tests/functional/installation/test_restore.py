"""A machine is lost; another one takes its place, by the manual's lines.

The backup is made while people sign. What survives of the machine is the backup, and
the folder of documents, as on a disk of its own; the HSM's tokens are in the backup.

Source: docs/backup.md.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.support.appliance.manual import run_block, run_lines
from tests.support.documents.validators import (
    pdfsig,
    pyhanko_verdicts,
    signature_values,
)
from tests.support.faults.fault_injection import until
from tests.support.hosts.booted_machine import Booted, can_boot
from tests.support.hosts.debian_packages import built, debian_with
from tests.support.hosts.machine_load import (
    ANSWERS,
    API,
    PARTS,
    Load,
    assert_each_signed_once,
    key_uses,
    prepared,
    root_of,
)
from tests.support.patience import CALL_S

_INSTALL: Final = "DEBIAN_FRONTEND=noninteractive apt-get install --yes 2>&1"
_PACKAGES: Final = (*PARTS, "age", "postgresql-client")
_BACKUP: Final = """
mkdir -p /backup/record /elsewhere/secrets
age-keygen -o /root/rubrica-backup.key 2>/dev/null
rubrica backup --to /backup/record --secrets-to /elsewhere/secrets \\
  --recipient "$(age-keygen -y /root/rubrica-backup.key)" --keep 30
"""
_OTHERS: Final = "for n in $(seq 20); do useradd --system --user-group other$n; done"
"""Users that an operator's machine has already: ours get other numbers there."""
_NUMBERS: Final = (
    "getent passwd | grep ^rubrica- | cut -d : -f 1,3;"
    "getent group | grep ^rubrica | sed s/^/group-/ | cut -d : -f 1,3"
)
_REQUESTS: Final = 300
_STATES: Final = "SELECT state, count(*) FROM signature_request GROUP BY state"
_SIGNED: Final = "SELECT id FROM signature_request WHERE state = 'firmada'"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not can_boot(), reason="it takes root, mmdebstrap and systemd-container"
    ),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this checkout."""
    return built(tmp_path_factory.mktemp("deb"))


@pytest.fixture
def first(package: Path, tmp_path: Path) -> Iterator[Booted]:
    """A machine with an installation."""
    folder = tmp_path / "first"
    folder.mkdir()
    with debian_with(folder, package, _PACKAGES) as machine:
        (machine.root / "root/answers.toml").write_text(ANSWERS)
        machine.run(f"{_INSTALL} /tmp/{package.name}")
        machine.run("cd /root && rubrica setup --answers answers.toml")
        yield machine


@pytest.fixture
def second(package: Path, tmp_path: Path) -> Iterator[Booted]:
    """A machine with the package and nothing else of ours, where users are others."""
    folder = tmp_path / "second"
    folder.mkdir()
    with debian_with(folder, package, _PACKAGES) as machine:
        machine.run(_OTHERS)
        machine.run(f"{_INSTALL} /tmp/{package.name}")
        yield machine


def carry(first: Booted, second: Booted) -> None:
    """What survives: both backups, the key, and the documents."""
    for there, here in (
        ("backup/record", "root/record"),
        ("elsewhere/secrets", "root/secrets"),
    ):
        shutil.copytree(first.root / there, second.root / here)
    shutil.copy(first.root / "root/rubrica-backup.key", second.root / "root")
    shutil.copytree(
        first.root / "var/lib/rubrica/documents",
        second.root / "root/documents",
    )


def test_another_machine_takes_its_place(first: Booted, second: Booted) -> None:
    """All that was signed is there and valid; what the dump lacks is found, once."""
    load = prepared(first, _REQUESTS)
    with load.calling():
        first.run(_BACKUP)
        # Some more are signed after the dump.
        done = len(load.answers)
        until(lambda: len(load.answers) >= done + 10)
    assert_each_signed_once(load, 10)
    first.run("systemctl stop rubrica.target")
    assert_numbers_differ(first, second)
    carry(first, second)

    second.run("cp -a /root/documents/. /var/lib/rubrica/documents/")
    second.run("chown -R root:rubrica /var/lib/rubrica/documents")
    refused = _restored(second, check=False)
    assert refused.returncode == 78
    assert "rubrica database roles" in refused.stderr
    assert "Traceback" not in refused.stderr
    run_block("backup.md", "Bring it back", 1, second.run)
    restored = _restored(second).stdout
    active = "systemctl list-units --no-legend --state=active 'rubrica*'"

    def run(line: str) -> str:
        if line == "rubrica hsm take-over":
            assert second.run(active).stdout == ""
            # Before anybody signs there: setup and doctor make a sample each.
            assert _states(second) == _states(first)
        return second.run(line).stdout

    said = run_lines("backup.md", "Bring it back", 2, run)
    written, recovered = (
        said[f"rubrica {each}"] for each in ("setup --no-start", "documents recover")
    )
    told = said["rubrica doctor --deep"]
    assert "nothing was started" in written
    assert "all whole" in said["rubrica audit verify"]

    print(restored, recovered, told)  # noqa: T201 (the figures that -rP shows)
    assert "AMISS" not in told
    found = int(recovered.splitlines()[-1].split()[0])
    assert found >= 10
    ready = second.within(lambda: httpx.get(f"{API}/readyz", timeout=CALL_S))
    assert ready.status_code == httpx.codes.OK
    again = prepared(second, 60)
    assert_all_there(load, again, found)
    with again.calling():
        until(lambda: len(again.answers) >= 50)
    assert_each_signed_once(again, 50)
    assert signers(load) == signers(again)


def assert_numbers_differ(first: Booted, second: Booted) -> None:
    """No user and no group of ours has the same number on both."""
    there, here = (
        dict(line.split(":") for line in machine.run(_NUMBERS).stdout.split())
        for machine in (first, second)
    )
    assert there.keys() == here.keys()
    assert {"rubrica-api", "rubrica-signing", "group-rubrica"} <= there.keys()
    assert not [name for name, number in there.items() if here[name] == number]


def assert_all_there(lost: Load, again: Load, found: int) -> None:
    """Each document is one that a signer was given, valid, and not signed once more.

    Args:
        lost: on the machine that was lost.
        again: of the same signers, on the one that took its place.
        found: how many requests were signed after the dump.
    """
    machine, root = again.machine, root_of(again.machine)
    given = {request: f.result()[1] for request, f in lost.answers.items()}
    uses = key_uses(machine)
    # Of one in hand at the dump, the use may be on the record and the document not.
    assert 10 <= len([request for request in given if request not in uses]) <= found

    again.turns |= lost.turns
    documents = again.fetch(signed_requests(machine))

    for request, document in documents.items():
        assert pdfsig(document)[0].valid, request
        verdicts = pyhanko_verdicts(document, [root])
        assert [each.good for each in verdicts] == [True], request
    # Those of setup's own samples besides, on either machine.
    assert len(documents) >= len(given) + 2
    print(f"{len(documents)} documents, {found} of them found")  # noqa: T201 (-rP)
    restored = values_of({each: documents[each] for each in given})
    # All are requests for one document: which had which signature, nothing tells.
    assert sorted(restored.values()) == sorted(values_of(given).values())
    answers = again.sign_again(given)
    assert key_uses(machine) == uses
    assert values_of(again.fetch(given)) == restored
    assert {status for status, _ in answers.values()} <= {
        httpx.codes.OK,
        httpx.codes.CONFLICT,
    }


def signed_requests(machine: Booted) -> list[int]:
    """Every request that the record calls signed."""
    told = machine.run(f'runuser -u postgres -- psql -qAt rubrica -c "{_SIGNED}"')
    return [int(line) for line in told.stdout.split()]


def values_of(documents: dict[int, bytes]) -> dict[int, list[bytes]]:
    """Values of the signatures of each document."""
    return {
        request: signature_values(document) for request, document in documents.items()
    }


def signers(load: Load) -> set[bytes]:
    """Certificates that a load's documents are signed with, in DER."""
    root = root_of(load.machine)
    documents = [answer.result()[1] for answer in load.answers.values()]
    return {
        verdict.signer.dump()
        for document in documents
        for verdict in pyhanko_verdicts(document, [root])
    }


def _restored(
    machine: Booted, *, check: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Run the manual's line, on what was carried there."""
    return run_block(
        "backup.md",
        "Bring it back",
        0,
        lambda line: machine.run(line, check=check),
        ("rubrica-ID-TIME.tar.age", "/root/record/*.tar.age"),
        ("rubrica-secrets-ID-TIME.tar.age", "/root/secrets/*.tar.age"),
        ("rubrica-backup.key", "/root/rubrica-backup.key"),
    )


def _states(machine: Booted) -> dict[str, str]:
    """How many requests are in each state."""
    told = machine.run(f'runuser -u postgres -- psql -qAt rubrica -c "{_STATES}"')
    return dict(line.split("|") for line in told.stdout.split())

"""Ten thousand credentials, three of them altered, and an upgrade while people sign.

The tree before signing hosts had keys of their own makes the installation, on SQLite
and on PostgreSQL. This tree migrates it and takes its signing host over, role by role.
A front of the tree before runs beside it, on another host, until the upgrade is closed.

Source: docs/running.md "Closing an upgrade"; docs/keys.md "Whose key it is".
"""

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest

from appliance.domain.vocab import StatementFault
from tests.functional.installation.test_documents_of_earlier_tree import certificate_in
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import until
from tests.support.faults.retrying_callers import BROKEN, word_of
from tests.support.hosts.earlier_tree import Tree, before_host_keys
from tests.support.hosts.many_credentials import copied, make
from tests.support.hosts.tree_roles import API, TreeRoles, can_name_hosts
from tests.support.hosts.upgraded_roles import NOW, Asked, Upgrade
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

_CREDENTIALS: Final = 10_000
_SAMPLE: Final = 100
_VALIDATED: Final = 20
_PASSING: Final = {
    "200",
    "202",
    "429 OVERLOADED",
    "503 ACTIVATION_EXPIRED",
    "503 HSM_UNAVAILABLE",
    "503 OVERLOADED",
    "503 STORE_UNAVAILABLE",
    BROKEN,
}
"""Answers of an upgrade: signed, or asked to come again."""
_MADE: Final = "RUBRICA_TEST_CREDENTIALS"
"""Folder that keeps what the earlier tree made, which takes its time."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_name_hosts(), reason="it takes root"),
]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The release before."""
    return Tree.committed(tmp_path_factory.mktemp("tree"), before_host_keys())


@pytest.fixture(scope="module")
def made(earlier: Tree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation of the release before, on SQLite and stopped."""
    if kept := os.environ.get(_MADE):
        return Path(kept)
    folder = tmp_path_factory.mktemp("made")
    begun = time.monotonic()
    make(folder, earlier, _CREDENTIALS)
    _say(f"{_CREDENTIALS} credentials made in {time.monotonic() - begun:.0f} s")
    return folder


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def upgrade(
    request: pytest.FixtureRequest,
    earlier: Tree,
    made: Path,
    postgres_server: PostgresServer,
) -> Iterator[Upgrade]:
    """Upgraded under load, and not closed; three credentials were altered before."""
    database = None
    if request.param == "postgresql":
        database = postgres_server.url(postgres_server.create_database())
    with short_folder() as folder:
        site, people = copied(made, earlier, folder, database)
        with TreeRoles.of(site) as roles:
            upgraded = Upgrade.prepared(roles, earlier, people)
            upgraded.plant()
            upgraded.under_load()
            yield upgraded


def _say(line: str) -> None:
    print(line)  # noqa: T201 (the figures that -rP shows)


def asked_of(upgrade: Upgrade, credential: str) -> Asked:
    """A document that waits for the owner of a credential."""
    (person,) = (one for one in upgrade.people if one.credential == credential)
    (asked,) = upgrade.ask(NOW, [person])
    return asked


def assert_valid(upgrade: Upgrade, signed: list[Asked]) -> None:
    """Two validators like each document."""
    root = certificate_in(upgrade.own.site.folder / "pki/root.pem")
    for one in signed:
        content = upgrade.document(one)
        assert [each.valid for each in pdfsig(content)[:1]] == [True]
        assert pyhanko_valid(content, [root])


def test_load_lost_nothing(upgrade: Upgrade) -> None:
    """Each call ended in one signature, some after a repeat that was asked for."""
    load = upgrade.load
    _say(
        f"{len(load.wishes)} signatures, migrated in {upgrade.migration_s:.1f} s, "
        f"longest wait {load.longest_wait_s:.1f} s: {dict(load.answers)}"
    )

    assert load.waiting == 0
    assert set(load.answers) <= _PASSING
    assert {wish.answers[-1] for wish in load.wishes} == {"200"}
    for wish in load.wishes:
        assert "request.signed" in upgrade.audited(wish.request)


def test_fronts_of_both_releases_sign(upgrade: Upgrade) -> None:
    """Side by side, by the workers of this one."""
    for host in upgrade.fronts:
        asked = upgrade.ask(NOW, upgrade.sample(4, seed=1))
        answers = upgrade.sign_all(host, asked)

        assert [word_of(answer) for answer in answers] == ["200"] * len(asked)
        assert_valid(upgrade, asked)


def test_altered_credentials_are_named_and_no_others(upgrade: Upgrade) -> None:
    """By both commands, which read every credential, and not the token."""
    told_of = {
        credential: fault
        for credential, fault in upgrade.planted.items()
        if fault != StatementFault.RESIDENT
    }
    begun = time.monotonic()
    checked = upgrade.own.site.run(NOW, "certificate", "check", status=1)
    middle = time.monotonic()
    # The front of the release before stands in the way; the credentials do not.
    told = upgrade.own.site.run(NOW, "upgrade", status=1)
    end = time.monotonic()
    _say(
        f"{len(upgrade.people)} credentials: certificate check {middle - begun:.1f} s, "
        f"upgrade {end - middle:.1f} s"
    )

    rows = re.findall(r"^([0-9a-f-]{36}) .* (\S+)$", checked, re.MULTILINE)
    assert dict(rows) == told_of
    lines = told.splitlines()
    named = [line for line in lines if line.startswith("credential ")]
    assert len(named) == len(told_of)
    for credential, fault in told_of.items():
        assert any(credential in line and fault in line for line in named)
    (other,) = (line for line in lines if line not in named)
    assert other.startswith("api/front-b/1: runs the release before -> on front-b: ")


def test_altered_credentials_sign_nothing(upgrade: Upgrade) -> None:
    """Whichever front is asked; the audit says which check failed.

    That of a resident key is made at the token, so the intended use is recorded.
    """
    for host in upgrade.fronts:
        for credential, fault in upgrade.planted.items():
            asked = asked_of(upgrade, credential)

            answer = upgrade.sign(host, asked)

            assert word_of(answer) == "409 CERTIFICATE_NOT_USABLE"
            told = upgrade.audited(asked.request)
            back = told["request.returned"]
            assert (back["reason"], back["layer"]) == ("CERTIFICATE_NOT_USABLE", fault)
            assert "key.used" not in told


def test_others_sign(upgrade: Upgrade) -> None:
    """A sample of them, whose seed is shown; some documents are validated."""
    seed = secrets.randbits(32)
    _say(f"sample of seed {seed}")
    asked = upgrade.ask(NOW, upgrade.sample(_SAMPLE, seed))
    begun = time.monotonic()

    answers = upgrade.sign_all(upgrade.own, asked)

    _say(f"{len(asked)} signatures in {time.monotonic() - begun:.1f} s")
    assert {word_of(answer) for answer in answers} == {"200"}
    assert_valid(upgrade, asked[:_VALIDATED])


def test_front_of_the_release_before_signs_until_the_upgrade_is_closed(
    upgrade: Upgrade,
) -> None:
    """It keeps the close away while it runs, and signs nothing when it comes back."""
    site, other = upgrade.own.site, upgrade.other
    refused = site.run(NOW, "upgrade", "--close", status=1)
    before, after, beside = upgrade.ask(NOW, upgrade.sample(3, seed=2))
    signed = upgrade.sign(other, before)

    other.stop(API)
    until(lambda: closes(upgrade), 120)
    site.run(NOW, "migrate")
    other.start(upgrade.earlier, API)
    in_vain = upgrade.sign(other, after)
    again = upgrade.sign_all(upgrade.own, [after, beside])

    assert "api/front-b/1: runs the release before" in refused
    assert "not closed" in refused
    assert word_of(signed) == "200"
    assert word_of(in_vain) in {"503 ACTIVATION_EXPIRED", "503 HSM_UNAVAILABLE"}
    assert [word_of(answer) for answer in again] == ["200", "200"]
    assert_valid(upgrade, [before, after, beside])


def closes(upgrade: Upgrade) -> bool:
    """Return whether the upgrade is closed, and try to close it."""
    file = upgrade.own.site.folder / "pki/activation-format"
    if not file.exists():
        upgrade.own.site.done(NOW, "upgrade", "--close")
    return file.exists()


def test_audit_explains_all_but_what_was_altered(upgrade: Upgrade) -> None:
    """Chains hold; the one certificate of another key is the one finding."""
    site = upgrade.own.site
    (foreign,) = (
        credential
        for credential, fault in upgrade.planted.items()
        if fault == "certificate-key"
    )

    chains = site.run(NOW, "audit", "verify", "--chains-only")
    begun = time.monotonic()
    told = site.run(NOW, "audit", "reconcile", "--json", status=1)
    _say(f"audit reconcile {time.monotonic() - begun:.1f} s")

    assert "broken" not in chains
    *findings, counts = map(json.loads, told.splitlines())
    assert [each["credential"] for each in findings] == [foreign]
    assert counts["findings"] == 1
    assert counts["people"] >= len(upgrade.people)


def test_hosts_end_well(upgrade: Upgrade) -> None:
    """No role of either release wrote an exception into its log."""
    for host in upgrade.fronts:
        assert "Traceback" not in host.log
    url = f"{upgrade.own.api}/readyz"
    assert httpx.get(url, timeout=60).status_code == httpx.codes.OK

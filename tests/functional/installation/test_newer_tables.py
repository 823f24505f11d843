"""Roles of this version on tables of a newer one, as while a package is upgraded."""

from collections.abc import Iterator

import httpx
import pytest

from appliance.database.migrate import migrate
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import signed_pdf
from tests.support.documents import pdfs
from tests.support.hosts.next_version import LATER, NEXT, NOW, next_versions
from tests.support.installation.installation import Installation
from tests.support.patience import CALL_S
from tests.support.processes.event_loops import run_apart
from tests.support.processes.rubrica import run_rubrica
from tests.support.processes.scratch import short_folder

USABLE = {NEXT: NOW}
NOT_USABLE = USABLE | {LATER: NEXT}


@pytest.fixture(params=["sqlite", "postgresql"])
def own(request: pytest.FixtureRequest) -> Iterator[Appliance]:
    """An appliance of the test's own, whose tables it may spoil."""
    url = "sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    with short_folder() as folder, Installation(folder, url).whole() as running:
        yield running


def migrate_to(appliance: Appliance, oldest: dict[str, str]) -> None:
    """Bring the tables to a version that is still to come."""
    with next_versions(appliance.folder, oldest):
        run_apart(migrate(appliance.settings))


def signs(appliance: Appliance) -> bool:
    """Whether somebody who is enrolled now can sign."""
    person = appliance.new_person()
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client(person) as client:
        return b"/ByteRange" in signed_pdf(client, person, request)


def may_go_back(appliance: Appliance, knows: str) -> tuple[int, str]:
    """What a package asks before an earlier version is gone back to: status, words."""
    done = appliance.rubrica("database", "check", "--knows", knows)
    return done.returncode, done.stdout


def told_of(version: str, knows: str) -> str:
    """What is told of tables that may be used."""
    return f"tables of version {version}, which one that knows {knows} may use\n"


@pytest.mark.full
def test_tables_of_the_next_version(own: Appliance) -> None:
    """Usable ones are worked on, before a restart and after; others are refused."""
    migrate_to(own, USABLE)

    assert signs(own)
    done = own.rubrica("migrate")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"tables: {NEXT}, of a newer Rúbrica than this one, which knows {NOW} and may "
        "use them; nothing was changed\n"
    )
    done = own.rubrica("database", "check")
    told = f"tables of version {NEXT}, which this one may use\n"
    assert (done.returncode, done.stdout) == (0, told)
    assert may_go_back(own, NOW) == (0, told_of(NEXT, NOW))
    own.stop()
    own.start()
    assert signs(own)

    migrate_to(own, NOT_USABLE)
    with httpx.Client(base_url=own.base_url, timeout=CALL_S) as client:
        while (answer := client.get("/readyz")).status_code == 200:
            pass  # what was found is told for a moment
    assert answer.json()["checks"]["database"] == "TABLES_TOO_NEW"
    own.stop()
    refusal = (
        f"database: its tables are of version {LATER}, for a Rúbrica that knows {NEXT} "
        f"at the least, and this one knows {NOW}: install the Rúbrica that made them, "
        "or a newer one"
    )
    for words in (
        ("migrate",),
        ("serve", "api"),
        ("serve", "embed"),
        ("serve", "admin"),
        ("worker", "signing", "--slot", "1"),
        ("worker", "chores"),
        ("person", "list"),
    ):
        done = run_rubrica("--settings", str(own.settings_file), *words, timeout=120)
        assert done.returncode == 78, (words, done.stderr)
        assert refusal in done.stderr
    done = own.rubrica("database", "check")
    assert (done.returncode, done.stdout) == (1, refusal + "\n")
    refusal = refusal.replace("this one knows", "that one knows")
    assert may_go_back(own, NOW) == (1, f"{refusal}\n")
    assert may_go_back(own, NEXT) == (0, told_of(LATER, NEXT))

"""Replacing the data key and the lookup key while the appliance runs.

By the operator's command in a process of its own, as in life; what runs beside
it reads the same key files and notices by itself.
"""

import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, new_id
from appliance.domain.vocab import EventKind, VouchedBy
from appliance.identity.login import email_indexes
from appliance.people.person_store import PersonStore
from appliance.record.secret_version_store import SEALED
from appliance.secrets.key_files import read_key_ring
from tests.support.installation.installation import Installation
from tests.support.installation.services import Services
from tests.support.processes.command_folder import CommandFolder, make_command_folder
from tests.support.processes.forked_process import Running

EMAIL = "maria@acme.example"


@dataclass
class ServedFolder(CommandFolder):
    """An installation's folder, and services that run beside the command."""

    services: Services

    def begin(self, *words: str) -> Running:
        """Start `rubrica secrets …`."""
        return super().begin("secrets", *words)

    async def versions(self) -> dict[str, set[int]]:
        """The versions that sealed values name, by column."""
        found: dict[str, set[int]] = {}
        engines = open_engines(self.services.settings)
        async with engines.reader.connect() as connection:
            for name, column in SEALED.items():
                rows = await connection.execute(select(column))
                values = {bytes(row[0])[0] for row in rows if row[0]}
                if values:
                    found[f"{name.table}.{name.column}"] = values
        await engines.dispose()
        return found

    async def email(self, person: PersonId) -> str:
        """A person's address, as what runs opens it."""
        async with self.services.store.read() as transaction:
            contact = await PersonStore(transaction).contact(person)
        assert contact is not None
        return self.services.sealer.open(
            contact.email_sealed, table="person", row=person, column="email_sealed"
        ).decode()

    async def found(self, email: str) -> bool:
        """Whether somebody is found by an address."""
        indexes = email_indexes(self.services.lookup, email)
        async with self.services.store.read() as transaction:
            return await PersonStore(transaction).by_email_index(indexes) is not None


@pytest.fixture
async def served_folder(tmp_path: Path, each_url: str) -> AsyncIterator[ServedFolder]:
    """A fresh installation with the integrator `acme`."""
    make_command_folder(tmp_path, each_url)
    async with Installation(tmp_path, each_url).services() as services:
        # The command is told the time by the machine.
        services.clock.at = SystemClock().now()
        await services.integrators.create("operator", "acme", "ACME S.A.")
        yield ServedFolder(tmp_path, services)


async def invite(
    served_folder: ServedFolder, email: str, cuil: str = "20055361682"
) -> PersonId:
    """Somebody with a sealed address, and a sealed seed in their link."""
    made = await served_folder.services.invitations.invite(
        "operator", cuil, "María", email, VouchedBy.OFFICER
    )
    return made.person


async def add_people(served_folder: ServedFolder, count: int) -> None:
    """So many persons, each with a sealed address that only they have."""
    rows = []
    for number in range(count):
        person, email = new_id(), f"p{number}@acme.example"
        sealed = served_folder.services.sealer.seal(
            email.encode(), table="person", row=person, column="email_sealed"
        )
        rows.append(
            {
                "id": person,
                "cuil": f"{number:011}",
                "name": "P",
                "email_sealed": sealed,
                "email_index": email_indexes(served_folder.services.lookup, email)[0],
                "locale": "es",
                "state": "invited",
                "vouched_by": "officer",
                "created": served_folder.services.clock.now(),
            }
        )
    engines = open_engines(served_folder.services.settings)
    async with engines.writer.begin() as connection:
        await connection.execute(insert(tables.person), rows)
    await engines.dispose()


def test_each_sealed_column_is_of_the_convention() -> None:
    """One primary key, by which its values are bound; none is left out."""
    assert {"person", "login_secret", "enrolment", "console_user", "jwt_key"} <= {
        column.table for column in SEALED
    }
    for column in SEALED.values():
        assert len(column.table.primary_key.columns) == 1


async def test_data_key_is_replaced_while_the_appliance_runs(
    served_folder: ServedFolder,
) -> None:
    """Values move to the new version, open all the while, and the old one goes."""
    person = await invite(served_folder, EMAIL)

    refused = served_folder.run("retire", "data", "1", status=1)
    said = served_folder.run("rotate", "data")

    assert "not one to retire" in refused
    assert "version 2 is in use" in said
    assert "2 values were brought to version 2" in said
    expected = {"person.email_sealed": {2}, "enrolment.totp_sealed": {2}}
    assert await served_folder.versions() == expected
    assert await served_folder.email(person) == EMAIL
    assert "retired" in served_folder.run("retire", "data", "1")
    assert set(read_key_ring(served_folder.folder / "data-key").keys) == {2}
    assert await served_folder.email(person) == EMAIL
    other = await invite(served_folder, "otra@acme.example", "20267565393")
    assert await served_folder.email(other) == "otra@acme.example"
    kinds = [EventKind.SECRET_ROTATED, EventKind.SECRET_APPLIED]
    for kind in (*kinds, EventKind.SECRET_RETIRED):
        assert len(await served_folder.services.audited(kind)) == 1


async def test_version_in_need_is_not_retired(served_folder: ServedFolder) -> None:
    """The record would hold what nobody can open."""
    await invite(served_folder, EMAIL)
    served_folder.run("prepare", "data")
    ring = read_key_ring(served_folder.folder / "data-key")

    assert (ring.present, ring.next) == (1, 2)
    assert "prepared already" in served_folder.run("prepare", "data")
    assert read_key_ring(served_folder.folder / "data-key") == ring
    served_folder.run("rotate", "lookup")
    await invite(served_folder, "otra@acme.example", "20267565393")
    table = served_folder.run("status")
    assert "data      1        in use  2 enrolment.totp_sealed, 2 person" in table
    assert "data      2        next    -" in table
    assert "lookup    1        known   1 enrolment.code_index" in table
    refused = served_folder.run("retire", "lookup", "1", status=1)
    assert "still needed by 1 enrolment.code_index" in refused


async def test_killed_rotation_is_gone_on_with(served_folder: ServedFolder) -> None:
    """Killed in the middle, twice; no further version is made."""
    await add_people(served_folder, 4_000)

    for _ in range(2):
        with served_folder.begin("rotate", "data") as process:
            assert process.stderr is not None
            process.stderr.readline()
            os.kill(process.pid, signal.SIGKILL)
    halfway = await served_folder.versions()
    said = served_folder.run("rotate", "data")

    assert halfway == {"person.email_sealed": {1, 2}}
    assert "going on with version 2" in said
    assert await served_folder.versions() == {"person.email_sealed": {2}}
    assert set(read_key_ring(served_folder.folder / "data-key").keys) == {1, 2}
    engines = open_engines(served_folder.services.settings)
    async with engines.reader.connect() as connection:
        count = select(func.count()).select_from(tables.person)
        assert (await connection.execute(count)).scalar_one() == 4_000
        ids = (await connection.execute(select(tables.person.c.id))).scalars().all()
    await engines.dispose()
    emails = {await served_folder.email(PersonId(each)) for each in ids[::100]}
    assert len(emails) == 40


async def test_lookup_key_is_replaced_and_nobody_is_lost(
    served_folder: ServedFolder,
) -> None:
    """Addresses are indexed anew, an API key when it is used, the rest expires."""
    await invite(served_folder, EMAIL)
    key = (
        await served_folder.services.integrators.create_key("operator", "acme", "b")
    ).secret
    session = await served_folder.services.sessions.open("acme", key)

    said = served_folder.run("rotate", "lookup")

    assert "1 values were brought to version 2" in said
    assert await served_folder.found(EMAIL)
    exchanged = await served_folder.services.sessions.exchange(session.token)
    assert exchanged.session.integrator.code == "acme"
    refused = served_folder.run("retire", "lookup", "1", status=1)
    assert "1 api_key.key_index" in refused
    assert "person.email_index" not in refused
    await served_folder.services.sessions.open("acme", key)
    again = served_folder.run("retire", "lookup", "1", status=1)
    assert "api_key.key_index" not in again


@pytest.mark.parametrize("step", ["prepare", "rotate"])
async def test_address_stays_one_persons_over_versions(
    served_folder: ServedFolder, step: str
) -> None:
    """The column's uniqueness alone would not see it."""
    await invite(served_folder, EMAIL)
    served_folder.run(step, "lookup")

    with pytest.raises(ApplianceError) as caught:
        await invite(served_folder, EMAIL, "20267565393")

    assert caught.value.code is ErrorCode.ALREADY_EXISTS


async def test_status_tells_of_a_version_that_is_missing(
    served_folder: ServedFolder,
) -> None:
    """Somebody put an old file back: what cannot be opened is told."""
    await invite(served_folder, EMAIL)
    before = (served_folder.folder / "data-key").read_text()
    served_folder.run("rotate", "data")
    (served_folder.folder / "data-key").write_text(before)

    assert "data      2        MISSING  1 enrolment" in served_folder.run("status")


async def test_pepper_stays_until_its_last_password_is_derived_anew(
    served_folder: ServedFolder,
) -> None:
    """The command makes the version; each password takes it on by itself."""
    person = await invite(served_folder, EMAIL)
    engines = open_engines(served_folder.services.settings)
    async with engines.writer.begin() as connection:
        await connection.execute(
            insert(tables.signing_secret).values(
                person=person,
                salt=b"s" * 16,
                argon2={},
                pepper_version=1,
                verifier_sha256="ab" * 32,
                counted=0,
            )
        )
    await engines.dispose()

    said = served_folder.run("rotate", "pepper")
    refused = served_folder.run("retire", "pepper", "1", status=1)

    assert "version 2 is in use" in said
    assert "still needed by 1 signing_secret" in refused
    assert read_key_ring(served_folder.folder / "pepper").versions == (2, 1)

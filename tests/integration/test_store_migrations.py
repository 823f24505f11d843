"""Migrations: exactly the tables of this version, once, whoever else starts."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from alembic import command
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from sqlalchemy import Connection, insert, text

from appliance.settings import Settings
from appliance.storage import migrate
from appliance.storage.engines import open_engines
from appliance.storage.table_version import is_current, newest
from appliance.storage.tables import metadata
from tests.core_parts import CoreParts, core_settings

MIGRATE = """
import asyncio, sys
from pathlib import Path
from appliance.storage.migrate import migrate
from tests.core_parts import core_settings
settings = core_settings(Path(sys.argv[1]), sys.argv[2])
print(asyncio.run(migrate(settings)))
"""


async def differences(settings: Settings) -> list[object]:
    """How the tables differ from what the code has."""
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            return await connection.run_sync(migrate.differences)
    finally:
        await engines.dispose()


async def test_migrations_build_exactly_the_tables(core: CoreParts) -> None:
    """What migrations build is what `appliance.storage.tables` says."""
    assert await differences(core.settings) == []


async def test_migrate_from_empty_gives_newest(
    tmp_path: Path, database_url: str
) -> None:
    """An empty database has no version before, and the newest after."""
    settings = core_settings(tmp_path, database_url)

    assert await migrate.migrate(settings) == (None, newest())


async def test_migrate_twice_changes_nothing(core: CoreParts) -> None:
    """A second run finds the newest version and keeps every row."""
    signer = await core.add_signer()

    before, after = await migrate.migrate(core.settings)

    assert before == after == newest()
    async with core.store.read() as records:
        assert await records.people.get(signer.person) is not None


async def test_current_told_from_empty(tmp_path: Path, database_url: str) -> None:
    """A database without tables is not of this version; a migrated one is."""
    settings = core_settings(tmp_path, database_url)
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            before = await is_current(connection)
        await migrate.migrate(settings)
        async with engines.reader.connect() as connection:
            after = await is_current(connection)
    finally:
        await engines.dispose()

    assert (before, after) == (False, True)


async def test_two_migrations_at_once_make_one(
    tmp_path: Path, database_url: str
) -> None:
    """Of two processes that start at once one migrates; the other finds it done."""
    command = [sys.executable, "-c", MIGRATE, str(tmp_path), database_url]

    started = [
        await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        for _ in range(2)
    ]
    said = [(await process.communicate())[0].decode().strip() for process in started]

    version = newest()
    assert [process.returncode for process in started] == [0, 0]
    assert sorted(said) == sorted(
        [f"(None, '{version}')", f"('{version}', '{version}')"]
    )
    assert await differences(core_settings(tmp_path, database_url)) == []


async def test_keys_of_before_are_superseded(tmp_path: Path, database_url: str) -> None:
    """Up with a credential and a task of the second version, down, and up again."""
    settings = core_settings(tmp_path, database_url)
    engines = open_engines(settings)
    key = rsa.generate_private_key(65537, 2048)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    spki = key.public_key().public_bytes(
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    rows: dict[str, dict[str, object]] = {
        "person": {
            **dict.fromkeys(("email_index", "locale", "vouched_by", "name"), "x"),
            "id": "p",
            "cuil": "20",
            "state": "active",
            "email_sealed": b"x",
            "created": now,
        },
        "credential": {
            "id": "c",
            "person": "p",
            "key_mode": "resident",
            "key_token": "firma",
            "cka_id": b"k",
            "spki_sha256": "00",
            "chain": b"",
            "state": "active",
            "certificate": certificate_of(key, now),
            "vouched_by": "demo",
            **dict.fromkeys(("not_before", "not_after", "created"), now),
        },
        "activation": {
            "id": "a",
            "person": "p",
            "credential": "c",
            "state": "done",
            "factors": [],
            "fence": 1,
            "reason": "",
            **dict.fromkeys(("created", "claim_by"), now),
        },
        "hsm_task": {
            "id": "t",
            "kind": "issue",
            "input": {"person": "p"},
            "fence": 0,
            "state": "waiting",
            "created": now,
            "reason": "",
        },
    }
    try:
        async with engines.writer.begin() as connection:
            await connection.run_sync(migrate_to, "0002", "upgrade")
            for name, values in rows.items():
                table = metadata.tables[name]
                await connection.execute(insert(table).values(**values))
        told = []
        for version, way in (
            ("0003", "upgrade"),
            ("0002", "downgrade"),
            ("0003", "upgrade"),
        ):
            async with engines.writer.begin() as connection:
                await connection.run_sync(migrate_to, version, way)
                row = (await connection.execute(text("SELECT * FROM credential"))).one()
                told.append((row.state, bytes(row.cka_id)))
        async with engines.reader.connect() as connection:
            task = (await connection.execute(text("SELECT * FROM hsm_task"))).one()
    finally:
        await engines.dispose()

    assert told == [("superseded", b"k")] * 3
    assert (row.algorithm, bytes(row.spki), row.master) == ("rsa-2048", spki, None)
    assert bytes(row.outer) == b""
    assert (task.person, task.swept) == ("p", None)


def migrate_to(connection: Connection, version: str, way: str) -> None:
    """Bring the tables to a version, up or down."""
    getattr(command, way)(migrate._config(connection), version)


def certificate_of(key: rsa.RSAPrivateKey, now: datetime) -> bytes:
    """A certificate of a key, DER."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.DER)

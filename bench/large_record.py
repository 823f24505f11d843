"""A record such as four years of much use leave, made by PostgreSQL alone.

    python -m bench.large_record URL [--requests 1000000]

It is put into a migrated, empty database. To 1,000,000 requests there are 100,000
people with credentials and 5,000,000 rows of the audit; of other scales everything is
in proportion, but for 100 integrators with 500 API keys. Rows look like real ones and
refer to each other as these do. Hashes, keys and certificates are bytes that nothing
opens or verifies, the audit's chains among them.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import asyncpg
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from appliance.domain.documents.inspected import Inspection, PageBox, inspection_to_json

_SQL: Final = Path(__file__).with_suffix(".sql")
_PEOPLE: Final = 10
"""Requests a person."""
_WRITERS: Final = 500
"""Requests that one start of a process had to do with."""

_INSPECTION: Final = Inspection(
    90_000, (PageBox(0, 0, 595.28, 841.89, 0),) * 3, (), 0, None
)
_INDEXES: Final = """\
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
WHERE NOT indisunique AND indrelid::regclass::text IN (
    SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public')
"""


def ident(kind: str, number: int) -> str:
    """The id of a row; the kind is its table's, or as `large_record.sql` has it."""
    return str(uuid.UUID(_md5(f"{kind}{number}")))


def verification_code(request: int) -> str:
    """That of a request's signature."""
    return _md5(f"code{request}")[:26].upper()


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _certificate(now: datetime) -> bytes:
    """One that can be read, and that nobody issued; DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Bench")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=730))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


async def fill(url: str, requests: int, now: datetime) -> None:
    """Put a record into a migrated database.

    Args:
        url: of PostgreSQL, as a superuser: foreign keys are not looked at.
        requests: how many; 10,000 at least.
        now: when the last of them has just come in.
    """
    figures = {
        "requests": str(requests),
        "people": str(requests // _PEOPLE),
        "writers": str(requests // _WRITERS),
        "now": now.astimezone(UTC).isoformat(),
        "certificate": _certificate(now).hex(),
        "inspection": json.dumps(inspection_to_json(_INSPECTION)),
    }
    script = _SQL.read_text("utf-8")
    for name, figure in figures.items():
        script = script.replace(f":{name}", figure)
    connection = await asyncpg.connect(url)
    try:
        # An index is made of a full table in a part of the time that it grows in.
        indexes = [tuple(row) for row in await connection.fetch(_INDEXES)]
        for name, _ in indexes:
            await connection.execute(f"DROP INDEX {name}")
        await connection.execute(script)
        await connection.execute("SET maintenance_work_mem = '512MB'")
        for _, definition in indexes:
            await connection.execute(definition)
        await connection.execute("VACUUM (ANALYZE)")
    finally:
        await connection.close()


def main() -> int:
    """Fill one and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of a migrated database of PostgreSQL")
    parser.add_argument("--requests", type=int, default=1_000_000)
    args = parser.parse_args()
    begun = time.perf_counter()
    asyncio.run(fill(args.url, args.requests, datetime.now(UTC)))
    took = time.perf_counter() - begun
    sys.stdout.write(f"{args.requests} requests in {took:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

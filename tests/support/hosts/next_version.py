"""Tables of releases that are still to come, over those of this one.

    with next_versions(folder, {NEXT: NOW}):
        run_apart(migrate(settings))  # as the release with table version NEXT does

Each adds a column to `person` that may be null, as a release does that the one before
is to work with; whether it says so is the caller's matter.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

from appliance.database import migrate, table_version

NOW: Final = table_version.newest()
"""Version of this code's tables."""
NEXT: Final = f"{int(NOW) + 1:04}"
LATER: Final = f"{int(NOW) + 2:04}"

_MIGRATION = '''\
"""A column more."""

import sqlalchemy as sa
from alembic import op

revision = "{version}"
down_revision = "{before}"
oldest_reader = "{oldest}"


def upgrade():
    op.add_column("person", sa.Column("of_{version}", sa.Text))


def downgrade():
    op.drop_column("person", "of_{version}")
'''


def migration(version: str, *, before: str, oldest: str) -> str:
    """The text of one.

    Args:
        version: that it makes of the tables.
        before: which it finds.
        oldest: that code must know to use them afterwards.
    """
    return _MIGRATION.format(version=version, before=before, oldest=oldest)


@contextmanager
def next_versions(folder: Path, oldest: Mapping[str, str]) -> Iterator[None]:
    """Have this process know the migrations of later releases.

    Args:
        folder: of the test, where they are written.
        oldest: by table version, in order, the oldest that code must know.
    """
    migrations = folder / f"migrations-{max(oldest)}"
    shutil.copytree(table_version.MIGRATIONS, migrations)
    before = table_version.newest()
    for version, reader in oldest.items():
        text = migration(version, before=before, oldest=reader)
        (migrations / "versions" / f"{version}_more.py").write_text(text)
        before = version
    try:
        with (
            patch.object(table_version, "MIGRATIONS", migrations),
            patch.object(migrate, "MIGRATIONS", migrations),
        ):
            _forget()
            yield
    finally:
        _forget()


def _forget() -> None:
    table_version.newest.cache_clear()
    table_version.known.cache_clear()

"""Each chain of the audit notes the user of the database that began it.

Chains that were begun before get the user of their role: processes of the version
before go on with theirs. An operator's command of before becomes the owner's; one that
runs meanwhile as another user (`rubrica hsm`, `rubrica mail`) has to be run again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
# The version before begins chains without naming a user: the default does.
oldest_reader = "0001"

_USERS = """
UPDATE audit_writer SET db_user = CASE
    WHEN role = 'api' THEN 'rubrica-api'
    WHEN role = 'embed' THEN 'rubrica-embed'
    WHEN role = 'admin' THEN 'rubrica-admin'
    WHEN role LIKE 'signing/%' THEN 'rubrica-signing'
    WHEN role LIKE 'chores/%' THEN 'rubrica-chores'
    ELSE 'rubrica-migrate'
END
"""


def upgrade() -> None:
    """Add a column that may be empty; PostgreSQL fills it."""
    op.add_column("audit_writer", sa.Column("db_user", sa.String(63)))
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    connection.exec_driver_sql(_USERS)
    # Only now: a default that comes with a column is that of all rows there are.
    connection.exec_driver_sql(
        "ALTER TABLE audit_writer ALTER COLUMN db_user SET DEFAULT current_user"
    )


def downgrade() -> None:
    """Take it away, and the policies that need it."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for table in ("audit_event", "audit_writer"):
            found = connection.execute(
                sa.text("SELECT policyname FROM pg_policies WHERE tablename = :table"),
                {"table": table},
            )
            for name in found.scalars().all():
                op.execute(f'DROP POLICY "{name}" ON {table}')
            op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    with op.batch_alter_table("audit_writer") as altered:
        altered.drop_column("db_user")

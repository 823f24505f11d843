"""Of each person one request for help with a proof and one without.

Until now there was one, and whoever asked without a proof rewrote the one with it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
# Released code, which knows 0001, neither reads nor writes requests for help.
oldest_reader = "0001"

_INSTANT = sa.DateTime(timezone=True)
_COLUMNS = (
    "person, id, topic, integrator, proven, code_index, asked, counted, since, ended, "
    "outcome"
)


def upgrade() -> None:
    """Have the proof be part of the key."""
    _set_key("person", "proven")


def downgrade() -> None:
    """Keep one row a person: what is open first, of two such the one with a proof."""
    op.execute(
        "DELETE FROM help_request WHERE EXISTS (SELECT 1 FROM help_request AS other "
        "WHERE other.person = help_request.person "
        "AND other.proven <> help_request.proven "
        "AND ((other.ended IS NULL AND help_request.ended IS NOT NULL) "
        "OR ((other.ended IS NULL) = (help_request.ended IS NULL) AND other.proven)))"
    )
    _set_key("person")


def _set_key(*columns: str) -> None:
    if op.get_context().dialect.name == "postgresql":
        name = sa.inspect(op.get_bind()).get_pk_constraint("help_request")["name"]
        op.drop_constraint(str(name), "help_request", type_="primary")
        op.create_primary_key(str(name), "help_request", [*columns])
        return
    # SQLite changes no key: the rows move to a table that has it.
    op.rename_table("help_request", "help_request_former")
    op.create_table(
        "help_request",
        sa.Column("person", sa.String(36), sa.ForeignKey("person.id"), nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("topic", sa.String(16), nullable=False),
        sa.Column("integrator", sa.String(36), sa.ForeignKey("integrator.id")),
        sa.Column("proven", sa.Boolean, nullable=False),
        sa.Column("code_index", sa.String(64), nullable=False, unique=True),
        sa.Column("asked", _INSTANT, nullable=False),
        sa.Column("counted", sa.Integer, nullable=False),
        sa.Column("since", _INSTANT, nullable=False),
        sa.Column("ended", _INSTANT),
        sa.Column("outcome", sa.String(16)),
        sa.PrimaryKeyConstraint(*columns),
    )
    op.execute(
        f"INSERT INTO help_request ({_COLUMNS}) "
        f"SELECT {_COLUMNS} FROM help_request_former"
    )
    op.drop_table("help_request_former")
    op.create_index("ix_help_request_ended_asked", "help_request", ["ended", "asked"])

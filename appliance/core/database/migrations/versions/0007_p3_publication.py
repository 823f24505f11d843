"""Security notices have a table of their own, which chores alone change.

The version before writes and sends notices as rows of `mail_message`; those are still
sent from there.
"""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
# The version before knows none of the new tables.
oldest_reader = "0001"

_INSTANT = sa.DateTime(timezone=True)
_required = partial(sa.Column, nullable=False)


def upgrade() -> None:
    """Add tables."""
    op.create_table(
        "security_notice",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("person", sa.String(36), sa.ForeignKey("person.id")),
        _required("kind", sa.String(40)),
        _required("state", sa.String(16)),
        _required("answer", sa.Text),
        _required("tries", sa.Integer),
        _required("due", _INSTANT),
        _required("created", _INSTANT),
        sa.Column("ended", _INSTANT),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_until", _INSTANT),
        _required("fence", sa.Integer),
        sa.Index("ix_security_notice_state_due", "state", "due"),
        sa.Index("ix_security_notice_ended", "ended"),
        sa.Index("ix_security_notice_person_created", "person", "created"),
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_table("security_notice")

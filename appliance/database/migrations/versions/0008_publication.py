"""Security notices, and what signing workers want of servers outside, have tables.

The version before hands whole documents to chores, which asks servers outside and
publishes them; that goes on as long as chores has the rights for it. The version
before writes and sends notices as rows of `mail_message`; those are still sent from
there.
"""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
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
    op.create_table(
        "outside_job",
        sa.Column("id", sa.String(36), primary_key=True),
        _required("kind", sa.String(16)),
        _required("created", _INSTANT),
        _required("until", _INSTANT),
        sa.Column("lease_owner", sa.Text),
        sa.Column("lease_until", _INSTANT),
        _required("fence", sa.Integer),
        _required("progress", sa.Integer),
        sa.Index("ix_outside_job_until", "until"),
    )
    op.create_table(
        "outside_material",
        sa.Column(
            "job", sa.String(36), sa.ForeignKey("outside_job.id"), primary_key=True
        ),
        sa.Column("key", sa.String(64), primary_key=True),
        _required("kind", sa.String(16)),
        _required("subject", sa.Text),
        _required("required", sa.Boolean),
        _required("code", sa.String(40)),
        sa.Column("nonce", sa.BigInteger),
        _required("wanted_at", _INSTANT),
        _required("state", sa.String(16)),
        _required("reason", sa.Text),
        sa.Column("token", sa.LargeBinary),
        sa.Column("draft_base", sa.String(64)),
        sa.Column("draft", sa.Text),
        sa.Column("draft_appended", sa.LargeBinary),
        sa.Column("draft_increment", sa.LargeBinary),
        sa.Index("ix_outside_material_job_draft_base", "job", "draft_base"),
    )


def downgrade() -> None:
    """Take them away."""
    op.drop_table("outside_material")
    op.drop_table("outside_job")
    op.drop_table("security_notice")

"""Wider networks and scope of tries, addresses of successes, codes of a session."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("net_56", "net_48"):
        op.add_column("login_attempt", sa.Column(name, sa.String(64)))
        op.create_index(f"ix_login_attempt_{name}_at", "login_attempt", [name, "at"])
    op.add_column(
        "login_attempt",
        sa.Column("scope", sa.String(36), nullable=False, server_default=""),
    )
    op.add_column(
        "embed_session",
        sa.Column("codes", sa.Integer(), nullable=False, server_default="0"),
    )
    op.create_index(
        "ix_embed_session_person_state", "embed_session", ["person", "state"]
    )
    op.create_table(
        "known_address",
        sa.Column("known_index", sa.String(64), primary_key=True),
        sa.Column("at", Instant(timezone=True), nullable=False),
    )
    op.create_index("ix_known_address_at", "known_address", ["at"])

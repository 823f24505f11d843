"""Batches that are looked at again, and at which claim an activation got on."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant, JsonText

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('signing_batch',
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('person', sa.String(length=36), nullable=False),
    sa.Column('requests', JsonText(), nullable=False),
    sa.Column('params', JsonText(), nullable=False),
    sa.Column('refused', JsonText(), nullable=False),
    sa.Column('asked', Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['person'], ['person.id'], name=op.f('fk_signing_batch_person')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_signing_batch'))
    )
    op.create_index('ix_signing_batch_asked', 'signing_batch', ['asked'])
    op.add_column('activation', sa.Column('progress', sa.Integer(), nullable=False, server_default='0'))


def downgrade() -> None:
    op.drop_column('activation', 'progress')
    op.drop_index('ix_signing_batch_asked', 'signing_batch')
    op.drop_table('signing_batch')

"""A key of its own for each integrator's documents; documents of a session."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('document_key',
    sa.Column('integrator', sa.String(length=36), nullable=False),
    sa.Column('key_sealed', sa.LargeBinary(), nullable=False),
    sa.Column('created', Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['integrator'], ['integrator.id'], name=op.f('fk_document_key_integrator')),
    sa.PrimaryKeyConstraint('integrator', name=op.f('pk_document_key'))
    )
    op.add_column('embed_session', sa.Column('documents', sa.Integer(), nullable=False, server_default='0'))
    op.create_index('ix_document_created', 'document', ['created'])


def downgrade() -> None:
    op.drop_index('ix_document_created', 'document')
    op.drop_column('embed_session', 'documents')
    op.drop_table('document_key')

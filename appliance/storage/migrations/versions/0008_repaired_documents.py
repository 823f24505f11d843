"""Documents that are repaired copies of damaged files."""

import sqlalchemy as sa
from alembic import op

import appliance.storage.types

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('document_repair',
    sa.Column('document', sa.String(length=36), nullable=False),
    sa.Column('integrator', sa.String(length=36), nullable=False),
    sa.Column('sha256', sa.String(length=64), nullable=False),
    sa.Column('damage', appliance.storage.types.JsonText(), nullable=False),
    sa.ForeignKeyConstraint(['document'], ['document.id'], name=op.f('fk_document_repair_document'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['integrator'], ['integrator.id'], name=op.f('fk_document_repair_integrator')),
    sa.PrimaryKeyConstraint('document', name=op.f('pk_document_repair'))
    )
    op.create_index('ix_document_repair_integrator_sha256', 'document_repair', ['integrator', 'sha256'])


def downgrade() -> None:
    op.drop_table('document_repair')

"""What stamps show besides words: codes and logos."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant, JsonText

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('logo',
    sa.Column('sha256', sa.String(length=64), nullable=False),
    sa.Column('width', sa.Integer(), nullable=False),
    sa.Column('height', sa.Integer(), nullable=False),
    sa.Column('deflated', sa.LargeBinary(), nullable=False),
    sa.Column('added', Instant(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('sha256', name=op.f('pk_logo'))
    )
    op.create_table('logo_use',
    sa.Column('scope', sa.String(length=36), nullable=False),
    sa.Column('logo', sa.String(length=64), nullable=False),
    sa.Column('since', Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['logo'], ['logo.sha256'], name=op.f('fk_logo_use_logo')),
    sa.PrimaryKeyConstraint('scope', name=op.f('pk_logo_use'))
    )
    op.add_column('activation_item', sa.Column('stamp', JsonText(), nullable=True))
    op.add_column('activation_item', sa.Column('code', sa.String(length=26), nullable=True))
    op.create_index('ix_activation_item_code', 'activation_item', ['code'], unique=True)


def downgrade() -> None:
    op.drop_index('ix_activation_item_code', 'activation_item')
    op.drop_column('activation_item', 'code')
    op.drop_column('activation_item', 'stamp')
    op.drop_table('logo_use')
    op.drop_table('logo')

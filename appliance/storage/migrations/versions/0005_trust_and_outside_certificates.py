"""The trust store, outside certificates, revocation PINs, warnings of ends."""

import sqlalchemy as sa
from alembic import op

from appliance.storage.types import Instant

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('expiry_notice',
    sa.Column('kind', sa.String(length=16), nullable=False),
    sa.Column('subject', sa.String(length=64), nullable=False),
    sa.Column('not_after', Instant(timezone=True), nullable=False),
    sa.Column('days', sa.Integer(), nullable=False),
    sa.Column('at', Instant(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('kind', 'subject', name=op.f('pk_expiry_notice'))
    )
    op.create_table('trust_anchor',
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('certificate', sa.LargeBinary(), nullable=False),
    sa.Column('sha256', sa.String(length=64), nullable=False),
    sa.Column('purpose', sa.String(length=16), nullable=False),
    sa.Column('not_after', Instant(timezone=True), nullable=False),
    sa.Column('added', Instant(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_trust_anchor')),
    sa.UniqueConstraint('sha256', 'purpose', name=op.f('uq_trust_anchor_sha256_purpose'))
    )
    op.create_table('revocation_pin',
    sa.Column('person', sa.String(length=36), nullable=False),
    sa.Column('phc', sa.Text(), nullable=False),
    sa.Column('made', Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['person'], ['person.id'], name=op.f('fk_revocation_pin_person')),
    sa.PrimaryKeyConstraint('person', name=op.f('pk_revocation_pin'))
    )
    op.create_table('former_certificate',
    sa.Column('id', sa.String(length=36), nullable=False),
    sa.Column('credential', sa.String(length=36), nullable=False),
    sa.Column('certificate', sa.LargeBinary(), nullable=False),
    sa.Column('chain', sa.LargeBinary(), nullable=False),
    sa.Column('not_before', Instant(timezone=True), nullable=False),
    sa.Column('not_after', Instant(timezone=True), nullable=False),
    sa.Column('replaced', Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['credential'], ['credential.id'], name=op.f('fk_former_certificate_credential')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_former_certificate'))
    )
    op.create_index('ix_former_certificate_credential', 'former_certificate', ['credential'])
    op.create_index('ix_credential_state_not_after', 'credential', ['state', 'not_after'])


def downgrade() -> None:
    op.drop_index('ix_credential_state_not_after', 'credential')
    op.drop_table('former_certificate')
    op.drop_table('revocation_pin')
    op.drop_table('trust_anchor')
    op.drop_table('expiry_notice')

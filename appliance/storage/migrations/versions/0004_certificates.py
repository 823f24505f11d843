"""Certificates of the internal CA, its CRLs and its OCSP answers."""

import sqlalchemy as sa
from alembic import op

import appliance.storage.types

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('certificate',
    sa.Column('serial', sa.String(length=40), nullable=False),
    sa.Column('kind', sa.String(length=16), nullable=False),
    sa.Column('issuer', sa.String(length=40), nullable=False),
    sa.Column('credential', sa.String(length=36), nullable=True),
    sa.Column('der', sa.LargeBinary(), nullable=False),
    sa.Column('not_before', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.Column('not_after', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('revoked_at', appliance.storage.types.Instant(timezone=True), nullable=True),
    sa.Column('reason', sa.String(length=24), nullable=True),
    sa.Column('task', sa.String(length=36), nullable=True),
    sa.Column('issued', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['credential'], ['credential.id'], name=op.f('fk_certificate_credential')),
    sa.PrimaryKeyConstraint('serial', name=op.f('pk_certificate'))
    )
    with op.batch_alter_table('certificate', schema=None) as batch_op:
        batch_op.create_index('ix_certificate_credential', ['credential'], unique=False)
        batch_op.create_index('ix_certificate_issued', ['issued'], unique=False)
        batch_op.create_index('ix_certificate_issuer_state', ['issuer', 'state'], unique=False)
        batch_op.create_index('ix_certificate_not_after', ['not_after'], unique=False)

    op.create_table('crl',
    sa.Column('issuer', sa.String(length=40), nullable=False),
    sa.Column('number', sa.BigInteger(), nullable=False),
    sa.Column('der', sa.LargeBinary(), nullable=False),
    sa.Column('this_update', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.Column('next_update', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('issuer', name=op.f('pk_crl'))
    )
    op.create_table('ocsp_response',
    sa.Column('serial', sa.String(length=40), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('der', sa.LargeBinary(), nullable=False),
    sa.Column('this_update', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.Column('next_update', appliance.storage.types.Instant(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['serial'], ['certificate.serial'], name=op.f('fk_ocsp_response_serial')),
    sa.PrimaryKeyConstraint('serial', name=op.f('pk_ocsp_response'))
    )
    with op.batch_alter_table('ocsp_response', schema=None) as batch_op:
        batch_op.create_index('ix_ocsp_response_next_update', ['next_update'], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('ocsp_response', schema=None) as batch_op:
        batch_op.drop_index('ix_ocsp_response_next_update')

    op.drop_table('ocsp_response')
    op.drop_table('crl')
    with op.batch_alter_table('certificate', schema=None) as batch_op:
        batch_op.drop_index('ix_certificate_not_after')
        batch_op.drop_index('ix_certificate_issuer_state')
        batch_op.drop_index('ix_certificate_issued')
        batch_op.drop_index('ix_certificate_credential')

    op.drop_table('certificate')

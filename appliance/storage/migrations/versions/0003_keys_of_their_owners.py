"""Keys that only their owner's password opens.

What stands here from before has no `outer`: its keys could be used by whoever
held the PIN. Such credentials are superseded; their owners get new ones.
"""

import json

import sqlalchemy as sa
from alembic import op
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import appliance.storage.types

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NEW = (
    # name, type, what rows of before get
    ("algorithm", sa.String(length=16), "rsa-2048"),
    ("key_version", sa.Integer(), "1"),
    ("outer", sa.LargeBinary(), ""),
    ("spki", sa.LargeBinary(), ""),
)
_OPTIONAL = (
    ("master", sa.Integer()),
    ("blob_w", sa.LargeBinary()),
    ("method_w", sa.String(length=32)),
    ("method_k", sa.String(length=32)),
)


def upgrade() -> None:
    _upgrade_credentials()
    with op.batch_alter_table("attempt_slot") as batch_op:
        batch_op.alter_column("request", existing_type=sa.BigInteger(), nullable=True)
    _upgrade_tasks()
    op.create_table(
        "activation_seal",
        sa.Column("activation", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["activation"],
            ["activation.id"],
            name=op.f("fk_activation_seal_activation"),
        ),
        sa.PrimaryKeyConstraint("activation", "host", name=op.f("pk_activation_seal")),
    )
    op.create_table(
        "activation_key",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("public", sa.LargeBinary(), nullable=False),
        sa.Column("identity", sa.String(length=64), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column(
            "made", appliance.storage.types.Instant(timezone=True), nullable=False
        ),
        sa.PrimaryKeyConstraint("host", "epoch", name=op.f("pk_activation_key")),
    )
    op.create_table(
        "task_seal",
        sa.Column("task", sa.String(length=36), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["task"], ["hsm_task.id"], name=op.f("fk_task_seal_task")
        ),
        sa.PrimaryKeyConstraint("task", "host", name=op.f("pk_task_seal")),
    )


def _upgrade_credentials() -> None:
    # In place: SQLite could copy the table only without its foreign keys, which
    # cannot be turned off in a transaction.
    for name, kind, default in _NEW:
        op.add_column(
            "credential",
            sa.Column(name, kind, nullable=False, server_default=default),
        )
    for name, kind in _OPTIONAL:
        op.add_column("credential", sa.Column(name, kind, nullable=True))
    _let_cka_id_be_null()
    connection = op.get_bind()
    credential = sa.table(
        "credential",
        sa.column("id"),
        sa.column("certificate"),
        sa.column("algorithm"),
        sa.column("spki", sa.LargeBinary()),
        sa.column("outer", sa.LargeBinary()),
        sa.column("state"),
    )
    for row in connection.execute(
        sa.select(credential.c.id, credential.c.certificate)
    ).all():
        algorithm, spki = _public_key(row.certificate)
        connection.execute(
            credential.update()
            .where(credential.c.id == row.id)
            .values(algorithm=algorithm, spki=spki, outer=b"")
        )
    connection.execute(
        credential.update()
        .where(credential.c.state == "active")
        .values(state="superseded")
    )
    if connection.dialect.name == "postgresql":
        for name, kind, _ in _NEW:
            op.alter_column(
                "credential", name, existing_type=kind, server_default=None
            )


def _let_cka_id_be_null() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column(
            "credential", "cka_id", existing_type=sa.LargeBinary(), nullable=True
        )
        return
    op.add_column("credential", sa.Column("cka_id_2", sa.LargeBinary(), nullable=True))
    op.execute("UPDATE credential SET cka_id_2 = cka_id")
    op.execute("ALTER TABLE credential DROP COLUMN cka_id")
    op.execute("ALTER TABLE credential RENAME COLUMN cka_id_2 TO cka_id")


def _public_key(certificate: bytes) -> tuple[str, bytes]:
    """Kind and SubjectPublicKeyInfo of the key that a certificate is of."""
    public = x509.load_der_x509_certificate(certificate).public_key()
    assert isinstance(public, rsa.RSAPublicKey)  # the first versions knew no other
    spki = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"rsa-{public.key_size}", spki


def _upgrade_tasks() -> None:
    with op.batch_alter_table("hsm_task") as batch_op:
        batch_op.add_column(sa.Column("person", sa.String(length=36), nullable=True))
        batch_op.add_column(
            sa.Column(
                "swept", appliance.storage.types.Instant(timezone=True), nullable=True
            )
        )
        batch_op.create_foreign_key(
            op.f("fk_hsm_task_person"), "person", ["person"], ["id"]
        )
        batch_op.create_index("ix_hsm_task_person_state", ["person", "state"])
    connection = op.get_bind()
    task = sa.table(
        "hsm_task", sa.column("id"), sa.column("input"), sa.column("person")
    )
    for row in connection.execute(sa.select(task.c.id, task.c.input)).all():
        connection.execute(
            task.update()
            .where(task.c.id == row.id)
            .values(person=json.loads(row.input).get("person"))
        )


def downgrade() -> None:
    op.drop_table("task_seal")
    op.drop_table("activation_key")
    op.drop_table("activation_seal")
    with op.batch_alter_table("hsm_task") as batch_op:
        batch_op.drop_index("ix_hsm_task_person_state")
        batch_op.drop_constraint(op.f("fk_hsm_task_person"), type_="foreignkey")
        batch_op.drop_column("swept")
        batch_op.drop_column("person")
    op.execute("DELETE FROM attempt_slot WHERE request IS NULL")
    with op.batch_alter_table("attempt_slot") as batch_op:
        batch_op.alter_column("request", existing_type=sa.BigInteger(), nullable=False)
    # Whoever used the earlier version would find no password in the way.
    op.execute("UPDATE credential SET state = 'superseded' WHERE state = 'active'")
    _demand_cka_id()
    for name, *_ in (*_OPTIONAL, *_NEW):
        # Not by a copy of the table: see above.
        op.execute(f'ALTER TABLE credential DROP COLUMN "{name}"')


def _demand_cka_id() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("UPDATE credential SET cka_id = '' WHERE cka_id IS NULL")
        op.alter_column(
            "credential", "cka_id", existing_type=sa.LargeBinary(), nullable=False
        )
        return
    op.add_column(
        "credential",
        sa.Column(
            "cka_id_2", sa.LargeBinary(), nullable=False, server_default=sa.text("x''")
        ),
    )
    op.execute("UPDATE credential SET cka_id_2 = cka_id WHERE cka_id IS NOT NULL")
    op.execute("ALTER TABLE credential DROP COLUMN cka_id")
    op.execute("ALTER TABLE credential RENAME COLUMN cka_id_2 TO cka_id")

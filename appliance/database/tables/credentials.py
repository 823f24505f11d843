"""People's signing keys, with the certificates of each."""

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, String, Table

from appliance.database.tables.base import Id, metadata
from appliance.database.types import Instant

credential = Table(
    "credential",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("key_mode", String(16), nullable=False),
    Column("algorithm", String(16), nullable=False),
    Column("key_version", Integer, nullable=False),
    Column("key_token", String(16), nullable=False),
    # The private half, resident: where it is on the token. Wrapped: blob_w here,
    # and what it unwraps locked into `outer` by the owner's password.
    Column("cka_id", LargeBinary),
    Column("master", Integer),
    Column("blob_w", LargeBinary),
    Column("method_w", String(32)),
    Column("method_k", String(32)),
    Column("outer", LargeBinary, nullable=False),
    Column("spki", LargeBinary, nullable=False),
    Column("spki_sha256", String(64), nullable=False, unique=True),
    Column("certificate", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("vouched_by", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", Instant, nullable=False),
    Index("ix_credential_person_state", "person", "state"),
    Index("ix_credential_state_not_after", "state", "not_after"),
)

# What a credential had before an outside CA's certificate took its place.
former_certificate = Table(
    "former_certificate",
    metadata,
    Column("id", Id, primary_key=True),
    Column("credential", Id, ForeignKey("credential.id"), nullable=False),
    Column("certificate", LargeBinary, nullable=False),
    Column("chain", LargeBinary, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("not_after", Instant, nullable=False),
    Column("replaced", Instant, nullable=False),
    Index("ix_former_certificate_credential", "credential"),
)

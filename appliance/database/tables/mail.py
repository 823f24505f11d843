"""Mails to people, from what they tell of to what became of them."""

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from appliance.database.tables.base import Id, Serial, metadata
from appliance.database.types import Instant, JsonText

# Written in the transaction of what it tells of. Address and words are looked up as it
# is sent: neither stands here.
mail_message = Table(
    "mail_message",
    metadata,
    Column("id", Id, primary_key=True),
    # On whose behalf; null: the installation's own.
    Column("integrator", Id, ForeignKey("integrator.id")),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("request", Serial, ForeignKey("signature_request.id")),
    Column("kind", String(40), nullable=False),
    Column("detail", JsonText, nullable=False),
    # The one-time link of an invitation, until it was sent.
    Column("link_sealed", LargeBinary),
    Column("state", String(16), nullable=False),
    # What the server said at last, without addresses.
    Column("answer", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", Instant, nullable=False),
    Column("created", Instant, nullable=False),
    Column("ended", Instant),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    Index("ix_mail_message_state_integrator_due", "state", "integrator", "due"),
    Index("ix_mail_message_state_ended", "state", "ended"),
    Index("ix_mail_message_ended", "ended"),
    Index("ix_mail_message_request", "request"),
    Index("ix_mail_message_person_created", "person", "created"),
)

# Notices to people about their own keys, factors and secrets. Roles that cause one add
# its row; chores alone change or delete it, so that nobody takes one back. Words are
# looked up as it is sent.
security_notice = Table(
    "security_notice",
    metadata,
    Column("id", Id, primary_key=True),
    Column("person", Id, ForeignKey("person.id"), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("state", String(16), nullable=False),
    # The last answer of the server, without addresses.
    Column("answer", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", Instant, nullable=False),
    Column("created", Instant, nullable=False),
    Column("ended", Instant),
    Column("lease_owner", Text),
    Column("lease_until", Instant),
    Column("fence", Integer, nullable=False),
    Index("ix_security_notice_state_due", "state", "due"),
    Index("ix_security_notice_ended", "ended"),
    Index("ix_security_notice_person_created", "person", "created"),
)

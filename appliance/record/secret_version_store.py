"""Versions of the installation's secret keys, as the record's values name them."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Table, and_, func, not_, or_, select
from sqlalchemy import update as sql_update

from appliance.database import tables
from appliance.domain.ids import PersonId
from appliance.domain.keys.versioned_secrets import (
    FIRST,
    IndexedEmail,
    SealedColumn,
    SealedValue,
)
from appliance.domain.vocab import SecretName
from appliance.record.unit_of_work import Store
from appliance.secrets.sealed_box import index_prefix

_SUFFIX: Final = "_sealed"
_BY_DOCUMENT_KEY: Final = (tables.document_key.c.key_sealed,)
SEALED: Final = {
    SealedColumn(
        table.name,
        column.name,
        SecretName.DOCUMENT if column in _BY_DOCUMENT_KEY else SecretName.DATA,
    ): column
    for table in tables.metadata.sorted_tables
    for column in table.columns
    if column.name.endswith(_SUFFIX)
}
"""By convention: a sealed column is called so, and is bound to its row's one
primary key."""


class SecretVersionStore(Store):
    """Values by the version of the key that made them, over one connection."""

    def sealed_columns(self, secret: SecretName) -> tuple[SealedColumn, ...]:
        """All columns that hold what a key sealed."""
        return tuple(column for column in SEALED if column.secret is secret)

    async def sealed(self, column: SealedColumn) -> dict[int, int]:
        """How many values of a column there are, by version of its key."""
        version = _version(SEALED[column])
        rows = await self._connection.execute(
            select(version, func.count()).where(version.is_not(None)).group_by(version)
        )
        return {bytes(first)[0]: count for first, count in rows if first}

    async def sealed_otherwise(
        self, column: SealedColumn, version: int, after: str, limit: int
    ) -> list[SealedValue]:
        """Values that another version of its key sealed, after a row's key."""
        value = SEALED[column]
        key = _primary_key(value.table)
        rows = await self._connection.execute(
            select(key, value)
            .where(
                key > after,
                func.length(value) > 0,
                _version(value) != bytes([version]),
            )
            .order_by(key)
            .limit(limit)
        )
        return [SealedValue(row, bytes(sealed)) for row, sealed in rows]

    async def reseal(self, column: SealedColumn, old: SealedValue, new: bytes) -> None:
        """Put another value in the place of one, unless that changed meanwhile."""
        value = SEALED[column]
        await self._connection.execute(
            sql_update(value.table)
            .where(_primary_key(value.table) == old.row, value == old.sealed)
            .values({value: new})
        )

    async def indexes(self, version: int, at: datetime) -> dict[str, int]:
        """How many indexes by a version of the lookup key still count, by column."""
        counted = {}
        for column, counts in _live(at):
            found = await self._connection.execute(
                select(func.count()).where(_made_by(column, version), counts)
            )
            counted[f"{column.table.name}.{column.name}"] = found.scalar_one()
        return counted

    async def emails_otherwise(
        self, version: int, after: str, limit: int
    ) -> list[IndexedEmail]:
        """Addresses that another version of the lookup key finds, after a person."""
        person = tables.person.c
        rows = await self._connection.execute(
            select(person.id, person.email_sealed, person.email_index)
            .where(person.id > after, not_(_made_by(person.email_index, version)))
            .order_by(person.id)
            .limit(limit)
        )
        return [
            IndexedEmail(PersonId(row.id), row.email_sealed, row.email_index)
            for row in rows
        ]

    async def reindex(self, email: IndexedEmail, index: str) -> None:
        """Have an address found by another index, unless it changed meanwhile."""
        person = tables.person.c
        await self._connection.execute(
            sql_update(tables.person)
            .where(person.id == email.person, person.email_index == email.index)
            .values(email_index=index)
        )

    async def passwords(self) -> dict[int, int]:
        """How many signing passwords there are, by version of the pepper."""
        version = tables.signing_secret.c.pepper_version
        rows = await self._connection.execute(
            select(version, func.count().label("passwords")).group_by(version)
        )
        return {row.pepper_version: row.passwords for row in rows}


def _version(value: Column[Any]) -> ColumnElement[Any]:
    """The first byte of a sealed value, which names its key."""
    return func.substr(value, 1, 1, type_=value.type)


def _primary_key(table: Table) -> Column[Any]:
    (key,) = table.primary_key.columns
    return key


def _made_by(index: Column[Any], version: int) -> ColumnElement[bool]:
    """Whether an index was made by a version of the lookup key."""
    if version == FIRST:
        return not_(index.contains(":"))
    return index.startswith(index_prefix(version))


def _live(at: datetime) -> tuple[tuple[Column[Any], ColumnElement[bool]], ...]:
    """Each column of indexes that somebody may come with, and whose rows count."""
    key = tables.api_key.c
    ends = [or_(each.is_(None), each > at) for each in (key.expires, key.ends)]
    return (
        (tables.person.c.email_index, tables.person.c.id.is_not(None)),
        (key.key_index, and_(key.revoked.is_(None), *ends)),
        (
            tables.enrolment.c.code_index,
            and_(tables.enrolment.c.used.is_(None), tables.enrolment.c.until > at),
        ),
        (tables.help_request.c.code_index, tables.help_request.c.ended.is_(None)),
        (tables.embed_session.c.token_index, tables.embed_session.c.until > at),
        (tables.embed_session.c.bearer_index, tables.embed_session.c.until > at),
        (tables.console_session.c.token_index, tables.console_session.c.until > at),
        (tables.download_link.c.key_index, tables.download_link.c.until > at),
        (tables.login_attempt.c.token_index, tables.login_attempt.c.until > at),
    )

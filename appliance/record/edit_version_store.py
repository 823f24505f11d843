"""Stored values of what is edited, and their locks, in SQL."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, Table, select

from appliance.database import tables
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.ids import MAX_REQUEST_ID
from appliance.record.unit_of_work import Store, Transaction


@dataclass(frozen=True)
class _Row:
    """Rows of one table that are found by one column."""

    table: Table
    key: str
    names: Mapping[str, str]
    """Columns by the name of their value."""

    def of(self, key: str) -> Select[Any]:
        """Select the values of a key."""
        columns = [self.table.c[column].label(n) for n, column in self.names.items()]
        return select(*columns).where(self.table.c[self.key] == key)

    def locked(self, key: str) -> Select[Any]:
        """Select what is locked with it."""
        return select(self.table.c[self.key]).where(self.table.c[self.key] == key)


def _columns(*names: str) -> Mapping[str, str]:
    return {name: name for name in names}


_INTEGRATOR: Final = _Row(
    tables.integrator,
    "code",
    _columns(
        "name",
        "may_vouch",
        "event_prefix",
        "level",
        "timestamp_policy",
        "digest",
        "tsa",
        "mails_signers",
        "reminder_days",
        "sign_url",
        "disabled",
    ),
)
_API_KEY: Final = _Row(
    tables.api_key, "id", _columns("label", "expires", "ends", "revoked")
)
_DOMAIN: Final = _Row(tables.integrator_domain, "id", _columns("origin"))
_WEBHOOK: Final = _Row(
    tables.webhook_endpoint,
    "id",
    _columns(
        "url",
        "label",
        "events",
        "disabled",
        "former_until",
        "removed",
    ),
)
_PERSON: Final = _Row(
    tables.person, "id", _columns("name", "cuil", "state", "vouched_by", "signed_out")
)
_CREDENTIAL: Final = _Row(
    tables.credential, "id", _columns("state", "not_after", "certificate")
)
_ANCHOR: Final = _Row(tables.trust_anchor, "id", _columns("sha256", "purpose"))
_ADMINISTRATOR: Final = _Row(
    tables.console_user,
    "name",
    {"disabled": "disabled", "password": "phc", "totp": "totp_sealed"},
)
_PROCESS: Final = _Row(
    tables.signing_process,
    "id",
    _columns("reference", "unique_reference", "metadata", "language", "message"),
)
_UPLOAD: Final = _Row(tables.uploaded_document, "id", _columns("name", "document"))


class EditStore(Store):
    """Stored values by subject, and their locks.

    Args:
        transaction: the caller's.
        owner: integrator whose rows alone are seen, of those that belong to one.
    """

    def __init__(self, transaction: Transaction, owner: str | None = None) -> None:
        super().__init__(transaction)
        self._owner = owner

    async def values(self, subject: Subject, key: str) -> dict[str, object]:
        """Return the values of a subject; empty if there is none."""
        read = _READERS[subject]
        return await read(self, key)

    async def lock(self, subject: Subject, key: str) -> None:
        """Keep others from changing a subject until the transaction ends.

        Rows that are never changed, only removed, need none; nor does a request, whose
        every move is conditional on the state before it.
        """
        match subject:
            case Subject.INTEGRATOR | Subject.LOGO:
                await self._lock(_INTEGRATOR.locked(key))
            case Subject.PERSON:
                # As `PersonStore.hold`.
                await self._lock(_PERSON.locked(key))
            case Subject.SIGNER:
                person = tables.person.c
                await self._lock(select(person.id).where(person.cuil == key))
            case Subject.CREDENTIAL:
                await self._lock(_CREDENTIAL.locked(key))
            case Subject.API_KEY:
                await self._lock(_API_KEY.locked(key))
            case Subject.WEBHOOK:
                await self._lock(_WEBHOOK.locked(key))
            case Subject.ADMINISTRATOR:
                # All that `ConsoleUserStore.enabled` locks, in the same order.
                user = tables.console_user.c
                await self._lock(select(user.id).order_by(user.id))
            case _:
                pass

    async def _lock(self, query: Select[Any]) -> None:
        """Lock rows against changes; rows that refer to them can be added.

        Use cases lock them alike: a weaker lock would have to be raised later, which
        two who wait for each other cannot do. A stronger one would keep out whoever
        has locked other rows and adds one that refers to these.
        """
        await self._connection.execute(query.with_for_update(key_share=True))

    async def _row(self, row: _Row, key: str) -> dict[str, object]:
        query = row.of(key)
        if self._owner is not None and "integrator" in row.table.c:
            query = query.where(row.table.c.integrator == self._owner)
        found = (await self._connection.execute(query)).mappings().first()
        return {} if found is None else dict(found)

    async def webhook(self, key: str) -> dict[str, object]:
        """Return what is set of a webhook; one that was removed is absent."""
        found = await self._row(_WEBHOOK, key)
        return {} if found.pop("removed", None) else found

    async def integrator(self, key: str) -> dict[str, object]:
        """Return an integrator's settings; empty lists and False as they are shown."""
        found = await self._row(_INTEGRATOR, key)
        if found:
            # Null in rows of an earlier version, which means the same.
            found["mails_signers"] = bool(found["mails_signers"])
            found["reminder_days"] = found["reminder_days"] or []
        return found

    async def logo(self, key: str) -> dict[str, object]:
        """Return the hash of an integrator's own logo, None without one."""
        use, owner = tables.logo_use.c, tables.integrator.c
        query = select(use.logo).select_from(tables.integrator).where(owner.code == key)
        joined = query.outerjoin(tables.logo_use, use.scope == owner.id)
        found = (await self._connection.execute(joined)).first()
        return {} if found is None else {"logo": found[0]}

    async def person(self, key: str) -> dict[str, object]:
        """Return a person's state, with what an officer replaces."""
        found = await self._row(_PERSON, key)
        if not found:
            return found
        link, pin = tables.enrolment.c, tables.revocation_pin.c
        secret = tables.signing_secret.c
        newest = select(link.id).where(link.person == key, link.used.is_(None))
        found["link"] = await self._connection.scalar(
            newest.order_by(link.created.desc(), link.id).limit(1)
        )
        found["pin"] = await self._connection.scalar(
            select(pin.made).where(pin.person == key)
        )
        found["locked_at"] = await self._connection.scalar(
            select(secret.locked_at).where(secret.person == key)
        )
        return found

    async def request(self, key: str) -> dict[str, object]:
        """Return the state of a request by its number; empty for none of its size."""
        if len(key) > len(str(MAX_REQUEST_ID)) or int(key) > MAX_REQUEST_ID:
            return {}
        row = tables.signature_request.c
        query = select(row.state).where(row.id == int(key))
        state = await self._connection.scalar(query)
        return {} if state is None else {"state": state}

    async def process(self, key: str) -> dict[str, object]:
        """Return what may change of a process, and when it expires."""
        found = await self._row(_PROCESS, key)
        if found:
            found["unique"] = found.pop("unique_reference") is not None
            found["metadata"] = found["metadata"] or {}
            row = tables.signature_request.c
            found["expires"] = await self._connection.scalar(
                select(row.expires).where(row.process == key).order_by(row.id).limit(1)
            )
        return found

    async def signer(self, key: str) -> dict[str, object]:
        """Return a person by CUIL; one whom the integrator cannot see has no state."""
        person, link = tables.person.c, tables.enrolment.c
        test = tables.test_signer.c
        query = (
            select(person.id, person.state, test.integrator, test.removed)
            .select_from(tables.person)
            .outerjoin(tables.test_signer, test.person == person.id)
            .where(person.cuil == key)
        )
        found = (await self._connection.execute(query)).first()
        is_of_another = (
            found is not None
            and found.integrator is not None
            and (found.integrator != self._owner or found.removed is not None)
        )
        if found is None or is_of_another:
            return {"state": None, "link": None}
        newest = select(link.id).where(link.person == found.id, link.used.is_(None))
        return {
            "state": found.state,
            "link": await self._connection.scalar(
                newest.order_by(link.created.desc(), link.id).limit(1)
            ),
        }


def _of(row: _Row) -> Callable[[EditStore, str], Awaitable[dict[str, object]]]:
    """Return a reader of one row's values."""

    async def read(edits: EditStore, key: str) -> dict[str, object]:
        return await edits._row(row, key)  # noqa: SLF001 (of this module)

    return read


_READERS: Final[
    Mapping[Subject, Callable[[EditStore, str], Awaitable[dict[str, object]]]]
] = {
    Subject.INTEGRATOR: EditStore.integrator,
    Subject.LOGO: EditStore.logo,
    Subject.API_KEY: _of(_API_KEY),
    Subject.DOMAIN: _of(_DOMAIN),
    Subject.WEBHOOK: EditStore.webhook,
    Subject.PERSON: EditStore.person,
    Subject.CREDENTIAL: _of(_CREDENTIAL),
    Subject.REQUEST: EditStore.request,
    Subject.PROCESS: EditStore.process,
    Subject.ANCHOR: _of(_ANCHOR),
    Subject.ADMINISTRATOR: _of(_ADMINISTRATOR),
    Subject.UPLOAD: _of(_UPLOAD),
    Subject.SIGNER: EditStore.signer,
}

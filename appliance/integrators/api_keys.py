"""API keys of integrators: made, rotated, revoked.

A key is shown once and kept as a keyed hash. Every change is recorded with what
was before and what is after.

Source: decisions "API keys".
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.integrators.api_keys import (
    FIRST_SCOPES,
    ApiKeyScope,
    new_api_key,
)
from appliance.domain.integrators.integrators import (
    IntegratorView,
    KeyRow,
    KeyView,
    NewKey,
)
from appliance.domain.integrators.key_networks import read_networks
from appliance.domain.ports import LookupIndex
from appliance.domain.text.unicode_nfc import is_line, nfc
from appliance.domain.vocab import Environment, EventKind
from appliance.integrators.integrator_store import IntegratorStore
from appliance.integrators.session_store import SessionStore
from appliance.record.unit_of_work import Database, Transaction

_LABEL_CHARS: Final = 60
OVERLAP_AT_MOST_S: Final = 7 * 86_400
"""Longest that a rotated key works beside its successor, in seconds."""


def key_purpose(environment: Environment) -> str:
    """Purpose of the index of API keys: a copied record is of no use elsewhere.

    Args:
        environment: of this installation.
    """
    return f"api-key/{environment.value}"


class ApiKeys:
    """The part of `Integrators` that is about keys.

    Args:
        store: the record.
        lookup: makes the hashes that keys are kept as.
        clock: the time.
        environment: of this installation.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        clock: Clock,
        environment: Environment,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._environment = environment

    async def keys(self, code: str) -> list[KeyView]:
        """An integrator's API keys, newest first.

        Raises:
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            integrator = await integrator_of(transaction, code)
            return await IntegratorStore(transaction).keys(integrator.id)

    async def create_key(
        self,
        actor: str,
        code: str,
        label: str,
        expires: datetime | None = None,
        *,
        scopes: Collection[ApiKeyScope] = FIRST_SCOPES,
        networks: Collection[str] = (),
    ) -> NewKey:
        """Make an API key; it is shown this once.

        Args:
            actor: for the audit.
            code: of the integrator.
            label: what tells it from others.
            expires: in the future, or None for never.
            scopes: what it may be used for, one at least.
            networks: addresses and networks from where it may be used, as
                `read_networks` takes them; none: from anywhere.

        Raises:
            FieldInvalidError: `label`, `expires`, `scopes` or `networks`.
            ApplianceError: `INTEGRATOR_NOT_FOUND`.
        """
        async with self._store.write() as transaction:
            integrator = await integrator_of(transaction, code)
            made = await self._add_key(
                transaction, integrator, label, expires, scopes, networks
            )
            audit(
                transaction,
                EventKind.API_KEY_CREATED,
                actor,
                integrator,
                {"key": made.key.id, "before": None, "after": _key_json(made.key)},
            )
        return made

    async def rotate_key(self, actor: str, key_id: str, overlap_s: int) -> NewKey:
        """Make a key's successor; the old one works on for a while.

        Sessions of the old key go on. The successor has its label, scopes and
        networks and, counted from now, as long a life.

        Args:
            actor: for the audit.
            key_id: of the key.
            overlap_s: how long both work, 0 to 7 days, in seconds.

        Raises:
            FieldInvalidError: `overlap_s`.
            ApplianceError: `API_KEY_NOT_FOUND`, also for a key that no longer
                works.
        """
        if not 0 <= overlap_s <= OVERLAP_AT_MOST_S:
            raise FieldInvalidError("overlap_s", f"0 to {OVERLAP_AT_MOST_S}")
        now = self._clock.now()
        async with self._store.write() as transaction:
            row = await _key(transaction, key_id)
            old = row.key
            if not old.usable(now):
                raise ApplianceError(ErrorCode.API_KEY_NOT_FOUND)
            ends = min(
                at
                for at in (now + timedelta(seconds=overlap_s), old.ends, old.expires)
                if at is not None
            )
            life = None if old.expires is None else now + (old.expires - old.created)
            made = await self._add_key(
                transaction, row.integrator, old.label, life, old.scopes, old.networks
            )
            await IntegratorStore(transaction).end_key(old.id, ends)
            audit(
                transaction,
                EventKind.API_KEY_ROTATED,
                actor,
                row.integrator,
                {
                    "key": old.id,
                    "successor": made.key.id,
                    "before": _key_json(old),
                    "after": _key_json(replace(old, ends=ends)),
                },
            )
        return made

    async def revoke_key(self, actor: str, key_id: str) -> int:
        """Revoke a key at once, and end its unfinished sessions.

        Args:
            actor: for the audit.
            key_id: of the key.

        Returns:
            How many sessions ended.

        Raises:
            ApplianceError: `API_KEY_NOT_FOUND`, also for a revoked one.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            row = await _key(transaction, key_id)
            if not await IntegratorStore(transaction).revoke_key(key_id, now):
                raise ApplianceError(ErrorCode.API_KEY_NOT_FOUND)
            ended = await SessionStore(transaction).end_of_key(key_id, now)
            audit(
                transaction,
                EventKind.API_KEY_REVOKED,
                actor,
                row.integrator,
                {
                    "key": key_id,
                    "sessionsEnded": len(ended),
                    "before": _key_json(row.key),
                    "after": _key_json(replace(row.key, revoked=now)),
                },
            )
            for public_id in ended:
                audit(
                    transaction,
                    EventKind.SESSION_ENDED,
                    actor,
                    row.integrator,
                    {"session": public_id, "key": key_id},
                )
        return len(ended)

    async def _add_key(
        self,
        transaction: Transaction,
        integrator: IntegratorView,
        label: str,
        expires: datetime | None,
        scopes: Collection[ApiKeyScope],
        networks: Collection[str],
    ) -> NewKey:
        """Make and record a key.

        Raises:
            FieldInvalidError: `label`, `expires` in the past, no `scopes`, or
                `networks`.
        """
        now = self._clock.now()
        check_scopes(scopes)
        if expires is not None and expires <= now:
            raise FieldInvalidError("expires", "a time to come")
        text = new_api_key(self._environment)
        key = KeyView(
            id=text.id,
            label=checked_label(label),
            hint=text.hint,
            created=now,
            expires=expires,
            last_used=None,
            revoked=None,
            flagged=None,
            ends=None,
            scopes=tuple(scope for scope in ApiKeyScope if scope in scopes),
            networks=read_networks(networks),
        )
        index = self._lookup.index(key_purpose(self._environment), text.text)
        await IntegratorStore(transaction).add_key(integrator.id, key, index)
        return NewKey(key, text.text)


def check_scopes(scopes: Collection[ApiKeyScope]) -> None:
    """Refuse a key that may do nothing.

    Args:
        scopes: what it may do.

    Raises:
        FieldInvalidError: `scopes`.
    """
    if not scopes:
        raise FieldInvalidError("scopes", [*ApiKeyScope])


def checked_label(label: str) -> str:
    """Read a key's label.

    Args:
        label: as typed.

    Raises:
        FieldInvalidError: `label`.
    """
    return words(label, "label", _LABEL_CHARS)


async def integrator_of(
    transaction: Transaction, code: str, *, lock: bool = False
) -> IntegratorView:
    """An integrator by code.

    Args:
        transaction: the caller's.
        code: of the integrator.
        lock: keep it from others until the transaction ends.

    Raises:
        ApplianceError: `INTEGRATOR_NOT_FOUND`.
    """
    found = await IntegratorStore(transaction).get(code, lock=lock)
    if found is None:
        raise ApplianceError(ErrorCode.INTEGRATOR_NOT_FOUND)
    return found


async def _key(transaction: Transaction, key_id: str) -> KeyRow:
    """An API key by id, kept from others until this transaction ends.

    Raises:
        ApplianceError: `API_KEY_NOT_FOUND`.
    """
    row = await IntegratorStore(transaction).key(key_id, lock=True)
    if row is None:
        raise ApplianceError(ErrorCode.API_KEY_NOT_FOUND)
    return row


def words(text: str, field: str, longest: int) -> str:
    """A line that people read, in NFC, spaces trimmed.

    Args:
        text: as typed.
        field: its name, for the error.
        longest: most characters.

    Raises:
        FieldInvalidError: empty, too long, of more than one line, or not printable.
    """
    typed = (nfc(text, longest) or "").strip()
    text = " ".join(typed.split())
    if not text or not is_line(typed) or len(text) > longest or not text.isprintable():
        raise FieldInvalidError(field, f"1 to {longest} printable characters")
    return text


def audit(
    transaction: Transaction,
    event: EventKind,
    actor: str,
    integrator: IntegratorView,
    detail: dict[str, object],
) -> None:
    """Record what was done to an integrator.

    Args:
        transaction: the caller's.
        event: what.
        actor: who did it.
        integrator: to whom.
        detail: what was before and is after.
    """
    transaction.audit.add(
        AuditEvent(event, actor, integrator=integrator.id, detail=detail)
    )


def _key_json(key: KeyView) -> dict[str, object]:
    return {
        "label": key.label,
        "hint": key.hint,
        "expires": _instant(key.expires),
        "ends": _instant(key.ends),
        "revoked": _instant(key.revoked),
        "scopes": [*key.scopes],
        "networks": [*key.networks],
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds")

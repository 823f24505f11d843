"""Which activation a worker takes next, the taking of it, and its documents."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    exists,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from appliance.database.tables import activation, activation_item, activation_seal
from appliance.database.types import Instant
from appliance.domain.appearance.details import PLAIN, StampDetails
from appliance.domain.ids import ActivationId, CredentialId, PersonId, RequestId
from appliance.domain.signing.activation import (
    ActivationDocument,
    Claim,
    LeasePolicy,
    SignatureValue,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import ActivationState, ItemState
from appliance.keys.sealed_key_store import is_sealed, seals_of
from appliance.record.leased_queue import LeasedQueue

TRIES: Final = activation.c.fence - activation.c.progress
"""Claims since an item last came to a result."""
NEGLECTED: Final = 3
"""Leases' times after which a signing worker goes on by itself, where the role with a
network took nothing: it is away, or has more than it can do."""
_DOCUMENTS: Final = (
    select(activation_item)
    .where(activation_item.c.activation == bindparam("of"))
    .order_by(activation_item.c.seq)
)


def is_in(state: ActivationState) -> ColumnElement[bool]:
    """Whether an activation is in a state."""
    return activation.c.state == state.value


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which activations a worker has hands for."""

    single: bool = False
    """None of several documents."""
    no_batches_of: Collection[PersonId] = ()
    """None of several documents of these people's."""
    without: Collection[PersonId] = ()
    """None of these people's."""

    @property
    def shape(self) -> "_Shape":
        """What of it is in a statement, rather than given to it."""
        return self.single, bool(self.no_batches_of), bool(self.without)


_Shape = tuple[bool, bool, bool]
ANY: Final = Wanted()


class ActivationQueue(LeasedQueue):
    """The activations that wait for a worker, over one connection."""

    table, tries = activation, TRIES

    async def next_claims(
        self,
        at: datetime,
        policy: LeasePolicy,
        which: Wanted = ANY,
    ) -> int | None:
        """How often what `claim_next` would take was claimed without a result."""
        looking = _looking(policy, which.shape)
        found = await self._connection.scalars(looking, _given(at, policy, which))
        claims: int | None = found.one_or_none()
        return claims

    async def claim_next(
        self,
        owner: str,
        at: datetime,
        policy: LeasePolicy,
        which: Wanted = ANY,
    ) -> Claim | None:
        """Take an activation that nobody has in hand, in the order of `_rank`."""
        claiming = _claiming(policy, which.shape)
        given = _given(at, policy, which)
        row = await self._claim(claiming, owner, at + policy.lease, given)
        if row is None:
            return None
        documents = await documents_of(self._connection, row.id)
        state = ActivationState(row.state)
        key_until = row.key_until
        if state is ActivationState.WAITING:
            state = ActivationState.KEYING
            key_until = at + policy.key + timedelta(seconds=len(documents))
            await self._connection.execute(
                update(activation)
                .where(activation.c.id == row.id)
                .values(
                    state=state.value,
                    key_until=key_until,
                    finish_until=key_until + policy.finish,
                )
            )
        return Claim(
            id=ActivationId(row.id),
            person=PersonId(row.person),
            credential=CredentialId(row.credential),
            state=state,
            fence=row.fence,
            factors=tuple(row.factors),
            created=row.created,
            claim_by=row.claim_by,
            key_until=key_until,
            documents=documents,
            tries=row.fence - row.progress,
            profile=row.profile,
            seal=next(
                (
                    s
                    for s in await seals_of(self._connection, activation_seal, row.id)
                    if s.host == policy.host
                ),
                None,
            ),
        )


def _rank(policy: LeasePolicy) -> ColumnElement[Any]:
    """What comes first, before what waits longest.

    Suspects: all else waits as soon as one is found, and must not be taken up again
    before it.
    """
    return policy.suspect > TRIES


@cache
def _looking(policy: LeasePolicy, shape: _Shape) -> Select[Any]:
    return ActivationQueue.looking(TRIES, _claimable(policy, shape), _rank(policy))


@cache
def _claiming(policy: LeasePolicy, shape: _Shape) -> ReturningUpdate[Any]:
    return ActivationQueue.claiming(_claimable(policy, shape), _rank(policy))


def _given(at: datetime, policy: LeasePolicy, which: Wanted) -> dict[str, object]:
    """What `_claimable` leaves open."""
    given: dict[str, object] = {
        "at": at,
        "rested_since": at - policy.lease,
        "neglected_since": at - NEGLECTED * policy.lease,
    }
    if which.no_batches_of:
        given["no_batches_of"] = sorted(which.no_batches_of)
    if which.without:
        given["without"] = sorted(which.without)
    return given


def _claimable(policy: LeasePolicy, shape: _Shape) -> ColumnElement[bool]:
    """Waiting and in time, or let go of by whoever had it.

    As long as a key is to be used, only hosts take it that it is sealed to. What
    kills its workers is not taken again. The finish phase may be tried as often as
    leases can lapse in its time: a store that is away kills nobody. After as many
    attempts as a key phase has, it rests for a lease's time between two, so that a
    document which kills its workers there costs others little. What was left to
    chores of the version before is theirs, unless they neglect it.
    """
    single, no_batches_of, without = shape
    at = bindparam("at", type_=Instant())
    tries = policy.attempts + math.ceil(policy.finish / policy.lease)
    poison = ActivationQueue.quarantined(policy.attempts)
    rested = or_(
        not_(poison),
        activation.c.lease_until <= bindparam("rested_since", type_=Instant()),
    )
    finishing = (
        is_in(ActivationState.FINISHING)
        & (activation.c.finish_until > at)
        & (activation.c.lease_until <= at)
        & not_(ActivationQueue.quarantined(tries))
        & rested
    )
    neglected = activation.c.lease_until <= bindparam(
        "neglected_since", type_=Instant()
    )
    ours = is_sealed(activation_seal, activation.c.id, policy.host)
    several = exists().where(
        activation_item.c.activation == activation.c.id, activation_item.c.seq > 0
    )
    free = or_(
        is_in(ActivationState.WAITING) & (activation.c.claim_by > at) & ours,
        and_(
            activation.c.lease_until <= at,
            is_in(ActivationState.KEYING)
            & (activation.c.key_until > at)
            & not_(poison)
            & ours,
        ),
        finishing & or_(not_(activation.c.outside), neglected),
    )
    if single:
        free = and_(free, not_(several))
    if no_batches_of:
        those: BindParameter[Any] = bindparam("no_batches_of", expanding=True)
        others = activation.c.person.not_in(those)
        # A suspect holds up all others, whosever it is.
        free = and_(free, or_(others, not_(several), policy.suspect <= TRIES))
    if without:
        those = bindparam("without", expanding=True)
        free = and_(free, activation.c.person.not_in(those))
    return free


async def documents_of(
    connection: AsyncConnection, activation_id: str
) -> tuple[ActivationDocument, ...]:
    """The documents of an activation, in order."""
    rows = await connection.execute(_DOCUMENTS, {"of": activation_id})
    documents = []
    for row in rows:
        signature = None
        # Of a published document the value alone is kept.
        if None not in (row.increment, row.signed_attributes, row.signature):
            signature = SignatureValue(
                row.increment,
                row.contents_at,
                row.contents_length,
                row.signed_attributes,
                row.signature,
            )
        stamp = row.stamp
        documents.append(
            ActivationDocument(
                seq=row.seq,
                request=RequestId(row.request),
                document_sha256=row.document_sha256,
                params=SignParameters.from_wire(row.params),
                params_sha256=row.params_sha256,
                state=ItemState(row.state),
                details=PLAIN if stamp is None else StampDetails.from_json(stamp),
                code=row.code,
                signature=signature,
            )
        )
    return tuple(documents)

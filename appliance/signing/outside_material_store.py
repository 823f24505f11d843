"""Material of servers outside, in SQL: what is wanted, and what came of it.

A job is the queue's row: one activation or upkeep, claimed by one chores worker.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    or_,
    select,
    update,
)

from appliance.database.tables import (
    activation,
    level_upkeep,
    outside_job,
    outside_material,
)
from appliance.database.upsert import insert_into
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.outside_material import (
    Draft,
    JobClaim,
    JobKind,
    Material,
    MaterialKind,
    MaterialState,
    WantedMaterial,
)
from appliance.domain.vocab import ActivationState
from appliance.record.leased_queue import LeasedQueue

_M: Final = outside_material.c
_J: Final = outside_job.c
_WANTED: Final = MaterialState.WANTED.value
# Drafts are read one by one, where they are needed; no role but signing reads them.
_PIECES: Final[Select[Any]] = select(
    _M.key,
    _M.kind,
    _M.subject,
    _M.state,
    _M.required,
    _M.nonce,
    _M.token,
    _M.reason,
    _M.wanted_at,
).where(_M.job == bindparam("of"))
# Not of all columns, which chores may not read.
_IS_WANTED: Final = select(_M.job).where(_M.job == _J.id, _M.state == _WANTED).exists()


class OutsideMaterialStore(LeasedQueue):
    """Jobs for the role with a network, and their material."""

    table, tries = outside_job, outside_job.c.fence - outside_job.c.progress

    async def want(
        self,
        job: str,
        kind: JobKind,
        wanted: Collection[WantedMaterial],
        at: datetime,
        until: datetime,
        rest: timedelta,
    ) -> bool:
        """Have material fetched.

        What is there already stays, unless it is wanted again.

        Args:
            job: the activation's id, or the upkeep's.
            kind: which of the two.
            wanted: the pieces.
            at: now.
            until: when it is of no more use.
            rest: time before what was delivered and refused is fetched again.

        Returns:
            Whether anything is still to be fetched.
        """
        lease = at + rest if any(each.again for each in wanted) else None
        adding = insert_into(self._connection, outside_job).values(
            id=job,
            kind=kind.value,
            created=at,
            until=until,
            lease_until=lease,
            fence=0,
            progress=0,
        )
        values: dict[str, Any] = {"until": until}
        if lease is not None:
            values["lease_until"] = case(
                (_J.lease_until > lease, _J.lease_until), else_=lease
            )
        await self._connection.execute(
            adding.on_conflict_do_update(index_elements=[_J.id], set_=values)
        )
        for each in wanted:
            await self._want(job, each, at)
        left = await self._connection.execute(
            select(_M.key).where(_M.job == job, _M.state == _WANTED).limit(1)
        )
        return left.first() is not None

    async def _want(self, job: str, wanted: WantedMaterial, at: datetime) -> None:
        draft = wanted.draft
        adding = insert_into(self._connection, outside_material).values(
            job=job,
            key=wanted.key,
            kind=wanted.kind.value,
            subject=dict(wanted.subject),
            required=wanted.is_required,
            code=wanted.code.value,
            nonce=wanted.nonce,
            wanted_at=at,
            state=_WANTED,
            reason="",
            draft_base=None if draft is None else draft.base,
            draft=None if draft is None else _draft_json(draft),
            draft_appended=None if draft is None else draft.appended,
            draft_increment=None if draft is None else draft.increment,
        )
        if not wanted.again:
            await self._connection.execute(adding.on_conflict_do_nothing())
            return
        anew = {
            "state": _WANTED,
            "nonce": wanted.nonce,
            "wanted_at": at,
            "reason": "",
            "token": None,
            "required": wanted.is_required,
        }
        await self._connection.execute(
            adding.on_conflict_do_update(
                index_elements=[_M.job, _M.key],
                set_=anew,
                # Not what another worker is asking for already.
                where=_M.state != _WANTED,
            )
        )

    async def of(self, job: str) -> tuple[list[Material], datetime | None]:
        """All material of a job; and the end of its last lease, or rest."""
        rows = await self._connection.execute(_PIECES, {"of": job})
        found = [_material(row) for row in rows]
        if not found:
            return [], None
        lease = await self._connection.scalar(
            select(_J.lease_until).where(_J.id == job)
        )
        return found, lease

    async def draft(self, job: str, base: str) -> Draft | None:
        """The newest draft that continues some bytes."""
        which: Select[Any] = select(
            _M.draft_base, _M.draft, _M.draft_appended, _M.draft_increment
        )
        rows = await self._connection.execute(
            which.where(_M.job == job, _M.draft_base == base)
        )
        drafts = [_draft(row) for row in rows]
        return max(
            drafts,
            # One with more room was made after one whose token did not fit.
            key=lambda each: (each.is_archive, each.contents_length),
            default=None,
        )

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta
    ) -> JobClaim | None:
        """Claim the job with something to fetch that waits longest."""
        claiming = self.claiming(_claimable(at), self.tries)
        row = await self._claim(claiming, owner, at + lease)
        if row is None:
            return None
        rows = await self._connection.execute(
            _PIECES.where(_M.state == _WANTED).order_by(_M.wanted_at, _M.key),
            {"of": row.id},
        )
        return JobClaim(
            id=row.id,
            kind=JobKind(row.kind),
            fence=row.fence,
            tries=row.fence - row.progress,
            wanted=[_material(each) for each in rows],
        )

    async def any_claimable(self, at: datetime) -> bool:
        """Return whether `claim_next` would give one; no lock is taken."""
        return await self._any(self.looking(_J.id, _claimable(at), self.tries))

    async def settle(
        self,
        claim: JobClaim,
        key: str,
        state: MaterialState,
        reason: str = "",
        token: bytes | None = None,
    ) -> bool:
        """Write what came of one piece; False when another claim came since."""
        values = {"progress": claim.fence} if state is MaterialState.THERE else {}
        if not await self._fenced(claim, {"fence": claim.fence, **values}):
            return False
        await self._connection.execute(
            update(outside_material)
            .where(_M.job == claim.id, _M.key == key, _M.state == _WANTED)
            .values(state=state.value, reason=reason, token=token)
        )
        return True

    async def failing(self, claim: JobClaim, key: str, reason: str) -> bool:
        """Note why a piece that is still wanted was not had; False as `settle`."""
        if not await self._fenced(claim, {"fence": claim.fence}):
            return False
        await self._connection.execute(
            update(outside_material)
            .where(_M.job == claim.id, _M.key == key, _M.state == _WANTED)
            .values(reason=reason)
        )
        return True

    async def let_go(self, claim: JobClaim, until: datetime) -> bool:
        """End a claim; what is still wanted is fetched from then on."""
        return await self._fenced(claim, {"lease_owner": None, "lease_until": until})

    async def wake(self, claim: JobClaim, at: datetime) -> bool:
        """Have the signing worker go on with what a job is for.

        Args:
            claim: of the job.
            at: now.

        Returns:
            Whether it waited.
        """
        if claim.kind is JobKind.UPKEEP:
            woken = await self._connection.execute(
                update(level_upkeep)
                .where(
                    level_upkeep.c.id == claim.id, level_upkeep.c.lease_owner.is_(None)
                )
                .values(lease_until=None)
            )
            return woken.rowcount > 0
        waits = and_(
            activation.c.id == claim.id,
            activation.c.state == ActivationState.FINISHING.value,
            # In nobody's hands: let go of in good order.
            activation.c.progress == activation.c.fence,
        )
        woken = await self._connection.execute(
            update(activation).where(waits).values(lease_until=at, outside=False)
        )
        return woken.rowcount > 0

    async def note(self, claim: JobClaim, reason: str) -> None:
        """Write why an activation waits, as it is told should its time run out."""
        if claim.kind is JobKind.ACTIVATION:
            await self._connection.execute(
                update(activation)
                .where(
                    activation.c.id == claim.id,
                    activation.c.state == ActivationState.FINISHING.value,
                )
                .values(reason=reason)
            )

    async def remove(self, jobs: Sequence[str]) -> None:
        """Delete jobs with their material."""
        await self._connection.execute(delete(outside_material).where(_M.job.in_(jobs)))
        await self._connection.execute(delete(outside_job).where(_J.id.in_(jobs)))

    async def any_over(self, at: datetime) -> bool:
        """Return whether `forget` would find one; no lock is taken."""
        return await self._any(select(_J.id).where(_J.until < at).limit(1))

    async def forget(self, at: datetime, limit: int) -> int:
        """Delete jobs that are of no more use; returns the count."""
        found = await self._connection.execute(
            select(_J.id).where(_J.until < at).limit(limit)
        )
        jobs = list(found.scalars())
        if jobs:
            await self.remove(jobs)
        return len(jobs)


def _claimable(at: datetime) -> ColumnElement[bool]:
    return and_(
        _J.until > at,
        _J.kind.in_([each.value for each in JobKind]),
        or_(_J.lease_until.is_(None), _J.lease_until <= at),
        _IS_WANTED,
    )


def _material(row: Row[Any]) -> Material:
    return Material(
        key=row.key,
        kind=MaterialKind(row.kind),
        subject=row.subject,
        state=MaterialState(row.state),
        is_required=row.required,
        nonce=row.nonce,
        token=row.token,
        reason=row.reason,
        wanted_at=row.wanted_at,
    )


def _draft_json(draft: Draft) -> dict[str, Any]:
    return {
        "archive": draft.is_archive,
        "at": draft.contents_at,
        "length": draft.contents_length,
        "imprint": draft.imprint.hex(),
        "digest": draft.digest.value,
    }


def _draft(row: Row[Any]) -> Draft:
    said = row.draft
    return Draft(
        base=row.draft_base,
        is_archive=said["archive"],
        appended=row.draft_appended,
        increment=row.draft_increment,
        contents_at=said["at"],
        contents_length=said["length"],
        imprint=bytes.fromhex(said["imprint"]),
        digest=DigestAlgorithm(said["digest"]),
    )

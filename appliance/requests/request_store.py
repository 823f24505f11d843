"""Signature requests in SQL, and the order of those of one process."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Row,
    ScalarSelect,
    Select,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import (
    document,
    integrator,
    signature_request,
    signed_document,
    signing_process,
)
from appliance.documents.document_store import repair_columns, repair_in, with_repair
from appliance.domain.documents.inspected import as_it_came, inspection_from_json
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
    new_id,
)
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.intake import FRAME_ORIGIN, NewRequest
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.process import NO_NOTE, NamedBy, ProcessNote
from appliance.domain.requests.request import (
    LISTED,
    UNFINISHED,
    RequestView,
    SignedDocumentView,
    check_move,
)
from appliance.domain.vocab import RequestState, SignatureLevel, TimestampPolicy
from appliance.record.unit_of_work import Store

_Word = TypeVar("_Word", bound=StrEnum)
_SKEW: Final = timedelta(hours=1)
"""Further apart than any two clocks of hosts are."""
_inspection: Final = lru_cache(maxsize=32)(inspection_from_json)
"""Of a text; one of thousands of pages takes 20 ms."""
_WISHES: Final = ("level", "timestamp_policy", "digest", "tsa")
_LATER: Final = signature_request.alias("later")
_COMES_LATER: Final = and_(
    _LATER.c.process == signature_request.c.process,
    or_(
        and_(
            _LATER.c.seq > signature_request.c.seq,
            _LATER.c.state == RequestState.WAITING.value,
        ),
        and_(
            _LATER.c.turn == signature_request.c.turn,
            _LATER.c.id != signature_request.c.id,
            _LATER.c.state.in_([state.value for state in LISTED]),
        ),
    ),
)
_FOLLOWED: Final = exists().where(_COMES_LATER)


def holds(beside: FromClause, its: FromClause, own: FromClause) -> ColumnElement[bool]:
    """Whether one of the same turn is being signed, or what it made is still to come.

    Args:
        beside: its request.
        its: the document of that.
        own: the document of who is held up by it.
    """
    return or_(
        beside.c.state == RequestState.IN_PROGRESS.value,
        and_(
            beside.c.state == RequestState.SIGNED.value,
            # Each signature makes it longer.
            its.c.size_bytes >= own.c.size_bytes,
        ),
    )


_BESIDE: Final = signature_request.alias("beside")
_THEIRS: Final = document.alias("theirs")
_HELD: Final = (
    select(func.max(case((holds(_BESIDE, _THEIRS, document), 1), else_=0)))
    .select_from(_BESIDE.join(_THEIRS, _THEIRS.c.id == _BESIDE.c.document))
    .where(
        _BESIDE.c.process == signature_request.c.process,
        _BESIDE.c.turn == signature_request.c.turn,
        _BESIDE.c.id != signature_request.c.id,
    )
    .correlate(signature_request, document)
    .scalar_subquery()
)
"""1: one of the same turn keeps it from being signed; 0: none does; null: none is."""
_VIEWS: Final[Select[Any]] = select(
    signature_request,
    _FOLLOWED.label("followed"),
    case((signature_request.c.turn.is_not(None), _HELD)).label("held"),
    document.c.sha256,
    # As text: of many requests of one document it is read once.
    type_coerce(document.c.inspection, Text).label("inspection"),
    *repair_columns(signature_request),
    integrator.c.name.label("integrator_name"),
    *(integrator.c[name].label(f"i_{name}") for name in _WISHES),
).select_from(
    with_repair(
        signature_request.join(
            document, document.c.id == signature_request.c.document
        ).join(integrator, integrator.c.id == signature_request.c.integrator),
        signature_request,
    )
)
"""What `_view` reads."""
_WITH_SIGNED: Final = _VIEWS.add_columns(
    signed_document.c.version,
    *(
        signed_document.c[name].label(f"signed_{name}")
        for name in ("integrator", "sha256", "size_bytes", "level")
    ),
).outerjoin(signed_document, signed_document.c.request == signature_request.c.id)
"""The same, a row for each version of the signed document, or one without."""
# Made once, as each signature executes them several times.
_IS_NAMED: Final = signature_request.c.id.in_(bindparam("requests", expanding=True))
_NAMED: Final = _VIEWS.where(_IS_NAMED)
# In one order, so that two who lock several never wait for each other.
_NAMED_LOCKED: Final = _NAMED.order_by(signature_request.c.id).with_for_update(
    of=signature_request
)
_STANDING: Final = (
    select(
        signature_request.c.id,
        signature_request.c.state,
        signature_request.c.integrator,
    )
    .where(_IS_NAMED)
    .order_by(signature_request.c.id)
    .with_for_update()
)
_NAMED_WITH_SIGNED: Final = _WITH_SIGNED.where(_IS_NAMED).order_by(
    signed_document.c.version
)


@dataclass(frozen=True, slots=True)
class AsAsked:
    """What whoever asked for a request said of its signer and its signature."""

    named_by: NamedBy | None
    wishes: ProfileWishes
    """Its own, without those of its integrator."""


class RequestStore(Store):
    """Signature requests."""

    async def add(self, new: NewRequest, note: ProcessNote = NO_NOTE) -> RequestId:
        """Record a request, `pendiente`, in a process of its own.

        Args:
            new: the request.
            note: of the process.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`.
        """
        return (await self.add_all([([new], note)]))[0][0]

    async def add_all(
        self,
        processes: Sequence[tuple[Sequence[NewRequest], ProcessNote]],
        replaced: Sequence[ProcessId | None] = (),
    ) -> list[list[RequestId]]:
        """Record processes, by a few statements however many they are.

        Args:
            processes: of each its requests, in the order in which they are signed, and
                what is said of it. Of one integrator.
            replaced: of each the process that it replaces; empty: none does.

        Returns:
            The numbers of each one's requests, which grow in the order given: those
            of the first turn `pendiente`, the others `en_espera`.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`.
        """
        ids = [new_id() for _ in processes]
        each = list(zip(ids, processes, strict=True))
        instead = dict(zip(ids, replaced, strict=True)) if replaced else {}
        try:
            await self._connection.execute(
                insert(signing_process),
                [
                    {
                        "id": process,
                        "integrator": asked[0].integrator,
                        "created": asked[0].created,
                        "api_key": note.api_key,
                        "replaces": instead.get(process),
                        **note_columns(note),
                    }
                    for process, (asked, note) in each
                ],
            )
        except IntegrityError as exc:
            raise ApplianceError(ErrorCode.REFERENCE_IN_USE) from exc
        # One after the other, so that they are numbered in this order.
        await self._connection.execute(
            insert(signature_request),
            [
                _columns(new, process, seq, is_first=_is_first(new, seq, asked))
                for process, (asked, _) in each
                for seq, new in enumerate(asked)
            ],
        )
        rows = await self._connection.execute(
            select(signature_request.c.id, signature_request.c.process)
            .where(signature_request.c.process.in_(ids))
            .order_by(signature_request.c.seq)
        )
        made: dict[str, list[RequestId]] = {process: [] for process in ids}
        for row in rows:
            made[row.process].append(RequestId(row.id))
        return list(made.values())

    async def as_asked(self, process: ProcessId) -> dict[RequestId, AsAsked]:
        """How the requests of a process were asked for, where views say less."""
        rows = await self._connection.execute(
            select(signature_request).where(signature_request.c.process == process)
        )
        return {
            RequestId(row.id): AsAsked(
                None if row.named_by is None else NamedBy(row.named_by),
                ProfileWishes(
                    _first(SignatureLevel, row.wished_level),
                    _first(TimestampPolicy, row.timestamp_policy),
                    _first(DigestAlgorithm, row.digest),
                    tuple(row.tsa or ()) or None,
                ),
            )
            for row in rows
        }

    async def of_process(self, process: ProcessId) -> list[RequestView]:
        """The requests of a process, in order."""
        return (await self.of_processes((process,))).get(process, [])

    async def of_processes(
        self, processes: Collection[ProcessId]
    ) -> dict[ProcessId, list[RequestView]]:
        """The requests of several processes, those of each in order."""
        query = _VIEWS.where(signature_request.c.process.in_(processes)).order_by(
            signature_request.c.process, signature_request.c.seq
        )
        found: dict[ProcessId, list[RequestView]] = {}
        for row in await self._connection.execute(query):
            found.setdefault(ProcessId(row.process), []).append(_view(row))
        return found

    async def unfinished(self, after: RequestId, limit: int) -> list[RequestView]:
        """Requests that are not over, by number, those above one."""
        query = (
            _VIEWS.where(
                signature_request.c.id > after,
                signature_request.c.state.in_([state.value for state in UNFINISHED]),
            )
            .order_by(signature_request.c.id)
            .limit(limit)
        )
        return [_view(row) for row in await self._connection.execute(query)]

    async def get(
        self, request: RequestId, *, lock: bool = False
    ) -> RequestView | None:
        """A request by id; `lock` keeps others from moving it, or one of its turn."""
        if lock:
            await self.lock_turns((request,))
        return (await self.named((request,))).get(request)

    async def presets_after(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, list[SignaturePreset]]:
        """What those who may sign after requests bring to their signatures.

        Args:
            requests: at most as many as one call signs.

        Returns:
            Nothing of a request after which nobody brings anything.
        """
        rows = await self._connection.execute(
            select(signature_request.c.id, _LATER.c.preset)
            .join(_LATER, _COMES_LATER)
            .where(signature_request.c.id.in_(requests), _LATER.c.preset.is_not(None))
        )
        found: dict[RequestId, list[SignaturePreset]] = {}
        for request, preset in rows:
            brought = SignaturePreset.from_json(preset)
            found.setdefault(RequestId(request), []).append(brought)
        return found

    async def lock_turns(self, requests: Collection[RequestId]) -> None:
        """Keep others from moving those requests, and any of the same turns.

        What is read of them after it is what they are.
        """
        own, its = signature_request.alias("own"), signature_request.alias("its")
        same = exists().where(
            own.c.id.in_(requests),
            own.c.process == signature_request.c.process,
            own.c.turn == signature_request.c.turn,
        )
        # By processes: without them every row there is would be looked at.
        processes = select(its.c.process).where(its.c.id.in_(requests))
        # In one order, so that two who lock several never wait for each other.
        await self._connection.execute(
            select(signature_request.c.id)
            .where(
                signature_request.c.process.in_(processes),
                or_(signature_request.c.id.in_(requests), same),
            )
            .order_by(signature_request.c.id)
            .with_for_update()
        )

    async def named(
        self, requests: Collection[RequestId], *, lock: bool = False
    ) -> dict[RequestId, RequestView]:
        """Those requests that there are; `lock` as in `get`, in the order of ids."""
        query = _NAMED_LOCKED if lock else _NAMED
        rows = await self._connection.execute(query, {"requests": [*requests]})
        return {RequestId(row.id): _view(row) for row in rows}

    async def standing(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, tuple[RequestState, IntegratorId]]:
        """How those stand that there are, and whose they are; kept from others.

        In the order of ids, as `named` locks them, and without their documents.
        """
        rows = await self._connection.execute(_STANDING, {"requests": [*requests]})
        return {
            RequestId(row.id): (RequestState(row.state), IntegratorId(row.integrator))
            for row in rows
        }

    async def with_signed(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, tuple[RequestView, SignedDocumentView | None]]:
        """Those that there are, each with the newest version of its document."""
        # Of several versions the newest comes last, and stays.
        rows = await self._connection.execute(
            _NAMED_WITH_SIGNED, {"requests": [*requests]}
        )
        return {
            RequestId(row.id): (
                _view(row),
                None
                if row.version is None
                else SignedDocumentView(
                    request=RequestId(row.id),
                    integrator=IntegratorId(row.signed_integrator),
                    file_name=row.name,
                    sha256=row.signed_sha256,
                    size_bytes=row.signed_size_bytes,
                    level=row.signed_level,
                    version=row.version,
                ),
            )
            for row in rows
        }

    async def in_progress(self, requests: Collection[RequestId]) -> int:
        """How many of those requests are `en_proceso`."""
        query = select(func.count()).where(
            signature_request.c.id.in_(requests),
            signature_request.c.state == RequestState.IN_PROGRESS.value,
        )
        return (await self._connection.execute(query)).scalar_one()

    async def of_person(
        self,
        person: PersonId,
        states: Collection[RequestState],
        *,
        limit: int | None = None,
        before: RequestId | None = None,
        integrator: IntegratorId | None = None,
    ) -> list[RequestView]:
        """A person's requests in those states, newest first."""
        query = _VIEWS.where(
            signature_request.c.person == person,
            signature_request.c.origin != FRAME_ORIGIN,
            signature_request.c.state.in_([state.value for state in states]),
        ).order_by(signature_request.c.id.desc())
        if integrator is not None:
            query = query.where(signature_request.c.integrator == integrator)
        if before is not None:
            query = query.where(signature_request.c.id < before)
        if limit is not None:
            query = query.limit(limit)
        return [_view(row) for row in await self._connection.execute(query)]

    async def all(self, limit: int) -> list[RequestView]:
        """The newest requests of anybody, for operators."""
        query = _VIEWS.order_by(signature_request.c.id.desc()).limit(limit)
        return [_view(row) for row in await self._connection.execute(query)]

    async def move(
        self,
        request: RequestId,
        now: RequestState,
        then: RequestState,
        reason: str = "",
    ) -> bool:
        """Move along a legal edge; False if it was not in state `now`.

        Raises:
            ApplianceError: `STATE` for an edge that does not exist.
        """
        check_move(now, then)
        if then is RequestState.IN_PROGRESS:
            raise ApplianceError(ErrorCode.STATE, params={"estado": now.value})
        result = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.state == now.value,
            )
            .values(state=then.value, reason=reason)
        )
        return result.rowcount == 1

    async def cancel(self, requests: Collection[RequestId], reason: str) -> None:
        """Move requests `pendiente` → `cancelada`.

        Args:
            requests: that the caller holds locked.
            reason: in words, or empty.
        """
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id.in_(requests),
                signature_request.c.state == RequestState.PENDING.value,
            )
            .values(state=RequestState.CANCELLED.value, reason=reason)
        )

    async def recovered(self, request: RequestId, level: str) -> bool:
        """Have a request be signed whose document was found after a restore."""
        result = await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.state.in_(
                    (RequestState.PENDING.value, RequestState.IN_PROGRESS.value)
                ),
            )
            .values(state=RequestState.SIGNED.value, reason="", level=level)
        )
        return result.rowcount == 1

    async def raised(self, request: RequestId, level: str) -> None:
        """Set the level that a signed request's document has reached."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.state == RequestState.SIGNED.value,
            )
            .values(level=level)
        )

    async def prolong(self, request: RequestId, until: datetime) -> None:
        """Give a request of a session more time to be signed."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request,
                signature_request.c.origin == FRAME_ORIGIN,
            )
            .values(expires=until)
        )

    async def saw(self, request: RequestId, at: datetime) -> None:
        """Note that its signer has read it, the first time that they did."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.id == request, signature_request.c.seen.is_(None)
            )
            .values(seen=at)
        )

    async def give_until(self, process: ProcessId, until: datetime | None) -> None:
        """Say until when the unfinished requests of a process can be signed."""
        await self._connection.execute(
            update(signature_request)
            .where(
                signature_request.c.process == process,
                signature_request.c.state.in_([state.value for state in UNFINISHED]),
            )
            .values(expires=until)
        )

    async def overdue(self, at: datetime, limit: int) -> list[RequestId]:
        """Requests whose time to be signed is over, those over longest, by number."""
        rows = await self._connection.execute(
            select(signature_request.c.id)
            .where(
                signature_request.c.state.in_(
                    [RequestState.PENDING.value, RequestState.WAITING.value]
                ),
                signature_request.c.expires <= at,
            )
            # By number, all requests that ever were might be read.
            .order_by(signature_request.c.expires)
            .limit(limit)
        )
        # In one order, so that two sweeps never wait for each other.
        return sorted(RequestId(number) for number in rows.scalars())


def numbered_about(
    at: datetime, outermost: ColumnElement[int], otherwise: int
) -> ScalarSelect[Any]:
    """The outermost number of the requests that came in about a time.

    Requests are numbered as they come in, but for the clocks of several hosts: so a
    list begins near its end, not at the newest. One by a wrong clock moves the bound
    outwards alone.

    Args:
        at: the time.
        outermost: `func.min` or `func.max` of their numbers.
        otherwise: what to give where there are none.
    """
    created = signature_request.c.created
    return (
        select(func.coalesce(outermost, otherwise))
        .where(created >= at - _SKEW, created < at + _SKEW)
        .correlate(None)
        .scalar_subquery()
    )


def _is_first(new: NewRequest, seq: int, asked: Sequence[NewRequest]) -> bool:
    return seq == 0 or (new.turn is not None and new.turn == asked[0].turn)


def _columns(
    new: NewRequest, process: str, seq: int, *, is_first: bool
) -> dict[str, object]:
    """A new request, as the table has it."""
    state = RequestState.PENDING if is_first else RequestState.WAITING
    return {
        "process": process,
        "seq": seq,
        "person": new.person,
        "integrator": new.integrator,
        "document": new.document,
        "name": new.name,
        "state": state.value,
        "reason": "",
        "origin": new.origin,
        "created": new.created,
        "expires": new.expires,
        "wished_level": new.wishes.level,
        "timestamp_policy": new.wishes.timestamp_policy,
        "digest": new.wishes.digest,
        "tsa": new.wishes.tsa and list(new.wishes.tsa),
        "named_by": new.named_by,
        "preset": new.preset and new.preset.to_json(),
        "batch": new.batch,
        "turn": new.turn,
        "original_sha256": new.original_sha256,
    }


def note_columns(note: ProcessNote) -> dict[str, object]:
    """What of the row of a process, or of a batch, is said by whoever asks for it.

    Args:
        note: as they say it.
    """
    return {
        "reference": note.reference,
        "unique_reference": note.reference if note.is_unique else None,
        "metadata": dict(note.metadata) or None,
        "language": note.language,
        "message": note.message,
    }


def _view(row: Row[Any]) -> RequestView:
    """Read a row of `_VIEWS`."""
    repair = repair_in(row)
    return RequestView(
        id=RequestId(row.id),
        person=PersonId(row.person),
        integrator=IntegratorId(row.integrator),
        integrator_name=row.integrator_name,
        document_name=row.name,
        state=RequestState(row.state),
        reason=row.reason,
        sha256=row.sha256,
        wishes=ProfileWishes(
            _first(SignatureLevel, row.wished_level, row.i_level),
            _first(TimestampPolicy, row.timestamp_policy, row.i_timestamp_policy),
            _first(DigestAlgorithm, row.digest, row.i_digest),
            tuple(row.tsa or row.i_tsa or ()) or None,
        ),
        repair=repair,
        inspection=as_it_came(_inspection(row.inspection), repair),
        created=row.created,
        expires=row.expires,
        params_sha256=row.params_sha256,
        activation=row.activation,
        origin=row.origin,
        process=ProcessId(row.process),
        seq=row.seq,
        turn=row.turn,
        shared=row.held is not None,
        held=bool(row.held),
        followed=bool(row.followed),
        preset=None if row.preset is None else SignaturePreset.from_json(row.preset),
        batch=None if row.batch is None else RequestBatchId(row.batch),
    )


def _first(kind: type[_Word], *words: str | None) -> _Word | None:
    """The first word that is there: of the request, then of its integrator."""
    return next((kind(word) for word in words if word is not None), None)

"""Which processes are signed and which batches are over, of which nobody was told."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, exists, insert, select, true

from appliance.database.tables import integrator_event, signature_request
from appliance.domain.ids import ProcessId, RequestBatchId, RequestId
from appliance.domain.integrators.events import TellableEvent
from appliance.domain.requests.request import UNFINISHED
from appliance.domain.vocab import EventKind, RequestState
from appliance.record.unit_of_work import Store

_R: Final = signature_request.c
_E: Final = integrator_event.c
_OTHER: Final = signature_request.alias("other")
_UNSIGNED: Final = [
    state.value for state in RequestState if state is not RequestState.SIGNED
]
_UNFINISHED: Final = [state.value for state in UNFINISHED]


@dataclass(frozen=True, slots=True)
class Part:
    """A request, and what it is part of."""

    request: RequestId
    process: ProcessId
    batch: RequestBatchId | None


class EndingsStore(Store):
    """Processes and batches at their end."""

    async def parts(self, requests: Collection[RequestId]) -> list[Part]:
        """What some requests are part of."""
        rows = await self._connection.execute(
            select(_R.id, _R.process, _R.batch).where(_R.id.in_(requests))
        )
        return [
            Part(
                RequestId(row.id),
                ProcessId(row.process),
                None if row.batch is None else RequestBatchId(row.batch),
            )
            for row in rows
        ]

    async def completed(
        self,
        processes: Collection[ProcessId],
        kinds: Collection[EventKind],
        taken: Collection[int],
    ) -> list[ProcessId]:
        """Of some processes those that all have signed, which nobody was told yet.

        Args:
            processes: which.
            kinds: events that end a request.
            taken: events that are handed on now: while another one is pending, it is
                too early.
        """
        said = EventKind.REQUEST_COMPLETED
        ended = await self._ended(_R.process, processes, _UNSIGNED, kinds, taken, said)
        return [ProcessId(each) for each in ended]

    async def over(
        self,
        batches: Collection[RequestBatchId],
        kinds: Collection[EventKind],
        taken: Collection[int],
    ) -> list[RequestBatchId]:
        """Of some batches those whose requests all are over; see `completed`."""
        said = EventKind.BATCH_ENDED
        ended = await self._ended(_R.batch, batches, _UNFINISHED, kinds, taken, said)
        return [RequestBatchId(each) for each in ended]

    async def _ended(
        self,
        group: Column[Any],
        wanted: Collection[str],
        open_states: Collection[str],
        kinds: Collection[EventKind],
        taken: Collection[int],
        said: EventKind,
    ) -> list[str]:
        """Of some groups those without an open request; see `completed`."""
        if not wanted:
            return []
        groups = select(group).where(group.in_(wanted)).distinct().subquery()
        its = _OTHER.c[group.name] == groups.c[group.name]
        event_of = integrator_event.join(_OTHER, _OTHER.c.id == _E.request)
        waits = exists().where(its, _OTHER.c.state.in_(open_states))
        comes = (
            exists()
            .select_from(event_of)
            .where(
                its,
                _E.pending,
                _E.event.in_([kind.value for kind in kinds]),
                _E.id.not_in(taken),
            )
        )
        told = exists().select_from(event_of).where(its, _E.event == said.value)
        rows = await self._connection.execute(
            select(groups.c[group.name]).where(~waits, ~comes, ~told)
        )
        return list(rows.scalars())

    async def add(
        self, after: TellableEvent, kind: EventKind, detail: Mapping[str, object]
    ) -> None:
        """Record what an event ended; pending, as that one was.

        Args:
            after: the event.
            kind: what it ended.
            detail: what is told of that.
        """
        await self._connection.execute(
            insert(integrator_event)
            .values(
                integrator=after.integrator,
                request=after.request,
                event=kind.value,
                at=after.at,
                detail=dict(detail),
                pending=true(),
            )
            .inline()
        )

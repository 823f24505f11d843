"""Processes in SQL, as the integrator that asked for them may see them."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, exists, select, update
from sqlalchemy.exc import IntegrityError

from appliance.core.database.tables import (
    person,
    signature_request,
    signing_process,
)
from appliance.core.unit_of_work import Store, Transaction
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId, ProcessId, RequestId
from appliance.domain.requests.process import (
    NamedBy,
    ProcessFilter,
    ProcessNote,
    SignerShown,
    SigningProcess,
)
from appliance.domain.vocab import RequestState
from appliance.requests.request_store import RequestStore, note_columns

_FIRST: Final = signature_request.alias("first")
_ANY: Final = signature_request.alias("any")
_EARLIER: Final = signature_request.alias("earlier")
_SIGNED: Final = RequestState.SIGNED.value
_HEADS: Final[Select[Any]] = select(signing_process, _FIRST.c.id.label("first")).join(
    _FIRST, (_FIRST.c.process == signing_process.c.id) & (_FIRST.c.seq == 0)
)
"""Processes, each with its first request, by whose number they are listed."""


class ProcessStore(Store):
    """Processes of one integrator."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction)
        self._requests = RequestStore(transaction)

    async def get(
        self, whose: IntegratorId, wanted: ProcessId
    ) -> SigningProcess | None:
        """A process by id; somebody else's is as absent as none."""
        found = await self._those(
            _HEADS.where(
                signing_process.c.id == wanted, signing_process.c.integrator == whose
            )
        )
        return found[0] if found else None

    async def matching(
        self, whose: IntegratorId, asked: ProcessFilter
    ) -> list[SigningProcess]:
        """An integrator's processes, newest first."""
        # By the requests' own index: newest first, whoever else asks for how many.
        query = _HEADS.where(_FIRST.c.integrator == whose, *_conditions(asked))
        return await self._those(query.order_by(_FIRST.c.id.desc()).limit(asked.limit))

    async def note(self, process: ProcessId) -> ProcessNote:
        """What is said of a process that is there, whosever it is."""
        query: Select[Any] = select(signing_process).where(
            signing_process.c.id == process
        )
        return _note((await self._connection.execute(query)).one())

    async def message(self, process: ProcessId) -> str | None:
        """What the integrator wrote to the signers of a process."""
        found = await self._connection.execute(
            select(signing_process.c.message).where(signing_process.c.id == process)
        )
        return found.scalar_one_or_none()

    async def of_reference(
        self, whose: IntegratorId, reference: str
    ) -> ProcessId | None:
        """The process that has a reference for itself."""
        found = await self._connection.execute(
            select(signing_process.c.id).where(
                signing_process.c.integrator == whose,
                signing_process.c.unique_reference == reference,
            )
        )
        return found.scalar_one_or_none()

    async def change(self, changed: ProcessId, note: ProcessNote) -> None:
        """Write what is said of a process from now on.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`.
        """
        try:
            await self._connection.execute(
                update(signing_process)
                .where(signing_process.c.id == changed)
                .values(**note_columns(note))
            )
        except IntegrityError as exc:
            raise ApplianceError(ErrorCode.REFERENCE_IN_USE) from exc

    async def signers(
        self, requests: Collection[RequestId]
    ) -> dict[RequestId, SignerShown]:
        """Who those requests are for, as far as their integrator may know."""
        query: Select[Any] = (
            select(
                signature_request.c.id,
                signature_request.c.person,
                signature_request.c.named_by,
                signature_request.c.state,
                person.c.cuil,
                person.c.name,
            )
            .join(person, person.c.id == signature_request.c.person)
            .where(signature_request.c.id.in_(requests))
        )
        rows = await self._connection.execute(query)
        return {RequestId(row.id): _shown(row) for row in rows}

    async def _those(self, query: Select[Any]) -> list[SigningProcess]:
        heads = (await self._connection.execute(query)).all()
        requests = await self._requests.of_processes([ProcessId(r.id) for r in heads])
        return [
            SigningProcess(
                ProcessId(row.id),
                IntegratorId(row.integrator),
                row.created,
                _note(row),
                tuple(requests[ProcessId(row.id)]),
            )
            for row in heads
        ]


def _conditions(asked: ProcessFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if asked.before is not None:
        found.append(_FIRST.c.id < asked.before)
    if asked.reference is not None:
        found.append(signing_process.c.reference == asked.reference)
    if asked.since is not None:
        found.append(signing_process.c.created >= asked.since)
    if asked.until is not None:
        found.append(signing_process.c.created < asked.until)
    if asked.cuil is not None:
        found.append(
            exists()
            .where(_ANY.c.process == signing_process.c.id)
            .where(_ANY.c.person == person.c.id)
            .where(person.c.cuil == asked.cuil)
        )
    if asked.state is not None:
        found.append(_is_in(asked.state))
    return found


def _is_in(state: RequestState) -> ColumnElement[bool]:
    """Whether a process is in a state: as `SigningProcess.state` has it."""
    if state is RequestState.SIGNED:
        return ~exists().where(
            _ANY.c.process == signing_process.c.id, _ANY.c.state != _SIGNED
        )
    is_first = ~exists().where(
        _EARLIER.c.process == _ANY.c.process,
        _EARLIER.c.seq < _ANY.c.seq,
        _EARLIER.c.state != _SIGNED,
    )
    return exists().where(
        _ANY.c.process == signing_process.c.id, _ANY.c.state == state.value, is_first
    )


def _note(row: Row[Any]) -> ProcessNote:
    return ProcessNote(
        row.api_key,
        row.reference,
        row.unique_reference is not None,
        row.metadata or {},
        row.language,
        row.message,
    )


def _shown(row: Row[Any]) -> SignerShown:
    # Who has signed stands in the document anyway.
    if row.named_by == NamedBy.CUIL.value or row.state == _SIGNED:
        return SignerShown(PersonId(row.person), row.cuil, row.name)
    return SignerShown(PersonId(row.person), None, None)

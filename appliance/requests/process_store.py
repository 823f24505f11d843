"""Processes in SQL, as the integrator that asked for them may see them."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Row,
    Select,
    Tuple,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import (
    credential,
    person,
    signature_request,
    signing_process,
    signing_secret,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    MAX_REQUEST_ID,
    IntegratorId,
    PersonId,
    ProcessId,
    RequestId,
)
from appliance.domain.requests.process import (
    DECIDING,
    NamedBy,
    ProcessFilter,
    ProcessNote,
    SignerShown,
    SigningProcess,
)
from appliance.domain.requests.signer_bars import Validity, bar_of
from appliance.domain.vocab import CredentialState, PersonState, RequestState
from appliance.record.unit_of_work import Store, Transaction
from appliance.requests.request_store import RequestStore, note_columns, numbered_about
from appliance.requests.turn_store import turn_of

_PLACE: Final = signature_request.alias("place")
_OTHER: Final = signature_request.alias("other")
_BESIDE: Final = signature_request.alias("beside")
_SIGNED: Final = RequestState.SIGNED.value
_WAITING: Final = frozenset({RequestState.PENDING.value, RequestState.WAITING.value})
_HEADS: Final[Select[Any]] = select(signing_process, _PLACE.c.id.label("place")).join(
    _PLACE, _PLACE.c.process == signing_process.c.id
)
"""Processes, each with the one request by whose number it is listed. Which that is, the
filter says: so each list is read along an index, however many there are."""


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
                signing_process.c.id == wanted,
                signing_process.c.integrator == whose,
                _PLACE.c.seq == 0,
            )
        )
        return found[0][1] if found else None

    async def matching(
        self, whose: IntegratorId, asked: ProcessFilter
    ) -> list[tuple[RequestId, SigningProcess]]:
        """An integrator's processes, newest first, each with its place in the list."""
        query = _HEADS.where(_PLACE.c.integrator == whose, *_conditions(asked))
        return await self._those(query.order_by(_PLACE.c.id.desc()).limit(asked.limit))

    async def note(self, process: ProcessId) -> ProcessNote:
        """What is said of a process that is there, whosever it is."""
        query: Select[Any] = select(signing_process).where(
            signing_process.c.id == process
        )
        return note_of((await self._connection.execute(query)).one())

    async def successor(self, process: ProcessId) -> ProcessId | None:
        """The process that was asked for in the place of a failed one."""
        found = await self._connection.execute(
            select(signing_process.c.id).where(signing_process.c.replaces == process)
        )
        row = found.scalar_one_or_none()
        return None if row is None else ProcessId(row)

    async def replaced(self, process: ProcessId) -> ProcessId | None:
        """The failed process in whose place one was asked for."""
        found = await self._connection.execute(
            select(signing_process.c.replaces).where(signing_process.c.id == process)
        )
        row = found.scalar_one_or_none()
        return None if row is None else ProcessId(row)

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
        return (await self.of_references(whose, (reference,))).get(reference)

    async def of_references(
        self, whose: IntegratorId, references: Collection[str]
    ) -> dict[str, ProcessId]:
        """The processes that have those references for themselves."""
        found = await self._connection.execute(
            select(signing_process.c.unique_reference, signing_process.c.id).where(
                signing_process.c.integrator == whose,
                signing_process.c.unique_reference.in_(references),
            )
        )
        return {row.unique_reference: ProcessId(row.id) for row in found}

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
                person.c.state.label("person_state"),
                signing_secret.c.locked_at,
            )
            .join(person, person.c.id == signature_request.c.person)
            .outerjoin(signing_secret, signing_secret.c.person == person.c.id)
            .where(signature_request.c.id.in_(requests))
        )
        rows = (await self._connection.execute(query)).all()
        waiting = {row.person for row in rows if row.state in _WAITING}
        held = await self._validities(waiting)
        now = self._clock.now()
        found = {}
        for row in rows:
            bar = None
            if row.state in _WAITING:
                state = PersonState(row.person_state)
                bar = bar_of(state, row.locked_at, held.get(row.person, ()), now)
            found[RequestId(row.id)] = replace(_shown(row), bar=bar)
        return found

    async def _validities(self, people: Collection[str]) -> dict[str, list[Validity]]:
        """Certificates of some people, newest first."""
        found: dict[str, list[Validity]] = {}
        if not people:
            return found
        rows = await self._connection.execute(
            select(
                credential.c.person,
                credential.c.state,
                credential.c.not_before,
                credential.c.not_after,
            )
            .where(credential.c.person.in_(people))
            .order_by(credential.c.created.desc(), credential.c.id)
        )
        for row in rows:
            state = CredentialState(row.state)
            held = Validity(state, row.not_before, row.not_after)
            found.setdefault(row.person, []).append(held)
        return found

    async def _those(
        self, query: Select[Any]
    ) -> list[tuple[RequestId, SigningProcess]]:
        heads = (await self._connection.execute(query)).all()
        requests = await self._requests.of_processes([ProcessId(r.id) for r in heads])
        return [
            (
                RequestId(row.place),
                SigningProcess(
                    ProcessId(row.id),
                    IntegratorId(row.integrator),
                    row.created,
                    note_of(row),
                    tuple(requests[ProcessId(row.id)]),
                ),
            )
            for row in heads
        ]


def only_revoked(whose: ColumnElement[Any]) -> ColumnElement[bool]:
    """True if a person's certificates are revoked, and none is in use.

    Args:
        whose: column of the person's id, of a table outside.
    """
    own = credential.c.person == whose
    revoked = (CredentialState.REVOKING.value, CredentialState.REVOKED.value)
    return and_(
        exists().where(own, credential.c.state.in_(revoked)),
        ~exists().where(own, credential.c.state == CredentialState.ACTIVE.value),
    )


def _conditions(asked: ProcessFilter) -> list[ColumnElement[bool]]:
    found = [_is_place(asked)]
    if asked.before is not None:
        found.append(_PLACE.c.id < asked.before)
    if asked.batch is not None:
        found.append(_PLACE.c.batch == asked.batch)
    if asked.reference is not None:
        found.append(signing_process.c.reference == asked.reference)
    if asked.since is not None:
        found.append(_PLACE.c.created >= asked.since)
        first = numbered_about(asked.since, func.min(signature_request.c.id), 0)
        found.append(_PLACE.c.id >= first)
    if asked.until is not None:
        found.append(_PLACE.c.created < asked.until)
        newest = func.max(signature_request.c.id)
        found.append(_PLACE.c.id <= numbered_about(asked.until, newest, MAX_REQUEST_ID))
    return found


def _is_place(asked: ProcessFilter) -> ColumnElement[bool]:
    """Which request of a process that is asked for it is listed by: one at most."""
    if asked.cuil is not None:
        # Nobody signs twice in a process.
        whose = select(person.c.id).where(person.c.cuil == asked.cuil)
        # Who was named otherwise is not found out by their CUIL.
        known = (_PLACE.c.named_by == NamedBy.CUIL.value) | (_PLACE.c.state == _SIGNED)
        own = (_PLACE.c.person == whose.scalar_subquery()) & known
        if asked.state is None:
            return own
        return own & exists().where(
            _OTHER.c.process == _PLACE.c.process, _decides(_OTHER, asked.state)
        )
    if asked.state is not None:
        return _decides(_PLACE, asked.state)
    return _PLACE.c.seq == 0


def _decides(request: FromClause, state: RequestState) -> ColumnElement[bool]:
    """Whether a request is the one that a process has that state by.

    As `SigningProcess.deciding` has it.
    """
    unsigned = _BESIDE.c.state != _SIGNED
    if state is RequestState.SIGNED:
        stands_before = or_(unsigned, _BESIDE.c.seq > request.c.seq)
    else:
        stands_before = and_(unsigned, _place_of(_BESIDE) < _place_of(request))
    before = exists().where(_BESIDE.c.process == request.c.process, stands_before)
    return and_(request.c.state == state.value, ~before)


def _place_of(request: FromClause) -> Tuple:
    """Where it stands among those that decide; see `DECIDING`."""
    ranks = {state.value: rank for rank, state in enumerate(DECIDING)}
    return tuple_(turn_of(request), case(ranks, value=request.c.state), request.c.seq)


def note_of(row: Row[Any]) -> ProcessNote:
    """What is said of a process, or of a batch.

    Args:
        row: of its table.
    """
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
    if row.state == _SIGNED:
        return SignerShown(PersonId(row.person), row.cuil, row.name)
    if row.named_by == NamedBy.CUIL.value:
        # A name by its CUIL would be told to whoever asks anybody to sign.
        return SignerShown(PersonId(row.person), row.cuil, None)
    return SignerShown(PersonId(row.person), None, None)

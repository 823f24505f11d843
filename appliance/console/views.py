"""What the console shows: lists, one of them in full, counts, the audit's chain.

Nothing here changes anything. Addresses leave masked.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from appliance.console.batch_list_store import ConsoleBatchStore, read_batch_id
from appliance.console.installation_state import MAILS_LOST
from appliance.console.revoked_store import RevokedStore
from appliance.console.undelivered_store import Undelivered, UndeliveredStore
from appliance.console.view_store import ConsoleViewStore
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditRow
from appliance.domain.clock import Clock
from appliance.domain.console.lists import (
    AuditFilter,
    AuditPage,
    AuditPlace,
    BatchView,
    BlockedRow,
    ChainView,
    HomeNumbers,
    IntegratorFilter,
    IntegratorNumbers,
    Names,
    Page,
    PeopleFilter,
    PeopleQuery,
    PersonRow,
    PersonView,
    RequestFilter,
    RequestRow,
    RevokedRow,
    Search,
    WriterRow,
    read_search,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    CredentialId,
    IntegratorId,
    PersonId,
    ProcessId,
    RequestId,
)
from appliance.domain.integrators.integrators import IntegratorView
from appliance.domain.people.identity import bare_number
from appliance.domain.ports import LookupIndex, Sealer
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.levels import Upkeep, UpkeepCount
from appliance.domain.requests.process import ProcessNote
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.requests.signer_bars import Bar
from appliance.domain.signing.hsm_tasks import AskedTask, WorkerStatus
from appliance.domain.vocab import EventKind, RequestState, TaskKind
from appliance.identity.login import email_indexes
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.worker_store import WorkerStore
from appliance.pki.validation.certificate_rules import serial_of
from appliance.record import pagination
from appliance.record.audit_check import AuditChains
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.signing.level_maintenance import upkeep_overdue
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from appliance.signing.signer_readiness import bar_of_person

PAGE: Final = 50
"""Rows of a page."""
SPAN: Final = 20_000
"""Rows in which a page looks for a text; the next page goes on below them."""
UNDELIVERED_SHOWN: Final = 10
"""Webhooks, mails and signers of each kind that are told one by one."""
_NAMED: Final = 20
"""People, and administrators, who are looked for wherever an audit row names them."""
_BLOCKED_SHOWN: Final = 5
_WAITING: Final = frozenset({RequestState.PENDING, RequestState.WAITING})
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class RequestHistory:
    """A request and all that is shown beside it."""

    view: RequestView
    signed: SignedDocumentView | None
    signer: PersonRow
    steps: tuple[RequestView, ...]
    """The requests of its process, in order; itself among them."""
    story: AuditPage
    upkeep: Upkeep | None
    """What the signed document still needs, by itself and later."""
    note: ProcessNote
    """What its integrator says of it."""
    batch: RequestBatch | None
    """What it was asked for with, where it is one of many."""
    bar: Bar | None
    """Reason why its signer cannot sign, while it waits."""
    barred: frozenset[RequestId]
    """Requests of its process that wait for somebody who cannot sign."""
    successor: RequestId | None = None
    """The request that was asked for in its place, since it failed."""
    replaces: RequestId | None = None
    """The failed request in whose place it was asked for."""


class ConsoleViews:
    """The reading use cases of administrators.

    Args:
        store: the record.
        sealer: opens e-mail addresses, to be masked.
        lookup: finds people by e-mail address.
        clock: the time.
    """

    def __init__(
        self, store: Database, sealer: Sealer, lookup: LookupIndex, clock: Clock
    ) -> None:
        self._store = store
        self._chains = AuditChains(store)
        self._sealer = sealer
        self._lookup = lookup
        self._clock = clock

    async def home(self) -> tuple[HomeNumbers, list[BlockedRow]]:
        """What waits for somebody, and the latest blocked origins."""
        async with self._store.read() as transaction:
            numbers = await ConsoleViewStore(transaction).numbers(self._clock.now())
            return numbers, await ConsoleViewStore(transaction).blocked(_BLOCKED_SHOWN)

    async def listed_integrators(
        self, wanted: IntegratorFilter, cursor: str = ""
    ) -> Page[IntegratorView]:
        """Integrators, by code; the cursor is the last code of the page before."""
        async with self._store.read() as transaction:
            rows = await ConsoleViewStore(transaction).integrators(
                wanted, self._clock.now(), PAGE + 1, cursor
            )
        return _page(rows, lambda row: row.code)

    async def integrator_code(self, text: str) -> str:
        """The code of the one integrator that a text may mean; else the text itself.

        Args:
            text: a code, a name, or part of either.
        """
        meant, _ = await self.meant_integrator(text)
        return text if meant is None else meant.code

    async def meant_integrator(self, text: str) -> tuple[IntegratorView | None, bool]:
        """The one integrator that a text may mean, and whether it names it whole.

        Args:
            text: a code, a name, or part of either; empty means nobody.
        """
        if not text:
            return None, False
        wanted = IntegratorFilter(text=text)
        found = (await self.listed_integrators(wanted)).rows
        named = [
            one for one in found if text.casefold() in {one.code, one.name.casefold()}
        ]
        if len(named) == 1:
            return named[0], True
        return (found[0] if len(found) == 1 and not named else None), False

    async def integrators(self) -> dict[IntegratorId, IntegratorNumbers]:
        """How each integrator stands; one without anything is not there."""
        async with self._store.read() as transaction:
            return await ConsoleViewStore(transaction).integrator_numbers(
                self._clock.now()
            )

    async def key_sessions(self, key_id: str) -> int:
        """Sessions that would end if an API key were revoked now."""
        async with self._store.read() as transaction:
            return await ConsoleViewStore(transaction).key_sessions(
                key_id, self._clock.now()
            )

    async def workers(self) -> list[WorkerStatus]:
        """What every worker of the last day last said of itself."""
        since = self._clock.now() - timedelta(days=1)
        async with self._store.read() as transaction:
            return await WorkerStore(transaction).alive(since)

    async def overdue(self) -> list[UpkeepCount]:
        """Signed documents that have waited too long for their level or timestamp."""
        return await upkeep_overdue(self._store, self._clock)

    async def undelivered(self) -> Undelivered:
        """List what reaches nobody, by kind; `UNDELIVERED_SHOWN` of each at most."""
        since = self._clock.now() - MAILS_LOST
        async with self._store.read() as transaction:
            found = UndeliveredStore(transaction)
            return Undelivered(
                tuple(await found.webhooks(UNDELIVERED_SHOWN)),
                tuple(await found.mails(since, UNDELIVERED_SHOWN)),
                tuple(await found.signers(UNDELIVERED_SHOWN)),
            )

    async def people(self, wanted: PeopleFilter, cursor: str = "") -> Page[PersonRow]:
        """Persons, newest first.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        after = pagination.read_instant(cursor)
        place = None if after is None else (after[0], PersonId(after[1]))
        async with self._store.read() as transaction:
            views = ConsoleViewStore(transaction)
            query = await self._people_query(views, wanted)
            looked = query.name or query.cuil
            floor = await views.people_floor(query, place, SPAN) if looked else None
            rows = await views.people(query, PAGE + 1, place, floor)
        return _page(
            rows,
            lambda row: pagination.instant(row.created, row.id),
            None if floor is None else pagination.instant(*floor),
        )

    async def revoked(self, text: str = "", cursor: str = "") -> Page[RevokedRow]:
        """Revoked certificates of signers, the latest revocation first.

        Args:
            text: part of a name, a CUIL or a serial number; empty: everybody's.
            cursor: where the page before ended.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        after = pagination.read_instant(cursor)
        place = None if after is None else (after[0], CredentialId(after[1]))
        async with self._store.read() as transaction:
            whose = None
            if text:
                whose = await ConsoleViewStore(transaction).whose(read_search(text))
            rows = await RevokedStore(transaction).listed(PAGE + 1, place, whose)
        rows = [replace(row, serial=serial_of(row.certificate)) for row in rows]
        return _page(rows, lambda row: pagination.instant(row.place, row.credential))

    async def _people_query(
        self, views: ConsoleViewStore, wanted: PeopleFilter
    ) -> PeopleQuery:
        """Read one box: an address, a CUIL or serial, or part of a name or CUIL."""
        text = wanted.text.strip()
        digits = bare_number(text)
        by_cuil = digits.isascii() and digits.isdigit()
        among = await _among(views, read_search(text))
        by_text = among is None and "@" not in text
        return PeopleQuery(
            name=text if by_text and not by_cuil else "",
            cuil=digits if by_text and by_cuil else "",
            among=among,
            email_indexes=email_indexes(self._lookup, text) if "@" in text else (),
            state=wanted.state,
            locked=wanted.locked,
            asks_help=wanted.asks_help,
        )

    async def person(self, person: PersonId) -> PersonView:
        """A person in full.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`, `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            found = await ConsoleViewStore(transaction).person(
                person, self._clock.now()
            )
        if found is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        email = self._sealer.open(
            found.email_sealed, table="person", row=person, column="email_sealed"
        )
        return PersonView(
            found.row,
            mask(email.decode()),
            found.counted,
            found.invited_until,
        )

    async def bar(self, person: PersonId) -> Bar | None:
        """Return why a person cannot sign now; None: they can."""
        async with self._store.read() as transaction:
            return await bar_of_person(transaction, person, self._clock.now())

    async def known(self, cuil: str, email: str) -> tuple[str, PersonRow] | None:
        """Who has a CUIL or an e-mail address already.

        Args:
            cuil: as typed.
            email: as typed.

        Returns:
            Which of the two it is, `cuil` or `email`, and whose.
        """
        async with self._store.read() as transaction:
            views = ConsoleViewStore(transaction)
            for field, text in (("cuil", cuil), ("email", email)):
                query = await self._people_query(views, PeopleFilter(text=text))
                if query.among or query.email_indexes:
                    for row in await views.people(query, 1, None):
                        return field, row
        return None

    async def requests(
        self, wanted: RequestFilter, cursor: str = ""
    ) -> Page[RequestRow]:
        """Requests of everybody, newest first; those named by what they are, before.

        A `loteId` finds the requests of that batch alone. Of batches that a reference
        names, the first page begins with the newest requests; the rest of them is the
        list of that batch (`batches`).

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        after = pagination.read_number(cursor)
        place = None if after is None else RequestId(after)
        async with self._store.read() as transaction:
            views = ConsoleViewStore(transaction)
            wanted = await _by_batch(transaction, wanted)
            search = read_search(wanted.text)
            exact = await _exact(views, wanted, search) if place is None else ()
            wanted = replace(wanted, among=await _among(views, search))
            is_key = wanted.among is not None or wanted.batch is not None
            looked = wanted.text and not is_key
            floor = await views.requests_floor(wanted, place, SPAN) if looked else None
            rows = await views.requests(wanted, PAGE + 1, place, floor)
        page = _page(
            rows, lambda row: str(row.id), None if floor is None else str(floor)
        )
        others = tuple(row for row in page.rows if row not in exact)
        return replace(page, rows=(*exact, *others))

    async def batches(self, wanted: RequestFilter) -> tuple[BatchView, ...]:
        """The batch of a filter, or those that its text names, newest first."""
        async with self._store.read() as transaction:
            return await ConsoleBatchStore(transaction).named(wanted)

    async def request(self, number: RequestId) -> RequestHistory:
        """A request in full: itself, its signed document, process and story.

        Raises:
            ApplianceError: `SOLICITUD_NOT_FOUND`.
        """
        async with self._store.read() as transaction:
            view = await RequestStore(transaction).get(number)
            if view is None:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            signed = await DocumentStore(transaction).signed(number)
            upkeep = await LevelMaintenanceStore(transaction).of_request(number)
            signer = await ConsoleViewStore(transaction).person(
                view.person, self._clock.now()
            )
            rows = await transaction.audit.of_request(number)
            steps = tuple(await RequestStore(transaction).of_process(view.process))
            note = await ProcessStore(transaction).note(view.process)
            shown = await ProcessStore(transaction).signers([s.id for s in steps])
            bar = None
            if view.state in _WAITING:
                now = self._clock.now()
                bar = await bar_of_person(transaction, view.person, now)
            processes = ProcessStore(transaction)
            successor = await _beside(
                transaction, view, await processes.successor(view.process)
            )
            replaces = await _beside(
                transaction, view, await processes.replaced(view.process)
            )
            batch = view.batch and await RequestBatchStore(transaction).get(
                view.integrator, view.batch
            )
            signers = {step.person for step in steps}
            names = await _names(transaction, rows, signers)
        if signer is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        story = AuditPage(Page(_without_leaving(rows), None), names)
        return RequestHistory(
            view,
            signed,
            signer.row,
            steps,
            story,
            upkeep,
            note,
            batch or None,
            bar,
            frozenset(ident for ident, each in shown.items() if each.bar is not None),
            successor,
            replaces,
        )

    async def audit(self, wanted: AuditFilter, cursor: str = "") -> AuditPage:
        """Audit rows, newest first.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        after = pagination.read_place(cursor)
        async with self._store.read() as transaction:
            views = ConsoleViewStore(transaction)
            named = floor = None
            if wanted.text:
                named = await views.named(read_search(wanted.text), _NAMED)
                floor = await views.audit_floor(wanted, after, SPAN)
            rows = await views.audit(wanted, PAGE + 1, after, named, floor)
            page = _page(
                rows,
                lambda row: pagination.place(AuditPlace(row.at, row.writer, row.n)),
                None if floor is None else pagination.place(floor),
            )
            return AuditPage(page, await _names(transaction, page.rows))

    async def asked_key(self, person: PersonId) -> AskedTask | None:
        """The newest key that a person asked for; None for one who has not enrolled."""
        async with self._store.read() as transaction:
            asked = await HsmTaskStore(transaction).of_person(person, TaskKind.ISSUE)
        return asked[-1] if asked else None

    async def renewals(self, person: PersonId) -> dict[str, AskedTask]:
        """The newest renewal of each of a person's credentials, by its id."""
        async with self._store.read() as transaction:
            asked = await HsmTaskStore(transaction).of_person(person, TaskKind.RENEW)
        return {str(task.given["credential"]): task for task in asked}

    async def chains(
        self, cursor: str = ""
    ) -> Page[tuple[WriterRow, ChainView | None]]:
        """The audit's chains, newest first; None of one that was not checked here.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        return await self._chains.checked_page(cursor)

    async def chain(self, writer: str) -> ChainView:
        """Read a writer's rows again and see whether they hang together.

        Raises:
            ApplianceError: `NOT_FOUND` for a writer that is none.
        """
        return await self._chains.one(writer)


async def _beside(
    transaction: Transaction, view: RequestView, process: ProcessId | None
) -> RequestId | None:
    """The request of the same signer in another process.

    Args:
        transaction: the caller's.
        view: one request of the signer.
        process: the other process, if there is one.
    """
    if process is None:
        return None
    there = await RequestStore(transaction).of_process(process)
    # Nobody signs twice in a process.
    return next((each.id for each in there if each.person == view.person), None)


def _without_leaving(rows: Sequence[AuditRow]) -> tuple[AuditRow, ...]:
    """A request's history, a rejection told once.

    Sessions used to record that the signer left right before that they rejected, in
    one transaction; the audit itself keeps both.
    """
    before = {
        (row.writer, row.n - 1)
        for row in rows
        if row.event.event is EventKind.REQUEST_REJECTED
    }
    return tuple(
        row
        for row in rows
        if row.event.event is not EventKind.SESSION_CANCELLED
        or (row.writer, row.n) not in before
    )


async def _names(
    transaction: Transaction,
    rows: list[AuditRow] | tuple[AuditRow, ...],
    people: Collection[PersonId] = (),
) -> Names:
    """Words for the ids of actors, persons and integrators in rows."""
    kinds: dict[str, set[str]] = {
        "person": set(people),
        "console": set(),
        "integrator": set(),
    }
    for row in rows:
        kind, _, ident = row.event.actor.partition(":")
        kinds.get(kind, set()).add(ident)
        kinds["person"].add(str(row.event.detail.get("person", "")))
        kinds["integrator"].add(row.event.integrator or "")
    return await ConsoleViewStore(transaction).names(
        kinds["person"], kinds["console"], kinds["integrator"]
    )


async def _among(
    views: ConsoleViewStore, search: Search
) -> tuple[PersonId, ...] | None:
    """Whom a CUIL or serial names; None for a text that may be part of a name.

    Digits that are nobody's CUIL may still stand in the name of a document.
    """
    return (await views.holders(search) or None) if search.is_key else None


async def _by_batch(transaction: Transaction, wanted: RequestFilter) -> RequestFilter:
    """A filter whose text may name batches: by its id one is a filter of its own."""
    if not wanted.text or wanted.batch is not None:
        return wanted
    named = await ConsoleBatchStore(transaction).named(wanted)
    if named and named[0].id == read_batch_id(wanted.text.strip()):
        return replace(wanted, text="", batch=named[0].id)
    return replace(wanted, apart=tuple(batch.id for batch in named))


async def _exact(
    views: ConsoleViewStore, wanted: RequestFilter, search: Search
) -> tuple[RequestRow, ...]:
    """Requests that a text names by their number, reference or batch, each once."""
    exact = await views.referenced(wanted, PAGE) if wanted.text else []
    if search.number is not None:
        numbered = await views.numbered(wanted, RequestId(search.number))
        exact += [numbered] if numbered else []
    for batch in wanted.apart:
        if (left := PAGE - len(exact)) > 0:
            exact += await views.of_batch(wanted, batch, left)
    return tuple({row.id: row for row in exact}.values())


def _page(
    rows: list[_Row], cursor_of: pagination.CursorOf[_Row], floor: str | None = None
) -> Page[_Row]:
    """A page of rows of which one more than a page was asked for.

    Args:
        rows: found.
        cursor_of: says where a row is.
        floor: cursor of the last row that was looked at, where more are left.
    """
    shown = tuple(rows[:PAGE])
    return Page(shown, cursor_of(shown[-1]) if len(rows) > PAGE else floor)


def mask(email: str) -> str:
    """An address of which its owner alone knows the rest.

    Args:
        email: the address.
    """
    name, _, host = email.rpartition("@")
    return f"{name[:1]}…@{host}"

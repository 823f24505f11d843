"""Asking again for a signature whose request failed for good."""

from dataclasses import replace
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import Repair, as_it_came
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.ports import BlobStore
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import RequestState
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.intake import Intake, stored_as
from appliance.requests.process_store import ProcessStore
from appliance.requests.recording import NewProcess, NewSigner, record
from appliance.requests.request_store import RequestStore

WITH_OTHERS: Final = "PROCESS_ENDED"
"""Reason of a request that ended because another one of its process did."""


def may_be_asked_again(view: RequestView) -> bool:
    """True if the request failed by itself, on a document that nobody else changed.

    Args:
        view: the request.
    """
    is_own = view.reason != WITH_OTHERS and not view.held
    return view.state is RequestState.FAILED and is_own


class RequestAgain:
    """The use case of an administrator who asks again.

    Args:
        store: the record.
        documents: the files of documents.
        intake: examines the document once more.
        clock: the time.
    """

    def __init__(
        self, store: Database, documents: BlobStore, intake: Intake, clock: Clock
    ) -> None:
        self._store = store
        self._documents = documents
        self._intake = intake
        self._clock = clock

    async def ask(self, request: RequestId, actor: str, origin: str) -> RequestId:
        """Make a new request of the same document to those who have not signed it.

        What was said of the document, its signers and its process stays; a deadline
        that is over begins again. A reference stays without being unique: the failed
        request has it. A batch has been reported as ended, and gets nothing more. A
        process is asked for again once: later calls, and those at the same moment,
        lead to the requests that the first one made.

        Args:
            request: that failed.
            actor: for the audit.
            origin: of the new request.

        Returns:
            The new request of who signs first.

        Raises:
            DocumentRefusedError: the document cannot be signed.
            ApplianceError: `SOLICITUD_NOT_FOUND`; `STATE`: it did not fail by itself;
                `DOCUMENT_DAMAGED`, `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        async with self._store.read() as transaction:
            requests = RequestStore(transaction)
            view = await requests.get(request)
            if view is None:
                raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
            if not may_be_asked_again(view):
                estado = view.state.value
                raise ApplianceError(ErrorCode.STATE, params={"estado": estado})
            made = await _asked_already(transaction, view)
            if made is not None:
                return made
            steps = await requests.of_process(view.process)
            as_asked = await requests.as_asked(view.process)
            note = await ProcessStore(transaction).note(view.process)
        pdf = await self._documents.get(view.integrator, view.sha256)
        examined = await self._intake.examined(view.integrator, pdf)
        now = self._clock.now()
        expires = view.expires
        if expires is not None and expires <= now:
            expires = now + (expires - view.created)
        left = [each for each in steps if each.state is RequestState.FAILED]
        turns = sorted({each.turn for each in left if each.turn is not None})
        new = NewProcess(
            document=_as_it_came(await stored_as(view.integrator, examined), view),
            name=view.document_name,
            signers=tuple(
                NewSigner(
                    each.person,
                    named_by=as_asked[each.id].named_by,
                    preset=each.preset,
                    turn=None if each.turn is None else turns.index(each.turn) + 1,
                )
                for each in left
            ),
            origin=origin,
            actor=actor,
            created=now,
            expires=expires,
            wishes=as_asked[view.id].wishes,
            note=replace(note, api_key=None, is_unique=False),
            replaces=view.process,
        )
        async with (
            self._intake.keeping(view.integrator, [(pdf, examined)]) as kept,
            self._store.write() as transaction,
        ):
            # Whoever asks at the same moment waits here, and then finds what was made.
            await RequestStore(transaction).lock_turns([each.id for each in steps])
            made = await _asked_already(transaction, view)
            if made is not None:
                return made
            await kept.recorded(transaction)
            return (await record(transaction, new))[0]


async def _asked_already(
    transaction: Transaction, failed: RequestView
) -> RequestId | None:
    """The first request that was made in the place of a failed one; None before."""
    process = await ProcessStore(transaction).successor(failed.process)
    if process is None:
        return None
    return (await RequestStore(transaction).of_process(process))[0].id


def _as_it_came(document: StoredDocument, failed: RequestView) -> StoredDocument:
    """A document that may be a repaired copy, with the file that came first.

    Args:
        document: examined once more, which does not tell where it comes from.
        failed: the request whose document it is.
    """
    before, now = failed.repair, document.repair
    if before is None:
        return document
    damage = {*before.damage} if now is None else {*before.damage, *now.damage}
    repair = Repair(before.original_sha256, tuple(sorted(damage)))
    inspection = as_it_came(document.inspection, repair)
    return replace(document, inspection=inspection, repair=repair)

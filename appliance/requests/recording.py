"""A document and who signs it, recorded as one process: by whomever it is asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, ProcessId, RequestBatchId, RequestId
from appliance.domain.requests.intake import NewRequest, StoredDocument
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.process import NO_NOTE, NamedBy, ProcessNote
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Transaction
from appliance.requests.request_store import RequestStore


@dataclass(frozen=True, slots=True)
class NewSigner:
    """Somebody who is to sign."""

    person: PersonId
    named_by: NamedBy | None = None
    preset: SignaturePreset | None = None
    turn: int | None = None
    """As of `RequestView`: of all signers of a process, or of none."""


@dataclass(frozen=True, slots=True)
class NewProcess:
    """What is to be recorded."""

    document: StoredDocument
    """Kept already; its row is made, or found, with the process."""
    name: str
    """File name of the document, checked."""
    signers: tuple[NewSigner, ...]
    """In the order in which they sign, by their turns; nobody twice."""
    origin: str
    actor: str
    created: datetime
    expires: datetime | None = None
    wishes: ProfileWishes = NO_WISHES
    note: ProcessNote = NO_NOTE
    batch: RequestBatchId | None = None
    """What it is asked for with, where it is one of many."""
    replaces: ProcessId | None = None
    """The failed process that it is asked for in the place of; no other one is."""


async def record(transaction: Transaction, new: NewProcess) -> list[RequestId]:
    """Record a process.

    Args:
        transaction: the caller's.
        new: what.

    Returns:
        The requests, in order: those of the first turn `pendiente`, the others
        `en_espera`.

    Raises:
        ApplianceError: `REFERENCE_IN_USE`.
    """
    return (await record_all(transaction, [new]))[0]


async def record_all(
    transaction: Transaction, new: Sequence[NewProcess]
) -> list[list[RequestId]]:
    """Record processes of one integrator, by a few statements however many they are.

    Args:
        transaction: the caller's.
        new: what; one at least.

    Returns:
        The requests of each, as of `record`.

    Raises:
        ApplianceError: `REFERENCE_IN_USE`.
    """
    if not all(process.signers for process in new):
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    documents = await DocumentStore(transaction).add_all(
        [process.document for process in new], new[0].created
    )
    each = list(zip(new, documents, strict=True))
    made = await RequestStore(transaction).add_all(
        [
            ([_request(process, document, by) for by in process.signers], process.note)
            for process, document in each
        ],
        [process.replaces for process in new],
    )
    for (process, document), requests in zip(each, made, strict=True):
        for created in _told(process, document, requests):
            transaction.audit.add(created)
    return made


def _request(
    new: NewProcess, document: StoredDocument, signer: NewSigner
) -> NewRequest:
    return NewRequest(
        person=signer.person,
        integrator=document.integrator,
        document=document.id,
        name=new.name,
        origin=new.origin,
        created=new.created,
        expires=new.expires,
        wishes=new.wishes,
        named_by=signer.named_by,
        preset=signer.preset,
        batch=new.batch,
        turn=signer.turn,
        original_sha256=document.original_sha256,
    )


def _told(
    new: NewProcess, document: StoredDocument, requests: Sequence[RequestId]
) -> Iterator[AuditEvent]:
    """That each of a process's requests was made."""
    of_all = {**document.facts(), **({} if new.batch is None else {"batch": new.batch})}
    before: RequestId | None = None
    last: RequestId | None = None
    turn: int | None = None
    for signer, request in zip(new.signers, requests, strict=True):
        if signer.turn is None or signer.turn != turn:
            # The last one of the turn before.
            before, turn = last, signer.turn
        last = request
        after = {} if before is None else {"predecessor": before}
        yield AuditEvent(
            EventKind.REQUEST_CREATED,
            new.actor,
            integrator=document.integrator,
            request=request,
            detail={**of_all, "person": signer.person, **after},
        )

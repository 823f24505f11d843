"""A document and who signs it, recorded as one process: by whomever it is asked for."""

from dataclasses import dataclass
from datetime import datetime

from appliance.core.unit_of_work import Transaction
from appliance.documents.document_store import DocumentStore
from appliance.domain.audit import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.requests.new_request import NewRequest, StoredDocument
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.process import NO_NOTE, NamedBy, ProcessNote
from appliance.domain.vocab import EventKind
from appliance.requests.request_store import RequestStore


@dataclass(frozen=True, slots=True)
class NewSigner:
    """Somebody who is to sign."""

    person: PersonId
    named_by: NamedBy | None = None
    preset: SignaturePreset | None = None


@dataclass(frozen=True, slots=True)
class NewProcess:
    """What is to be recorded."""

    document: StoredDocument
    """Kept already; its row is made, or found, with the process."""
    name: str
    """File name of the document, checked."""
    signers: tuple[NewSigner, ...]
    """In the order in which they sign; nobody twice."""
    origin: str
    actor: str
    created: datetime
    expires: datetime | None = None
    wishes: ProfileWishes = NO_WISHES
    note: ProcessNote = NO_NOTE


async def record(transaction: Transaction, new: NewProcess) -> list[RequestId]:
    """Record a process.

    Args:
        transaction: the caller's.
        new: what.

    Returns:
        The requests, in order: the first `pendiente`, the others `en_espera`.

    Raises:
        ApplianceError: `REFERENCE_IN_USE`.
    """
    if not new.signers:
        raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
    document = await DocumentStore(transaction).add(new.document, new.created)
    requests: list[RequestId] = []
    for signer in new.signers:
        asked = NewRequest(
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
        )
        requests.append(
            await RequestStore(transaction).follow(requests[-1], asked)
            if requests
            else await RequestStore(transaction).add(asked, new.note)
        )
        after = {"predecessor": requests[-2]} if len(requests) > 1 else {}
        transaction.audit.add(
            AuditEvent(
                EventKind.REQUEST_CREATED,
                new.actor,
                integrator=document.integrator,
                request=requests[-1],
                detail={**document.facts(), "person": signer.person, **after},
            )
        )
    return requests

"""A console's record with one of everything that a page is about.

populated = await populate(console)
path = f"/admin/people/{populated.values['person_id'][0]}"
"""

from dataclasses import dataclass, replace

from appliance.documents.document_store import DocumentStore
from appliance.domain.documents.inspected import Damage, Repair
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestBatchId, RequestId, new_id
from appliance.domain.requests.backend_batch import (
    BatchToPrepare,
    DocumentToPrepare,
    RequestBatch,
)
from appliance.domain.requests.process import ProcessNote
from appliance.domain.requests.request import Signer
from appliance.domain.vocab import BatchState, HelpTopic, RequestState
from appliance.record.unit_of_work import Transaction
from appliance.requests.batch_queue import BatchQueue
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from appliance.signing.claims import Publication
from tests.integration.console.forms import (
    ANA_DIGITS,
    given_up,
    key_id,
    lock,
    sha256,
    upload,
    with_secret,
)
from tests.integration.console.health_page import hand_over, sample
from tests.support.factories.fakes import NOON
from tests.support.factories.held_credential import Held, hold
from tests.support.installation.console import Console, write_pki
from tests.support.installation.record import keyed, prepared, signed_view
from tests.support.pki.outside_ca import OutsideCa, bundle, der

_LUIS_DIGITS = "20267565393"


@dataclass
class Populated:
    """What a record was filled with; the integrator is `acme`."""

    values: dict[str, list[str]]
    """Values for addresses of pages, by the name of the route's argument."""
    webhook: str
    """Path of the page of a webhook."""
    batch: RequestBatchId
    held: Held
    """Credential of the first person."""
    outside: OutsideCa
    """CA whose root is in the trust store."""


async def populate(console: Console) -> Populated:
    """Fill the record; the integrator is there already."""
    services = console.services
    ana = await with_secret(console)
    held = await hold(services.store, ana, ANA_DIGITS, console.clock.now())
    luis = await console.person(_LUIS_DIGITS, "Luis Peña", enrolled=False)
    await lock(console, ana)
    batch = RequestBatchId(new_id())
    numbers = await _requests(console, (ana, luis), batch, der(held.certificate))
    acme = (await services.record.view(numbers[0])).integrator
    ask = console.services.help_requests.ask_in_frame
    await ask(ana, HelpTopic.BOTH, acme, proven=True)
    await services.sessions.note_blocked("acme", "https://otro.example")
    domain = await console.front.integrators.add_domain(
        "operator", "acme", "https://acme.example"
    )
    webhook, message = await given_up(console)
    ca = OutsideCa(NOON, "a")
    added = {"fingerprint": sha256(ca), "purpose": "signers"}
    await upload(console, "/admin/trust", bundle(ca.root), **added)
    (anchor,) = await console.front.trust.anchors()
    write_pki(console)
    _figures(console)
    async with services.store.read() as transaction:
        writers = await transaction.audit.writers()
    values: dict[str, list[str]] = {
        "person_id": [ana, luis],
        "credential_id": [held.id],
        "number": [str(number) for number in numbers],
        "code": ["acme"],
        "key_id": [await key_id(console)],
        "domain_id": [domain.id],
        "webhook": [webhook.rpartition("/")[2]],
        "message": [message],
        "anchor_id": [anchor.id],
        "writer": writers[:1],
    }
    return Populated(values, webhook, batch, held, ca)


async def _requests(
    console: Console,
    people: tuple[PersonId, PersonId],
    batch: RequestBatchId,
    certificate: bytes,
) -> list[RequestId]:
    """Have requests alone, in a batch, in turn, rejected, failed, and signed."""
    ana, luis = people
    record = console.services.record
    pending = RequestId(await console.request(ANA_DIGITS))
    failed = RequestId(await console.request(ANA_DIGITS, "fallido.pdf"))
    acme = (await record.view(pending)).integrator
    repair = Repair("ab" * 32, (min(Damage),))
    grouped = await record.add_request(ana, integrator=acme, batch=batch, repair=repair)
    first, _ = await record.add_process([ana, luis], integrator=acme)
    rejected = await record.add_request(ana, integrator=acme)
    signed = await record.add_request(ana, integrator=acme)
    note = ProcessNote("k", "recibos", metadata={"area": "rrhh"}, message="Hola.")
    async with record.store.write() as transaction:
        made = RequestBatch(batch, acme, record.now, note)
        await RequestBatchStore(transaction).add(made)
        await _unready(transaction, made, ana)
        await RequestStore(transaction).move(
            rejected, RequestState.PENDING, RequestState.REJECTED, "No es mío."
        )
        await RequestStore(transaction).move(
            failed, RequestState.PENDING, RequestState.FAILED, "TSA_UNAVAILABLE"
        )
    await record.begin(Signer(ana, f"person:{ana}", (), record.now), [signed])
    worker = record.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.documents
    view = signed_view(await record.view(signed))
    assert await worker.intend(work.claim, [prepared(item)], certificate)
    assert await worker.record_signatures(work.claim, [keyed(item)])
    assert await worker.publish(work.claim, [Publication(item, view)])
    async with record.store.write() as transaction:
        raised = replace(view, level="B-T", version=2)
        await DocumentStore(transaction).sealed(signed, raised, record.now)
    return [pending, grouped, first, rejected, failed, signed]


async def _unready(
    transaction: Transaction, made: RequestBatch, signer: PersonId
) -> None:
    """Batches that are prepared, refused and taken back, with one reference."""
    batches = RequestBatchStore(transaction)
    for state in (BatchState.PREPARING, BatchState.REFUSED, BatchState.CANCELLED):
        new = replace(
            made,
            id=RequestBatchId(new_id()),
            note=replace(made.note, reference="en curso"),
            state=state,
            person=signer,
            total=30,
            examined=17,
        )
        await batches.add(new)
        if state is BatchState.PREPARING:
            order = BatchToPrepare("integrator:k", None, None, None)
            await BatchQueue(transaction).add(
                new,
                order,
                [
                    DocumentToPrepare(
                        place=0,
                        name="a.pdf",
                        field="contenido",
                        part=None,
                        sha256="ab" * 32,
                        size_bytes=9,
                        document=None,
                        reference=None,
                        is_unique=False,
                        metadata={},
                        wished=None,
                    )
                ],
            )
        elif state is BatchState.REFUSED:
            faults = [
                ApplianceError(
                    ErrorCode.PDF_MALFORMED,
                    extras={"field": f"documentos[{n}].contenido"},
                )
                for n in range(12)
            ]
            await batches.refuse(new.id, faults, made.created)
        else:
            await batches.take_back(new.id, "Era otra versión.", made.created)


def _figures(console: Console) -> None:
    """Hand figures of each kind over, as the roles do."""
    at = console.clock.now().timestamp() - 60
    tsa, firma, pool = {"tsa": "internal"}, {"token": "firma"}, {"pool": "database"}
    hand_over(
        console,
        "signing",
        sample("rubrica_redis_connected", 1),
        sample("rubrica_hsm_ready", 1, **firma),
        sample("rubrica_hsm_sessions", 2, **firma),
        sample("rubrica_hsm_faults_total", 4, fault="session", **firma),
        sample("rubrica_hsm_last_fault_timestamp_seconds", at, **firma),
        sample("rubrica_pool_places", 4, **pool),
        sample("rubrica_pool_held", 4, **pool),
        sample("rubrica_pool_waiting", 1, **pool),
        sample("rubrica_pool_refused_total", 7, cause="full", **pool),
        sample("rubrica_tsa_requests_total", 3, outcome="granted", **tsa),
        sample("rubrica_tsa_requests_total", 2, outcome="failed", **tsa),
        sample("rubrica_tsa_last_success_timestamp_seconds", at, **tsa),
        sample("rubrica_tsa_last_failure_timestamp_seconds", at, **tsa),
    )

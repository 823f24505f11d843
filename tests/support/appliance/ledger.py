"""The auditor of a ledger: whether the record, its files and its audit agree.

    assert read_ledger(appliance).faults() == []

It reads the tables themselves, so it sees what no service would show. Ask it
about an appliance at rest: no call is going on.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyhanko.pdf_utils.misc import IndirectObjectExpected
from sqlalchemy import Row, Table, select

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.documents.document_store import KEY_COLUMN, KEY_TABLE
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.audit.record import AuditEvent, AuditRow, first_break
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import IntegratorId
from appliance.domain.vocab import (
    ActivationState,
    CertificateState,
    EventKind,
    IntentState,
    ItemState,
    RequestState,
)
from appliance.secrets.key_files import KeyFile
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import Settings
from tests.support.appliance.appliance import Appliance
from tests.support.documents.validators import pdfsig, pyhanko_verdicts, read_pdf
from tests.support.processes.event_loops import run_apart
from worker.sandbox.verify.verify import verify

_TABLES: Final = (
    tables.signature_request,
    tables.document,
    tables.document_key,
    tables.document_original,
    tables.document_repair,
    tables.signed_document,
    tables.level_upkeep,
    tables.credential,
    tables.former_certificate,
    tables.certificate,
    tables.ocsp_response,
    tables.activation,
    tables.activation_item,
    tables.intent,
    tables.hsm_task,
    tables.attempt_slot,
    tables.audit_writer,
    tables.audit_event,
)
PYHANKO_FAILS: Final = "pyHanko fails"
"""What `document_faults` says where it has no verdict of pyHanko."""
_ENDED: Final = frozenset(
    state.value
    for state in (ActivationState.DONE, ActivationState.EXPIRED, ActivationState.FAILED)
)
_STORY: Final = (
    EventKind.ACTIVATION_CREATED,
    EventKind.ACTIVATION_CLAIMED,
    EventKind.KEY_INTENDED,
    EventKind.KEY_USED,
    EventKind.REQUEST_SIGNED,
)
"""What the audit tells of every signature, in this order."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """All rows as they stood at one moment.

    Args:
        rows: of each table, by its name.
        documents: folder of the PDFs.
        files: that stood there just before the rows were read.
        roots: DER certificates that are trusted.
        read_at: when it was read.
        after: requests up to this one were looked at before: their documents are
            left alone, and may have failed with their key used.
        keys: of each integrator's documents.
    """

    rows: dict[str, list[Row[Any]]]
    documents: Path
    files: tuple[Path, ...]
    roots: list[bytes]
    read_at: datetime
    after: int
    keys: "LedgerKeys"

    def of(self, table: Table) -> list[Row[Any]]:
        """All rows of a table."""
        return self.rows[table.name]

    def with_state(self, state: RequestState) -> list[Row[Any]]:
        """The requests in a state."""
        return [r for r in self.of(tables.signature_request) if r.state == state.value]

    @property
    def newest(self) -> int:
        """The last request that was made."""
        return max((r.id for r in self.of(tables.signature_request)), default=0)

    def attempts(self, request: int) -> list[IntentState]:
        """How each intended use of a key for a request ended, oldest first."""
        items = {
            (item.activation, item.seq)
            for item in self.of(tables.activation_item)
            if item.request == request
        }
        mine = [i for i in self.of(tables.intent) if (i.activation, i.item) in items]
        return [IntentState(i.state) for i in sorted(mine, key=lambda i: i.at)]

    @property
    def intents(self) -> Counter[str]:
        """How many intents are in each state."""
        return Counter(row.state for row in self.of(tables.intent))

    def faults(self) -> list[str]:
        """Everything that is not as it must be, in words; empty for a clean one."""
        checks: tuple[Callable[[Ledger], Iterator[str]], ...] = (
            _signed_requests,
            _nothing_pending,
            _intents,
            _files,
            _audit_chains,
            _revocations,
            _documents,
        )
        return [fault for check in checks for fault in check(self)]

    def path(self, integrator: str, sha256: str) -> Path:
        """Where a document lies."""
        return self.documents / integrator / sha256[:2] / f"{sha256}.pdf"

    def read(self, integrator: str, sha256: str) -> bytes | None:
        """A document; None when it is not there or not as it was."""
        store = LocalBlobStore(self.documents, self.keys)
        try:
            return run_apart(store.get(IntegratorId(integrator), sha256))
        except ApplianceError:
            return None


class LedgerKeys:
    """The keys of documents, as the record had them.

    Args:
        rows: of `document_key`.
        sealer: with the document key.
    """

    def __init__(self, rows: list[Row[Any]], sealer: SecretBox) -> None:
        self._keys = {
            row.integrator: sealer.open(
                row.key_sealed, table=KEY_TABLE, row=row.integrator, column=KEY_COLUMN
            )
            for row in rows
        }

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key."""
        return self._keys.get(integrator)

    async def make(self, integrator: IntegratorId) -> bytes:
        """An integrator's key."""
        return self._keys[integrator]


def read_ledger(appliance: Appliance, after: int = 0) -> Ledger:
    """Read everything at once.

    Args:
        appliance: at rest.
        after: `Ledger.after`.
    """
    settings = appliance.settings
    # First the files: each is named from then on, or is being named just now.
    files = tuple(settings.documents_dir.rglob("*.pdf"))
    rows = run_apart(_read(settings, _TABLES))
    now = datetime.now(UTC)
    sealer = SecretBox(KeyFile(settings.document_key_file))
    keys = LedgerKeys(rows[tables.document_key.name], sealer)
    folder, roots = settings.documents_dir, appliance.roots
    return Ledger(rows, folder, files, roots, now, after, keys)


def read_intents(appliance: Appliance) -> Counter[str]:
    """How many intents are in each state now."""
    rows = run_apart(_read(appliance.settings, (tables.intent,)))
    return Counter(row.state for row in rows[tables.intent.name])


async def _read(
    settings: Settings, wanted: tuple[Table, ...]
) -> dict[str, list[Row[Any]]]:
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            return {
                table.name: list((await connection.execute(select(table))).all())
                for table in wanted
            }
    finally:
        await engines.dispose()


def _signed_requests(ledger: Ledger) -> Iterator[str]:
    """`firmada` means: one activation, one item, one document, one whole story."""
    signed = {row.request: row for row in ledger.of(tables.signed_document)}
    activations = {row.id: row for row in ledger.of(tables.activation)}
    done = defaultdict(list)
    for item in ledger.of(tables.activation_item):
        if item.state == ItemState.DONE.value:
            done[item.request].append(item.activation)
    stories = defaultdict(list)
    for event in ledger.of(tables.audit_event):
        stories[event.request, event.activation].append(event)
    firmadas = ledger.with_state(RequestState.SIGNED)
    for request in firmadas:
        name = f"request {request.id}"
        if request.id not in signed:
            yield f"{name}: firmada without a document"
        if done[request.id] != [request.activation]:
            yield f"{name}: made by {done[request.id]}, says {request.activation}"
        activation = activations.get(request.activation)
        if activation is None or activation.state != ActivationState.DONE.value:
            yield f"{name}: its activation is not done"
        told = stories[request.id, request.activation]
        yield from (f"{name}: {fault}" for fault in _story(told))
    if extra := signed.keys() - {request.id for request in firmadas}:
        yield f"documents of requests that are not firmada: {sorted(extra)}"


def _story(events: list[Row[Any]]) -> Iterator[str]:
    """Created, claimed, intended, used, signed: paired and in this order."""
    times: dict[str, list[datetime]] = defaultdict(list)
    for event in events:
        times[event.event].append(event.at)
    last = datetime.min.replace(tzinfo=UTC)
    for kind in _STORY:
        if not times[kind.value]:
            yield f"no {kind}"
            continue
        # The claim and the intent that led to the end are the last ones.
        if max(times[kind.value]) < last and kind is not EventKind.ACTIVATION_CLAIMED:
            yield f"{kind} came before what it follows"
        last = min(times[kind.value])
    for kind in (
        EventKind.ACTIVATION_CREATED,
        EventKind.KEY_USED,
        EventKind.REQUEST_SIGNED,
    ):
        if len(times[kind.value]) > 1:
            yield f"{kind} {len(times[kind.value])} times"
    digests = defaultdict(set)
    for event in events:
        if "digest" in event.detail:
            digests[event.event].add((event.attempt, event.detail["digest"]))
    closed = digests[EventKind.KEY_USED] | digests[EventKind.KEY_INTERRUPTED]
    if digests[EventKind.KEY_INTENDED] != closed:
        yield "an intent is in the audit without its end, or the reverse"


def _revocations(ledger: Ledger) -> Iterator[str]:
    """A revoked key is revoked in every row, and was intended for nothing after."""
    states = {row.id: row.state for row in ledger.of(tables.credential)}
    answers = {row.serial: row.state for row in ledger.of(tables.ocsp_response)}
    for row in ledger.of(tables.certificate):
        if row.credential is not None and row.state != CertificateState.VALID.value:
            told = (states[row.credential], answers.get(row.serial, row.state))
            if row.state != CertificateState.REVOKED.value or set(told) != {row.state}:
                yield f"certificate {row.serial} is {row.state}, elsewhere {told}"
    asked = {
        event.detail["credential"]: event.at
        for event in ledger.of(tables.audit_event)
        if event.event == EventKind.REVOCATION_ASKED.value
    }
    keys = {row.id: row.credential for row in ledger.of(tables.activation)}
    for intent in ledger.of(tables.intent):
        at = asked.get(keys[intent.activation])
        if at is not None and intent.at > at:
            yield f"intent {intent.id} is of a key that was to be revoked"


def _nothing_pending(ledger: Ledger) -> Iterator[str]:
    """Nothing is under way, and no lease outlives what it was for."""
    for request in ledger.with_state(RequestState.IN_PROGRESS):
        yield f"request {request.id} is still en_proceso"
    for row in ledger.of(tables.activation):
        if row.state not in _ENDED:
            yield f"activation {row.id} is {row.state}"
        elif row.lease_until is not None and row.lease_until > ledger.read_at:
            yield f"activation {row.id} is {row.state} and leased"


def _intents(ledger: Ledger) -> Iterator[str]:
    """Each ended one way; one was completed for each document that was keyed.

    A document that fails once its key was used keeps what the key gave: rare, and
    only right in what was looked at before.
    """
    completed = Counter[tuple[str, int]]()
    for intent in ledger.of(tables.intent):
        if intent.state == IntentState.OPEN.value or intent.closed is None:
            yield f"intent {intent.id} of {intent.activation} is open"
        if intent.state == IntentState.COMPLETED.value:
            completed[intent.activation, intent.item] += 1
    for item in ledger.of(tables.activation_item):
        keyed = item.state in {ItemState.KEYED.value, ItemState.DONE.value}
        if item.request <= ledger.after:
            keyed = item.signature is not None
        if completed[item.activation, item.seq] != (1 if keyed else 0):
            yield f"item {item.seq} of {item.activation}: completed intents"


def _files(ledger: Ledger) -> Iterator[str]:
    """Every row has its file, whole, and every file its row.

    A try that was killed may have left some that nobody publishes, of each of its
    documents one: each has a timestamp of its own. They go with what nothing names.
    And a later version is durable a moment before its row.
    """
    named = {}
    for table in (
        tables.document,
        tables.document_original,
        tables.document_repair,
        tables.signed_document,
    ):
        for row in ledger.of(table):
            named[ledger.path(row.integrator, row.sha256)] = row.sha256
    for path, sha256 in named.items():
        if not path.exists():
            yield f"{path.name} is not there"
        elif ledger.read(path.parent.parent.name, sha256) is None:
            yield f"{path.name} is altered"
    strays = [path.name for path in ledger.files if path not in named]
    documents = Counter(row.activation for row in ledger.of(tables.activation_item))
    tries = sum(
        (row.fence - 1) * documents[row.id] for row in ledger.of(tables.activation)
    )
    tries += sum(row.fence for row in ledger.of(tables.level_upkeep))
    if len(strays) > tries:
        yield f"{strays} belong to nothing"


def _audit_chains(ledger: Ledger) -> Iterator[str]:
    """Each writer's rows hang together, to the last one it wrote."""
    chains = defaultdict(list)
    for row in sorted(ledger.of(tables.audit_event), key=lambda row: row.n):
        chains[row.writer].append(_audit_row(row))
    for writer in ledger.of(tables.audit_writer):
        rows = chains.pop(writer.id, [])
        if (broken := first_break(rows)) is not None:
            yield f"audit of {writer.role}: broken at {broken}"
        if len(rows) != writer.n or (rows and rows[-1].hash != writer.hash):
            yield f"audit of {writer.role}: its end is missing"
    if chains:
        yield f"audit rows of unknown writers: {sorted(chains)}"


def _audit_row(row: Row[Any]) -> AuditRow:
    event = AuditEvent(
        EventKind(row.event),
        row.actor,
        integrator=row.integrator,
        request=row.request,
        activation=row.activation,
        attempt=row.attempt,
        detail=row.detail,
    )
    return AuditRow(row.writer, row.n, row.prev, row.hash, row.at, event)


def _documents(ledger: Ledger) -> Iterator[str]:
    """Each signed PDF is what it must be; several are looked at at a time."""
    originals = {row.id: row.sha256 for row in ledger.of(tables.document)}
    activations = {row.id: row for row in ledger.of(tables.activation)}
    requests = {row.id: row for row in ledger.of(tables.signature_request)}
    items = {
        (row.activation, row.seq): row.request
        for row in ledger.of(tables.activation_item)
    }
    intended = {
        (items[row.activation, row.item], row.activation): row
        for row in ledger.of(tables.intent)
        if row.state == IntentState.COMPLETED.value
    }

    def look(row: Row[Any]) -> list[str]:
        request = requests[row.request]
        signed = ledger.read(row.integrator, row.sha256)
        original = ledger.read(row.integrator, originals[request.document])
        intent = intended.get((row.request, request.activation))
        if signed is None or original is None or intent is None:
            return []
        credential = activations[request.activation].credential
        found = document_faults(
            signed,
            original,
            ledger.roots,
            certificate=_certificate_at(ledger, credential, intent.at),
            digest=intent.digest,
        )
        return [f"request {row.request}: {fault}" for fault in found]

    with ThreadPoolExecutor(2) as pool:
        rows = ledger.of(tables.signed_document)
        for found in pool.map(look, [r for r in rows if r.request > ledger.after]):
            yield from found


def _certificate_at(ledger: Ledger, credential: str, at: datetime) -> bytes:
    """What a credential signed with at a time, DER.

    An outside CA's certificate leaves what it replaced in `former_certificate`;
    of our own CA's the newest of that time is it.
    """
    (present,) = [r for r in ledger.of(tables.credential) if r.id == credential]
    formers = [
        row
        for row in ledger.of(tables.former_certificate)
        if row.credential == credential and row.replaced > at
    ]
    then = min(formers, key=lambda r: r.replaced, default=present).certificate
    own = [r for r in ledger.of(tables.certificate) if r.credential == credential]
    if then in {row.der for row in own}:
        before = [row for row in own if row.issued <= at]
        then = max(before, key=lambda r: r.issued).der
    return bytes(then)


def document_faults(
    signed: bytes,
    original: bytes,
    roots: list[bytes],
    *,
    certificate: bytes | None = None,
    digest: str | None = None,
) -> list[str]:
    """What is wrong with one signed document.

    Args:
        signed: the document.
        original: what was to be signed.
        roots: DER certificates that are trusted.
        certificate: the signer's, DER, where it is known.
        digest: hex; what the record says the key was used on, where it is known.
    """
    if not signed.startswith(original) or len(signed) == len(original):
        return ["the original is not an untouched prefix"]
    faults = []
    try:
        verdict = pyhanko_verdicts(signed, roots)[-1]
    except IndirectObjectExpected:
        # It gives no verdict on a field without state whose looks stand in place.
        faults.append(PYHANKO_FAILS)
        if not verify(signed, roots).valid:
            faults.append("not valid for ourselves either")
    else:
        # What follows a signature, up to the end, is of its own validation.
        if not verdict.good or verdict.changes not in {"NONE", "LTA_UPDATES"}:
            faults.append(f"pyHanko: {verdict.details}")
        if certificate is not None and verdict.signer.dump() != certificate:
            faults.append("signed with another certificate")
    theirs = [each for each in pdfsig(signed) if not each.is_timestamp][-1:]
    if not theirs or not theirs[0].valid:
        faults.append(f"pdfsig: {theirs}")
    if digest is not None and _signed_digest(signed) != digest:
        faults.append("the key was used on something else than intended")
    return faults


def _signed_digest(pdf: bytes) -> str:
    """SHA-256, in hex, of what the last signature's key was used on."""
    signature = read_pdf(pdf).embedded_regular_signatures[-1]
    attributes = signature.signer_info["signed_attrs"].untag().dump()
    return hashlib.sha256(attributes).hexdigest()

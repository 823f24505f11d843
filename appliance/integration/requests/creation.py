"""Making requests of an integrator's backend: document, signers, look; once a key.

A call with an idempotency key that is repeated makes nothing new: it gets what the
first one made. Everything that can be refused is refused before anything is recorded.

Source: docs/integration.md "Ask for signatures".
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from appliance.documents.docmdp_policy import CERTIFIES
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, Faults
from appliance.domain.ids import IntegratorId, ProcessId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.ports import LookupIndex
from appliance.domain.requests.intake import StoredDocument
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.requests.process import BACKEND_ORIGIN, ProcessNote
from appliance.domain.vocab import Restriction
from appliance.integration.refusals import refused_within
from appliance.integration.requests.checks import (
    SIGNERS,
    OrderChecks,
    ReadyOrder,
    WantedDocument,
)
from appliance.integration.requests.idempotency import (
    MadeBefore,
    OrderKey,
    is_key_known,
)
from appliance.integration.requests.order import ProcessOrder
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.docmdp_conflicts import TurnOfSigner, lockouts
from appliance.requests.intake import Intake
from appliance.requests.presets import Presets
from appliance.requests.process_store import ProcessStore
from appliance.requests.recording import NewProcess, NewSigner, record
from appliance.requests.request_store import RequestStore
from appliance.requests.uploads import UploadedDocuments

SETTLING_S: Final = 60
"""Longest that the places of all signers of one order are looked for."""


@dataclass(frozen=True, slots=True)
class Made:
    """What an order came to."""

    process: ProcessId
    is_repeated: bool
    """Whether an earlier call with its idempotency key made it."""


class BackendOrders:
    """Makes what integrators' backends ask for.

    Args:
        store: the record.
        intake: examines and keeps what comes in.
        uploads: what came before.
        presets: settle look and place.
        lookup: finds people by e-mail.
        clock: the time.
    """

    def __init__(
        self,
        store: Database,
        intake: Intake,
        uploads: UploadedDocuments,
        presets: Presets,
        lookup: LookupIndex,
        clock: Clock,
    ) -> None:
        self._store = store
        self._intake = intake
        self._uploads = uploads
        self._presets = presets
        self._checks = OrderChecks(store, intake, uploads, lookup, clock)
        self._clock = clock

    async def is_repeated(self, whose: IntegratorId, key: str | None) -> bool:
        """Whether an order with this idempotency key was made before."""
        return await is_key_known(self._store, whose, key)

    async def create(self, asking: IntegratorCaller, order: ProcessOrder) -> Made:
        """Take a document in and ask people to sign it, one after the other.

        Args:
            asking: who asks.
            order: what for.

        Raises:
            DocumentRefusedError: the PDF cannot be signed, or not searched.
            FieldInvalidError: `vence` is over, or somebody is named twice.
            SeveralFaultsError: several of these; places once nothing else is wrong.
            ApplianceError: `PERSON_NOT_FOUND`, `REFERENCE_IN_USE`,
                `IDEMKEY_CONFLICT`, `DOCUMENT_NOT_FOUND`, `FILENAME`, `DOCUMENT_EMPTY`,
                `DOCUMENT_TOO_LARGE`, `OVERLOADED`, `SANDBOX_UNAVAILABLE`,
                `STORE_UNAVAILABLE`; those of `Presets.settle`, with the signer's field.
        """
        whose = asking.integrator.id
        key = OrderKey(whose, order.idempotency_key, await order.fingerprint())
        check = partial(self._checks.ready, whose, order)
        # What is faulty came to nothing, whatever its key stands for.
        ready = await (check() if order.faults else key.unless_made(self._store, check))
        if isinstance(ready, MadeBefore):
            return Made(ProcessId(ready.id), is_repeated=True)
        document = ready.document
        try:
            async with asyncio.timeout(SETTLING_S):
                signers = await self._signers(order, ready)
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.OVERLOADED) from exc
        came = [] if document.came is None else [document.came]
        async with (
            naming_the_other(self._store, whose, order.note),
            self._intake.keeping(whose, came) as kept,
            self._store.write() as transaction,
        ):
            now = self._clock.now()
            bound = await key.bind(transaction, now)
            if bound is not None:
                return Made(ProcessId(bound), is_repeated=True)
            await kept.recorded(transaction)
            new = self._process(asking, order, document, signers)
            made = await self._record(transaction, asking, order, new)
            await key.stands_for(transaction, made, now)
        return Made(made, is_repeated=False)

    async def _signers(self, order: ProcessOrder, ready: ReadyOrder) -> list[NewSigner]:
        """Who signs, and what each brings to the signature.

        Raises:
            ApplianceError: all those of `Presets.settle`, with the field;
                `SIGNERS_LOCKED_OUT` for whoever leaves another one no place.
        """
        signers: list[NewSigner] = []
        original = document = ready.document.stored
        faults = Faults()
        came = ready.document.came
        pdf = None if came is None else came[1].pdf
        turns = [
            place if named.turn is None else named.turn
            for place, named in enumerate(order.signers)
        ]
        taken: set[str | None] = set()
        each = zip(ready.people, order.signers, strict=True)
        for place, (person, named) in enumerate(each):
            is_shared = turns.count(turns[place]) > 1
            if named.wished is None:
                signers.append(NewSigner(person.id, named.by, None, named.turn))
                continue
            with faults.collected(), refused_within(f"{SIGNERS}[{place}].sello"):
                preset = await self._presets.settle(
                    # Who would lock out a fixed one is told below, and not that one.
                    original if named.wished.fixed else document,
                    named.wished,
                    person,
                    followed=turns[place] < turns[-1] or is_shared,
                    preceded=turns[place] > turns[0],
                    shared=is_shared,
                    pdf=pdf,
                )
                params = preset.given.params
                if params.field is not None and params.field in taken:
                    raise ApplianceError(
                        ErrorCode.SIGNATURE_FIELD_FILLED, extras={"field": "campo"}
                    )
                taken.add(params.field)
                document = _after(document, params.restriction)
                signers.append(NewSigner(person.id, named.by, preset, named.turn))
        faults.demand_none()
        presets = (each.preset for each in signers)
        placed = [*map(TurnOfSigner, turns, presets)]
        for place, field in lockouts(original.inspection.signing, placed).items():
            blamed = {"field": f"{SIGNERS}[{place}].sello.{field}"}
            code = ErrorCode.SIGNERS_LOCKED_OUT
            faults.add(ApplianceError(code, extras=dict[str, object](blamed)))
        faults.demand_none()
        return signers

    def _process(
        self,
        asking: IntegratorCaller,
        order: ProcessOrder,
        document: WantedDocument,
        signers: list[NewSigner],
    ) -> NewProcess:
        return NewProcess(
            document=document.stored,
            name=document.name,
            signers=tuple(signers),
            origin=BACKEND_ORIGIN,
            actor=asking.actor,
            created=self._clock.now(),
            expires=order.expires,
            wishes=ProfileWishes(level=order.level),
            note=order.note,
        )

    async def _record(
        self,
        transaction: Transaction,
        asking: IntegratorCaller,
        order: ProcessOrder,
        new: NewProcess,
    ) -> ProcessId:
        """Record a process.

        Raises:
            ApplianceError: `REFERENCE_IN_USE`, `DOCUMENT_NOT_FOUND` for an upload that
                was deleted meanwhile.
        """
        if isinstance(order.document, str):
            whose, upload = asking.integrator.id, order.document
            if upload not in await self._uploads.hold(transaction, whose, [upload]):
                raise ApplianceError(ErrorCode.DOCUMENT_NOT_FOUND)
        requests = await record(transaction, new)
        first = await RequestStore(transaction).get(requests[0])
        if first is None:
            raise ApplianceError(ErrorCode.SOLICITUD_NOT_FOUND)
        return first.process


def _after(document: StoredDocument, restriction: Restriction) -> StoredDocument:
    """A document as the next one finds it, where a signature has certified it."""
    if restriction is Restriction.NO_VALUE:
        return document
    inspection = replace(document.inspection, docmdp=CERTIFIES[restriction])
    return replace(document, inspection=inspection)


@asynccontextmanager
async def naming_the_other(
    store: Database, whose: IntegratorId, note: ProcessNote
) -> AsyncIterator[None]:
    """Say which process has a reference, where that is why something is refused.

    Args:
        store: the record.
        whose: processes are looked at.
        note: that was to be written.

    Raises:
        ApplianceError: `REFERENCE_IN_USE`, with its id.
    """
    try:
        yield
    except ApplianceError as refusal:
        if refusal.code is not ErrorCode.REFERENCE_IN_USE or not note.reference:
            raise
        async with store.read() as transaction:
            other = await ProcessStore(transaction).of_reference(whose, note.reference)
        raise ApplianceError(
            refusal.code, extras={"field": "referencia", "procesoId": other}
        ) from refusal

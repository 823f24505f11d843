"""What a signing worker writes: claims, intents, signatures, outcomes.

Each method is one transaction. Those that take a claim are fenced: they give
False, and change nothing, when another worker has claimed since.

Source: design §3, 4 and 5.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Final

from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.details import LogoPicture
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Credential, Person
from appliance.domain.pki.outside_material import JobKind, WantedMaterial
from appliance.domain.ports import CompletionNotifier
from appliance.domain.requests.levels import Upkeep
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.signing.activation import (
    ActivationDocument,
    Claim,
    IntentRow,
    LeasePolicy,
)
from appliance.domain.signing.hsm_tasks import slot_host
from appliance.domain.vocab import EventKind, ItemState, RequestState
from appliance.integrators.logo_store import LogoStore
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.key_facts import KeyFacts
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore
from appliance.settings import SigningSettings
from appliance.signing.activations.activation_queue import (
    NEGLECTED,
    ActivationQueue,
    Wanted,
)
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from appliance.signing.outside_material import is_neglected
from appliance.signing.outside_material_store import OutsideMaterialStore
from appliance.signing.signing_order import end_rest, hand_over

ATTEMPTS: Final = 5
"""Claims in the key phase, without any result, after which nobody takes it any
more: it kills its workers, and the sweep makes its request `fallida`."""
SUSPECT: Final = 3
"""Claims after which it is signed alone, so that it takes no other along."""
_LEFT: Final = frozenset({ItemState.WAITING, ItemState.KEYED})
"""What is still to be done of an activation."""


class CertificateChangedError(Exception):
    """A credential was certified anew: what was prepared names the one before."""


class SuspectWaitsError(Exception):
    """What is next is signed alone: nothing is to be begun before it."""


@dataclass(frozen=True, slots=True)
class ClaimedActivation:
    """A claim with all that signing its documents needs."""

    claim: Claim
    person: Person | None
    credential: Credential | None
    requests: dict[int, RequestView]
    """By document."""
    is_suspect: bool
    """Whether earlier claims ended in a way that calls for signing it alone."""
    pictures: dict[str, LogoPicture] = field(default_factory=dict)
    """Logos that documents still to be signed show, by SHA-256."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A signed document as it is to be published."""

    document: ActivationDocument
    file: SignedDocumentView
    """What is published of it."""
    inspection: Inspection | None = None
    """Of the file; without one nobody gets the turn yet."""
    upkeep: Upkeep | None = None
    """What the file will need by itself."""


class Claims:
    """The use cases of a signing worker.

    Args:
        store: the record.
        completion_notifier: tells fronts that something ended.
        clock: the time.
        settings: lifetimes.
        worker: the worker's slot, `signing/<host>/<n>`.
        process: id of this process start.
    """

    def __init__(
        self,
        store: Database,
        completion_notifier: CompletionNotifier,
        clock: Clock,
        settings: SigningSettings,
        worker: str,
        process: str,
    ) -> None:
        self._store = store
        self._completion_notifier = completion_notifier
        self._clock = clock
        self._lease = timedelta(seconds=settings.lease_s)
        self._policy = LeasePolicy(
            host=slot_host(worker),
            lease=self._lease,
            key=timedelta(seconds=settings.key_s),
            finish=timedelta(seconds=settings.finish_s),
            attempts=ATTEMPTS,
            suspect=SUSPECT,
        )
        self._prefix = f"{worker}/"
        self._owner = f"{worker}/{process}"
        self._actor = f"worker:{worker}"

    async def release_own(self) -> int:
        """End the leases of earlier, dead starts of this worker's slot.

        Call it holding the slot's lock file, which only one process can.
        """
        async with self._store.write() as transaction:
            now = self._clock.now()
            tasks = await HsmTaskStore(transaction).release_of(self._prefix, now)
            return tasks + await ActivationStore(transaction).release_of(
                self._prefix, now
            )

    async def claim_next(
        self,
        *,
        busy: bool = False,
        single: bool = False,
        no_batches_of: Collection[PersonId] = (),
        without: Collection[PersonId] = (),
    ) -> ClaimedActivation | None:
        """Take an activation that nobody has in hand: a suspect, or what waits longest.

        It looks first: a look that finds nothing, as most do, takes no lock. On
        SQLite that lock is everybody's.

        Args:
            busy: the worker has others in hand.
            single: take none of several documents.
            no_batches_of: take none of several documents of these people's.
            without: take none of these people's.

        Raises:
            SuspectWaitsError: a suspect is next, and the worker is busy.
        """
        now = self._clock.now()
        which = Wanted(single, no_batches_of, without)
        async with self._store.read() as transaction:
            claims = await ActivationQueue(transaction).next_claims(
                now, self._policy, which
            )
        if claims is None:
            return None
        if busy and claims >= SUSPECT:
            raise SuspectWaitsError
        async with self._store.write() as transaction:
            claim = await ActivationQueue(transaction).claim_next(
                self._owner, now, self._policy, which
            )
            if claim is None:
                return None
            for intent in await ActivationStore(transaction).interrupt_intents(
                claim, now
            ):
                transaction.audit.add(
                    key_interrupted(self._actor, claim.documents, intent)
                )
            for document in claim.documents:
                if document.state in _LEFT:
                    self._audit(
                        transaction,
                        EventKind.ACTIVATION_CLAIMED,
                        claim,
                        document,
                        {"state": claim.state.value, "items": len(claim.documents)},
                    )
            return await _read(transaction, claim)

    async def read_again(self, claim: Claim) -> ClaimedActivation:
        """A claim with what stands beside it now."""
        async with self._store.write() as transaction:
            return await _read(transaction, claim)

    async def renew(self, claim: Claim) -> bool:
        """Prolong the lease, to the end of its phase at the most."""
        async with self._store.write() as transaction:
            return await ActivationStore(transaction).renew(
                claim, self._clock.now() + self._lease
            )

    async def drop(self, claim: Claim) -> None:
        """Give the activation back unfinished, to be claimed again."""
        async with self._store.write() as transaction:
            await ActivationStore(transaction).drop(claim, self._clock.now())

    async def want(self, claim: Claim, wanted: Collection[WantedMaterial]) -> bool:
        """Have the role with a network fetch what is missing.

        Until it is there, or that role neglects it, nobody claims the activation. One
        that is neglected is left to chores of the version before, which know of no
        material and finish whole documents, as long as they may.

        Args:
            claim: of the caller.
            wanted: the pieces, one at least.

        Returns:
            False when another worker has claimed since.
        """
        async with self._store.write() as transaction:
            now = self._clock.now()
            code = next(iter(wanted)).code
            activations = ActivationStore(transaction)
            patience = NEGLECTED * self._lease
            there = await OutsideMaterialStore(transaction).of(claim.id)
            is_alone = is_neglected(*there, now, patience)
            until = now if is_alone else now + patience
            if not await activations.wait(claim, until, code.value, is_left=is_alone):
                return False
            is_left = await OutsideMaterialStore(transaction).want(
                claim.id,
                JobKind.ACTIVATION,
                wanted,
                now,
                claim.key_until + self._policy.finish,
                self._lease,
            )
            if not is_left:
                # All of it came in the meantime.
                await activations.wait(claim, now, code.value)
        return True

    async def put_off(
        self, claim: Claim, code: ErrorCode, rest: timedelta | None = None
    ) -> None:
        """Let go of what waits for something, for a moment.

        It does not count as a try, or what waits would become a suspect.

        Args:
            claim: of the caller.
            code: what it waits for; the reason, should its time run out.
            rest: until it may be taken again; a lease's time, if not given.
        """
        async with self._store.write() as transaction:
            until = self._clock.now() + (self._lease if rest is None else rest)
            await ActivationStore(transaction).put_off(claim, until, code.value)
            if code is ErrorCode.TSA_UNAVAILABLE:
                # What was fetched does not do, as a token of a revoked certificate.
                await OutsideMaterialStore(transaction).remove([claim.id])

    async def intend(
        self,
        claim: Claim,
        documents: Collection[ActivationDocument],
        certificate: bytes,
        key: KeyFacts | None = None,
    ) -> bool:
        """Record, before the key is used, the exact digests to be signed.

        The moment that counts for a revocation: what is intended before it was
        asked for is finished, what is not yet intended never will be.

        Args:
            claim: of the caller.
            documents: of it, one at least, each with its digest.
            certificate: DER; what is to be signed names it as the signer's.
            key: that is to be used, and its certificate, for the audit.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_USABLE`.
            CertificateChangedError: the credential has another one now.
        """
        async with self._store.write() as transaction:
            # Locked: a revocation is either seen here or waits for this commit.
            credential = await CredentialStore(transaction).get(
                claim.credential, lock=True
            )
            # Only now: whoever waited for the transaction may have waited for long.
            now = self._clock.now()
            if credential is None or not credential.usable_at(now):
                raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
            if credential.certificate != certificate:
                # Whoever completes it looks at the credential: both must agree.
                raise CertificateChangedError
            path = (credential.certificate, *credential.chain)
            if await CredentialStore(transaction).found_revoked(path):
                raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
            digests = {document.seq: document.digest for document in documents}
            if not await ActivationStore(transaction).intend(claim, digests, now):
                return False
            named = {} if key is None else key.detail()
            for document in documents:
                detail = {
                    "digest": document.digest,
                    "documentSha256": document.document_sha256,
                    **named,
                }
                self._audit(
                    transaction, EventKind.KEY_INTENDED, claim, document, detail
                )
        return True

    async def record_signatures(
        self,
        claim: Claim,
        documents: Collection[ActivationDocument],
        key: KeyFacts | None = None,
    ) -> bool:
        """Store what the key yielded; no document left to key means `finishing`.

        Args:
            claim: of the caller.
            documents: of it, each with its signature, and the digest as intended.
            key: that was used, and its certificate, for the audit.
        """
        now = self._clock.now()
        made = {
            document.seq: document.signature
            for document in documents
            if document.signature is not None
        }
        async with self._store.write() as transaction:
            if not await ActivationStore(transaction).record_signatures(
                claim, made, now
            ):
                return False
            await ActivationStore(transaction).settle(
                claim, now, finish=self._policy.finish
            )
            named = {} if key is None else key.detail()
            for document in documents:
                detail = {"digest": document.digest, **named}
                self._audit(transaction, EventKind.KEY_USED, claim, document, detail)
        return True

    async def publish(
        self, claim: Claim, publications: Collection[Publication]
    ) -> bool:
        """Publish signed documents; `firmada` from here on, once for ever.

        Call `announce` after it.

        Args:
            claim: of the caller.
            publications: of documents of it.

        Raises:
            ApplianceError: `INTERNAL`: a request is not `en_proceso`, so that
                nothing may be published; nothing was.
        """
        async with self._store.write() as transaction:
            now = self._clock.now()
            seqs = [each.document.seq for each in publications]
            if not await ActivationStore(transaction).publish(claim, seqs):
                return False
            if [each for each in publications if each.inspection is not None]:
                # Who is given what one made is held before it, in one order.
                await RequestStore(transaction).lock_turns(
                    [each.document.request for each in publications]
                )
            files = [each.file for each in publications]
            signed = await DocumentStore(transaction).publish(files, now)
            # Requests are locked in one order everywhere.
            for each in sorted(publications, key=attrgetter("document.request")):
                if each.document.request in signed:
                    await self._published(transaction, claim, each, now)
                else:
                    await _demand_recovered(transaction, each.document)
            await ActivationStore(transaction).settle(claim, now)
        return True

    async def _published(
        self,
        transaction: Transaction,
        claim: Claim,
        publication: Publication,
        now: datetime,
    ) -> None:
        """Note what one needs from now on, and give it to who signs next."""
        document, file = publication.document, publication.file
        if publication.upkeep is not None:
            await LevelMaintenanceStore(transaction).add(
                document.request, file.integrator, publication.upkeep, now
            )
        detail = {"sha256": file.sha256, "level": file.level}
        self._audit(
            transaction,
            EventKind.REQUEST_SIGNED,
            claim,
            document,
            detail,
            file.integrator,
        )
        if publication.inspection is not None:
            await hand_over(
                transaction, file, publication.inspection, self._clock, self._actor
            )

    async def announce(self, claim: Claim) -> None:
        """Tell whoever waits that there is an outcome to look at."""
        await self._completion_notifier.publish(claim.id)

    async def leave_to_others(self, claim: Claim) -> bool:
        """Let go of an activation whose seal this host cannot open.

        Returns:
            False when it is sealed to no other host, or fenced off.
        """
        async with self._store.write() as transaction:
            others = await ActivationStore(transaction).unseal(claim)
            if not others:
                return False
            return await ActivationStore(transaction).drop(claim, self._clock.now())

    async def returned(
        self,
        claim: Claim,
        documents: Collection[ActivationDocument],
        code: ErrorCode,
        layer: str = "",
    ) -> bool:
        """Give requests back to their signer, who may try again.

        Args:
            claim: of the caller.
            documents: whose requests they are.
            code: why.
            layer: which lock held, of `ACTIVATION_INVALID`.
        """
        return await self._end(claim, documents, code, RequestState.PENDING, layer)

    async def failed(
        self, claim: Claim, documents: Collection[ActivationDocument], code: ErrorCode
    ) -> bool:
        """Give requests up for good."""
        return await self._end(claim, documents, code, RequestState.FAILED)

    async def _end(
        self,
        claim: Claim,
        documents: Collection[ActivationDocument],
        code: ErrorCode,
        then: RequestState,
        layer: str = "",
    ) -> bool:
        """End documents without a signature, and the activation with its last one."""
        now = self._clock.now()
        kind = EventKind.REQUEST_FAILED
        if then is RequestState.PENDING:
            kind = EventKind.REQUEST_RETURNED
        why = {"reason": code.value, **({"layer": layer} if layer else {})}
        async with self._store.write() as transaction:
            if then is RequestState.FAILED:
                requests = [document.request for document in documents]
                await RequestStore(transaction).lock_turns(requests)
            # Requests are locked in one order everywhere.
            for document in sorted(documents, key=lambda document: document.request):
                if not await ActivationStore(transaction).document_failed(
                    claim, document.seq, code.value
                ):
                    return False
                for intent in await ActivationStore(transaction).interrupt_document(
                    claim, document.seq, now
                ):
                    event = key_interrupted(self._actor, claim.documents, intent)
                    transaction.audit.add(event)
                moved = await RequestStore(transaction).move(
                    document.request, RequestState.IN_PROGRESS, then, code.value
                )
                if not moved:
                    # Its document was found after a restore.
                    continue
                self._audit(transaction, kind, claim, document, why)
                if then is RequestState.FAILED:
                    await end_rest(transaction, document.request, then, self._actor)
            await ActivationStore(transaction).settle(claim, now, code.value)
        await self._completion_notifier.publish(claim.id)
        return True

    def _audit(
        self,
        transaction: Transaction,
        kind: EventKind,
        claim: Claim,
        document: ActivationDocument,
        detail: Mapping[str, object],
        integrator: str | None = None,
    ) -> None:
        """Say in the audit what happened to one document of a claim."""
        transaction.audit.add(
            AuditEvent(
                kind,
                self._actor,
                integrator=integrator,
                request=document.request,
                activation=claim.id,
                attempt=claim.fence,
                detail={"item": document.seq, **detail},
            )
        )


def key_interrupted(
    actor: str, documents: Sequence[ActivationDocument], intent: IntentRow
) -> AuditEvent:
    """What the audit says of an intended use of a key that was closed open-ended."""
    # A row may name any document: it keeps nobody from claiming the activation.
    request = next(
        (each.request for each in documents if each.seq == intent.item), None
    )
    return AuditEvent(
        EventKind.KEY_INTERRUPTED,
        actor,
        request=request,
        activation=intent.activation,
        attempt=intent.attempt,
        detail={"item": intent.item, "digest": intent.digest},
    )


async def _demand_recovered(
    transaction: Transaction, document: ActivationDocument
) -> None:
    """Let be what cannot be published because it is `firmada` already.

    Its document was found after a restore (`documents recover`), and stays.

    Raises:
        ApplianceError: `INTERNAL`: the request is not.
    """
    view = await RequestStore(transaction).get(document.request)
    if view is None or view.state is not RequestState.SIGNED:
        raise ApplianceError(ErrorCode.INTERNAL)


async def _read(transaction: Transaction, claim: Claim) -> ClaimedActivation:
    """Read what stands beside a claim, now: person and key may have changed."""
    views = await RequestStore(transaction).named(
        [document.request for document in claim.documents]
    )
    logos = {each.details.logo.sha256 for each in claim.documents if each.details.logo}
    pictures = [await LogoStore(transaction).picture(logo) for logo in sorted(logos)]
    return ClaimedActivation(
        claim=claim,
        is_suspect=claim.tries > SUSPECT,
        person=await PersonStore(transaction).get(claim.person),
        # Locked: a renewal either comes before this look, or sees the claim and
        # waits (see `Renewal.renewed`).
        credential=await CredentialStore(transaction).get(claim.credential, lock=True),
        requests={
            document.seq: views[document.request]
            for document in claim.documents
            if document.request in views
        },
        pictures={made.logo.sha256: made for made in pictures if made is not None},
    )

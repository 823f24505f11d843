"""What a signing worker writes: claims, intents, signatures, outcomes.

Each method is one transaction. Those that take a claim are fenced: they give
False, and change nothing, when another worker has claimed since.

Source: design §3, 4 and 5.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from appliance.core.unit_of_work import Database
from appliance.domain.activation import ActivationDocument, SignatureValue
from appliance.domain.clock import Clock
from appliance.domain.documents import Inspection
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.ports import Outcomes
from appliance.domain.records.activations import Claim, LeasePolicy
from appliance.domain.requests.levels import Upkeep
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import RequestState
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.signing_hosts import slot_host
from appliance.settings import SigningSettings
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.activations.claimed_activation import (
    SUSPECT,
    ClaimedActivation,
    SuspectWaitsError,
    read_work,
)
from appliance.signing.audit_events import claimed_events, key_interrupted
from appliance.signing.document_outcomes import give_up, publish
from appliance.signing.intents import intend, keep_signature

ATTEMPTS: Final = 5
"""Claims in the key phase, without any result, after which nobody takes it any
more: it kills its workers, and the sweep makes its request `fallida`."""


class Claims:
    """The use cases of a signing worker.

    Args:
        store: the record.
        outcomes: tells fronts that something ended.
        clock: the time.
        settings: lifetimes.
        worker: the worker's slot, `signing/<host>/<n>`.
        process: id of this process start.
        outside: whether it has a network and no keys, and takes what others handed
            to it.
    """

    def __init__(
        self,
        store: Database,
        outcomes: Outcomes,
        clock: Clock,
        settings: SigningSettings,
        worker: str,
        process: str,
        *,
        outside: bool = False,
    ) -> None:
        self._store = store
        self._outcomes = outcomes
        self._clock = clock
        self._lease = timedelta(seconds=settings.lease_s)
        self._policy = LeasePolicy(
            host=slot_host(worker),
            lease=self._lease,
            key=timedelta(seconds=settings.key_s),
            finish=timedelta(seconds=settings.finish_s),
            attempts=ATTEMPTS,
            suspect=SUSPECT,
            outside=outside,
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
        without: Collection[PersonId] = (),
    ) -> ClaimedActivation | None:
        """Take an activation that nobody has in hand: a suspect, or what waits longest.

        It looks first: a look that finds nothing, as most do, takes no lock. On
        SQLite that lock is everybody's.

        Args:
            busy: the worker has others in hand.
            single: take none of several documents.
            without: take none of these people's.

        Raises:
            SuspectWaitsError: a suspect is next, and the worker is busy.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            claims = await ActivationStore(transaction).next_claims(
                now, self._policy, single=single, without=without
            )
        if claims is None:
            return None
        if busy and claims >= SUSPECT:
            raise SuspectWaitsError
        async with self._store.write() as transaction:
            claim = await ActivationStore(transaction).claim_next(
                self._owner, now, self._policy, single=single, without=without
            )
            if claim is None:
                return None
            for intent in await ActivationStore(transaction).interrupt_intents(
                claim, now
            ):
                transaction.audit.add(
                    key_interrupted(self._actor, claim.documents, intent)
                )
            for event in claimed_events(self._actor, claim):
                transaction.audit.add(event)
            return await read_work(transaction, claim)

    async def read_again(self, claim: Claim) -> ClaimedActivation:
        """A claim with what stands beside it now."""
        async with self._store.write() as transaction:
            return await read_work(transaction, claim)

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

    async def hand_out(self, claim: Claim, code: ErrorCode) -> None:
        """Give what is left to the role that has a network.

        Args:
            claim: of the caller.
            code: what it lacks; the reason, should its time run out untried.
        """
        async with self._store.write() as transaction:
            await ActivationStore(transaction).hand_out(
                claim, self._clock.now(), code.value
            )

    async def put_off(
        self, claim: Claim, code: ErrorCode, rest: timedelta | None = None
    ) -> None:
        """Let go of what waits for something, for a moment.

        With the role that has a network it counts as a try: rests grow by those. With
        a signing worker it does not, or what waits would become a suspect.

        Args:
            claim: of the caller.
            code: what it waits for; the reason, should its time run out.
            rest: until it may be taken again; a lease's time, if not given.
        """
        async with self._store.write() as transaction:
            until = self._clock.now() + (self._lease if rest is None else rest)
            await ActivationStore(transaction).put_off(
                claim, until, code.value, counted=self._policy.outside
            )

    async def intend(
        self, claim: Claim, item: ActivationDocument, digest: str, certificate: bytes
    ) -> bool:
        """Record, before the key is used, the exact digest to be signed.

        The moment that counts for a revocation: what is intended before it was
        asked for is finished, what is not yet intended never will be.

        Args:
            claim: of the caller.
            item: of it.
            digest: hex.
            certificate: DER; what is to be signed names it as the signer's.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_USABLE`.
            CertificateChangedError: the credential has another one now.
        """
        async with self._store.write() as transaction:
            return await intend(
                transaction,
                claim,
                item,
                digest,
                certificate,
                now=self._clock.now(),
                actor=self._actor,
            )

    async def keyed(
        self, claim: Claim, item: ActivationDocument, made: SignatureValue, digest: str
    ) -> bool:
        """Store what the key yielded; no item left to key means `finishing`."""
        now = self._clock.now()
        async with self._store.write() as transaction:
            return await keep_signature(
                transaction, claim, item, made, digest, now=now, actor=self._actor
            )

    async def finished(
        self,
        claim: Claim,
        item: ActivationDocument,
        document: SignedDocumentView,
        inspection: Inspection | None = None,
        upkeep: Upkeep | None = None,
    ) -> bool:
        """Publish a signed document; `firmada` from here on, once for ever.

        Call `announce` after it.

        Args:
            claim: of the caller.
            item: of it.
            document: what is published.
            inspection: of it; it is then given to who signs next.
            upkeep: what the document will need by itself.

        Raises:
            ApplianceError: `INTERNAL`: the request is not `en_proceso`, so that
                nothing may be published; nothing was.
        """
        async with self._store.write() as transaction:
            return await publish(
                transaction,
                claim,
                item,
                document,
                inspection,
                upkeep,
                clock=self._clock,
                actor=self._actor,
            )

    async def announce(self, claim: Claim) -> None:
        """Tell whoever waits that there is an outcome to look at."""
        await self._outcomes.announce(claim.id)

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
        items: list[ActivationDocument],
        code: ErrorCode,
        layer: str = "",
    ) -> bool:
        """Give requests back to their signer, who may try again.

        Args:
            claim: of the caller.
            items: what is given back.
            code: why.
            layer: which lock held, of `ACTIVATION_INVALID`.
        """
        return await self._ended(claim, items, code, RequestState.PENDING, layer)

    async def failed(
        self, claim: Claim, items: list[ActivationDocument], code: ErrorCode
    ) -> bool:
        """Give requests up for good."""
        return await self._ended(claim, items, code, RequestState.FAILED)

    async def _ended(
        self,
        claim: Claim,
        items: list[ActivationDocument],
        code: ErrorCode,
        then: RequestState,
        layer: str = "",
    ) -> bool:
        async with self._store.write() as transaction:
            done = await give_up(
                transaction,
                claim,
                items,
                then,
                code,
                layer,
                clock=self._clock,
                actor=self._actor,
            )
        if done:
            await self._outcomes.announce(claim.id)
        return done

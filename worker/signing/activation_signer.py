"""Signs one activation that is in progress, group by group, each in its turn.

Its lease is held all the while (`worker.leased_worker`). What ends a document's
signing, ends it here: its request goes back to its signer, is given up, waits for a
later try, or for what the role with a network is to fetch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog
from structlog.contextvars import bound_contextvars

from appliance.domain.errors import (
    ApplianceError,
    DocumentsAwayError,
    ErrorCode,
    ProfileDiffersError,
)
from appliance.domain.pki.outside_material import MissingMaterialError, WantedMaterial
from appliance.domain.ports import WorkNotifier
from appliance.domain.signing.activation import ActivationDocument, Claim
from appliance.domain.vocab import ItemState
from appliance.signing.claims import CertificateChangedError, ClaimedActivation, Claims
from worker.leased_worker import FencedOffError, GiveBack
from worker.signing.document_signer import (
    DocumentSigner,
    GroupResult,
    OriginalUnreadableError,
    UsableKey,
)
from worker.signing.failed_documents import fail_documents
from worker.signing.level_extension import AWAY
from worker.signing.turns import Turn, Turns

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Progress:
    """An activation as far as it has come."""

    work: ClaimedActivation
    """As it was read last."""
    key: UsableKey | None
    waits_for: ErrorCode | None = None
    """What a document of it waits for."""
    wanted: list[WantedMaterial] = field(default_factory=list)
    """What documents of it need of servers outside."""


@dataclass(frozen=True, slots=True)
class ActivationSigner:
    """What a signing worker does with each activation.

    Args:
        claims: this worker's transactions.
        signer: signs a group of documents.
        work_notifier: wakes the role that has a network.
        turns: of groups and single documents.
        yields: whether no further group of a batch is to be begun now.
        came_through: told of each group that was signed or ended.
    """

    claims: Claims
    signer: DocumentSigner
    work_notifier: WorkNotifier
    turns: Turns
    yields: Callable[[], bool]
    came_through: Callable[[], None]

    async def sign(self, work: ClaimedActivation) -> GiveBack | None:
        """Sign what is left of an activation; how to give back what is left then.

        Raises:
            FencedOffError: another worker has claimed since, or is to.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        progress = _Progress(work, await self._unlock(work, work.claim.documents))
        left: Sequence[ActivationDocument] = [
            document
            for document in work.claim.documents
            if document.state is ItemState.KEYED
            or (document.state is ItemState.WAITING and progress.key is not None)
        ]
        if work.claim.tries > 1 and all(i.state is ItemState.KEYED for i in left):
            # One that ends its workers keeps none of the others from publication.
            first = (work.claim.tries - 2) % max(1, len(left))
            left = [*left[first:], *left[:first]]
        while left:
            left = await self._sign_in_turn(progress, left)
        claim = progress.work.claim
        if progress.wanted:
            return partial(self._have_fetched, claim, progress.wanted)
        if progress.waits_for is not None:
            return partial(self.claims.put_off, claim, progress.waits_for)
        return None

    async def _have_fetched(
        self, claim: Claim, wanted: Sequence[WantedMaterial]
    ) -> None:
        """Have the role with a network fetch what is missing, and wake it."""
        await self.claims.want(claim, wanted)
        await self.work_notifier.notify(claim.id)

    async def _unlock(
        self, work: ClaimedActivation, documents: Sequence[ActivationDocument]
    ) -> UsableKey | None:
        """The key for what waits for one; None when nothing does any more.

        Args:
            work: as it was read last.
            documents: what is left of it.

        Raises:
            FencedOffError: another worker has claimed since, or is to.
        """
        waiting = [i for i in documents if i.state is ItemState.WAITING]
        if not waiting:
            return None
        try:
            return await self.signer.unlock(work)
        except ApplianceError as exc:
            # Another host may have its key, or the settings of the front.
            lost = exc.code is ErrorCode.ACTIVATION_EXPIRED
            lost = lost or isinstance(exc, ProfileDiffersError)
            if lost and await self.claims.leave_to_others(work.claim):
                raise FencedOffError from exc
            await self._fail(work.claim, waiting, exc)
            return None

    async def _fail(
        self, claim: Claim, documents: list[ActivationDocument], exc: ApplianceError
    ) -> None:
        """End documents, on the record and then for this host.

        Raises:
            FencedOffError: another worker has claimed since.
        """
        await fail_documents(self.claims, claim, documents, exc)
        self.signer.over(claim, documents)

    async def _sign_in_turn(
        self, progress: _Progress, left: Sequence[ActivationDocument]
    ) -> Sequence[ActivationDocument]:
        """Sign the first of what is left when it is its turn; give what is left then.

        A worker that is to stop, or to sign something alone, begins no further
        group of a batch: whoever takes it next goes on there.

        Raises:
            FencedOffError: another worker has claimed since, or is to.
        """
        of_batch = len(progress.work.claim.documents) > 1
        person = progress.work.claim.person
        async with self.turns.turn(person, of_batch=of_batch) as turn:
            if of_batch and self.yields():
                await self.claims.drop(progress.work.claim)
                raise FencedOffError
            group = self.signer.next_group(progress.work, left)
            named = {"request": group[0].request} if len(group) == 1 else {}
            with bound_contextvars(**named):
                while True:
                    try:
                        await self._sign_group(progress, group, turn)
                        break
                    except CertificateChangedError:
                        # Nothing was intended yet: it is prepared anew, if what was
                        # consented to is still what stands recorded.
                        progress.work = await self.claims.read_again(
                            progress.work.claim
                        )
                        progress.key = await self._unlock(progress.work, left)
                        if progress.key is None:
                            return [
                                each for each in left if each.state is ItemState.KEYED
                            ]
        self.came_through()
        return left[len(group) :]

    async def _sign_group(
        self, progress: _Progress, group: Sequence[ActivationDocument], turn: Turn
    ) -> None:
        """Sign documents, and end each other one by the reason it cannot be signed.

        Raises:
            FencedOffError: another worker has claimed since.
            CertificateChangedError: do it again, with the claim read again.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        try:
            result = await self.signer.sign(progress.work, group, progress.key, turn)
        except ApplianceError as refusal:
            if refusal.code is ErrorCode.STORE_UNAVAILABLE:
                raise
            result = GroupResult(ended={each.seq: refusal for each in group})
        alike: dict[int, tuple[ApplianceError, list[ActivationDocument]]] = {}
        for document in group:
            if (exc := result.ended.get(document.seq)) is not None:
                alike.setdefault(id(exc), (exc, []))[1].append(document)
        away = None
        for exc, documents in alike.values():
            if _is_away(exc):
                away = exc
            elif isinstance(exc, MissingMaterialError):
                progress.wanted += exc.wanted
            elif (waits_for := _waits(exc, documents)) is not None:
                progress.waits_for = waits_for
            else:
                await self._fail(progress.work.claim, documents, exc)
        if away is not None:
            raise away


def _is_away(exc: ApplianceError) -> bool:
    """Whether the store is away for all, which ends the claim."""
    kinds = OriginalUnreadableError, DocumentsAwayError
    return exc.code is ErrorCode.STORE_UNAVAILABLE and not isinstance(exc, kinds)


def _waits(
    exc: ApplianceError, documents: Sequence[ActivationDocument]
) -> ErrorCode | None:
    """What documents wait for that cannot be signed now; None where that is an end."""
    is_unreadable = isinstance(exc, OriginalUnreadableError)
    is_store_away = isinstance(exc, DocumentsAwayError)
    if not is_unreadable and not is_store_away and exc.code not in AWAY:
        return None
    for document in documents:
        about = {"request": document.request, "code": exc.code.value}
        if is_unreadable:
            _log.warning("document.unreadable", **about)
        elif is_store_away:
            # All documents are away, which says nothing of this one: no try.
            _log.warning("document.store_away", **about)
        else:
            # Its signature is made: a later try may do.
            _log.warning("document.waits", **about)
    return exc.code

"""The finish phase of one document: from its signature to its publication.

Needs no user's key; any worker may do it, any number of times. The result is
checked before anybody can have it, and the file is durable before the record names
it. What an earlier try stored and did not publish is nobody's.

Source: design §3, 5.
"""

import asyncio
from dataclasses import dataclass

import structlog

from appliance.core import metrics
from appliance.domain.activation import ActivationDocument, SignatureValue
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.identity import Credential
from appliance.domain.ports import DocumentStore
from appliance.domain.requests.levels import SignatureProfile
from appliance.domain.requests.request import RequestView, SignedDocumentView
from appliance.domain.vocab import TimestampPolicy
from appliance.signing.claims import ClaimedActivation, Claims, Publication
from appliance.signing.signing_order import Turns
from worker.failpoints import FILE_WRITTEN, PUBLISHED, STAMPED, crash_point
from worker.pades.algorithms import SignatureMethod
from worker.pades.byte_range import FileDigests
from worker.pades.cms import assemble, token_fits
from worker.pades.self_check import CheckedSignature, check, method_of
from worker.signing.level_extension import ExtensionResult, Levels
from worker.stage_timings import Stages

_log = structlog.get_logger(__name__)
# Told from the start: an increase from nothing is none to Prometheus.
metrics.SIGNATURES.labels("signed")


class FencedOffError(Exception):
    """Another worker has claimed since; what this one does counts no more."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Finishes one item at a time, under a claim.

    Args:
        claims: this worker's transactions.
        documents: where PDFs are.
        turns: of those who sign after.
        levels: adds timestamps and validation data.
        profile: of the installation.
    """

    claims: Claims
    documents: DocumentStore
    turns: Turns
    levels: Levels
    profile: SignatureProfile

    def profile_of(self, view: RequestView) -> SignatureProfile:
        """How a request is to be signed.

        Args:
            view: the request.
        """
        return self.profile.narrowed(view.wishes)

    def must_go_out(self, work: ClaimedActivation, view: RequestView) -> bool:
        """Whether an item is to be finished by the role that has a network.

        Where that role neglects what it was handed, what a profile merely prefers is
        done without.

        Args:
            work: the claim.
            view: the item's request.
        """
        profile = self.profile_of(view)
        if work.credential is None or (
            work.claim.outside and profile.timestamp_policy is TimestampPolicy.PREFERRED
        ):
            return False
        return self.levels.must_go_out(work.credential.certificate, profile)

    def goes_out_for(
        self, work: ClaimedActivation, item: ActivationDocument
    ) -> ErrorCode:
        """What an item that must go out lacks: the reason, should nobody finish it.

        Args:
            work: the claim.
            item: of it.
        """
        view = work.requests.get(item.seq)
        stamped = view is not None and self.profile_of(view).has_outside_tsa
        return (
            ErrorCode.TSA_UNAVAILABLE if stamped else ErrorCode.REVOCATION_UNAVAILABLE
        )

    async def resume(self, work: ClaimedActivation, item: ActivationDocument) -> None:
        """Finish what an earlier claim signed.

        Args:
            work: the claim.
            item: of it, its signature stored.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: as `finish`; `STORE_UNAVAILABLE`.
        """
        view = work.requests.get(item.seq)
        if view is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        stages = Stages()
        original = await self.documents.get(view.integrator, item.document_sha256)
        stages.done("read")
        await self.finish(work, item, view, FileDigests(original), stored(item), stages)

    async def finish(
        self,
        work: ClaimedActivation,
        item: ActivationDocument,
        view: RequestView,
        original: FileDigests,
        made: SignatureValue,
        stages: Stages,
    ) -> None:
        """Take an item from its stored signature to its publication.

        Args:
            work: the claim.
            item: of it.
            view: its request.
            original: the document that was signed.
            made: what the key yielded.
            stages: of this item.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`: to be
                tried again; or as it cannot be published, by the code of why.
        """
        if work.credential is None:
            raise ApplianceError(ErrorCode.SIGNING_FAILED)
        credential, profile = work.credential, self.profile_of(view)
        method = method_of(credential.certificate, made.signed_attributes, made.value)
        token = await self.levels.token(made.value, method.digest, profile)
        stages.done("stamp")
        crash_point(STAMPED, item.request)
        increment, checked = await asyncio.to_thread(
            _complete, original, credential, made, method, token
        )
        stages.done("check")
        reached = await self.levels.complete(
            (original.content, increment),
            checked,
            credential.certificate,
            credential.chain,
            profile,
        )
        stages.done("level")
        signed = (original.content, increment, reached.appended)
        await self._publish(work, item, view, signed, reached, stages)

    async def _publish(
        self,
        work: ClaimedActivation,
        item: ActivationDocument,
        view: RequestView,
        signed: tuple[bytes, ...],
        reached: ExtensionResult,
        stages: Stages,
    ) -> None:
        """Store the document and name it; in parts, for joined they are there twice."""
        sha256 = await self.documents.put(view.integrator, *signed, signed=True)
        stages.done("store")
        crash_point(FILE_WRITTEN, item.request)
        document = SignedDocumentView(
            request=item.request,
            integrator=view.integrator,
            file_name=view.document_name,
            sha256=sha256,
            size_bytes=sum(len(part) for part in signed),
            level=reached.level.value,
        )
        # Before the transaction: what publishes it gives the turn on as well.
        inspection = await self.turns.inspect_for_next(view, *signed)
        publication = Publication(item, document, inspection, reached.upkeep)
        if not await self.claims.publish(work.claim, [publication]):
            raise FencedOffError
        stages.done("publish")
        crash_point(PUBLISHED, item.request)
        await self.claims.announce(work.claim)
        metrics.SIGNATURES.labels("signed").inc()
        _log.info(
            "document.signed",
            activation=work.claim.id,
            request=item.request,
            attempt=work.claim.fence,
            sha256=sha256,
            reached=reached.level.value,
            ms=stages.ms,
        )


def _complete(
    original: FileDigests,
    credential: Credential,
    made: SignatureValue,
    method: SignatureMethod,
    token: bytes | None,
) -> tuple[bytes, CheckedSignature]:
    """The increment with the CMS in it, checked before anybody can have it.

    Raises:
        ApplianceError: `SIGNING_FAILED`: what was made must not be released.
    """
    if token is not None and not token_fits(
        made.contents_length,
        signed_attributes=made.signed_attributes,
        signature=made.value,
        method=method,
        certificate=credential.certificate,
        chain=credential.chain,
        token=token,
    ):
        # A document timestamp takes its place.
        token = None
    increment = assemble(
        made.increment,
        contents_at=made.contents_at,
        contents_length=made.contents_length,
        signed_attributes=made.signed_attributes,
        signature=made.value,
        method=method,
        certificate=credential.certificate,
        chain=credential.chain,
        token=token,
    )
    checked = check(original.content, increment, credential.certificate, original)
    return increment, checked


def stored(item: ActivationDocument) -> SignatureValue:
    """What an earlier attempt stored of its use of the key.

    Args:
        item: as it stands recorded.

    Raises:
        ApplianceError: `SIGNING_FAILED`: it is not there.
    """
    if item.signature is None:
        raise ApplianceError(ErrorCode.SIGNING_FAILED)
    return item.signature
